"""Weights of few bits with a scale for each block: MatMulNBits, and DequantizeLinear with block_size, as layers that
keep the bits. Against ONNX Runtime, and closed forms."""
import numpy as np
import pytest

onnx = pytest.importorskip('onnx')
ort = pytest.importorskip('onnxruntime')
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from onnx_run import convert, run  # noqa: E402


def quantised(rng, bits, rows, k, block, zeros):
    """Values [rows][k], scales and zero points [rows][blocks], and the matrix [rows][k] that they stand for."""
    blocks = -(-k // block)
    q = rng.integers(0, 1 << bits, (rows, k))
    scales = (rng.random((rows, blocks)) * 0.1 + 0.01).astype(np.float32)
    zero = rng.integers(0, 1 << bits, (rows, blocks)) if zeros else np.full((rows, blocks), 1 << (bits - 1))
    at = np.arange(k) // block
    return q, scales, zero, (q - zero[:, at]) * scales[:, at]


def pack(values, bits):
    """Along the last axis, the first value in the lowest bits; the last byte filled up with 0."""
    each = 8 // bits
    values = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, -values.shape[-1] % each)])
    parts = values.reshape(*values.shape[:-1], -1, each) << (np.arange(each) * bits)
    return parts.sum(-1).astype(np.uint8)


