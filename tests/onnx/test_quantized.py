"""Quantised models as ONNX Runtime's own tools write them: int8 layers with the model's scales, and its answers
within a step of the quantisation."""
import os

import numpy as np
import pytest

onnx = pytest.importorskip('onnx')
ort = pytest.importorskip('onnxruntime')
quantization = pytest.importorskip('onnxruntime.quantization')
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from exact_session import needs_exact_sums  # noqa: E402
from onnx_run import BIN, convert, run, run_program  # noqa: E402
from test_zoo import load_graph, zoo  # noqa: E402, F401

U8, S8 = quantization.QuantType.QUInt8, quantization.QuantType.QInt8
QDQ, QOP = quantization.QuantFormat.QDQ, quantization.QuantFormat.QOperator
KINDS = {'qdq_u8s8': (QDQ, U8, S8, False), 'qdq_u8s8_channels': (QDQ, U8, S8, True),
         'qdq_s8s8': (QDQ, S8, S8, False), 'qdq_s8s8_channels': (QDQ, S8, S8, True),
         'qop_u8s8': (QOP, U8, S8, False), 'qop_s8s8_channels': (QOP, S8, S8, True),
         'qdq_u8u8': (QDQ, U8, U8, False)}


class Calibration(quantization.CalibrationDataReader):
    def __init__(self, batches):
        self.batches = iter(batches)

    def get_next(self):
        return next(self.batches, None)


def quantise(model, folder, kind, batches):
    """The path of the quantised model; batch norms are folded first, as the tool's own preparation does."""
    form, activations, weights, per_channel = KINDS[kind]
    if form == QOP and activations == U8 and weights == S8:
        needs_exact_sums()
    prepared, out = str(folder / 'prepared.onnx'), str(folder / (kind + '.onnx'))
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = prepared
    options.log_severity_level = 4
    ort.InferenceSession(str(model), options, providers=['CPUExecutionProvider'])
    quantization.quantize_static(prepared, out, Calibration(batches), quant_format=form, activation_type=activations,
                                 weight_type=weights, per_channel=per_channel,
                                 extra_options={'ActivationSymmetric': activations == S8})
    return out


