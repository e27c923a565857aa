"""enginequantize: static int8 of each kind of layer, with zero points, against NumPy, and channels equalised."""
import json
import os
import re

import numpy as np
import pytest

from engine import run_engine
from quantizing import digits, digits_model, one_layer, quantize

pytestmark = pytest.mark.skipif('ENGINERUN_PREFIX' in os.environ, reason='the same on every machine')


def test_equalisation(tmp_path):
    """A depthwise convolution behind channels of very different size: as good as if they were alike, and the same in float."""
    rng = np.random.default_rng(11)
    c, k = 12, 9
    sizes = np.geomspace(0.01, 10, c).astype(np.float32)
    first, second = rng.normal(size=(c, 3)).astype(np.float32), rng.normal(size=(c, k)).astype(np.float32)
    bias = rng.normal(size=c).astype(np.float32) * sizes
    (tmp_path / 'm.param').write_text(
        f'7767517\n3 3\nInput in 0 1 data 0=16 1=16 2=3\nConvolution a 1 1 data a 0={c} 1=1 5=1 6={c * 3} 9=1\n'
        f'ConvolutionDepthWise b 1 1 a out 0={c} 1=3 4=1 6={c * k} 7={c}\n')
    np.concatenate([[0], (first * sizes[:, None]).ravel(), bias, [0], (second / sizes[:, None]).ravel()]).astype(np.float32).tofile(
        tmp_path / 'm.bin')
    x = rng.normal(size=(30, 3, 16, 16)).astype(np.float32)
    np.save(tmp_path / 'x.npy', x)
    model = tmp_path / 'm.param', tmp_path / 'm.bin'
    exact = run_engine(*model, {'data': x[0]}, ['out'])['out']
    sqnr = []
    for more in ['--no-equalize'], [], ['--layer', 'a=float', '--layer', 'b=float']:
        quantize(model, tmp_path / 'q', '--data', tmp_path / 'x.npy', '--method', 'minmax', *more)
        got = run_engine(tmp_path / 'q.param', tmp_path / 'q.bin', {'data': x[0]}, ['out'])['out']
        noise = ((got - exact) ** 2).sum((1, 2))
        sqnr.append(10 * np.log10((exact ** 2).sum((1, 2)) / np.maximum(noise, 1e-20)))
    plain, equalised, in_float = sqnr
    assert plain.min() < 0 and equalised.min() > 25 and in_float.min() > 100


@pytest.mark.parametrize('norm', ['LayerNorm', 'RMSNorm'])
@pytest.mark.parametrize('kind', ['int8', 'dynamic'])
def test_smooth_norms(norm, kind, tmp_path):
    """A transformer's rows with a few values far beyond the others: weights take over what is hard about them."""
    rng = np.random.default_rng(15)
    k, n = 64, 32
    gamma, beta = rng.uniform(0.5, 1.5, k).astype(np.float32), rng.normal(size=k).astype(np.float32)
    gamma[[3, 40]] *= 60
    weights = [rng.normal(size=(n, k)).astype(np.float32) for _ in range(2)]
    (tmp_path / 'm.param').write_text(
        f'7767517\n5 6\nInput in 0 1 data 0={k} 1=10\n{norm} norm 1 1 data y 0={k} 1=1e-5\nSplit split 1 2 y y0 y1\n'
        f'InnerProduct a 1 1 y0 outa 0={n} 2={n * k}\nInnerProduct b 1 1 y1 outb 0={n} 2={n * k}\n')
    tag = np.zeros(1, np.float32)
    np.concatenate([gamma] + ([beta] if norm == 'LayerNorm' else []) + [tag, weights[0].ravel(), tag, weights[1].ravel()]).tofile(tmp_path / 'm.bin')
    x = rng.normal(size=(40, 10, k)).astype(np.float32)
    np.save(tmp_path / 'x.npy', x)
    model, noise = (tmp_path / 'm.param', tmp_path / 'm.bin'), {}
    exact = run_engine(*model, {'data': x[0]}, ['outa', 'outb'])
    for more in [], ['--no-equalize']:
        done = quantize(model, tmp_path / 'q', '--data', tmp_path / 'x.npy', '--holdout', 0, '--kind', kind, '--method', 'minmax', *more)
        assert ('equalised  1 blobs' in done.stdout) == (not more)
        got = run_engine(tmp_path / 'q.param', tmp_path / 'q.bin', {'data': x[0]}, ['outa', 'outb'])
        noise[bool(more)] = sum(((got[o] - exact[o]) ** 2).sum() for o in exact)
    assert 0 < noise[False] < 0.3 * noise[True]


