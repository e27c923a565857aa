"""Every operator against ncnn (the PyPI wheel) on single-layer nets with random parameters.

CONFIGS random configurations an operator; those that ncnn itself refuses are replaced. Ours run as they are, with two
threads, with half floats and bf16 as storage, and as a batch of three, TOGETHER side by side in one net, since starting
the program takes longest; ncnn's answers are its plain fp32 ones throughout, of one layer at a time.
"""
import dataclasses
import functools
import importlib
import os
import pathlib
import tempfile
import zlib

import ncnn
import layer_configs
import numpy as np
import pytest

from conftest import enginerun_of_device, run_program

# (operator, generator of a Config) of layer_configs.py and layer_configs_<family>.py; an operator may be in several.
GENERATORS = [pytest.param(op, make, id=op + path.stem.removeprefix('layer_configs').replace('_', '-'))
              for path in sorted(pathlib.Path(__file__).parent.glob('layer_configs*.py'))
              for op, make in sorted(importlib.import_module(path.stem).GENERATORS.items())]
PROGRAM, ON_GPU = enginerun_of_device()
CONFIGS = int(os.environ.get('QUOLL_ORACLE_CONFIGS', '50'))
TOGETHER = 25
# Largest error allowed, in units of the largest output: float sums in another order, and exp/pow approximations on both sides.
TOLERANCE = 1e-4
# How often the storage rounds: a device also stores the queries, keys, values and weighted sums within attention.
ROUNDINGS = {'MultiHeadAttention': 5} if ON_GPU else {}
# Rounded inputs have equal scores, and values half way between two of bf16, which ncnn puts in another order and rounds up.
TIES = ('DetectionOutput', 'Proposal', 'YoloDetectionOutput', 'Cast')


def tags(configs):
    """What the names of each net end in."""
    return [''] if len(configs) == 1 else [f'_{k}' for k in range(len(configs))]


def net_lines(op, config, tag):
    """A net's lines and the number of its blobs."""
    inputs = [f'in{i}{tag}' for i in range(len(config.inputs))]
    outputs = [f'out{i}{tag}' for i in range(config.outputs)]
    lines = [f'Input {name} 0 1 {name}' for name in inputs]
    made = [f'inner{tag}'] if config.tail else outputs
    lines.append(f"{op} op{tag} {len(inputs)} {len(made)} {' '.join(inputs + made)} {config.params}")
    if config.tail:
        kind, params = config.tail.split(' ', 1)
        lines.append(f'{kind} tail{tag} 1 1 inner{tag} out0{tag} {params}')
    return lines, len(inputs) + len(outputs) + bool(config.tail)


def param_text(op, *configs):
    """A net, or several side by side."""
    nets = [net_lines(op, config, tag) for config, tag in zip(configs, tags(configs))]
    lines = [line for net, _ in nets for line in net]
    return f'7767517\n{len(lines)} {sum(blobs for _, blobs in nets)}\n' + '\n'.join(lines) + '\n'


def one_weight(kind, values):
    if kind in ('int8', 'bytes'):  # with and without tag, padded to 4 bytes
        return (0x000D4B38.to_bytes(4, 'little') if kind == 'int8' else b'') + values.astype(np.int8).tobytes() + bytes(-values.size % 4)
    return (bytes(4) if kind == 'tagged' else b'') + np.ascontiguousarray(values, np.float32).tobytes()


def weight_bytes(config):
    return b''.join(one_weight(kind, values) for kind, values in config.weights)


def write_nets(folder, op, *configs):
    (folder / 'm.param').write_text(param_text(op, *configs))
    (folder / 'm.bin').write_bytes(b''.join(map(weight_bytes, configs)))


def load_ncnn(folder):
    """None when it refuses."""
    net = ncnn.Net()
    for name in ('use_fp16_storage', 'use_fp16_packed', 'use_fp16_arithmetic', 'use_bf16_storage', 'use_packing_layout', 'use_winograd_convolution'):
        setattr(net.opt, name, False)
    net.opt.num_threads = 1
    return net if net.load_param(str(folder / 'm.param')) == 0 and net.load_model(str(folder / 'm.bin')) == 0 else None


