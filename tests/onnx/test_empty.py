"""Operators on tensors without values, in every storage type, against ONNX Runtime."""
import numpy as np
import pytest

onnx = pytest.importorskip('onnx')
ort = pytest.importorskip('onnxruntime')
from onnx import numpy_helper, parser  # noqa: E402

from onnx_run import Failure, convert, run  # noqa: E402


def rand(*shape):
    return np.random.default_rng(sum(shape)).normal(0, 1, shape).astype(np.float32)


# The node, the type of x, its empty shapes, constants.
X2, X4 = [(0, 6), (3, 0)], [(0, 4, 6, 6), (2, 4, 0, 6)]
PADDED = [*X4, (1, 4, 0, 6), (2, 4, 6, 0), (1, 4, 0, 0)]  # outputs with values in all but the first
CASES = {
    'Relu': ('y = Relu(x)', 'float[a,b]', X2, {}),
    'Add': ('y = Add(x, c)', 'float[a,6]', X2[:1], {'c': rand(6)}),
    'Mul of one': ('y = Mul(x, c)', 'float[a,b]', X2, {'c': rand(1)}),
    'Add of one row': ('y = Add(x, c)', 'float[a,6]', X2[:1], {'c': rand(1, 6)}),
    'Softmax': ('y = Softmax <axis = -1> (x)', 'float[a,b]', X2, {}),
    'LayerNormalization': ('y = LayerNormalization <axis = -1> (x, c, d)', 'float[a,6]', X2[:1], {'c': rand(6), 'd': rand(6)}),
    'BatchNormalization': ('y = BatchNormalization(x, c, c, c, d)', 'float[n,4,h,w]', X4, {'c': rand(4), 'd': np.abs(rand(4))}),
    'MatMul': ('y = MatMul(x, c)', 'float[a,6]', X2[:1], {'c': rand(6, 5)}),
    'MatMul of no columns': ('t = Transpose <perm = [1, 0]> (x) y = MatMul(x, t)', 'float[a,b]', X2, {}),
    'MatMul of batches': ('y = MatMul(x, c)', 'float[n,3,6]', [(0, 3, 6)], {'c': rand(1, 6, 5)}),
    'Gemm': ('y = Gemm <transB = 1> (x, c, d)', 'float[a,6]', X2[:1], {'c': rand(5, 6), 'd': rand(5)}),
    'Conv': ('y = Conv <pads = [1, 1, 1, 1]> (x, c)', 'float[n,4,h,w]', X4[:1], {'c': rand(5, 4, 3, 3)}),
    'Conv of padding': ('r = Conv <pads = [2, 2, 2, 2]> (x, c, d) y = Relu(r)', 'float[n,4,h,w]', PADDED, {'c': rand(5, 4, 3, 3), 'd': rand(5)}),
    'Conv of groups': ('y = Conv <pads = [2, 2, 2, 2], group = 4> (x, c, d)', 'float[n,4,h,w]', PADDED, {'c': rand(4, 1, 3, 3), 'd': rand(4)}),
    'Conv of one axis': ('y = Conv <pads = [3, 2]> (x, c, d)', 'float[n,4,w]', [(1, 4, 0), (2, 4, 0)], {'c': rand(5, 4, 3), 'd': rand(5)}),
    'ConvTranspose': ('y = ConvTranspose <strides = [2, 2]> (x, c, d)', 'float[n,4,h,w]', PADDED, {'c': rand(4, 5, 4, 4), 'd': rand(5)}),
    'MaxPool': ('y = MaxPool <kernel_shape = [2, 2]> (x)', 'float[n,4,h,w]', X4[:1], {}),
    'GlobalAveragePool': ('y = GlobalAveragePool(x)', 'float[n,4,h,w]', X4[:1], {}),
    'Transpose': ('y = Transpose <perm = [1, 0]> (x)', 'float[a,b]', X2, {}),
    'Reshape': ('y = Reshape(x, c)', 'float[a,6]', X2[:1], {'c': np.int64([-1, 2, 3])}),
    'Reshape to sizes': ('y = Reshape(x, c)', 'float[n,4,h,w]', X4[:1], {'c': np.int64([0, 0, 36])}),
    'Flatten': ('y = Flatten(x)', 'float[n,4,h,w]', X4[:1], {}),
    'Flatten of a size of 0': ('y = Flatten <axis = 2> (x)', 'float[n,3,0,4]', [(2, 3, 0, 4)], {}),
    'Reshape of a size of 0': ('y = Reshape(x, c)', 'float[n,0,3]', [(2, 0, 3)], {'c': np.int64([0, 0])}),
    'Reshape of a size of 0 to the rest': ('y = Reshape(x, c)', 'float[n,m,0,4]', [(2, 3, 0, 4)], {'c': np.int64([0, 0, -1])}),
    'Unsqueeze': ('y = Unsqueeze(x, c)', 'float[a,b]', X2, {'c': np.int64([1])}),
    'Concat': ('y = Concat <axis = 0> (x, c)', 'float[a,6]', X2[:1], {'c': rand(2, 6)}),
    'Concat of none': ('y = Concat <axis = 1> (x, x)', 'float[a,b]', X2, {}),
    'Split': ('y, z = Split <axis = 1> (x)', 'float[a,6]', X2[:1], {}),
    'Slice': ('y = Slice(x, c, d)', 'float[a,6]', X2[:1], {'c': np.int64([0, 1]), 'd': np.int64([9, 3])}),
    'Gather': ('y = Gather <axis = 1> (x, c)', 'float[a,6]', X2[:1], {'c': np.int64([2, 0])}),
    'Expand': ('y = Expand(x, c)', 'float[a,b]', X2, {'c': np.int64([2, 1, 1])}),
    'Tile': ('y = Tile(x, c)', 'float[a,b]', X2, {'c': np.int64([2, 3])}),
    'Where': ('z = Greater(x, c) y = Where(z, x, c)', 'float[a,b]', X2, {'c': np.float32(0)}),
    'Pad': ('y = Pad(x, c, d)', 'float[a,b]', X2, {'c': np.int64([1, 0, 2, 1]), 'd': np.float32(4)}),
    'Resize': ('y = Resize(x, , c)', 'float[n,4,h,w]', X4, {'c': np.float32([1, 1, 2, 2])}),
    'CumSum': ('y = CumSum(x, c)', 'float[a,b]', X2, {'c': np.int64(0)}),
    'ArgMax': ('y = ArgMax <axis = 1> (x)', 'float[a,6]', X2[:1], {}),
    'TopK of none': ('y, z = TopK <axis = 1> (x, c)', 'float[a,6]', X2[:1], {'c': np.int64([2])}),
    'Einsum': ('y = Einsum <equation = "ab,cb->ac"> (x, c)', 'float[a,6]', X2[:1], {'c': rand(5, 6)}),
    'NonZero': ('y = NonZero(x)', 'float[a,b]', X2, {}),
    'Cast': ('y = Cast <to = 6> (x)', 'float[a,b]', X2, {}),
    'Shape': ('y = Shape(x)', 'float[a,b]', X2, {}),
    'Size': ('y = Size(x)', 'float[a,b]', X2, {}),
    'PRelu': ('y = PRelu(x, c)', 'float[a,6]', X2[:1], {'c': rand(6)}),
    'Clip': ('y = Clip(x, c)', 'float[a,b]', X2, {'c': np.float32(0)}),
    'Dynamic quantisation': ('q, s, z = DynamicQuantizeLinear(x) y = MatMulInteger(q, c, z)', 'float[a,6]', X2[:1],
                             {'c': np.int8([[1, 2]] * 6)}),
    'QuantizeLinear': ('q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z)', 'float[a,b]', X2,
                       {'s': np.float32(0.1), 'z': np.uint8(3)}),
    'Gelu of a product': ('h = MatMul(x, c) e = Erf(h) y = Mul(h, e)', 'float[n,t,6]', [(0, 3, 6), (2, 0, 6)], {'c': rand(6, 4)}),
}
for op in ('Sum', 'Max', 'Min', 'Prod', 'L1', 'L2', 'SumSquare', 'LogSum', 'LogSumExp'):
    axes = {'c': np.int64([1])}
    CASES['Reduce' + op + ' of none'] = (f'y = Reduce{op} <keepdims = 0> (x, c)' if op == 'Sum' else
                                         f'y = Reduce{op} <axes = [1], keepdims = 0> (x)', 'float[a,b]', X2,
                                         axes if op == 'Sum' else {})


