"""Operators with parameters that the official cases leave out, against NumPy or ONNX Runtime."""
import numpy as np
import pytest

onnx = pytest.importorskip('onnx')
ort = pytest.importorskip('onnxruntime')
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from onnx_run import convert, run  # noqa: E402

ort.set_default_logger_severity(4)


def build(nodes, inputs, outputs, weights=None, opset=20):
    """inputs and weights are arrays by name; a dict of shapes may stand for sizes that are left open."""
    kinds = {n: helper.np_dtype_to_tensor_dtype(a.dtype) for n, a in inputs.items()}
    graph = helper.make_graph(
        nodes, 'g', [helper.make_tensor_value_info(n, kinds[n], a.shape) for n, a in inputs.items()],
        [helper.make_tensor_value_info(n, kind, None) for n, kind in outputs.items()],
        [numpy_helper.from_array(a, n) for n, a in (weights or {}).items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid('', opset)], ir_version=9)


def answers(model, inputs, folder):
    onnx.save(model, folder / 'm.onnx')
    net = convert(folder / 'm.onnx', folder)
    return run(net, inputs, [o.name for o in model.graph.output], folder)


def runtime_answers(model, inputs):
    session = ort.InferenceSession(model.SerializeToString(), providers=['CPUExecutionProvider'])
    return dict(zip([o.name for o in model.graph.output], session.run(None, inputs)))


@pytest.mark.parametrize('seed', range(12))
def test_signal_of_half_a_spectrum(seed, tmp_path):
    rng = np.random.default_rng(seed)
    shape = [int(v) for v in rng.integers(2, 9, int(rng.integers(2, 4)))]
    axis = int(rng.integers(len(shape)))
    length = int(rng.integers(2, 16)) if seed % 3 else 2 * (shape[axis] - 1)
    x = rng.normal(0, 1, (*shape, 2)).astype(np.float32)
    inputs = ['x', 'length' if seed % 3 else '', 'axis']
    model = build([helper.make_node('DFT', inputs, ['y'], inverse=1, onesided=1)], {'x': x}, {'y': TensorProto.FLOAT},
                  {'length': np.array(length), 'axis': np.array(axis)})
    want = np.fft.irfft(x[..., 0] + 1j * x[..., 1], length, axis)[..., None]
    got = answers(model, {'x': x}, tmp_path)['y']
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, 1e-5, 1e-5)


@pytest.mark.parametrize('seed', range(10))
@pytest.mark.parametrize('kind', ['Conv', 'ConvTranspose'])
def test_volumes_with_weights_as_inputs(kind, seed, tmp_path):
    rng = np.random.default_rng(seed)
    group, outputs, channels = int(rng.integers(1, 4)), int(rng.integers(1, 4)), int(rng.integers(1, 3))
    kernel = [int(v) for v in rng.integers(1, 4, 3)]
    counts = (outputs * group, channels) if kind == 'Conv' else (channels * group, outputs)
    inputs = {'x': rng.normal(0, 1, (int(rng.integers(1, 3)), channels * group, *rng.integers(4, 7, 3))),
              'w': rng.normal(0, 1, (*counts, *kernel)), 'b': rng.normal(0, 1, outputs * group)}
    inputs = {n: a.astype(np.float32) for n, a in inputs.items() if n != 'b' or seed % 2}
    attributes = {'group': group, 'strides': [int(v) for v in rng.integers(1, 3, 3)],
                  'pads': [int(v) for v in np.tile([min(k - 1, 1) for k in kernel], 2)]}
    model = build([helper.make_node(kind, list(inputs), ['y'], **attributes)], inputs, {'y': TensorProto.FLOAT})
    want = runtime_answers(model, inputs)['y']
    np.testing.assert_allclose(answers(model, inputs, tmp_path)['y'], want, 1e-4, 1e-5)


