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


@pytest.mark.parametrize('known', [True, False])
def test_branches_in_branches(known, tmp_path):
    """Each level reads values of all levels around it, and gives one of them as it is."""
    node, graph = helper.make_node, helper.make_graph

    def inner(name, op, outside):
        return graph([node(op, ['x', outside], [name + '_r'])], name, [], [info(name + '_r', None)])

    def middle(name, op):
        deep = node('If', ['c'], [name + '_t'], then_branch=inner(name + '_a', op, name + '_m'),
                    else_branch=graph([], name + '_b', [], [info(name + '_m', None)]))
        return graph([node('Add', ['h', 'two'], [name + '_m']), deep, node('Mul', [name + '_t', 'h'], [name + '_o'])],
                     name, [], [info(name + '_o', None)])

    outer = graph([node('Mul', ['x', 'two'], ['h']),
                   node('If', ['d'], ['k'], then_branch=middle('p', 'Sub'), else_branch=middle('q', 'Max')),
                   node('Neg', ['k'], ['l'])], 'outer', [], [info('l', None)])
    nodes = [node('If', ['c'], ['y'], then_branch=outer, else_branch=graph([node('Identity', ['x'], ['i'])], 'plain', [],
                                                                         [info('i', None)]))]
    inputs = [info('x', [3, 4])]
    for c in (True, False):
        for d in (True, False):
            truths = {'c': c, 'd': d}
            constants = [constant(n, v) for n, v in truths.items()] if known else []
            more = [] if known else [info(n, [], TensorProto.BOOL) for n in truths]
            feeds = {'x': np.random.rand(3, 4).astype(np.float32)}
            feeds.update({} if known else {n: np.bool_(v) for n, v in truths.items()})
            check(model_of(nodes, inputs + more, [info('y', None)], CONSTANTS[:1] + constants), feeds, tmp_path)


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
    net = None
    for size in (1, 2):
        net = check(model, {'x': np.random.rand(3, size, 4).astype(np.float32)}, tmp_path, net)


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


def test_loop_of_unknown_length(tmp_path):
    """One conversion, several trip counts; without iterations the scans are empty."""
    node = helper.make_node('Loop', ['trips', '', 'x'], ['sum', 'rows', 'numbers'], body=accumulate(), name='decoder')
    outputs = [info('sum', [2, 3]), info('rows', None), info('numbers', None, TensorProto.INT64)]
    model = model_of([node], [info('x', [2, 3]), info('trips', [], TensorProto.INT64)], outputs)
    onnx.save(model, tmp_path / 'model.onnx')
    net = convert(tmp_path / 'model.onnx', tmp_path)
    x = np.random.rand(2, 3).astype(np.float32)
    for trips in (3, 1, 0):
        have = run(net, {'x': x, 'trips': np.int64(trips)}, ['sum', 'rows', 'numbers'], tmp_path)
        rows = np.stack([x * np.float32(i + 2) for i in range(trips)]) if trips else np.zeros((0, 2, 3), np.float32)
        assert have['rows'].shape == rows.shape
        np.testing.assert_allclose(have['rows'], rows, rtol=1e-5)
        np.testing.assert_allclose(have['sum'], rows[-1] if trips else x, rtol=1e-5)
        assert have['numbers'].tolist() == list(range(trips))


