"""Sizes that are known only when the net runs: one conversion, many sizes, against the reference evaluator."""
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser
from onnx.reference import ReferenceEvaluator

from onnx_run import Failure, convert, run


def check(text, feeds, tmp_path, tolerance=1e-5, **constants):
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}')
    for name, values in constants.items():
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(values), name))
    onnx.save(model, tmp_path / 'm.onnx')
    net = convert(tmp_path / 'm.onnx', tmp_path)
    names = [o.name for o in model.graph.output]
    evaluator = ReferenceEvaluator(model)
    for feed in feeds:
        have = run(net, feed, names, tmp_path)
        for name, want in zip(names, evaluator.run(None, feed)):
            assert have[name].shape == want.shape, name
            np.testing.assert_allclose(have[name], want, rtol=tolerance, atol=tolerance)
    return net


def rand(*shape):
    return np.random.default_rng(sum(shape)).normal(0, 1, shape).astype(np.float32)


# PyTorch's F.pad to a multiple of 4: the pads as pairs from the last axis on, turned round.
PAD = '''g (float[n,3,h,w] x) => (float[n,3,p,q] y) {
    s = Shape(x)
    h = Gather <axis = 0> (s, two)
    w = Gather <axis = 0> (s, three)
    hm = Mod(h, four)
    wm = Mod(w, four)
    hn = Sub(four, hm)
    wn = Sub(four, wm)
    ph = Mod(hn, four)
    pw = Mod(wn, four)
    phu = Unsqueeze(ph, axes)
    pwu = Unsqueeze(pw, axes)
    some = Concat <axis = 0> (none, pwu, none, phu)
    rest = ConstantOfShape <value = int64[1] {0}> (more)
    all = Concat <axis = 0> (some, rest)
    pairs = Reshape(all, by_two)
    back = Slice(pairs, last, least, axes, step)
    turned = Transpose <perm = [1, 0]> (back)
    flat = Reshape(turned, minus)
    pads = Cast <to = 7> (flat)
    y = Pad <mode = "MODE"> (x, pads)
}'''
NUMBERS = dict(two=np.int64(2), three=np.int64(3), four=np.int64(4), axes=np.int64([0]), none=np.int64([0]),
               more=np.int64([4]), by_two=np.int64([-1, 2]), last=np.int64([-1]), least=np.int64([-2 ** 63 + 1]),
               step=np.int64([-1]), minus=np.int64([-1]))


@pytest.mark.parametrize('steps', ['', ', , steps'])
def test_slice_of_the_first_of_five_axes(steps, tmp_path):
    text = f'''g (float[a,5,b,2,2] x, int64[2] from, int64[2] to, int64[2] steps) => (float[p,q,r,s,t] y) {{
        y = Slice(x, from, to{steps}) }}'''
    feeds = [{'x': rand(a, 5, 3, 2, 2), 'from': np.int64([1, 0]), 'to': np.int64([4, -1]), 'steps': np.int64([2, 3])} for a in (3, 6)]
    check(text, feeds, tmp_path)


@pytest.mark.parametrize('mode', ['constant', 'reflect', 'edge'])
def test_pad(mode, tmp_path):
    shapes = [(2, 3, 5, 6), (1, 3, 8, 7), (1, 3, 8, 12), (3, 3, 9, 9)]
    net = check(PAD.replace('MODE', mode), [{'x': rand(*s)} for s in shapes], tmp_path, **NUMBERS)
    assert 'sizes=' not in net[0].read_text()


def test_square_of_a_size(tmp_path):
    text = '''g (float[n] x) => (float[r] y) {
        s = Shape(x)
        squares = ReduceSumSquare <keepdims = 1> (s)
        y = Expand(number, squares)
    }'''
    check(text, [{'x': rand(n)} for n in (2, 3)], tmp_path, number=np.float32([1]))


