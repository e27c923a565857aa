#!/usr/bin/env python3
"""Exports models of torchvision, timm and transformers and small modules with random weights, converts them with
onnx2engine, and compares enginerun with ONNX Runtime.

Usage: sweep.py GROUP... [--filter TEXT] [--exporter ts,dynamo] [--opset N] [--after STEP] [--also RUN,...]
                         [--work DIR] [--table FILE] [--keep]

GROUP: torchvision, detection, timm, transformers, configs, modules, nets, restore, libraries, keras, ml, paddle (sweep_*.py beside this file). Needs the
Python packages torch, torchvision, timm, transformers, onnx, onnxscript, onnxruntime (keras: keras, tensorflow-cpu, tf2onnx;
ml: skl2onnx, onnxmltools, lightgbm, xgboost; paddle: paddlepaddle, paddle2onnx; restore: spandrel; libraries: what they are named after); nothing is downloaded. A line per model and
exporter: `ok` when every output's worst error is at most 1e-4 of its range and integers are equal; `noise` when they are not, but ONNX Runtime's own
optimisations change them about as much; `far` where a run of --also has gross errors; else where it failed: export, ort
(ONNX Runtime refuses the file), time, convert, run, wrong. Lines are appended to the table as JSON, files of failures stay in --work.
Exit code 1 if a conversion or a run failed or was wrong.
"""
import argparse
import dataclasses
import importlib
import inspect
import json
import os
import pathlib
import re
import signal
import sys
import tempfile
import time
import traceback
import warnings

import numpy as np

from onnx_run import Failure, convert, run

TOLERANCE = 1e-4
STEPS = ('optimize', 'optimize-TYPE', 'basic', 'extended', 'all', 'dynamic', 'qdq', 'qdq8', 'qdq16', 'qoperator', 'int4', 'int4qdq', 'int8blocks', 'bnb4',
         'fp16', 'half', 'slim', 'sim', 'script', 'newer')
# Of what ONNX Runtime's tools made: a few units of float16, or a quantum of int8.
TOLERANCES = {'fp16': 3e-3, 'half': 6e-3, 'dynamic': 0.02, 'qdq': 0.02, 'qdq8': 0.02, 'qdq16': 1e-3, 'qoperator': 0.02}


@dataclasses.dataclass
class Model:
    """make() gives a module and a list of input sets; the model is exported with the first, and run with all. Of the
    exporter `own` the module is a function that writes the file.
    `dynamic`: for each input {axis: name}, or 'differing': the axes whose sizes differ between the input sets."""
    make: object
    dynamic: list = None
    exporters: tuple = ('ts', 'dynamo')
    opset: int = 0


def export(module, inputs, model, exporter, opset, path):
    if exporter == 'own':
        return module(path)
    import torch
    names = [f'x{i}' for i in range(len(inputs))]
    axes = {n: a for n, a in zip(names, model.dynamic or []) if a}
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter('ignore')
        if exporter == 'ts':
            torch.onnx.export(module, inputs, str(path), dynamo=False, input_names=names, dynamic_axes=axes or None,
                              opset_version=model.opset or opset or 17)
        else:
            shapes = None
            if axes:
                shapes = tuple({k: torch.export.Dim.DYNAMIC for k in a} if a else None for a in model.dynamic)
                kinds = [p.kind for p in inspect.signature(module.forward).parameters.values()]
                shapes = (shapes,) if inspect.Parameter.VAR_POSITIONAL in kinds else shapes
            torch.onnx.export(module, inputs, str(path), dynamo=True, input_names=names, dynamic_shapes=shapes,
                              opset_version=model.opset or opset or 18, verbose=False, external_data=False)


def differing(sets):
    return [{i: f'x{k}_{i}' for i, s in enumerate(map(set, zip(*[t.shape for t in tensors]))) if len(s) > 1}
            for k, tensors in enumerate(zip(*sets))]


