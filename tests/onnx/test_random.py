"""Random generators: the distribution asked for, the same values in each run."""
import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from onnx_run import convert, run
from test_run_time_sizes import rand


def outputs_of(text, feed, tmp_path, **constants):
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}')
    for name, values in constants.items():
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(values), name))
    onnx.save(model, tmp_path / 'm.onnx')
    net = convert(tmp_path / 'm.onnx', tmp_path)
    names = [o.name for o in model.graph.output]
    have, again = run(net, feed, names, tmp_path), run(net, feed, names, tmp_path)
    assert all(np.array_equal(have[n], again[n]) for n in names)
    return have


def close(values, mean, deviation):
    """Within five standard errors."""
    error = deviation / np.sqrt(values.size)
    assert abs(values.mean() - mean) < 5 * error and abs(values.std() - deviation) < 5 * error


@pytest.mark.parametrize('sizes', [(4, 8, 30, 40), (7, 5000), (20000,), (3, 4, 5, 30, 20)])
def test_like(sizes, tmp_path):
    """Each node and each item has values of its own; so has each seed."""
    shape = ','.join(['n', *map(str, sizes[1:])])
    text = f'''g (float[{shape}] x) => (float[{shape}] a, float[{shape}] b, float[{shape}] c, float[{shape}] d) {{
        r = Relu(x)
        a = RandomNormalLike <mean = 2.0, scale = 3.0> (r)
        b = RandomNormalLike <mean = 2.0, scale = 3.0> (r)
        c = RandomUniformLike <low = -1.0, high = 4.0, seed = 5.0> (r)
        d = RandomUniformLike <low = -1.0, high = 4.0, seed = 5.0> (r)
    }}'''
    have = outputs_of(text, {'x': rand(*sizes)}, tmp_path)
    assert all(a.shape == sizes for a in have.values())
    for name in 'ab':
        close(have[name], 2, 3)
    for name in 'cd':
        close(have[name], 1.5, 5 / np.sqrt(12))
        assert have[name].min() >= -1 and have[name].max() < 4
    assert not np.array_equal(have['a'], have['b']) and np.array_equal(have['c'], have['d'])
    if len(sizes) > 1:
        assert not np.array_equal(have['a'][0], have['a'][1])


def test_shapes_and_draws(tmp_path):
    text = '''g (float[2,3] x) => (float[100,80] a, float[100,80] b, int32[2,4000] q, bool[2,3] never) {
        a = RandomNormal <shape = [100, 80]> ()
        b = RandomUniform <shape = [100, 80], high = 2.0> ()
        l = Log(x)
        q = Multinomial <sample_size = 4000> (l)
        z = Sub(x, x)
        z1 = Bernoulli(z)
        never = Cast <to = 9> (z1)
    }'''
    probability = np.float32([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]])
    have = outputs_of(text, {'x': probability}, tmp_path)
    close(have['a'], 0, 1)
    close(have['b'], 1, 1 / np.sqrt(3))
    assert not have['never'].any()
    for drawn, p in zip(have['q'], probability):
        share = np.bincount(drawn, minlength=3) / 4000
        assert (abs(share - p) < 5 * np.sqrt(p * (1 - p) / 4000)).all()


def test_bernoulli(tmp_path):
    text = 'g (float[n,20000] x) => (float[n,20000] y) { y = Bernoulli(x) }'
    p = np.repeat(np.float32([[0.1], [0.7]]), 20000, 1)
    y = outputs_of(text, {'x': p}, tmp_path)['y']
    assert set(np.unique(y)) == {0, 1}
    close(y[0], 0.1, 0.3)
    assert abs(y[1].mean() - 0.7) < 0.02
