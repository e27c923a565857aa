"""Nodes with unusual attributes and inputs, each alone, beside ONNX Runtime."""
import subprocess

import ml_dtypes
import numpy as np
import pytest

onnx = pytest.importorskip('onnx')
ort = pytest.importorskip('onnxruntime')
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from onnx_run import BIN, Failure, convert, run  # noqa: E402

ort.set_default_logger_severity(4)
ML = 'ai.onnx.ml'
X = (np.arange(12) / 2).astype(np.float32).reshape(3, 4)
SIGNS = np.float32([-2, -1, -0.0, 0, 1, 2, np.inf, -np.inf, np.nan])
LARGE = (np.arange(24, dtype=np.int64) * 88888883 % 1999999973 - 999999937).reshape(2, 3, 4)
IMAGE = np.sin(np.arange(24, dtype=np.float32)).reshape(2, 3, 4) + 1


def scale_of(sizes):
    return np.arange(np.prod(sizes), dtype=np.float32).reshape(sizes) - 1


def model_of(nodes, inputs, constants):
    graph = helper.make_graph(
        nodes, 'g', [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in inputs.items()],
        [helper.make_empty_tensor_value_info('y')], [numpy_helper.from_array(a, n) for n, a in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid('', 23), helper.make_opsetid(ML, 3)], ir_version=11)


def ours(model, inputs, folder):
    onnx.save(model, folder / 'm.onnx')
    return run(convert(folder / 'm.onnx', folder), inputs, ['y'], folder)['y']


def node(op, inputs, output='y', domain='', **attributes):
    return helper.make_node(op, inputs, [output], domain=domain, **attributes)


def case(name, nodes, inputs, constants=None):
    return pytest.param(nodes if isinstance(nodes, list) else [nodes], inputs, constants or {}, id=name)


def both(name, nodes, inputs, more):
    """With the inputs `more` given and as constants."""
    return [case(f'{name}-given', nodes, {**inputs, **more}), case(f'{name}-constant', nodes, inputs, more)]


def dynamic_quantize(output):
    outputs = [n if n == output else n + '_unused' for n in ('q', 'scale', 'zero')]
    return [helper.make_node('DynamicQuantizeLinear', ['x'], outputs), node('Cast', [output], to=TensorProto.FLOAT)]