def after(step, path, feeds):
    """What ONNX Runtime's tools make of the model, in the place of it."""
    import onnx
    made = path.with_name('made.onnx')
    if step.startswith('optimize'):
        from onnxruntime.transformers import optimizer
        optimizer.optimize_model(str(path), model_type=step[9:] or 'bert', opt_level=0, use_gpu=False).save_model_to_file(str(made))
    elif step in ('basic', 'extended', 'all'):
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f'ORT_ENABLE_{step.upper()}')
        options.optimized_model_filepath = str(made)
        onnxruntime.InferenceSession(str(path), options)
    elif step == 'dynamic':
        from onnxruntime import quantization as q
        q.quantize_dynamic(str(path), str(made), weight_type=q.QuantType.QInt8,
                           extra_options={'DefaultTensorType': onnx.TensorProto.FLOAT})  # of what fused nodes give
    elif step in ('qdq', 'qdq8', 'qdq16', 'qoperator'):
        from onnxruntime import quantization as q

        class Reader(q.CalibrationDataReader):
            rest = iter(feeds)

            def get_next(self):
                return next(self.rest, None)
        form = q.QuantFormat.QOperator if step == 'qoperator' else q.QuantFormat.QDQ
        kind = {'qdq16': q.QuantType.QUInt16, 'qdq8': q.QuantType.QInt8}.get(step, q.QuantType.QUInt8)
        q.quantize_static(str(path), str(made), Reader(), quant_format=form, per_channel=step != 'qdq8', reduce_range=step == 'qdq8',
                          activation_type=kind, weight_type=q.QuantType.QInt8, extra_options={'UseQDQContribOps': step == 'qdq16'})
    elif step in ('int4', 'int4qdq', 'int8blocks'):
        from onnxruntime import quantization
        from onnxruntime.quantization import matmul_nbits_quantizer as q
        if step == 'int4':
            form = q.DefaultWeightOnlyQuantConfig(block_size=16, op_types_to_quantize=('MatMul', 'Gather'))
        elif step == 'int4qdq':
            form = q.DefaultWeightOnlyQuantConfig(block_size=32, is_symmetric=True, quant_format=quantization.QuantFormat.QDQ)
        else:
            form = q.DefaultWeightOnlyQuantConfig(block_size=64, bits=8, accuracy_level=1)
        quantizer = q.MatMulNBitsQuantizer(onnx.load(str(path)), algo_config=form)
        quantizer.process()
        quantizer.model.save_model_to_file(str(made))
    elif step == 'bnb4':
        from onnxruntime.quantization.matmul_bnb4_quantizer import MatMulBnb4Quantizer
        quantizer = MatMulBnb4Quantizer(onnx.load(str(path)), MatMulBnb4Quantizer.NF4, 64)
        quantizer.process()
        quantizer.model.save_model_to_file(str(made))
    elif step in ('fp16', 'half'):
        from onnxruntime.transformers.float16 import convert_float_to_float16
        onnx.save(convert_float_to_float16(onnx.load(str(path)), keep_io_types=step == 'fp16'), str(made))
        if step == 'half':
            feeds[:] = [{n: a.astype(np.float16) if a.dtype == np.float32 else a for n, a in f.items()} for f in feeds]
    elif step == 'slim':
        import onnxslim
        onnxslim.slim(str(path), str(made))
    elif step == 'sim':
        import onnxsim
        onnx.save(onnxsim.simplify(onnx.load(str(path)))[0], str(made))
    elif step == 'script':
        import onnxscript.optimizer
        onnx.save(onnxscript.optimizer.optimize(onnx.load(str(path))), str(made))
    elif step == 'newer':
        import onnx.version_converter
        onnx.save(onnx.version_converter.convert_version(onnx.load(str(path)), 22), str(made))
    made.replace(path)


def error_of(have, want):
    """The worst error in units of the range; a message where the arrays cannot be compared."""
    if have.shape != want.shape or have.dtype != want.dtype:
        return f'{have.dtype}{list(have.shape)} for {want.dtype}{list(want.shape)}'
    if want.size == 0:
        return 0.
    if want.dtype.kind in 'iub':
        return 0. if np.array_equal(have, want) else f'{int((have != want).sum())} of {want.size} integers differ'
    finite = np.isfinite(want)
    if not np.array_equal(np.nan_to_num(have[~finite]), np.nan_to_num(want[~finite])):
        return 'infinite or no numbers differ'
    if not finite.any():
        return 0.
    spread = max(float(np.ptp(want[finite])), 0.05 * float(np.abs(want[finite]).max()), 1e-20)
    difference = np.abs(have[finite].astype(np.float64) - want[finite])
    return float(difference.max() / spread) if not np.isnan(difference).any() else 'not a number'


