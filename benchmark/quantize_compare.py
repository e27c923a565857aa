"""Accuracy of int8 models: enginequantize's methods against ONNX Runtime's static quantisation and NNCF, on the same model, data and budget.

    benchmark/quantize_compare.py [--bin build/bin] [--data FOLDER] [--trained FOLDER] [--samples 64] [--json FILE]

Models: the bundled digits classifier on its held-out images, half of them to calibrate with; with --data (or QUOLL_DATA) a folder that
has models/slim-320, models/fastestdet and images, the face detector and FastestDet on crops of the photos: crops of the left two thirds
of each to calibrate with, of the right third to judge with; with --image-model any other ONNX net of one RGB image, on such crops; with --trained
the classifiers that quantize_train.py made. Each engine is judged by its own float answers on samples that it never saw:
SQNR of each output in dB (higher is better), share of the same largest values, and with labels the classes that are right. Needs
onnxruntime, onnx, numpy and Pillow; NNCF (nncf) takes part where it is installed.
"""
import argparse
import json
import os
import pathlib
import subprocess
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[1]
OURS = ['best', 'best:--rounding:reconstruct', *(f'{m}:--kind:int8' for m in ('best', 'mse', 'eq', 'kl', 'aciq', 'percentile', 'minmax'))]
THEIRS = ['MinMax', 'Entropy', 'Percentile']


def crops(photos, count, w, h, mean, norm, rng, left, right):
    """[count][3][h][w] RGB, parts of various sizes of the photos between these parts of their width."""
    from PIL import Image
    images = [Image.open(path).convert('RGB') for path in photos]
    images = [i.crop((int(left * i.width), 0, int(right * i.width), i.height)) for i in images]
    out = []
    for i in range(count):
        image = images[i % len(images)]
        part = rng.uniform(0.3, 1)
        cw, ch = int(image.width * part), int(image.height * part)
        x, y = int(rng.integers(0, image.width - cw + 1)), int(rng.integers(0, image.height - ch + 1))
        pixels = np.asarray(image.crop((x, y, x + cw, y + ch)).resize((w, h)), np.float32)
        out.append(((pixels - mean) * norm).transpose(2, 0, 1))
    return np.stack(out).astype(np.float32)


def trained_cases(folder, count, judged):
    arrays = np.load(folder / 'fashion.npz')
    for path in sorted(folder.glob('*.onnx')):
        yield path.stem, path, arrays['calibration'][:count], arrays['test'][:judged], arrays['labels'][:judged]


def image_model(word):
    """FILE=W,H,MEAN,NORM as a row of cases()."""
    file, numbers = word.rsplit('=', 1)
    w, h, mean, norm = numbers.split(',')
    return pathlib.Path(file).stem, pathlib.Path(file).resolve(), int(w), int(h), float(mean), float(norm)


def cases(data, count, more):
    """Name, ONNX file, calibration and test arrays, labels of the latter or None. more: of image_model."""
    rng = np.random.default_rng(7)
    held = np.load(ROOT / 'models/digits/heldout.npz')
    images = (held['images'].astype(np.float32) / 255)[:, None]
    yield 'digits', ROOT / 'models/digits/digits.onnx', images[:180][:count], images[180:], held['labels'][180:]
    if data is None:
        return
    photos = sorted((data / 'images').glob('*.jpg'))
    for name, file, w, h, mean, norm in (
            ('slim-320', 'slim-320/version-slim-320_without_postprocessing.onnx', 320, 240, 127, 1 / 128),
            ('fastestdet', 'fastestdet/FastestDet.onnx', 352, 352, 0, 1 / 255), *more):
        yield (name, data / 'models' / file, crops(photos, count, w, h, mean, norm, rng, 0, 2 / 3),
               crops(photos, 24, w, h, mean, norm, rng, 2 / 3, 1), None)


