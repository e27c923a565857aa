#!/usr/bin/env python3
"""Runs ncnn's .param files without their weights: draws random ones and compares enginerun with the ncnn wheel in fp32.

Usage: sweep_params.py FOLDER|FILE.param... [--filter TEXT] [--most VALUES] [--sizes 64,224,256] [--options '--gpu 0']

Inputs get the sizes that the file says, else what the first layer that reads them takes, with images of each of --sizes in turn until both
programs run. A line per file: `ok` when every output is within 1e-3 of its range of ncnn's (outputs that are not finite in ncnn do not
count); `wrong`; `refused` when only ncnn runs it; `more` when only enginerun does; `neither`; `large` beyond --most values of
weights. Random weights make many equal scores, which detection layers order in their own ways, and constants that should be positive are
not: `wrong` there is to be looked at, not a defect yet. Exit code 1 if a file was wrong. Needs ncnn's wheel and numpy.
"""
import argparse
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile

import numpy as np

from conftest import BIN, run_program

TOLERANCE = 1e-3
PASSES_ON = {'Split', 'BinaryOp', 'ReLU', 'Padding', 'Interp', 'UnaryOp', 'BatchNorm', 'Scale', 'Noop', 'Dropout'}


def by_ncnn(folder):
    """A process of its own, since ncnn ends it where a file is not to its taste."""
    import ncnn
    plan = json.loads((folder / 'plan.json').read_text())
    net = ncnn.Net()
    for name in ('use_fp16_storage', 'use_fp16_packed', 'use_fp16_arithmetic', 'use_bf16_storage'):
        setattr(net.opt, name, False)
    net.opt.num_threads = 1
    if net.load_param(plan['param']) != 0 or net.load_model(plan['bin']) != 0:
        sys.exit('cannot load')
    ex = net.create_extractor()
    for name, file in plan['in'].items():
        x = np.load(file)
        ex.input(name, ncnn.Mat(x).clone())
    for i, name in enumerate(plan['out']):
        status, out = ex.extract(name)
        if status != 0 or out.dims == 0:
            sys.exit(f'cannot extract {name}')
        np.save(folder / f'ncnn{i}.npy', np.array(out))


class Graph:
    """The layers of a .param: (type, inputs, outputs, {id: text})."""

    def __init__(self, path):
        self.layers = []
        for line in path.read_text('utf8', 'replace').splitlines()[2:]:
            fields = line.split()
            if len(fields) >= 4:
                ins, outs = int(fields[2]), int(fields[3])
                params = dict(f.split('=', 1) for f in fields[4 + ins + outs:] if '=' in f)
                self.layers.append((fields[0], fields[4:4 + ins], fields[4 + ins:4 + ins + outs], params))
        self.readers = {}
        for layer in self.layers:
            for blob in layer[1]:
                self.readers.setdefault(blob, []).append(layer)

    def outputs(self):
        return [blob for layer in self.layers for blob in layer[2] if blob not in self.readers]

    def weights(self):
        ids = {'InnerProduct': '2', 'Embed': '3'}
        return sum(number(p, '6' if 'onvolution' in kind else ids[kind]) for kind, _, _, p in self.layers if 'onvolution' in kind or kind in ids)

    def input_shapes(self, size):
        return {outs[0]: self.input_shape(outs[0], params, size) for kind, _, outs, params in self.layers if kind == 'Input'}

    def input_shape(self, blob, params, size):
        said = [number(params, i) for i in '210']
        if said[2] > 0 and all(s > 0 or i not in params for s, i in zip(said, '210')):
            return tuple(s for s in said if s > 0)
        waiting = [blob]
        for blob in waiting[:40]:
            for kind, _, outs, p in self.readers.get(blob, []):
                shape = taken_by(kind, p, size)
                if shape:
                    return shape
                waiting += outs if kind in PASSES_ON else []
        return 3, size, size


def number(params, key, default=0):
    try:
        return int(params.get(key, default))
    except ValueError:
        return default


