"""Tensors of more axes than a blob has, and batches of items that have one axis or none, against the reference evaluator."""
import numpy as np
import onnx
import pytest
from onnx import parser

from onnx_run import convert, run
from test_run_time_sizes import check, rand


def test_one_value_of_each_item(tmp_path):
    """A classifier's best class and one of its scores: what is left of an item has no axis."""
    text = '''g (float[n,4,h,w] x) => (int64[n] best, float[n] score, float[n] last) {
        p = GlobalAveragePool(x)
        f = Flatten(p)
        s = Softmax <axis = 1> (f)
        best = ArgMax <axis = 1, keepdims = 0> (s)
        score = Gather <axis = 1> (s, two)
        last = Gather <axis = -1> (s, least)
    }'''
    feeds = [{'x': rand(*s)} for s in ((3, 4, 5, 6), (1, 4, 3, 3), (2, 4, 2, 7))]
    check(text, feeds, tmp_path, two=np.int64(2), least=np.int64(-1))


def indices(shape, taken, *rows):
    generator = np.random.default_rng(taken)
    found = np.stack([generator.integers(0, n, rows) for n in shape], -1)
    flat = found.reshape(-1, len(shape))
    for i in range(1, len(flat)):  # updates of one place have no order
        while any((flat[i, :taken] == flat[j, :taken]).all() for j in range(i)):
            flat[i] = [generator.integers(0, n) for n in shape]
    found = found[..., :taken]
    return np.where(found % 2 == 1, found - np.array(shape[:taken]), found)  # some from behind


@pytest.mark.parametrize('taken', [4, 5])
@pytest.mark.parametrize('sizes', ['known', 'unknown'])
def test_scatter_and_gather_nd(taken, sizes, tmp_path):
    """Indices of more axes than a blob has: x[i, j, k, l, m] = u."""
    shape = (2, 3, 4, 5, 3)
    declared = ','.join('abcde' if sizes == 'unknown' else map(str, shape))
    rest = declared.split(',')[taken:]
    text = f'''g (float[{declared}] x, int64[p,q,{taken}] i, float[{','.join(['p', 'q'] + rest)}] u)
        => (float[{declared}] y, float[{declared}] z, float[{','.join(['p', 'q'] + rest)}] g) {{
        r = Relu(x)
        y = ScatterND(r, i, u)
        z = ScatterND <reduction = "add"> (r, i, u)
        g = GatherND(r, i)
    }}'''
    feeds = []
    for rows in ((4, 2), (1, 3)):
        feeds.append({'x': rand(*shape), 'i': indices(shape, taken, *rows), 'u': rand(*rows, *shape[taken:])})
    check(text, feeds, tmp_path)


@pytest.mark.parametrize('taken', [4, 5])
def test_gather_nd_of_one(taken, tmp_path):
    shape = (2, 3, 4, 5, 3)
    text = f'''g (float[a,b,c,d,e] x, int64[{taken}] i) => (float{'[e]' if taken == 4 else ''} y) {{
        r = Relu(x)
        y = GatherND(r, i)
    }}'''
    check(text, [{'x': rand(*shape), 'i': np.int64([1, -2, 3, 0, 2][:taken])}], tmp_path)


@pytest.mark.parametrize('operator', ['ReduceMax', 'ReduceMean', 'ReduceL2', 'ReduceLogSumExp'])
@pytest.mark.parametrize('keep', [0, 1])
def test_reduced_axes_apart(operator, keep, tmp_path):
    shape = 'b,d' if not keep else '1,b,1,d,1'
    text = f'''g (float[a,b,c,d,e] x) => (float[{shape}] y) {{
        y = {operator} <axes = [0, 2, -1], keepdims = {keep}> (x)
    }}'''
    check(text, [{'x': rand(*s)} for s in ((2, 3, 4, 5, 3), (1, 4, 3, 2, 2))], tmp_path)


@pytest.mark.parametrize('axis', [0, 2, 4])
def test_elements_of_five_axes(axis, tmp_path):
    shape = ['n', '3', '4', 'h', '2']
    one = list(shape)
    one[axis] = '1'
    text = f'''g (float[{','.join(shape)}] x) => (float[{','.join(one)}] w, float[{','.join(shape)}] y, float[{','.join(shape)}] z) {{
        i = ArgMax <axis = {axis}, keepdims = 1> (x)
        w = GatherElements <axis = {axis}> (x, i)
        s = Shape(x)
        e = Expand(i, s)
        y = GatherElements <axis = {axis}> (x, e)
        z = ScatterElements <axis = {axis}, reduction = "add"> (x, e, y)
    }}'''
    check(text, [{'x': rand(*s)} for s in ((2, 3, 4, 5, 2), (3, 3, 4, 2, 2))], tmp_path)