@pytest.mark.parametrize('seed', range(24))
def test_slices_known_at_run_time(seed, tmp_path):
    """Any of starts, ends, axes and steps may be an input; axes and steps may be missing."""
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 5))
    x = rng.normal(0, 1, rng.integers(2, 8, rank)).astype(np.float32)
    count = int(rng.integers(1, rank + 1))
    axes = rng.permutation(rank)[:count] if seed % 4 else np.arange(count)
    steps = rng.choice([-2, -1, 1, 2, 3], count)
    lists = {'starts': np.where(steps > 0, 0, -1) + 0 * axes, 'ends': np.where(steps > 0, 5, -9), 'axes': axes, 'steps': steps}
    if seed % 4 == 0:
        del lists['axes']
    lists = {n: a.astype(np.int64) for n, a in lists.items()}
    names = [n for n in lists if rng.random() < 0.5] or ['steps']
    inputs = {'x': x, **{n: lists[n] for n in names}}
    node = helper.make_node('Slice', ['x', *[n if n in lists else '' for n in ('starts', 'ends', 'axes', 'steps')]], ['y'])
    model = build([node], inputs, {'y': TensorProto.FLOAT}, {n: a for n, a in lists.items() if n not in names})
    want = runtime_answers(model, inputs)['y']
    got = answers(model, inputs, tmp_path)['y']
    assert got.shape == want.shape and np.array_equal(got, want)