def taken_by(kind, p, size):
    """The shape of a blob that a layer reads, as far as its parameters tell."""
    if 'onvolution' in kind:
        across = number(p, '1')
        taps = across if kind.endswith('1D') else across * (number(p, '11') or across)
        channels = number(p, '6') // (number(p, '0') * taps) * (number(p, '7', 1) if 'DepthWise' in kind else 1)
        return (channels, size) if kind.endswith('1D') else (channels, size, size)
    gates = {'LSTM': 4, 'GRU': 3, 'RNN': 1}
    if kind in gates:
        return 8, number(p, '1') // number(p, '0') // gates[kind]
    return {'Embed': (8,), 'InnerProduct': (8, number(p, '2') // max(1, number(p, '0')))}.get(kind)


def run_file(path, graph, size, folder, options):
    """What became of a file, and why."""
    shapes = graph.input_shapes(size)
    text = ','.join('[' + ','.join(map(str, shape[::-1])) + ']' for shape in shapes.values())
    done = run_program('benchmark', '1', '1', '0', '-1', '0', f'param={path}', f'shape={text}', '--save-weights', folder, '--warmup', '0')
    binary = next(folder.glob('*.bin'), None)
    if binary is None:
        return 'refused', done.stderr.strip()[-300:]
    rng = np.random.default_rng(1)
    plan = {'param': str(path), 'bin': str(binary), 'in': {}, 'out': graph.outputs()}
    for i, (name, shape) in enumerate(shapes.items()):
        x = rng.integers(0, 20, shape).astype(np.int32) if len(shape) == 1 else rng.standard_normal(shape).astype(np.float32)
        plan['in'][name] = str(folder / f'in{i}.npy')
        np.save(plan['in'][name], x)
    (folder / 'plan.json').write_text(json.dumps(plan))
    theirs = subprocess.run([sys.executable, __file__, '--by-ncnn', folder], capture_output=True, text=True, timeout=400)
    arguments = [a for name, file in plan['in'].items() for a in ('--input', f'{name}={file}')]
    arguments += [a for i, name in enumerate(plan['out']) for a in ('--output', f'{name}={folder}/ours{i}.npy')]
    ours = run_program('enginerun', path, binary, *arguments, *options)
    if theirs.returncode or ours.returncode:
        kind = {(0, 1): 'refused', (1, 0): 'more', (1, 1): 'neither'}[bool(theirs.returncode), bool(ours.returncode)]
        return kind, f'{list(shapes.values())[:4]} {ours.stderr.strip()[-200:]} {theirs.stderr.strip()[-100:]}'
    return compare(folder, plan['out'])


def compare(folder, outputs):
    worst = 0.
    for i, name in enumerate(outputs):
        ours, theirs = (np.load(folder / f'{who}{i}.npy').astype(np.float64) for who in ('ours', 'ncnn'))
        if ours.shape != theirs.shape:
            return 'wrong', f'{name}: {ours.shape}, ncnn {theirs.shape}'
        if theirs.size and np.isfinite(theirs).all():
            worst = max(worst, float(np.abs(ours - theirs).max() / max(1e-9, np.abs(theirs).max())))
    return 'ok' if worst <= TOLERANCE else 'wrong', f'{worst:.2g} of {len(outputs)} outputs'


def sweep(path, arguments):
    graph = Graph(path)
    if graph.weights() > arguments.most:
        return 'large', f'{graph.weights()} values'
    result = None
    for size in arguments.sizes:
        with tempfile.TemporaryDirectory() as folder:
            found = run_file(path, graph, size, pathlib.Path(folder), shlex.split(arguments.options))
        result = found if result is None or found[0] == 'ok' else result
        if result[0] in ('ok', 'more'):
            break
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('files', nargs='*', type=pathlib.Path)
    parser.add_argument('--by-ncnn', type=pathlib.Path, help=argparse.SUPPRESS)
    parser.add_argument('--filter', default='')
    parser.add_argument('--most', type=float, default=120e6)
    parser.add_argument('--sizes', type=lambda text: [int(s) for s in text.split(',')], default=[64, 224, 256, 320, 128])
    parser.add_argument('--options', default='')
    arguments = parser.parse_args()
    if arguments.by_ncnn:
        by_ncnn(arguments.by_ncnn)
        return 0
    if not (BIN / 'enginerun').exists():
        parser.error(f'{BIN}: no enginerun there; QUOLL_BIN names the folder of the programs')
    paths = [path for file in arguments.files for path in (sorted(file.rglob('*.param')) if file.is_dir() else [file])]
    counts = {}
    for path in (p for p in paths if arguments.filter in str(p)):
        try:
            kind, why = sweep(path, arguments)
        except subprocess.TimeoutExpired:
            kind, why = 'neither', 'took too long'
        counts[kind] = counts.get(kind, 0) + 1
        print(f'{kind:8} {path.name}: {why}', flush=True)
    print(', '.join(f'{n} {kind}' for kind, n in sorted(counts.items())))
    return int('wrong' in counts)


if __name__ == '__main__':
    sys.exit(main())