def reference(model, inputs):
    """Outputs by name, node by node: fusions of the runtime round differently."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = ort.InferenceSession(str(model), options, providers=['CPUExecutionProvider'])
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs)))


def layers(net):
    return [line.split() for line in open(net[0]).read().splitlines()[2:]]


def count(net, layer):
    return sum(words[0] == layer for words in layers(net))


def int8_layers(net, layer):
    """Those of this type that take int8 with zero points."""
    return sum(words[0] == layer and '26=1' in words for words in layers(net))


def output_step(model):
    """The largest step of what the model gives, 0 where no QuantizeLinear is near."""
    graph = onnx.load(model).graph
    scales = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    last = [n for n in graph.node if n.op_type == 'DequantizeLinear' and n.output[0] in {o.name for o in graph.output}]
    return max([float(scales[n.input[1]].max()) for n in last], default=0)


def compare(model, inputs, folder, steps=1):
    net = convert(model, folder)
    want = reference(model, inputs)
    got = run(net, inputs, list(want), folder)
    for name, array in want.items():
        error = np.abs(got[name].astype(np.float64) - array.astype(np.float64)).max()
        assert got[name].shape == array.shape
        assert error <= max(steps * output_step(model) * 1.001, 2e-3 * np.ptp(array)), name
    return net


def save(nodes, inputs, outputs, constants, path, opset=18, domains=()):
    graph = helper.make_graph(nodes, 'g', inputs, outputs, [numpy_helper.from_array(a, n) for n, a in constants.items()])
    opsets = [helper.make_opsetid('', opset)] + [helper.make_opsetid(d, 1) for d in domains]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), path)
    return path


def float_info(name, shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def small_net(path, rng):
    """Convolutions of every kind that int8 has, a residual, a concatenation, a pool and a product."""
    def w(*shape):
        return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)
    constants = {'w1': w(16, 3, 3, 3), 'b1': w(16), 'w2': w(16, 1, 3, 3), 'w3': w(32, 8, 1, 1), 'b3': w(32),
                 'w4': w(16, 32, 1, 1), 'b4': w(16), 'fc': w(32 * 36, 10), 'fb': w(10), 'low': np.float32(0),
                 'high': np.float32(6), 'shape': np.array([1, -1], np.int64)}
    nodes = [helper.make_node('Conv', ['x', 'w1', 'b1'], ['c1'], pads=[1, 1, 1, 1]),
             helper.make_node('Relu', ['c1'], ['r1']),
             helper.make_node('Conv', ['r1', 'w2'], ['c2'], pads=[1, 0, 1, 2], group=16),
             helper.make_node('Clip', ['c2', 'low', 'high'], ['r2']),
             helper.make_node('Conv', ['r2', 'w3', 'b3'], ['c3'], group=2),
             helper.make_node('Conv', ['c3', 'w4', 'b4'], ['c4']),
             helper.make_node('Add', ['c4', 'r1'], ['sum']),
             helper.make_node('Concat', ['sum', 'c2'], ['both'], axis=1),
             helper.make_node('MaxPool', ['both'], ['pooled'], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
             helper.make_node('Reshape', ['pooled', 'shape'], ['flat']),
             helper.make_node('Gemm', ['flat', 'fc', 'fb'], ['y'])]
    return save(nodes, [float_info('x', [1, 3, 12, 12])], [float_info('y', [1, 10])], constants, path)


@pytest.mark.parametrize('kind', KINDS)
def test_small_net(kind, tmp_path):
    rng = np.random.default_rng(3)
    model = small_net(tmp_path / 'small.onnx', rng)
    batches = [{'x': rng.standard_normal((1, 3, 12, 12)).astype(np.float32)} for _ in range(3)]
    path = quantise(model, tmp_path, kind, batches)
    net = compare(path, batches[0], tmp_path)
    if kind == 'qdq_u8u8':  # such weights less their zero point are no int8: float32
        assert int8_layers(net, 'Convolution') == 0
        return
    assert int8_layers(net, 'Convolution') == 2 and int8_layers(net, 'ConvolutionDepthWise') == 2
    assert int8_layers(net, 'InnerProduct') == 1
    assert count(net, 'AffineBinary') >= 1 and count(net, 'Concat') == 1
    # From the input to the sum of products all is int8.
    assert count(net, 'AffineDequantize') <= 1


@pytest.mark.parametrize('axes', [1, 3])
@pytest.mark.parametrize('kind', ['qdq_u8s8_channels', 'qdq_s8s8'])
def test_convolutions_of_other_axes(kind, axes, tmp_path):
    rng = np.random.default_rng(5)

    def w(outputs, channels, size):
        return (rng.standard_normal((outputs, channels) + (size,) * axes) / np.sqrt(channels * size ** axes)).astype(np.float32)
    size, (one, two) = {1: 40, 3: 8}[axes], ([1] * 2 * axes, [2] * 2 * axes)
    constants = {'w1': w(24, 5, 3), 'b1': rng.standard_normal(24).astype(np.float32), 'w2': w(32, 24, 3), 'w3': w(32, 1, 3), 'w4': w(20, 32, 1)}
    nodes = [helper.make_node('Conv', ['x', 'w1', 'b1'], ['c1'], pads=one, strides=[2] * axes),
             helper.make_node('Relu', ['c1'], ['r1']),
             helper.make_node('Conv', ['r1', 'w2'], ['c2'], pads=two, dilations=[2] * axes),
             helper.make_node('Conv', ['c2', 'w3'], ['c3'], group=32),
             helper.make_node('Conv', ['c3', 'w4'], ['y'])]
    shape = [1, 5] + [size] * axes
    model = save(nodes, [float_info('x', shape)], [float_info('y', None)], constants, tmp_path / 'net.onnx')
    batches = [{'x': rng.standard_normal(shape).astype(np.float32)} for _ in range(3)]
    net = compare(quantise(model, tmp_path, kind, batches), batches[0], tmp_path)
    # Depthwise convolutions of three axes have no int8 form.
    assert int8_layers(net, f'Convolution{axes}D') == 3
    assert int8_layers(net, f'ConvolutionDepthWise{axes}D') == (1 if axes == 1 else 0)


@pytest.mark.parametrize('groups', [1, 2])
def test_convolutions_that_share_weights(groups, tmp_path):
    """Heads of detectors, steps of ConvLSTM: param 28, which says so, took the place of the output's zero point."""
    rng = np.random.default_rng(6)
    constants = {'w': (rng.standard_normal((24, 24 // groups, 3, 3)) / 6).astype(np.float32), 'b': rng.standard_normal(24).astype(np.float32)}
    nodes = [helper.make_node('Conv', ['x', 'w', 'b'], ['c1'], pads=[1] * 4, group=groups), helper.make_node('Elu', ['c1'], ['e1']),
             helper.make_node('Conv', ['e1', 'w', 'b'], ['c2'], pads=[1] * 4, group=groups), helper.make_node('Elu', ['c2'], ['e2']),
             helper.make_node('Conv', ['e2', 'w', 'b'], ['y'], pads=[1] * 4, group=groups)]
    model = save(nodes, [float_info('x', [1, 24, 9, 7])], [float_info('y', None)], constants, tmp_path / 'net.onnx')
    batches = [{'x': rng.standard_normal((1, 24, 9, 7)).astype(np.float32)} for _ in range(3)]
    net = compare(quantise(model, tmp_path, 'qdq_u8s8', batches), batches[0], tmp_path, steps=2)
    assert any(word.startswith('-23328=') for words in layers(net) for word in words if words[0].startswith('Conv'))
    made = tmp_path / 'o.param', tmp_path / 'o.bin'
    run_program([BIN / 'engineoptimize', *net, *made, '0', '--no-fusion'])
    want, have = (run(files, batches[0], ['y'], tmp_path)['y'] for files in (net, made))
    np.testing.assert_array_equal(have, want)


@pytest.mark.parametrize('kind', ['qdq_u8s8_channels', 'qdq_s8s8', 'qop_u8s8'])
def test_attention(kind, tmp_path):
    """Products of two activations, with zero points and heads of their own, are of int8 as those with weights are."""
    rng = np.random.default_rng(8)
    constants = {n: rng.standard_normal((48, 48)).astype(np.float32) / 7 for n in ('wq', 'wk', 'wv', 'wo')}
    constants |= {'heads': np.array([1, 37, 3, 16], np.int64), 'rows': np.array([1, 37, 48], np.int64), 'factor': np.float32(.25)}
    nodes = []
    for n, perm in (('q', [0, 2, 1, 3]), ('k', [0, 2, 3, 1]), ('v', [0, 2, 1, 3])):
        nodes += [helper.make_node('MatMul', ['x', f'w{n}'], [f'{n}1']), helper.make_node('Reshape', [f'{n}1', 'heads'], [f'{n}2']),
                  helper.make_node('Transpose', [f'{n}2'], [f'{n}3'], perm=perm)]
    nodes += [helper.make_node('MatMul', ['q3', 'k3'], ['s1']), helper.make_node('Mul', ['s1', 'factor'], ['s2']),
              helper.make_node('Softmax', ['s2'], ['p'], axis=-1), helper.make_node('MatMul', ['p', 'v3'], ['o1']),
              helper.make_node('Transpose', ['o1'], ['o2'], perm=[0, 2, 1, 3]), helper.make_node('Reshape', ['o2', 'rows'], ['o3']),
              helper.make_node('MatMul', ['o3', 'wo'], ['y'])]
    model = save(nodes, [float_info('x', [1, 37, 48])], [float_info('y', None)], constants, tmp_path / 'net.onnx')
    batches = [{'x': rng.standard_normal((1, 37, 48)).astype(np.float32)} for _ in range(3)]
    net = compare(quantise(model, tmp_path, kind, batches), batches[0], tmp_path, steps=2)
    assert int8_layers(net, 'InnerProduct') == 4
    assert run_program([BIN / 'engineinfo', '--exec-plan', *net]).count('MatMulInteger') >= 2


@pytest.mark.parametrize('mode', ['reflect', 'edge'])
def test_borders(mode, tmp_path):
    """Those that hold values of the input are made of int8."""
    rng = np.random.default_rng(6)
    constants = {'w1': rng.standard_normal((16, 3, 3, 3)).astype(np.float32) / 5, 'w2': rng.standard_normal((8, 16, 3, 3)).astype(np.float32) / 12,
                 'pads': np.array([0, 0, 1, 2, 0, 0, 1, 0], np.int64)}
    nodes = [helper.make_node('Conv', ['x', 'w1'], ['c1']), helper.make_node('Pad', ['c1', 'pads'], ['p'], mode=mode),
             helper.make_node('Conv', ['p', 'w2'], ['y'])]
    model = save(nodes, [float_info('x', [1, 3, 12, 12])], [float_info('y', None)], constants, tmp_path / 'net.onnx')
    batches = [{'x': rng.standard_normal((1, 3, 12, 12)).astype(np.float32)} for _ in range(3)]
    net = compare(quantise(model, tmp_path, 'qdq_u8s8_channels', batches), batches[0], tmp_path)
    assert int8_layers(net, 'Convolution') == 2 and count(net, 'Padding') >= 1
    assert count(net, 'AffineDequantize') == 1


def test_product_of_a_border_of_zeros(tmp_path):
    """0 is the zero point, not the int8 value 0."""
    rng = np.random.default_rng(13)
    constants = {'s': np.float32(0.05), 'z': np.uint8(60), 't': np.float32(0.3), 'v': np.uint8(100),
                 'pads': np.array([0, 0, 0, 0, 0, 0, 1, 2], np.int64)}
    nodes = [helper.make_node('QuantizeLinear', ['x', 's', 'z'], ['a']), helper.make_node('DequantizeLinear', ['a', 's', 'z'], ['b']),
             helper.make_node('Pad', ['b', 'pads'], ['c']),
             helper.make_node('QuantizeLinear', ['w', 's', 'z'], ['d']), helper.make_node('DequantizeLinear', ['d', 's', 'z'], ['e']),
             helper.make_node('MatMul', ['c', 'e'], ['f']),
             helper.make_node('QuantizeLinear', ['f', 't', 'v'], ['g']), helper.make_node('DequantizeLinear', ['g', 't', 'v'], ['y'])]
    inputs = {'x': rng.standard_normal((1, 2, 5, 6)).astype(np.float32), 'w': rng.standard_normal((1, 2, 8, 3)).astype(np.float32)}
    model = save(nodes, [float_info(name, array.shape) for name, array in inputs.items()], [float_info('y', [1, 2, 6, 3])],
                 constants, tmp_path / 'm.onnx')
    compare(model, inputs, tmp_path)


def functions_net(path, rng):
    """Convolutions with activations in their steps, as exporters write them, between them."""
    def w(*shape):
        return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)
    constants = {f'w{i}': w(16, 3 if i == 0 else 16, 3, 3) for i in range(6)}
    constants.update({'root': np.float32(2 ** .5), 'one': np.float32(1), 'half': np.float32(.5)})
    nodes, x = [], 'x'
    steps = [[('Sigmoid', ['c'], 's'), ('Mul', ['c', 's'], 'y')],
             [('HardSigmoid', ['c'], 's'), ('Mul', ['s', 'c'], 'y')],
             [('Div', ['c', 'root'], 'd'), ('Erf', ['d'], 'e'), ('Add', ['e', 'one'], 'a'), ('Mul', ['c', 'a'], 'm'), ('Mul', ['m', 'half'], 'y')],
             [('Tanh', ['c'], 't'), ('Elu', ['t'], 'y')],
             [('LeakyRelu', ['c'], 'l'), ('Sqrt', ['r'], 'q'), ('Add', ['l', 'q'], 'y')]]
    for i, step in enumerate(steps):
        def named(name):
            return name if name in constants else f'{name}{i}'
        nodes.append(helper.make_node('Conv', [x, f'w{i}'], [f'c{i}'], pads=[1, 1, 1, 1]))
        if i == 4:
            nodes.append(helper.make_node('Relu', ['c4'], ['r4']))
        nodes += [helper.make_node(op, [named(name) for name in names], [f'{out}{i}']) for op, names, out in step]
        x = f'y{i}'
    nodes.append(helper.make_node('Conv', [x, 'w5'], ['out']))
    return save(nodes, [float_info('x', [1, 3, 9, 9])], [float_info('out', [1, 16, 7, 7])], constants, path)


@pytest.mark.parametrize('kind', ['qdq_u8s8_channels', 'qdq_s8s8'])
def test_functions_of_int8_values(kind, tmp_path):
    rng = np.random.default_rng(7)
    batches = [{'x': 2 * rng.standard_normal((1, 3, 9, 9)).astype(np.float32)} for _ in range(3)]
    net = compare(quantise(functions_net(tmp_path / 'net.onnx', rng), tmp_path, kind, batches), batches[0], tmp_path)
    assert int8_layers(net, 'Convolution') == 6
    assert count(net, 'AffineTable') == 0  # made when the net is loaded: a file has the steps


@pytest.mark.parametrize('kind', ['qdq_u8s8_channels', 'qdq_s8s8'])
@pytest.mark.parametrize('stride', [2, 3, 1])
def test_deconvolutions_of_windows_side_by_side(stride, kind, tmp_path):
    rng = np.random.default_rng(8)
    constants = {'w1': rng.standard_normal((16, 3, 3, 3)).astype(np.float32) / 5, 'w2': rng.standard_normal((16, 5, 3, 3)).astype(np.float32) / 12,
                 'b2': rng.standard_normal(5).astype(np.float32), 'w3': rng.standard_normal((8, 5, 3, 3)).astype(np.float32) / 7}
    if stride != 1:
        constants['w2'] = np.ascontiguousarray(constants['w2'][:, :, :stride, :stride])
    nodes = [helper.make_node('Conv', ['x', 'w1'], ['c1']), helper.make_node('ConvTranspose', ['c1', 'w2', 'b2'], ['d'], strides=[stride] * 2),
             helper.make_node('Conv', ['d', 'w3'], ['y'])]
    model = save(nodes, [float_info('x', [1, 3, 9, 11])], [float_info('y', None)], constants, tmp_path / 'net.onnx')
    batches = [{'x': rng.standard_normal((1, 3, 9, 11)).astype(np.float32)} for _ in range(3)]
    net = compare(quantise(model, tmp_path, kind, batches), batches[0], tmp_path)
    # Windows that overlap are computed in float32.
    assert (int8_layers(net, 'Convolution'), count(net, 'PixelShuffle'), count(net, 'Deconvolution')) == ((3, 1, 0) if stride > 1 else (2, 0, 1))


def test_product_between_reshapes(tmp_path):
    """PyTorch's addmm of rank 3."""
    rng = np.random.default_rng(15)
    constants = {'s': np.float32(0.05), 'z': np.uint8(120), 'r': np.float32(0.01), 'q': rng.integers(-127, 128, (6, 4)).astype(np.int8),
                 'm': np.array([6, 6]), 'l': np.array([2, 3, 4])}
    nodes = [helper.make_node('QuantizeLinear', ['x', 's', 'z'], ['a']), helper.make_node('DequantizeLinear', ['a', 's', 'z'], ['b']),
             helper.make_node('DequantizeLinear', ['q', 'r'], ['w']), helper.make_node('Reshape', ['b', 'm'], ['c']),
             helper.make_node('Gemm', ['c', 'w'], ['d']), helper.make_node('Reshape', ['d', 'l'], ['y'])]
    model = save(nodes, [float_info('x', [2, 3, 6])], [float_info('y', [2, 3, 4])], constants, tmp_path / 'm.onnx')
    net = compare(model, {'x': rng.standard_normal((2, 3, 6)).astype(np.float32)}, tmp_path)
    assert int8_layers(net, 'InnerProduct') == 1


def test_report_counts(tmp_path):
    rng = np.random.default_rng(4)
    model = small_net(tmp_path / 'small.onnx', rng)
    path = quantise(model, tmp_path, 'qdq_u8s8', [{'x': rng.standard_normal((1, 3, 12, 12)).astype(np.float32)}])
    convert(path, tmp_path, '--report', tmp_path / 'report')
    report = (tmp_path / 'report').read_text()
    for line in ('4 int8: Conv', '1 int8: Gemm and MatMul', '1 int8: MaxPool', '1 int8: Concat', '1 int8: Reshape'):
        assert line in report, report


@pytest.mark.parametrize('kind', ['qdq_u8s8', 'qdq_s8s8_channels'])
def test_matmul_of_rows(kind, tmp_path):
    """A MatMul with a bias added, as in transformers, on rank 3."""
    rng = np.random.default_rng(5)
    constants = {'w': rng.standard_normal((24, 40)).astype(np.float32), 'b': rng.standard_normal(40).astype(np.float32)}
    nodes = [helper.make_node('MatMul', ['x', 'w'], ['p']), helper.make_node('Add', ['p', 'b'], ['y'])]
    model = save(nodes, [float_info('x', [2, 7, 24])], [float_info('y', [2, 7, 40])], constants, tmp_path / 'm.onnx')
    inputs = {'x': rng.standard_normal((2, 7, 24)).astype(np.float32)}
    net = compare(quantise(model, tmp_path, kind, [inputs]), inputs, tmp_path)
    assert int8_layers(net, 'InnerProduct') == 1


def test_limits_that_cross(tmp_path):
    """A Clip whose lower limit is above the upper one gives the upper one."""
    rng = np.random.default_rng(14)
    constants = {'s': np.float32(0.05), 'z': np.uint8(120), 't': np.float32(0.3), 'v': np.uint8(0), 'r': np.float32(0.01),
                 'q': rng.integers(-50, 50, (8, 4, 3, 3)).astype(np.int8), 'low': np.float32(6), 'high': np.float32(1)}
    nodes = [helper.make_node('QuantizeLinear', ['x', 's', 'z'], ['a']), helper.make_node('DequantizeLinear', ['a', 's', 'z'], ['b']),
             helper.make_node('DequantizeLinear', ['q', 'r'], ['w']), helper.make_node('Conv', ['b', 'w'], ['c']),
             helper.make_node('Clip', ['c', 'low', 'high'], ['d']),
             helper.make_node('QuantizeLinear', ['d', 't', 'v'], ['e']), helper.make_node('DequantizeLinear', ['e', 't', 'v'], ['y'])]
    model = save(nodes, [float_info('x', [1, 4, 7, 7])], [float_info('y', [1, 8, 5, 5])], constants, tmp_path / 'm.onnx')
    net = compare(model, {'x': rng.standard_normal((1, 4, 7, 7)).astype(np.float32)}, tmp_path)
    assert int8_layers(net, 'Convolution') == 1


def test_values_that_other_nodes_read(tmp_path):
    """uint8 values that the model gives, that a MaxPool of uint8 takes, and two scales of one value."""
    s = {'s': np.float32(0.05), 'z': np.uint8(100), 't': np.float32(0.07), 'v': np.uint8(3)}
    nodes = [helper.make_node('QuantizeLinear', ['x', 's', 'z'], ['q']),
             helper.make_node('MaxPool', ['q'], ['m'], kernel_shape=[2, 2]),
             helper.make_node('DequantizeLinear', ['m', 's', 'z'], ['d']),
             helper.make_node('QuantizeLinear', ['d', 't', 'v'], ['e']),
             helper.make_node('Transpose', ['e'], ['f'], perm=[0, 2, 3, 1])]
    path = save(nodes, [float_info('x', [1, 4, 5, 6])],
                [helper.make_tensor_value_info('q', TensorProto.UINT8, [1, 4, 5, 6]),
                 helper.make_tensor_value_info('f', TensorProto.UINT8, [1, 4, 5, 4]), float_info('d', [1, 4, 4, 5])],
                s, tmp_path / 'u8.onnx')
    inputs = {'x': (np.random.default_rng(6).standard_normal((1, 4, 5, 6)) * 4).astype(np.float32)}
    net = convert(path, tmp_path)
    want = reference(path, inputs)
    got = run(net, inputs, list(want), tmp_path)
    for name in want:
        np.testing.assert_allclose(got[name], want[name], atol=1e-6, err_msg=name)


@pytest.mark.skipif(not os.environ.get('QUOLL_DATA'), reason='QUOLL_DATA is not set')
@pytest.mark.parametrize('name', ['squeezenet1_1', 'mobilenet_v2', 'resnet18', 'googlenet', 'shufflenet_v2_x1_0'])
@pytest.mark.parametrize('kind', ['qdq_u8s8_channels', 'qdq_s8s8_channels', 'qop_u8s8'])
def test_graphs(name, kind, zoo, tmp_path):  # noqa: F811
    model, inputs, _ = load_graph(zoo, name, tmp_path)
    path = quantise(model, tmp_path, kind, [inputs])
    convolutions = sum(n.op_type in ('Conv', 'QLinearConv') for n in onnx.load(path).graph.node)
    # What one layer rounds the other way is seen by all that follow.
    net = compare(path, inputs, tmp_path, steps=3)
    assert int8_layers(net, 'Convolution') + int8_layers(net, 'ConvolutionDepthWise') == convolutions


def dynamic(model, folder, **options):
    out = str(folder / 'dynamic.onnx')
    quantization.quantize_dynamic(model, out, **options)
    return out


@pytest.mark.parametrize('weights', [S8, U8])
@pytest.mark.parametrize('per_channel', [False, True])
@pytest.mark.parametrize('shape', [(1, 7, 24), (3, 5, 24), (6, 24)])
def test_quantised_at_run_time(weights, per_channel, shape, tmp_path):
    """Two products of one input, as the queries and keys of a transformer, one with a bias."""
    if weights == S8:
        needs_exact_sums()
    rng = np.random.default_rng(8)
    constants = {'w': rng.standard_normal((24, 40)).astype(np.float32), 'v': rng.random((24, 16)).astype(np.float32),
                 'b': rng.standard_normal(40).astype(np.float32)}
    nodes = [helper.make_node('MatMul', ['x', 'w'], ['p']), helper.make_node('Add', ['p', 'b'], ['y']),
             helper.make_node('MatMul', ['x', 'v'], ['z'])]
    model = save(nodes, [float_info('x', ['n', *shape[1:]])],
                 [float_info('y', ['n', *shape[1:-1], 40]), float_info('z', ['n', *shape[1:-1], 16])],
                 constants, tmp_path / 'm.onnx')
    path = dynamic(model, tmp_path, weight_type=weights, per_channel=per_channel)
    assert any(n.op_type == 'MatMulInteger' for n in onnx.load(path).graph.node)
    net = convert(path, tmp_path)
    for inputs in ({'x': (rng.standard_normal(shape) * 3 + 1).astype(np.float32)}, {'x': np.zeros(shape, np.float32)}):
        want = reference(path, inputs)
        got = run(net, inputs, list(want), tmp_path)
        for name, array in want.items():
            # A value half way between two steps may fall on either side.
            assert np.abs(got[name] - array).max() <= 0.0101 * max(np.abs(array).max(), 1), name
            assert np.abs(got[name] - array).mean() <= 1e-3 * max(np.abs(array).max(), 1), name
    if weights == S8:
        assert sum(words[0] == 'InnerProduct' and '26=2' in words for words in layers(net)) == 2
        assert [words[0] for words in layers(net)][-4:].count('BinaryOp') == 0


@pytest.mark.parametrize('constant', [True, False])
@pytest.mark.parametrize('columns', [False, True])
def test_products_of_any_zero_points(constant, columns, tmp_path):
    """Exact, for constant weights and for two activations."""
    rng = np.random.default_rng(9)
    b_shape = (36, 50) if constant else (2, 36, 50)
    inputs = {'a': rng.integers(0, 256, (2, 19, 36)).astype(np.uint8), 'b': rng.integers(0, 256, b_shape).astype(np.uint8)}
    columns = columns and constant
    constants = {'za': np.uint8(201), 'zb': rng.integers(0, 256, 50).astype(np.uint8) if columns else np.uint8(3)}
    infos = [helper.make_tensor_value_info(name, onnx.TensorProto.UINT8, array.shape) for name, array in inputs.items()]
    if constant:
        constants['b'] = inputs.pop('b')
        infos.pop()
    model = save([helper.make_node('MatMulInteger', ['a', 'b', 'za', 'zb'], ['y'])], infos,
                 [helper.make_tensor_value_info('y', onnx.TensorProto.INT32, [2, 19, 50])], constants, tmp_path / 'm.onnx')
    want = reference(model, inputs)
    got = run(convert(model, tmp_path), inputs, list(want), tmp_path)
    assert np.array_equal(got['y'], want['y'])


@pytest.mark.skipif(not os.environ.get('QUOLL_DATA'), reason='QUOLL_DATA is not set')
@pytest.mark.parametrize('name', ['bert_tiny', 'gpt2_tiny'])
def test_transformers_quantised_at_run_time(name, zoo, tmp_path):  # noqa: F811
    needs_exact_sums()
    model, inputs, _ = load_graph(zoo, name, tmp_path)
    path = dynamic(model, tmp_path, op_types_to_quantize=['MatMul'])
    integer = sum(n.op_type == 'MatMulInteger' for n in onnx.load(path).graph.node)
    net = convert(path, tmp_path)
    constant = sum(words[0] == 'InnerProduct' and '26=2' in words for words in layers(net))
    assert integer > 0 and constant > 0
    want = reference(path, inputs)
    got = run(net, inputs, list(want), tmp_path)
    for key, array in want.items():
        assert np.abs(got[key] - array).max() <= 0.03 * np.ptp(array), key


def test_qlinear_product_with_scales_of_rows(tmp_path):
    """Those of what it makes are the rows' as well; square, so that columns would fit, too."""
    rng = np.random.default_rng(16)
    a, b = rng.integers(0, 256, (4, 5)).astype(np.uint8), rng.integers(-100, 100, (5, 4)).astype(np.int8)
    constants = {'s': np.float32([.1, .2, .3, .4]), 'z': np.uint8([1, 100, 200, 7]), 'b': b, 't': np.float32([.01, .02, .03, .04]),
                 'v': np.int8([1, -2, 3, 4]), 'r': np.float32([1, 4, 16, 2]), 'o': np.uint8([128, 100, 120, 90])}
    model = save([helper.make_node('QLinearMatMul', ['a', 's', 'z', 'b', 't', 'v', 'r', 'o'], ['y'])],
                 [helper.make_tensor_value_info('a', TensorProto.UINT8, [4, 5])],
                 [helper.make_tensor_value_info('y', TensorProto.UINT8, [4, 4])], constants, tmp_path / 'm.onnx')
    c = {name: array.astype(np.float32) for name, array in constants.items()}
    product = ((a - c['z'][:, None]) * c['s'][:, None]) @ ((c['b'] - c['v']) * c['t'])
    want = np.clip(np.rint(product / c['r'][:, None]) + c['o'][:, None], 0, 255)
    got = run(convert(model, tmp_path), {'a': a}, ['y'], tmp_path)['y']
    assert np.abs(got - want).max() <= 1


@pytest.mark.parametrize('weights', [np.int8, np.uint8])
def test_convolutions_quantised_at_run_time(weights, tmp_path):
    """As ONNX Runtime's quantiser writes them, the bias as 32 bits; between the nodes there are no integers."""
    rng = np.random.default_rng(6)
    low = np.iinfo(weights).min
    constants = {'w': rng.integers(low, low + 256, (8, 4, 3, 3)).astype(weights), 'zero': np.array(low + 119, weights),
                 'scale': np.array(0.02, np.float32), 'bias': rng.normal(0, 1, 8).astype(np.float32),
                 'shape': np.array([1, -1, 1, 1])}
    node = helper.make_node
    nodes = [node('DynamicQuantizeLinear', ['x'], ['q', 'q_scale', 'q_zero']),
             node('Mul', ['q_scale', 'scale'], ['step']), node('Div', ['bias', 'step'], ['b0']),
             node('Floor', ['b0'], ['b1']), node('Cast', ['b1'], ['b2'], to=TensorProto.INT32),
             node('Reshape', ['b2', 'shape'], ['b3']),
             node('ConvInteger', ['q', 'w', 'q_zero', 'zero'], ['s'], pads=[1, 1, 1, 1]),
             node('Add', ['s', 'b3'], ['sum']), node('Cast', ['sum'], ['sum_f'], to=TensorProto.FLOAT),
             node('Mul', ['sum_f', 'step'], ['y'])]
    path = tmp_path / 'm.onnx'
    save(nodes, [float_info('x', (1, 4, 9, 11))], [float_info('y', None)], constants, path)
    net = compare(path, {'x': rng.standard_normal((1, 4, 9, 11)).astype(np.float32)}, tmp_path, 1e-3)
    assert count(net, 'CastTo') == 0
    assert count(net, 'Convolution') == 1


@pytest.mark.parametrize('kind', ['uint8', 'int8', 'int32'])
@pytest.mark.parametrize('mode', ['nearest', 'linear'])
def test_resized_integers(kind, mode, tmp_path):
    """Quantised as operators, a Resize takes integers: they are interpolated as floats and cut. By powers of two, whose
    parts floats hold."""
    low, high = (0, 255) if kind == 'uint8' else (-128, 127)
    x = np.random.default_rng(3).integers(low, high, (1, 2, 5, 7)).astype(kind)
    element = helper.np_dtype_to_tensor_dtype(x.dtype)
    graph = helper.make_graph([helper.make_node('Resize', ['x', '', 's'], ['y'], mode=mode)], 'g',
                              [helper.make_tensor_value_info('x', element, x.shape)],
                              [helper.make_tensor_value_info('y', element, None)],
                              [numpy_helper.from_array(np.float32([1, 1, 2, 4]), 's')])
    path = tmp_path / 'm.onnx'
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 14)], ir_version=8), path)
    got, want = run((path,), {'x': x}, ['y'], tmp_path)['y'], reference(path, {'x': x})['y']
    assert got.dtype == want.dtype
    assert np.array_equal(got, want)