def zero_point_product(x, weight, bias, low, high):
    """As affine8.h describes: 256 steps from low to high, 0 among them."""
    step = (high - low) / 255
    zero = np.clip(np.rint(-low / step - 128), -128, 127)
    q = np.clip(np.rint(x / step) + zero, -128, 127) - zero
    scales = 127 / np.abs(weight).max(1)
    w = np.clip(np.sign(weight) * np.floor(np.abs(weight * scales[:, None]) + 0.5), -127, 127)
    return (w @ q) * step / scales + bias


@pytest.mark.parametrize('low, high', [(0, 3), (-0.3, 2), (-4, 0), (-1, 1)])
def test_zero_points(low, high, tmp_path):
    rng = np.random.default_rng(12)
    weight, bias = rng.integers(-127, 128, (7, 33)).astype(np.float32), rng.normal(size=7).astype(np.float32)
    weight[:, 3] = 127  # weights are exact, all noise is the input's
    x = rng.uniform(low, high, (50, 33)).astype(np.float32)
    x[0, :2] = low, high
    np.save(tmp_path / 'x.npy', x)
    model, args = one_layer(tmp_path, weight, bias), ('--data', tmp_path / 'x.npy', '--method', 'minmax', '--no-bias-correction', '--holdout', 0)
    noise = {}
    for kind in 'int8', 'affine':
        out = tmp_path / kind
        quantize(model, out, *args, '--kind', kind)
        got = np.stack([run_engine(f'{out}.param', f'{out}.bin', {'data': v}, ['out'])['out'] for v in x[:8]])
        noise[kind] = ((got - (x[:8] @ weight.T + bias)) ** 2).sum()
    expected = np.stack([zero_point_product(v, weight, bias, low, high) for v in x[:8]])
    # One value of the input may lie between two steps and be rounded the other way.
    assert np.abs(got - expected).max() < 1.5 * (high - low) / 255 * np.abs(weight).max()
    assert np.mean(np.abs(got - expected) < 1e-3) > 0.8
    if low == 0:  # twice the steps: a quarter of the input's part of the noise
        assert noise['affine'] < 0.35 * noise['int8']


def test_zero_points_between_layers(digits, tmp_path):
    """Of a whole net: nearer than without them, int8 between layers, and the same answers by the scalar reference."""
    folder, images, _ = digits
    reports = {}
    for kind in 'int8', 'affine':
        out = tmp_path / kind
        quantize(digits_model(), out, '--data', folder / 'x.npy', '--holdout', 0.5, '--method', 'mse', '--kind', kind, '--report', tmp_path / kind)
        reports[kind] = json.loads((tmp_path / kind / 'report.json').read_text())
    assert reports['affine']['accuracy']['sqnr_db'] > reports['int8']['accuracy']['sqnr_db'] + 1
    assert {layer['kind'] for layer in reports['affine']['layers']} == {'affine'}
    files = tmp_path / 'affine.param', tmp_path / 'affine.bin'
    answers = [run_engine(*files, {'data': images[:40]}, ['prob'], '--batch', *args)['prob'] for args in ([], ['--reference', '--no-fusion'])]
    np.testing.assert_allclose(answers[0], answers[1], atol=0.02)


