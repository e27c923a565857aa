#!/usr/bin/env python3
"""quoll on a GPU beside PyTorch (CUDA graphs) and ncnn (Vulkan), in turn, in one run.

    compare_gpu.py                                             one item, fp16, PyTorch and ncnn
    compare_gpu.py --models resnet50,vit_b_16 --batch 1,8,32 --precision fp16,fp32 --peers torch --out build/compare-gpu

PyTorch: networks of torchvision by name, random weights. quoll reads the ONNX file that PyTorch exports of each. cuDNN chooses its
kernels by search; the run is one CUDA graph, in planar memory and channels last, the faster one counts; fp32 is without TF32. Its time
is without copies between host and device; quoll's includes upload and download.
ncnn: the graphs of benchmark/models with random weights, by its Python wheel on the same Vulkan device; fp16 is its default options,
fp32 none of its formats of 16 bits.

A figure is the least of a round's runs; the ratio, quoll's time over the peer's, is the median over the rounds. Answers are compared
with PyTorch's in fp32 (ncnn's with quoll's), as a share of their range; a network whose answers differ by more than a tenth does not count.
Writes gpu.json and gpu.md into --out. Needs bench_worker and
benchmark; torch, torchvision and onnx for PyTorch; the wheel `ncnn`.
"""
import argparse
import copy
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

from compare import ROOT, Worker, list_of

# Names in torchvision, and the size of their inputs.
NETWORKS = {'squeezenet1_1': 227, 'mobilenet_v2': 224, 'mobilenet_v3_large': 224, 'shufflenet_v2_x1_0': 224, 'efficientnet_b0': 224,
            'googlenet': 224, 'resnet18': 224, 'resnet50': 224, 'alexnet': 224, 'vgg16': 224, 'vit_b_16': 224}
WRONG = 0.1  # half floats round a share of the range in deep networks of random weights
WARM_UP = 0.5  # seconds: the device's clock rises slowly
DTYPES = {'fp32': 'float32', 'fp16': 'float16', 'bf16': 'bfloat16'}


def runs_for(ms, round_ms):
    return max(5, min(2000, int(round_ms / max(ms, 1e-3))))


def warmed_up(run):
    """Milliseconds of a run once the device is warm."""
    end, ms = time.time() + WARM_UP, run(1)
    while time.time() < end:
        ms = run(10)
    return ms


class Program:
    """bench_worker, or peer_worker.py with ncnn, in a process of its own."""

    def __init__(self, command):
        self.worker = Worker(command)
        if 'error' in self.worker.facts:
            raise RuntimeError(self.worker.facts['error'])
        self.ms = warmed_up(self.run)

    def run(self, count):
        return min(self.worker.ask(f'run {count}')['times_ms'])

    def outputs(self):
        with tempfile.TemporaryDirectory() as folder:
            count = self.worker.ask(f'outputs {folder}')['count']
            return [np.load(f'{folder}/{i}.npy') for i in range(count)]

    def close(self):
        self.worker.close()


class Torch:
    """One network as a CUDA graph in one memory format."""

    def __init__(self, net, data, precision, last):
        import torch

        self.torch = torch
        kind = dict(dtype=getattr(torch, DTYPES[precision]), memory_format=torch.channels_last if last else torch.contiguous_format)
        # A copy, as to() changes a network in place.
        self.net, x = copy.deepcopy(net).to('cuda', **kind), data.to('cuda', **kind)
        stream = torch.cuda.Stream()
        with torch.no_grad(), torch.cuda.stream(stream):
            for _ in range(5):
                self.net(x)
            stream.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph, stream=stream):
                self.x, self.y = x, self.net(x)
        self.ms = warmed_up(self.run)

    def run(self, count):
        least = 1e9
        for _ in range(count):
            begin = time.perf_counter()
            self.graph.replay()
            self.torch.cuda.synchronize()
            least = min(least, (time.perf_counter() - begin) * 1e3)
        return least

    def close(self):
        del self.graph, self.net, self.x, self.y
        self.torch.cuda.empty_cache()


def in_turn(lanes, rounds, round_ms):
    """{name: least milliseconds of each round}."""
    times = {name: [] for name in lanes}
    for i in range(rounds):
        order = list(lanes)
        for name in order[i % len(order):] + order[:i % len(order)]:
            times[name].append(lanes[name].run(runs_for(lanes[name].ms, round_ms)))
    return times