@pytest.mark.parametrize('name', sorted(CASES))
def test_operator(name, tmp_path):
    text, kind, shapes, constants = CASES[name]
    outputs = ['y', 'z'] if 'y, z =' in text else ['y']
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g ({kind} x) => '
                               f'({", ".join("float " + o for o in outputs)}) {{ {text} }}')
    for key, values in constants.items():
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(values), key))
    for output in model.graph.output:
        output.type.Clear()
    model = onnx.shape_inference.infer_shapes(model)
    onnx.save(model, tmp_path / 'm.onnx')
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(str(tmp_path / 'm.onnx'), options, providers=['CPUExecutionProvider'])
    net = convert(tmp_path / 'm.onnx', tmp_path)
    compared = 0
    for shape in shapes:
        x = np.zeros(shape, np.float32)
        try:
            want = session.run(outputs, {'x': x})
        except Exception:  # what ONNX Runtime refuses may be refused, in good order
            want = None
        for precision in ('fp32', 'fp16', 'bf16'):
            try:
                have = run(net, {'x': x}, outputs, tmp_path, '--precision', precision)
            except Failure as failure:
                assert want is None and 'exit code 1' in str(failure), failure
                continue
            for out, value in zip(outputs, want or []):
                assert have[out].shape == value.shape, (precision, shape)
                assert have[out].dtype == value.dtype
                np.testing.assert_allclose(have[out], value, 0.01, 0.01)
                compared += 1
    assert compared


def test_a_refusal_names_the_node(tmp_path):
    """No values, and sizes that are open: the layout of the output cannot be told."""
    model = parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> g (float[a,b,k,5,6] x) => (float y) {'
                               't = Transpose <perm = [1, 0, 3, 2, 4]> (x) y = Slice(t, c, c, d) }')
    for key, values in {'c': [1, 1], 'd': [2, 4]}.items():
        model.graph.initializer.append(numpy_helper.from_array(np.int64(values), key))
    model.graph.node[1].name = 'cut'
    model.graph.output[0].type.Clear()
    onnx.save(model, tmp_path / 'model.onnx')
    with pytest.raises(Failure, match=r'cut \(Slice, opset 17\): output y: '):
        convert(tmp_path / 'model.onnx', tmp_path)