def convolutions_of_one_axis(folder):
    """16 channels of 50 places: a convolution, one for each channel, one of two places at a time; ReLU between."""
    rng = np.random.default_rng(5)
    (folder / 'm.param').write_text(
        '7767517\n4 4\nInput in 0 1 data 0=50 1=16\nConvolution1D a 1 1 data a 0=24 1=3 4=1 5=1 6=1152 9=1\n'
        'ConvolutionDepthWise1D b 1 1 a b 0=24 1=5 4=2 5=1 6=120 7=24 9=1\nConvolution1D c 1 1 b out 0=10 1=2 3=2 5=1 6=480\n')
    parts = []
    for count, outputs in (1152, 24), (120, 24), (480, 10):
        parts += [np.zeros(1), rng.normal(size=count) * (outputs / count) ** 0.5, rng.normal(size=outputs)]
    np.concatenate(parts).astype(np.float32).tofile(folder / 'm.bin')
    return (folder / 'm.param', folder / 'm.bin'), rng.normal(size=(40, 16, 50)).astype(np.float32)


def test_convolutions_of_one_axis(tmp_path):
    """int8 with zero points, as near as convolutions of two axes; int8 from one to the next; float where ncnn's format has no int8."""
    model, x = convolutions_of_one_axis(tmp_path)
    np.save(tmp_path / 'x.npy', x)
    out = tmp_path / 'q'
    quantize(model, out, '--data', tmp_path / 'x.npy', '--holdout', 0.5, '--report', tmp_path / 'report')
    report = json.loads((tmp_path / 'report' / 'report.json').read_text())
    assert [layer['kind'] for layer in report['layers']] == ['affine'] * 3
    files = f'{out}.param', f'{out}.bin'
    exact = np.stack([run_engine(*model, {'data': v}, ['out'])['out'] for v in x[:8]])
    got, plain = ([run_engine(*files, {'data': v}, ['out'], *args)['out'] for v in x[:8]] for args in ([], ['--reference', '--no-fusion']))
    assert 10 * np.log10((exact ** 2).sum() / ((exact - got) ** 2).sum()) > 35
    np.testing.assert_allclose(got, plain, atol=0.02 * np.abs(exact).max())
    assert np.mean(np.abs(np.array(got) - plain) < 1e-4) > 0.9  # few values lie between two steps
    done = quantize(model, out, '--data', tmp_path / 'x.npy', '--holdout', 0, '--kind', 'int8')
    assert done.stderr.count('ncnn has no int8 form of it') == 3


def conv_net(folder, text, *weights):
    """A param file's text and, for each layer with weights, its weights and bias."""
    (folder / 'm.param').write_text('7767517\n' + text)
    parts = [part.ravel() for weight, bias in weights for part in (np.zeros(1), weight, bias)]
    np.concatenate(parts).astype(np.float32).tofile(folder / 'm.bin')
    return folder / 'm.param', folder / 'm.bin'


def test_convolutions_of_three_axes(tmp_path):
    """As those of two axes; ncnn's format has no int8 of them."""
    rng = np.random.default_rng(6)
    first, second = rng.normal(size=(24, 6, 3, 3, 3)) / 13, rng.normal(size=(5, 24, 2, 2, 2)) / 14
    model = conv_net(tmp_path, '3 3\nInput in 0 1 data 0=9 1=8 11=7 2=6\nConvolution3D a 1 1 data a 0=24 1=3 4=1 5=1 6=3888 9=1\n'
                     'Convolution3D b 1 1 a out 0=5 1=2 3=2 5=1 6=960\n', (first, rng.normal(size=24)), (second, rng.normal(size=5)))
    x = rng.normal(size=(24, 6, 7, 8, 9)).astype(np.float32)
    np.save(tmp_path / 'x.npy', x)
    noise = {}
    for rounding in 'nearest', 'reconstruct':
        quantize(model, tmp_path / 'q', '--data', tmp_path / 'x.npy', '--rounding', rounding, '--no-bias-correction', '--report', tmp_path / 'report')
        report = json.loads((tmp_path / 'report' / 'report.json').read_text())
        assert [layer['kind'] for layer in report['layers']] == ['affine'] * 2
        exact = run_engine(*model, {'data': x[0]}, ['out'])['out']
        got, plain = (run_engine(tmp_path / 'q.param', tmp_path / 'q.bin', {'data': x[0]}, ['out'], *args)['out']
                      for args in ([], ['--reference', '--no-fusion']))
        np.testing.assert_allclose(got, plain, atol=0.02 * np.abs(exact).max())
        noise[rounding] = ((exact - got) ** 2).sum() / (exact ** 2).sum()
    assert noise['nearest'] < 10 ** -3.5 and noise['reconstruct'] < 0.9 * noise['nearest']
    done = quantize(model, tmp_path / 'q', '--data', tmp_path / 'x.npy', '--kind', 'int8')
    assert done.stderr.count('ncnn has no int8 form of it') == 2


