"""Weights are stored once and in as many bytes as the ONNX file needs, with the same answers."""
import numpy as np
import pytest

onnx = pytest.importorskip('onnx')
ort = pytest.importorskip('onnxruntime')
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from exact_session import needs_exact_sums  # noqa: E402
from onnx_run import BIN, Failure, convert, run, run_program  # noqa: E402

ort.set_default_logger_severity(4)


def model_of(nodes, inputs, weights, opset=17, outputs=('y',)):
    kinds = {n: helper.np_dtype_to_tensor_dtype(a.dtype) for n, a in inputs.items()}
    graph = helper.make_graph(
        nodes, 'g', [helper.make_tensor_value_info(n, kinds[n], a.shape) for n, a in inputs.items()],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs],
        [numpy_helper.from_array(a, n) for n, a in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid('', opset),
                                                   helper.make_opsetid('com.microsoft', 1)], ir_version=8)


def check(model, inputs, folder, most=1.1, tolerance=1e-5):
    """Files of at most `most` times the model's size, and ONNX Runtime's answers; the paths."""
    path = folder / 'm.onnx'
    onnx.save(model, path)
    net = convert(path, folder)
    size = sum(p.stat().st_size for p in net)
    assert size <= most * path.stat().st_size + 4096, (size, path.stat().st_size)
    same_answers(net, path, inputs, folder, tolerance)
    return net


def same_answers(net, path, inputs, folder, tolerance=1e-5):
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL  # it would round activations
    options.intra_op_num_threads = 1  # with several, those of a DynamicQuantizeLSTM round their own sequences
    session = ort.InferenceSession(str(path), options, providers=['CPUExecutionProvider'])
    names = [o.name for o in session.get_outputs()]
    want = dict(zip(names, session.run(None, inputs)))
    have = run(net, inputs, names, folder)
    for name in names:
        assert have[name].shape == want[name].shape
        spread = max(float(np.ptp(want[name])), 1e-6)
        assert np.abs(have[name] - want[name]).max() <= tolerance * spread, name


def shared_model(size=128):
    rng = np.random.default_rng(1)
    w = (rng.normal(0, 1, (size, size)) / size ** 0.5).astype(np.float32)
    nodes = [helper.make_node('MatMul', ['x', 'w'], ['a']), helper.make_node('Tanh', ['a'], ['b']),
             helper.make_node('MatMul', ['b', 'w'], ['c']), helper.make_node('Tanh', ['c'], ['d']),
             helper.make_node('MatMul', ['d', 'w'], ['y'])]
    x = rng.normal(0, 1, (3, size)).astype(np.float32)
    return model_of(nodes, {'x': x}, {'w': w}), {'x': x}


def test_shared_weights_are_written_once(tmp_path):
    model, inputs = shared_model()
    param, _ = check(model, inputs, tmp_path)
    assert param.read_text().count('-23328=') == 2


def test_copies_for_ncnn(tmp_path):
    model, inputs = shared_model()
    path = tmp_path / 'm.onnx'
    onnx.save(model, path)
    param, weights = convert(path, tmp_path, '--ncnn')
    assert '-23328=' not in param.read_text()
    assert weights.stat().st_size >= 3 * 128 * 128 * 4
    same_answers((param, weights), path, inputs, tmp_path)


@pytest.mark.parametrize('end', ['.param', '.param.bin'])
def test_programs_keep_shared_weights(end, tmp_path):
    model, inputs = shared_model()
    net = check(model, inputs, tmp_path)
    made = tmp_path / f'o{end}', tmp_path / 'o.bin'
    run_program([BIN / 'engineoptimize', *net, *made, '0', '--no-fusion'])
    assert made[1].stat().st_size <= net[1].stat().st_size
    names = {'x': 'x', 'y': 'y'} if end == '.param' else {'x': '0', 'y': '6'}
    want = ort.InferenceSession(str(tmp_path / 'm.onnx')).run(None, inputs)[0]
    have = run(made, {names['x']: inputs['x']}, [names['y']], tmp_path)[names['y']]
    np.testing.assert_allclose(have, want, 1e-4, 1e-5)
    assert '49,152' in run_program([BIN / 'engineinfo', *net])  # each layer has its parameters