def extract_ncnn(net, config, tag=''):
    """ncnn's plain fp32 answers, or None when it refuses."""
    ex = net.create_extractor()
    for i, x in enumerate(config.inputs):
        ex.input(f'in{i}{tag}', ncnn.Mat(x).clone())
    answers = []
    for i in range(config.outputs):
        status, out = ex.extract(f'out{i}{tag}')
        if status != 0 or out.dims == 0:
            return None
        answers.append(np.array(out))
    return answers


def run_ncnn(folder, op, config):
    write_nets(folder, op, config)
    net = load_ncnn(folder)
    return None if net is None else extract_ncnn(net, config)


def run_together(folder, op, configs, *args):
    write_nets(folder, op, *configs)
    command, named = [folder / 'm.param', folder / 'm.bin', *args, *ON_GPU], list(zip(configs, tags(configs)))
    for config, tag in named:
        for i, x in enumerate(config.inputs):
            np.save(folder / f'in{i}{tag}.npy', x)
            command += ['--input', f'in{i}{tag}={folder}/in{i}{tag}.npy']
        for i in range(config.outputs):
            command += ['--output', f'out{i}{tag}={folder}/out{i}{tag}.npy']
    done = run_program(PROGRAM, *command)
    if done.returncode == 0:
        return [[np.load(folder / f'out{i}{tag}.npy') for i in range(config.outputs)] for config, tag in named]
    message = f'exit {done.returncode}: {done.stderr.strip()}'
    if len(configs) == 1:
        return [message]
    alone = [run_together(folder, op, [config], *args)[0] for config in configs]
    assert any(isinstance(answers, str) for answers in alone), f'nets that run alone do not side by side: {message}'
    return alone


def run_quoll(folder, op, configs, *args):
    """The answers to each config, or what the program says where it fails."""
    return [answers for first in range(0, len(configs), TOGETHER)
            for answers in run_together(folder, op, configs[first:first + TOGETHER], *args)]


def stored(x, kind):
    """The values of x that half floats or bf16 hold exactly: its nearest, in fp32."""
    if x.dtype != np.float32:
        return x
    if kind == 'fp16':
        return x.astype(np.float16).astype(np.float32)
    bits = x.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


def with_storage(config, kind):
    """The config with inputs and weights that the storage holds exactly, so that only outputs are rounded."""
    return dataclasses.replace(config, inputs=[stored(x, kind) for x in config.inputs],
                               weights=[(k, stored(v, kind)) for k, v in config.weights])


def compare(ours, theirs, tolerance=TOLERANCE):
    """A description of the difference, or None."""
    if isinstance(ours, str):
        return ours
    for i, (a, b) in enumerate(zip(ours, theirs)):
        if a.dtype == np.uint16 or b.dtype != np.float32:
            continue
        if a.shape != b.shape:
            return f'output {i}: shape {a.shape}, ncnn {b.shape}'
        finite = np.isfinite(b)
        if not finite.any():
            continue
        error = np.abs(a[finite].astype(np.float64) - b[finite]).max() / max(1e-3, np.abs(b[finite]).max())
        if not error <= tolerance:
            return f'output {i}: error {error:.2e} of the range'
    return None


def roi_bins(first, last, scale, count, size, from_below):
    """First and last + 1 index of each bin of an axis."""
    def rounded(v):
        return np.float32(np.copysign(np.floor(np.abs(v) + np.float32(0.5)), v))
    begin, end = rounded(first * scale), rounded(last * scale)
    width = np.maximum(end - begin + np.float32(1), np.float32(1)) / np.float32(count)
    if from_below:
        width = np.nextafter(width, np.float32(0))
    edges = [(begin + np.floor(np.float32(i) * width), begin + np.ceil(np.float32(i + 1) * width)) for i in range(count)]
    return [tuple(int(np.clip(e, 0, size)) for e in pair) for pair in edges]


