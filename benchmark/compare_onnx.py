"""compare.py --onnx: any ONNX models in quoll, ONNX Runtime and OpenVINO, from the same file and on the same inputs.

Inputs are random, by declared type: floats of a normal distribution, integers that index any table (0 and 1), booleans; axes that the
model leaves open come from --shape NAME=1,3,224,224 or are 1. Answers are checked against ONNX Runtime's without optimisation: an
engine whose answer is wrong does not count. A ratio is the peer's time over ours, best of a round's runs, the median over the rounds.
With --cpu-time the time that the processor worked for the process counts, which on a machine with other work to do says more; for one
thread alone. For networks that lose, the layers' times stand beside the best peer's own profile.
"""
import hashlib
import json
import os
import pathlib
import statistics
import sys
import tempfile

OURS = 'quoll'
PEERS = ('onnxruntime', 'openvino')
# Largest error as a share of the answer's range.
WRONG = {'fp32': 2e-3, 'bf16': 0.5, 'int8': 0.5}
TYPES = {'tensor(float)': 'float32', 'tensor(double)': 'float64', 'tensor(float16)': 'float16', 'tensor(int64)': 'int64',
         'tensor(int32)': 'int32', 'tensor(int16)': 'int16', 'tensor(int8)': 'int8', 'tensor(uint8)': 'uint8', 'tensor(bool)': 'bool'}


def half_of(name):
    """Of a name that export_suite.py knows; others have no half, and count as one."""
    import export_suite

    return export_suite.half_of(name)


def find(paths):
    files = []
    for path in map(pathlib.Path, paths):
        files += sorted(path.glob('**/*.onnx')) if path.is_dir() else [path]
    return files


def session(path, level='ORT_DISABLE_ALL', threads=1, **fields):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    options.log_severity_level = 3
    for name, value in fields.items():
        setattr(options, name, value)
    return onnxruntime.InferenceSession(str(path), options, providers=['CPUExecutionProvider'])


def random_feed(ports, random, shapes):
    """{name: values} for the inputs of a session, as the page above says."""
    import numpy as np

    feed = {}
    for port in ports:
        if port.type not in TYPES:
            raise ValueError(f'input {port.name} is {port.type}: expected one of {", ".join(TYPES)}')
        declared = [axis if isinstance(axis, int) and axis > 0 else 1 for axis in port.shape]
        shape = shapes.get(port.name, declared)
        kind = np.dtype(TYPES[port.type])
        values = random.standard_normal(shape) if kind.kind == 'f' else random.integers(0, 2, shape)
        feed[port.name] = np.ascontiguousarray(values.astype(kind))
    return feed


class OnnxModel:
    """A file, its inputs as .npy files in a folder, and the answers expected."""

    def __init__(self, path, folder, shapes):
        import numpy as np

        self.path, self.name, self.inputs = path, path.stem, {}
        run = session(path, threads=len(os.sched_getaffinity(0)))
        random = np.random.default_rng(int.from_bytes(hashlib.sha256(self.name.encode()).digest()[:4], 'big'))
        feed = random_feed(run.get_inputs(), random, shapes)
        for i, (name, values) in enumerate(feed.items()):
            self.inputs[name] = str(folder / f'in{i}.npy')
            np.save(self.inputs[name], values)
        self.expected = run.run(None, feed)
        # Answers of one value (a classifier whose weights are zeros) let any network pass.
        self.constant = all(np.asarray(want).size == 0 or np.ptp(np.asarray(want, np.float64)) == 0 for want in self.expected)


def error_of(expected, got):
    """The largest error of some answers, each as a share of its range; infinite where the sizes differ."""
    import numpy as np

    worst = 0.0
    for want, have in zip(expected, got):
        want, have = np.asarray(want, np.float64), np.asarray(have, np.float64)
        if want.size != have.size:
            return float('inf')
        if want.size == 0:
            continue
        have = have.reshape(want.shape)
        span = want.max() - want.min() or abs(want).max() or 1.0
        error = np.abs(have - want).max() / span
        worst = max(worst, float(error) if np.isfinite(error) else float('inf'))
    return worst if len(expected) == len(got) else float('inf')