def test_pads_that_are_an_input(tmp_path):
    """Negative ones cut; the fill is given."""
    text = 'g (float[a,b] x, int64[4] pads, float fill) => (float[c,d] y) { y = Pad(x, pads, fill) }'
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}')
    onnx.save(model, tmp_path / 'm.onnx')
    net = convert(tmp_path / 'm.onnx', tmp_path)
    x = rand(4, 5)
    have = run(net, {'x': x, 'pads': np.int64([1, 0, 2, 3]), 'fill': np.float32(7)}, ['y'], tmp_path)['y']
    np.testing.assert_array_equal(have, np.pad(x, ((1, 2), (0, 3)), constant_values=7))
    have = run(net, {'x': x, 'pads': np.int64([-1, 2, 0, -1]), 'fill': np.float32(7)}, ['y'], tmp_path)['y']
    np.testing.assert_array_equal(have, np.pad(x[1:, :-1], ((0, 0), (2, 0)), constant_values=7))


@pytest.mark.parametrize('pads', [[0, 2, 0, 3], [0, 5, 0, 4], [3, 9, 0, 7]])
def test_reflection_wider_than_the_axis(pads, tmp_path):
    """To and fro, as NumPy has it."""
    text = 'g (float[a,b] x, int64[4] pads) => (float[c,d] y) { y = Pad <mode = "reflect"> (x, pads) }'
    onnx.save(parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}'), tmp_path / 'm.onnx')
    x = rand(2, 4)
    have = run(convert(tmp_path / 'm.onnx', tmp_path), {'x': x, 'pads': np.int64(pads)}, ['y'], tmp_path)['y']
    np.testing.assert_array_equal(have, np.pad(x, list(zip(pads[:2], pads[2:])), mode='reflect'))


@pytest.mark.parametrize('start', [-5, -1, 2])
def test_last_rows(start, tmp_path):
    """Of an axis that has fewer rows than are asked for, all are taken."""
    text = '''g (float[n,4] x) => (float[r] y, int64[2] s) {
        last = Slice(x, start, end, zero)
        s = Shape(last)
        rows = Slice(s, zero, one, zero)
        y = Expand(number, rows)
    }'''
    check(text, [{'x': rand(n, 4)} for n in (3, 5, 8)], tmp_path, start=np.int64([start]), end=np.int64([2 ** 62]),
          zero=np.int64([0]), one=np.int64([1]), number=np.float32([1]))


@pytest.mark.parametrize('rows', ['4', 'm'])
def test_a_cut_to_more_rows_than_there_are(rows, tmp_path):
    text = f'''g (float[n,2] x, float[{rows},2] t) => (float[r] y) {{
        s = Shape(x)
        n = Slice(s, zero, one, zero)
        cut = Slice(t, zero, n, zero)
        size = Shape(cut)
        have = Slice(size, zero, one, zero)
        y = Expand(number, have)
    }}'''
    check(text, [{'x': rand(n, 2), 't': rand(4, 2)} for n in (3, 4, 6)], tmp_path, zero=np.int64([0]), one=np.int64([1]), number=np.float32([1]))


def test_table_of_positions(tmp_path):
    """n of its rows are added to n: Reshape knows how many come out."""
    text = '''g (float[n,6] x) => (float[n,2,3] y) {
        s = Shape(x)
        n = Slice(s, zero, one, zero)
        cut = Slice(table, zero, n, zero)
        sum = Add(cut, x)
        to = Concat <axis = 0> (n, parts)
        y = Reshape(sum, to)
    }'''
    net = check(text, [{'x': rand(n, 6)} for n in (3, 4)], tmp_path, zero=np.int64([0]), one=np.int64([1]), parts=np.int64([2, 3]),
                table=rand(8, 6))
    assert 'ReshapeTo' not in net[0].read_text()


def test_a_difference_that_is_negative(tmp_path):
    text = '''g (float[n,4] x) => (int64[1] y) {
        s = Shape(x)
        n = Slice(s, zero, one, zero)
        less = Sub(n, four)
        same = Equal(less, minus)
        y = Where(same, four, n)
    }'''
    check(text, [{'x': rand(n, 4)} for n in (3, 5)], tmp_path, zero=np.int64([0]), one=np.int64([1]), four=np.int64([4]),
          minus=np.int64([-1]))


