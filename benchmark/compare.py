#!/usr/bin/env python3
"""quoll beside other engines: the same networks, weights, inputs and cores, in turn, in one run.

    compare.py                                      all graphs, all engines, fp32, 1 thread
    compare.py --filter 'resnet|mobile' --threads 1,2 --precision fp32,fast,bf16,int8 --out build/compare
    compare.py --fetch DIR --peers ncnn,openvino    downloads wheels for a machine that cannot reach PyPI
    compare.py --wheels DIR --peers ncnn,openvino   installs from there
    compare.py --onnx build/suite model.onnx --shape ids=1,128      any ONNX models, with onnxruntime and openvino (compare_onnx.py);
                                                    export_suite.py writes a folder of them

Engines are installed into a virtual environment (build/peers); what cannot be had is said, and the run goes on without it.
Each engine and precision is a process of its own that keeps its network loaded. In each round the speed of the multipliers is
measured (bench_peak), then every process in turn warms up and runs; who begins changes from round to round, and those not in turn
are stopped. All are bound to the same cores, one thread a core. A figure is the median of a round's runs; ratios are taken round by
round; the median of those counts. Rounds in which the tile units were throttled (--tile-limit) are left out where others are there.

Precisions: fp32; fast (quoll's three bf16 products for one of fp32, beside the others' fp32); bf16; int8. Answers are compared
with a reference in double arithmetic. Load times and memory are of fresh processes, in turn; memory is the peak minus what the
process had before it loaded the network.

Writes compare.json, compare.md and, where matplotlib is there, compare.png into --out.
"""
import argparse
import json
import os
import pathlib
import platform
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
HERE = ROOT / 'benchmark'
sys.path.insert(0, str(HERE))

import compare_onnx  # noqa: E402
import compare_report  # noqa: E402
import peer_install  # noqa: E402

OURS = 'quoll'
PRECISIONS = {'fp32': ['--precision', 'fp32'], 'fast': ['--precision', 'fp32', '--fp32-split', '3'],
              'bf16': ['--precision', 'bf16'], 'int8': ['--precision', 'int8']}
ENVIRONMENT = ('QUOLL_CPU_MASK', 'ONEDNN_MAX_CPU_ISA', 'OMP_NUM_THREADS', 'KMP_BLOCKTIME')


class Worker:
    """A process of bench_worker or peer_worker.py; stopped while it is not asked."""

    def __init__(self, command):
        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.facts = self.read()
        if 'error' not in self.facts:
            self.process.send_signal(signal.SIGSTOP)

    def read(self):
        line = self.process.stdout.readline()
        return json.loads(line) if line else {'error': f'ended with code {self.process.wait()}'}

    def ask(self, text):
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.write(text + '\n')
        self.process.stdin.flush()
        reply = self.read()
        self.process.send_signal(signal.SIGSTOP)
        if 'error' in reply:
            raise RuntimeError(reply['error'])
        return reply

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Bench:
    """One graph at one number of threads: starts the workers, runs the rounds, returns a dict of what came out."""

    def __init__(self, a, python, model, threads):
        self.a, self.python, self.model, self.threads = a, python, model, threads
        self.broken = {}

    def command(self, lane):
        engine, precision = lane.split('/')
        suffix = '_int8' if precision == 'int8' else ''
        path = f'{self.model.path}{suffix}'
        if engine == OURS:
            return [self.a.worker, path + '.param', path + '.bin', self.model.input, '--threads', self.threads, *PRECISIONS[precision]]
        call = {'model': path, 'input': str(self.model.input), 'shape': self.model.shape, 'threads': self.threads,
                'precision': precision}
        return [self.python, HERE / 'peer_worker.py', engine, json.dumps(call)]

    def start(self, lane):
        """A worker, or None when it fails: the reason is then in self.broken."""
        if lane in self.broken:
            return None
        worker = Worker(self.command(lane))
        if 'error' not in worker.facts:
            return worker
        self.broken[lane] = worker.facts['error']
        worker.close()
        return None

    def loading(self, lanes):
        """{lane: {load_ms, first_ms, memory_mib}}: medians over fresh processes in turn."""
        facts = {lane: [] for lane in lanes}
        for _ in range(self.a.load_rounds):
            for lane in lanes:
                worker = self.start(lane)
                if not worker:
                    continue
                worker.ask('run 2')
                memory = worker.ask('memory')
                facts[lane].append(dict(load_ms=worker.facts['load_ms'], first_ms=worker.facts['first_ms'],
                                        memory_mib=memory['peak_mib'] - worker.facts['base_mib'],
                                        blocks=memory.get('blocks'), small=memory.get('small'), version=worker.facts['version']))
                worker.close()
        return {lane: {key: statistics.median(f[key] for f in found) if isinstance(found[0][key], float) else found[0][key]
                       for key in found[0]} for lane, found in facts.items() if found}

    def rounds(self, workers):
        """Milliseconds of each round, by lane; and the peaks measured before each round."""
        times, peaks = {lane: [] for lane in workers}, []
        lanes = list(workers)
        for i in range(self.a.rounds):
            peaks.append(measure_peak(self.a, self.threads))
            for lane in lanes[i % len(lanes):] + lanes[:i % len(lanes)]:
                workers[lane].ask(f'run {self.a.warmup}')
                times[lane].append(statistics.median(workers[lane].ask(f'run {self.a.loops}')['times_ms']))
        return times, peaks

    def answers(self, workers):
        """{lane: largest error as a share of the range of the double reference}."""
        import numpy as np

        expected, errors = self.model.expected, {}
        for lane, worker in workers.items():
            with tempfile.NamedTemporaryFile() as file:
                shape = worker.ask(f'output {file.name}')['shape']
                values = np.fromfile(file.name, np.float32)
            if list(shape) != list(expected.shape):
                raise RuntimeError(f'{lane}: expected an answer of {expected.shape}, got {shape}')
            error = np.abs(values.reshape(shape) - expected).max() / (expected.max() - expected.min())
            errors[lane] = float(error)
        return errors

    def run(self, lanes):
        loads = self.loading(lanes) if self.a.load_rounds else {}
        workers = {}
        try:
            for lane in lanes:
                worker = self.start(lane)
                if worker:
                    workers[lane] = worker
            errors = self.answers(workers)
            times, peaks = self.rounds(workers)
        finally:
            for worker in workers.values():
                worker.close()
        rows = {lane: dict(times_ms=times[lane], error=errors[lane], **loads.get(lane, {})) for lane in workers}
        return {'graph': self.model.name, 'threads': self.threads, 'macs': self.model.macs, 'lanes': rows, 'peaks': peaks,
                'absent': self.broken}