def ort_profile(model, threads, runs):
    """[{type, name, ms}] of ONNX Runtime's own profiler, the best of the runs."""
    import numpy as np

    with tempfile.TemporaryDirectory() as folder:
        run = session(model.path, 'ORT_ENABLE_ALL', threads, enable_profiling=True, profile_file_prefix=f'{folder}/ort')
        feed = {name: np.load(file) for name, file in model.inputs.items()}
        for _ in range(runs):
            run.run(None, feed)
        events = json.loads(pathlib.Path(run.end_profiling()).read_text())
    best = {}
    for event in events:
        if event.get('cat') == 'Node' and event['name'].endswith('_kernel_time'):
            key = event['args'].get('op_name', '?'), event['name'][:-len('_kernel_time')]
            best[key] = min(best.get(key, 1e9), event['dur'] / 1e3)
    return [dict(type=kind, name=name, ms=ms) for (kind, name), ms in best.items()]


def openvino_profile(model, threads, runs):
    import numpy as np
    import openvino

    config = {'PERFORMANCE_HINT': 'LATENCY', 'NUM_STREAMS': '1', 'INFERENCE_NUM_THREADS': str(threads), 'PERF_COUNT': 'YES',
              'INFERENCE_PRECISION_HINT': 'f32'}
    compiled = openvino.Core().compile_model(str(model.path), 'CPU', config)
    request = compiled.create_infer_request()
    for port, file in zip(compiled.inputs, model.inputs.values()):
        request.set_tensor(port, openvino.Tensor(np.load(file)))
    best = {}
    for _ in range(runs):
        request.infer()
        for row in request.get_profiling_info():
            ms = row.real_time.total_seconds() * 1e3
            if ms > 0:
                key = row.node_type, row.node_name
                best[key] = min(best.get(key, 1e9), ms)
    return [dict(type=kind, name=name, ms=ms) for (kind, name), ms in best.items()]


PROFILES = {'onnxruntime': ort_profile, 'openvino': openvino_profile}


def peer_profile(peer, model, threads):
    """That of a peer that this Python has, not only the workers' (--venv); else nothing, with a word."""
    try:
        return PROFILES[peer](model, threads, 8)
    except ImportError as error:
        print(f'{model.name}: no profile of {peer}: {error}', file=sys.stderr)
        return []


def by_type(layers):
    total = {}
    for layer in layers:
        ms, count = total.get(layer['type'], (0, 0))
        total[layer['type']] = ms + layer['ms'], count + 1
    return sorted(((kind, ms, count) for kind, (ms, count) in total.items()), key=lambda row: -row[1])


def named_alike(ours, theirs):
    """(layer of ours, peer's ms) of layers whose names agree: what each loses to the peer, most first."""
    other = {layer['name']: layer['ms'] for layer in theirs}
    pairs = [(layer, other[layer['name']]) for layer in ours if layer['name'] in other]
    return sorted(pairs, key=lambda pair: pair[1] - pair[0]['ms'])


def losses(profile, rows=6):
    """Markdown of our layers' times beside the peer's."""
    ours, peer, theirs = profile['ours'], profile['peer'], profile['theirs']

    def cells(layers):
        return ', '.join(f'{kind} x{count} {ms:.2f}' for kind, ms, count in by_type(layers)[:rows])
    lines = [f'- quoll, ms by type: {cells(ours)}', f'- {peer}: {cells(theirs)}']
    alike = [f"{layer['name']} ({layer['type']} {layer['what'].strip()}) {layer['ms']:.2f} beside {ms:.2f}"
             for layer, ms in named_alike(ours, theirs)[:rows] if layer['ms'] > ms]
    longest = [f"{layer['name']} ({layer['type']} {layer['what'].strip()}) {layer['ms']:.2f}"
               for layer in sorted(ours, key=lambda layer: -layer['ms'])[:rows]]
    lines.append('- longest: ' + '; '.join(longest))
    if alike:
        lines.append('- of the same name, slower here: ' + '; '.join(alike))
    return lines


