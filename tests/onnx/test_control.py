"""If, Loop and Scan against the reference evaluator of the onnx package."""
import numpy as np
import pytest

onnx = pytest.importorskip('onnx')
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

from onnx_run import Failure, convert, run  # noqa: E402


def info(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def constant(name, value):
    return numpy_helper.from_array(np.asarray(value), name)


def model_of(nodes, inputs, outputs, initializers=(), opset=17):
    graph = helper.make_graph(nodes, 'g', inputs, outputs, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid('', opset)], ir_version=8)


def check(model, feeds, tmp_path, net=None):
    """Converts (unless there is a net) and compares with the reference; gives the net."""
    path = tmp_path / 'model.onnx'
    onnx.save(model, path)
    net = net or convert(path, tmp_path)
    names = [o.name for o in model.graph.output]
    have = run(net, feeds, names, tmp_path)
    for name, want in zip(names, ReferenceEvaluator(model).run(None, feeds)):
        assert have[name].shape == want.shape, name
        np.testing.assert_allclose(have[name], want, rtol=1e-5, atol=1e-6)
    return net


def branches(shapes=(None, None)):
    """y = x * 2 and a part of x, of which a condition chooses one."""
    then = helper.make_graph([helper.make_node('Mul', ['x', 'two'], ['a'])], 'then', [], [info('a', shapes[0])])
    other = helper.make_graph([helper.make_node('Slice', ['x', 'zero', 'one'], ['b'])], 'other', [],
                              [info('b', shapes[1])])
    return helper.make_node('If', ['c'], ['y'], then_branch=then, else_branch=other)


CONSTANTS = [constant('two', np.float32(2)), constant('zero', np.int64([0])), constant('one', np.int64([1]))]


@pytest.mark.parametrize('choice', [True, False])
def test_if_constant(choice, tmp_path):
    model = model_of([branches()], [info('x', [3, 4])], [info('y', None)], CONSTANTS + [constant('c', choice)])
    net = check(model, {'x': np.random.rand(3, 4).astype(np.float32)}, tmp_path)
    assert 'Select' not in net[0].read_text()


def test_if_at_run_time(tmp_path):
    """One conversion serves both conditions, though the branches differ in size."""
    model = model_of([branches()], [info('x', [3, 4]), info('c', [], TensorProto.BOOL)], [info('y', None)], CONSTANTS)
    net = None
    for choice in (True, False):
        feeds = {'x': np.random.rand(3, 4).astype(np.float32), 'c': np.bool_(choice)}
        net = check(model, feeds, tmp_path, net)


def test_if_squeeze_of_known_size(tmp_path):
    """What PyTorch writes for x.squeeze(1): the sizes decide it, whatever the ranks of the branches are."""
    nodes = [helper.make_node('Shape', ['x'], ['s']), helper.make_node('Gather', ['s', 'at'], ['n'], axis=0),
             helper.make_node('Equal', ['n', 'one'], ['c'])]
    then = helper.make_graph([helper.make_node('Squeeze', ['x', 'axes'], ['a'])], 'then', [], [info('a', None)])
    other = helper.make_graph([helper.make_node('Identity', ['x'], ['b'])], 'other', [], [info('b', None)])
    nodes.append(helper.make_node('If', ['c'], ['y'], then_branch=then, else_branch=other))
    constants = [constant('at', np.int64(1)), constant('one', np.int64(1)), constant('axes', np.int64([1]))]
    for size in (1, 2):
        model = model_of(nodes, [info('x', [3, size, 4])], [info('y', None)], constants)
        check(model, {'x': np.random.rand(3, size, 4).astype(np.float32)}, tmp_path)
    model = model_of(nodes, [info('x', [3, 'n', 4])], [info('y', None)], constants)
    onnx.save(model, tmp_path / 'model.onnx')
    with pytest.raises(Failure, match='ranks 2 and 3'):
        convert(tmp_path / 'model.onnx', tmp_path)


def accumulate():
    """A body that adds x to a sum, and gives the sum and the number of the iteration as scans."""
    nodes = [helper.make_node('Add', ['sum_in', 'x'], ['sum_out']), helper.make_node('Identity', ['c'], ['c_out']),
             helper.make_node('Identity', ['sum_out'], ['row']), helper.make_node('Identity', ['i'], ['number'])]
    return helper.make_graph(
        nodes, 'body', [info('i', [], TensorProto.INT64), info('c', [], TensorProto.BOOL), info('sum_in', [2, 3])],
        [info('c_out', [], TensorProto.BOOL), info('sum_out', [2, 3]), info('row', [2, 3]),
         info('number', [], TensorProto.INT64)])