CASES = [
    # Points that are no numbers.
    *[case(f'GridSample-nan-{mode}-{padding}', node('GridSample', ['x', 'g'], mode=mode, padding_mode=padding, align_corners=align),
           {'x': IMAGE[None], 'g': np.float32([[[[np.nan, 0.1], [0.3, np.nan], [np.nan, np.nan], [0.2, -0.4]]]])})
      for mode in ('linear', 'nearest', 'cubic') for padding in ('zeros', 'border', 'reflection') for align in (0, 1)],
    # Borders wider than the axis go round it several times.
    *[case(f'Pad-wrap-{pads}', node('Pad', ['x', 'p'], mode='wrap'), {'x': X}, {'p': np.int64(pads)})
      for pads in ([0, 6, 0, 5], [7, 0, 4, 1], [3, 4, 3, 4])],
    # What negative ones leave is what goes round.
    *[c for pads in ([0, -1, 0, 4], [0, 4, -1, -1], [-1, 5, 0, -2])
      for c in both(f'Pad-wrap-{pads}', node('Pad', ['x', 'p'], mode='wrap'), {'x': X}, {'p': np.int64(pads)})],
    *[case(f'Pad-reflect-{pads}', node('Pad', ['x', 'p'], mode='reflect'), {'x': X.reshape(3, 2, 2, 1)}, {'p': np.int64(pads)})
      for pads in ([2, 0, 0, 0, 1, 0, 0, 0], [0, 1, 0, 0, 0, 1, 0, 0], [2, 1, 1, 0, 2, 0, 1, 0])],
    # Integers of 16 bits wrap, which shows in what is computed of them.
    *[case(f'{op}-{t.__name__}', [node(op, ['x', 'k'], 'z', **more), node('Cast', ['z'], to=TensorProto.FLOAT)],
           {'x': np.array([1, 300, 60000], np.uint16).astype(t)}, {'k': np.array([9], t)})
      for op, more, types in (('Add', {}, (np.int16, np.uint16)), ('Sub', {}, (np.int16, np.uint16)), ('Mul', {}, (np.int16, np.uint16)),
                              ('BitShift', {'direction': 'LEFT'}, (np.uint16,))) for t in types],
    *[case(f'BitwiseNot-{t.__name__}', [node('BitwiseNot', ['x'], 'z'), node('Cast', ['z'], to=TensorProto.FLOAT)],
           {'x': np.array([1, 300, 30000], t)}) for t in (np.int16, np.uint16)],
    # Integers that a float does not hold.
    *[c for kind in (np.int32, np.int64) for v in (16777217, 2147483647, -2147483648)
      for c in both(f'Pad-{v}-{kind.__name__}', node('Pad', ['x', 'p', 'v']), {'x': kind([[1, 2], [3, 4]])}, {'p': np.int64([1, 0, -1, 1]), 'v': np.array(v, kind)})],
    *[case(f'{op}-{kind.__name__}-{axis}-keepdims{keep}', node(op, ['x', 'a'], keepdims=keep), {'x': x.astype(kind)}, {'a': np.int64([axis])})
      for op, x in (('ReduceSum', LARGE // 7), ('ReduceMax', LARGE), ('ReduceMin', LARGE), ('ReduceMean', LARGE // 7), ('ReduceL1', LARGE // 7),
                    ('ReduceProd', LARGE % 181), ('ReduceSumSquare', LARGE % 20011))
      for kind in ((np.int32, np.int64) if op in ('ReduceSum', 'ReduceMax', 'ReduceMin') else (np.int32,)) for axis, keep in ((0, 1), (1, 0), (2, 1))],
    case('ReduceSum-all-large', node('ReduceSum', ['x'], keepdims=0), {'x': LARGE // 97}),
    *both('Range-large', node('Range', ['a', 'b', 'c']), {'a': np.array(16777217)}, {'b': np.array(16777301), 'c': np.array(5)}),
    # Numbers with a fraction are cast to the integers that categories are.
    case('OneHotEncoder-floats', node('OneHotEncoder', ['x'], domain=ML, cats_int64s=[1, 2, 5]), {'x': X}),
    case('OneHotEncoder-doubles', node('OneHotEncoder', ['x'], domain=ML, cats_int64s=[-1, 2, 5]), {'x': np.float64(X) - 1.75}),
    # What is not 1 is 0.
    *[case(f'{op}-keepdims{k}', node(op, ['x'], keepdims=k, **more), {'x': X})
      for k in (2, -1) for op, more in (('ReduceMax', {}), ('ReduceMean', {}), ('ArgMax', {'axis': 1}), ('ArgMin', {'axis': 0}))],
    case('ReduceMean-keepdims2-axes', node('ReduceMean', ['x', 'a'], keepdims=2), {'x': X}, {'a': np.int64([0])}),
    *[case(f'CastLike-saturate{s}', [node('CastLike', ['x', 't'], 'z', saturate=s), node('Cast', ['z'], to=TensorProto.FLOAT)],
           {'x': X * 400}, {'t': np.zeros(1, ml_dtypes.float8_e4m3fn)}) for s in (0, 1, 2, -1)],
    case('Cast-saturate2', [node('Cast', ['x'], 'z', saturate=2, to=TensorProto.FLOAT8E5M2), node('Cast', ['z'], to=TensorProto.FLOAT)],
         {'x': X * 50000}),
    case('ThresholdedRelu-infinite', node('ThresholdedRelu', ['x'], alpha=0.5),
         {'x': np.float32([-np.inf, -3, -0.0, np.nan, 0.5, 0.75, np.inf])}),
    *[case(f'IsInf-{p}-{n}', [node('IsInf', ['x'], 'z', detect_positive=p, detect_negative=n), node('Cast', ['z'], to=TensorProto.FLOAT)],
           {'x': np.float32([-np.inf, 1, np.inf])}) for p, n in ((3, 0), (0, -1), (2, 2))],
    # One scale in a list, for a number.
    *[case(f'DequantizeLinear-number-{"given" if given else "constant"}', node('DequantizeLinear', ['x', 's', 'z']),
           {'x': np.array(5, np.int8), **({'s': np.array(0.5, np.float32)} if given else {})},
           {'z': np.int8([3]), **({} if given else {'s': np.array(0.5, np.float32)})}) for given in (False, True)],
    # Steps longer than any axis.
    *[case(f'Slice-{begin}-{step}', [node('Slice', ['k', 'b', 'e', 'a', 's'], 'z'), node('Cast', ['z'], 'f', to=TensorProto.FLOAT),
                                     node('Concat', ['f', 'x'], axis=0)],
           {'x': X[0]}, {'k': np.int64([3, 4, 5]), 'b': np.int64([begin]), 'e': np.int64([end]), 'a': np.int64([0]), 's': np.int64([step])})
      for begin, end, step in ((1, 2 ** 63 - 1, 2 ** 63 - 1), (2, -2 ** 63, -2 ** 63), (0, 2 ** 62, 2 ** 62))],
    # The window's length as a list of lists.
    case('HannWindow-1x1', node('HannWindow', ['n']), {'n': np.int64([[6]])}),
    case('HannWindow-1', node('HannWindow', ['n']), {'n': np.int64([6])}),
    # Indices without any, and without axes: the whole tensor for each.
    *[case(f'GatherND-{a}x{b}-{"given" if given else "constant"}', node('GatherND', ['x', 'i']),
           {'x': X, **({'i': np.zeros((a, b), np.int64)} if given else {})}, {} if given else {'i': np.zeros((a, b), np.int64)})
      for a, b in ((0, 1), (0, 2), (2, 0)) for given in (False, True)],
    case('GatherND-0', node('GatherND', ['x', 'i']), {'x': X, 'i': np.zeros(0, np.int64)}),
    # A condition longer than the axis: what lies behind chooses nothing. A shorter one.
    *[c for axis in (0, 1, -1) for length in (7, 2)
      for c in both(f'Compress-{length}-axis{axis}', node('Compress', ['x', 'c'], axis=axis), {'x': X}, {'c': np.arange(length) % 3 != 1})],
    *both('Compress-20-flat', node('Compress', ['x', 'c']), {'x': X}, {'c': np.arange(20) % 3 != 1}),
    # Slopes that are not finite meet negative values alone.
    *[c for shape in ((3, 1), (1,), (3, 9), (9,)) for c in both(
        f'PRelu-infinite-{"x".join(map(str, shape))}', node('PRelu', ['x', 's']), {'x': np.tile(SIGNS, (3, 1))},
        {'s': np.resize(np.float32([np.inf, -np.inf, np.nan, 0.5]), shape)})],
    *both('PRelu-infinite-channels', node('PRelu', ['x', 's']), {'x': np.tile(SIGNS, (2, 3, 1, 1))},
          {'s': np.float32([np.inf, -np.inf, np.nan]).reshape(3, 1, 1)}),
    # The definition says 0 / 0.
    *[case(f'DynamicQuantizeLinear-{n}-{output}', dynamic_quantize(output), {'x': x}) for output in ('q', 'scale', 'zero')
      for n, x in (('zeros', np.zeros((2, 3), np.float32)), ('nothing', np.zeros((0, 3), np.float32)), ('ones', np.ones(3, np.float32)))],
    case('OneHotEncoder-twice', node('OneHotEncoder', ['x'], domain=ML, cats_int64s=[2, 1, 2, 5, 2]), {'x': X}),
    case('OneHotEncoder-strings-twice', node('OneHotEncoder', ['x'], domain=ML, cats_strings=['a', 'b', 'a']),
         {'x': np.array(['a', 'b', 'c'], object)}),
    *[c for repeats in ([0, 1], [1, 0], [2, 0], [0, 0])
      for c in both(f'Tile-{repeats[0]}x{repeats[1]}', node('Tile', ['x', 'r']), {'x': X}, {'r': np.int64(repeats)})],
    *both('Tile-0', node('Tile', ['x', 'r']), {'x': X[0]}, {'r': np.int64([0])}),
    *[case(f'DeformConv-of-constants-{groups}-{fields}', [node('DeformConv', ['image', 'w', 'o'], 'd', group=groups, offset_group=fields),
                                                          node('Add', ['d', 'x'])],
           {'x': np.ones((1, 4, 2, 3), np.float32)},
           {'image': scale_of((1, 2, 3, 4)), 'w': scale_of((4, 2 // groups, 2, 2)), 'o': np.sin(scale_of((1, 8 * fields, 2, 3)))})
      for groups, fields in ((1, 1), (2, 1), (1, 2), (2, 2))],
    # A number has no axes to look at.
    *[case(f'{op}-number-keepdims{k}-axis{axis}', node(op, ['x', 'a'], keepdims=k), {'x': np.array(-3.5, np.float32), 'a': np.int64([axis])})
      for op, axis in (('ReduceSum', 0), ('ReduceMax', -1), ('ReduceL1', 0), ('ReduceSumSquare', -1)) for k in (0, 1)],
    case('Compress-2D', node('Compress', ['x', 'c'], axis=0), {'x': X, 'c': np.array([[True], [False], [True]])}),
    case('Compress-2D-flat', node('Compress', ['x', 'c']), {'x': X, 'c': np.array([[True, False], [False, True]])}),
    # A scale of fewer axes than are normalised, and of more.
    *[case(f'LayerNormalization-{axis}-{"x".join(map(str, sizes))}-{"given" if given else "constant"}', node('LayerNormalization', ['x', 's'], axis=axis),
           {'x': IMAGE, **({'s': scale_of(sizes)} if given else {})}, {} if given else {'s': scale_of(sizes)})
      for axis, sizes in ((0, (3, 4)), (0, (4,)), (1, (3, 1)), (1, (4,)), (1, (1, 1)), (2, (3, 4)), (1, (2, 3, 4)))
      for given in (False, True)],
    *[case(f'{op}-{how}-nan', node(op, ['x', 'i', 'u'], reduction=how), {'x': np.float32([1, np.nan, 3, np.nan]), 'u': np.float32([np.nan, 2, 7, np.nan])},
           {'i': np.arange(4).reshape((4, 1) if op == 'ScatterND' else 4)}) for op in ('ScatterND', 'ScatterElements') for how in ('max', 'min')],
    # One tensor that is several inputs.
    *both('LayerNormalization-one', node('LayerNormalization', ['x', 's', 's']), {'x': IMAGE}, {'s': scale_of(4)}),
    *both('BatchNormalization-one', node('BatchNormalization', ['x', 's', 's', 's', 's']), {'x': IMAGE}, {'s': np.float32([1, 2, 3])}),
    *both('InstanceNormalization-one', node('InstanceNormalization', ['x', 's', 's']), {'x': IMAGE}, {'s': np.float32([1, 2, 3])}),
    *both('GroupNormalization-one', node('GroupNormalization', ['x', 's', 's'], num_groups=3), {'x': IMAGE}, {'s': np.float32([1, 2, 3])}),
    *both('Clip-one', node('Clip', ['x', 's', 's']), {'x': IMAGE}, {'s': np.array(0.5, np.float32)}),
    case('Attention-one', node('Attention', ['x', 'x', 'x']), {'x': IMAGE[None]}),
    case('Gemm-one', node('Gemm', ['x', 'x', 'x'], transB=1, beta=0.5), {'x': IMAGE[0, :, :3]}),
    *[case(f'Attention-causal{c}', node('Attention', ['q', 'k', 'v'], is_causal=c),
           {n: np.cos(np.arange(24, dtype=np.float32) * (i + 1)).reshape(1, 2, 3, 4) for i, n in enumerate('qkv')}) for c in (0, 1, 2, -1)],
    # Wider than the input and its borders: one window, as sizes are rounded up.
    *[case(f'MaxPool-wide-{k}-{s}', node('MaxPool', ['x'], kernel_shape=[k], strides=[s], ceil_mode=1), {'x': IMAGE[:, :, :n]})
      for n, k, s in ((1, 2, 2), (1, 2, 3), (1, 3, 3), (2, 3, 2), (2, 4, 3))],
    *[case(f'AveragePool-ceil{c}', node('AveragePool', ['x'], kernel_shape=[2], strides=[2], ceil_mode=c), {'x': IMAGE[:, :, :3]}) for c in (1, 2)],
    *[case(f'ReduceL1-noop{k}', node('ReduceL1', ['x', 'a'], noop_with_empty_axes=k), {'x': X - 2}, {'a': np.int64([])}) for k in (0, 1, 2)],
    # Of one value they are not that value, whether it is constant or a size.
    *[case(f'{op}-of-one', [node(op, ['k'], 'z'), node('Cast', ['z'], 'f', to=TensorProto.FLOAT), node('Add', ['x', 'f'])], {'x': X},
           {'k': np.int32([v])}) for op, v in (('ReduceL1', -7), ('ReduceL2', -7), ('ReduceSumSquare', 7), ('ReduceLogSum', 8), ('ReduceMin', -7))],
    *[case(f'{op}-noop-{kind.__name__}', node(op, ['x', 'a'], noop_with_empty_axes=1), {'x': kind([1, 5, 3])}, {'a': np.int64([])})
      for op, kind in (('ReduceL2', np.float32), ('ReduceSumSquare', np.float32), ('ReduceLogSum', np.float32), ('ReduceLogSumExp', np.float32),
                       ('ReduceL1', np.int32), ('ReduceSumSquare', np.int64))],
    # The places of MaxPool are in its own input, which the windows need not fill.
    *[c for sizes in ((1, 2, 5), (2, 2, 5, 7), (1, 1, 5, 4, 5), (1, 1, 4, 6))
      for c in both(f'MaxUnpool-{"x".join(map(str, sizes))}', [
          helper.make_node('MaxPool', ['x'], ['p', 'i'], kernel_shape=[2] * (len(sizes) - 2), strides=[3] * (len(sizes) - 2)),
          node('MaxUnpool', ['p', 'i', 's'], kernel_shape=[2] * (len(sizes) - 2), strides=[3] * (len(sizes) - 2))],
          {'x': np.sin(scale_of(sizes))}, {'s': np.int64(sizes)})],
    # The scale of the first axis is the one of all.
    case('Resize-not-smaller', node('Resize', ['x', '', '', 's'], mode='linear', keep_aspect_ratio_policy='not_smaller', axes=[0, 2, 3]),
         {'x': np.stack([IMAGE, IMAGE + 1])}, {'s': np.int64([2, 2, 3])}),
    # Where a label is ignored the loss is 0, whatever class 0 has there.
    *[case(f'{op}-ignored-{how}', node(op, ['x', 't'], ignore_index=255, reduction=how),
           {'x': np.float32([[-np.inf, .5, -1], [-np.inf, .2, .3], [-np.inf, 1, 2]]), 't': np.int64([1, 255, 2])})
      for op in ('SoftmaxCrossEntropyLoss', 'NegativeLogLikelihoodLoss') for how in ('sum', 'none', 'mean')],
]


@pytest.mark.parametrize('nodes, inputs, constants', CASES)
def test_corner(nodes, inputs, constants, tmp_path):
    model = model_of(nodes, inputs, constants)
    want, = ort.InferenceSession(model.SerializeToString(), providers=['CPUExecutionProvider']).run(None, inputs)
    have = ours(model, inputs, tmp_path)
    assert have.shape == want.shape and (have.dtype == want.dtype or want.dtype == np.float64)
    exact = want.dtype.kind != 'f'
    np.testing.assert_allclose(have, want.reshape(have.shape), 0 if exact else 1e-5, 0 if exact else 1e-6)


@pytest.mark.parametrize('batch', ['n', 3])
def test_reflection_wider_than_the_axis(batch, tmp_path):
    model = model_of([node('Pad', ['x', 'p'], mode='reflect')], {'x': X.reshape(3, 2, 2)}, {'p': np.int64([4, 0, 0, 0, 0, 0])})
    model.graph.input[0].type.tensor_type.shape.dim[0].CopyFrom(onnx.TensorShapeProto.Dimension(
        **({'dim_param': batch} if isinstance(batch, str) else {'dim_value': batch})))
    with pytest.raises(Failure, match='cannot be reflected'):
        ours(model, {'x': X.reshape(3, 2, 2)}, tmp_path)


@pytest.mark.parametrize('nodes, inputs, constants, why', [
    (helper.make_node('Split', ['x', 's'], ['z', 'y']), {'x': X}, {'s': np.int64([-1, 4])}, 'a piece of -1'),
    (node('Tile', ['x', 'r']), {'x': X, 'r': np.int64([1, 2, 3])}, {}, 'repeats for another rank'),
    (node('Trilu', ['x', 'k']), {'x': X}, {'k': np.int64([])}, 'k has no value'),
    (node('CumSum', ['x', 'k']), {'x': X}, {'k': np.int64([])}, 'axis has no value'),
])
def test_wrong_lists_are_refused(nodes, inputs, constants, why, tmp_path):
    with pytest.raises(Failure, match=why):
        ours(model_of([nodes], inputs, constants), inputs, tmp_path)


def test_indices_of_no_axes_write_all(tmp_path):
    model = model_of([node('ScatterND', ['x', 'i', 'u'])], {'x': X, 'u': X[None]}, {'i': np.zeros((1, 0), np.int64)})
    with pytest.raises(Failure, match='indices of 0'):
        ours(model, {'x': X, 'u': X[None]}, tmp_path)


@pytest.mark.parametrize('groups, scales', [(8, 8), (4, 4), (2, 2), (3, 2)])
def test_groups_that_do_not_go_with_the_channels(groups, scales, tmp_path):
    """Opset 18 has a scale for each group."""
    model = model_of([node('GroupNormalization', ['x', 's', 'b'], num_groups=groups)], {'x': IMAGE}, {n: scale_of(scales) for n in 'sb'})
    model.opset_import[0].version = 18
    with pytest.raises(Failure, match=f'{groups} groups of 3 channels, {scales} scales'):
        ours(model, {'x': IMAGE}, tmp_path)


@pytest.mark.parametrize('mode', ['nearest', 'linear'])
def test_first_resize_with_scales_given(mode, tmp_path):
    inputs = {'x': IMAGE[None], 's': np.float32([1, 1, 2, 1.5])}
    model = model_of([node('Resize', ['x', 's'], mode=mode)], inputs, {})
    model.opset_import[0].version = 10
    want, = ort.InferenceSession(model.SerializeToString(), providers=['CPUExecutionProvider']).run(None, inputs)
    np.testing.assert_allclose(ours(model, inputs, tmp_path), want, 1e-5, 1e-6)


@pytest.mark.parametrize('mode', ['nearest', 'linear'])
@pytest.mark.parametrize('transform', ['half_pixel', 'tf_crop_and_resize'])
def test_declared_sizes_of_resize(mode, transform, tmp_path):
    """10 times 0.7 in f32 is 7, and a roi does not change sizes. ONNX's shape inference says otherwise and fails: beside ONNX
    Runtime the sizes are open."""
    inputs = {'x': np.resize(IMAGE, (1, 1, 10, 20))}
    constants = {'roi': np.float32([0, 0, .2, .3, 1, 1, .7, .9]), 's': np.float32([1, 1, .7, .7]), 'rows': np.int64([7, -1])}
    model = model_of([node('Resize', ['x', 'roi', 's'], 'z', mode=mode, coordinate_transformation_mode=transform),
                      node('Reshape', ['z', 'rows'])], inputs, constants)
    have = ours(model, inputs, tmp_path)
    for value in (model.graph.input[0], model.graph.output[0]):
        for i, size in enumerate(value.type.tensor_type.shape.dim):
            size.dim_param = f'{value.name}{i}'
    want, = ort.InferenceSession(model.SerializeToString(), providers=['CPUExecutionProvider']).run(None, inputs)
    np.testing.assert_allclose(have, want, 1e-5, 1e-6)


def test_old_clip_with_bounds_exchanged(tmp_path):
    """As Clip since opset 12: ONNX Runtime takes only bounds in order here."""
    model = model_of([node('Clip', ['x'], min=5., max=1.)], {'x': X}, {})
    model.opset_import[0].version = 6
    np.testing.assert_array_equal(ours(model, {'x': X}, tmp_path), np.ones_like(X))


@pytest.mark.parametrize('lists', [{'output_shape': [9]}, {'output_shape': [1, 3, 9, 11]}, {'output_padding': [1]}, {'output_padding': [1, 0, 1]}])
def test_transposed_convolution_with_lists_of_another_length(lists, tmp_path):
    path = tmp_path / 'm.onnx'
    nodes = [node('ConvTranspose', ['x', 'w'], strides=[2, 2], **lists)]
    path.write_bytes(model_of(nodes, {'x': IMAGE[None]}, {'w': scale_of((2, 3, 3, 3))}).SerializeToString())
    with pytest.raises(Failure, match='for 2 axes'):
        convert(path, tmp_path)


def test_normalization_over_one_value(tmp_path):
    """By the definition 0. ONNX Runtime takes the variance as a difference of squares, whose rounding can be below 0: NaN then."""
    x = np.float32([[[[0.7]], [[-3.1]], [[0]]]])
    model = model_of([node('MeanVarianceNormalization', ['x'])], {'x': x}, {})
    np.testing.assert_array_equal(ours(model, {'x': x}, tmp_path), np.zeros_like(x))


def test_window_of_integers(tmp_path):
    path = tmp_path / 'm.onnx'
    model = model_of([node('HannWindow', ['n'], output_datatype=TensorProto.INT32)], {'n': np.array(6)}, {})
    path.write_bytes(model.SerializeToString())
    with pytest.raises(Failure, match='output_datatype int32'):
        convert(path, tmp_path)


def test_large_integers_in_what_is_folded(tmp_path):
    """They are limited to 32 bits, which is said."""
    nodes = [node('Less', ['a', 'b'], 'less'), node('Cast', ['less'], 'number', to=TensorProto.FLOAT), node('Add', ['x', 'number'])]
    onnx.save(model_of(nodes, {'x': X}, {'a': np.int64([10 ** 10]), 'b': np.int64([10 ** 11])}), tmp_path / 'm.onnx')
    done = subprocess.run([BIN / 'onnx2engine', *(tmp_path / n for n in ('m.onnx', 'm.param', 'm.bin'))], capture_output=True, text=True)
    assert done.returncode == 0 and 'beyond 32 bits' in done.stdout + done.stderr


def test_output_called_like_an_input(tmp_path):
    """A node that fusion would take is looked at, too: two Transposes are none."""
    nodes = [helper.make_node('Transpose', ['x'], ['t'], perm=[1, 0]), helper.make_node('Transpose', ['t'], ['x'], perm=[1, 0]),
             helper.make_node('Neg', ['x'], ['y'])]
    path = tmp_path / 'm.onnx'
    path.write_bytes(model_of(nodes, {'x': X}, {}).SerializeToString())
    with pytest.raises(Failure, match='its output x is made twice'):
        convert(path, tmp_path)


def test_output_called_like_a_name_that_conversion_makes(tmp_path):
    """A constant of one value gets a name of its own for each rank, which is not that of a later node."""
    nodes = [node('Max', ['x', 'half'], 'a'), node('Expand', ['half', 'sizes'], 'half_1'), node('MatMul', ['half_1', 'a'])]
    model = model_of(nodes, {'x': X}, {'half': np.float32(0.5), 'sizes': np.int64([2, 3])})
    want = ort.InferenceSession(model.SerializeToString()).run(None, {'x': X})[0]
    np.testing.assert_allclose(ours(model, {'x': X}, tmp_path), want)