def save(nodes, inputs, outputs, constants, path, opset=21):
    graph = helper.make_graph(nodes, 'g', inputs, outputs, constants)
    opsets = [helper.make_opsetid('', opset), helper.make_opsetid('com.microsoft', 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)
    return path


def info(name, shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def n_bits(rng, path, bits, block, zeros, k=256, rows=37, bias=False, shape=(2, 5)):
    q, scales, zero, matrix = quantised(rng, bits, rows, k, block, zeros)
    blocks = scales.shape[1]
    padded = np.pad(q, [(0, 0), (0, blocks * block - k)])
    constants = [numpy_helper.from_array(pack(padded.reshape(rows, blocks, block), bits), 'B'),
                 numpy_helper.from_array(scales.reshape(-1), 'scales')]
    names = ['x', 'B', 'scales', '', '', '']
    if zeros:
        constants.append(numpy_helper.from_array(pack(zero, bits).reshape(-1), 'zeros'))
        names[3] = 'zeros'
    offset = rng.standard_normal(rows).astype(np.float32) if bias else np.zeros(rows, np.float32)
    if bias:
        constants.append(numpy_helper.from_array(offset, 'bias'))
        names[5] = 'bias'
    while not names[-1]:
        names.pop()
    node = helper.make_node('MatMulNBits', names, ['y'], domain='com.microsoft', K=k, N=rows, bits=bits,
                            block_size=block)
    save([node], [info('x', [*shape, k])], [info('y', [*shape, rows])], constants, path)
    return lambda x: x @ matrix.T + offset


def gemm_terms(net):
    """quantize_term and quantize_zeros of the Gemm layers."""
    found = []
    for line in open(net[0]).read().splitlines()[2:]:
        words = line.split()
        params = dict(w.split('=', 1) for w in words if '=' in w and w.split('=', 1)[0].isdigit())
        if words[0] == 'Gemm':
            found.append((int(params.get('18', 0)), int(params.get('23', 0))))
    return found


@pytest.mark.parametrize('zeros', [False, True])
@pytest.mark.parametrize('block', [16, 32, 64, 128, 256])
@pytest.mark.parametrize('bits', [4, 8])
def test_matmul_n_bits(bits, block, zeros, tmp_path):
    rng = np.random.default_rng(bits * block + zeros)
    for shape in ((1, 1), (2, 5), (1, 12)):
        form = n_bits(rng, tmp_path / 'm.onnx', bits, block, zeros, k=272, bias=shape[1] == 5, shape=shape)
        x = rng.standard_normal((*shape, 272)).astype(np.float32)
        net = convert(tmp_path / 'm.onnx', tmp_path)
        got = run(net, {'x': x}, ['y'], tmp_path)['y']
        want = form(x.astype(np.float64))
        assert np.abs(got - want).max() <= 1e-5 * np.abs(want).max() * 16
        session = ort.InferenceSession(str(tmp_path / 'm.onnx'), providers=['CPUExecutionProvider'])
        assert np.abs(got - session.run(None, {'x': x})[0]).max() <= 2e-3 * np.abs(want).max()
        term = bits * 100 + {16: 3, 32: 0, 64: 1, 128: 2, 256: 2}[block]
        assert gemm_terms(net) == [(term, int(zeros))]


def test_two_bits(tmp_path):
    rng = np.random.default_rng(2)
    form = n_bits(rng, tmp_path / 'm.onnx', 2, 32, True)
    x = rng.standard_normal((2, 5, 256)).astype(np.float32)
    net = convert(tmp_path / 'm.onnx', tmp_path)
    np.testing.assert_allclose(run(net, {'x': x}, ['y'], tmp_path)['y'], form(x), rtol=1e-4, atol=1e-3)
    assert gemm_terms(net) == [(400, 1)]


@pytest.mark.parametrize('kind', ['matmul', 'gemm', 'transpose'])
@pytest.mark.parametrize('element', [TensorProto.UINT4, TensorProto.INT4, TensorProto.UINT8, TensorProto.INT8])
@pytest.mark.parametrize('zeros', [False, True])
def test_dequantize_linear_of_blocks(element, zeros, kind, tmp_path):
    rng = np.random.default_rng(element + zeros)
    signed, bits = element in (TensorProto.INT4, TensorProto.INT8), 4 if element > 16 else 8
    rows, k, block = 24, 96, 32
    low = -(1 << (bits - 1)) if signed else 0
    q = rng.integers(low, low + (1 << bits), (rows, k))
    zero = rng.integers(low, low + (1 << bits), (rows, k // block)) if zeros else np.zeros((rows, k // block), int)
    scales = (rng.random((rows, k // block)) * 0.1 + 0.01).astype(np.float32)
    matrix = (q - zero.repeat(block, 1)) * scales.repeat(block, 1)
    turned = kind == 'matmul'
    lay = (lambda a: np.ascontiguousarray(a.T)) if turned else (lambda a: a)

    def tensor(name, a):
        return helper.make_tensor(name, element, a.shape, a.reshape(-1).tolist())
    constants = [tensor('q', lay(q)), numpy_helper.from_array(lay(scales), 's')]
    names = ['q', 's']
    if zeros:
        constants.append(tensor('z', lay(zero)))
        names.append('z')
    nodes = [helper.make_node('DequantizeLinear', names, ['w'], axis=0 if turned else 1, block_size=block)]
    shape = [2, 3, k]
    if kind == 'gemm':
        shape = [6, k]
        constants.append(numpy_helper.from_array(np.arange(rows, dtype=np.float32), 'b'))
        nodes.append(helper.make_node('Gemm', ['x', 'w', 'b'], ['y'], transB=1))
        matrix_bias = np.arange(rows)
    else:
        matrix_bias = 0
        if kind == 'transpose':
            nodes.append(helper.make_node('Transpose', ['w'], ['v']))
        nodes.append(helper.make_node('MatMul', ['x', 'v' if kind == 'transpose' else 'w'], ['y']))
    save(nodes, [info('x', shape)], [info('y', [*shape[:-1], rows])], constants, tmp_path / 'm.onnx')
    net = convert(tmp_path / 'm.onnx', tmp_path)
    x = rng.standard_normal(shape).astype(np.float32)
    got = run(net, {'x': x}, ['y'], tmp_path)['y']
    want = x.astype(np.float64) @ matrix.T + matrix_bias
    assert np.abs(got - want).max() <= 2e-4 * np.abs(want).max()
    assert gemm_terms(net) == [(bits * 100, int(zeros or not signed))]


def test_blocks_behind_images(tmp_path):
    """Rows that are the whole of an image: Flatten, Gemm, and what reads vectors."""
    rng = np.random.default_rng(10)
    q, scales = rng.integers(-128, 128, (7, 128)), (rng.random((7, 2)) * 0.1 + 0.01).astype(np.float32)
    constants = [helper.make_tensor('q', TensorProto.INT8, q.shape, q.reshape(-1).tolist()),
                 numpy_helper.from_array(scales, 's'), numpy_helper.from_array(np.arange(7, dtype=np.float32), 'b')]
    nodes = [helper.make_node('MaxPool', ['x'], ['p'], kernel_shape=[2, 2], strides=[2, 2]),
             helper.make_node('Flatten', ['p'], ['f']),
             helper.make_node('DequantizeLinear', ['q', 's'], ['w'], axis=1, block_size=64),
             helper.make_node('Gemm', ['f', 'w', 'b'], ['g'], transB=1), helper.make_node('Relu', ['g'], ['y'])]
    for n in (1, 3):
        save(nodes, [info('x', [n, 8, 8, 8])], [info('y', [n, 7])], constants, tmp_path / 'm.onnx')
        net = convert(tmp_path / 'm.onnx', tmp_path)
        x = rng.standard_normal((n, 8, 8, 8)).astype(np.float32)
        rows = x.reshape(n, 8, 4, 2, 4, 2).max((3, 5)).reshape(n, 128)
        want = np.maximum(rows @ (q * scales.repeat(64, 1)).T + np.arange(7), 0)
        got = run(net, {'x': x}, ['y'], tmp_path)['y']
        assert got.shape == want.shape and np.abs(got - want).max() <= 2e-4 * np.abs(want).max()
        assert gemm_terms(net) == [(801, 0)]


def test_blocks_of_other_sizes_become_floats(tmp_path):
    rng = np.random.default_rng(9)
    q, scales = rng.integers(-8, 8, (40, 6)), (rng.random((5, 6)) + 0.1).astype(np.float32)
    constants = [helper.make_tensor('q', TensorProto.INT4, q.shape, q.reshape(-1).tolist()),
                 numpy_helper.from_array(scales, 's')]
    nodes = [helper.make_node('DequantizeLinear', ['q', 's'], ['w'], axis=0, block_size=8),
             helper.make_node('MatMul', ['x', 'w'], ['y'])]
    save(nodes, [info('x', [3, 40])], [info('y', [3, 6])], constants, tmp_path / 'm.onnx')
    net = convert(tmp_path / 'm.onnx', tmp_path)
    x = rng.standard_normal((3, 40)).astype(np.float32)
    np.testing.assert_allclose(run(net, {'x': x}, ['y'], tmp_path)['y'], x @ (q * scales.repeat(8, 0)), rtol=1e-4,
                               atol=1e-4)
    assert gemm_terms(net) == []