def test_merged_models_share_weights(tmp_path):
    model, inputs = shared_model()
    net = check(model, inputs, tmp_path)
    made = tmp_path / 'two.param', tmp_path / 'two.bin'
    run_program([BIN / 'enginemerge', *net, *net, *made, '--prefix', 'a', '--prefix', 'b', '--always'])
    assert made[1].stat().st_size <= net[1].stat().st_size
    path = tmp_path / 'm.onnx'
    want = ort.InferenceSession(str(path)).run(None, inputs)[0]
    have = run(made, {'a/x': inputs['x'], 'b/x': inputs['x']}, ['a/y', 'b/y'], tmp_path)
    for name in have:
        np.testing.assert_allclose(have[name], want, 1e-4, 1e-5)


def test_weights_of_another_param_are_refused(tmp_path):
    model, inputs = shared_model()
    net = check(model, inputs, tmp_path)
    text = net[0].read_text()
    for numbers in ('7', '-1', '2'):  # not there, none, its own
        damaged = text.replace('-23328=2,1380010067,1', f'-23328=2,1380010067,{numbers}')
        assert damaged != text
        lines = [' '.join(w for w in line.split(' ') if not w.startswith('-23329=')) for line in damaged.split('\n')]
        (tmp_path / 'bad.param').write_text('\n'.join(lines))
        with pytest.raises(Failure, match='number'):
            run((tmp_path / 'bad.param', net[1]), inputs, ['y'], tmp_path)
        with pytest.raises(Failure, match='number'):
            run_program([BIN / 'engineinfo', tmp_path / 'bad.param', net[1]])


@pytest.mark.parametrize('kind', ['float16', 'bfloat16'])
def test_halves_stay_halves(kind, tmp_path):
    rng = np.random.default_rng(2)
    w = rng.normal(0, 1, (64, 256)).astype(np.float32)
    w[0, :6] = [0, -0.0, 6e-8, -6.2e-5, 65504, 1]
    to = getattr(TensorProto, kind.upper())
    bits = w.view(np.uint32) >> 16 if kind == 'bfloat16' else w.astype(np.float16).view(np.uint16)
    tensor = helper.make_tensor('w', to, w.shape, bits.astype(np.uint16).tobytes(), raw=True)
    x = rng.normal(0, 1, (2, 64)).astype(np.float32)
    model = model_of([helper.make_node('Cast', ['w'], ['f'], to=TensorProto.FLOAT),
                      helper.make_node('MatMul', ['x', 'f'], ['y'])], {'x': x}, {})
    model.graph.initializer.append(tensor)
    check(model, {'x': x}, tmp_path)


def quantized(w, axis=None):
    """int8 and scales for all or along an axis."""
    axes = tuple(a for a in range(w.ndim) if a != axis) if axis is not None else None
    scale = (np.abs(w).max(axes, keepdims=axis is not None) / 127).astype(np.float32)
    return np.clip(np.rint(w / scale), -127, 127).astype(np.int8), scale.reshape(-1) if axis is not None else scale


@pytest.mark.parametrize('axis', [None, 0, 1])
@pytest.mark.parametrize('kind', ['cast', 'dequantize'])
def test_weights_of_bytes_and_scales(kind, axis, tmp_path):
    rng = np.random.default_rng(3)
    q, scale = quantized(rng.normal(0, 1, (256, 192)).astype(np.float32) * np.geomspace(0.1, 1, 192), axis)
    x = rng.normal(0, 1, (5, 256)).astype(np.float32)
    if kind == 'cast':
        nodes = [helper.make_node('Cast', ['q'], ['f'], to=TensorProto.FLOAT), helper.make_node('Mul', ['f', 's'], ['w'])]
        shape = {None: (1,), 0: (-1, 1), 1: (1, -1)}[axis]
        scale = scale.reshape(shape)
    else:
        nodes = [helper.make_node('DequantizeLinear', ['q', 's'], ['w'], **({} if axis is None else {'axis': axis}))]
        scale = scale if axis is not None else np.float32(scale)
    nodes.append(helper.make_node('MatMul', ['x', 'w'], ['y']))
    check(model_of(nodes, {'x': x}, {'q': q, 's': np.asarray(scale, np.float32)}), {'x': x}, tmp_path)