def session_of(path, level):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.graph_optimization_level = level
    return onnxruntime.InferenceSession(str(path), options)


def is_noise(path, feed, have, want, outputs):
    """Whether ONNX Runtime's own optimisations, more of them or none, change the outputs as much: models whose values
    explode or cancel, and detections whose scores are all alike."""
    import onnxruntime
    levels = onnxruntime.GraphOptimizationLevel
    return any(explains(session_of(path, level).run(outputs, feed), have, want, outputs)
               for level in (levels.ORT_ENABLE_ALL, levels.ORT_DISABLE_ALL))


def explains(other, have, want, outputs):
    for name, a, b in zip(outputs, want, other):
        mine, theirs = error_of(have[name], a), error_of(b, a)
        if isinstance(mine, str):
            if isinstance(theirs, str) and a.shape == b.shape and a.shape == have[name].shape:
                continue
            return False
        if mine > TOLERANCE and (isinstance(theirs, str) or mine > 10 * theirs):
            return isinstance(theirs, str)
    return True


def gross(net, feed, outputs, want, folder, options):
    """What is wrong with a run by other means: no numbers, or values far off; '' if nothing."""
    exact = '--gpu' in options
    have = run(net, feed, outputs, folder, *options)
    for name, array in zip(outputs, want):
        if array.dtype.kind in 'iub' and not exact:
            continue
        error = error_of(have[name], array)
        if isinstance(error, str) or error > (1e-3 if exact else 0.2):
            return f'{" ".join(options)}: {name}: {error}'
    return ''


def check(model, exporter, opset, folder, step='', also=()):
    """(status, detail) of one model and exporter."""
    import torch
    import onnxruntime
    torch.manual_seed(1)
    torch.set_num_threads(1)
    torch.backends.mha.set_fastpath_enabled(False)  # operators that no exporter knows
    path = folder / 'model.onnx'
    try:
        module, sets = model.make()
        module = module if exporter == 'own' else module.eval()
        if model.dynamic == 'differing':
            model.dynamic = differing(sets)
        export(module, tuple(sets[0]), model, exporter, opset, path)
    except (Exception, SystemExit) as e:
        return 'export', f'{type(e).__name__}: {" ".join(str(e).split())[:300]}'
    del module
    try:
        session = session_of(path, onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC)
        names = [i.name for i in session.get_inputs()]
        outputs = list(dict.fromkeys(o.name for o in session.get_outputs()))
        flat = [[np.asarray(t) for t in torch.utils._pytree.tree_leaves(s) if t is not None] for s in sets]
        every = [f'x{i}' for i in range(len(flat[0]))]
        if exporter == 'dynamo' and len(names) == len(every):
            every = names
        feeds = [{n: a for n, a in zip(every, s) if n in names} for s in flat]
        if step:
            for part in step.split('+'):
                after(part, path, feeds)
            session = session_of(path, onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC)
        wants = [session.run(outputs, feeds[0])]
        for feed in feeds[1:]:
            try:
                wants.append(session.run(outputs, feed))
            except Exception:  # sizes that the exporter wrote as constants
                break
    except Exception as e:
        return 'ort', f'{type(e).__name__}: {" ".join(str(e).split())[:300]}'
    del session
    np.savez(folder / 'data.npz', **{f'{k}.{n}': a for k, f in enumerate(feeds) for n, a in f.items()},
             **{f'{k}.out.{n}': a for k, w in enumerate(wants) for n, a in zip(outputs, w)})
    began = time.time()
    try:
        net = convert(path, folder)
    except Exception as e:
        return 'convert', ' '.join(str(e).split())[-600:]
    took = time.time() - began
    worst, tolerance = 0., max(TOLERANCES.get(part, TOLERANCE) for part in step.split('+'))
    for feed, want in zip(feeds, wants):
        try:
            have = run(net, feed, outputs, folder)
        except Exception as e:
            return 'run', ' '.join(str(e).split())[-400:]
        errors = {name: error_of(have[name], array) for name, array in zip(outputs, want)}
        text = next((f'{name}: {e}' for name, e in errors.items() if isinstance(e, str)), '')
        worst = max([worst, *[e for e in errors.values() if not isinstance(e, str)]])
        if text or worst > tolerance:
            sizes = [list(a.shape) for a in feed.values()]
            noise = is_noise(path, feed, have, want, outputs)
            return 'noise' if noise else 'wrong', f'sizes {sizes}: {text or f"{worst:.1e}"}'
    for way in also:
        options = ['--gpu', '0'] if way == 'gpu' else ['--precision', way]
        try:
            text = gross(net, feeds[0], outputs, wants[0], folder, options)
        except Exception as e:
            return 'run', f'{way}: {" ".join(str(e).split())[-400:]}'
        if text:
            return 'far', text
    return 'ok', f'{worst:.1e}, converted in {took:.1f} s'


