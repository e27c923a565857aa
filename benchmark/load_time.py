#!/usr/bin/env python3
"""Loading ONNX files (quoll::load_onnx) beside loading what onnx2engine makes of them.

    load_time.py MODEL.onnx... [--processes 11]

Every figure is the median over fresh processes (bench_worker --load-only) that take turns, on one thread, of the processor time
of the loading alone: the start of a process is not in it. Ratio: load_onnx over the .param and .bin.
"""
import argparse
import json
import math
import pathlib
import statistics
import subprocess
import tempfile

BIN = pathlib.Path(__file__).resolve().parents[1] / 'build' / 'bin'


def load_ms(command):
    done = subprocess.run([*map(str, command), '--load-only', '--threads', '1'], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)['load_cpu_ms']


def time_model(bin_folder, model, processes):
    """(milliseconds of load_onnx, of .param and .bin)"""
    with tempfile.TemporaryDirectory() as folder:
        param, weights = pathlib.Path(folder) / 'm.param', pathlib.Path(folder) / 'm.bin'
        subprocess.run([bin_folder / 'onnx2engine', model, param, weights], check=True, capture_output=True)
        times = [[], []]
        for _ in range(processes):
            for place, words in zip(times, ([model], [param, weights])):
                place.append(load_ms([bin_folder / 'bench_worker', *words]))
    return tuple(statistics.median(t) for t in times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('models', nargs='+', type=pathlib.Path)
    parser.add_argument('--processes', type=int, default=11, help='fresh processes a figure')
    parser.add_argument('--bin', type=pathlib.Path, default=BIN)
    a = parser.parse_args()
    print('| model | MB | load_onnx ms | .param ms | ratio |')
    print('|---|---|---|---|---|')
    ratios = []
    for model in a.models:
        try:
            onnx, param = time_model(a.bin, model, a.processes)
        except subprocess.CalledProcessError as e:
            print(f'| {model.name} | {str(e.stderr).strip()} |')
            continue
        ratios.append(onnx / param)
        print(f'| {model.name} | {model.stat().st_size / 1e6:.2f} | {onnx:.2f} | {param:.2f} | {ratios[-1]:.2f} |', flush=True)
    if ratios:
        print(f'\n{math.exp(statistics.fmean(map(math.log, ratios))):.2f} (geometric mean of {len(ratios)}), at most {max(ratios):.2f}')


if __name__ == '__main__':
    main()
