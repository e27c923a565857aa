"""Support vector machines, and what follows the scores of classical models, beside ONNX Runtime."""
import numpy as np
import pytest

pytest.importorskip('onnxruntime')
import onnx  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402

from onnx_run import Failure, convert, run  # noqa: E402
from test_ml import ML, check, forest, rows  # noqa: E402

BOTH = {'label': TensorProto.INT64, 'y': TensorProto.FLOAT}


def machines(rng, counts, features=6, probabilities=False, **more):
    classes, supports = len(counts), sum(counts)
    pairs = classes * (classes - 1) // 2
    some = lambda *shape: rng.normal(0, 1, shape).ravel().tolist()  # noqa: E731
    if probabilities:
        more.update(prob_a=(-.5 - rng.random(pairs)).tolist(), prob_b=some(pairs))
    return helper.make_node(
        'SVMClassifier', ['x'], ['label', 'y'], domain=ML, kernel_params=[.3, .5, 2.], support_vectors=some(supports, features),
        coefficients=some(classes - 1, supports), rho=some(pairs), vectors_per_class=counts,
        classlabels_ints=[3 * i + 2 for i in range(classes)], **more)


@pytest.mark.parametrize('kernel', ['LINEAR', 'RBF', 'POLY', 'SIGMOID'])
@pytest.mark.parametrize('probabilities', [False, True])
@pytest.mark.parametrize('counts', [[4, 3], [2, 5, 3], [3, 1, 4, 2, 6]])
def test_classifier(kernel, probabilities, counts, tmp_path):
    rng = np.random.default_rng(20)
    node = machines(rng, counts, probabilities=probabilities, kernel_type=kernel)
    check([node], {'x': rows(rng, missing=False)}, BOTH, tmp_path, ml=1, tolerance=2e-4)


@pytest.mark.parametrize('transform', ['LOGISTIC', 'SOFTMAX', 'SOFTMAX_ZERO'])
@pytest.mark.parametrize('probabilities', [False, True])
@pytest.mark.parametrize('counts', [[4, 3], [2, 5, 3]])
def test_classifier_with_a_transform(transform, probabilities, counts, tmp_path):
    rng = np.random.default_rng(21)
    node = machines(rng, counts, probabilities=probabilities, kernel_type='RBF', post_transform=transform)
    check([node], {'x': rows(rng, missing=False)}, BOTH, tmp_path, ml=1, tolerance=2e-4)


@pytest.mark.parametrize('transform', ['NONE', 'LOGISTIC', 'SOFTMAX'])
@pytest.mark.parametrize('rho', [[.2], [.2, -.4, .1]])
def test_linear_classifier(transform, rho, tmp_path):
    rng = np.random.default_rng(22)
    node = helper.make_node('SVMClassifier', ['x'], ['label', 'y'], domain=ML, kernel_type='LINEAR', kernel_params=[0., 0., 0.], rho=rho,
                            coefficients=rng.normal(0, 1, 18).tolist(), classlabels_ints=[4, 1, 9], post_transform=transform)
    check([node], {'x': rows(rng, missing=False)}, BOTH, tmp_path, ml=1)


def test_linear_regressor_with_a_transform(tmp_path):
    """As the operator's definition says: ONNX Runtime leaves it out."""
    x, weights = np.random.default_rng(25).normal(0, 1, (4, 6)).astype(np.float32), [.3, -.2, .1, .5, -.4, .2]
    node = helper.make_node('SVMRegressor', ['x'], ['y'], domain=ML, kernel_type='LINEAR', kernel_params=[0., 0., 0.], n_supports=0,
                            coefficients=weights, rho=[.2], post_transform='LOGISTIC')
    graph = helper.make_graph([node], 'g', [helper.make_tensor_value_info('x', TensorProto.FLOAT, [4, 6])],
                              [helper.make_tensor_value_info('y', TensorProto.FLOAT, [4, 1])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17), helper.make_opsetid(ML, 1)], ir_version=8)
    onnx.save(model, tmp_path / 'm.onnx')
    have = run(convert(tmp_path / 'm.onnx', tmp_path), {'x': x}, ['y'], tmp_path)['y']
    np.testing.assert_allclose(have[:, 0], 1 / (1 + np.exp(-(x @ np.float32(weights) + .2))), 1e-5, 1e-5)


