#!/usr/bin/env python3
"""Time of enginequantize's int8 models against those of int8_export.py, of the same graphs of make_graphs.py with the same weights and input.

    quantize_speed.py [NAME ...] [--bin build/bin] [--threads 1] [--rounds 5]

Both run in turn; times are the best of all rounds, in ms. Needs NumPy and onnx.
"""
import argparse
import pathlib
import re
import subprocess
import tempfile

import numpy as np

import double_reference
import int8_export
import onnx_export

ROOT = pathlib.Path(__file__).resolve().parents[1]


def write_models(name, folder, bin_folder):
    """(param, bin) by name of the tool, and the names of input and output."""
    graph = onnx_export.write_model(name, folder)
    data = np.random.default_rng(2).standard_normal(graph.data.shape, dtype=np.float32)
    np.save(folder / 'x.npy', data)
    weights = onnx_export.read_weights(graph, folder / f'{name}.bin')
    int8_export.write_ncnn(graph, weights, double_reference.run_graph(graph, weights, data), folder / 'export')
    subprocess.run([bin_folder / 'enginequantize', folder / f'{name}.param', folder / f'{name}.bin', folder / 'quantize.param', folder / 'quantize.bin',
                    '--data', folder / 'x.npy', '--method', 'minmax'], check=True, capture_output=True)
    return {tool: (folder / f'{tool}.param', folder / f'{tool}.bin') for tool in ('export', 'quantize')}, graph.data.name, graph.output.name


def best_ms(bin_folder, files, data, output, folder, threads):
    done = subprocess.run([bin_folder / 'enginerun', *files, '--precision', 'int8', '--input', f'{data}={folder}/x.npy', '--output',
                           f'{output}={folder}/y.npy', '--threads', str(threads), '--repeat', '10'], check=True, capture_output=True, text=True)
    return float(re.search(r'min ([\d.]+)', done.stdout + done.stderr).group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('names', nargs='*', metavar='NAME', default=['mobilenet_v1', 'mobilenet_v2', 'resnet18', 'squeezenet', 'shufflenet_v2', 'googlenet'])
    parser.add_argument('--bin', type=pathlib.Path, default=ROOT / 'build/bin')
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--rounds', type=int, default=5)
    args = parser.parse_args()
    print('| graph | int8_export.py | enginequantize | ratio |\n|---|---|---|---|')
    for name in args.names:
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            models, data, output = write_models(name, folder, args.bin.resolve())
            times = {tool: [] for tool in models}
            for _ in range(args.rounds):
                for tool, files in models.items():
                    times[tool].append(best_ms(args.bin.resolve(), files, data, output, folder, args.threads))
            ours, theirs = min(times['quantize']), min(times['export'])
            print(f'| {name} | {theirs:.3f} | {ours:.3f} | {theirs / ours:.2f} |', flush=True)


if __name__ == '__main__':
    main()