@pytest.mark.parametrize('axis', [0, 2, 4])
@pytest.mark.parametrize('known', [False, True])
def test_elements_of_a_part_of_five_axes(known, axis, tmp_path):
    """Sizes of data and indices of which nothing says that they are equal (SAM-HQ)."""
    data, parts = (3, 4, 5, 2, 6), [(2, 4, 3, 2, 5), (3, 4, 5, 1, 6)]
    named = {letter: ','.join(f'{letter}{k}' for k in range(5)) for letter in 'ab'}
    part = ','.join(map(str, parts[0])) if known else named['b']
    text = f'''g (float[{named['a']}] x, int64[{part}] i) => (float[{part}] y) {{
        y = GatherElements <axis = {axis}> (x, i)
    }}'''
    onnx.save(parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}'), tmp_path / 'm.onnx')
    net, generator, x = convert(tmp_path / 'm.onnx', tmp_path), np.random.default_rng(axis), rand(*data)
    for sizes in parts[:1 if known else 2]:
        i = generator.integers(0, data[axis], sizes)
        cut = x[tuple(slice(None) if k == axis else slice(size) for k, size in enumerate(sizes))]
        np.testing.assert_array_equal(run(net, {'x': x, 'i': i}, ['y'], tmp_path)['y'], np.take_along_axis(cut, i, axis))


def test_broadcast_around_an_axis_of_one(tmp_path):
    """Axes 0 and 2 must not be merged because each of them goes with axis 1."""
    text = '''g (float[3,4,3,3] x) => (float[2,1,3,4,3,3] y) {
        r = Unsqueeze(x, first)
        y = Mul(r, two)
    }'''
    check(text, [{'x': rand(3, 4, 3, 3)}], tmp_path, first=np.int64([0]), two=rand(2, 1, 1, 1, 1, 1))


@pytest.mark.parametrize('batch', ['2', 'n'])
def test_repeated_matrices(batch, tmp_path):
    """Attention of groups of heads that share their keys, as it is written with five axes."""
    text = f'''g (float[{batch},3,2,4,5] q, float[{batch},3,1,6,5] k) => (float[{batch},3,2,4,6] y) {{
        t = Transpose <perm = [0, 1, 2, 4, 3]> (k)
        y = MatMul(q, t)
    }}'''
    check(text, [{'q': rand(2, 3, 2, 4, 5), 'k': rand(2, 3, 1, 6, 5)}], tmp_path)


def test_vector_times_five_axes(tmp_path):
    text = '''g (float[n,3,2,4,5] x) => (float[n,3,2,4] y, float[n,3,2,5] z) {
        y = MatMul(x, five)
        z = MatMul(four, x)
    }'''
    check(text, [{'x': rand(n, 3, 2, 4, 5)} for n in (2, 1)], tmp_path, five=rand(5), four=rand(4))


def test_points_of_deformable_attention(tmp_path):
    """Of six axes five are needed: those of known sizes are spread, whatever the number of items."""
    text = '''g (float[n,7,1,3,1,2] x, float[n,7,4,3,5,2] z) => (float[n,7,120] y) {
        sum = Add(x, z)
        y = Reshape(sum, to)
    }'''
    check(text, [{'x': rand(n, 7, 1, 3, 1, 2), 'z': rand(n, 7, 4, 3, 5, 2)} for n in (2, 1)], tmp_path,
          to=np.int64([-1, 7, 120]))


def test_products_of_integers(tmp_path):
    text = '''g (int64[n,3,4] x) => (int64[n,3,2] y, int64[n,3,3] z) {
        y = MatMul(x, m)
        z = Einsum <equation = "bij,bkj->bik"> (x, x)
    }'''
    x = np.random.default_rng(1).integers(-9, 9, (2, 3, 4))
    check(text, [{'x': x}, {'x': x[:1]}], tmp_path, m=np.arange(8).reshape(4, 2))


def test_axes_of_one_value_in_an_einsum(tmp_path):
    """They are spread, whichever operand has them."""
    text = '''g (float[1,2,3] a, float[5,3,4] b, float[1,6,2,3] c, float[5,1,3,4] d, float[2,1] e)
            => (float[5,2,4] y, int64[3] s, float[5,6,2,4] z, float[2,4] w, float[2,3] v) {
        y = Einsum <equation = "...ij,...jk->...ik"> (a, b)
        s = Shape(y)
        z = Einsum <equation = "...ij,...jk->...ik"> (c, d)
        w = Einsum <equation = "ij,jk->ik"> (e, three)
        v = Einsum <equation = "ij,ij,ij->ij"> (e, row, e)
    }'''
    inputs = {'a': rand(1, 2, 3), 'b': rand(5, 3, 4), 'c': rand(1, 6, 2, 3), 'd': rand(5, 1, 3, 4), 'e': rand(2, 1)}
    check(text, [inputs], tmp_path, three=rand(3, 4), row=rand(1, 3))