@pytest.mark.parametrize('block, kernel', [(64, 1), (9, 3)])
def test_convolution_of_blocks_with_zero_points(block, kernel, tmp_path):
    """As OpenCV's block quantisation writes them: the matrix is dequantised, and then reshaped."""
    rng = np.random.default_rng(5)
    channels, depth = 64, 128 if kernel == 1 else kernel * kernel
    group = 1 if kernel == 1 else channels
    q = rng.integers(-128, 128, (channels, depth), np.int8)
    blocks = (channels, depth // block)
    tensors = {'q': q, 's': rng.uniform(0.001, 0.01, blocks).astype(np.float32), 'z': rng.integers(-128, 128, blocks, np.int8),
               'shape': np.array([channels, depth // kernel ** 2, kernel, kernel], np.int64)}
    x = rng.normal(0, 1, (1, depth if group == 1 else channels, 5, 6)).astype(np.float32)
    nodes = [helper.make_node('DequantizeLinear', ['q', 's', 'z'], ['matrix'], axis=1, block_size=block),
             helper.make_node('Reshape', ['matrix', 'shape'], ['w']),
             helper.make_node('Conv', ['x', 'w'], ['y'], group=group)]
    bin_file = check(model_of(nodes, {'x': x}, tensors, opset=21), {'x': x}, tmp_path)[1]
    assert bin_file.stat().st_size < q.size + 8 * blocks[0] * blocks[1] + 100


@pytest.mark.parametrize('kind', [np.int8, np.uint8])
def test_embedding_of_bytes(kind, tmp_path):
    rng = np.random.default_rng(4)
    table = rng.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, (1000, 48)).astype(kind)
    ids = rng.integers(0, 1000, (2, 7)).astype(np.int64)
    nodes = [helper.make_node('Gather', ['q', 'ids'], ['g']), helper.make_node('DequantizeLinear', ['g', 's', 'z'], ['y'])]
    model = model_of(nodes, {'ids': ids}, {'q': table, 's': np.float32(0.02), 'z': np.array(3, kind)})
    check(model, {'ids': ids}, tmp_path)


@pytest.mark.parametrize('directions', [1, 2])
def test_recurrent_weights_of_bytes(directions, tmp_path):
    needs_exact_sums()
    rng = np.random.default_rng(5)
    hidden, inner = 48, 40
    x = rng.normal(0, 1, (6, 2, inner)).astype(np.float32)
    weights = {}
    for name, rows in (('w', inner), ('r', hidden)):
        q, scale = quantized(rng.normal(0, 0.3, (directions, rows, 4 * hidden)).astype(np.float32), 0)
        weights.update({name: q, name + 's': scale, name + 'z': np.zeros(directions, np.int8)})
    node = helper.make_node('DynamicQuantizeLSTM', ['x', 'w', 'r', '', '', '', '', '', 'ws', 'wz', 'rs', 'rz'], ['y'],
                            domain='com.microsoft', hidden_size=hidden,
                            direction='forward' if directions == 1 else 'bidirectional')
    check(model_of([node], {'x': x}, weights), {'x': x}, tmp_path, tolerance=5e-6)


def test_what_a_loop_hands_on_stays_constant(tmp_path):
    rng = np.random.default_rng(6)
    w = (rng.normal(0, 1, (96, 96)) / 10).astype(np.float32)
    body = helper.make_graph(
        [helper.make_node('MatMul', ['state', 'weight'], ['m']), helper.make_node('Tanh', ['m'], ['next']),
         helper.make_node('Identity', ['weight'], ['same']),
         helper.make_node('Identity', ['go'], ['on'])], 'body',
        [helper.make_tensor_value_info('i', TensorProto.INT64, []), helper.make_tensor_value_info('go', TensorProto.BOOL, []),
         helper.make_tensor_value_info('state', TensorProto.FLOAT, [2, 96]),
         helper.make_tensor_value_info('weight', TensorProto.FLOAT, [96, 96])],
        [helper.make_tensor_value_info('on', TensorProto.BOOL, []), helper.make_tensor_value_info('next', TensorProto.FLOAT, [2, 96]),
         helper.make_tensor_value_info('same', TensorProto.FLOAT, [96, 96])])
    nodes = [helper.make_node('Loop', ['n', '', 'x', 'w'], ['y', 'z'], body=body)]
    inputs = {'n': np.array(4, np.int64), 'x': rng.normal(0, 1, (2, 96)).astype(np.float32)}
    net = check(model_of(nodes, inputs, {'w': w}), inputs, tmp_path)
    assert 'InnerProduct' in net[0].read_text()


@pytest.mark.parametrize('length,step,onesided', [(512, 160, 1), (400, 160, 1), (60, 7, 0), (21, 5, 1)])
def test_stft_is_no_matrix(length, step, onesided, tmp_path):
    rng = np.random.default_rng(2)
    window = rng.normal(0, 1, length).astype(np.float32)
    inputs = {'x': rng.normal(0, 1, (2, 1500)).astype(np.float32)}
    nodes = [helper.make_node('STFT', ['x', 'step', 'window'], ['z'], onesided=onesided),
             helper.make_node('ReduceSumSquare', ['z', 'axes'], ['y'], keepdims=0)]
    weights = {'window': window, 'step': np.array(step), 'axes': np.array([-1])}
    path = tmp_path / 'm.onnx'
    onnx.save(model_of(nodes, inputs, weights, 18), path)
    net = convert(path, tmp_path)
    assert 'Stft' in net[0].read_text()
    assert sum(p.stat().st_size for p in net) <= 1.1 * path.stat().st_size + 4096
    # NumPy's answers: ONNX Runtime's own for lengths that are no powers of 2 are off by 1e-5.
    frames = np.lib.stride_tricks.sliding_window_view(inputs['x'].astype(np.float64), length, axis=1)[:, ::step] * window
    want = np.abs(np.fft.rfft(frames) if onesided else np.fft.fft(frames)) ** 2
    have = run(net, inputs, ['y'], tmp_path)['y']
    assert have.shape == want.shape
    assert np.abs(have - want).max() <= 1e-6 * want.max()


@pytest.mark.parametrize('onesided', [0, 1])
def test_dft_of_real_signals_is_no_matrix(onesided, tmp_path):
    rng = np.random.default_rng(2)
    inputs = {'x': rng.normal(0, 1, (2, 3, 400, 1)).astype(np.float32)}
    nodes = [helper.make_node('DFT', ['x', 'length'], ['z'], axis=2, onesided=onesided),
             helper.make_node('Identity', ['z'], ['y'])]
    check(model_of(nodes, inputs, {'length': np.array(512)}), inputs, tmp_path, 1.1, 1e-6)


def test_a_long_range_is_computed(tmp_path):
    inputs = {'x': np.arange(1, dtype=np.int64) + 70000}
    nodes = [helper.make_node('Range', ['from', 'to', 'by'], ['r']), helper.make_node('Min', ['r', 'x'], ['m']),
             helper.make_node('Cast', ['m'], ['y'], to=TensorProto.FLOAT)]
    weights = {'from': np.array(0), 'to': np.array(100000), 'by': np.array(1)}
    check(model_of(nodes, inputs, weights), inputs, tmp_path)


UNARY = ('Sin', 'Cos', 'Tanh', 'Sigmoid', 'Neg', 'Abs')
USES = ('conv', 'matmul', 'add', 'gather', 'mask')


def computed_table(rng, rows, columns):
    """Nodes and weights that make `t` (rows, columns) out of a row and a column."""
    weights = {'column': rng.normal(0, 1, (rows, 1)).astype(np.float32), 'row': rng.normal(0, 1, columns).astype(np.float32)}
    first, last = rng.choice(['Add', 'Sub', 'Mul', 'Max', 'Min'], 2)
    nodes = [helper.make_node(first, ['column', 'row'], ['t0'])]
    for i, op in enumerate(rng.choice(UNARY, rng.integers(1, 4))):
        nodes.append(helper.make_node(op, [f't{i}'], [f't{i + 1}']))
    nodes.append(helper.make_node(last, [f't{len(nodes) - 1}', 'row'], ['t']))
    return nodes, weights


def use_of_table(use, rng, rows, columns):
    """Nodes, weights and inputs behind `t`."""
    if use == 'conv':
        weights = {'sizes': np.array([rows, 1, columns], np.int64)}
        nodes = [helper.make_node('Reshape', ['t', 'sizes'], ['k']), helper.make_node('Conv', ['x', 'k'], ['y'], strides=[7])]
        return nodes, weights, {'x': rng.normal(0, 1, (1, 1, 2 * columns)).astype(np.float32)}
    if use == 'matmul':
        return [helper.make_node('MatMul', ['x', 't'], ['y'])], {}, {'x': rng.normal(0, 1, (3, rows)).astype(np.float32)}
    if use == 'gather':
        return [helper.make_node('Gather', ['t', 'x'], ['y'])], {}, {'x': rng.integers(0, rows, (2, 5))}
    x = rng.normal(0, 1, (2, rows, columns)).astype(np.float32)
    if use == 'add':
        return [helper.make_node('Add', ['x', 't'], ['y'])], {}, {'x': x}
    nodes = [helper.make_node('Less', ['t', 'row'], ['m']), helper.make_node('Where', ['m', 'x', 'column'], ['y'])]
    return nodes, {}, {'x': x}


@pytest.mark.parametrize('use', USES)
@pytest.mark.parametrize('seed', range(4))
def test_files_are_no_larger_than_the_model(use, seed, tmp_path):
    rng = np.random.default_rng([USES.index(use), seed])
    rows, columns = (int(n) for n in rng.integers(60, 300, 2))
    nodes, weights = computed_table(rng, rows, columns)
    more_nodes, more_weights, inputs = use_of_table(use, rng, rows, columns)
    check(model_of(nodes + more_nodes, inputs, {**weights, **more_weights}), inputs, tmp_path, 1.1, 2e-5)


@pytest.mark.parametrize('op', ['ConstantOfShape', 'Expand', 'Tile', 'EyeLike', 'OneHot'])
def test_what_fills_a_table_is_no_table(op, tmp_path):
    x = np.random.default_rng(0).normal(0, 1, (150, 200)).astype(np.float32)
    value = numpy_helper.from_array(np.array([0.5], np.float32))
    weights = {'sizes': np.array([150, 200]), 'one': np.ones((1, 1), np.float32), 'ids': np.arange(150), 'depth': np.array(200),
               'ends': np.array([0, 1], np.float32)}
    nodes = {'ConstantOfShape': [helper.make_node(op, ['sizes'], ['t'], value=value)],
             'Expand': [helper.make_node(op, ['one', 'sizes'], ['t'])], 'Tile': [helper.make_node(op, ['one', 'sizes'], ['t'])],
             'EyeLike': [helper.make_node('ConstantOfShape', ['sizes'], ['z']), helper.make_node(op, ['z'], ['t'])],
             'OneHot': [helper.make_node(op, ['ids', 'depth', 'ends'], ['t'])]}[op]
    weights = {n: w for n, w in weights.items() if any(n in node.input for node in nodes)}
    model = model_of([*nodes, helper.make_node('Mul', ['x', 't'], ['m']), helper.make_node('Add', ['m', 't'], ['y'])], {'x': x}, weights)
    check(model, {'x': x}, tmp_path)
