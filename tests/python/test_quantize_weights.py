"""enginequantize: kinds that store weights alone or scale activations in each run, against NumPy."""
import os

import numpy as np
import pytest

from engine import run_engine
from quantizing import DIGITS, digits, digits_model, one_layer, quantize

pytestmark = pytest.mark.skipif('ENGINERUN_PREFIX' in os.environ, reason='the same on every machine')


@pytest.mark.parametrize('kind, least', [('weights8', 40), ('table8', 30), ('fp16', 60), ('bf16', 40), ('dynamic', 30)])
def test_kinds_without_data(kind, least, digits, tmp_path):
    _, images, _ = digits
    out = tmp_path / 'q'
    quantize(digits_model(), out, '--kind', kind)
    before = run_engine(*digits_model(), {'data': images}, ['fc'], '--batch')['fc']
    after = run_engine(f'{out}.param', f'{out}.bin', {'data': images}, ['fc'], '--batch')['fc']
    sqnr = 10 * np.log10((before ** 2).sum() / ((before - after.reshape(before.shape)) ** 2).sum())
    assert least < sqnr < 120
    assert os.path.getsize(f'{out}.bin') < os.path.getsize(DIGITS / 'digits.bin')


def test_values_beyond_f16(tmp_path):
    """They stay in float, and are said to."""
    model = one_layer(tmp_path, np.array([[1e5, 2, 3, 4]], np.float32))
    done = quantize(model, tmp_path / 'q', '--kind', 'fp16')
    assert 'float      1 layers' in done.stdout and 'fp16 ' not in done.stdout
    assert '[InnerProduct fc] stays in float' in done.stderr


def product(folder, op, weight, bias):
    """Rows of weight.shape[1] values times weight, by InnerProduct with bias or by Gemm, whose B is [K][N] unless turned."""
    n, k = weight.shape
    line = {'InnerProduct': f'0={n} 1=1 2={n * k}', 'Gemm': f'5=1 8={n} 9={k}', 'GemmT': f'3=1 5=1 8={n} 9={k}'}[op]
    (folder / 'm.param').write_text(f'7767517\n2 2\nInput in 0 1 data 0={k} 1=5\n{op.rstrip("T")} fc 1 1 data out {line}\n')
    values = weight.T if op == 'Gemm' else weight
    parts = [[0], values.ravel()] + ([bias] if op == 'InnerProduct' else [])
    np.concatenate(parts).astype(np.float32).tofile(folder / 'm.bin')
    return folder / 'm.param', folder / 'm.bin'


@pytest.mark.parametrize('op', ['InnerProduct', 'Gemm', 'GemmT'])
@pytest.mark.parametrize('bits, block', [(8, 64), (6, 64), (3, 32), (4, 32), (4, 128), (4, 16)])
def test_blocks(bits, block, op, tmp_path):
    rng = np.random.default_rng(bits + block)
    n, k = 24, 200
    weight, bias = rng.normal(size=(n, k)).astype(np.float32), rng.normal(size=n).astype(np.float32)
    quantize(product(tmp_path, op, weight, bias), tmp_path / 'q', '--kind', f'block{bits}x{block}')
    x = rng.normal(size=(5, k)).astype(np.float32)
    got = run_engine(tmp_path / 'q.param', tmp_path / 'q.bin', {'data': x}, ['out'])['out']
    # Rounding to nearest with the largest value of each block at the end of the range is what has to be beaten.
    rounded = weight.copy()
    for begin in range(0, k, block):
        part = rounded[:, begin:begin + block]
        step = np.abs(part).max(1, keepdims=True) / (2 ** (bits - 1) - 1)
        rounded[:, begin:begin + block] = np.rint(part / step) * step
    exact = x @ weight.T + (bias if op == 'InnerProduct' else 0)
    error, plain = ((got - exact) ** 2).sum(), ((x @ (rounded - weight).T) ** 2).sum()
    assert 0 < error < 1.1 * plain
    assert os.path.getsize(tmp_path / 'q.bin') < n * k * bits / 8 * 1.6 + 4 * n + 600


@pytest.mark.parametrize('op', ['InnerProduct', 'Gemm', 'GemmT'])
def test_dynamic_products(op, tmp_path):
    rng = np.random.default_rng(9)
    weight, bias = rng.normal(size=(24, 200)).astype(np.float32), rng.normal(size=24).astype(np.float32)
    quantize(product(tmp_path, op, weight, bias), tmp_path / 'q', '--kind', 'dynamic')
    for size in 1e-3, 1, 1e3:  # whatever the size of the input
        x = (size * rng.normal(size=(5, 200))).astype(np.float32)
        got = run_engine(tmp_path / 'q.param', tmp_path / 'q.bin', {'data': x}, ['out'])['out']
        exact = x @ weight.T + (bias if op == 'InnerProduct' else 0)
        assert 0 < ((got - exact) ** 2).sum() < 1e-3 * ((x @ weight.T) ** 2).sum()


