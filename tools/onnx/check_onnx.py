"""Runs a model in ONNX Runtime and its conversion in enginerun, and prints how far the outputs are apart.

Arguments: enginerun, MODEL.onnx, MODEL.param, MODEL.bin, then NAME=SIZE,... for inputs whose sizes the model leaves
open, and constant:NAME=FILE.npy or constant:NAME=NUMBER,... for those that became constants. Sizes that are open still are
the first of several that ONNX Runtime takes. Exit code: 0, 1 if the outputs do not match, 3 if a package is missing.
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


# Open sizes: of the first axis and of others. A size that has a name is the same wherever the name is.
GUESSES = [(1, 1), (1, 16), (1, 32), (1, 64), (1, 128), (1, 224), (1, 512), (2, 2), (1, 3), (3, 3), (16, 16)]


def sizes_of(value, given, guess):
    said = given.get(value.name, [])
    sizes = []
    for i, d in enumerate(value.shape):
        known = said[i] if i < len(said) and said[i] >= 0 else d
        # Images have three channels.
        image = i == 1 and len(value.shape) == 4 and guess[1] > 4
        sizes.append(known if isinstance(known, int) and known >= 0 else guess[0] if i == 0 else 3 if image else guess[1])
    return sizes


def make_input(value, given, constants, guess, rng):
    dtype = np.dtype(TYPES[value.type])
    sizes = sizes_of(value, given, guess)
    text = constants.get(value.name)
    if text is not None and text.endswith('.npy'):
        return np.load(text).astype(dtype)
    if text is not None:
        numbers = np.array([float(v) for v in text.split(',')])
        return np.resize(numbers, sizes if numbers.size == 1 or len(sizes) > 1 else numbers.size).astype(dtype)
    if dtype.kind == 'f':
        return rng.standard_normal(sizes).astype(dtype)
    # Indexes and masks: what all tables have.
    return rng.integers(0, 2, sizes).astype(dtype)


def run_model(session, names, given, constants):
    """Inputs that ONNX Runtime takes, and its answers."""
    wanted = session.get_inputs()
    is_open = any(not isinstance(d, int) for v in wanted for d in v.shape)
    for guess in GUESSES if is_open else GUESSES[:1]:
        rng = np.random.default_rng(0)
        inputs = {v.name: make_input(v, given, constants, guess, rng) for v in wanted}
        try:
            return inputs, dict(zip(names, session.run(names, inputs)))
        except Exception as e:  # onnxruntime's classes share no other base
            reason = (str(e).splitlines() or [type(e).__name__])[0]
    print(f'--check: ONNX Runtime takes none of the sizes that were tried; give --shape: {reason}', file=sys.stderr)
    return None


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


def main(enginerun, model, param, weights, *words):
    constants = dict(w[len('constant:'):].rsplit('=', 1) for w in words if w.startswith('constant:'))
    shapes = [w for w in words if not w.startswith('constant:')]
    given = {s[:s.rfind('=')]: [int(v) for v in s[s.rfind('=') + 1:].split(',')] for s in shapes}
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=['CPUExecutionProvider'])
    layers = [line.split() for line in open(param).read().splitlines()[2:]]
    read = {words[4] for words in layers if words[0] == 'Input'}
    blobs = [(words[4:4 + int(words[2])], words[4 + int(words[2]):][:int(words[3])]) for words in layers]
    said = {words[5] for words in layers if words[0] == 'Output'}  # none with --ncnn
    made = said or {name for _, outputs in blobs for name in outputs} - {name for inputs, _ in blobs for name in inputs}
    names = [v.name for v in session.get_outputs() if v.name in made]
    if not names or not read <= {v.name for v in session.get_inputs()}:
        print('--check: inputs and outputs are not those of the ONNX model', file=sys.stderr)
        return 1
    run = run_model(session, names, given, constants)
    if run is None:
        return 1
    inputs, want = run
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
        have = [np.load(f'{folder}/out{i}.npy') for i in range(len(names))]
        if not said:  # such a blob does not know the array's axis of 1 for the batch
            have = [a.reshape(want[name].shape) if a.size == want[name].size else a for a, name in zip(have, names)]
        match = [report(name, a, want[name]) for a, name in zip(have, names)]
    return 0 if all(match) else 1


sys.exit(main(*sys.argv[1:]))