def test_loop_that_its_values_end(tmp_path):
    """while max(abs(x)) > 1: x = x / 2, as PyTorch's script exporter writes it."""
    body = helper.make_graph(
        [helper.make_node('Mul', ['s', 'half'], ['s_out']), helper.make_node('Add', ['k', 'one'], ['k_out']),
         helper.make_node('Abs', ['s_out'], ['a']), helper.make_node('ReduceMax', ['a'], ['m'], keepdims=0),
         helper.make_node('Greater', ['m', 'most'], ['g']), helper.make_node('Cast', ['g'], ['c_out'], to=TensorProto.BOOL)],
        'body', [info('i', [], TensorProto.INT64), info('c', [], TensorProto.BOOL), info('s', [3, 4]),
                 info('k', [], TensorProto.INT64)],
        [info('c_out', [], TensorProto.BOOL), info('s_out', [3, 4]), info('k_out', [], TensorProto.INT64)])
    nodes = [helper.make_node('Abs', ['x'], ['a0']), helper.make_node('ReduceMax', ['a0'], ['m0'], keepdims=0),
             helper.make_node('Greater', ['m0', 'most'], ['c0']),
             helper.make_node('Loop', ['trips', 'c0', 'x', 'zero'], ['y', 'steps'], body=body)]
    model = model_of(nodes, [info('x', [3, 4])], [info('y', [3, 4]), info('steps', [], TensorProto.INT64)],
                     [constant('trips', np.int64(2 ** 63 - 1)), constant('half', np.float32(0.5)),
                      constant('one', np.int64(1)), constant('zero', np.int64(0)), constant('most', np.float32(1))])
    net = None
    for scale in (0.5, 9, 70):
        net = check(model, {'x': np.float32(scale) * np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)}, tmp_path, net)


def test_loop_whose_state_grows(tmp_path):
    """A decoder: each step appends a row to its output, and a branch within it depends on the state."""
    then = helper.make_graph([helper.make_node('Mul', ['h1', 'w9'], ['t'])], 'then', [], [info('t', [2, 4])])
    other = helper.make_graph([helper.make_node('Identity', ['h1'], ['e'])], 'other', [], [info('e', [2, 4])])
    body = helper.make_graph(
        [helper.make_node('MatMul', ['h', 'w'], ['hw']), helper.make_node('Gather', ['x', 'i'], ['row'], axis=0),
         helper.make_node('Add', ['hw', 'row'], ['sum']), helper.make_node('Tanh', ['sum'], ['h1']),
         helper.make_node('ReduceMean', ['h1'], ['mean'], keepdims=0), helper.make_node('Greater', ['mean', 'none'], ['up']),
         helper.make_node('If', ['up'], ['h_out'], then_branch=then, else_branch=other),
         helper.make_node('Concat', ['out', 'h_out'], ['out1'], axis=0), helper.make_node('Identity', ['c'], ['c_out'])],
        'body', [info('i', [], TensorProto.INT64), info('c', [], TensorProto.BOOL), info('h', [2, 4]), info('out', None)],
        [info('c_out', [], TensorProto.BOOL), info('h_out', [2, 4]), info('out1', None)])
    nodes = [helper.make_node('Shape', ['x'], ['sizes']), helper.make_node('Gather', ['sizes', 'first'], ['t'], axis=0),
             helper.make_node('Loop', ['t', 'yes', 'h0', 'empty'], ['last', 'all'], body=body)]
    model = model_of(nodes, [info('x', ['t', 2, 4]), info('h0', [2, 4])], [info('last', [2, 4]), info('all', ['r', 4])],
                     [constant('first', np.int64(0)), constant('yes', np.bool_(True)), constant('w9', np.float32(0.9)),
                      constant('none', np.float32(0)), constant('empty', np.zeros((0, 4), np.float32)),
                      constant('w', np.random.default_rng(2).normal(0, 1, (4, 4)).astype(np.float32))])
    net = None
    for steps in (3, 6, 1):
        rng = np.random.default_rng(steps)
        feeds = {'x': rng.normal(0, 1, (steps, 2, 4)).astype(np.float32), 'h0': rng.normal(0, 1, (2, 4)).astype(np.float32)}
        net = check(model, feeds, tmp_path, net)