@pytest.mark.parametrize('transform', ['NONE', 'LOGISTIC', 'SOFTMAX', 'SOFTMAX_ZERO'])
def test_scores_of_one_of_two_classes(transform, tmp_path):
    rng = np.random.default_rng(23)
    node = helper.make_node('LinearClassifier', ['x'], ['label', 'y'], domain=ML, coefficients=rng.normal(0, 1, 6).tolist(),
                            intercepts=[.3], post_transform=transform, classlabels_ints=[3, 7])
    check([node], {'x': rows(rng, missing=False)}, BOTH, tmp_path, ml=1)


@pytest.mark.parametrize('transform', ['SOFTMAX_ZERO', 'PROBIT'])
def test_rarer_transforms(transform, tmp_path):
    rng = np.random.default_rng(24)
    x = rng.uniform(.05, .95, (30, 3)).astype(np.float32)
    if transform == 'SOFTMAX_ZERO':
        x[::3, 1] = 0
    unit = np.eye(3).ravel().tolist()
    node = helper.make_node('LinearRegressor', ['x'], ['y'], domain=ML, coefficients=unit, targets=3, post_transform=transform)
    check([node], {'x': x}, {'y': TensorProto.FLOAT}, tmp_path, ml=1, tolerance=1e-4)
    attributes = forest(rng, 2, 3, 6, 3, 'class')
    attributes['class_weights'] = [.2 + .1 * (i % 3) for i in range(len(attributes['class_weights']))]
    node = helper.make_node('TreeEnsembleClassifier', ['x'], ['label', 'y'], domain=ML, post_transform=transform,
                            classlabels_int64s=[1, 2, 3], **attributes)
    check([node], {'x': rows(rng)}, BOTH, tmp_path, tolerance=1e-4)


@pytest.mark.parametrize('supports', [0, 5])
def test_one_class(supports, tmp_path):
    rng = np.random.default_rng(26)
    some = lambda n: rng.normal(0, 1, n).tolist()  # noqa: E731
    more = {'support_vectors': some(30)} if supports else {}
    node = helper.make_node('SVMRegressor', ['x'], ['y'], domain=ML, kernel_type='LINEAR', kernel_params=[0., 0., 0.], n_supports=supports,
                            coefficients=some(supports or 6), rho=[.2], one_class=1, **more)
    check([node], {'x': rows(rng, missing=False)}, {'y': TensorProto.FLOAT}, tmp_path, ml=1)


@pytest.mark.parametrize('change, message', [
    ({'rho': [1., 2.]}, '2 values of rho for 3 pairs'),
    ({'coefficients': [1.] * 19}, '19 coefficients, expected 2 of each of 10'),
    ({'vectors_per_class': [2, -5, 3]}, 'vectors_per_class -5'),
    ({'vectors_per_class': [2, 5]}, '3 labels'),
    ({'prob_a': [1.]}, 'for 3 pairs of classes'),
    ({'kernel_type': 'ROUND'}, 'kernel_type ROUND'),
])
def test_damaged_machines_are_refused(change, message, tmp_path):
    rng = np.random.default_rng(25)
    node = machines(rng, [2, 5, 3], kernel_type='RBF')
    for name, value in change.items():
        for a in [a for a in node.attribute if a.name == name]:
            node.attribute.remove(a)
        node.attribute.append(helper.make_attribute(name, value))
    graph = helper.make_graph([node], 'g', [helper.make_tensor_value_info('x', TensorProto.FLOAT, [None, 6])],
                              [helper.make_tensor_value_info(n, kind, None) for n, kind in BOTH.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17), helper.make_opsetid(ML, 1)], ir_version=8)
    (tmp_path / 'm.onnx').write_bytes(model.SerializeToString())
    with pytest.raises(Failure, match=message):
        convert(tmp_path / 'm.onnx', tmp_path)