class OnnxBench:
    """One model at one precision and number of threads."""

    def __init__(self, a, python, worker, model, precision, threads):
        self.a, self.python, self.worker, self.model, self.precision, self.threads = a, python, worker, model, precision, threads

    def command(self, engine):
        here = pathlib.Path(__file__).resolve().parent
        if engine == OURS:
            inputs = [word for name, file in self.model.inputs.items() for word in ('--input', f'{name}={file}')]
            return [self.a.worker, self.model.path, *inputs, '--threads', self.threads, '--precision', self.precision]
        if engine == 'before':
            return [self.a.before, *self.command(OURS)[1:]]
        call = {'model': str(self.model.path.with_suffix('')), 'inputs': self.model.inputs, 'threads': self.threads,
                'precision': self.precision}
        return [self.python, here / 'peer_worker.py', engine, json.dumps(call)]

    def answer(self, worker):
        import numpy as np

        with tempfile.TemporaryDirectory() as folder:
            count = worker.ask(f'outputs {folder}')['count']
            return error_of(self.model.expected, [np.load(f'{folder}/{i}.npy') for i in range(count)])

    def rounds(self, workers):
        times, field = {engine: [] for engine in workers}, 'cpu_ms' if self.a.cpu_time else 'times_ms'
        for i in range(self.a.rounds):
            lanes = list(workers)
            for engine in lanes[i % len(lanes):] + lanes[:i % len(lanes)]:
                first = workers[engine].ask('run 1')[field][0]
                count = max(2, min(self.a.loops * 4, int(self.a.round_ms / max(first, 1e-3))))
                times[engine].append(min(workers[engine].ask(f'run {count}')[field]))
        return times

    def run(self):
        result = {'network': self.model.name, 'half': half_of(self.model.name), 'precision': self.precision,
                  'threads': self.threads, 'constant': self.model.constant, 'times_ms': {}, 'start_ms': {}, 'errors': {}, 'absent': {}}
        workers = {}
        try:
            for engine in (OURS, *(['before'] if self.a.before else []), *self.a.peers):
                worker = self.worker(self.command(engine))
                if 'error' in worker.facts:
                    result['absent'][engine] = worker.facts['error']
                    worker.close()
                    continue
                workers[engine] = worker
                result['start_ms'][engine] = worker.facts['load_ms'] + worker.facts['first_ms']
                result['errors'][engine] = self.answer(worker)
                if not result['errors'][engine] <= WRONG[self.precision]:
                    result['absent'][engine] = f"wrong answer: error {result['errors'][engine]:.1e} of the range"
                    workers.pop(engine).close()
            if OURS in workers:
                result['times_ms'] = self.rounds(workers)
                best = best_peer(result)
                if best and best[1] < self.a.profile_below:
                    result['profile'] = {'ours': workers[OURS].ask('profile 8')['layers'], 'peer': best[0],
                                         'theirs': peer_profile(best[0], self.model, self.threads)}
        finally:
            for worker in workers.values():
                worker.close()
        return result


def ratio(result, engine):
    ours = result['times_ms'][OURS]
    return statistics.median(other / mine for other, mine in zip(result['times_ms'][engine], ours))


def best_peer(result):
    """(engine, its time over ours) of the fastest peer, or None."""
    peers = [engine for engine in result['times_ms'] if engine in PEERS]
    return min(((engine, ratio(result, engine)) for engine in peers), key=lambda pair: pair[1], default=None)


def start_ratio(result):
    """The least time of a peer whose answer counts until its first answer, loading included, over ours; None without peers."""
    peers = [ms for engine, ms in result['start_ms'].items() if engine in PEERS and engine in result['times_ms']]
    return min(peers) / result['start_ms'][OURS] if peers else None


def geometric(values):
    return f'{statistics.geometric_mean(values):.2f}' if values else 'none'


def summary(results):
    lines = []
    for precision, threads in dict.fromkeys((r['precision'], r['threads']) for r in results):
        for half in ('tuning', 'report', None):
            chosen = [r for r in results if r['precision'] == precision and r['threads'] == threads and half in (None, r['half'])]
            ratios = [best_peer(r)[1] for r in chosen if best_peer(r)]
            text = f"{precision}, {threads} threads, {half or 'all'}: {geometric(ratios)} over {len(ratios)} networks, "
            text += f'{sum(value < 0.95 for value in ratios)} below 0.95'
            text += f', start {geometric([start_ratio(r) for r in chosen if best_peer(r)])}'
            gains = [ratio(r, 'before') for r in chosen if 'before' in r['times_ms']]
            lines.append(text + (f', {geometric(gains)} times as fast as before' if gains else ''))
    return lines


