"""Normalisation as exporters write it."""
import numpy as np
import pytest

onnx = pytest.importorskip('onnx')
from onnx import numpy_helper  # noqa: E402

from fuse_case import Case, build, functions_for  # noqa: E402
from onnx_run import convert, run  # noqa: E402

ROWS, IMAGES, LAST = 'float[2,6,16]', 'float[2,6,5,4]', 'float[2,5,4,6]'


def graph(body, constants, shape):
    return f'g ({shape} x) => ({shape} y) <{constants}> {{ {body} }}'


EPS = 'float two = {2.0}, float eps = {0.00001}'
TORCH = ('m = ReduceMean<axes = [-1]>(x) d = Sub(x, m) p = Pow(d, two) v = ReduceMean<axes = [-1]>(p) a = Add(v, eps)'
         ' r = Sqrt(a) n = Div(d, r) s = Mul(n, g) y = Add(s, b)')
MOMENTS = ('m = ReduceMean<axes = [AXES]>(x) d = Sub(x, m) q = Mul(d, d) v = ReduceMean<axes = [AXES]>(q)'
           ' a = Add(v, eps) r = Sqrt(a) i = Reciprocal(r) k = Mul(i, g) t = Mul(x, k) u = Mul(m, k) w = Sub(b, u)'
           ' y = Add(t, w)')
# As flax has it: the mean of the squares less the square of the mean.
FAST = ('s = ReduceSum<keepdims = 0>(x, axes) e = Mul(s, share) q = Mul(x, x) t = ReduceSum<keepdims = 0>(q, axes)'
        ' f = Mul(t, share) h = Mul(e, e) w = Sub(f, h) v = Max(zero, w) c = Reshape(v, kept) z = Add(c, eps) r = Sqrt(z)'
        ' i = Reciprocal(r) j = Mul(i, g) l = Reshape(e, kept) d = Sub(x, l) n = Mul(d, j) y = Add(n, b)')


def fast(axis, kept, share):
    return f'{EPS}, float zero = {{0}}, float share = {{{share}}}, int64[1] axes = {{{axis}}}, int64[3] kept = {{{kept}}}'


FAST_ROWS = graph(FAST, fast(2, '-1, 6, 1', 0.0625), ROWS)
GROUPS = ('z = Reshape(x, split) n = InstanceNormalization<epsilon: float = 0.00001>(z, one, zero)'
          ' f = Reshape(n, whole) s = Mul(f, g) y = Add(s, b)')
