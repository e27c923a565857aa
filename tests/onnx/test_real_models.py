"""Small nets of what real models showed: ranks and sizes known only at run time, empty tensors, unsorted nodes,
odd names. ONNX Runtime's answers; with QUOLL_DATA the same for the files that were cut out of the models."""
import os
import pathlib

import numpy as np
import pytest

onnx = pytest.importorskip('onnx')
ort = pytest.importorskip('onnxruntime')
from onnx import TensorProto, helper, numpy_helper, parser  # noqa: E402

from onnx_run import Failure, convert, run  # noqa: E402

FOLDER = pathlib.Path(os.environ.get('QUOLL_DATA', '/nowhere')) / 'oracle' / 'onnx-repro'


def rand(*shape):
    return np.random.default_rng(sum(shape)).normal(0, 1, shape).astype(np.float32)


def zeros(*shape):
    return np.zeros(shape, np.float32)


def first(value, *shape):
    """Zeros, but for the first column."""
    x = zeros(*shape)
    x[:, 0] = value
    return x


def corner(*shape):
    """Values in the corner of zeros."""
    x = zeros(*shape)
    x[:2, :2] = rand(2, 2) + 3
    return x


# Name: net, constants, feeds.
CASES = {
    'squeeze_open': ('(float[N,1] x) => (float y) { y = Squeeze(x) }', {}, [{'x': rand(1, 1)}, {'x': rand(3, 1)}]),
    'squeeze_slice': ('''(float[N,4] x) => (float[k] y) {
        s = Squeeze(x)
        y = Slice(s, b, e, ax)
    }''', {'b': np.int64([2]), 'e': np.int64([4]), 'ax': np.int64([0])}, [{'x': rand(1, 4)}, {'x': rand(5, 4)}]),
    'squeeze_given': ('(float[N,M] x) => (float[m] y) { y = Squeeze(x, a) }', {'a': np.int64([0])}, [{'x': rand(1, 5)}, {'x': rand(1, 1)}]),
    'squeeze_given_batch': ('(float[B,N,4,M] x) => (float[b,k] y) { r = Relu(x) y = Squeeze(r, a) }', {'a': np.int64([1, 3])},
                            [{'x': rand(2, 1, 4, 1)}, {'x': rand(1, 1, 4, 1)}]),
    'squeeze_given_5': ('(float[B,C,D,H,W] x) => (float[b,c,d,w] y) { r = Relu(x) y = Squeeze(r, a) }', {'a': np.int64([3])},
                        [{'x': rand(2, 3, 4, 1, 5)}]),
    'input_as_output': ('(float[2,3] x, float[2,3] w) => (float[2,3] x, float[2,3] y, float[2,3] w) { y = Relu(x) }', {},
                        [{'x': rand(2, 3), 'w': rand(2, 3)}]),
    'if_rank01': ('''(float[2,3] x) => (float[2,3] y) {
        r = ReduceSum <keepdims = 0> (x)
        c = Cast <to = 9> (r)
        q = If (c) <then_branch = tb () => (float to) { to = Constant <value = float {2}> () },
                    else_branch = eb () => (float[1] eo) { eo = Reshape(r, one) }>
        y = Add(x, q)
    }''', {'one': np.int64([1])}, [{'x': zeros(2, 3)}, {'x': first(1, 2, 3)}]),
    'if_order': ('''(float[2,3] x) => (float[2,3] y) {
        r = ReduceSum <keepdims = 0> (x)
        c = Cast <to = 9> (r)
        y = If (c) <then_branch = tb () => (float[2,3] to) { to = Identity(late) },
                    else_branch = eb () => (float[2,3] eo) { eo = Neg(x) }>
        late = Relu(x)
    }''', {}, [{'x': zeros(2, 3)}, {'x': first(1, 2, 3)}]),
    'inorm_open': ('(float[B,C,T] x) => (float[B,C,T] y) { y = InstanceNormalization(x, s, b) }',
                   {'s': np.float32([1.5]), 'b': np.float32([0.5])}, [{'x': rand(2, 1, 7)}]),
    'tile_runtime': ('''(float[3] x, int64[1] k) => (float[3,m] y) {
        u = Unsqueeze(x, ax)
        rep = Concat <axis = 0> (one, k)
        y = Tile(u, rep)
    }''', {'ax': np.int64([1]), 'one': np.int64([1])}, [{'x': rand(3), 'k': np.int64([k])} for k in (4, 1, 0)]),
    'reshape_rank5': ('''(float[a,b] x, int64[5] s) => (float[c,d,e,f,g] y) { y = Reshape(x, s) }''', {},
                      [{'x': rand(6, 4), 's': np.int64(s)} for s in ([1, 2, 3, 2, 2], [6, 1, -1, 2, 1], [0, 0, 1, 1, 1])]),
    'slice_rank5': ('''(float[a,b,3,4,5] x, int64[2] s) => (float[c,d,e,f,g] y) { y = Slice(x, s, ends, axes) }''',
                    {'ends': np.int64([3, 4]), 'axes': np.int64([1, 4])},
                    [{'x': rand(2, 3, 3, 4, 5), 's': np.int64(s)} for s in ([0, 1], [2, -3], [3, 0])]),
    'pad_empty': ('''(float[4,5] x) => (float[a,b] y) {
        nz = NonZero(x)
        t = Transpose <perm = [1, 0]> (nz)
        f = Cast <to = 1> (t)
        s = Shape <start = 0, end = 1> (f)
        d = Sub(k, s)
        pads = Concat <axis = 0> (z2, d, z1)
        y = Pad(f, pads)
    }''', {'k': np.int64([6]), 'z2': np.int64([0, 0]), 'z1': np.int64([0])}, [{'x': corner(4, 5)}, {'x': zeros(4, 5)}]),
    'reshape_empty': ('''(float[4,5] x) => (float[1,a,2] y) {
        nz = NonZero(x)
        t = Transpose <perm = [1, 0]> (nz)
        f = Cast <to = 1> (t)
        y = Reshape(f, sh)
    }''', {'sh': np.int64([1, -1, 2])}, [{'x': corner(4, 5)}, {'x': zeros(4, 5)}]),
    'matmul_empty': ('''(float[4,5] x) => (float[1,a,3] y) {
        nz = NonZero(x)
        t = Transpose <perm = [1, 0]> (nz)
        f = Cast <to = 1> (t)
        u = Unsqueeze(f, z1)
        y = MatMul(u, W)
    }''', {'z1': np.int64([0]), 'W': rand(2, 3)}, [{'x': corner(4, 5)}, {'x': zeros(4, 5)}]),
    'cos_matmul': ('''(float[B,5] x) => (float[a,b,3] y) {
        r = ReduceSum <keepdims = 0> (x)
        k = Cast <to = 7> (r)
        k1 = Unsqueeze(k, z1)
        sx = Shape <start = 0, end = 1> (x)
        sh = Concat <axis = 0> (sx, k1, four)
        u = ConstantOfShape(sh)
        y = MatMul(u, W)
    }''', {'z1': np.int64([0]), 'four': np.int64([4]), 'W': rand(4, 3)},
                   [{'x': first(3, 1, 5)}, {'x': first(0, 1, 5)}, {'x': zeros(0, 5)}]),
    'scatternd4': ('''(float[N,3] x, int64[1] k, int64[M,1] ix) => (float[a,3] y) {
        r = Relu(x)
        g = Slice(r, k, e, ax)
        s = Shape(g)
        z = ConstantOfShape(s)
        y = ScatterND(z, ix, g)
    }''', {'e': np.int64([100]), 'ax': np.int64([0])},
                   [{'x': rand(5, 3), 'k': np.int64([2]), 'ix': np.int64([[0], [2], [1]])},
                    {'x': rand(5, 3), 'k': np.int64([50]), 'ix': np.zeros((0, 1), np.int64)}]),
    'scatternd3': ('''(float[N,3] x, float[1,3] u) => (float[N,3] y) {
        r = Relu(x)
        nz = NonZero(x)
        ix = Transpose <perm = [1, 0]> (nz)
        g = GatherND(r, ix)
        s = Shape(x)
        z = ConstantOfShape(s)
        a = ScatterND(z, ix, g)
        y = Add(a, u)
    }''', {}, [{'x': corner(5, 3), 'u': rand(1, 3)}, {'x': zeros(5, 3), 'u': rand(1, 3)},
               {'x': zeros(0, 3), 'u': rand(1, 3)}]),
    'slice_dyn': ('''(float[N,3] x, int64[1] k) => (float[a,3] y) {
        r = Relu(x)
        g = Slice(r, k, e, ax)
        y = CumSum(g, ax0)
    }''', {'e': np.int64([100]), 'ax': np.int64([0]), 'ax0': np.int64(0)},
                  [{'x': rand(5, 3), 'k': np.int64([2])}, {'x': rand(5, 3), 'k': np.int64([50])}]),
}
for name in ('cos_dynq', 'dynq_empty', 'blank_name'):
    CASES[name] = None