def compare_bins(ours, theirs, config):
    """ncnn's wheel multiplies by an approximate reciprocal of the number of bins (-Ofast), which differs between makers of
    processors: a bin comes out one step below the quotient, always on Intel's, for some numbers on AMD's. Ours is below."""
    values = dict(word.split('=') for word in config.params.split())
    counts, scale = (int(values['0']), int(values['1'])), np.float32(values['2'])
    x, region = config.inputs[0], np.float32(config.inputs[1]).ravel()

    def pooled(below_w, below_h):
        xs = roi_bins(region[0], region[2], scale, counts[0], x.shape[2], below_w)
        ys = roi_bins(region[1], region[3], scale, counts[1], x.shape[1], below_h)
        return np.array([[[q[y0:y1, x0:x1].max() if y0 < y1 and x0 < x1 else 0 for x0, x1 in xs] for y0, y1 in ys] for q in x],
                        dtype=np.float32)
    if not np.array_equal(ours, pooled(True, True)):
        return 'output 0: not the maxima of bins from below'
    if not any(np.array_equal(theirs, pooled(w, h)) for w in (False, True) for h in (False, True)):
        return 'output 0: ncnn has bins of neither rounding'
    return None


def compare_outputs(op, config, ours, theirs, tolerance=TOLERANCE):
    difference = compare(ours, theirs, tolerance)
    return compare_bins(ours[0], theirs[0], config) if difference and op == 'ROIPooling' and not isinstance(ours, str) else difference


@functools.lru_cache(maxsize=4)
def taken_by_ncnn(op, make, kind=None, fits=None):
    """CONFIGS random configs that ncnn takes, with its answers; of a `kind` of storage, of those that fit."""
    rng, taken, tried = np.random.default_rng(zlib.crc32(op.encode())), [], 0
    with tempfile.TemporaryDirectory() as folder:
        while len(taken) < CONFIGS and tried < 4 * CONFIGS:
            tried += 1
            config = with_storage(make(rng), kind) if kind else make(rng)
            answers = run_ncnn(pathlib.Path(folder), op, config) if not fits or fits(config) else None
            if answers is not None:
                taken.append((config, answers))
    assert len(taken) >= 30, f'only {len(taken)} of {tried} configurations were accepted by ncnn'
    return taken


def expect_none(op, configs, differences):
    wrong = [f'{op} {config.params} on {[x.shape for x in config.inputs]}: {difference}'
             for config, difference in zip(configs, differences, strict=True) if difference]
    assert not wrong, f'{len(wrong)} of {len(configs)} differ from ncnn:\n' + '\n'.join(wrong[:10])


@pytest.mark.parametrize('threads', ['1'] if ON_GPU else ['1', '2'])
@pytest.mark.parametrize('op, make', GENERATORS)
def test_operator_agrees_with_ncnn(op, make, threads, tmp_path):
    taken = taken_by_ncnn(op, make)
    configs = [config for config, _ in taken]
    expect_none(op, configs, [compare_outputs(op, config, ours, theirs) for (config, theirs), ours
                              in zip(taken, run_quoll(tmp_path, op, configs, '--threads', threads), strict=True)])


@pytest.mark.parametrize('op, make', [g for g in GENERATORS if g.values[0] != 'MemoryData'])
def test_batch_agrees_with_ncnn(op, make, tmp_path):
    """Three items: the inputs, the inputs mirrored along their last axis, and the inputs once more."""
    items, batches = [], []
    for config, theirs in taken_by_ncnn(op, make):
        mirrored = dataclasses.replace(config, inputs=[x if 'ROI' in op and i else x[..., ::-1].copy()  # regions end where they begin
                                                       for i, x in enumerate(config.inputs)])
        other = run_ncnn(tmp_path, op, mirrored) if config.inputs else None
        if other is None or any(a.shape != b.shape for a, b in zip(theirs, other)):
            continue
        items.append([(config, theirs), (mirrored, other), (config, theirs)])
        batches.append(dataclasses.replace(config, inputs=[np.stack([a, b, a]) for a, b in zip(config.inputs, mirrored.inputs)]))

    def compare_items(three, ours):
        if isinstance(ours, str):
            return ours
        found = [compare_outputs(op, source, [x[item] for x in ours], answers) for item, (source, answers) in enumerate(three)]
        return next((f'item {item}: {difference}' for item, difference in enumerate(found) if difference), None)
    ours = run_quoll(tmp_path, op, batches, '--batch')
    expect_none(op, batches, [compare_items(three, x) for three, x in zip(items, ours, strict=True)])


