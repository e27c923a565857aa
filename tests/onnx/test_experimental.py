"""Operators that ONNX has withdrawn and ONNX Runtime still runs, against ONNX Runtime."""
import numpy as np
import pytest

onnx = pytest.importorskip('onnx')
onnxruntime = pytest.importorskip('onnxruntime')
from onnx import TensorProto, helper  # noqa: E402

from onnx_run import convert, run  # noqa: E402


@pytest.mark.parametrize('op, attributes', [
    ('Affine', dict(alpha=0.5, beta=2.)),
    ('Crop', dict(border=[1, 2, 3, 0])),
    ('Crop', dict(border=[1, 2, 0, 0], scale=[3, 4])),
    ('ImageScaler', dict(scale=0.5, bias=[1., 2., -3.])),
    ('ParametricSoftplus', dict(alpha=0.5, beta=2.)),
    ('Scale', dict(scale=3.)),
    ('ScaledTanh', dict(alpha=0.5, beta=2.))])
def test_withdrawn(op, attributes, tmp_path):
    x = np.random.default_rng(2).standard_normal((2, 3, 6, 8)).astype(np.float32)
    graph = helper.make_graph([helper.make_node(op, ['x'], ['y'], **attributes)], 'g',
                              [helper.make_tensor_value_info('x', TensorProto.FLOAT, ['n', 3, 'h', 'w'])],
                              [helper.make_tensor_value_info('y', TensorProto.FLOAT, ['n', 3, 'p', 'q'])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 7)], ir_version=5)
    path = tmp_path / 'm.onnx'
    onnx.save(model, path)
    want = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {'x': x})[0]
    have = run(convert(path, tmp_path), {'x': x}, ['y'], tmp_path)['y']
    assert have.shape == want.shape
    np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-6)