FILE_FEEDS = {'cos_dynq': [{'x': first(3, 1, 5)}, {'x': first(0, 1, 5)}, {'x': zeros(0, 5)}],
              'dynq_empty': [{'x': corner(4, 5)}, {'x': zeros(4, 5)}], 'blank_name': [{'x': rand(2, 3)}]}
TOLERANCE = {'fp32': 1e-4, 'fp16': 0.02, 'bf16': 0.06}


def check(path, feeds, folder, *options):
    session_options = ort.SessionOptions()
    session_options.log_severity_level = 4
    session = ort.InferenceSession(str(path), session_options, providers=['CPUExecutionProvider'])
    names = [o.name for o in session.get_outputs()]
    net = convert(path, folder, *options)
    for feed in feeds:
        want = session.run(names, feed)
        for precision, tolerance in TOLERANCE.items():
            have = run(net, feed, names, folder, '--precision', precision)
            for name, value in zip(names, want):
                assert have[name].shape == value.shape, (precision, feed)
                np.testing.assert_allclose(have[name], value, tolerance, tolerance * (np.abs(value).max(initial=0) + 1e-3))
    return net


def save(text, constants, folder):
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]> g {text}')
    for name, values in constants.items():
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(values), name))
    onnx.save(model, folder / 'm.onnx')
    return folder / 'm.onnx'


