"""Accuracy of int8 models: enginequantize against ONNX Runtime's static quantisation and NNCF, on the same model, data and budget.

    benchmark/quantize_compare.py [--bin build/bin] [--trained FOLDER] [--ocr FOLDER] [--vad MODEL FOLDER] [--sentences MODEL TOKENIZER]
                                  [--data FOLDER] [--image-model ...] [--samples 64] [--json FILE]

Models (quantize_cases.py): the bundled digits classifier and digit detector, always; the classifiers that quantize_train.py made; PP-OCR's nets
(PyPI's rapidocr-onnxruntime) on drawn text; silero-vad on Debian's sounds; MiniLM, a text encoder; with --data (or QUOLL_DATA) a folder that
has models/slim-320, models/fastestdet and images, the face detector and FastestDet on crops of the photos, and any other ONNX net
of one RGB image. Each engine is judged by its own float answers on samples that it never saw: SQNR of each output in dB (higher is
better), share of the same largest values, and with labels the classes that are right. Needs onnxruntime, onnx, numpy and Pillow;
NNCF (nncf) takes part where it is installed, MiniLM needs tokenizers.
"""
import argparse
import json
import logging
import os
import pathlib
import subprocess
import tempfile

import numpy as np
import quantize_cases

OURS = ['best', 'best:--rounding:reconstruct', 'best:--kind:int8']
THEIRS = ['MinMax', 'Entropy', 'Percentile']


def image_model(word):
    """FILE=W,H,MEAN,NORM."""
    file, numbers = word.rsplit('=', 1)
    w, h, mean, norm = numbers.split(',')
    return pathlib.Path(file).resolve(), int(w), int(h), float(mean), float(norm)


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


def run_theirs(path, samples, outputs=None):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=['CPUExecutionProvider'])
    return [session.run(outputs, feed) for feed in samples]


def prepare(model, out):
    """What ONNX Runtime's and NNCF's documents want: a new opset, then shapes inferred and nodes joined."""
    import onnx
    import onnx.version_converter
    from onnxruntime.quantization.shape_inference import quant_pre_process
    upgraded = onnx.load(str(model))
    if upgraded.opset_import[0].version < 13:  # scales of channels came with opset 13
        upgraded = onnx.version_converter.convert_version(upgraded, 13)
    saved = out.with_name('upgraded.onnx')
    onnx.save(upgraded, str(saved))
    quant_pre_process(str(saved), str(out), skip_symbolic_shape=True)


def onnx_runtime_int8(prepared, calibration, out, method):
    """Zero points for activations, scales of weights by channel: what its documents advise for x86."""
    from onnxruntime import quantization

    class Reader(quantization.CalibrationDataReader):
        def __init__(self):
            self.feeds = iter(calibration)

        def get_next(self):
            return next(self.feeds, None)

    quantization.quantize_static(str(prepared), str(out), Reader(), quant_format=quantization.QuantFormat.QDQ, per_channel=True,
                                 activation_type=quantization.QuantType.QUInt8, weight_type=quantization.QuantType.QInt8,
                                 calibrate_method=getattr(quantization.CalibrationMethod, method))


def nncf_int8(prepared, calibration, out, **options):
    """nncf.quantize as its documents begin."""
    import nncf
    import onnx
    data = nncf.Dataset(list(calibration), lambda feed: feed)
    onnx.save(nncf.quantize(onnx.load(str(prepared)), data, subset_size=len(calibration), **options), str(out))


def peers(case):
    """Engine, method and a function that makes out of the prepared model."""
    for method in THEIRS:
        yield 'ONNX Runtime', method, lambda prepared, out, m=method: onnx_runtime_int8(prepared, case.calibration, out, m)
    try:
        import nncf
    except ImportError as error:
        return print(f'no NNCF: {error}')
    nncf.set_log_level(logging.ERROR)
    yield 'NNCF', 'default', lambda prepared, out: nncf_int8(prepared, case.calibration, out)
    kind = nncf.ModelType.TRANSFORMER if case.transformer else None
    yield ('NNCF', 'transformer' if kind else 'mixed preset',
           lambda prepared, out: nncf_int8(prepared, case.calibration, out, model_type=kind, preset=nncf.QuantizationPreset.MIXED))


def save_samples(samples, folder, stem):
    """NAME=FILE words of each sample."""
    rows = []
    for i, feed in enumerate(samples):
        words = []
        for k, (name, array) in enumerate(feed.items()):
            path = folder / f'{stem}{i}_{k}.npy'
            np.save(path, array)
            words.append(f'{name}={path}')
        rows.append(words)
    return rows


