#!/usr/bin/env python3
"""Converts PyTorch models with pnnx and compares enginerun with the ncnn wheel in fp32, and both with PyTorch.

Usage: sweep_pnnx.py [GROUP...] [--filter TEXT] [--work DIR] [--engine PROGRAM] [--options '--gpu 0'] [--fp16 0,1]

GROUP: modules (sweep_pnnx_modules.py), nets, or a group of tests/onnx/sweep.py, written onnx:GROUP, of which the first input set
counts. Needs the Python packages torch, torchvision, timm, transformers, pnnx and ncnn; nothing is downloaded. A line per model
and type of weights: `ok` when every output is within 1e-4 of its range of ncnn's; `torch` when it is not, but is PyTorch's;
`more` when ncnn does not run the file and enginerun does; `neither` when none does; `refused`, `wrong`; or where it failed:
export, pnnx. Exit code 1 if a model that ncnn runs was refused or wrong.
"""
import argparse
import importlib
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
TOLERANCE = 1e-4


def by_ncnn(folder):
    """Runs the files of a folder in ncnn; a process of its own, since ncnn ends it where a file is not to its taste."""
    import ncnn
    plan = json.loads((folder / 'plan.json').read_text())
    net = ncnn.Net()
    for name in ('use_fp16_storage', 'use_fp16_packed', 'use_fp16_arithmetic', 'use_bf16_storage', 'use_packing_layout',
                 'use_winograd_convolution'):
        setattr(net.opt, name, False)
    net.opt.num_threads = 1
    if net.load_param(str(folder / 'm.ncnn.param')) != 0 or net.load_model(str(folder / 'm.ncnn.bin')) != 0:
        sys.exit('cannot load')
    ex = net.create_extractor()
    for name, index in plan['in'].items():
        x = np.load(folder / f'{name}.npy')
        if index is not None and x.shape[index] == 1:  # ncnn makes no blob of five axes
            x, index = x.take(0, index), None
        ex.input(name, (ncnn.Mat(x) if index is None else ncnn.Mat(x, batch_index=index)).clone())
    for name, index in plan['out'].items():
        status, out = ex.extract(name)
        if status != 0 or out.dims == 0:
            sys.exit(f'cannot extract {name}')
        if index is not None:
            out = out.numpy(batch_index=index) if out.n > 1 else np.expand_dims(np.array(out), index)
        np.save(folder / f'{name}.ncnn.npy', np.array(out))


def batches(text, pattern):
    """{blob: batch axis or None} of the program that pnnx writes; 233 stands for none."""
    return {name: int(m[1]) if (m := re.search(r'batch_index=(\d+)', rest)) and m[1] != '233' else None
            for name, rest in re.findall(pattern, text)}