@pytest.mark.parametrize('count, sizes', [(2, (6, 7, 1)), (3, (6, 7, 4))])
def test_pieces_of_an_open_size(count, sizes, tmp_path):
    names = ['p', 'q', 'r'][:count]
    model = parser.parse_model(f'''<ir_version: 8, opset_import: ["" : 18]> g (float[2,n] x) => (float {", float ".join(names)}) {{
        {", ".join(names)} = Split <axis = 1, num_outputs = {count}> (x) }}''')
    for output in model.graph.output:
        output.type.Clear()
    onnx.save(model, tmp_path / 'm.onnx')
    net = convert(tmp_path / 'm.onnx', tmp_path)
    for n in sizes:
        x, each = rand(2, n), -(-n // count)
        have = run(net, {'x': x}, names, tmp_path)
        for i, name in enumerate(names):
            np.testing.assert_array_equal(have[name], x[:, i * each:(i + 1) * each])


# Swin's windows of 4 x 4: reshapes to rank 6 whose sizes the graph computes.
WINDOWS = '''g (float[n,3,h,w] x) => (float[n,3,h,w] y) {
    s = Shape(x)
    n = Slice(s, zero, one, zero)
    h = Slice(s, two, three, zero)
    w = Slice(s, three, four, zero)
    hq = Div(h, size)
    wq = Div(w, size)
    to = Concat <axis = 0> (n, c, hq, size, wq, size)
    a = Reshape(x, to)
    b = Transpose <perm = [0, 2, 4, 3, 5, 1]> (a)
    rows = Reshape(b, to_rows)
    t = Transpose <perm = [0, 2, 1]> (rows)
    m = MatMul(rows, t)
    p = Softmax <axis = -1> (m)
    o = MatMul(p, rows)
    from = Concat <axis = 0> (n, hq, wq, size, size, c)
    d = Reshape(o, from)
    e = Transpose <perm = [0, 5, 1, 3, 2, 4]> (d)
    end = Concat <axis = 0> (n, c, h, w)
    y = Reshape(e, end)
}'''


def test_windows(tmp_path):
    check(WINDOWS, [{'x': rand(*s)} for s in ((2, 3, 8, 12), (1, 3, 4, 8), (1, 3, 16, 4))], tmp_path,
          zero=np.int64([0]), one=np.int64([1]), two=np.int64([2]), three=np.int64([3]), four=np.int64([4]),
          size=np.int64([4]), c=np.int64([3]), to_rows=np.int64([-1, 16, 3]))


@pytest.mark.parametrize('index', [2, -3])
def test_index_on_an_open_axis(index, tmp_path):
    text = 'g (float[n,m] x) => (float[n] y) { y = Gather <axis = 1> (x, index) }'
    net = check(text, [{'x': rand(2, m)} for m in (3, 5)], tmp_path, index=np.int64(index))
    with pytest.raises(Failure, match='index'):
        run(net, {'x': rand(4, 2)}, ['y'], tmp_path)


# What a detector does with the boxes that it keeps, which may be none: a head of dense layers and convolutions.
KEEP = '''g (float[n,8] x) => (float[m,3] scores, float[m,2,2,4] maps, int64[m] best) {
    s = Gather <axis = 1> (x, zero)
    over = Greater(s, limit)
    found = NonZero(over)
    at = Squeeze(found, axes)
    kept = Gather <axis = 0> (x, at)
    h = Gemm <transB = 1> (kept, w1, b1)
    r = Relu(h)
    l = Gemm <transB = 1> (r, w2, b2)
    scores = Softmax <axis = -1> (l)
    best = ArgMax <axis = 1, keepdims = 0> (scores)
    image = Reshape(r, to_image)
    c = Conv <kernel_shape = [1, 1]> (image, w3)
    maps = Transpose <perm = [0, 2, 3, 1]> (c)
}'''


def test_nothing_is_found(tmp_path):
    some, none = rand(7, 8), rand(7, 8)
    none[:, 0] = -1
    check(KEEP, [{'x': some}, {'x': none}, {'x': some[:2]}], tmp_path, zero=np.int64(0), limit=np.float32(0),
          axes=np.int64([0]), w1=rand(12, 8), b1=rand(12), w2=rand(3, 12), b2=rand(3), to_image=np.int64([-1, 3, 2, 2]),
          w3=rand(4, 3, 1, 1))


def test_filled_tensor_of_five_axes(tmp_path):
    text = '''g (float[n,m] x) => (float[a,b,c,d,e] y) {
        s = Shape(x)
        all = Concat <axis = 0> (s, more)
        filled = ConstantOfShape <value = float[1] {2}> (all)
        y = Mul(filled, row)
    }'''
    check(text, [{'x': rand(*s)} for s in ((2, 3), (3, 1))], tmp_path, more=np.int64([2, 1, 3]), row=rand(3))


def test_large_filled_tensor_of_five_axes(tmp_path):
    """Of a value whose sums are exact: in rows, as ONNX Runtime adds them up, 24,576 others lose four digits."""
    text = 'g (float[1] x) => (float[a] y) { k = ConstantOfShape(sizes) t = Add(k, x) y = ReduceSum <keepdims = 0> (t, axes) }'
    check(text, [{'x': np.float32([0.375])}], tmp_path, sizes=np.int64([2, 3, 64, 64, 64]), axes=np.int64([0, 1, 2, 3]))


def test_axes_that_take_turns(tmp_path):
    """Rank 6, of which each operand has every second axis: more than four groups of axes."""
    check('g (float[2,1,3,1,4,1] x, float[1,2,1,3,1,4] y) => (float[2,2,3,3,4,4] z) { z = Add(x, y) }',
          [{'x': rand(2, 1, 3, 1, 4, 1), 'y': rand(1, 2, 1, 3, 1, 4)}], tmp_path)


# FNet's mixing as PyTorch exports it: a transform along an axis of known size, and one along the other.
MIX = '''g (float[n,t,6] x) => (float[n,t,6] y, float[n,t,6,2] z) {
    e = Unsqueeze(x, last)
    s = Shape(e)
    i = Expand(zero, s)
    c = Concat <axis = -1> (e, i)
    a = DFT <axis = 2> (c)
    b = DFT <axis = 1> (a)
    y = Gather <axis = -1> (b, first)
    z = DFT <axis = 1, inverse = 1> (b)
}'''


def test_transform_of_any_length(tmp_path):
    check(MIX, [{'x': rand(*s)} for s in ((2, 5, 6), (1, 1, 6), (3, 12, 6))], tmp_path, 1e-4, last=np.int64([-1]),
          zero=np.float32([0]), first=np.int64(0))


def test_half_of_a_transform_of_any_length(tmp_path):
    check('g (float[n,t,1] x) => (float[n,m,2] y) { y = DFT <axis = 1, onesided = 1> (x) }',
          [{'x': rand(*s)} for s in ((2, 5, 1), (1, 8, 1))], tmp_path, 1e-4)


@pytest.mark.parametrize('form', ['none', 'constant', 'input'])
@pytest.mark.parametrize('length', [5, 8, 13])
def test_signals_of_half_a_spectrum_of_any_length(length, form, tmp_path):
    """Of a signal and back, as many values as dft_length says, which may be fewer or more than there are."""
    inputs = {'x': [TensorProto.FLOAT, ['b', 't', 2]], 'n': [TensorProto.INT64, []]}
    constants = {'n': length, 'axis': 1}
    del (constants if form == 'input' else inputs)['n']
    node = helper.make_node('DFT', ['x', '' if form == 'none' else 'n', 'axis'], ['y'], inverse=1, onesided=1)
    graph = helper.make_graph([node], 'g', [helper.make_tensor_value_info(n, *of) for n, of in inputs.items()],
                              [helper.make_tensor_value_info('y', TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(np.int64(v), n) for n, v in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 20)]), tmp_path / 'm.onnx')
    net = convert(tmp_path / 'm.onnx', tmp_path)
    for bins in (5, 7):
        feeds = {'x': rand(2, bins, 2), 'n': np.int64(length)}
        want = np.fft.irfft(feeds['x'][..., 0] + 1j * feeds['x'][..., 1], None if form == 'none' else length, 1)[..., None]
        got = run(net, {n: feeds[n] for n in inputs}, ['y'], tmp_path)['y']
        np.testing.assert_allclose(got, want, 1e-5, 1e-5)