def test_loops_in_a_loop(tmp_path):
    """Counts of both are known only at run time; the inner one begins anew each time."""
    inner = helper.make_graph(
        [helper.make_node('Add', ['u', 'x'], ['u_out']), helper.make_node('Identity', ['d'], ['d_out'])], 'inner',
        [info('j', [], TensorProto.INT64), info('d', [], TensorProto.BOOL), info('u', [3])],
        [info('d_out', [], TensorProto.BOOL), info('u_out', [3])])
    body = helper.make_graph(
        [helper.make_node('Loop', ['i', '', 'x'], ['v'], body=inner), helper.make_node('Add', ['s', 'v'], ['s_out']),
         helper.make_node('Identity', ['c'], ['c_out'])], 'body',
        [info('i', [], TensorProto.INT64), info('c', [], TensorProto.BOOL), info('s', [3])],
        [info('c_out', [], TensorProto.BOOL), info('s_out', [3]), info('v', [3])])
    node = helper.make_node('Loop', ['n', '', 'x'], ['y', 'rows'], body=body)
    model = model_of([node], [info('x', [3]), info('n', [], TensorProto.INT64)], [info('y', [3]), info('rows', None)])
    onnx.save(model, tmp_path / 'model.onnx')
    net = convert(tmp_path / 'model.onnx', tmp_path)
    x = np.float32([1, -2, 0.5])
    for n in (4, 2):
        have = run(net, {'x': x, 'n': np.int64(n)}, ['y', 'rows'], tmp_path)
        rows = np.stack([x * np.float32(i + 1) for i in range(n)])
        np.testing.assert_allclose(have['rows'], rows, rtol=1e-6)
        np.testing.assert_allclose(have['y'], x + rows.sum(0), rtol=1e-6)


def test_loop_with_a_placeholder(tmp_path):
    """What an iteration leaves for after the loop begins as a single value that nobody reads, as Paddle's exporter writes it."""
    body = helper.make_graph(
        [helper.make_node('Add', ['s', 'x'], ['s_out']), helper.make_node('Mul', ['s_out', 'x'], ['p_out']),
         helper.make_node('Identity', ['c'], ['c_out'])], 'body',
        [info('i', [], TensorProto.INT64), info('c', [], TensorProto.BOOL), info('s', [2, 3]), info('p', [2, 3])],
        [info('c_out', [], TensorProto.BOOL), info('s_out', [2, 3]), info('p_out', [2, 3])])
    node = helper.make_node('Loop', ['trips', 'yes', 'x', 'nothing'], ['sum', 'product'], body=body)
    model = model_of([node], [info('x', [2, 3]), info('trips', [], TensorProto.INT64)], [info('sum', [2, 3]), info('product', [2, 3])],
                     [constant('nothing', np.float32(0)), constant('yes', np.bool_(True))])
    net = None
    for trips in (3, 1):
        net = check(model, {'x': np.random.default_rng(trips).random((2, 3), np.float32), 'trips': np.int64(trips)}, tmp_path, net)


def test_loop_that_changes_a_rank_is_refused(tmp_path):
    body = helper.make_graph(
        [helper.make_node('Unsqueeze', ['s', 'axes'], ['s_out']), helper.make_node('Identity', ['c'], ['c_out'])], 'body',
        [info('i', [], TensorProto.INT64), info('c', [], TensorProto.BOOL), info('s', None)],
        [info('c_out', [], TensorProto.BOOL), info('s_out', None)])
    node = helper.make_node('Loop', ['trips', '', 'x'], ['y'], body=body, name='grow')
    model = model_of([node], [info('x', [2]), info('trips', [], TensorProto.INT64)], [info('y', None)],
                     [constant('axes', np.int64([0]))])
    onnx.save(model, tmp_path / 'model.onnx')
    with pytest.raises(Failure, match='grow .*changes its rank'):
        convert(tmp_path / 'model.onnx', tmp_path)
    assert not (tmp_path / 'm.param').exists()


