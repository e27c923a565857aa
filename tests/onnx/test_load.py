"""Nets straight from ONNX files (load_onnx): matrices stay in the file, the other way round, until layers pack them."""
import numpy as np
import pytest

onnx = pytest.importorskip('onnx')
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from onnx_run import convert, run  # noqa: E402

RNG = np.random.default_rng(2)
K, N = 96, 120
W = (RNG.normal(0, 1, (K, N)) / K ** 0.5).astype(np.float32)
SQUARE = (RNG.normal(0, 1, (K, K)) / K ** 0.5).astype(np.float32)
BIAS, SCALE = RNG.normal(0, 1, (2, N)).astype(np.float32)
PARTS = np.array([24, 56, 40], np.int64)


def case(name):
    """Nodes from x to y, and the answer for x."""
    node = helper.make_node
    product = [node('MatMul', ['x', 'w'], ['p'])]
    return {
        'product': (product + [node('Add', ['p', 'bias'], ['y'])], lambda x: x @ W + BIAS),
        'scaled': (product + [node('Mul', ['p', 'scale'], ['q']), node('Add', ['q', 'bias'], ['y'])],
                   lambda x: x @ W * SCALE + BIAS),
        'gemm': ([node('Gemm', ['x', 'w', 'bias'], ['y'], alpha=0.5)], lambda x: 0.5 * x @ W + BIAS),
        'cut': (product + [node('Add', ['p', 'bias'], ['q']), node('Split', ['q', 'parts'], ['a', 'b', 'c'], axis=-1),
                           node('Concat', ['c', 'a', 'b'], ['y'], axis=-1)],
                lambda x: np.concatenate(np.split(x @ W + BIAS, [24, 80], -1)[2:] + np.split(x @ W + BIAS, [24, 80], -1)[:2], -1)),
        'twice': ([node('MatMul', ['x', 's'], ['a']), node('MatMul', ['a', 's'], ['b']),
                   node('Gemm', ['b', 's'], ['y'], transB=1)], lambda x: x @ SQUARE @ SQUARE @ SQUARE.T),
        'columns': (product + [node('Transpose', ['p'], ['y'], perm=[1, 0])], lambda x: (x @ W).T),
    }[name]


OPTIONS = {'fp32': [], 'reference': ['--reference'], 'bf16': ['--precision', 'bf16'], 'fp16': ['--precision', 'fp16'],
           'scalar': ['--isa', 'scalar'], 'unfused': ['--no-fusion']}


@pytest.mark.parametrize('shift', range(4))
@pytest.mark.parametrize('name', ['product', 'scaled', 'gemm', 'cut', 'twice', 'columns'])
def test_matrices_that_stay_in_the_file(name, shift, tmp_path):
    nodes, answer = case(name)
    used = {i for n in nodes for i in n.input}
    tensors = {'w': W, 's': SQUARE, 'bias': BIAS, 'scale': SCALE, 'parts': PARTS}
    # What comes first moves the others, so that each address modulo 4 is met.
    graph = helper.make_graph(nodes, 'g' + 'g' * shift, [helper.make_tensor_value_info('x', TensorProto.FLOAT, [5, K])],
                              [helper.make_tensor_value_info('y', TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(a, n) for n, a in tensors.items() if n in used])
    path = tmp_path / 'm.onnx'
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8), path)
    x = np.random.default_rng(shift).normal(0, 1, (5, K)).astype(np.float32)
    want = answer(x.astype(np.float64))
    for kind, options in OPTIONS.items():
        have = run([path], {'x': x}, ['y'], tmp_path, *options)['y']
        assert have.shape == want.shape, kind
        tolerance = {'bf16': 2e-2, 'fp16': 2e-3}.get(kind, 1e-5)
        assert np.abs(have - want).max() <= tolerance * np.ptp(want), kind


FOLDED = {  # from constants to t, of which y is a sum
    'slices': [('Slice', ['w', 'zero', 'two', 'one'], ['a']), ('Concat', ['a', 'a'], ['b'], {'axis': 1}),
               ('ReduceMean', ['b'], ['t'], {'axes': [0]})],
    'sizes': [('Shape', ['w'], ['a']), ('Gather', ['a', 'one'], ['b']), ('Cast', ['b'], ['t'], {'to': TensorProto.FLOAT})],
    'empty': [('Slice', ['w', 'two', 'two', 'zero'], ['a']), ('Concat', ['a', 'w'], ['b'], {'axis': 0}),
              ('ReduceSum', ['b'], ['t'])],
    'integers': [('Shape', ['w'], ['a']), ('Mul', ['a', 'two'], ['b']), ('Mod', ['b', 'seven'], ['c']),
                 ('Cast', ['c'], ['d'], {'to': TensorProto.FLOAT}), ('ReduceMax', ['d'], ['t'])],
    'bytes': [('DequantizeLinear', ['bytes', 'scale', 'offset'], ['a']), ('Transpose', ['a'], ['b']), ('ReduceMin', ['b'], ['t'])],
    'several outputs': [('TopK', ['w', 'two'], ['a', 'b']), ('Cast', ['b'], ['c'], {'to': TensorProto.FLOAT}),
                        ('Sub', ['a', 'c'], ['d']), ('ReduceMean', ['d'], ['t'])],
    'convolution': [('Unsqueeze', ['w', 'zero'], ['a']), ('Conv', ['a', 'kernel'], ['b']), ('ReduceMean', ['b'], ['t'])],
    'choice': [('Greater', ['w', 'half'], ['a']), ('Where', ['a', 'w', 'half'], ['b']), ('ReduceMean', ['b'], ['t'])],
}


@pytest.mark.parametrize('name', FOLDED)
def test_what_follows_from_constants(name, tmp_path):
    ort = pytest.importorskip('onnxruntime')
    tensors = {'w': W, 'zero': np.int64([0]), 'one': np.int64([1]), 'two': np.int64([2]), 'seven': np.int64([7]),
               'half': np.float32([.1]), 'kernel': RNG.normal(0, 1, (3, K, 5)).astype(np.float32),
               'bytes': RNG.integers(0, 256, (4, 5), np.uint8), 'scale': np.float32(.03), 'offset': np.uint8(120)}
    nodes = [helper.make_node(op, i, o, **dict(*more)) for op, i, o, *more in FOLDED[name]]
    nodes.append(helper.make_node('Add', ['x', 't'], ['y']))
    used = {i for n in nodes for i in n.input}
    graph = helper.make_graph(nodes, 'g', [helper.make_tensor_value_info('x', TensorProto.FLOAT, ['n'])],
                              [helper.make_tensor_value_info('y', TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(a, n) for n, a in tensors.items() if n in used])
    path = tmp_path / 'm.onnx'
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 13)], ir_version=8), path)
    x = np.float32([3.5])
    want = ort.InferenceSession(str(path), providers=['CPUExecutionProvider']).run(None, {'x': x})[0]
    for net in ([path], convert(path, tmp_path)):
        have = run(net, {'x': x}, ['y'], tmp_path)['y']
        assert have.shape == want.shape
        assert np.abs(have - want).max() <= 1e-5 * np.abs(want).max()
