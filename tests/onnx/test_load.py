"""Nets straight from ONNX files (load_onnx): matrices stay in the file, the other way round, until layers pack them."""
import numpy as np
import pytest

onnx = pytest.importorskip('onnx')
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from onnx_run import run  # noqa: E402

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
