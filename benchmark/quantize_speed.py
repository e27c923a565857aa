#!/usr/bin/env python3
"""Time of enginequantize's models: static int8 against float and against int8_export.py's, dynamic int8 of transformers against float.

    quantize_speed.py [NAME ...] [--transformers MODEL.onnx ...] [--bin build/bin] [--threads 1] [--rounds 5]

NAMEs are graphs of make_graphs.py, with the same weights and input for all. Each MODEL.onnx has a MODEL.npz beside it with its inputs as in:NAME.
Models run in turn; a figure is processor time of a run in ms (what the process needs for all runs after the first, by their number), the
least of all rounds, which other work on the machine disturbs less than time by the clock. Needs NumPy and onnx.
"""
import argparse
import pathlib
import resource
import subprocess
import tempfile

import numpy as np

import double_reference
import int8_export
import onnx_export

GRAPHS = ['mobilenet_v1', 'mobilenet_v2', 'resnet18', 'squeezenet', 'shufflenet_v2', 'googlenet']
ROOT = pathlib.Path(__file__).resolve().parents[1]


def quantize(bin_folder, files, out, *args):
    files_out = out.with_suffix('.param'), out.with_suffix('.bin')
    done = subprocess.run([bin_folder / 'enginequantize', *files, *files_out, *args], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return files_out


def graph_models(name, folder, bin_folder):
    """{column: (files, precision)} and the words of the input, of a graph of make_graphs.py."""
    graph = onnx_export.write_model(name, folder)
    data = np.random.default_rng(2).standard_normal(graph.data.shape, dtype=np.float32)
    np.save(folder / 'x.npy', data)
    weights = onnx_export.read_weights(graph, folder / f'{name}.bin')
    int8_export.write_ncnn(graph, weights, double_reference.run_graph(graph, weights, data), folder / 'export')
    files = folder / f'{name}.param', folder / f'{name}.bin'
    made = {'float': (files, 'fp32'), 'int8_export.py': ((folder / 'export.param', folder / 'export.bin'), 'int8')}
    for kind in 'int8', 'affine':
        made[kind] = quantize(bin_folder, files, folder / kind, '--kind', kind, '--data', folder / 'x.npy', '--method', 'minmax'), 'int8'
    return made, [f'{graph.data.name}={folder}/x.npy']


def transformer_models(path, folder, bin_folder):
    arrays = np.load(path.with_suffix('.npz'))
    words = []
    for i, key in enumerate(k for k in arrays.files if k.startswith('in:')):
        np.save(folder / f'{i}.npy', arrays[key])
        words.append(f'{key[3:]}={folder}/{i}.npy')
    quantized = quantize(bin_folder, (path,), folder / 'dynamic', '--kind', 'dynamic')
    return {'float': ((path,), 'fp32'), 'dynamic': (quantized, 'int8')}, words


def processor_ms(bin_folder, files, precision, words, threads, runs):
    """Of one run, without loading."""
    listed = subprocess.run([bin_folder / 'enginerun', *files, '--show-io'], capture_output=True, text=True, check=True).stdout
    outputs = [line.split()[1] for line in listed.splitlines() if line.startswith('output')]
    command = [bin_folder / 'enginerun', *files, '--precision', precision, '--threads', str(threads)]
    command += [w for word in words for w in ('--input', word)]
    command += [w for name in outputs for w in ('--output', f'{name}=/dev/null')]

    def seconds(repeat):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([*command, '--repeat', str(repeat)], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime - before.ru_utime
    once = seconds(1)
    while True:
        spent = seconds(runs + 1) - once
        if spent > 0.2:  # seconds; less is lost among what loading takes
            return 1e3 * spent / runs
        runs *= 4


def measure(models, words, args):
    times = {column: [] for column in models}
    for _ in range(args.rounds):
        for column, (files, precision) in models.items():
            times[column].append(processor_ms(args.bin.resolve(), files, precision, words, args.threads, args.runs))
    return {column: min(values) for column, values in times.items()}


def print_table(names, prepare, columns, args):
    print(f'| model | {" | ".join(columns)} |\n|{"---|" * (len(columns) + 1)}')
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            best = measure(*prepare(name, pathlib.Path(folder), args.bin.resolve()), args)
        cells = [f'{best[column]:.2f} ({best["float"] / best[column]:.2f}x)' for column in columns]
        print(f'| {getattr(name, "stem", name)} | {" | ".join(cells)} |', flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('names', nargs='*', metavar='NAME', help=f'default: {" ".join(GRAPHS)}; none with --transformers')
    parser.add_argument('--transformers', nargs='*', type=pathlib.Path, default=[], metavar='MODEL.onnx')
    parser.add_argument('--bin', type=pathlib.Path, default=ROOT / 'build/bin')
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--runs', type=int, default=40, help='of a model in a round, and more of small ones')
    args = parser.parse_args()
    names = args.names or ([] if args.transformers else GRAPHS)
    if names:
        print_table(names, graph_models, ['float', 'int8_export.py', 'int8', 'affine'], args)
    if args.transformers:
        print_table(args.transformers, transformer_models, ['float', 'dynamic'], args)


if __name__ == '__main__':
    main()