def by_engine(folder, plan, ranks, args):
    """Leaves the outputs as arrays of so many axes."""
    items = {np.load(folder / f'{n}.npy').shape[i] if i is not None else 0 for n, i in plan['in'].items()}  # 0: an input without items
    batch = max(items, default=0)
    command = [args.engine, str(folder / 'm.ncnn.param'), str(folder / 'm.ncnn.bin'), *shlex.split(args.options)]
    if batch > 1 and len(items) > 1:
        return 'some inputs have batches'
    for name, index in plan['in'].items():
        x = np.load(folder / f'{name}.npy')
        if index is not None:
            x = np.moveaxis(x, index, 0) if batch > 1 else x.take(0, index)
        np.save(folder / f'{name}.engine.npy', x)
        command += ['--input', f'{name}={folder}/{name}.engine.npy']
    for name in plan['out']:
        command += ['--output', f'{name}={folder}/{name}.out.npy']
    try:
        done = subprocess.run(command + ['--batch'] * (batch > 1), capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        return 'time'
    if done.returncode:
        return (done.stderr.strip() or f'exit code {done.returncode}')[:600]
    for (name, index), rank in zip(plan['out'].items(), ranks):
        y = np.load(folder / f'{name}.out.npy')
        if index is not None:
            y = np.moveaxis(y, 0, index) if y.ndim >= rank else np.expand_dims(y, index)
        np.save(folder / f'{name}.out.npy', y)
    return ''


def error_of(have, want):
    if have.shape != want.shape:
        return f'{list(have.shape)} for {list(want.shape)}'
    if want.size == 0:
        return 0.
    have, want = have.astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(want)
    if not np.array_equal(np.nan_to_num(have[~finite]), np.nan_to_num(want[~finite])):
        return 'infinite or no numbers differ'
    if not finite.any():
        return 0.
    spread = max(float(np.ptp(want[finite])), 0.05 * float(np.abs(want[finite]).max()), 1e-20)
    worst = float(np.abs(have[finite] - want[finite]).max() / spread)
    return worst if worst == worst else 'not a number'


def worst_of(errors):
    texts = [e for e in errors if isinstance(e, str)]
    return texts[0] if texts else max(errors, default=0.)


def short(error):
    return error if isinstance(error, str) else f'{error:.1e}'


def near(error):
    return not isinstance(error, str) and error <= TOLERANCE


def flat(value):
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in flat(v)]
    if isinstance(value, dict) or hasattr(value, 'values') and callable(value.values) and not hasattr(value, 'numpy'):
        return [t for v in value.values() for t in flat(v)]
    return [value] if hasattr(value, 'numpy') else []


def shapes_of(tensors):
    names = {'float32': 'f32', 'int64': 'i64', 'int32': 'i32', 'bool': 'bool', 'uint8': 'u8', 'complex64': 'c64'}
    return ','.join(f'{list(t.shape)}{names[str(t.dtype)[6:]]}'.replace(' ', '') for t in tensors)


def compare(folder, sets, answers, args):
    """[(status, detail)] of each input set, of files that pnnx has made."""
    text = (folder / 'm_ncnn.py').read_text()
    plan = {'in': batches(text, r'ex\.input\("(\w+)", (.*)'), 'out': batches(text, r'_, (out\d+) = ex.*\n(.*)')}
    (folder / 'plan.json').write_text(json.dumps(plan))
    for inputs, wanted in zip(sets, answers):
        for name in plan['in']:
            x = inputs[int(name[2:])].numpy()
            np.save(folder / f'{name}.npy', x.astype({'f': np.float32}.get(x.dtype.kind, np.int32)))
        try:
            done = subprocess.run([sys.executable, __file__, '--ncnn', str(folder)], capture_output=True, text=True, timeout=300)
        except subprocess.TimeoutExpired:
            done = subprocess.CompletedProcess([], 1, '', 'time')
        ours = by_engine(folder, plan, [w.ndim for w in wanted], args)
        outs = {n: np.load(folder / f'{n}.out.npy') for n in plan['out']} if not ours else {}
        exact = worst_of([error_of(outs[n], w.numpy()) for n, w in zip(plan['out'], wanted)]) if not ours else 'none'
        if done.returncode:
            said = f'{done.returncode} {done.stderr.strip()[-200:]}'
            yield ('neither', f'{ours} | {said}') if ours else ('more', f'{said} | torch {exact}')
            continue
        theirs = {n: np.load(folder / f'{n}.ncnn.npy') for n in plan['out']}
        ncnn_exact = worst_of([error_of(theirs[n], w.numpy()) for n, w in zip(plan['out'], wanted)])
        if ours:
            yield 'refused', f'{ours} | ncnn beside torch {ncnn_exact}'
            continue
        error = worst_of([error_of(outs[n], theirs[n]) for n in plan['out']])
        yield 'ok' if near(error) else 'torch' if near(exact) else 'wrong', f'ncnn {short(error)}, torch {short(exact)}, ncnn beside torch {short(ncnn_exact)}'


