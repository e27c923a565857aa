"""Random networks (random_network.py) against ONNX Runtime: as they are, in smaller floats, quantised, on a Vulkan device.

QUOLL_MODELS=FIRST:COUNT takes other seeds.
"""
import os

import numpy as np
import pytest

onnx = pytest.importorskip('onnx')
pytest.importorskip('onnxruntime')

from onnx_run import GPU, has_gpu, run  # noqa: E402
from random_network import convolutional, transformer  # noqa: E402
from test_quantized import KINDS, quantise, reference  # noqa: E402

FIRST, COUNT = map(int, os.environ.get('QUOLL_MODELS', '0:24').split(':'))
SEEDS = range(FIRST, FIRST + COUNT)
# By --precision: error as a share of the range where nothing amplifies it, and the input's change, as a share of each value, that
# has an effect as large as the rounding of all blobs.
BOUNDS = {'fp32': (2e-5, 2e-5), 'fp16': (1e-2, 2e-3), 'bf16': (5e-2, 8e-3)}


@pytest.fixture(scope='module')
def gpu():
    if not has_gpu():
        pytest.skip('no Vulkan device')


def range_of_sums(model, x, want, folder):
    """The range of the output, or of what a ReLU in the end cuts off: values are rounded before that, by shares of their own size."""
    last = model.graph.node[-1]
    if last.op_type != 'Relu':
        return np.ptp(want)
    before = onnx.ModelProto()
    before.CopyFrom(model)
    del before.graph.output[:]
    before.graph.output.append(onnx.helper.make_tensor_value_info(last.input[0], onnx.TensorProto.FLOAT, None))
    onnx.save(before, folder / 'before.onnx')
    return np.ptp(next(iter(reference(folder / 'before.onnx', {'x': x}).values())))


def check(made, seed, precision, folder, *options):
    model, shape = made
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape).astype(np.float32)
    onnx.save(model, folder / 'm.onnx')
    name, want = next(iter(reference(folder / 'm.onnx', {'x': x}).items()))
    least, change = BOUNDS[precision]
    moved = (x * (1 + change * rng.choice([-1, 1], x.shape))).astype(np.float32)
    moves = np.abs(reference(folder / 'm.onnx', {'x': moved})[name] - want).max()
    got = run((folder / 'm.onnx',), {'x': x}, [name], folder, '--precision', precision, *options)[name]
    assert got.shape == want.shape
    spread = np.ptp(want) if precision == 'fp32' else range_of_sums(model, x, want, folder)
    assert np.abs(got - want).max() <= max(least * spread, moves), onnx.printer.to_text(model)[:3000]


@pytest.mark.parametrize('network', [convolutional, transformer])
@pytest.mark.parametrize('seed', SEEDS)
def test_floats(network, seed, tmp_path):
    check(network(seed), seed, 'fp32', tmp_path, '--threads', str(1 + 2 * (seed % 2)))
    check(network(seed), seed, ('bf16', 'fp16')[seed % 2], tmp_path)


@pytest.mark.parametrize('network', [convolutional, transformer])
@pytest.mark.parametrize('seed', SEEDS)
def test_gpu(network, seed, tmp_path, gpu):
    check(network(seed), seed, ('fp32', 'fp16', 'fp32', 'bf16')[seed % 4], tmp_path, '--gpu', GPU or '0')


@pytest.mark.parametrize('seed', SEEDS)
def test_quantised(seed, tmp_path):
    """Beside ONNX Runtime's answer of the same file. A value may fall on the other side of a step of the quantisation, and what
    follows with it: as far as it does where the input moves by less than a step."""
    model, shape = convolutional(seed)
    onnx.save(model, tmp_path / 'm.onnx')
    rng = np.random.default_rng(seed)
    samples = [{'x': rng.normal(size=shape).astype(np.float32)} for _ in range(3)]
    path = quantise(tmp_path / 'm.onnx', tmp_path, sorted(KINDS)[seed % len(KINDS)], samples)
    x = samples[0]['x']
    want = reference(path, {'x': x})
    name = next(iter(want))
    moved = reference(path, {'x': x + rng.normal(0, 0.004, x.shape).astype(np.float32)})[name]
    got = run((path,), {'x': x}, [name], tmp_path, '--threads', str(1 + 2 * (seed % 2)))[name]
    span = np.ptp(want[name])
    error, moves = np.abs(got - want[name]), np.abs(moved - want[name])
    assert got.shape == want[name].shape
    assert error.max() <= 3 * moves.max() + 0.02 * span
    assert error.mean() <= 2 * moves.mean() + 0.003 * span
