"""enginequantize on many models, without a flag but the data: does it run, does the result load and stay near; and with --kind int8, does the
ncnn wheel agree?

    tests/python/quantize_sweep.py [--zoo FOLDER] [--samples 2] [--only NAME] [--json FILE]

Models: the bundled graphs (random weights), with QUOLL_DATA its ncnn-bench graphs (random weights), FastestDet and slim-320 (real ones), and of
--zoo each MODEL.onnx that has a MODEL.npz with its inputs as in:NAME. Exit code 1 when one fails. Needs the ncnn wheel for its part.
"""
import argparse
import json
import pathlib
import sys
import tempfile

import numpy as np

from conftest import DATA, last_line, run_program
from engine import difference, run_engine
from graphs import BUNDLED, SHARED, Graph, random_weights

# Operators of random nets that choose boxes by scores, which are almost equal: answers jump.
DETECTION = {'DetectionOutput', 'Yolov3DetectionOutput', 'YoloDetectionOutput', 'Proposal'}


def in_ncnn(param, binary, inputs, names):
    """Answers of the ncnn wheel, or a word why there are none."""
    try:
        import ncnn
    except ImportError:
        return 'no ncnn wheel'
    net = ncnn.Net()
    # As exact as it can: what it computes in half floats differs by more than rounding to int8, and its packed grouped convolutions of
    # int8 are wrong (1.0.20261020).
    net.opt.use_packing_layout = False
    net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = False
    if net.load_param(str(param)) != 0 or net.load_model(str(binary)) != 0:
        return 'ncnn does not load it'
    ex = net.create_extractor()
    for name, array in inputs.items():
        ex.input(name, ncnn.Mat(array))
    answers = {}
    for name in names:
        code, m = ex.extract(name)
        if code != 0:
            return f'ncnn does not compute {name}'
        answers[name] = np.array(m)
    del ex  # before the net
    return answers


def sqnr(got, expected):
    noise = ((got.astype(np.float64) - expected) ** 2).sum()
    return float(10 * np.log10(max((expected.astype(np.float64) ** 2).sum(), 1e-30) / max(noise, 1e-30)))


def apart(ours, theirs):
    """difference(), or 0 for what is the same but for the last bits: an output that is 1 everywhere has no range to measure by."""
    return 0.0 if np.allclose(ours, theirs, rtol=1e-6, atol=0) else difference(ours, theirs)


def save_samples(samples, folder):
    """--data words of a list of {input: array}; a file for each, as some models do not say how many axes an input has."""
    words = []
    for k, sample in enumerate(samples):
        for i, (name, array) in enumerate(sample.items()):
            np.save(folder / f'{i}_{k}.npy', array)
            words.append(f'{name}={folder}/{i}_{k}.npy')
    return words


def quantize(files, samples, folder, *args):
    """(param, bin) and the log; raises with the program's last word."""
    out = folder / 'q.param', folder / 'q.bin'
    done = run_program('enginequantize', *files, *out, '--data', *save_samples(samples, folder), '--holdout', 0, *args, timeout=3600)
    if done.returncode != 0:
        raise RuntimeError(last_line(done.stderr))
    return out, done.stdout


def kinds_of(log):
    return {words[0]: int(words[1]) for words in (line.split() for line in log.splitlines()) if len(words) == 3 and words[2] == 'layers'}


def try_graph(param, count, folder):
    """A param file without weights: what happened, as a dictionary."""
    binary = random_weights(param, folder)
    saved = folder / f'{param.stem}.param'
    return try_model(saved if saved.exists() else param, binary, count, folder)


def try_model(param, binary, count, folder):
    graph = Graph(param)
    samples = [graph.random_inputs(seed) for seed in range(count)]
    out, log = quantize((param, binary), samples, folder)
    outputs = [name for name in graph.outputs if name]
    got = run_engine(*out, samples[0], outputs, '--precision', 'int8')
    row = {'layers': kinds_of(log)}
    if DETECTION & set(graph.types):
        row['boxes'] = {name: list(a.shape) for name, a in got.items()}
        return row
    exact = run_engine(param, binary, samples[0], outputs)
    row['sqnr_db'] = min(sqnr(got[name], exact[name]) for name in outputs)
    out, log = quantize((param, binary), samples, folder, '--kind', 'int8')
    got = run_engine(*out, samples[0], outputs, '--precision', 'int8')
    theirs = in_ncnn(*out, samples[0], outputs)
    row['int8_layers'], row['int8_db'] = kinds_of(log), min(sqnr(got[name], exact[name]) for name in outputs)
    row['error'] = max(difference(got[n], exact[n]) for n in outputs)
    row['ncnn'] = theirs if isinstance(theirs, str) else max(apart(got[n], theirs[n].reshape(got[n].shape)) for n in outputs)
    return row


def try_onnx(path, count, folder):
    arrays = np.load(path.with_suffix('.npz'))
    inputs = {key[3:]: arrays[key] for key in arrays.files if key.startswith('in:')}
    rng = np.random.default_rng(1)
    # Numbers of words stay; other values come in other orders.
    samples = [inputs] + [{n: a if a.dtype.kind != 'f' else rng.permutation(a.ravel()).reshape(a.shape) for n, a in inputs.items()}
                          for _ in range(count - 1)]
    samples = [{n: a.astype(np.int32) if a.dtype == np.int64 else a for n, a in s.items()} for s in samples]
    out, log = quantize((path,), samples, folder)
    listed = run_program('enginerun', *out, '--show-io').stdout
    outputs = [line.split()[1] for line in listed.splitlines() if line.startswith('output')]
    exact, got = run_engine(path, "", samples[0], outputs), run_engine(*out, samples[0], outputs)
    return {'layers': kinds_of(log), 'sqnr_db': min(sqnr(got[name], exact[name]) for name in outputs)}


def models(zoo):
    """Name and a function of the number of samples and a folder."""
    for param in BUNDLED + SHARED:
        yield f'{param.parent.name}/{param.stem}', lambda n, folder, p=param: try_graph(p, n, folder)
    if DATA:
        for name, stem in ('fastestdet', 'FastestDet'), ('slim-320', 'slim_320'):
            base = DATA / 'models' / name / stem
            yield f'{name}/{stem}.ncnn', lambda n, folder, b=base: try_model(b.with_suffix('.param'), b.with_suffix('.bin'), n, folder)
    for path in sorted(zoo.glob('*.onnx')) if zoo else []:
        yield f'zoo/{path.stem}', lambda n, folder, p=path: try_onnx(p, n, folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--zoo', type=pathlib.Path)
    parser.add_argument('--samples', type=int, default=2)
    parser.add_argument('--only')
    parser.add_argument('--json', type=pathlib.Path)
    args = parser.parse_args()
    rows, failed = {}, 0
    for name, run in models(args.zoo):
        if args.only and args.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                rows[name] = run(args.samples, pathlib.Path(folder))
            except Exception as error:  # the others go on
                rows[name] = {'failed': f'{type(error).__name__}: {error}'}
        ncnn = rows[name].get('ncnn', 0)
        # Single values that ncnn rounds the other way make as much noise as rounding itself in nets that hardly bear it.
        far = isinstance(ncnn, float) and ncnn > max(0.05, rows[name]['error'])
        bad = 'failed' in rows[name] or far or ncnn == 'ncnn does not load it'
        failed += bad
        print('FAIL' if bad else 'ok  ', name, rows[name], flush=True)
    print(f'{len(rows) - failed} passed, {failed} failed')
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1))
    sys.exit(failed > 0)


if __name__ == '__main__':
    main()