class Model:
    """The files of one graph in a folder, an input, and the answer in double arithmetic."""

    def __init__(self, name, folder, a, python):
        import numpy as np

        import double_reference
        import onnx_export

        self.name, self.path = name, folder / name
        graph = onnx_export.write_model(name, folder)
        self.shape, self.macs = graph.data.shape, graph.macs
        data = np.random.default_rng(2).standard_normal(self.shape, dtype=np.float32)
        self.input = folder / f'{name}.input'
        data.tofile(self.input)
        weights = onnx_export.read_weights(graph, folder / f'{name}.bin')
        blobs = double_reference.run_graph(graph, weights, data)
        self.expected = blobs[graph.output.name]
        if 'int8' in a.precision:
            import int8_export

            int8_export.write_model(graph, weights, blobs, self.path)
        if 'mnn' in a.peers:
            # Not MNN.tools.mnnconvert around it, which reports to its makers and installs packages for that.
            convert = 'import _tools, sys; _tools.mnnconvert(sys.argv)'
            subprocess.run([python, '-c', convert, '-f', 'ONNX', '--modelFile', f'{self.path}.onnx', '--MNNModel', f'{self.path}.mnn',
                            '--bizCode', 'quoll'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def measure_peak(a, threads):
    """{instruction: ns} of the slowest of the threads."""
    done = subprocess.run([a.peak, str(threads), 'vfmadd231ps zmm|vfmadd231ps ymm|tdpbf16ps'], capture_output=True, text=True)
    return {name.strip(): float(ns) for name, ns in re.findall(r'^(\w[\w ]*?) +([\d.]+) ns', done.stdout, re.M)}


def one_core_each():
    """Numbers of the CPUs that this process may use, the first thread of every core first."""
    allowed, first, rest = sorted(os.sched_getaffinity(0)), [], []
    seen = set()
    for cpu in allowed:
        path = pathlib.Path(f'/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list')
        core = path.read_text().strip() if path.exists() else str(cpu)
        (rest if core in seen else first).append(cpu)
        seen.add(core)
    return first + rest


def cpu_model():
    for line in pathlib.Path('/proc/cpuinfo').read_text().splitlines():
        if line.startswith('model name'):
            return line.split(':', 1)[1].strip()
    return platform.machine()


def list_of(names):
    def parse(text):
        words = [word for word in text.split(',') if word]
        unknown = [word for word in words if word not in names]
        if unknown:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: expected some of {', '.join(names)}")
        return words
    return parse


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add('--peers', type=list_of(list(peer_install.PACKAGES)), default=list(peer_install.PACKAGES), help='engines, by commas')
    add('--precision', type=list_of(list(PRECISIONS)), default=['fp32'], help='fp32,fast,bf16,int8')
    add('--threads', type=lambda text: [int(word) for word in text.split(',')], default=[1], help='numbers of threads, by commas')
    add('--filter', default='', help='regular expression on the names of graphs')
    add('--onnx', nargs='+', type=pathlib.Path, default=[], help='ONNX models, or folders of them, instead of the graphs')
    add('--shape', nargs='+', default=[], help='with --onnx: NAME=1,3,224,224, axes of inputs that the models leave open')
    add('--half', choices=('tuning', 'report'), help='with --onnx: one half of the suite')
    add('--before', type=pathlib.Path, help='with --onnx: an older bench_worker, timed in turn with the others')
    add('--round-ms', type=float, default=60, help='with --onnx: runs of a process in a round take about this long')
    add('--cpu-time', action='store_true', help='with --onnx: time of the processor instead of the clock, for one thread on a busy machine')
    add('--profile-below', type=float, default=1.0, help='with --onnx: layers beside the peer\'s for ratios below this')
    add('--rounds', type=int, default=7)
    add('--loops', type=int, default=6, help='timed runs of each process in a round')
    add('--warmup', type=int, default=2, help='runs before those')
    add('--load-rounds', type=int, default=3, help='fresh processes for load time and memory; 0: none')
    add('--tile-limit', type=float, default=8.0, help='ns of a tile multiplication above which a round is left out')
    add('--cores', type=lambda text: [int(word) for word in text.split(',')], help='CPUs to run on; default: one a core')
    add('--venv', type=pathlib.Path, default=ROOT / 'build/peers', help='virtual environment of the engines')
    add('--wheels', type=pathlib.Path, help='install from this folder instead of PyPI')
    add('--fetch', type=pathlib.Path, help='only download wheels into this folder')
    add('--python', default='3.12', help='with --fetch: version of the Python there')
    add('--worker', default=ROOT / 'build/bin/bench_worker', help='our program')
    add('--peak', default=ROOT / 'build/bin/bench_peak')
    add('--out', type=pathlib.Path, default=ROOT / 'build/compare', help='folder of the report')
    a = parser.parse_args()
    a.keep = lambda name: re.search(a.filter, name)
    if a.cpu_time and a.threads != [1]:
        parser.error('--cpu-time: expected --threads 1')
    if a.onnx:
        a.peers = [peer for peer in a.peers if peer in compare_onnx.PEERS]
    if min([a.rounds, a.loops, a.warmup, *a.threads]) < 1:
        parser.error('--rounds, --loops, --warmup and --threads: expected at least 1')
    return a


def describe(a, cores, missing):
    return {'cpu': cpu_model(), 'cores': cores, 'load': os.getloadavg()[0], 'date': time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime()),
            'environment': {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}, 'rounds': a.rounds,
            'loops': a.loops, 'warmup': a.warmup, 'tile_limit': a.tile_limit, 'precisions': a.precision, 'missing': missing,
            'results': []}


def write_report(report, a, python):
    a.out.mkdir(parents=True, exist_ok=True)
    file = a.out / 'compare.json'
    file.write_text(json.dumps(report, indent=1))
    (a.out / 'compare.md').write_text(compare_report.markdown([report]))
    plot = subprocess.run([python, HERE / 'compare_report.py', file, '--plot', a.out / 'compare.png'], capture_output=True, text=True)
    return plot.stderr.strip().splitlines()[-1:] if plot.returncode else []


def main():
    a = parse_arguments()
    if a.fetch:
        missing = peer_install.fetch(a.fetch, a.peers, a.python)
        print(''.join(f'{peer} is not to be had: {why}\n' for peer, why in missing.items()), end='')
        return bool(missing)
    import make_graphs

    names = [name for name in make_graphs.BUILDERS if a.keep(name)]
    if not names and not a.onnx:
        print(f'compare.py: no graph matches {a.filter!r}', file=sys.stderr)
        return 2
    python, missing = peer_install.install(a.venv, a.peers, a.wheels)
    for peer, why in missing.items():
        print(f'{peer} is not to be had: {why}', flush=True)
    a.peers = [peer for peer in a.peers if peer not in missing]
    cores = a.cores or one_core_each()
    report = describe(a, cores, missing)
    if a.onnx:
        return compare_onnx.main(a, python, Worker, report, cores)
    lanes = compare_report.lanes_to_run(a.precision, a.peers)
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            os.sched_setaffinity(0, cores)
            model = Model(name, pathlib.Path(folder), a, python)
            for threads in a.threads:
                os.sched_setaffinity(0, cores[:threads])
                result = Bench(a, python, model, threads).run(lanes)
                report['results'].append(result)
                print(compare_report.one_result(result, a.tile_limit), flush=True)
                why = write_report(report, a, python)
    print(compare_report.summary([report]))
    print(f'{a.out}/compare.md, .json' + (f'; no plot: {why[0]}' if why else ', .png'))
    return 0


if __name__ == '__main__':
    sys.exit(main())