def test_loop_whose_value_becomes_an_array_of_one(tmp_path):
    body = helper.make_graph(
        [helper.make_node('Add', ['k', 'ones'], ['k_out']), helper.make_node('Add', ['s', 'k_out'], ['s_out']),
         helper.make_node('Identity', ['c'], ['c_out'])], 'body',
        [info('i', [], TensorProto.INT64), info('c', [], TensorProto.BOOL), info('k', []), info('s', [3])],
        [info('c_out', [], TensorProto.BOOL), info('k_out', []), info('s_out', [3])])
    node = helper.make_node('Loop', ['trips', 'yes', 'one', 'x'], ['', 'sum'], body=body)
    model = model_of([node], [info('x', [3]), info('trips', [], TensorProto.INT64)], [info('sum', [3])],
                     [constant('one', np.float32(1)), constant('ones', np.float32([1])), constant('yes', np.bool_(True))])
    net = None
    for trips in (3, 1):
        net = check(model, {'x': np.float32([1, 2, 3]), 'trips': np.int64(trips)}, tmp_path, net)


@pytest.mark.parametrize('known', [True, False])
@pytest.mark.parametrize('attributes', [{}, {'scan_input_axes': [1]}, {'scan_input_directions': [1]},
                                        {'scan_output_axes': [1], 'scan_output_directions': [1]}])