def error(got, want):
    """The largest difference, as a share of the range."""
    worst = float(np.abs(got.reshape(want.shape).astype(np.float64) - want).max() / np.ptp(want))
    if not worst <= WRONG:
        raise RuntimeError(f'wrong answer: it differs by {worst:.1e} of the range')
    return worst


def our_command(a, files, precision):
    return [a.bin / 'bench_worker', *files, '--gpu', a.gpu, '--precision', precision]


def calibrate(net, size):
    """Statistics of batch norms, without which the values of a deep network of random weights vanish in half floats."""
    import torch

    norms = [module for module in net.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = None  # the average of all batches
    with torch.no_grad():
        net.train()(torch.randn(16, 3, size, size, device='cuda'))
    net.eval()


def exported(name, size, batch, folder):
    """A network of torchvision, its input, its answer in fp32, and the files for bench_worker."""
    import torch
    import torchvision

    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(1)
    extra = dict(aux_logits=False, init_weights=False) if name == 'googlenet' else {}
    net = getattr(torchvision.models, name)(weights=None, **extra).cuda()
    for weight in net.parameters():  # heads of zeros, with which any answer would be right
        if weight.dim() > 1 and not weight.any():
            torch.nn.init.normal_(weight, std=0.02)
    calibrate(net, size)
    data = torch.randn(batch, 3, size, size)
    np.save(folder / 'x.npy', data.numpy())
    net.cpu()
    torch.onnx.export(copy.deepcopy(net), (data,), str(folder / 'net.onnx'), input_names=['x'], output_names=['y'], dynamo=False)
    with torch.no_grad():
        want = net.cuda()(data.cuda()).cpu().numpy()
    return net, data, want, [folder / 'net.onnx', '--input', f'x={folder}/x.npy']


def beside_torch(a, name, batch):
    with tempfile.TemporaryDirectory() as folder:
        net, data, want, files = exported(name, NETWORKS[name], batch, pathlib.Path(folder))
        for precision in a.precision:
            lanes = {}
            try:
                lanes['quoll'] = Program(our_command(a, files, precision))
                lanes['planar'] = Torch(net, data, precision, False)
                lanes['channels last'] = Torch(net, data, precision, True)
                times = in_turn(lanes, a.rounds, a.round_ms)
                yield dict(network=name, batch=batch, precision=precision, peer='torch', times_ms=times,
                           error=error(lanes['quoll'].outputs()[0], want))
            finally:
                for lane in lanes.values():
                    lane.close()


def beside_ncnn(a, param):
    """Networks of benchmark/models, whose weights and input are drawn here."""
    with tempfile.TemporaryDirectory() as folder:
        folder, here = pathlib.Path(folder), ROOT / 'benchmark/peer_worker.py'
        path = folder / param.stem
        path.with_suffix('.param').write_text(param.read_text())
        subprocess.run([a.bin / 'benchmark', '1', '1', f'param={param}', '--warmup', '1', '--save-weights', folder],
                       check=True, stdout=subprocess.DEVNULL)
        sizes = dict(word.split('=') for line in param.read_text().splitlines() if line.startswith('Input') for word in line.split()[5:])
        shape = [int(sizes[axis]) for axis in '210']
        np.random.default_rng(2).standard_normal(shape, dtype=np.float32).tofile(folder / 'input')
        for precision in a.precision:
            call = dict(model=str(path), input=str(folder / 'input'), shape=shape, threads=1, precision=precision, gpu=a.gpu)
            lanes = {}
            try:
                files = [path.with_suffix('.param'), path.with_suffix('.bin'), folder / 'input']
                lanes['quoll'] = Program(our_command(a, files, precision))
                lanes['ncnn'] = Program([sys.executable, here, 'ncnn', json.dumps(call)])
                answers = {name: answer_of(lane, folder / name) for name, lane in lanes.items()}
                yield dict(network=param.stem, batch=1, precision=precision, peer='ncnn', times_ms=in_turn(lanes, a.rounds, a.round_ms),
                           error=error(answers['ncnn'], answers['quoll']))
            finally:
                for lane in lanes.values():
                    lane.close()


def answer_of(program, file):
    shape = program.worker.ask(f'output {file}')['shape']
    return np.fromfile(file, np.float32).reshape(shape)


def ratio(result):
    """quoll's time over that of the faster form of the peer."""
    times = dict(result['times_ms'])
    ours = times.pop('quoll')
    return max(statistics.median(mine / other for mine, other in zip(ours, theirs)) for theirs in times.values())


def line(result):
    cells = [f'{min(ms):.3f}' for ms in result['times_ms'].values()]
    return '| ' + ' | '.join([result['network'], *cells, f'{ratio(result):.2f}', f"{result['error']:.1e}"]) + ' |'


def groups(results):
    """{(peer, precision, batch): results}"""
    found = {}
    for result in results:
        found.setdefault((result['peer'], result['precision'], result['batch']), []).append(result)
    return found


def markdown(report):
    lines = [f"# {report['device']}", '', f"{report['date']}, milliseconds, {report['rounds']} rounds; peers: {report['versions']}.", '']
    for (peer, precision, batch), results in groups(report['results']).items():
        names = list(results[0]['times_ms'])
        lines += [f'## {peer}, {precision}, {batch} item' + ('s' if batch > 1 else ''), '', '| network | ' + ' | '.join(names) + ' | ratio | error |',
                  '|---' * (len(names) + 3) + '|', *map(line, results),
                  f'| geometric mean |{" |" * len(names)} {statistics.geometric_mean(map(ratio, results)):.2f} | |', '']
    for what, why in report['absent'].items():
        lines.append(f'- {what}: {why}')
    return '\n'.join(lines) + '\n'


def versions(peers):
    import importlib.metadata

    return ', '.join(f'{peer} {importlib.metadata.version(peer)}' for peer in peers)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add('--peers', type=list_of(['torch', 'ncnn']), default=['torch', 'ncnn'])
    add('--models', type=lambda text: text.split(','), default=list(NETWORKS), help='names in torchvision')
    add('--precision', type=list_of(list(DTYPES)), default=['fp16'])
    add('--batch', type=lambda text: [int(word) for word in text.split(',')], default=[1], help='items, by commas; beside PyTorch')
    add('--rounds', type=int, default=5)
    add('--round-ms', type=float, default=150, help='runs of one engine in a round take about this long')
    add('--gpu', type=int, default=0, help='Vulkan device; PyTorch takes its first')
    add('--bin', type=pathlib.Path, default=ROOT / 'build/bin')
    add('--out', type=pathlib.Path, default=ROOT / 'build/compare-gpu')
    a = parser.parse_args()
    for name in a.models:
        NETWORKS.setdefault(name, 224)
    return a


def main():
    a = parse_arguments()
    device = subprocess.run([a.bin / 'bench_gpu', '--list'], capture_output=True, text=True).stdout.strip()
    report = dict(device=device, date=time.strftime('%Y-%m-%d'), rounds=a.rounds, versions=versions(a.peers), results=[], absent={})
    work = []
    if 'torch' in a.peers:
        work += [(f'{name} x{batch}', lambda name=name, batch=batch: beside_torch(a, name, batch)) for batch in a.batch for name in a.models]
    if 'ncnn' in a.peers:
        work += [(param.stem, lambda param=param: beside_ncnn(a, param)) for param in sorted((ROOT / 'benchmark/models').glob('*.param'))]
    a.out.mkdir(parents=True, exist_ok=True)
    for what, results in work:
        try:
            for result in results():
                report['results'].append(result)
                print(result['peer'], result['precision'], f"x{result['batch']}", line(result), flush=True)
        except Exception as problem:  # whatever an engine throws is its row's reason
            report['absent'][what] = f'{problem}'.strip().splitlines()[0] if f'{problem}' else repr(problem)
            print(f"{what}: {report['absent'][what]}", flush=True)
        (a.out / 'gpu.json').write_text(json.dumps(report, indent=1))
        (a.out / 'gpu.md').write_text(markdown(report))
    for (peer, precision, batch), results in groups(report['results']).items():
        print(f'{peer}, {precision}, batch {batch}: {statistics.geometric_mean(map(ratio, results)):.2f} over {len(results)} networks')
    return bool(report['absent'])


if __name__ == '__main__':
    sys.exit(main())