@pytest.mark.parametrize('name', [n for n, case in CASES.items() if case])
def test_net(name, tmp_path):
    text, constants, feeds = CASES[name]
    check(save(text, constants, tmp_path), feeds, tmp_path)


@pytest.mark.parametrize('axes, kind, shape', [([0], '[N,M]', (2, 3)), ([1, 3], '[B,N,4,M]', (2, 1, 4, 2)), ([3], '[B,C,D,H,W]', (2, 3, 4, 2, 5))])
def test_squeeze_of_other_sizes_than_1(axes, kind, shape, tmp_path):
    net = convert(save(f'(float{kind} x) => (float y) {{ r = Relu(x) y = Squeeze(r, a) }}', {'a': np.int64(axes)}, tmp_path), tmp_path)
    with pytest.raises(Failure, match='values .* do not fill the output'):
        run(net, {'x': rand(*shape)}, ['y'], tmp_path)


@pytest.mark.parametrize('name', sorted(CASES))
def test_file(name, tmp_path):
    path = FOLDER / (name + '.onnx')
    if not path.exists():
        pytest.skip('QUOLL_DATA is not set, or has no such file')
    check(path, CASES[name][2] if CASES[name] else FILE_FEEDS[name], tmp_path)


@pytest.mark.parametrize('name', ['my output', '{"a": 1}', '100% of it', '%12', 'caf\u00e9', 'tab\there'])
def test_names(name, tmp_path):
    """Names that no word of a param file can be, for an input and an output."""
    other = name + ' too'
    graph = helper.make_graph([helper.make_node('Relu', [name], ['r']), helper.make_node('Neg', ['r'], [other])], 'g',
                              [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3])],
                              [helper.make_tensor_value_info(other, TensorProto.FLOAT, [2, 3])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)]), tmp_path / 'm.onnx')
    net = check(tmp_path / 'm.onnx', [{name: rand(2, 3)}], tmp_path)
    for line in net[0].read_text().splitlines()[2:]:
        words = line.split()
        assert len(words) >= 4 + int(words[2]) + int(words[3])
        assert all('=' in word for word in words[4 + int(words[2]) + int(words[3]):])


# A branch whose rank follows from a size, and what depends on the rank later: PyTorch's `squeeze(-1)`, then an LSTM
# that takes frames with or without a batch.
RANKS = '''(float[N,4,T] x) => (float[N,5] y) {
    shape = Shape(x)
    last = Gather <axis = 0> (shape, two)
    is_one = Equal(last, one)
    s = If (is_one) <then_branch = a () => (float[n,m] t) { t = Squeeze(x, minus) },
                     else_branch = b () => (float[n,m,o] e) { e = Identity(x) }>
    rank = Shape(s)
    size = Size(rank)
    flat = Equal(size, two)
    y = If (flat) <then_branch = c () => (float[n,p] u) { u = MatMul(s, W) },
                   else_branch = d () => (float[n,p] v) {
                       m = ReduceMax <axes = [2], keepdims = 0> (s)
                       v = MatMul(m, W)
                   }>
}'''
CONSTANTS = {'two': np.int64(2), 'one': np.int64(1), 'minus': np.int64([-1]), 'W': rand(4, 5)}


