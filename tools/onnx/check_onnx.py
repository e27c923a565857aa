"""Runs a model in ONNX Runtime and its conversion in enginerun, and prints how far the outputs are apart.

Arguments: enginerun, MODEL.onnx, MODEL.param, MODEL.bin, then NAME=SIZE,... for inputs whose sizes the model leaves
open (other open sizes are 1). Exit code: 0, 1 if the outputs do not match, 3 if a package is missing.
"""
import math
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnxruntime
except ImportError as e:
    print(f'--check needs the Python packages numpy and onnxruntime: {e}', file=sys.stderr)
    sys.exit(3)

# Storage in half precision stays above it.
LEAST_COSINE = 0.999
TYPES = {'tensor(float)': np.float32, 'tensor(float16)': np.float16, 'tensor(double)': np.float64,
         'tensor(int64)': np.int64, 'tensor(int32)': np.int32, 'tensor(int16)': np.int16, 'tensor(int8)': np.int8,
         'tensor(uint8)': np.uint8, 'tensor(uint16)': np.uint16, 'tensor(bool)': np.bool_}


def make_input(value, given, rng):
    sizes = [d if isinstance(d, int) and d >= 0 else 1 for d in value.shape]
    for i, size in enumerate(given.get(value.name, [])):
        if size >= 0:
            sizes[i] = size
    dtype = np.dtype(TYPES[value.type])
    if dtype.kind == 'f':
        return rng.standard_normal(sizes).astype(dtype)
    # Indexes and masks: what all tables have.
    return rng.integers(0, 2, sizes).astype(dtype)


def report(name, have, want):
    """One line; whether they match."""
    if have.shape != want.shape or have.dtype != want.dtype:
        print(f'{name}: got {have.dtype}{list(have.shape)}, expected {want.dtype}{list(want.shape)}')
        return False
    a, b = have.astype(np.float64).ravel(), want.astype(np.float64).ravel()
    if a.size == 0:
        print(f'{name}: empty')
        return True
    error = float(np.abs(a - b).max())
    noise, signal, product = float(((a - b) ** 2).sum()), float((b * b).sum()), float((a * b).sum())
    norms = math.sqrt(float((a * a).sum()) * signal)
    cosine = product / norms if norms else float(not np.any(a) and not np.any(b))
    sqnr = math.inf if noise == 0 else 10 * math.log10(signal / noise) if signal else -math.inf
    print(f'{name}: cosine {cosine:.7f}, max error {error:.3g}, SQNR {sqnr:.1f} dB')
    return cosine >= LEAST_COSINE


def main(enginerun, model, param, weights, *shapes):
    given = {s[:s.rfind('=')]: [int(v) for v in s[s.rfind('=') + 1:].split(',')] for s in shapes}
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=['CPUExecutionProvider'])
    rng = np.random.default_rng(0)
    inputs = {v.name: make_input(v, given, rng) for v in session.get_inputs()}
    layers = [line.split() for line in open(param).read().splitlines()[2:]]
    read = {words[4] for words in layers if words[0] == 'Input'}
    made = {words[5] for words in layers if words[0] == 'Output'}
    names = [v.name for v in session.get_outputs() if v.name in made]
    if not names or not read <= inputs.keys():
        print('--check: inputs and outputs are not those of the ONNX model', file=sys.stderr)
        return 1
    want = dict(zip(names, session.run(names, inputs)))
    with tempfile.TemporaryDirectory() as folder:
        arguments = [enginerun, param, weights]
        for i, (name, array) in enumerate(inputs.items()):
            if name not in read:
                continue
            np.save(f'{folder}/in{i}.npy', array)
            arguments += ['-i', f'{name}={folder}/in{i}.npy']
        for i, name in enumerate(names):
            arguments += ['-o', f'{name}={folder}/out{i}.npy']
        done = subprocess.run(arguments, stdout=subprocess.DEVNULL)
        if done.returncode:
            print(f'{pathlib.Path(enginerun).name} ended with exit code {done.returncode}', file=sys.stderr)
            return 1
        match = [report(name, np.load(f'{folder}/out{i}.npy'), want[name]) for i, name in enumerate(names)]
    return 0 if all(match) else 1


sys.exit(main(*sys.argv[1:]))