def one(name, model, args):
    """Lines of one model."""
    import torch
    folder = pathlib.Path(args.work) / re.sub(r'\W', '_', name)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        torch.manual_seed(7)
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter('ignore')
            module, sets = model()
            module.eval()
            answers = [flat(module(*inputs)) for inputs in sets]
            traced = torch.jit.trace(module, tuple(sets[0]), strict=False, check_trace=False)
            traced.save(str(folder / 'm.pt'))
    except Exception as e:
        return [(name, 'export', f'{type(e).__name__}: {e}'[:300])]
    found = []
    for half in args.fp16.split(','):
        for old in folder.glob('m*ncnn*'):
            old.unlink()
        command = [args.pnnx, 'm.pt', f'inputshape={shapes_of(sets[0])}', f'fp16={half}']
        command += [f'inputshape2={shapes_of(sets[1])}'] if len(sets) > 1 else []
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
        except subprocess.TimeoutExpired:
            found.append((f'{name} fp16={half}', 'pnnx', 'time'))
            continue
        if not (folder / 'm_ncnn.py').exists() or not (folder / 'm.ncnn.param').exists():
            found.append((f'{name} fp16={half}', 'pnnx', f'{done.returncode} {done.stderr[-200:]}'))
            continue
        for k, (status, detail) in enumerate(compare(folder, sets, answers, args)):
            found.append((f'{name} fp16={half}' + f' set {k}' * (len(sets) > 1), status, detail))
    return found


def in_a_process(name, model, args):
    """Models that end the process, or take too long, are lines too."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        signal.alarm(900)
        try:
            lines = one(name, model, args)
        except Exception:
            lines = [(name, 'sweep', traceback.format_exc()[-200:])]
        with os.fdopen(write, 'w') as file:
            json.dump(lines, file)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as file:
        text = file.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else [(name, 'sweep', 'the process ended')]


def models_of(group):
    """{name: function that gives a module and its input sets}"""
    if not group.startswith('onnx:'):
        return importlib.import_module(f'sweep_pnnx_{group}').models()
    import collections
    Model = collections.namedtuple('Model', 'make dynamic exporters opset', defaults=(None, (), 0))

    def first_items(make):
        module, sets = make()
        return module, [[t[:1] if t.ndim > 1 else t for t in sets[0]]]
    module = importlib.import_module(f'sweep_{group[5:]}')
    return {name: lambda m=m: first_items(m.make) for name, m in module.models(Model).items()
            if not re.search('-(dynamic|batch)$', name) and not re.match('dyn-|script-', name)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('groups', nargs='*', default=['modules'])
    parser.add_argument('--filter', default='')
    parser.add_argument('--part', default='0/1', help='K/N: every Nth model from the Kth on')
    parser.add_argument('--work', default=tempfile.gettempdir() + '/sweep_pnnx')
    parser.add_argument('--engine', default=str(HERE.parents[1] / 'build/bin/enginerun'))
    parser.add_argument('--options', default='')
    parser.add_argument('--fp16', default='0,1')
    parser.add_argument('--ncnn', help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.ncnn:
        return by_ncnn(pathlib.Path(args.ncnn))
    import pnnx
    args.pnnx = pnnx.EXEC_PATH
    import torch
    torch.set_num_threads(1)
    sys.path[:0] = [str(HERE), str(HERE.parent / 'onnx')]
    counts, start = {}, time.time()
    for group in args.groups:
        found = models_of(group)
        at, parts = map(int, args.part.split('/'))
        for name in [n for n in found if args.filter in n][at::parts]:
            for line, status, detail in in_a_process(name, found[name], args):
                counts[status] = counts.get(status, 0) + 1
                print(f'{status:8} {group} {line}: {detail}'.replace('\n', ' / '), flush=True)
    print(counts, f'{time.time() - start:.0f} s')
    return 1 if any(counts.get(s) for s in ('refused', 'wrong', 'sweep')) else 0


if __name__ == '__main__':
    sys.exit(main())