def run_ours(bin_folder, model, samples, outputs, folder):
    """Answers by sample; nets of an open batch, of which there are many samples, run all at once."""
    many = len(samples) > 500
    if many:
        samples = [{name: np.concatenate([feed[name] for feed in samples]) for name in samples[0]}]
    answers = []
    for words in save_samples(samples, folder, 'x'):
        inputs = [w for word in words for w in ('--input', word)]
        saved = [w for i, o in enumerate(outputs) for w in ('--output', f'{o}={folder}/{i}.npy')]
        subprocess.run([bin_folder / 'enginerun', *model, *inputs, *saved], capture_output=True, check=True)
        answers.append([np.load(folder / f'{i}.npy') for i in range(len(outputs))])
    return [list(one) for one in zip(*[a[:, None] for a in answers[0]])] if many else answers


def ours(bin_folder, case, outputs, folder, args):
    out = folder / 'ours.param', folder / 'ours.bin'
    data = [word for words in save_samples(case.calibration, folder, 'c') for word in words]
    done = subprocess.run([bin_folder / 'enginequantize', case.model, *out, '--data', *data, '--holdout', '0', *args], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return run_ours(bin_folder, out, case.test, outputs, folder)


def same_sizes(exact, rounded):
    return [[b.reshape(a.shape) for a, b in zip(*pair)] for pair in zip(exact, rounded)]


def compare(case, bin_folder, methods):
    import onnx
    rows = []

    def add(engine, method, exact, make):
        try:
            row = judge(exact, same_sizes(exact, make()), case.labels)
        except Exception as error:  # the others go on
            row = {'failed': f'{type(error).__name__}: {error}'.splitlines()[0][:200]}
        rows.append({'engine': engine, 'method': method, **row})

    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        outputs = [o.name for o in onnx.load(str(case.model)).graph.output]
        exact = run_ours(bin_folder, [case.model], case.test, outputs, folder)
        for label, args in methods:
            add('quoll', label, exact, lambda: ours(bin_folder, case, outputs, folder, args))
        prepared = folder / 'prepared.onnx'
        prepare(case.model, prepared)
        exact = run_theirs(case.model, case.test, outputs)
        for engine, method, make in peers(case):
            out = folder / 'theirs.onnx'
            add(engine, method, exact, lambda: (make(prepared, out), run_theirs(out, case.test, outputs))[1])
    print(f'\n{case.name}: {len(case.calibration)} samples to calibrate with, {len(case.test)} to judge with\n')
    print('| engine | method | SQNR of outputs, dB | same largest value | right |\n|---|---|---|---|---|')
    for row in rows:
        if 'failed' in row:
            print(f'| {row["engine"]} | {row["method"]} | {row["failed"]} | | |', flush=True)
            continue
        sqnr = ', '.join(f'{o["sqnr_db"]:.1f}' for o in row['outputs'])
        same = ', '.join(f'{o["argmax"]:.4f}' for o in row['outputs'])
        right = f'{row["right"]} (float {row["right_float"]})' if 'right' in row else ''
        print(f'| {row["engine"]} | {row["method"]} | {sqnr} | {same} | {right} |', flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--bin', type=pathlib.Path, default=quantize_cases.ROOT / 'build/bin')
    parser.add_argument('--data', type=pathlib.Path, default=os.environ.get('QUOLL_DATA') or None)
    parser.add_argument('--trained', type=pathlib.Path, help='folder of quantize_train.py')
    parser.add_argument('--ocr', type=pathlib.Path, help="folder of PP-OCR's nets")
    parser.add_argument('--vad', type=pathlib.Path, nargs=2, metavar=('MODEL', 'FOLDER'), help='silero_vad_openvino_16k.onnx, and .wav files of 48 kHz')
    parser.add_argument('--sentences', type=pathlib.Path, nargs=2, metavar=('MODEL', 'TOKENIZER'),
                        help='ONNX of MiniLM, inputs ids and mask [1, 64], and its tokenizer.json')
    parser.add_argument('--texts', type=pathlib.Path, default=pathlib.Path('/usr/share/common-licenses'), help='folder of English texts')
    parser.add_argument('--image-model', type=image_model, action='append', default=[], metavar='FILE=W,H,MEAN,NORM',
                        help='a net whose input is (RGB - MEAN) * NORM; with --data, for its photos')
    parser.add_argument('--samples', type=int, default=64)
    parser.add_argument('--trained-samples', type=int, default=256, help='of the trained classifiers')
    parser.add_argument('--judged', type=int, default=2000, help='images to judge the trained classifiers with')
    parser.add_argument('--only', nargs='*', help='these models')
    parser.add_argument('--methods', nargs='*', default=OURS, help='of enginequantize; METHOD:OPTION:... adds options')
    parser.add_argument('--json', type=pathlib.Path)
    args = parser.parse_args()
    logging.getLogger().setLevel(logging.ERROR)
    methods = [(m, ['--method', *m.split(':')]) for m in args.methods]
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for case in quantize_cases.all_cases(args, pathlib.Path(folder)):
            if args.only is None or case.name in args.only:
                results[case.name] = compare(case, args.bin.resolve(), methods)
                if args.json:
                    args.json.write_text(json.dumps(results, indent=1))


if __name__ == '__main__':
    main()