@pytest.mark.parametrize('name', ['?', '-1'])
def test_sizes_without_a_name(name, tmp_path):
    model = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]> g (float[a,b] x) => (float[c,d] y) {
        s = Shape(x)
        one = Constant <value_floats = [1.0]> ()
        y = Expand(one, s) }""")
    for dim in model.graph.input[0].type.tensor_type.shape.dim:
        dim.dim_param = name
    onnx.save(model, tmp_path / 'm.onnx')
    x = rand(2, 3)
    assert run(convert(tmp_path / 'm.onnx', tmp_path), {'x': x}, ['y'], tmp_path)['y'].shape == x.shape


def test_sizes_with_names_of_other_scripts(tmp_path):
    """Sizes of one name are the same: the mask goes into the attention."""
    model = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[b,4,t,8] q, float[b,4,t,8] k, float[b,4,t,8] v, float[b,1,t,t] mask) => (float[c,d,e,f] y) {
        kt = Transpose <perm = [0, 1, 3, 2]> (k)
        scores = MatMul(q, kt)
        masked = Add(scores, mask)
        p = Softmax <axis = -1> (masked)
        y = MatMul(p, v) }""")
    for value in model.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_param = {'b': '\u6279', 't': '\u9577'}[dim.dim_param]
    onnx.save(model, tmp_path / 'm.onnx')
    net = convert(tmp_path / 'm.onnx', tmp_path)
    assert 'SDPA' in net[0].read_text()