@pytest.mark.parametrize('op, make', GENERATORS)
def test_written_files_are_ncnns(op, make, tmp_path):
    """What engineoptimize writes, which leaves out parameters that equal a default, means the same to ncnn."""
    rng, taken = np.random.default_rng(zlib.crc32(op.encode())), []
    for config in [make(rng) for _ in range(10)]:
        want = run_ncnn(tmp_path, op, config)
        if want is not None:
            taken.append((config, want))
    assert len(taken) >= 3
    configs = [config for config, _ in taken]
    write_nets(tmp_path, op, *configs)
    (tmp_path / 'written').mkdir()
    done = run_program('engineoptimize', '--no-fusion', *(folder / name for folder in (tmp_path, tmp_path / 'written') for name in ('m.param', 'm.bin')), '0')
    assert done.returncode == 0, f'{[config.params for config in configs]}: {done.stderr}'
    net = load_ncnn(tmp_path / 'written')
    assert net is not None, [config.params for config in configs]
    for (config, want), tag in zip(taken, tags(configs), strict=True):
        got = extract_ncnn(net, config, tag)
        assert got is not None, config.params
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a, b, config.params)


# Largest rounding error of the storage, in parts of the largest output.
@pytest.mark.parametrize('kind, rounding', [('fp16', 2.0**-11), ('bf16', 2.0**-8)])
@pytest.mark.parametrize('op, make', GENERATORS)
def test_storage_agrees_with_ncnn(op, make, kind, rounding, tmp_path):
    largest = 65504 if kind == 'fp16' else 3.3895e38  # what is larger becomes infinite: the maximum of no values is
    taken = taken_by_ncnn(op, make, kind)
    configs = [config for config, _ in taken]
    wanted = [[np.where(np.abs(x) > largest, np.nan, x) if x.dtype == np.float32 else x for x in theirs] for _, theirs in taken]
    ours = run_quoll(tmp_path, op, configs, '--precision', kind)
    found = [compare_outputs(op, config, a, b, TOLERANCE + rounding * ROUNDINGS.get(op, 1)) for config, a, b in zip(configs, ours, wanted, strict=True)]
    if op in TIES:
        plain = run_quoll(tmp_path, op, configs)
        found = [(a if isinstance(a, str) else None) if compare(a, b) else difference
                 for difference, a, b in zip(found, plain, wanted, strict=True)]
    expect_none(op, configs, found)


def test_ties_of_yolov3(tmp_path):
    """Boxes of equal score: ncnn has the same ones with the same scores, in the order of its quicksort; ours is that of inputs,
    anchors, rows and columns. Which of two that overlap is kept follows from the order, so nothing is suppressed here."""
    rng, make = np.random.default_rng(59), layer_configs.yolov3_detection_output
    reordered = 0
    for _ in range(20):
        config = make(rng)
        config.params = config.params.replace(' 3=0.45 ', ' 3=1.0 ')
        config.inputs = [np.round(x) for x in config.inputs]
        for x in config.inputs:
            places = np.arange(x[0].size, dtype=np.float32).reshape(x[0].shape) / 512
            for anchor in range(3):  # x tells where a box comes from
                x[anchor * x.shape[0] // 3] = places + anchor / 8
        alone = [dataclasses.replace(config, inputs=[x if i == k else np.full_like(x, -30) for i, x in enumerate(config.inputs)])
                 for k in range(2)]
        theirs = run_ncnn(tmp_path, 'Yolov3DetectionOutput', config)[0]
        (ours,), *parts = run_quoll(tmp_path, 'Yolov3DetectionOutput', [config, *alone])
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours[:, 1], theirs[:, 1], 1e-5)
        in_order = [np.lexsort(np.round(np.concatenate([a[:, 2:], a[:, :1], a[:, 1:2]], 1).T, 4)) for a in (ours, theirs)]
        np.testing.assert_allclose(ours[in_order[0]], theirs[in_order[1]], 1e-4, 1e-4)
        reordered += not np.allclose(ours, theirs, 1e-4, 1e-4)
        rows = np.concatenate([rows for rows, in parts])
        np.testing.assert_array_equal(ours, rows[np.argsort(-rows[:, 1], kind='stable')])
    assert reordered > 10