@pytest.mark.parametrize('trips', [1, 4])
def test_loop(trips, tmp_path):
    node = helper.make_node('Loop', ['trips', 'yes', 'x'], ['sum', 'rows', 'numbers'], body=accumulate())
    outputs = [info('sum', [2, 3]), info('rows', None), info('numbers', None, TensorProto.INT64)]
    model = model_of([node], [info('x', [2, 3])], outputs,
                     [constant('trips', np.int64(trips)), constant('yes', np.bool_(True))])
    onnx.save(model, tmp_path / 'model.onnx')
    x = np.random.rand(2, 3).astype(np.float32)
    have = run(convert(tmp_path / 'model.onnx', tmp_path), {'x': x}, ['sum', 'rows', 'numbers'], tmp_path)
    rows = np.stack([x * np.float32(i + 2) for i in range(trips)])
    np.testing.assert_allclose(have['rows'], rows, rtol=1e-5)
    np.testing.assert_allclose(have['sum'], rows[-1], rtol=1e-5)
    assert have['numbers'].tolist() == list(range(trips))


def test_loop_that_a_condition_ends(tmp_path):
    """while i < 3, the trip count being far larger."""
    body = helper.make_graph(
        [helper.make_node('Mul', ['s', 'two'], ['s_out']), helper.make_node('Less', ['i', 'last'], ['c_out'])], 'body',
        [info('i', [], TensorProto.INT64), info('c', [], TensorProto.BOOL), info('s', [2])],
        [info('c_out', [], TensorProto.BOOL), info('s_out', [2])])
    node = helper.make_node('Loop', ['trips', 'yes', 'x'], ['y'], body=body)
    model = model_of([node], [info('x', [2])], [info('y', [2])],
                     [constant('trips', np.int64(2 ** 40)), constant('yes', np.bool_(True)),
                      constant('two', np.float32(2)), constant('last', np.int64(2))])
    check(model, {'x': np.float32([1, -2])}, tmp_path)


def test_loop_of_unknown_length_is_refused(tmp_path):
    node = helper.make_node('Loop', ['trips', '', 'x'], ['sum', 'rows', 'numbers'], body=accumulate(), name='decoder')
    model = model_of([node], [info('x', [2, 3]), info('trips', [], TensorProto.INT64)],
                     [info('sum', [2, 3])])
    onnx.save(model, tmp_path / 'model.onnx')
    with pytest.raises(Failure, match='decoder .*trip count trips is not constant'):
        convert(tmp_path / 'model.onnx', tmp_path)
    assert not (tmp_path / 'm.param').exists()


@pytest.mark.parametrize('attributes', [{}, {'scan_input_axes': [1]}, {'scan_input_directions': [1]},
                                        {'scan_output_axes': [1], 'scan_output_directions': [1]}])
def test_scan(attributes, tmp_path):
    body = helper.make_graph(
        [helper.make_node('Add', ['s', 'part'], ['s_out']), helper.make_node('Mul', ['s_out', 'two'], ['row'])], 'body',
        [info('s', None), info('part', None)], [info('s_out', None), info('row', None)])
    node = helper.make_node('Scan', ['start', 'x'], ['end', 'rows'], body=body, num_scan_inputs=1, **attributes)
    size = 3 if 'scan_input_axes' in attributes else 4
    model = model_of([node], [info('x', [3, 4])], [info('end', None), info('rows', None)],
                     [constant('start', np.zeros(size, np.float32)), constant('two', np.float32(2))])
    if 'scan_output_axes' in attributes:  # the reference evaluator lacks them: rows are columns, the last one first
        onnx.save(model, tmp_path / 'model.onnx')
        x = np.random.rand(3, 4).astype(np.float32)
        have = run(convert(tmp_path / 'model.onnx', tmp_path), {'x': x}, ['rows'], tmp_path)['rows']
        np.testing.assert_allclose(have, 2 * np.cumsum(x, 0)[::-1].T, rtol=1e-5)
    elif 'scan_input_directions' in attributes or 'scan_input_axes' in attributes:
        onnx.save(model, tmp_path / 'model.onnx')
        x = np.random.rand(3, 4).astype(np.float32)
        have = run(convert(tmp_path / 'model.onnx', tmp_path), {'x': x}, ['rows'], tmp_path)['rows']
        want = np.cumsum(x, 1).T if 'scan_input_axes' in attributes else np.cumsum(x[::-1], 0)
        np.testing.assert_allclose(have, 2 * want, rtol=1e-5)
    else:
        check(model, {'x': np.random.rand(3, 4).astype(np.float32)}, tmp_path)