@pytest.mark.parametrize('window', ['1=2 3=2', '1=4 3=2 4=1', '1=3 3=2 4=1 18=1', '1=3 11=5 3=3 4=1 14=0 18=1 19=0', '1=3 3=1 4=1', '1=3 11=2 4=0 18=0 19=0',
                                    '1=4 3=4 4=1 15=0 14=2 16=1'])
def test_deconvolutions(window, tmp_path):
    """In int8 as convolutions whose outputs are put side by side, which ncnn reads."""
    rng = np.random.default_rng(len(window))
    p = dict(pair.split('=') for pair in window.split())
    taps = int(p['1']) * int(p.get('11', p['1']))
    weight = rng.normal(size=(6, 8, taps)) / (8 * taps) ** 0.5
    second = rng.normal(size=(3, 6, 9)) / 54 ** 0.5
    model = conv_net(tmp_path, f'3 3\nInput in 0 1 data 0=9 1=7 2=8\nDeconvolution a 1 1 data a 0=6 5=1 6={weight.size} 9=2 -23310=1,0.1 {window}\n'
                     f'Convolution b 1 1 a out 0=3 1=3 5=1 6={second.size}\n', (weight, rng.normal(size=6)), (second, rng.normal(size=3)))
    x = rng.normal(size=(30, 8, 7, 9)).astype(np.float32)
    np.save(tmp_path / 'x.npy', x)
    exact = run_engine(*model, {'data': x[0]}, ['out'])['out']
    for kind in 'affine', 'int8':
        done = quantize(model, tmp_path / 'q', '--data', tmp_path / 'x.npy', '--kind', kind)
        assert f'{kind:10} 2 layers' in done.stdout
        got = run_engine(tmp_path / 'q.param', tmp_path / 'q.bin', {'data': x[0]}, ['out'])['out']
        assert got.shape == exact.shape and 30 < 10 * np.log10((exact ** 2).sum() / ((exact - got) ** 2).sum()) < 60
    ncnn = pytest.importorskip('ncnn')
    net = ncnn.Net()
    assert net.load_param(str(tmp_path / 'q.param')) == 0 and net.load_model(str(tmp_path / 'q.bin')) == 0
    ex = net.create_extractor()
    ex.input('data', ncnn.Mat(x[0]))
    np.testing.assert_allclose(np.array(ex.extract('out')[1]), got, atol=0.03 * np.abs(got).max())
    del ex  # before the net


@pytest.mark.parametrize('layer', ['Deconvolution a 1 1 data a 0=6 1=3 3=2 13=1 6=432', 'Deconvolution a 1 1 data a 0=6 1=3 2=2 3=2 6=432',
                                   'Deconvolution a 1 1 data a 0=6 1=3 3=2 20=17 21=13 4=-233 6=432', 'DeconvolutionDepthWise a 1 1 data a 0=8 1=3 3=2 7=8 6=72'])
def test_deconvolutions_that_stay(layer, tmp_path):
    """Those that no convolution is: the model runs as before."""
    rng = np.random.default_rng(3)
    count = int(re.search(' 6=([0-9]+)', layer)[1])
    (tmp_path / 'm.param').write_text(f'7767517\n2 2\nInput in 0 1 data 0=9 1=7 2=8\n{layer}\n')
    np.concatenate([np.zeros(1), rng.normal(size=count)]).astype(np.float32).tofile(tmp_path / 'm.bin')
    x = rng.normal(size=(4, 8, 7, 9)).astype(np.float32)
    np.save(tmp_path / 'x.npy', x)
    model = tmp_path / 'm.param', tmp_path / 'm.bin'
    quantize(model, tmp_path / 'q', '--data', tmp_path / 'x.npy')
    before, after = (run_engine(*files, {'data': x[0]}, ['a'])['a'] for files in (model, (tmp_path / 'q.param', tmp_path / 'q.bin')))
    np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize('border', ['', 'Padding pad 1 1 pooled padded 0=1 1=1 2=1 3=1\n'])