def test_shared_heads_of_an_unknown_number(tmp_path):
    model = parser.parse_model("""<ir_version: 11, opset_import: ["" : 23]>
        g (float[b,heads,t,8] q, float[b,shared,s,8] k, float[b,shared,s,8] v) => (float[c,d,e,f] y) { y = Attention(q, k, v) }""")
    onnx.save(model, tmp_path / 'm.onnx')
    net = convert(tmp_path / 'm.onnx', tmp_path)
    for shared in (1, 2, 4):
        feed = {'q': rand(2, 4, 3, 8), 'k': rand(2, shared, 5, 8), 'v': 1 + rand(2, shared, 5, 8)}
        want = ReferenceEvaluator(model).run(None, feed)[0]
        np.testing.assert_allclose(run(net, feed, ['y'], tmp_path)['y'], want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize('shape', [(2, 4, 6, 5), (3, 4, 7)])
def test_sizes_of_weights(shape, tmp_path):
    """A model that leaves all sizes open, those too that its weights have."""
    axes = ','.join('abcd'[:len(shape)])
    text = f'''g (float[{axes}] x) => (float[{axes}] y, float[{axes}] z) {{
        y = InstanceNormalization(x, scale, bias)
        s = Sub(x, y)
        z = LayerNormalization <axis = -1> (s, row)
    }}'''
    check(text, [{'x': rand(*shape)}, {'x': rand(1, *shape[1:])}], tmp_path, 1e-4, scale=rand(4), bias=2 + rand(4),
          row=rand(shape[-1]))


def test_sizes_of_sizes(tmp_path):
    """What exporters of TensorFlow make of an Einsum: products and maxima of sizes, which need no layers."""
    text = '''g (float[n,8,16] x) => (float[p,16] y, float[n,8,q] z) {
        s = Shape(x)
        two = Gather(s, first)
        p = ReduceProd <keepdims = 1> (two)
        rows = Concat <axis = 0> (p, minus)
        y = Reshape(x, rows)
        both = Max(two, two)
        back = Concat <axis = 0> (both, minus)
        z = Reshape(y, back)
    }'''
    net = check(text, [{'x': rand(*s)} for s in ((2, 8, 16), (5, 8, 16))], tmp_path, first=np.int64([0, 1]), minus=np.int64([-1]))
    assert not any(f'{op} ' in net[0].read_text() for op in ('Reduction', 'TensorBinary', 'Where'))


@pytest.mark.parametrize('policy', ['not_larger', 'not_smaller'])
@pytest.mark.parametrize('sizes', ['1,2,h,w', '1,2,4,w', 'n,2,h,6', '1,2,4,6'])
def test_one_scale_for_open_sizes(policy, sizes, tmp_path):
    """The sizes given are not those of the output."""
    model = parser.parse_model(f'''<ir_version: 8, opset_import: ["" : 18]> g (float[{sizes}] x) => (float[a,b,c,d] y, int64[4] s) {{
        y = Resize <mode = "linear", axes = [2, 3], keep_aspect_ratio_policy = "{policy}"> (x, , , sizes)
        s = Shape(y)
    }}''')
    model.graph.initializer.append(numpy_helper.from_array(np.int64([8, 8]), 'sizes'))
    onnx.save(model, tmp_path / 'm.onnx')
    net, x = convert(tmp_path / 'm.onnx', tmp_path), rand(1, 2, 4, 6)
    have = run(net, {'x': x}, ['y', 's'], tmp_path)
    want = ReferenceEvaluator(model).run(None, {'x': x})
    np.testing.assert_array_equal(have['s'], want[1])
    np.testing.assert_allclose(have['y'], want[0], 1e-5, 1e-5)


def test_expand_of_five_axes(tmp_path):
    """Of the axis in the middle only the run tells whether it grows."""
    text = '''g (float[n,3,m,2,1] x, float[k,2] z) => (float[n,3,p,2,5] y) {
        n = Shape <start = 0, end = 1> (x)
        k = Shape <start = 0, end = 1> (z)
        to = Concat <axis = 0> (n, three, k, two, five)
        y = Expand(x, to)
    }'''
    check(text, [{'x': rand(n, 3, m, 2, 1), 'z': rand(k, 2)} for n, m, k in ((2, 4, 4), (1, 1, 3), (3, 4, 1))], tmp_path,
          two=np.int64([2]), three=np.int64([3]), five=np.int64([5]))


def test_constant_of_five_axes(tmp_path):
    """PyTorch's zeros_like of an expanded mask."""
    text = '''g (float[n,t] x) => (float[n,6,t] y) {
        s = Shape(x)
        n = Slice(s, zero, one, zero)
        t = Slice(s, one, two, zero)
        to = Concat <axis = 0> (n, two, one, three, t)
        ones = ConstantOfShape <value = float[1] {1}> (to)
        rows = Concat <axis = 0> (n, six, t)
        flat = Reshape(ones, rows)
        wide = Unsqueeze(x, one)
        y = Add(flat, wide)
    }'''
    check(text, [{'x': rand(n, t)} for n, t in ((2, 3), (1, 5))], tmp_path, zero=np.int64([0]), one=np.int64([1]),
          two=np.int64([2]), three=np.int64([3]), six=np.int64([6]))


@pytest.mark.parametrize('opset, sizes', [(17, ', sizes'), (17, ''), (13, ', sizes'), (11, '')])
def test_pieces_of_an_open_axis_are_all_of_it(opset, sizes, tmp_path):
    # Two pieces of 2: of an axis of 4, and not of one of 5.
    text = f'g (float[n,3] x) => (float[p,3] y, float[q,3] z) {{ y, z = Split <axis = 0> (x{sizes}) }}'
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> {text}')
    if sizes:
        model.graph.initializer.append(numpy_helper.from_array(np.int64([2, 2]), 'sizes'))
    onnx.save(model, tmp_path / 'm.onnx')
    net = convert(tmp_path / 'm.onnx', tmp_path)
    x = rand(4, 3)
    have = run(net, {'x': x}, ['y', 'z'], tmp_path)
    assert (have['y'] == x[:2]).all() and (have['z'] == x[2:]).all()
    with pytest.raises(Failure, match='axis 0 has 5|pieces'):
        run(net, {'x': rand(5, 3)}, ['y', 'z'], tmp_path)


@pytest.mark.parametrize('sizes', [(2, 0), (0, 2), (1, 0, 1)])
def test_pieces_of_an_open_axis_some_of_them_empty(sizes, tmp_path):
    outs = ['y', 'z', 'w'][:len(sizes)]
    text = f'g (float[n,3] x) => ({", ".join(f"float[n{y},3] {y}" for y in outs)}) {{ {", ".join(outs)} = Split <axis = 0> (x, sizes) }}'
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}')
    model.graph.initializer.append(numpy_helper.from_array(np.int64(sizes), 'sizes'))
    onnx.save(model, tmp_path / 'm.onnx')
    net = convert(tmp_path / 'm.onnx', tmp_path)
    x = rand(2, 3)
    have = run(net, {'x': x}, outs, tmp_path)
    assert [len(have[y]) for y in outs] == list(sizes) and (np.concatenate([have[y] for y in outs]) == x).all()
    with pytest.raises(Failure, match='axis 0 has 5'):
        run(net, {'x': rand(5, 3)}, outs, tmp_path)