@pytest.mark.parametrize('groups,fields', [(2, 2), (2, 4), (6, 2), (2, 3), (3, 2), (1, 6)])
def test_deformed_groups(groups, fields, tmp_path):
    from onnx.reference import ReferenceEvaluator
    rng = np.random.default_rng(groups * 7 + fields)
    channels, outputs, height, width = 12, 6, 5, 4
    inputs = {'x': rng.normal(0, 1, (2, channels, height, width)), 'o': rng.normal(0, 1, (2, fields * 18, height, width)),
              'm': rng.uniform(0, 1, (2, fields * 9, height, width))}
    weights = {'w': rng.normal(0, 1, (outputs, channels // groups, 3, 3)), 'b': rng.normal(0, 1, outputs)}
    inputs, weights = ({n: a.astype(np.float32) for n, a in d.items()} for d in (inputs, weights))
    node = helper.make_node('DeformConv', ['x', 'w', 'o', 'b', 'm'], ['y'], group=groups, offset_group=fields, pads=[1, 1, 1, 1],
                            kernel_shape=[3, 3])
    model = build([node], inputs, {'y': TensorProto.FLOAT}, weights)
    want = ReferenceEvaluator(model).run(None, inputs)[0]
    np.testing.assert_allclose(answers(model, inputs, tmp_path)['y'], want, 1e-4, 1e-4)


@pytest.mark.parametrize('images,regions', [(1, 3), (3, 4), (2, 1)])
def test_regions_of_images(images, regions, tmp_path):
    rng = np.random.default_rng(images * 5 + regions)
    corners = np.concatenate([rng.integers(0, 4, (regions, 2)), rng.integers(5, 9, (regions, 2))], 1)
    rois = np.concatenate([rng.integers(0, images, (regions, 1)), corners], 1).astype(np.float32)
    inputs = {'x': rng.normal(0, 1, (images, 2, 10, 10)).astype(np.float32), 'r': rois}
    model = build([helper.make_node('MaxRoiPool', ['x', 'r'], ['y'], pooled_shape=[2, 2])], inputs, {'y': TensorProto.FLOAT})
    np.testing.assert_allclose(answers(model, inputs, tmp_path)['y'], runtime_answers(model, inputs)['y'], 1e-5, 1e-5)


@pytest.mark.parametrize('p,shape', [(1, (2, 3, 4)), (2, (2, 3, 4, 5)), (3, (1, 2, 3, 4)), (4, (2, 3, 2, 3, 4))])
def test_global_norms(p, shape, tmp_path):
    x = np.random.default_rng(p).normal(0, 1, shape).astype(np.float32)
    model = build([helper.make_node('GlobalLpPool', ['x'], ['y'], p=p)], {'x': x}, {'y': TensorProto.FLOAT})
    want = (np.abs(x) ** p).sum(tuple(range(2, x.ndim)), keepdims=True) ** (1 / p)
    np.testing.assert_allclose(answers(model, {'x': x}, tmp_path)['y'], want, 1e-4, 1e-5)


@pytest.mark.parametrize('shape', [(3, 4), (2, 3, 4), (2, 5, 3, 4), (2, 2, 5, 3, 4)])
@pytest.mark.parametrize('kind,attributes', [
    ('Trilu', {}), ('Softmax', {'axis': 0}), ('LogSoftmax', {'axis': -2}), ('TopK', {'axis': 0}), ('CumSum', {}), ('Pad', {}),
    ('Tile', {}), ('Slice', {}), ('Gather', {'axis': 0}), ('ArgMax', {'axis': -2, 'keepdims': 0}), ('Concat', {'axis': 0})])
def test_what_follows_a_product(kind, attributes, shape, tmp_path):
    """A product leaves axes merged that these operators need apart."""
    x, rank = np.random.default_rng(len(shape)).normal(0, 1, shape).astype(np.float32), len(shape)
    weights = {'w': np.random.default_rng(1).normal(0, 1, (4, 4)).astype(np.float32)}
    more = {'TopK': [[2]], 'CumSum': [0], 'Pad': [[1] + [0] * (2 * rank - 2) + [2]], 'Tile': [[2] * rank], 'Slice': [[0, 1], [1, 3]],
            'Gather': [1]}
    names = [f'p{i}' for i in range(len(more.get(kind, [])))]
    weights.update({n: np.array(v, np.int64) for n, v in zip(names, more.get(kind, []))})
    tops = ['y', 'z'] if kind == 'TopK' else ['y']
    made = [helper.make_node('MatMul', ['x', 'w'], ['m']),
            helper.make_node(kind, ['m', *(['x'] if kind == 'Concat' else []), *names], tops, **attributes)]
    model = build(made, {'x': x}, {'y': TensorProto.INT64 if kind == 'ArgMax' else TensorProto.FLOAT}, weights, opset=17)
    np.testing.assert_allclose(answers(model, {'x': x}, tmp_path)['y'], runtime_answers(model, {'x': x})['y'], 1e-5, 1e-5)


def test_five_axes_padded_in_front(tmp_path):
    x = np.random.default_rng(9).normal(0, 1, (2, 3, 2, 2, 3)).astype(np.float32)
    nodes = [helper.make_node('Add', ['x', 'x'], ['a']), helper.make_node('Pad', ['a', 'p'], ['y'])]
    model = build(nodes, {'x': x}, {'y': TensorProto.FLOAT}, {'p': np.array([1, 0, 0, 0, 2, 1, 0, 0, 1, 0])})
    np.testing.assert_array_equal(answers(model, {'x': x}, tmp_path)['y'], runtime_answers(model, {'x': x})['y'])


@pytest.mark.parametrize('group', [1, 4])
@pytest.mark.parametrize('mode', ['SAME_UPPER', 'SAME_LOWER'])
@pytest.mark.parametrize('depth,kernel,stride,dilation', [(8, 3, 2, 1), (7, 2, 1, 1), (9, 4, 3, 1), (8, 3, 3, 2), (6, 3, 1, 1)])
def test_same_padding_of_three_axes(depth, kernel, stride, dilation, mode, group, tmp_path):
    """Of an odd padding along the depth, too, which layers put behind in both modes."""
    rng = np.random.default_rng(depth)
    x = rng.normal(0, 1, (1, 4, depth, 6, 5)).astype(np.float32)
    w = rng.normal(0, 1, (8, 4 // group, kernel, 2, 3)).astype(np.float32)
    node = helper.make_node('Conv', ['x', 'w'], ['y'], auto_pad=mode, strides=[stride, 2, 1], dilations=[dilation, 1, 1], group=group)
    model = build([node], {'x': x}, {'y': TensorProto.FLOAT}, {'w': w})
    # Reference evaluators differ in dilated SAME windows: the definition, by explicit pads.
    total = [max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0)
             for n, k, s, d in zip(x.shape[2:], w.shape[2:], (stride, 2, 1), (dilation, 1, 1))]
    before = [t // 2 if mode == 'SAME_UPPER' else t - t // 2 for t in total]
    pads = before + [t - b for t, b in zip(total, before)]
    padded = helper.make_node('Conv', ['x', 'w'], ['y'], pads=pads, strides=[stride, 2, 1], dilations=[dilation, 1, 1], group=group)
    want = runtime_answers(build([padded], {'x': x}, {'y': TensorProto.FLOAT}, {'w': w}), {'x': x})['y']
    np.testing.assert_allclose(answers(model, {'x': x}, tmp_path)['y'], want, 1e-4, 1e-4)
