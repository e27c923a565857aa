"""Reshapes, transposes and grouped convolutions as exporters write them."""
import pytest

pytest.importorskip('onnx')
from fuse_case import Case, functions_for  # noqa: E402


def graph(body, constants='', shape='float[2,12,4,6]', out='float[A,B,C,D]'):
    return f'g ({shape} x) => ({out} y) <{constants}> {{ {body} }}'


def chain(perm, middle, last):
    return graph(f'a = Reshape(x, m) t = Transpose<perm = {perm}>(a) y = Reshape(t, l)',
                 f'int64[{middle.count(",") + 1}] m = {{{middle}}}, int64[4] l = {{{last}}}')


NHWC = ('t = Transpose<perm = [0, 3, 1, 2]>(x) c = Conv<pads = [1, 1, 1, 1]>(t, w) b = Transpose<perm = [0, 2, 3, 1]>(c)'
        ' r = Relu(b) u = Transpose<perm = [0, 3, 1, 2]>(r) d = Conv<pads = [1, 1, 1, 1]>(u, v)'
        ' e = Transpose<perm = [0, 2, 3, 1]>(d) s = Add(e, b) f = Sigmoid(s) h = Transpose<perm = [0, 3, 1, 2]>(f)'
        ' y = Conv(h, v)')
PARTS = ('p, q, r = Split<axis = 1>(x) a = Conv<pads = [1, 1, 1, 1]>(p, w0, b0) b = Conv<pads = [1, 1, 1, 1]>(q, w1, b1)'
         ' c = Conv<pads = [1, 1, 1, 1]>(r, w2, b2) y = Concat<axis = 1>(a, b, c)')
SLICES = ('p = Slice(x, n0, n6, one) q = Slice(x, n6, n12, one) a = Conv(p, w0) b = Conv(q, w1)'
          ' y = Concat<axis = 1>(a, b)')
# A layer of Keras's TimeDistributed, step by step.
STEPS = ' '.join(f's{i} = Slice(x, n{i}, n{i + 1}, n0) r{i} = Squeeze(s{i}, n0) p{i} = MatMul(r{i}, w) q{i} = Add(p{i}, b)'
                 f' u{i} = Unsqueeze(q{i}, n0)' for i in range(3)) + ' y = Concat<axis = 0>(u0, u1, u2)'
STEPS = graph(STEPS, ', '.join(f'int64[1] n{i} = {{{i}}}' for i in range(4)), 'float[3,N,6]', 'float[A,B,C]')
GATHERS = graph(' '.join(f'r{i} = Gather<axis = 1>(x, n{i}) p{i} = MatMul(r{i}, w) u{i} = Unsqueeze(p{i}, one)' for i in range(3))
                + ' y = Concat<axis = -2>(u0, u1, u2)',
                ', '.join(f'int64 n{i} = {{{i}}}' for i in range(3)) + ', int64[1] one = {1}', 'float[N,3,6]', 'float[A,B,C]')