def markdown(report):
    results = report['results']
    lines = ['# ONNX models beside other engines', '', f"{report['cpu']}, cores {report['cores']}, {report['date']}, load "
             f"{report['load']:.1f}; {report['rounds']} rounds"
             + ('; processor time.' if report.get('cpu_time') else '.'), '', *[f'- {line}' for line in summary(results)], '']
    for precision, threads in dict.fromkeys((r['precision'], r['threads']) for r in results):
        chosen = [r for r in results if r['precision'] == precision and r['threads'] == threads]
        ranked = sorted((r for r in chosen if best_peer(r)), key=lambda r: best_peer(r)[1])
        before = any('before' in r['times_ms'] for r in ranked)
        lines += [f'## {precision}, {threads} threads, slowest first', '',
                  '| network | half | quoll ms | ' + ('before | ' if before else '') + ' | '.join(f'{p} ms (ratio)' for p in PEERS)
                  + ' | best | start ms (ratio) | error |', '|---|---|---|' + ('---|' if before else '') + '---|---|---|---|---|']
        for r in ranked:
            cells = [f"{min(r['times_ms'][p]):.2f} ({ratio(r, p):.2f})" if p in r['times_ms'] else '' for p in PEERS]
            old = [f"{ratio(r, 'before'):.2f}" if 'before' in r['times_ms'] else ''] if before else []
            error = 'constant' if r.get('constant') else f"{r['errors'][OURS]:.0e}"
            lines.append('| ' + ' | '.join([r['network'], r['half'], f"{min(r['times_ms'][OURS]):.2f}", *old, *cells,
                                            f'**{best_peer(r)[1]:.2f}**', f'{r["start_ms"][OURS]:.1f} ({start_ratio(r):.2f})', error]) + ' |')
        lines.append('')
        for r in ranked:
            if 'profile' in r:
                lines += [f"**{r['network']}** {best_peer(r)[1]:.2f}", '', *losses(r['profile']), '']
    absent = [f"- {r['network']}, {r['precision']}, {engine}: {why}" for r in results for engine, why in r['absent'].items()]
    return '\n'.join(lines + (['Did not run, or do not count:', '', *absent] if absent else [])) + '\n'


def one_line(result):
    best = best_peer(result)
    cells = ', '.join(f'{engine} {min(times):.2f}' for engine, times in result['times_ms'].items())
    absent = '; '.join(f'{engine}: {why}' for engine, why in result['absent'].items())
    return f"{result['network']:36} {result['half']:7} {best[1] if best else float('nan'):5.2f}  {cells} {absent}"


def parse_shapes(texts):
    """{name: axes} of NAME=1,3,224,224."""
    shapes = {}
    for text in texts:
        name, _, axes = text.rpartition('=')
        try:
            shapes[name] = [int(axis) for axis in axes.split(',')]
        except ValueError:
            shapes[name] = []
        if not name or not shapes[name] or min(shapes[name]) < 1:
            raise ValueError(f'--shape {text}: expected NAME=SIZES, as data=1,3,224,224')
    return shapes


def main(a, python, worker, report, cores):
    """Times the models of a.onnx; `worker` starts a process, `report` describes the machine. Exit code."""
    results, shapes = report['results'], parse_shapes(a.shape)
    report['cpu_time'] = a.cpu_time
    files = [file for file in find(a.onnx) if a.keep(file.stem) and a.half in (None, half_of(file.stem))]
    if not files:
        print('compare.py: no ONNX model matches')
        return 2
    a.out.mkdir(parents=True, exist_ok=True)
    for file in files:
        with tempfile.TemporaryDirectory() as folder:
            os.sched_setaffinity(0, cores)
            try:
                model = OnnxModel(file, pathlib.Path(folder), shapes)
            except Exception as error:  # whatever ONNX Runtime throws
                print(f'{file.stem} is left out: {str(error).strip().splitlines()[0]}', flush=True)
                continue
            for threads in a.threads:
                os.sched_setaffinity(0, cores[:threads])
                for precision in a.precision:
                    results.append(OnnxBench(a, python, worker, model, precision, threads).run())
                    print(one_line(results[-1]), flush=True)
        (a.out / 'onnx.json').write_text(json.dumps(report, indent=1))
        (a.out / 'onnx.md').write_text(markdown(report))
    print('\n'.join(summary(results)) + f'\n{a.out}/onnx.md, .json')
    return 0