GROUP_CONSTANTS = 'int64[3] split = {0, 3, -1}, int64[4] whole = {2, 6, 5, 4}, float[3] one = {1, 1, 1}, float[3] zero = {0, 0, 0}'
CHANNELS = {'g': (6, 1, 1), 'b': (6, 1, 1)}
CASES = {
    'layer norm of torch': Case(
        graph(TORCH, EPS, ROWS), ['LayerNorm'], ['Reduction', 'BinaryOp', 'UnaryOp'],
        [('Pow(d, two)', 'Pow(x, two)'), ('{2.0}', '{4.0}'), ('d = Sub(x, m)', 'd = Add(x, m)'),
         ('ReduceMean<axes = [-1]>(p)', 'ReduceMean<axes = [1]>(p)'), ('Div(d, r)', 'Div(x, r)')], 'd',
        {'g': (16,), 'b': (16,)}),
    'layer norm without scale': Case(
        graph(TORCH.replace(' n = Div(d, r) s = Mul(n, g) y = Add(s, b)', ' y = Div(d, r)'), EPS, ROWS),
        ['LayerNorm'], ['Reduction', 'BinaryOp'], [], 'v'),
    'layer norm of two axes': Case(
        graph(TORCH.replace('[-1]', '[-2, -1]'), EPS, ROWS), ['LayerNorm'], ['Reduction', 'BinaryOp'], [], 'p',
        {'g': (6, 16), 'b': (6, 16)}),
    'layer norm with an outer scale': Case(
        graph(TORCH, EPS, ROWS), ['LayerNorm', 'BinaryOp'], ['Reduction'], [], '', {'g': (6, 16), 'b': (16,)}),
    'layer norm by moments': Case(
        graph(MOMENTS.replace('AXES', '2'), EPS, ROWS), ['LayerNorm'], ['Reduction', 'BinaryOp'],
        [('u = Mul(m, k)', 'u = Mul(m, i)'), ('w = Sub(b, u)', 'w = Sub(u, b)')], 'k', {'g': (16,), 'b': (16,)}),
    'layer norm by a difference of moments': Case(
        FAST_ROWS, ['LayerNorm'], ['Reduction', 'BinaryOp', 'Reshape'],
        [('h = Mul(e, e)', 'h = Mul(e, s)'), ('w = Sub(f, h)', 'w = Sub(h, f)'), ('0.0625', '0.125'), ('zero = {0}', 'zero = {1}'),
         ('q = Mul(x, x)', 'q = Mul(x, g)')], 'd', {'g': (16,), 'b': (16,)}),
    'layer norm of an inner axis by a difference of moments': Case(
        graph(FAST, fast(1, '2, 1, 16', 0.16666667), ROWS), ['LayerNorm'], ['Reduction', 'UnaryOp', 'Reshape'],
        [('Mul(s, share)', 'Mul(s, eps)')], 'e', {'g': (6, 1), 'b': (6, 1)}),
    'instance norm of TensorFlow': Case(
        graph(MOMENTS.replace('AXES', '1, 2'), EPS, LAST), ['InstanceNorm'], ['Reduction', 'BinaryOp'],
        [('v = ReduceMean<axes = [1, 2]>', 'v = ReduceMean<axes = [2, 1, 3]>')], 'i', {'g': (6,), 'b': (6,)}),
    'instance norm of planes': Case(
        graph(TORCH.replace('[-1]', '[2, 3]'), EPS, IMAGES), ['InstanceNorm'], ['Reduction', 'BinaryOp'],
        [], 'a', CHANNELS),
    'instance norm of planes by moments': Case(
        graph(MOMENTS.replace('AXES', '2, 3'), EPS, IMAGES), ['InstanceNorm'], ['Reduction', 'BinaryOp'],
        [], 'i', CHANNELS),
    'instance norm, then scale and bias': Case(
        graph('n = InstanceNormalization<epsilon: float = 0.00001>(x, one, zero) s = Mul(n, g) y = Add(b, s)',
              'float[6] one = {1, 1, 1, 1, 1, 1}, float[6] zero = {0, 0, 0, 0, 0, 0}', IMAGES),
        ['InstanceNorm'], ['BinaryOp'], [], '', CHANNELS),
    'rms norm': Case(
        graph('p = Pow(x, two) v = ReduceMean<axes = [-1]>(p) a = Add(v, eps) r = Sqrt(a) i = Reciprocal(r)'
              ' n = Mul(x, i) y = Mul(g, n)', EPS, ROWS),
        ['RMSNorm'], ['Reduction', 'BinaryOp', 'UnaryOp'],
        [('{2.0}', '{4.0}'), ('[-1]', '[1]'), ('n = Mul(x, i)', 'n = Mul(p, i)')], 'v', {'g': (16,)}),
    'rms norm, divided': Case(
        graph('p = Mul(x, x) v = ReduceMean<axes = [-1]>(p) a = Add(eps, v) r = Sqrt(a) n = Div(x, r) y = Mul(n, g)',
              EPS, ROWS),
        ['RMSNorm'], ['Reduction', 'BinaryOp'], [('Div(x, r)', 'Div(r, x)')], 'a', {'g': (16,)}),
    'rms norm of half floats': Case(
        graph('h = Cast<to = 10>(x) f = Cast<to = 1>(h) p = Pow(f, two) v = ReduceMean<axes = [-1]>(p) a = Add(v, eps)'
              ' r = Sqrt(a) i = Reciprocal(r) n = Mul(f, i) c = Cast<to = 10>(n) d = Cast<to = 1>(c) y = Mul(g, d)',
              EPS, ROWS),
        ['RMSNorm'], ['Reduction', 'BinaryOp'], [], '', {'g': (16,)}, tolerance=2e-3),
    'group norm of torch': Case(
        graph(GROUPS, GROUP_CONSTANTS, IMAGES), ['GroupNorm'], ['InstanceNorm', 'Reshape', 'BinaryOp'],
        [('f = Reshape(n, whole)', 'e = Neg(n) f = Reshape(e, whole)')], 'z', CHANNELS),
    'group norm with scales of groups': Case(
        graph(GROUPS, GROUP_CONSTANTS.replace('{1, 1, 1}', '{1, 2, 3}').replace('{0, 0, 0}', '{1, 0, -1}'), IMAGES),
        ['GroupNorm'], ['InstanceNorm'], [], 'n', CHANNELS),
}
test_fused, test_near_miss, test_second_reader = functions_for(CASES)


@pytest.mark.parametrize('precision,tolerance', [('fp32', 1e-5), ('fp16', 2e-3)])
def test_difference_of_moments_does_not_cancel(precision, tolerance, tmp_path):
    case = Case(FAST_ROWS, [], [], weights={'g': (16,), 'b': (16,)})
    model = build(case, case.text)
    onnx.save(model, tmp_path / 'm.onnx')
    x = 300 + np.random.default_rng(0).integers(-2, 3, (2, 6, 16)).astype(np.float32) / 4  # half floats, as they are
    weights = {w.name: numpy_helper.to_array(w).astype(np.float64) for w in model.graph.initializer}
    deviation = x - x.mean(2, keepdims=True, dtype=np.float64)
    want = deviation / np.sqrt((deviation ** 2).mean(2, keepdims=True) + 1e-5) * weights['g'] + weights['b']
    have = run(convert(tmp_path / 'm.onnx', tmp_path), {'x': x}, ['y'], tmp_path, '--precision', precision)['y']
    assert np.abs(have - want).max() <= tolerance * np.ptp(want)
