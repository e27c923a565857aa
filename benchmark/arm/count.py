#!/usr/bin/env python3
"""Instructions an inference, counted under qemu: what can be said of ARM code without a board.

    count.py                                        four networks, cortex-a53 and max, one thread, fp32
    count.py --models resnet18 --cpu cortex-a53 --functions 15
    count.py --cpu max -- --precision fp16          run options of bench_worker after --
    count.py --models net_int8.param --cpu a64fx    with its own weights, net_int8.bin
    count.py --cpu max:sve-default-vector-length=32,max:sve=off     properties of a processor after colons
    count.py --preset armv7 --cpu cortex-a7         programs of 32 bits
    count.py --preset riscv64-v --cpu rv64:v=true:vlen=128          of these all instructions, as scalar: classes are those of ARM

Needs the programs of two presets: bench_worker of aarch64 or another of PRESETS (build-aarch64), and benchmark of release (build), which makes the random
weights of params without any beside them. A count is the difference of a process that runs the network three times and one that runs it twice, so that neither loading nor the
first run is in it. Classes: multiply-adds of vectors, other vector instructions, loads, stores, prefetches, scalar. Counts are not
times: how many instructions of which kind a core takes at once, and how long it waits for memory, they do not say.
"""
import argparse
import collections
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
CLASSES = ('multiply-adds', 'vector', 'loads', 'stores', 'prefetches', 'scalar')
# The name of a preset: qemu's of the processor, and the folder with the cross compiler's libraries.
PRESETS = {
    'aarch64': ('aarch64', '/usr/aarch64-linux-gnu'),
    'armv7': ('arm', '/usr/arm-linux-gnueabihf'),
    'riscv64-v': ('riscv64', '/usr/riscv64-linux-gnu'),
}
MODELS = ('squeezenet:227', 'mobilenet_v2', 'resnet18', 'shufflenet_v2')


def build_plugin(folder):
    plugin = folder / 'libcount_instructions.so'
    subprocess.run(['g++', '-O2', '-shared', '-fPIC', '-fvisibility=hidden', '-o', plugin,
                    HERE / 'count_instructions.cpp'], check=True)
    return plugin


def copy_param(model, folder):
    """The param of a model, with inputs of another size for NAME:SIDE, in the folder."""
    name, _, side = model.partition(':')
    param = pathlib.Path(name)
    if not param.exists():
        param = ROOT / 'benchmark/models' / (name + '.param')
    if not param.exists():
        sys.exit(f'{model}: expected a name in benchmark/models or the path of a param')
    text = param.read_text()
    if side:
        text = re.sub(r'(?m)^(Input\b.*?) 0=\d+ 1=\d+', rf'\g<1> 0={side} 1={side}', text)
    copy = folder / param.name
    copy.write_text(text)
    return copy


def write_input(param, path):
    """Values in [-1, 1) for the Input layer of a param, which must say its size."""
    line = next(line for line in param.read_text().splitlines() if line.startswith('Input'))
    sizes = dict(re.findall(r'\b(\d+)=(-?\d+)', line))
    count = 1
    for key in ('0', '1', '2'):
        count *= int(sizes.get(key, 1))
    state, values = 1, []
    for _ in range(count):
        state = (state * 1103515245 + 12345) & 0x7fffffff
        values.append(state / 0x40000000 - 1)
    path.write_bytes(struct.pack(f'{count}f', *values))


def count(args, plugin, folder, param, cpu, runs):
    """{function: counts by class} of a process with so many runs after its first."""
    out = folder / 'counts.txt'
    processor, sysroot = PRESETS[args.preset]
    worker = args.worker or ROOT / f'build-{args.preset}/bin/bench_worker'
    command = [f'qemu-{processor}', '-L', args.sysroot or sysroot, '-cpu', cpu.replace(':', ','), '-plugin', f'{plugin},out={out}', worker, param,
               folder / (param.stem + '.bin'), folder / (param.stem + '.in'), '--threads', '1', *args.options]
    subprocess.run(list(map(str, command)), input=f'run {runs}\n', text=True, check=True, stdout=subprocess.DEVNULL)
    functions = {}
    for line in out.read_text().splitlines():
        name, *counts = line.split('\t')
        functions[name] = list(map(int, counts))
    return functions


def difference(more, less):
    nothing = [0] * len(CLASSES)
    return {name: [a - b for a, b in zip(counts, less.get(name, nothing))] for name, counts in more.items()}


def plain_name(symbol):
    """A function's name without the parts that all have."""
    name = subprocess.run(['c++filt', symbol], capture_output=True, text=True, check=True).stdout.strip()
    return name.replace('(anonymous namespace)::', '').replace('quoll::', '')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--models', default=','.join(MODELS), help='names in benchmark/models or paths of params, with :SIDE for another size of the input')
    parser.add_argument('--cpu', default='cortex-a53,max', help="qemu's names of processors, and properties after colons")
    parser.add_argument('--functions', type=int, default=0, help='lists so many functions that take the most')
    parser.add_argument('--preset', default='aarch64', choices=PRESETS, help='what bench_worker was built with')
    parser.add_argument('--worker', help='default: that of the preset')
    parser.add_argument('--benchmark', default=ROOT / 'build/bin/benchmark', help='of this machine; makes the weights')
    parser.add_argument('--sysroot', help='default: that of the cross compiler')
    parser.add_argument('options', nargs='*', help='of bench_worker, after --')
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        plugin = build_plugin(folder)
        print(f'{"millions an inference":24}{"all":>9}' + ''.join(f'{c:>15}' for c in CLASSES))
        for model in args.models.split(','):
            param = copy_param(model, folder)
            weights = pathlib.Path(model.partition(':')[0]).with_suffix('.bin')
            if weights.exists():
                shutil.copy(weights, folder / (param.stem + '.bin'))
            else:
                subprocess.run([args.benchmark, '1', '1', f'param={param}', '--save-weights', folder, '--warmup', '0'], check=True,
                               stdout=subprocess.DEVNULL)
            write_input(param, folder / (param.stem + '.in'))
            for cpu in args.cpu.split(','):
                functions = difference(count(args, plugin, folder, param, cpu, 2), count(args, plugin, folder, param, cpu, 1))
                report(f'{param.stem} {cpu}', functions, args.functions)


def report(title, functions, listed):
    def row(name, counts):
        print(f'{name:24}{sum(counts) / 1e6:9.2f}' + ''.join(f'{c / 1e6:15.2f}' for c in counts), flush=True)

    row(title, [sum(c) for c in zip(*functions.values())])
    names = collections.defaultdict(lambda: [0] * len(CLASSES))
    for symbol, counts in sorted(functions.items(), key=lambda f: -sum(f[1]))[:listed]:
        name = '  ' + plain_name(symbol)[:60]
        names[name] = [a + b for a, b in zip(names[name], counts)]
    for name, counts in names.items():
        row(name, counts)


if __name__ == '__main__':
    main()