def test_zero_points_across_concatenations(border, tmp_path):
    """Rounded before a concatenation and a pooling of maxima: the same integers as behind them; a border of zeros is not that of zero points."""
    rng = np.random.default_rng(21)
    (tmp_path / 'm.param').write_text(
        f'7767517\n{8 + bool(border)} {9 + bool(border)}\nInput in 0 1 data 0=12 1=12 2=8\nSplit split 1 2 data d0 d1\n'
        'Convolution a 1 1 d0 a 0=8 1=1 6=64 9=2 -23310=1,0.1\nConvolution b 1 1 d1 b 0=8 1=3 4=1 6=576\nConcat cat 2 1 a b cat\n'
        f'Pooling pool 1 1 cat pooled 0=0 1=2 2=2\n{border}Convolution c 1 1 {"padded" if border else "pooled"} c 0=8 1=3 6=1152\n'
        'Convolution d 1 1 c out 0=4 1=1 6=32\n')
    tag = np.zeros(1, np.float32)
    np.concatenate([v for n in (64, 576, 1152, 32) for v in (tag, rng.normal(size=n))]).astype(np.float32).tofile(tmp_path / 'm.bin')
    x = rng.uniform(-1, 3, (30, 8, 12, 12)).astype(np.float32)
    np.save(tmp_path / 'x.npy', x)
    quantize((tmp_path / 'm.param', tmp_path / 'm.bin'), tmp_path / 'q', '--data', tmp_path / 'x.npy', '--kind', 'affine')
    files = tmp_path / 'q.param', tmp_path / 'q.bin'
    for sample in x[:5]:
        got, expected = (run_engine(*files, {'data': sample}, ['out'], '--precision', 'int8', *args)['out'] for args in ([], ['--no-fusion', '--reference']))
        # Steps of a value that lies between two, rounded the other way, and nothing else.
        assert np.mean(np.abs(got - expected) < 1e-4 * np.abs(expected).max()) > 0.8
        np.testing.assert_allclose(got, expected, atol=0.01 * np.abs(expected).max())


def gemm_model(folder, turned, bias_type, weight, bias, width=None):
    """Rows of `width` (default: K) values times weight [N][K], plus bias [N] (type 4), one value (0) or nothing (-1)."""
    n, k = weight.shape
    (folder / 'm.param').write_text(f'7767517\n2 2\nInput in 0 1 data 0={width or k} 1=5\n'
                                    f'Gemm fc 1 1 data out 3={turned} 5=1 6=1 8={n} 9={k} 10={bias_type}\n')
    values = weight if turned else weight.T
    tag = np.zeros(1, np.float32)
    parts = [tag, values.ravel()] + {4: [tag, bias], 0: [tag, bias[:1]], -1: []}[bias_type]
    np.concatenate(parts).astype(np.float32).tofile(folder / 'm.bin')
    return folder / 'm.param', folder / 'm.bin'


