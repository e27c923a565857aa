#!/usr/bin/env python3
"""The first inference of a process beside the next ones, alone and beside processes that keep every processor busy.

    first_run.py                                  squeezenet, mobilenet_v2, mobilenet_v3, resnet18 with one and two threads
    first_run.py --graphs googlenet --processes 21 --threads 1,2,4 --cpus 0-3

Every figure is the median over fresh processes (bench_worker), which load the network, run it once, then ten times; graphs,
threads and loads take turns. `first` is the first run over the steady one; beside busy processors `two over one` is the steady
time with the most threads over that with one. Weights are random, kept in --weights.
"""
import argparse
import array
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
HERE = ROOT / 'benchmark'
BURN = 'while True: pass'


def cpu_list(text):
    ends = [[int(v) for v in part.split('-')] for part in text.split(',')]
    return [cpu for part in ends for cpu in range(part[0], part[-1] + 1)]


def make_input(param, folder):
    """A file with values for the net's input, from the sizes that its Input layer tells."""
    fields = next(line.split() for line in param.read_text().splitlines() if line.startswith('Input'))
    sizes = dict(word.split('=') for word in fields[5:])
    count = int(sizes['0']) * int(sizes.get('1', 1)) * int(sizes.get('2', 1))
    rng = random.Random(1)
    path = folder / (param.stem + '.f32')
    path.write_bytes(array.array('f', [rng.random() for _ in range(count)]).tobytes())
    return path


def one_process(command):
    """(milliseconds of the first run, of the steady one)"""
    with subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        first = json.loads(worker.stdout.readline())['first_ms']
        worker.stdin.write('run 10\n')
        worker.stdin.flush()
        steady = json.loads(worker.stdout.readline())['times_ms']
        worker.stdin.close()
        worker.wait()
    return first, statistics.median(steady)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--graphs', default='squeezenet,mobilenet_v2,mobilenet_v3,resnet18')
    parser.add_argument('--threads', default='1,2')
    parser.add_argument('--processes', type=int, default=11, help='fresh processes a figure')
    parser.add_argument('--cpus', type=cpu_list, default=sorted(os.sched_getaffinity(0)), help='such as 0-3,8: what all are bound to')
    parser.add_argument('--bin', type=pathlib.Path, default=ROOT / 'build' / 'bin')
    parser.add_argument('--weights', type=pathlib.Path, default=ROOT / 'build' / 'weights')
    a = parser.parse_args()
    os.sched_setaffinity(0, a.cpus)
    a.weights.mkdir(parents=True, exist_ok=True)
    names, threads = a.graphs.split(','), [int(t) for t in a.threads.split(',')]
    times = {}
    with tempfile.TemporaryDirectory() as folder:
        inputs = {}
        for name in names:
            param = HERE / 'models' / f'{name}.param'
            inputs[name] = make_input(param, pathlib.Path(folder))
            if not (a.weights / f'{name}.bin').exists():
                subprocess.run([a.bin / 'benchmark', '--save-weights', a.weights, '1', '1', '0', '-1', '0', f'param={param}'], check=True, stdout=subprocess.DEVNULL)
        for busy in (False, True):
            burners = [subprocess.Popen([sys.executable, '-c', BURN]) for _ in a.cpus] if busy else []
            try:
                for _ in range(a.processes):
                    for name in names:
                        for count in threads:
                            command = [a.bin / 'bench_worker', HERE / 'models' / f'{name}.param', a.weights / f'{name}.bin',
                                       inputs[name], '--threads', count]
                            times.setdefault((name, count, busy), []).append(one_process(command))
            finally:
                for burner in burners:
                    burner.kill()
                    burner.wait()
    print(f'{len(a.cpus)} processors, {a.processes} processes a figure\n')
    print('| graph | threads | first ms | steady ms | first | busy: first ms | steady ms | first | two over one |')
    print('|---|---|---|---|---|---|---|---|---|')
    for name in names:
        for count in threads:
            cells = [name, str(count)]
            for busy in (False, True):
                first, steady = (statistics.median(t) for t in zip(*times[name, count, busy]))
                ratio = statistics.median(f / s for f, s in times[name, count, busy])
                cells += [f'{first:.1f}', f'{steady:.1f}', f'{ratio:.2f}']
            alone = statistics.median(s for _, s in times[name, threads[0], True])
            cells.append(f'{steady / alone:.2f}' if count != threads[0] else '')
            print('| ' + ' | '.join(cells) + ' |')


if __name__ == '__main__':
    main()
