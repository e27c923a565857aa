"""enginequantize's kind a16w8: answers against integer arithmetic in NumPy, which layers get it, what it is worth."""
import os

import numpy as np
import pytest

from engine import run_engine
from quantizing import digits, digits_model, one_layer, quantize, report_layers

pytestmark = pytest.mark.skipif('ENGINERUN_PREFIX' in os.environ, reason='the same on every machine')


def rounded_weight(weight):
    """Integers, and what they are divided by."""
    scales = 127 / np.abs(weight).max(1).astype(np.float64)
    return np.clip(np.rint(weight * scales[:, None]), -127, 127), scales


@pytest.mark.parametrize('bits', [16, 12])
def test_answers_are_those_of_integers(bits, tmp_path):
    rng = np.random.default_rng(8)
    weight, bias = rng.normal(size=(7, 33)).astype(np.float32), rng.normal(size=7).astype(np.float32)
    x = rng.normal(size=(50, 33)).astype(np.float32)
    np.save(tmp_path / 'x.npy', x)
    model = one_layer(tmp_path, weight, bias)
    said = ['--kind', 'a16w8']
    if bits < 16:
        (tmp_path / 'o.json').write_text('{"quantizer_targets": {"activations": [{"target_name": "data", "bitwidth": %d}]}}' % bits)
        said = ['--override', tmp_path / 'o.json']
    quantize(model, tmp_path / 'q', '--data', tmp_path / 'x.npy', *said, '--no-bias-correction', '--holdout', 0)
    assert '26=3' in (tmp_path / 'q.param').read_text()
    # Steps by the bits; what is beyond the data has the room of 16 all the same.
    scale = min(2 ** (bits - 1) - 1, 127 * 257) / np.abs(x).max()
    q, scales = rounded_weight(weight)
    for row in x[3], 1.5 * x[np.abs(x).max(1).argmax()]:
        rounded = np.clip(np.rint(row.astype(np.float64) * scale), -127 * 257, 127 * 257)
        got = run_engine(tmp_path / 'q.param', tmp_path / 'q.bin', {'data': row}, ['out'])['out']
        np.testing.assert_allclose(got, q @ rounded / scale / scales + bias, rtol=1e-5, atol=2.0 / scale)


def test_a_layer_of_16_bits_says_nothing_of_8(tmp_path):
    """Of two layers that read one blob the first has 16 bits already: the other measures its range."""
    rng = np.random.default_rng(5)
    weights = rng.normal(size=(2, 8 * 4)).astype(np.float32)
    (tmp_path / 'm.param').write_text('7767517\n4 5\nInput data 0 1 data 0=8 1=8 2=4\nSplit s 1 2 data a b\n'
                                      'Convolution one 1 1 a x 0=8 1=1 6=32\nConvolution two 1 1 b y 0=8 1=1 6=32\n')
    np.concatenate([[0], weights[0], [0], weights[1]]).astype(np.float32).tofile(tmp_path / 'm.bin')
    x = rng.normal(size=(20, 4, 8, 8)).astype(np.float32)
    np.save(tmp_path / 'x.npy', x)
    data = '--data', tmp_path / 'x.npy', '--method', 'minmax'
    quantize((tmp_path / 'm.param', tmp_path / 'm.bin'), tmp_path / 'p', *data, '--kind', 'float', '--layer', 'one=a16w8')
    quantize((tmp_path / 'p.param', tmp_path / 'p.bin'), tmp_path / 'q', *data, '--kind', 'int8')
    got = run_engine(tmp_path / 'q.param', tmp_path / 'q.bin', {'data': x[0]}, ['y'])['y']
    exact = np.einsum('oc,chw->ohw', weights[1].reshape(8, 4), x[0])
    assert np.sqrt(((got - exact) ** 2).mean()) < 0.05 * exact.std()


def test_on_digits(digits, tmp_path):
    folder, images, _ = digits
    answers = {}
    methods = {'affine': 'best: ', 'weights8': 'none', 'a16w8': 'minmax'}
    for kind in methods:
        done = quantize(digits_model(), tmp_path / kind, '--data', folder / 'x.npy', '--limit', 100, '--kind', kind, '--report', tmp_path / 'r')
        assert done.stdout.startswith(f'method     {methods[kind]}')
        answers[kind] = run_engine(tmp_path / f'{kind}.param', tmp_path / f'{kind}.bin', {'data': images}, ['prob'], '--batch')['prob']
    kinds = {name: layer['kind'] for name, layer in report_layers(tmp_path / 'r').items()}
    # Depthwise layers are computed in float, on weights of 8 bits.
    assert {name for name, kind in kinds.items() if kind == 'weights8'} == {'dw1', 'dw2'}
    assert 'a16w8      of depthwise, grouped and recurrent layers there is none' in done.stdout
    assert {kind for name, kind in kinds.items() if name[:2] != 'dw'} == {'a16w8'}
    exact = run_engine(*digits_model(), {'data': images}, ['prob'], '--batch')['prob']
    noise = {kind: ((answer - exact) ** 2).sum() for kind, answer in answers.items()}
    assert noise['a16w8'] < 0.5 * noise['affine'] and noise['a16w8'] < 1.5 * noise['weights8']
    assert os.path.getsize(tmp_path / 'a16w8.bin') < 1.05 * os.path.getsize(tmp_path / 'affine.bin')
