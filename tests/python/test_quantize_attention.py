"""enginequantize makes the projections of MultiHeadAttention inner products, which have int8 forms."""
import os

import numpy as np
import pytest

from engine import run_engine
from quantize_sweep import in_ncnn
from quantizing import quantize, report_layers

pytestmark = pytest.mark.skipif('ENGINERUN_PREFIX' in os.environ, reason='the same on every machine')

EMBED, HEADS = 32, 4
# Attributes, inputs (rows, values), and how many of these are q, k, v.
FORMS = {
    'self': ('0=32 1=4 2=1024', [('x', 11, 32)]),
    'self with a mask': ('0=32 1=4 2=1024 5=1 6=0.3', [('x', 11, 32), ('mask', 11, 11)]),
    'two': ('0=32 1=4 2=640 3=24 4=24', [('x', 7, 20), ('y', 13, 24)]),
    'three': ('0=32 1=4 2=1024 3=24 4=16', [('x', 7, 32), ('y', 13, 24), ('z', 13, 16)]),
}


def attention(folder, form, seed=3):
    """The model's files and f(inputs) in float64."""
    params, blobs = FORMS[form]
    rng = np.random.default_rng(seed)
    rows = [w for name, _, w in blobs if name != 'mask']
    q, k, v = rows[0], rows[min(1, len(rows) - 1)], rows[-1]
    parts = []
    for out, into in (EMBED, q), (EMBED, k), (EMBED, v), (q, EMBED):
        parts.append((rng.normal(size=(out, into)).astype(np.float32) / np.float32(np.sqrt(into)), rng.normal(size=out).astype(np.float32)))
    lines = [f'Input {name} 0 1 {name} 0={w} 1={h}' for name, h, w in blobs]
    lines.append(f'MultiHeadAttention mha {len(blobs)} 1 {" ".join(name for name, _, _ in blobs)} out {params}')
    (folder / 'm.param').write_text('\n'.join(['7767517', f'{len(lines)} {len(blobs) + 1}'] + lines) + '\n')
    tag = np.zeros(1, np.float32)
    np.concatenate([a for weight, bias in parts for a in (tag, weight.ravel(), bias)]).tofile(folder / 'm.bin')
    scale = float(dict(word.split('=') for word in params.split()).get('6', 1 / np.sqrt(EMBED // HEADS)))

    def answer(inputs):
        given = [inputs[name].astype(np.float64) for name, _, _ in blobs if name != 'mask']
        given = given[0], given[min(1, len(given) - 1)], given[-1]
        query, key, value = ((x @ w.astype(np.float64).T + b).reshape(len(x), HEADS, -1).transpose(1, 0, 2) for x, (w, b) in zip(given, parts))
        scores = scale * query @ key.transpose(0, 2, 1) + inputs.get('mask', 0)
        p = np.exp(scores - scores.max(-1, keepdims=True))
        joined = (p / p.sum(-1, keepdims=True) @ value).transpose(1, 0, 2).reshape(len(given[0]), EMBED)
        return joined @ parts[3][0].astype(np.float64).T + parts[3][1]
    return (folder / 'm.param', folder / 'm.bin'), answer


@pytest.mark.parametrize('form', FORMS)
def test_projections(form, tmp_path):
    model, answer = attention(tmp_path, form)
    rng = np.random.default_rng(1)
    data = []
    for name, h, w in FORMS[form][1]:
        np.save(tmp_path / f'{name}.npy', rng.normal(size=(24, h, w)).astype(np.float32))
        data.append(f'{name}={tmp_path}/{name}.npy')
    inputs = {name: np.load(tmp_path / f'{name}.npy')[5] for name, _, _ in FORMS[form][1]}
    exact = answer(inputs)
    # Parts of the largest value: rounding to 8 bits, to 16 with weights of 8, and none.
    for kind, noise in ('dynamic', 0.04), ('affine', 0.04), ('int8', 0.04), ('a16w8', 0.02), ('float', 2e-5):
        quantize(model, tmp_path / 'q', '--data', *data, '--kind', kind, '--report', tmp_path / 'r')
        got = run_engine(tmp_path / 'q.param', tmp_path / 'q.bin', inputs, ['out'])['out']
        assert np.abs(got - exact).max() < noise * np.abs(exact).max(), kind
        if kind == 'int8':  # ncnn's form
            theirs = in_ncnn(tmp_path / 'q.param', tmp_path / 'q.bin', inputs, ['out'])
            if theirs != 'no ncnn wheel':
                np.testing.assert_allclose(got, theirs['out'].reshape(got.shape), atol=1e-5 * np.abs(exact).max())
        kinds = {layer['name']: layer['kind'] for layer in report_layers(tmp_path / 'r').values()}
        assert kind == 'float' or kinds == {f'mha_{part}': kind for part in ('q', 'k', 'v', 'out')}
    size = os.path.getsize(model[1])
    assert os.path.getsize(tmp_path / 'q.bin') <= size
    # What is said of the layer goes for its products.
    quantize(model, tmp_path / 'q', '--data', *data, '--kind', 'float', '--layer', 'mha=dynamic', '--report', tmp_path / 'r')
    assert {layer['kind'] for layer in report_layers(tmp_path / 'r').values()} >= {'dynamic'}
    assert os.path.getsize(tmp_path / 'q.bin') < 0.5 * size