def all_cases(args):
    yield from cases(args.data, args.samples, args.image_model)
    if args.trained:
        yield from trained_cases(args.trained, args.samples, args.judged)


def agreement(exact, rounded):
    """SQNR in dB over all samples, and the share of places with the same largest value along the last axis."""
    noise = sum(((a.astype(np.float64) - b) ** 2).sum() for a, b in zip(exact, rounded))
    signal = sum((a.astype(np.float64) ** 2).sum() for a in exact)
    same = np.mean([(a.argmax(-1) == b.argmax(-1)).mean() for a, b in zip(exact, rounded)])
    return {'sqnr_db': float(10 * np.log10(signal / max(noise, 1e-30))), 'argmax': float(same)}


def judge(exact, rounded, labels):
    """exact, rounded: lists by sample of lists by output."""
    result = {'outputs': [agreement([s[o] for s in exact], [s[o] for s in rounded]) for o in range(len(exact[0]))]}
    result['sqnr_db'] = float(np.mean([o['sqnr_db'] for o in result['outputs']]))
    if labels is not None:
        result['right'] = int(sum(s[0].argmax() == label for s, label in zip(rounded, labels)))
        result['right_float'] = int(sum(s[0].argmax() == label for s, label in zip(exact, labels)))
    return result


def run_theirs(path, samples):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=['CPUExecutionProvider'])
    name = session.get_inputs()[0].name
    return [session.run(None, {name: x[None]}) for x in samples]


def theirs(model, calibration, test, labels, folder, method):
    import logging

    from onnxruntime import quantization
    from onnxruntime.quantization.shape_inference import quant_pre_process
    logging.getLogger().setLevel(logging.ERROR)

    class Reader(quantization.CalibrationDataReader):
        def __init__(self, name):
            self.feeds = iter([{name: x[None]} for x in calibration])

        def get_next(self):
            return next(self.feeds, None)

    import onnx
    import onnx.version_converter
    name = onnx.load(str(model)).graph.input[0].name
    prepared = folder / 'prepared.onnx'
    if not prepared.exists():
        upgraded = onnx.load(str(model))
        if upgraded.opset_import[0].version < 13:  # scales of channels came with opset 13
            upgraded = onnx.version_converter.convert_version(upgraded, 13)
        onnx.save(upgraded, str(folder / 'upgraded.onnx'))
        quant_pre_process(str(folder / 'upgraded.onnx'), str(prepared), skip_symbolic_shape=True)
    out = folder / f'{method}.onnx'
    quantization.quantize_static(str(prepared), str(out), Reader(name), quant_format=quantization.QuantFormat.QDQ, per_channel=True,
                                 activation_type=quantization.QuantType.QUInt8, weight_type=quantization.QuantType.QInt8,
                                 calibrate_method=getattr(quantization.CalibrationMethod, method))
    return judge(run_theirs(model, test), run_theirs(out, test), labels)


def nncf_int8(model, calibration, test, labels, folder):
    """nncf.quantize as its documents begin: default preset and settings."""
    import logging

    import nncf
    import onnx
    nncf.set_log_level(logging.ERROR)
    loaded = onnx.load(str(folder / 'prepared.onnx'))  # opset 13, as for ONNX Runtime
    name = loaded.graph.input[0].name
    data = nncf.Dataset(list(calibration), lambda x: {name: x[None]})
    quantized = nncf.quantize(loaded, data, subset_size=len(calibration))
    onnx.save(quantized, str(folder / 'nncf.onnx'))
    return judge(run_theirs(model, test), run_theirs(folder / 'nncf.onnx', test), labels)


