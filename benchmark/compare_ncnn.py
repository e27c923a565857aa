#!/usr/bin/env python3
"""quoll and ncnn on the same graphs, with the same weights and inputs sizes, in turn.

    pip install ncnn numpy
    benchmark/compare_ncnn.py [--threads 1] [--rounds 5] [--loops 8] [--filter REGEX] [--models DIR] [--json FILE]

Each round is a fresh process of `benchmark` and a fresh process of the ncnn wheel; who begins changes from round to round, so
that a machine that slows down or speeds up does not favour either. A round's time is the median of its loops, a graph's time
the median of its rounds. fp32 on both sides; ncnn runs with its defaults otherwise (Winograd, packing, light mode, pool
allocators as in its own benchmark).
"""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]


def ncnn_times(param, binary, shapes, loops, warmup, threads):
    """Milliseconds of each loop of ncnn; shapes in NumPy's order, one an input."""
    import ncnn
    import numpy as np

    net = ncnn.Net()
    blobs, workspace = ncnn.UnlockedPoolAllocator(), ncnn.PoolAllocator()
    net.opt.num_threads = threads
    net.opt.use_vulkan_compute = False
    net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = False
    net.opt.use_bf16_storage = False
    net.opt.blob_allocator, net.opt.workspace_allocator = blobs, workspace
    if net.load_param(param) != 0 or net.load_model(binary) != 0:
        raise SystemExit(f'ncnn cannot load {param}')
    random = np.random.default_rng(1)
    inputs = [ncnn.Mat(random.uniform(-1, 1, shape).astype(np.float32)).clone() for shape in shapes]
    input_names, output_names = list(net.input_names()), list(net.output_names())
    times = []
    for _ in range(warmup + loops):
        begin = time.perf_counter()
        extractor = net.create_extractor()
        for name, mat in zip(input_names, inputs):
            extractor.input(name, mat)
        for name in output_names:
            status, out = extractor.extract(name)
            if status != 0:
                raise SystemExit(f'ncnn cannot run {param}: {name}: {status}')
        times.append((time.perf_counter() - begin) * 1e3)
        del extractor, out  # what is in a pool has to go before the pool
    return times[warmup:]


def run_ncnn(param, binary, shapes, a):
    call = json.dumps([str(param), str(binary), shapes, a.loops, a.warmup, a.threads])
    done = subprocess.run([sys.executable, __file__, '--ncnn', call], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f'ncnn: {done.stderr.strip().splitlines()[-1:]}')
    return json.loads(done.stdout.strip().splitlines()[-1])


def run_quoll(param, a, folder, *more):
    """The row that `benchmark` writes for one graph."""
    report = folder / 'report.json'
    command = [a.benchmark, str(a.loops), str(a.threads), '0', '-1', '0', f'param={param}', '--warmup', str(a.warmup),
               '--json', str(report), *more]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError('quoll: ' + (done.stderr.strip().splitlines() or ['?'])[-1])
    return json.loads(report.read_text())['rows'][0]


def compare(param, a, folder):
    """Times of one graph: {'quoll': [...], 'ncnn': [...]}, a median a round."""
    row = run_quoll(param, a, folder, '--save-weights', folder)
    binary = folder / (param.name.split('.param')[0] + '.bin')
    shapes = [[int(v) for v in text.strip('()').split(',')] for text in row['inputs']]
    ours = [f'bin={binary}', 'shape=' + ','.join('[' + ','.join(map(str, s[::-1])) + ']' for s in shapes)]
    runs = {'quoll': lambda: run_quoll(param, a, folder, *ours)['times_ms'],
            'ncnn': lambda: run_ncnn(param, binary, shapes, a)}
    medians = {name: [] for name in runs}
    for i in range(a.rounds):
        for name in sorted(runs, reverse=i % 2 == 0):
            medians[name].append(statistics.median(runs[name]()))
    binary.unlink()
    return medians


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--benchmark', default=ROOT / 'build/bin/benchmark', help='our program')
    parser.add_argument('--models', default=ROOT / 'benchmark/models', type=pathlib.Path, help='folder of .param files')
    parser.add_argument('--filter', default='', help='regular expression on the names of graphs')
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--rounds', type=int, default=5, help='processes of each side for a graph')
    parser.add_argument('--loops', type=int, default=8, help='timed runs in a process')
    parser.add_argument('--warmup', type=int, default=3)
    parser.add_argument('--json', help='write all medians to this file')
    parser.add_argument('--ncnn', help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.ncnn:
        print(json.dumps(ncnn_times(*json.loads(a.ncnn))))
        return 0
    params = [p for p in sorted(a.models.glob('*.param')) if re.search(a.filter, p.name.split('.param')[0])]
    if not params:
        parser.error(f'no graph of {a.models} matches {a.filter!r}')
    print(f"{'graph':>22} {'quoll ms':>10} {'ncnn ms':>10} {'ncnn / quoll':>13}")
    results, failed = {}, False
    for param in params:
        name = param.name.split('.param')[0]
        try:
            with tempfile.TemporaryDirectory() as folder:
                results[name] = compare(param, a, pathlib.Path(folder))
        except RuntimeError as error:
            print(f'{name:>22} {error}', flush=True)
            failed = True
            continue
        quoll, ncnn = (statistics.median(results[name][side]) for side in ('quoll', 'ncnn'))
        print(f'{name:>22} {quoll:10.2f} {ncnn:10.2f} {ncnn / quoll:13.2f}', flush=True)
    ratios = [statistics.median(r['ncnn']) / statistics.median(r['quoll']) for r in results.values()]
    if ratios:
        print(f"{'geometric mean':>22} {'':>10} {'':>10} {statistics.geometric_mean(ratios):13.2f}")
    if a.json:
        pathlib.Path(a.json).write_text(json.dumps({'threads': a.threads, 'loops': a.loops, 'medians_ms': results}, indent=2))
    return failed


if __name__ == '__main__':
    sys.exit(main())
