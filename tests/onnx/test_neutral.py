"""Sums with 0 and products with 1: what they give is their operand, and no layer computes it."""
import numpy as np
import pytest

onnx = pytest.importorskip('onnx')
from onnx import helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

from onnx_run import convert, run  # noqa: E402


def layers_of(op, inputs, constant, tmp_path, dtype=np.float32):
    """The lines of the net; its answers are compared with the reference evaluator's."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    nodes = [helper.make_node('Abs', ['x'], ['a']), helper.make_node(op, inputs, ['b']), helper.make_node('Neg', ['b'], ['y'])]
    info = [helper.make_tensor_value_info(n, kind, s) for n, s in (('x', [2, 3]), ('y', None))]
    graph = helper.make_graph(nodes, 'g', info[:1], info[1:], [numpy_helper.from_array(np.asarray(constant, dtype), 'c')])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)
    onnx.save(model, tmp_path / 'm.onnx')
    net = convert(tmp_path / 'm.onnx', tmp_path)
    x = np.arange(-2, 4).reshape(2, 3).astype(dtype)
    have, want = run(net, {'x': x}, ['y'], tmp_path)['y'], ReferenceEvaluator(model).run(None, {'x': x})[0]
    assert have.shape == want.shape
    np.testing.assert_array_equal(have, want)
    return [line.split()[0] for line in net[0].read_text().splitlines()[2:]]


@pytest.mark.parametrize('dtype', [np.float32, np.int64])
@pytest.mark.parametrize('op, inputs, constant', [
    ('Add', ['a', 'c'], 0), ('Add', ['c', 'a'], 0), ('Sub', ['a', 'c'], 0), ('Mul', ['a', 'c'], 1), ('Mul', ['c', 'a'], [1]),
    ('Div', ['a', 'c'], [[1]])])
def test_nothing_is_computed(op, inputs, constant, dtype, tmp_path):
    assert not [t for t in layers_of(op, inputs, constant, tmp_path, dtype) if 'Binary' in t]


@pytest.mark.parametrize('op, inputs, constant', [
    ('Sub', ['c', 'a'], 0), ('Mul', ['a', 'c'], 0), ('Add', ['a', 'c'], 1), ('Add', ['a', 'c'], [[[0]]]), ('Div', ['a', 'c'], 2)])
def test_what_changes_the_values_or_their_shape(op, inputs, constant, tmp_path):
    layers_of(op, inputs, constant, tmp_path)