def run_ours(bin_folder, model, samples, folder):
    """By the names of the outputs, as enginerun lists them."""
    listed = subprocess.run([bin_folder / 'enginerun', *model, '--show-io'], capture_output=True, text=True, check=True).stdout
    name = [line.split()[1] for line in listed.splitlines() if line.startswith('input')][0]
    outputs = [line.split()[1] for line in listed.splitlines() if line.startswith('output')]
    answers = []
    if len(samples) > 500:  # nets of an open batch: all at once
        np.save(folder / 'x.npy', samples)
        words = [w for i, o in enumerate(outputs) for w in ('--output', f'{o}={folder}/{i}.npy')]
        subprocess.run([bin_folder / 'enginerun', *model, '--input', f'{name}={folder}/x.npy', *words], capture_output=True, check=True)
        return [list(one) for one in zip(*[np.load(folder / f'{i}.npy')[:, None] for i in range(len(outputs))])]
    for x in samples:
        np.save(folder / 'x.npy', x[None])
        words = [w for i, o in enumerate(outputs) for w in ('--output', f'{o}={folder}/{i}.npy')]
        subprocess.run([bin_folder / 'enginerun', *model, '--input', f'{name}={folder}/x.npy', *words], capture_output=True, check=True)
        answers.append([np.load(folder / f'{i}.npy') for i in range(len(outputs))])
    return answers


def ours(bin_folder, model, calibration, test, labels, folder, args):
    np.save(folder / 'calibration.npy', calibration)
    out = folder / 'ours.param', folder / 'ours.bin'
    done = subprocess.run([bin_folder / 'enginequantize', model, *out, '--data', folder / 'calibration.npy', '--holdout', '0', *args],
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return judge(run_ours(bin_folder, [model], test, folder), run_ours(bin_folder, out, test, folder), labels)


def compare(name, model, calibration, test, labels, bin_folder, methods):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for label, args in methods:
            rows.append({'engine': 'quoll', 'method': label, **ours(bin_folder, model, calibration, test, labels, folder, args)})
        for method in THEIRS:
            rows.append({'engine': 'ONNX Runtime', 'method': method, **theirs(model, calibration, test, labels, folder, method)})
        try:
            rows.append({'engine': 'NNCF', 'method': 'default', **nncf_int8(model, calibration, test, labels, folder)})
        except ImportError as error:
            print(f'no NNCF: {error}')
    print(f'\n{name}: {len(calibration)} samples to calibrate with, {len(test)} to judge with\n')
    print('| engine | method | SQNR of outputs, dB | same largest value | right |\n|---|---|---|---|---|')
    for row in rows:
        sqnr = ', '.join(f'{o["sqnr_db"]:.1f}' for o in row['outputs'])
        same = ', '.join(f'{o["argmax"]:.4f}' for o in row['outputs'])
        right = f'{row["right"]} (float {row["right_float"]})' if 'right' in row else ''
        print(f'| {row["engine"]} | {row["method"]} | {sqnr} | {same} | {right} |', flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', type=pathlib.Path, default=ROOT / 'build/bin')
    parser.add_argument('--data', type=pathlib.Path, default=os.environ.get('QUOLL_DATA'))
    parser.add_argument('--trained', type=pathlib.Path, help='folder of quantize_train.py')
    parser.add_argument('--image-model', type=image_model, action='append', default=[], metavar='FILE=W,H,MEAN,NORM',
                        help='a net whose input is (RGB - MEAN) * NORM; with --data, for its photos')
    parser.add_argument('--samples', type=int, default=64)
    parser.add_argument('--judged', type=int, default=2000, help='images to judge the trained classifiers with')
    parser.add_argument('--only', help='one model')
    parser.add_argument('--methods', nargs='*', default=OURS, help='of enginequantize; METHOD:OPTION:... adds options')
    parser.add_argument('--json', type=pathlib.Path)
    args = parser.parse_args()
    methods = [(m, ['--method', *m.split(':')]) for m in args.methods]
    results = {name: compare(name, model, calibration, test, labels, args.bin.resolve(), methods)
               for name, model, calibration, test, labels in all_cases(args) if args.only in (None, name)}
    if args.json:
        args.json.write_text(json.dumps(results, indent=1))


if __name__ == '__main__':
    main()