EQUATIONS = {
    'abcdef->aebfcd': [(1, 3, 4, 2, 5, 2)],  # how diffusion transformers put patches together: nhwpqc->nchpwq
    'abcdef->ad': [(2, 3, 2, 4, 3, 2)],
    'abcde->': [(2, 3, 2, 4, 3)],
    'abcde,ce->dba': [(2, 3, 4, 2, 3), (4, 3)],
    'abcde,abcd,ae->bce': [(2, 3, 4, 2, 3), (2, 3, 4, 2), (2, 3)],
    'ab,cd,ef->abcdef': [(2, 3), (4, 2), (3, 2)],
    'abcde,fb->acdef': [(2, 3, 1, 4, 2), (5, 3)],
    '...bcd,de->...bce': [(2, 3, 4, 2, 3), (3, 5)],
    'abcde,a->bcde': [(2, 3, 4, 2, 3), (2, )],
}


@pytest.mark.parametrize('equation', EQUATIONS)
def test_einsum_of_many_axes(equation, tmp_path):
    shapes = EQUATIONS[equation]
    arrays = {f'x{i}': rand(*s) for i, s in enumerate(shapes)}
    inputs = ', '.join(f'float[{",".join(map(str, s))}] x{i}' for i, s in enumerate(shapes))
    rank = len(np.einsum(equation, *arrays.values()).shape)
    check(f'g ({inputs}) => (float[{",".join("abcdefg"[:rank])}] y) {{ y = Einsum <equation = "{equation}"> ({", ".join(arrays)}) }}',
          [arrays], tmp_path, 1e-4)


def test_einsum_of_many_axes_of_any_size(tmp_path):
    text = '''g (float[n,h,4,2,2,3] x, float[n,h] s) => (float[n,3,p,8] y) {
        e = Einsum <equation = "nhwpqc,nh->nchpwq"> (x, s)
        y = Reshape(e, to)
    }'''
    check(text, [{'x': rand(n, h, 4, 2, 2, 3), 's': rand(n, h)} for n, h in ((1, 3), (2, 5))], tmp_path, 1e-4, to=np.int64([0, 3, -1, 8]))


def test_grid_of_sizes_of_the_graph(tmp_path):
    """What PyTorch writes for indexed assignment on a feature map: ranges spread to [n, 3, h, w, 2], where h and w are sizes that a
    convolution's stride makes."""
    text = '''g (float[n,3,h,w] x) => (int64[n,3,p,q,2] y) {
        c = Conv <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (x, weight)
        s = Shape(c)
        n = Gather <axis = 0> (s, at0)
        p = Gather <axis = 0> (s, at2)
        q = Gather <axis = 0> (s, at3)
        items = Range(zero, n, one)
        rows = Range(zero, p, one)
        columns = Range(zero, q, one)
        a = Reshape(items, shape0)
        b = Reshape(rows, shape2)
        d = Reshape(columns, shape3)
        ab = Add(a, b)
        abd = Add(ab, d)
        all = Add(abd, pair)
        t = Shape(all)
        e0 = Expand(a, t)
        e2 = Expand(b, t)
        e3 = Expand(d, t)
        hundred = Mul(e0, c100)
        tens = Mul(e2, c10)
        sum = Add(hundred, tens)
        more = Add(sum, e3)
        y = Add(more, all)
    }'''
    constants = dict(at0=np.int64(0), at2=np.int64(2), at3=np.int64(3), zero=np.int64(0), one=np.int64(1), c100=np.int64(100),
                     c10=np.int64(10), shape0=np.int64([-1, 1, 1, 1, 1]), shape2=np.int64([-1, 1, 1]), shape3=np.int64([-1, 1]),
                     pair=np.arange(6).reshape(3, 1, 1, 2), weight=rand(4, 3, 3, 3))
    check(text, [{'x': rand(*s)} for s in ((2, 3, 9, 6), (1, 3, 4, 11))], tmp_path, **constants)


@pytest.mark.parametrize('batch', [0, 1])
def test_reversed_sequences_of_five_axes(batch, tmp_path):
    """ConvLSTM layers of Keras that go backwards."""
    text = f'''g (float[a,b,c,d,e] x, int64[n] lengths) => (float[a,b,c,d,e] y) {{
        y = ReverseSequence <batch_axis = {batch}, time_axis = {1 - batch}> (x, lengths)
    }}'''
    sets = [{'x': rand(3, 3, 4, 5, 3), 'lengths': np.int64([2, 3, 1])}, {'x': rand(4, 2, 3, 2, 2)}]
    sets[1]['lengths'] = np.int64([2, 1, 2, 2] if batch == 0 else [4, 3])
    check(text, sets, tmp_path)