STEP_WEIGHTS = {'w': (6, 5), 'b': (5,), 'v': (6, 5), 'c': (5,)}
WEIGHTS = {'w0': (2, 4, 3, 3), 'w1': (2, 4, 3, 3), 'w2': (2, 4, 3, 3), 'b0': (2,), 'b1': (2,), 'b2': (2,)}
CASES = {
    'two transposes that cancel': Case(
        graph('a = Transpose<perm = [0, 2, 3, 1]>(x) y = Transpose<perm = [0, 3, 1, 2]>(a)'), ['Output'], ['Permute']),
    'two transposes as one': Case(
        graph('a = Transpose<perm = [0, 2, 3, 1]>(x) b = Transpose<perm = [0, 2, 1, 3]>(a) y = Relu(b)'),
        ['Permute'], ['Reshape']),
    'channels last': Case(
        graph(NHWC, '', 'float[1,5,7,4]'), ['Convolution'], [], [], '',
        {'w': (6, 4, 3, 3), 'v': (6, 6, 3, 3)}, tolerance=1e-4),
    'channels last with Gelu': Case(
        graph(NHWC.replace('Relu', 'Gelu'), '', 'float[1,5,7,4]'), ['Convolution'], [], [], '',
        {'w': (6, 4, 3, 3), 'v': (6, 6, 3, 3)}, tolerance=1e-4, opset=20),
    'rows of a product': Case(
        graph('f = Reshape(x, m) p = Gemm(f, w, b) y = Reshape(p, l)', 'int64[2] m = {-1, 12}, int64[3] l = {2, -1, 5}',
              'float[2,N,12]', 'float[A,B,C]'), ['InnerProduct'], ['Reshape', 'ReshapeTo', 'Gemm'], [], '',
        {'w': (12, 5), 'b': (5,)}, sizes={'N': 7}),
    'rows of a product with heads': Case(
        graph('s = Shape(x) n = Gather(s, z) f = Reshape(x, m) p = Gemm<transB = 1>(f, w, b) q = Concat<axis = 0>(n, l)'
              ' y = Reshape(p, q)', 'int64[2] m = {-1, 12}, int64[2] l = {6, 5}, int64[1] z = {0}', 'float[N,6,3,4]',
              'float[A,B,C]'), ['InnerProduct'], ['ReshapeTo', 'Gemm', 'ShapeOf'], [], '',
        {'w': (5, 12), 'b': (5,)}, sizes={'N': 2}),
    'an operand that is repeated': Case(
        graph('n = ReduceL2<axes = [3]>(x) e = Expand(n, s) d = Div(x, e) c = Expand(n, l) y = Add(c, d)',
              'int64[4] s = {2, 12, 4, 6}, int64[4] l = {1, 1, 1, 6}'), ['BinaryOp'], ['Expand']),
    'reshapes as one': Case(
        graph('a = Reshape(x, m) b = Unsqueeze(a, z) y = Reshape(b, l)',
              'int64[2] m = {-1, 6}, int64[1] z = {0}, int64[4] l = {2, 3, 16, 6}'), ['Reshape'], ['ExpandDims']),
    'steps of a product': Case(
        STEPS, ['InnerProduct'], ['Concat', 'StridedSlice', 'Slice'], weights=STEP_WEIGHTS, sizes={'N': 2}),
    'steps of a product, gathered': Case(
        GATHERS, ['InnerProduct'], ['Concat', 'StridedSlice', 'Slice', 'Gather'], weights={'w': (6, 5)}, sizes={'N': 2}),
    'a part of uneven pieces': Case(
        graph('a = Reshape(x, m) t = Transpose<perm = [2, 0, 1, 3]>(a) p, q = Split<axis = 0>(t, z) y = Squeeze(q, o)',
              'int64[4] m = {2, 4, 3, 4}, int64[2] z = {2, 1}, int64[1] o = {0}', 'float[2,4,12]', 'float[A,B,C]'),
        ['StridedSlice'], ['Permute', 'Slice']),
    'shuffled channels': Case(
        chain('[0, 2, 1, 3, 4]', '2, 3, 4, 4, 6', '2, 12, 4, 6'), ['ShuffleChannel'], ['Permute', 'Reshape'],
        [('[0, 2, 1, 3, 4]', '[0, 2, 1, 4, 3]'), ('2, 3, 4, 4, 6', '2, 3, 4, 6, 4')], 't'),
    'pixel shuffle': Case(
        chain('[0, 1, 4, 2, 5, 3]', '2, 3, 2, 2, 4, 6', '2, 3, 8, 12'), ['PixelShuffle'], ['Permute'],
        [('[0, 1, 4, 2, 5, 3]', '[0, 1, 4, 3, 5, 2]'), ('2, 3, 2, 2, 4, 6', '2, 3, 1, 4, 4, 6')], 'a'),
    'pixel shuffle of TensorFlow': Case(
        chain('[0, 3, 4, 1, 5, 2]', '2, 2, 2, 3, 4, 6', '2, 3, -1, 12'), ['PixelShuffle'], ['Permute'],
        [('2, 2, 2, 3, 4, 6', '2, 4, 1, 3, 4, 6')], 't'),
    'space to depth': Case(
        chain('[0, 3, 5, 1, 2, 4]', '2, 12, 2, 2, 3, 2', '2, 48, 2, 3'), ['Reorg'], ['Permute'],
        [('2, 12, 2, 2, 3, 2', '2, 12, 4, 1, 3, 2'), ('2, 12, 2, 2, 3, 2', '2, 12, 3, 2, 2, 2')], 't'),
    'pixel unshuffle': Case(
        chain('[0, 1, 3, 5, 2, 4]', '2, 12, 2, 2, 3, 2', '2, 48, 2, 3'), ['Reorg'], ['Permute'],
        [('[0, 1, 3, 5, 2, 4]', '[0, 1, 5, 3, 2, 4]')], 'a'),
    'a convolution of parts': Case(
        graph(PARTS), ['ConvolutionDepthWise'], ['Concat', 'Slice', 'Convolution'],
        [('Concat<axis = 1>(a, b, c)', 'Concat<axis = 1>(a, c, b)'), ('[1, 1, 1, 1]>(r', '[2, 1, 0, 1]>(r'),
         ('axis = 1>(a', 'axis = 0>(a')], 'b', WEIGHTS, opset=12),
    'all channels in slices': Case(
        'g (float[2,8,5,6] x) => (float[2,8,5,6] y) <int64[1] n0 = {0}, int64[1] n3 = {3}, int64[1] n8 = {8}, int64[1] one = {1}> {'
        ' b = Slice(x, n3, n8, one) a = Slice(x, n0, n3, one) r = Relu(a) y = Concat<axis = 1>(b, r) }',
        ['Slice'], ['StridedSlice'], [('n0 = {0}', 'n0 = {-6}'), ('n8 = {8}', 'n8 = {7}'), ('x, n0, n3', 'x, n0, n8')]),
    'a convolution of slices': Case(
        graph(SLICES, 'int64[1] n0 = {0}, int64[1] n6 = {6}, int64[1] n12 = {12}, int64[1] one = {1}'),
        ['ConvolutionDepthWise'], ['Concat', 'Convolution'], [('Slice(x, n6, n12, one)', 'Slice(x, n0, n6, one)')], 'q',
        {'w0': (3, 6, 1, 1), 'w1': (3, 6, 1, 1)}),
}
test_fused, test_near_miss, test_second_reader = functions_for(CASES)


@pytest.mark.parametrize('name', ['channels last', 'channels last with Gelu'])
def test_transposes_of_channels_last(tmp_path, name):
    """Only the one in front is left."""
    from fuse_case import check
    case = CASES[name]
    assert check(case, case.text, tmp_path).count('Permute') == 1


@pytest.mark.parametrize('before,after', [
    ('(u0, u1, u2)', '(u0, u2, u1)'), ('(u0, u1, u2)', '(u0, u1)'), ('(u0, u1, u2)', '(u1, u2)'), ('axis = 0', 'axis = 1'),
    ('MatMul(r1, w)', 'MatMul(r1, v)'), ('Add(p2, b)', 'Add(p2, c)'), ('Unsqueeze(q0, n0)', 'Unsqueeze(p0, n0)'),
    ('y = Concat<axis = 0>(u0, u1, u2)', 'z = Concat<axis = 0>(u0, u1, u2) g = Unsqueeze(q1, n0) y = Add(z, g)')])
def test_steps_that_stay(tmp_path, before, after):
    from fuse_case import check
    case = CASES['steps of a product']
    assert before in case.text
    assert 'Concat' in check(case, case.text.replace(before, after), tmp_path)