@pytest.mark.parametrize('turned, bias_type', [(1, 4), (0, 4), (1, -1)])
@pytest.mark.parametrize('kind', ['affine', 'int8'])
def test_gemm(kind, turned, bias_type, tmp_path):
    """Against integer arithmetic in NumPy."""
    rng = np.random.default_rng(21)
    n, k = 24, 40
    weight, bias = rng.normal(size=(n, k)).astype(np.float32), rng.normal(size=n).astype(np.float32)
    model = gemm_model(tmp_path, turned, bias_type, weight, bias)
    np.save(tmp_path / 'x.npy', rng.uniform(-1, 3, (30, 5, k)).astype(np.float32))
    quantize(model, tmp_path / 'q', '--data', tmp_path / 'x.npy', '--kind', kind, '--range', 'data=-1,3', '--no-bias-correction')
    assert 'InnerProduct' in (tmp_path / 'q.param').read_text()
    x = rng.uniform(-1, 3, (5, k)).astype(np.float32)
    got = run_engine(tmp_path / 'q.param', tmp_path / 'q.bin', {'data': x}, ['out'])['out']
    step = (4 / 255 if kind == 'affine' else 3 / 127) * np.ones((), np.float32)
    zero = round(1 / step) if kind == 'affine' else 0
    q = np.clip(np.rint(x / step), -zero if kind == 'affine' else -127, 255 - zero if kind == 'affine' else 127).astype(np.int64)
    rows = np.abs(weight).max(1) / 127
    expected = (q @ np.rint(weight / rows[:, None]).astype(np.int64).T) * (step * rows) + (bias if bias_type == 4 else 0)
    # Steps of values that lie between two, rounded the other way.
    assert np.mean(np.abs(got - expected) < 1e-4 * np.abs(expected).max()) > 0.8
    np.testing.assert_allclose(got, expected, atol=2 * step * np.abs(weight).max())
    noise = got - x @ weight.T - (bias if bias_type == 4 else 0)
    assert np.sqrt((noise ** 2).mean()) < 0.02 * np.abs(expected).mean()


def test_gemm_of_an_input_without_sizes(tmp_path):
    """The data say them."""
    weight = np.random.default_rng(23).normal(size=(24, 40)).astype(np.float32)
    param, binary = gemm_model(tmp_path, 1, -1, weight, np.zeros(24, np.float32))
    param.write_text(param.read_text().replace(' 0=40 1=5', ''))
    np.save(tmp_path / 'x.npy', np.ones((5, 40), np.float32))
    quantize((param, binary), tmp_path / 'q', '--data', tmp_path / 'x.npy')
    assert '\nInnerProduct' in (tmp_path / 'q.param').read_text()


@pytest.mark.parametrize('change', [{'bias_type': 0}, {'width': 20}, {'args': ['--layer', 'fc=block8']}])
def test_gemm_that_stays(change, tmp_path):
    """Another C, an input that is no matrix of K columns as far as is known, another kind."""
    rng = np.random.default_rng(22)
    weight, bias = rng.normal(size=(24, 40)).astype(np.float32), rng.normal(size=24).astype(np.float32)
    args = change.pop('args', [])
    model = gemm_model(tmp_path, 1, change.get('bias_type', -1), weight, bias, change.get('width'))
    np.save(tmp_path / 'x.npy', rng.normal(size=(30, 5, 40)).astype(np.float32))
    quantize(model, tmp_path / 'q', '--data', tmp_path / 'x.npy', *args)
    assert '\nGemm' in (tmp_path / 'q.param').read_text()


def test_swish_stays_a_layer(tmp_path):
    """ncnn's convolutions have no such activation."""
    ncnn = pytest.importorskip('ncnn')
    rng = np.random.default_rng(14)
    weight = rng.normal(size=(4, 2, 3, 3)).astype(np.float32)
    (tmp_path / 'm.param').write_text('7767517\n5 6\nInput in 0 1 data 0=9 1=7 2=2\nConvolution conv 1 1 data c 0=4 1=3 4=1 6=72\n'
                                      'Split split 1 2 c c0 c1\nSigmoid gate 1 1 c0 g\nBinaryOp mul 2 1 c1 g out 0=2\n')
    np.concatenate([np.zeros(1, np.float32), weight.ravel()]).tofile(tmp_path / 'm.bin')
    x = rng.normal(size=(30, 2, 7, 9)).astype(np.float32)
    np.save(tmp_path / 'x.npy', x)
    quantize((tmp_path / 'm.param', tmp_path / 'm.bin'), tmp_path / 'q', '--data', tmp_path / 'x.npy', '--kind', 'int8')
    ours = run_engine(tmp_path / 'q.param', tmp_path / 'q.bin', {'data': x[0]}, ['out'])['out']
    net = ncnn.Net()
    assert net.load_param(str(tmp_path / 'q.param')) == 0 and net.load_model(str(tmp_path / 'q.bin')) == 0
    ex = net.create_extractor()
    ex.input('data', ncnn.Mat(x[0]))
    np.testing.assert_allclose(np.array(ex.extract('out')[1]), ours, atol=0.02)
    del ex  # before the net