def in_child(name, model, exporter, arguments):
    """check() in a process of its own, which a fault of the exporter or a time-out ends."""
    folder = arguments.work / f'{name}.{exporter}'
    folder.mkdir(parents=True, exist_ok=True)
    result = folder / 'result.json'
    result.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        os.setsid()
        log = os.open(folder / 'log.txt', os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1), os.dup2(log, 2)
        try:
            answer = check(model, exporter, arguments.opset, folder, arguments.after, arguments.also)
        except BaseException:
            answer = 'sweep', traceback.format_exc()[-400:]
        result.write_text(json.dumps(answer))
        os._exit(0)
    began = time.time()
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.time() - began > arguments.limit:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return 'time', f'more than {arguments.limit} s'
        time.sleep(0.05)
    status, detail = json.loads(result.read_text()) if result.exists() else ('export', 'the process ended')
    if not (arguments.keep or status in ('convert', 'run', 'wrong', 'far')):
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
    return status, detail


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('groups', nargs='+')
    parser.add_argument('--filter', default='', help='only models whose names match one of these expressions, by commas')
    parser.add_argument('--exporter', default='ts,dynamo,own')
    parser.add_argument('--opset', type=int, default=0)
    parser.add_argument('--after', default='', help='what to make of each model with ONNX Runtime\'s tools and others first: '
                        f'one of {", ".join(STEPS)}, where TYPE is a model_type of ONNX Runtime\'s optimizer, or several joined by +')
    parser.add_argument('--also', default=[], type=lambda text: text.split(','),
                        help='bf16, fp16, gpu: run so, too, and look for gross errors (`far`)')
    parser.add_argument('--skip', default='', help='not those of these names, by commas')
    parser.add_argument('--limit', type=int, default=300, help='seconds a model')
    parser.add_argument('--work', type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / 'sweep')
    parser.add_argument('--table', type=pathlib.Path)
    parser.add_argument('--keep', action='store_true', help='keep the files of models that pass, too')
    arguments = parser.parse_args()
    bad = 0
    for group in arguments.groups:
        models = importlib.import_module(f'sweep_{group}').models(Model)
        for name, model in models.items():
            if not any(re.search(part, name) for part in arguments.filter.split(',')):
                continue
            if name in arguments.skip.split(','):
                continue
            for exporter in arguments.exporter.split(','):
                if exporter not in model.exporters:
                    continue
                began = time.time()
                status, detail = in_child(name, model, exporter, arguments)
                bad += status not in ('ok', 'noise', 'export', 'ort')
                print(f'{group} {name} {exporter} {status} {time.time() - began:.0f}s {detail}', flush=True)
                if arguments.table:
                    line = dict(group=group, name=name, exporter=exporter, status=status, detail=detail)
                    with arguments.table.open('a') as table:
                        table.write(json.dumps(line) + '\n')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