def test_scan(attributes, known, tmp_path):
    """Unrolled where the length is known, a loop where it is not."""
    body = helper.make_graph(
        [helper.make_node('Add', ['s', 'part'], ['s_out']), helper.make_node('Mul', ['s_out', 'two'], ['row'])], 'body',
        [info('s', None), info('part', None)], [info('s_out', None), info('row', None)])
    node = helper.make_node('Scan', ['start', 'x'], ['end', 'rows'], body=body, num_scan_inputs=1, **attributes)
    size = 3 if 'scan_input_axes' in attributes else 4
    length = [3, 4] if known else [3, 'n'] if size == 3 else ['n', 4]
    model = model_of([node], [info('x', length)], [info('end', None), info('rows', None)],
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
        if not known:
            check(model, {'x': np.random.rand(7, 4).astype(np.float32)}, tmp_path)


@pytest.mark.parametrize('steps', [0, 20000])
def test_scan_of_known_length_that_is_not_unrolled(steps, tmp_path):
    """Too many steps for a graph of them all, as samples of sound are; or none."""
    body = helper.make_graph(
        [helper.make_node('Mul', ['s', 'half'], ['less']), helper.make_node('Add', ['less', 'part'], ['s_out']),
         helper.make_node('Identity', ['s_out'], ['row'])], 'body',
        [info('s', [2]), info('part', [2])], [info('s_out', [2]), info('row', [2])])
    node = helper.make_node('Scan', ['start', 'x'], ['end', 'rows'], body=body, num_scan_inputs=1)
    model = model_of([node], [info('x', [steps, 2])], [info('end', [2]), info('rows', [steps, 2])],
                     [constant('start', np.ones(2, np.float32)), constant('half', np.float32(0.5))])
    onnx.save(model, tmp_path / 'model.onnx')
    x = np.random.default_rng(0).standard_normal((steps, 2)).astype(np.float32)
    have = run(convert(tmp_path / 'model.onnx', tmp_path), {'x': x}, ['end', 'rows'], tmp_path)
    state, rows = np.ones(2, np.float32), []
    for part in x:
        state = state * np.float32(0.5) + part
        rows.append(state)
    np.testing.assert_allclose(have['end'], state, rtol=1e-5)
    np.testing.assert_allclose(have['rows'], np.reshape(rows, (steps, 2)), rtol=1e-4, atol=1e-6)


def appending(combine):
    """A loop that appends a row of x, cumulated, to a list: what PyTorch's script exporter writes for list.append()."""
    body = helper.make_graph(
        [helper.make_node('Gather', ['x', 'i'], ['row'], axis=0), helper.make_node('CumSum', ['row', 'first'], ['sum']),
         helper.make_node('SequenceInsert', ['list', 'sum'], ['longer']), helper.make_node('Identity', ['c'], ['c_out'])],
        'body', [info('i', [], TensorProto.INT64), info('c', [], TensorProto.BOOL),
                 helper.make_tensor_sequence_value_info('list', TensorProto.FLOAT, None)],
        [info('c_out', [], TensorProto.BOOL), helper.make_tensor_sequence_value_info('longer', TensorProto.FLOAT, None)])
    return [helper.make_node('Shape', ['x'], ['sizes']), helper.make_node('Gather', ['sizes', 'first'], ['n'], axis=0),
            helper.make_node('SequenceEmpty', [], ['none']),
            helper.make_node('Loop', ['n', 'yes', 'none'], ['rows'], body=body), *combine]


LISTS = {
    'stacked': [helper.make_node('ConcatFromSequence', ['rows'], ['y'], axis=0, new_axis=1)],
    'stacked behind': [helper.make_node('ConcatFromSequence', ['rows'], ['y'], axis=1, new_axis=1)],
    'joined': [helper.make_node('ConcatFromSequence', ['rows'], ['y'], axis=0)],
    'joined behind': [helper.make_node('ConcatFromSequence', ['rows'], ['y'], axis=1)],
    'one': [helper.make_node('SequenceAt', ['rows', 'at'], ['y'])],
}


@pytest.mark.parametrize('sizes', [[2, 3, 4], ['n', 3, 4]], ids=['unrolled', 'at run time'])
@pytest.mark.parametrize('name', LISTS)
def test_loop_that_appends_to_a_list(name, sizes, tmp_path):
    model = model_of(appending(LISTS[name]), [info('x', sizes)], [info('y', None)],
                     [constant('first', np.int64(0)), constant('at', np.int64(1)), constant('yes', np.bool_(True))])
    net = None
    for n in (2,) if sizes[0] == 2 else (2, 5):
        net = check(model, {'x': np.random.default_rng(n).normal(0, 1, (n, 3, 4)).astype(np.float32)}, tmp_path, net)


def test_lists(tmp_path):
    """Split, exchanged, joined; the length is a constant."""
    nodes = [helper.make_node('SplitToSequence', ['x', 'two'], ['parts'], axis=1),
             helper.make_node('SequenceAt', ['parts', 'one'], ['b']), helper.make_node('SequenceErase', ['parts', 'one'], ['less']),
             helper.make_node('SequenceInsert', ['less', 'b', 'zero'], ['turned']),
             helper.make_node('SequenceLength', ['turned'], ['length']),
             helper.make_node('ConcatFromSequence', ['turned'], ['y'], axis=1)]
    model = model_of(nodes, [info('x', [2, 5])], [info('y', None), info('length', [], TensorProto.INT64)],
                     [constant(n, np.int64(i)) for i, n in enumerate(['zero', 'one', 'two'])])
    check(model, {'x': np.random.rand(2, 5).astype(np.float32)}, tmp_path)


def test_list_of_pieces_of_an_open_axis(tmp_path):
    """The sizes of the pieces say how many there are."""
    nodes = [helper.make_node('SplitToSequence', ['x', 'sizes'], ['parts']), helper.make_node('SequenceAt', ['parts', 'one'], ['y'])]
    model = model_of(nodes, [info('x', ['n', 3])], [info('y', None)], [constant('sizes', np.int64([2, 3])), constant('one', np.int64(1))])
    check(model, {'x': np.random.rand(5, 3).astype(np.float32)}, tmp_path)


@pytest.mark.parametrize('keep', [0, 1])
@pytest.mark.parametrize('axis', [0, 1])
def test_list_as_long_as_an_open_axis(axis, keep, tmp_path):
    """One by one: an item that is chosen when the net runs, how many there are, and all of them joined."""
    nodes = [helper.make_node('SplitToSequence', ['x'], ['parts'], axis=axis, keepdims=keep),
             helper.make_node('SequenceAt', ['parts', 'at'], ['y']), helper.make_node('SequenceLength', ['parts'], ['length']),
             helper.make_node('ConcatFromSequence', ['parts'], ['all'], axis=axis if keep else 0)]
    model = model_of(nodes, [info('x', ['n', 'm']), info('at', [], TensorProto.INT64)],
                     [info('y', [None] * (1 + keep)), info('length', [], TensorProto.INT64), info('all', [None] * (1 + keep))])
    net = None
    for sizes, at in (((2, 3), 0), ((4, 2), -1), ((1, 1), 0)):
        net = check(model, {'x': np.random.rand(*sizes).astype(np.float32), 'at': np.int64(at)}, tmp_path, net)


def test_a_body_for_each_item_of_a_list(tmp_path):
    """Another list goes along with the first, a tensor is the same for all, and the body takes a value from outside."""
    body = helper.make_graph(
        [helper.make_node('Mul', ['a', 'b'], ['product']), helper.make_node('Add', ['product', 'c'], ['sum']),
         helper.make_node('Sub', ['product', 'outer'], ['less'])],
        'body', [info(n, None) for n in 'abc'], [info('sum', None), info('less', None)])
    nodes = [helper.make_node('SplitToSequence', ['x', 'two'], ['parts'], axis=1),
             helper.make_node('SequenceAt', ['parts', 'one'], ['outer']),
             helper.make_node('SequenceConstruct', ['c', 'outer'], ['others']),
             helper.make_node('SequenceMap', ['parts', 'others', 'c'], ['sums', 'rest'], body=body),
             helper.make_node('ConcatFromSequence', ['sums'], ['y'], axis=1), helper.make_node('ConcatFromSequence', ['rest'], ['z'], axis=0)]
    model = model_of(nodes, [info('x', [2, 4]), info('c', [2, 1])], [info('y', None), info('z', None)],
                     [constant('one', np.int64(1)), constant('two', np.int64(2))])
    x, c = np.random.rand(2, 4).astype(np.float32), np.random.rand(2, 1).astype(np.float32)
    onnx.save(model, tmp_path / 'model.onnx')  # the reference evaluator does not take the tensor and the value from outside
    have = run(convert(tmp_path / 'model.onnx', tmp_path), {'x': x, 'c': c}, ['y', 'z'], tmp_path)
    products = [x[:, :2] * c, x[:, 2:] * x[:, 2:]]
    np.testing.assert_allclose(have['y'], np.concatenate([p + c for p in products], 1), rtol=1e-5)
    np.testing.assert_allclose(have['z'], np.concatenate([p - x[:, 2:] for p in products]), rtol=1e-5, atol=1e-6)


def test_a_sequence_as_output_is_refused(tmp_path):
    nodes = [helper.make_node('SequenceConstruct', ['x', 'x'], ['y'])]
    model = model_of(nodes, [info('x', [2, 5])], [helper.make_tensor_sequence_value_info('y', TensorProto.FLOAT, None)])
    onnx.save(model, tmp_path / 'model.onnx')
    with pytest.raises(Failure, match=r'SequenceConstruct, opset \d+\): output y: a sequence'):
        convert(tmp_path / 'model.onnx', tmp_path)


@pytest.mark.parametrize('holder', ['node', 'initializer'])
def test_function_whose_branch_has_a_value_called_like_its_argument(holder, tmp_path):
    """scikit-learn's KNNImputer: the argument is called `own` only where the function is called."""
    own = info('own', None)
    two = constant('own', np.float32([2])) if holder == 'initializer' else None
    inner = [helper.make_node('Add', ['x', 'own'], ['sum'])]
    if not two:
        inner.insert(0, helper.make_node('Mul', ['x', 'x'], ['own']))
    then = helper.make_graph(inner, 'then', [], [info('sum', None)], [two] if two else [])
    other = helper.make_graph([helper.make_node('Neg', ['x'], ['own'])], 'other', [], [own])
    body = [helper.make_node('If', ['chosen'], ['y'], then_branch=then, else_branch=other)]
    function = helper.make_function('f', 'choose', ['x', 'chosen'], ['y'], body, [helper.make_opsetid('', 17)])
    calls = [helper.make_node('Abs', ['x'], ['own']), helper.make_node('choose', ['own', 'chosen'], ['y'], domain='f')]
    graph = helper.make_graph(calls, 'g', [info('x', [2, 3]), info('chosen', [], TensorProto.BOOL)],
                              [info('y', [2, 3])])
    model = helper.make_model(graph, functions=[function], ir_version=8,
                              opset_imports=[helper.make_opsetid('', 17), helper.make_opsetid('f', 1)])
    values = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)
    net = check(model, {'x': values, 'chosen': np.array(True)}, tmp_path)
    check(model, {'x': values, 'chosen': np.array(False)}, tmp_path, net)


