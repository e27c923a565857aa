#!/usr/bin/env python3
"""Times single layers of many kinds and sizes, to find those that no tuned network has and that run slowly.

    layer_sweep.py [--filter REGEX] [--bin build/bin/benchmark] [--before OLD_BENCHMARK] [--loops 10] [--threads 1]

A line per layer: ms (the least of all loops), and GFLOP/s (two operations per multiply-add, taps in the padding counted) of what multiplies,
else GB/s of the input. --before times another build's `benchmark` in turn. Needs NumPy.
"""
import argparse
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / 'scripts'))
from param_graph import Layer, param_text  # noqa: E402

INPUT_IDS = {'w': 0, 'h': 1, 'c': 2, 'd': 11}


@dataclass
class Case:
    name: str
    size: dict  # of the input: w, h, d, c
    layer: str
    params: dict
    flops: int = 0

    def text(self):
        sizes = {INPUT_IDS[axis]: n for axis, n in self.size.items()}
        return param_text([Layer('Input', 'in', [], ['in'], sizes), Layer(self.layer, 'layer', ['in'], ['out'], self.params)])


def window(kind, size, channels, outputs, kernel, stride=1, dilation=1, groups=1):
    """A (de)convolution over the axes of `size` with SAME padding; of a deconvolution that keeps out = in * stride."""
    axes, transposed = len(size), kind == 'Deconvolution'
    name = kind + ('DepthWise' if groups > 1 else '') + {1: '1D', 2: '', 3: '3D'}[axes]
    taps, weights = math.prod(kernel), math.prod(kernel) * channels * outputs // groups
    params = {0: outputs, 6: weights, 5: 1}
    for i, k in enumerate(kernel):  # ids of kernel, dilation, stride, pad of w, h, d
        pad = max(0, (k - stride + 1) // 2) if transposed else k // 2 * dilation
        params |= {(1, 11, 21)[i]: k, (2, 12, 22)[i]: dilation, (3, 13, 23)[i]: stride, (4, 14, 24)[i]: pad}
    if groups > 1:
        params[7] = groups
    steps = math.prod(size) // (1 if transposed else stride ** axes)
    text = f"{kind.lower()} {'x'.join(map(str, size))} {channels}>{outputs} k{'x'.join(map(str, kernel))}"
    text += ''.join(f' {letter}{n}' for letter, n in (('s', stride), ('d', dilation), ('g', groups)) if n > 1)
    axes_of = dict(zip(('w', 'h', 'd'), size)) | {'c': channels}
    if axes == 1:
        axes_of = {'w': size[0], 'h': channels}
    return Case(text, axes_of, name, params, 2 * steps * channels * outputs // groups * taps)


def convolutions():
    def conv(*args, **more):
        return window('Convolution', *args, **more)
    for groups, width in ((32, 4), (32, 8), (32, 16), (8, 32), (16, 24), (2, 64), (3, 8)):
        for w in (56, 14):
            yield conv((w, w), groups * width, groups * width, (3, 3), groups=groups)
    for w, channels, outputs, kernel, stride in ((28, 64, 64, 5, 1), (28, 64, 64, 7, 1), (112, 32, 64, 3, 2), (128, 3, 64, 9, 1), (128, 64, 3, 9, 1),
                                                 (128, 64, 3, 3, 1), (256, 16, 16, 3, 1), (256, 8, 8, 3, 1), (56, 24, 24, 3, 1), (100, 1, 32, 3, 1),
                                                 (224, 3, 32, 7, 2), (14, 512, 1024, 1, 1), (256, 64, 21, 1, 1), (64, 256, 21, 1, 1)):
        yield conv((w, w), channels, outputs, (kernel, kernel), stride)
    for kernel in ((7, 1), (1, 7), (3, 1)):
        yield conv((17, 17), 192, 192, kernel)
    for w, channels, dilation in ((28, 256, 2), (28, 512, 4), (56, 64, 2), (65, 256, 2)):
        yield conv((w, w), channels, channels, (3, 3), dilation=dilation)
    for dilation in (12, 24, 36):
        yield conv((28, 28), 2048, 256, (3, 3), dilation=dilation)
    for w, channels, kernel, stride, dilation in ((56, 96, 3, 1, 1), (56, 96, 3, 2, 1), (56, 96, 5, 2, 1), (56, 96, 7, 1, 1), (56, 96, 3, 1, 2), (32, 768, 9, 1, 1),
                                                  (32, 256, 13, 1, 1), (32, 256, 31, 1, 1), (56, 90, 3, 1, 1), (14, 100, 5, 1, 1)):
        yield conv((w, w), channels, channels, (kernel, kernel), stride, dilation, channels)
    yield conv((56, 56), 96, 192, (3, 3), groups=96)
    for w, channels, outputs, kernel, stride, dilation, groups in ((400, 512, 512, 3, 1, 1, 1), (400, 80, 384, 3, 1, 1, 1), (1600, 64, 64, 7, 1, 1, 1), (16000, 1, 64, 10, 5, 1, 1),
                                                                   (400, 512, 512, 3, 1, 4, 1), (400, 256, 256, 31, 1, 1, 256), (1600, 64, 64, 3, 1, 1, 64)):
        yield conv((w,), channels, outputs, (kernel,), stride, dilation, groups)
    for size, channels, outputs, kernel, groups in (((56, 56, 8), 64, 64, (3, 3, 3), 1), ((28, 28, 4), 128, 128, (3, 3, 3), 1), ((56, 56, 8), 64, 144, (3, 3, 1), 1),
                                                    ((28, 28, 8), 64, 64, (3, 3, 3), 64), ((28, 28, 8), 64, 64, (3, 3, 3), 4)):
        yield conv(size, channels, outputs, kernel, groups=groups)


def deconvolutions():
    for size, channels, outputs, kernel, stride, groups in (((28, 28), 256, 128, 2, 2, 1), ((28, 28), 256, 128, 3, 2, 1), ((16, 16), 512, 256, 4, 2, 1), ((64, 64), 64, 3, 4, 2, 1),
                                                            ((64, 64), 21, 21, 16, 8, 1), ((64, 64), 21, 21, 16, 8, 21), ((28, 28), 128, 128, 4, 2, 128), ((4, 4), 1024, 512, 4, 2, 1),
                                                            ((28, 28), 64, 64, 3, 1, 1), ((64, 64), 128, 64, 4, 2, 4), ((16, 16, 16), 64, 32, 2, 2, 1)):
        yield window('Deconvolution', size, channels, outputs, (kernel,) * len(size), stride, groups=groups)


def others():
    maps = {'w': 56, 'h': 56, 'c': 96}
    for name, layer, params in (
            ('max 3x3', 'Pooling', {0: 0, 1: 3, 2: 1, 3: 1}), ('max 3x3 s2', 'Pooling', {0: 0, 1: 3, 2: 2, 3: 1}), ('max 13x13', 'Pooling', {0: 0, 1: 13, 2: 1, 3: 6}),
            ('mean 3x3', 'Pooling', {0: 1, 1: 3, 2: 1, 3: 1}), ('mean of all', 'Pooling', {0: 1, 4: 1}),
            ('linear x2', 'Interp', {0: 2, 1: 2.0, 2: 2.0}), ('nearest x2', 'Interp', {0: 1, 1: 2.0, 2: 2.0}), ('cubic x2', 'Interp', {0: 3, 1: 2.0, 2: 2.0}),
            ('pixel shuffle', 'PixelShuffle', {0: 2}), ('reorg', 'Reorg', {0: 2}), ('channel shuffle', 'ShuffleChannel', {0: 4}), ('permute', 'Permute', {0: 3}),
            ('softmax over channels', 'Softmax', {0: 0, 1: 1}), ('softmax over rows', 'Softmax', {0: 2, 1: 1}), ('layer norm', 'LayerNorm', {0: 56}), ('group norm', 'GroupNorm', {0: 8, 1: 96}),
            ('instance norm', 'InstanceNorm', {0: 96}), ('LRN', 'LRN', {0: 0, 1: 5}), ('normalize', 'Normalize', {0: 0, 1: 1, 3: 1, 4: 1}), ('ReLU', 'ReLU', {}), ('sigmoid', 'Sigmoid', {}),
            ('GELU', 'GELU', {}), ('swish', 'Swish', {}), ('mish', 'Mish', {}), ('softplus', 'Softplus', {}), ('tanh', 'TanH', {}), ('exp', 'UnaryOp', {0: 7}), ('log', 'UnaryOp', {0: 8}),
            ('power', 'BinaryOp', {0: 6, 1: 1, 2: 2.5}), ('PReLU', 'PReLU', {0: 96}), ('sum of channels', 'Reduction', {0: 0, 1: 0, 3: [0], 4: 1, 5: 1}), ('running sum', 'CumulativeSum', {0: 0}),
            ('reflecting padding', 'Padding', {0: 1, 1: 1, 2: 1, 3: 1, 4: 2}), ('unfold', 'Unfold', {1: 3, 4: 1}), ('quantize', 'Quantize', {0: 1}), ('arg max', 'ArgMax', {0: 0, 1: 1})):
        yield Case(name, maps, layer, params)
    sequence = {'w': 256, 'h': 100}
    for name, gates in (('LSTM', 4), ('GRU', 3), ('RNN', 1)):
        yield Case(f'{name} 256, 100 steps', sequence, name, {0: 256, 1: gates * 65536, 2: 0}, 4 * gates * 65536 * 100)


def least_ms(program, text, loops, threads):
    """Of all loops; None if the model does not run."""
    with tempfile.TemporaryDirectory() as folder:
        model, report = pathlib.Path(folder) / 'layer.param', pathlib.Path(folder) / 'report.json'
        model.write_text(text)
        done = subprocess.run([program, str(loops), str(threads), f'param={model}', '--json', report], capture_output=True, text=True)
        if done.returncode != 0:
            return None
        return json.loads(report.read_text())['rows'][0]['min_ms']


def speed(case, ms):
    if case.flops:
        return f'{case.flops / ms / 1e6:8.1f} GFLOP/s'
    return f'{4 * math.prod(case.size.values()) / ms / 1e6:8.1f} GB/s'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--filter', default='', help='regular expression on the lines\' names')
    parser.add_argument('--bin', default=ROOT / 'build' / 'bin' / 'benchmark', type=pathlib.Path)
    parser.add_argument('--before', type=pathlib.Path)
    parser.add_argument('--loops', type=int, default=10)
    parser.add_argument('--threads', type=int, default=1)
    args = parser.parse_args()
    failed = 0
    for case in (*convolutions(), *deconvolutions(), *others()):
        if not re.search(args.filter, case.name):
            continue
        ms = least_ms(args.bin, case.text(), args.loops, args.threads)
        if ms is None:
            failed += 1
            print(f'{case.name:40s} failed')
            continue
        line = f'{case.name:40s} {ms:9.3f} ms {speed(case, ms)}'
        before = least_ms(args.before, case.text(), args.loops, args.threads) if args.before else None
        print(line + (f', before {before:.3f} ms ({before / ms:.2f})' if before else ''), flush=True)
    return failed != 0


if __name__ == '__main__':
    sys.exit(main())