def test_depthwise_layers_that_cost_most_stay_in_float(tmp_path):
    """Behind HardSwish channels of far different sizes cannot be made alike: method best leaves such a depthwise layer in float, and others do not."""
    rng = np.random.default_rng(8)
    (tmp_path / 'm.param').write_text(
        '7767517\n5 5\nInput in 0 1 data 0=12 1=12 2=3\nConvolution a 1 1 data a 0=16 1=3 4=1 5=1 6=432\nHardSwish h 1 1 a h 0=0.1666667 1=0.5\n'
        'ConvolutionDepthWise b 1 1 h b 0=16 1=3 4=1 5=1 6=144 7=16 9=1\nConvolution c 1 1 b out 0=8 1=1 5=1 6=128\n')
    sizes = 4.0 ** (np.arange(16) % 6)
    first, each, last = rng.normal(size=(16, 27)) * sizes[:, None] / 5, rng.normal(size=(16, 9)) / sizes[:, None], rng.normal(size=128) / 4
    parts = [[0], first.ravel(), rng.normal(size=16) * sizes, [0], each.ravel(), rng.normal(size=16), [0], last, rng.normal(size=8)]
    np.concatenate(parts).astype(np.float32).tofile(tmp_path / 'm.bin')
    model, x = (tmp_path / 'm.param', tmp_path / 'm.bin'), rng.normal(size=(40, 3, 12, 12)).astype(np.float32)
    np.save(tmp_path / 'x.npy', x)
    exact = np.stack([run_engine(*model, {'data': v}, ['out'])['out'] for v in x[:8]])
    noise = {}
    for method, more in ('best', []), ('all', ['--layer', 'b=affine']), ('mse', ['--method', 'mse']):
        log = quantize(model, tmp_path / 'q', '--data', tmp_path / 'x.npy', '--write-override', tmp_path / 'o.json', *more).stdout
        assert ('in float   b, which' in log) == (method == 'best')
        assert json.loads((tmp_path / 'o.json').read_text())['layers']['b'] == ('float' if method == 'best' else 'affine')
        got = np.stack([run_engine(tmp_path / 'q.param', tmp_path / 'q.bin', {'data': v}, ['out'])['out'] for v in x[:8]])
        noise[method] = ((got - exact) ** 2).sum()
    assert noise['best'] < 0.3 * min(noise['all'], noise['mse'])


def test_a_scale_behind_relu_says_nothing_of_the_blob_before(tmp_path):
    """An int8 layer reads ReLU of a blob, another one the blob itself, which reaches ten times as far below zero."""
    rng = np.random.default_rng(1)
    weight = rng.uniform(-1, 1, (5, 128)).astype(np.float32)
    (tmp_path / 'm.param').write_text('7767517\n5 6\nInput data 0 1 data 0=4 1=4 2=8\nSplit s 1 2 data a b\n'
                                      'InnerProduct fc 1 1 a x 0=5 2=640\nReLU r 1 1 b c\n'
                                      'ConvolutionDepthWise dw 1 1 c y 0=8 1=1 6=8 7=8 8=1\n')
    (tmp_path / 'm.bin').write_bytes(bytes(4) + weight.tobytes() + 0x000D4B38.to_bytes(4, 'little') + bytes(range(8)) +
                                     np.full(9, 127, np.float32).tobytes())
    x = rng.uniform(-10, 1, (20, 8, 4, 4)).astype(np.float32)
    np.save(tmp_path / 'x.npy', x)
    quantize((tmp_path / 'm.param', tmp_path / 'm.bin'), tmp_path / 'q', '--data', tmp_path / 'x.npy', '--method', 'minmax')
    got = run_engine(tmp_path / 'q.param', tmp_path / 'q.bin', {'data': x[0]}, ['x'])['x']
    exact = weight @ x[0].ravel()
    assert np.abs(got - exact).max() < 0.05 * np.abs(exact).max()