@pytest.mark.parametrize('direction', [0, 2])
@pytest.mark.parametrize('op, gates, biases', [('LSTM', 4, 4), ('GRU', 3, 4), ('RNN', 1, 1)])
def test_dynamic_recurrent(op, gates, biases, direction, tmp_path):
    """Near the float layer, a quarter of its size, and read by the ncnn wheel, whose int8 layers give the same."""
    rng = np.random.default_rng(gates + direction)
    size, hidden, directions = 48, 40, 1 + direction // 2
    (tmp_path / 'm.param').write_text(f'7767517\n2 2\nInput in 0 1 data 0={size} 1=12\n'
                                      f'{op} rec 1 1 data out 0={hidden} 1={directions * gates * hidden * size} 2={direction}\n')
    parts = [part for count in (gates * size, biases, gates * hidden)
             for part in ([0], 0.2 * rng.normal(size=directions * hidden * count))]
    np.concatenate(parts).astype(np.float32).tofile(tmp_path / 'm.bin')
    quantize((tmp_path / 'm.param', tmp_path / 'm.bin'), tmp_path / 'q', '--kind', 'dynamic')
    assert ' 8=2' in (tmp_path / 'q.param').read_text()
    assert os.path.getsize(tmp_path / 'q.bin') < 0.32 * os.path.getsize(tmp_path / 'm.bin')
    x = rng.normal(size=(12, size)).astype(np.float32)
    exact = run_engine(tmp_path / 'm.param', tmp_path / 'm.bin', {'data': x}, ['out'])['out']
    got = run_engine(tmp_path / 'q.param', tmp_path / 'q.bin', {'data': x}, ['out'])['out']
    assert 0 < ((got - exact) ** 2).sum() < 1e-3 * (exact ** 2).sum()
    ncnn = pytest.importorskip('ncnn')
    net = ncnn.Net()
    assert net.load_param(str(tmp_path / 'q.param')) == 0 and net.load_model(str(tmp_path / 'q.bin')) == 0
    ex = net.create_extractor()
    ex.input('data', ncnn.Mat(x))
    np.testing.assert_allclose(np.array(ex.extract('out')[1]), got, atol=0.01)
    del ex  # before the net


@pytest.mark.parametrize('kind', ['block4', 'int8', 'affine'])
def test_reconstruction(kind, tmp_path):
    """Inputs that go together: errors of their weights may make up for each other."""
    rng = np.random.default_rng(13)
    n, k = 24, 128
    weight = rng.normal(size=(n, k)).astype(np.float32)
    mix = rng.normal(size=(12, k))
    draw = lambda count: (rng.normal(size=(count, 12)) @ mix + 0.1 * rng.normal(size=(count, k))).astype(np.float32)
    np.save(tmp_path / 'x.npy', draw(40 * 16).reshape(40, 16, k))
    model, noise = product(tmp_path, 'InnerProduct', weight, np.zeros(n, np.float32)), {}
    x = draw(200)
    for rounding in 'nearest', 'reconstruct':
        quantize(model, tmp_path / 'q', '--kind', kind, '--method', 'mse', '--rounding', rounding, '--data', tmp_path / 'x.npy', '--holdout', 0, '--no-bias-correction')
        got = run_engine(tmp_path / 'q.param', tmp_path / 'q.bin', {'data': x}, ['out'])['out']
        noise[rounding] = ((got - x @ weight.T) ** 2).sum()
    assert noise['reconstruct'] < (0.3 if kind == 'block4' else 0.8) * noise['nearest']


@pytest.mark.parametrize('op', ['InnerProduct', 'Gemm'])
def test_factors_of_inputs(op, tmp_path):
    """Weights that meet the few large values of a row are rounded finer, by factors that ncnn's format has."""
    rng = np.random.default_rng(16)
    n, k = 32, 128
    weight, sizes = rng.normal(size=(n, k)).astype(np.float32), np.ones(k)
    sizes[rng.choice(k, 6, replace=False)] = 30
    draw = lambda count: (rng.normal(size=(count, k)) * sizes).astype(np.float32)
    np.save(tmp_path / 'x.npy', draw(40 * 5).reshape(40, 5, k))
    model, x, noise = product(tmp_path, op, weight, np.zeros(n, np.float32)), draw(5), {}
    for more in [], ['--no-equalize']:
        quantize(model, tmp_path / 'q', '--kind', 'block4', '--data', tmp_path / 'x.npy', '--holdout', 0, *more)
        got = run_engine(tmp_path / 'q.param', tmp_path / 'q.bin', {'data': x}, ['out'])['out']
        plain = run_engine(tmp_path / 'q.param', tmp_path / 'q.bin', {'data': x}, ['out'], '--reference')['out']
        np.testing.assert_allclose(got, plain, atol=1e-4 * np.abs(plain).max())
        noise[bool(more)] = ((got - x @ weight.T) ** 2).sum()
    assert noise[False] < 0.7 * noise[True]


@pytest.mark.parametrize('rounding', ['nearest', 'reconstruct'])
def test_blocks_with_zero_points(rounding, tmp_path):
    """Weights on one side of zero: all 16 integers are of use."""
    rng = np.random.default_rng(17)
    n, k = 24, 200
    weight = rng.uniform(0.2, 1, size=(n, k)).astype(np.float32)
    np.save(tmp_path / 'x.npy', rng.normal(size=(40, 5, k)).astype(np.float32))
    model, x, noise = product(tmp_path, 'InnerProduct', weight, np.zeros(n, np.float32)), rng.normal(size=(5, k)).astype(np.float32), {}
    for kind in 'block4x32', 'block4x32z':
        quantize(model, tmp_path / 'q', '--kind', kind, '--data', tmp_path / 'x.npy', '--holdout', 0, '--rounding', rounding)
        got = run_engine(tmp_path / 'q.param', tmp_path / 'q.bin', {'data': x}, ['out'])['out']
        noise[kind] = ((got - x @ weight.T) ** 2).sum()
    assert noise['block4x32z'] < 0.4 * noise['block4x32']