def test_ranks_that_follow_one_another(tmp_path):
    check(save(RANKS, CONSTANTS, tmp_path), [{'x': rand(3, 4, 1)}, {'x': rand(3, 4, 6)}], tmp_path)


def test_one_outcome_that_cannot_be(tmp_path):
    """The other branch is no net at all: it is refused when it is chosen, not before."""
    text = RANKS.replace('m = ReduceMax <axes = [2], keepdims = 0> (s)\n                       v = MatMul(m, W)',
                         'v = NoSuchOperator(s)')
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {text}')
    for name, values in CONSTANTS.items():
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(values), name))
    onnx.save(model, tmp_path / 'm.onnx')
    net = convert(tmp_path / 'm.onnx', tmp_path)
    x = rand(3, 4, 1)
    np.testing.assert_allclose(run(net, {'x': x}, ['y'], tmp_path)['y'], x[:, :, 0] @ CONSTANTS['W'], 1e-5, 1e-5)
    with pytest.raises(Failure, match='--shape'):
        run(net, {'x': rand(3, 4, 6)}, ['y'], tmp_path)


@pytest.mark.parametrize('per_gate', [False, True])
def test_dynamic_quantize_lstm(per_gate, tmp_path):
    """Inputs, and the states of a step, of all sequences, are rounded to 8 bits, which ONNX Runtime does with one thread
    (with several, of the sequences of each)."""
    rng = np.random.default_rng(1)
    hidden, inputs, gates = 6, 5, 24
    scale_shape = (1, gates) if per_gate else (1,)
    weights = {'w': rng.integers(-127, 128, (1, inputs, gates)).astype(np.int8),
               'r': rng.integers(-127, 128, (1, hidden, gates)).astype(np.int8), 'b': rand(1, 2 * gates) / 4,
               'ws': rng.uniform(0.002, 0.004, scale_shape).astype(np.float32), 'wz': np.zeros(scale_shape, np.int8),
               'rs': rng.uniform(0.002, 0.004, scale_shape).astype(np.float32), 'rz': np.zeros(scale_shape, np.int8)}
    node = helper.make_node('DynamicQuantizeLSTM', ['x', 'w', 'r', 'b', '', '', '', '', 'ws', 'wz', 'rs', 'rz'],
                            ['y', 'h', 'c'], domain='com.microsoft', hidden_size=hidden)
    graph = helper.make_graph([node], 'g', [helper.make_tensor_value_info('x', TensorProto.FLOAT, ['T', 'B', inputs])],
                              [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in
                               (('y', ['T', 1, 'B', hidden]), ('h', [1, 'B', hidden]), ('c', [1, 'B', hidden]))],
                              [numpy_helper.from_array(v, k) for k, v in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17), helper.make_opsetid('com.microsoft', 1)])
    model.ir_version = 8
    onnx.save(model, tmp_path / 'm.onnx')
    feed = {'x': rand(7, 2, inputs)}
    names = ['y', 'h', 'c']
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(str(tmp_path / 'm.onnx'), options, providers=['CPUExecutionProvider'])
    have = run(convert(tmp_path / 'm.onnx', tmp_path), feed, names, tmp_path)
    for name, value in zip(names, session.run(names, feed)):
        assert have[name].shape == value.shape
        np.testing.assert_allclose(have[name], value, atol=2e-6)  # a step of the rounding would be 1e-3


OTHERS = sorted(p.stem for p in FOLDER.glob('*.onnx') if p.stem not in CASES)


@pytest.mark.parametrize('name', OTHERS or ['QUOLL_DATA is not set'])
def test_other_file(name, tmp_path):
    """Those that were slow: right at least."""
    if not OTHERS:
        pytest.skip('QUOLL_DATA is not set')
    path = FOLDER / (name + '.onnx')
    session = ort.InferenceSession(str(path), providers=['CPUExecutionProvider'])
    feeds = {i.name: rand(*[d if isinstance(d, int) else 5 for d in i.shape]) for i in session.get_inputs()}
    names = [o.name for o in session.get_outputs()]
    have = run(convert(path, tmp_path), feeds, names, tmp_path)
    for out, value in zip(names, session.run(names, feeds)):
        assert have[out].shape == value.shape
        np.testing.assert_allclose(have[out], value, 1e-4, 1e-4 * np.abs(value).max())