def leaky(reference, output):
    node = helper.make_node('LeakyRelu', ['x'], [output])
    node.attribute.append(onnx.AttributeProto(name='alpha', ref_attr_name=reference, type=onnx.AttributeProto.FLOAT))
    return node


@pytest.mark.parametrize('given', [{}, {'a': 0.5}, {'a': 0.5, 'b': 0.125}])
def test_attributes_of_a_function(given, tmp_path):
    """In its branches, too; what the call does not give is the function's default."""
    then, other = (helper.make_graph([leaky(name, name)], name, [], [info(name, None)]) for name in 'ab')
    body = [helper.make_node('If', ['chosen'], ['part'], then_branch=then, else_branch=other), leaky('a', 'first'),
            helper.make_node('Sub', ['part', 'first'], ['y'])]
    defaults = [helper.make_attribute(name, value) for name, value in (('a', 0.25), ('b', 0.75))]
    function = helper.make_function('f', 'choose', ['x', 'chosen'], ['y'], body, [helper.make_opsetid('', 17)],
                                    attribute_protos=defaults)
    call = helper.make_node('choose', ['x', 'chosen'], ['y'], domain='f', **given)
    graph = helper.make_graph([call], 'g', [info('x', [3]), info('chosen', [], TensorProto.BOOL)], [info('y', [3])])
    onnx.save(helper.make_model(graph, functions=[function], ir_version=8,
                                opset_imports=[helper.make_opsetid('', 17), helper.make_opsetid('f', 1)]), tmp_path / 'm.onnx')
    net = convert(tmp_path / 'm.onnx', tmp_path)
    a, b = given.get('a', 0.25), given.get('b', 0.75)
    for chosen, want in ((True, [0, 0, 0]), (False, [-2 * (b - a), -(b - a), 0])):
        have = run(net, {'x': np.float32([-2, -1, 3]), 'chosen': np.array(chosen)}, ['y'], tmp_path)['y']
        np.testing.assert_array_equal(have, np.float32(want))


@pytest.mark.skipif('overload' not in onnx.NodeProto.DESCRIPTOR.fields_by_name, reason='an older onnx')
def test_overloads_of_a_function(tmp_path):
    nodes, functions = [], []
    for name, op in (('one', 'Neg'), ('two', 'Abs')):
        function = helper.make_function('f', 'g', ['x'], ['y'], [helper.make_node(op, ['x'], ['y'])], [helper.make_opsetid('', 17)])
        node = helper.make_node('g', ['x'], [name], domain='f')
        function.overload = node.overload = name
        functions.append(function)
        nodes.append(node)
    nodes.append(helper.make_node('Sub', ['one', 'two'], ['y']))
    graph = helper.make_graph(nodes, 'g', [info('x', [3])], [info('y', [3])])
    onnx.save(helper.make_model(graph, functions=functions, ir_version=10,
                                opset_imports=[helper.make_opsetid('', 17), helper.make_opsetid('f', 1)]), tmp_path / 'm.onnx')
    have = run(convert(tmp_path / 'm.onnx', tmp_path), {'x': np.float32([-2, -1, 3])}, ['y'], tmp_path)['y']
    np.testing.assert_array_equal(have, np.float32([0, 0, -6]))
