"""Small files that ask for very much: an answer within seconds, which names the limit and how to lift it."""
import os
import resource
import subprocess

import numpy as np
import pytest

onnx = pytest.importorskip('onnx')
from onnx import TensorProto, helper, numpy_helper, parser  # noqa: E402

from onnx_run import BIN, convert, run  # noqa: E402

MEMORY = 2 << 30
# Of processor time, a tenth of which is enough on most machines; and of waiting, which a machine with other work has too.
SECONDS, PATIENCE = 20, 600


def info(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def attempt(model, folder, *args, memory=MEMORY):
    """The finished onnx2engine, in bounded memory and processor time."""
    path = folder / 'm.onnx'
    path.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    return subprocess.run([BIN / 'onnx2engine', path, folder / 'm.param', folder / 'm.bin', *args], text=True,
                          capture_output=True, timeout=PATIENCE, preexec_fn=limit, stdin=subprocess.DEVNULL)


def functions_model(levels, calls, leaf):
    """Level 0 is `leaf`; each other one calls the level below it several times."""
    functions = [helper.make_function('f', 'L0', ['x'], ['y'], leaf, [helper.make_opsetid('', 17)])]
    for level in range(1, levels):
        names = ['x'] + [f't{i}' for i in range(calls - 1)] + ['y']
        nodes = [helper.make_node(f'L{level - 1}', [a], [b], domain='f') for a, b in zip(names, names[1:])]
        functions.append(helper.make_function('f', f'L{level}', ['x'], ['y'], nodes,
                                              [helper.make_opsetid('', 17), helper.make_opsetid('f', 1)]))
    graph = helper.make_graph([helper.make_node(f'L{levels - 1}', ['x'], ['y'], domain='f')], 'g', [info('x', [4])],
                              [info('y', [4])])
    return helper.make_model(graph, functions=functions, ir_version=8,
                             opset_imports=[helper.make_opsetid('', 17), helper.make_opsetid('f', 1)])


@pytest.mark.parametrize('node, constants', [
    ('y = Slice(x, c, n, zero)', {'c': []}), ('y = Slice(x, zero, n, zero, c)', {'c': []}), ('y = Slice(x, zero, n, c)', {'c': [5000000]}),
    ('s = Squeeze(n) y = Range(zero, s, c)', {'c': []})])
def test_lists_of_another_length(node, constants, tmp_path):
    """Refused, or left to the run."""
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g (float[n] x) => (float[m] y) {{ n = Shape(x) {node} }}')
    for name, values in {'zero': [0], **constants}.items():
        model.graph.initializer.append(numpy_helper.from_array(np.int64(values), name))
    assert attempt(model, tmp_path).returncode in (0, 1)


@pytest.mark.parametrize('levels, calls, leaf', [
    (23, 2, [helper.make_node('Relu', ['x'], ['y'])]),
    (22, 10, []),  # nothing but calls
])
def test_functions_that_call_each_other(levels, calls, leaf, tmp_path):
    done = attempt(functions_model(levels, calls, leaf), tmp_path)
    assert done.returncode == 1
    assert 'functions, loops and branches make more than' in done.stderr and '--no-limits' in done.stderr


def test_functions_within_the_limits(tmp_path):
    """2^11 nodes are no bomb."""
    done = attempt(functions_model(12, 2, [helper.make_node('Relu', ['x'], ['y'])]), tmp_path)
    assert done.returncode == 0, done.stderr


def test_no_limits_lifts_them(tmp_path):
    model = functions_model(6, 10, [])  # 100,000 calls and no node
    model.graph.node.append(helper.make_node('Relu', ['x'], ['z']))
    model.graph.output[0].name = 'z'
    assert attempt(model, tmp_path, '--no-limits').returncode == 0
    model = functions_model(7, 10, [])
    model.graph.node.append(helper.make_node('Relu', ['x'], ['z']))
    model.graph.output[0].name = 'z'
    assert attempt(model, tmp_path).returncode == 1
    assert attempt(model, tmp_path, '--no-limits').returncode == 0


def loop_model(trips, nodes=1):
    """y = x + trips * nodes."""
    names = ['s'] + [f't{i}' for i in range(nodes - 1)] + ['next']
    body = helper.make_graph(
        [helper.make_node('Identity', ['go'], ['on'])] +
        [helper.make_node('Add', [a, 'one'], [b]) for a, b in zip(names, names[1:])], 'body',
        [info('i', [], TensorProto.INT64), info('go', [], TensorProto.BOOL), info('s', [4])],
        [info('on', [], TensorProto.BOOL), info('next', [4])])
    graph = helper.make_graph([helper.make_node('Loop', ['n', '', 'x'], ['y'], body=body)], 'g', [info('x', [4])],
                              [info('y', [4])], [numpy_helper.from_array(np.int64(trips), 'n'),
                                                 numpy_helper.from_array(np.float32(1), 'one')])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)


@pytest.mark.parametrize('trips', [20000, 1 << 62])
def test_long_loops(trips, tmp_path):
    """Unrolled within bounds, or run by the net; what is too long to be unrolled is not unrolled halfway."""
    done = attempt(loop_model(trips), tmp_path, memory=64 << 20)
    assert done.returncode == 0, done.stderr


def test_a_long_loop_counts_right(tmp_path):
    onnx.save(loop_model(40000, 2), tmp_path / 'm.onnx')
    net = convert(tmp_path / 'm.onnx', tmp_path)
    have = run(net, {'x': np.float32([1, 2, 3, 4])}, ['y'], tmp_path)['y']
    np.testing.assert_array_equal(have, np.float32([1, 2, 3, 4]) + 80000)


def test_loops_within_loops(tmp_path):
    inner = loop_model(30000).graph.node[0]
    inner.input[2], inner.output[0] = 'o', 'p'
    body = helper.make_graph([helper.make_node('Identity', ['g'], ['h']), inner], 'outer',
                             [info('j', [], TensorProto.INT64), info('g', [], TensorProto.BOOL), info('o', [4])],
                             [info('h', [], TensorProto.BOOL), info('p', [4])])
    model = loop_model(30000)
    model.graph.node[0].CopyFrom(helper.make_node('Loop', ['n', '', 'x'], ['y'], body=body))
    done = attempt(model, tmp_path)
    assert done.returncode == 0 or '--no-limits' in done.stderr


def test_nested_concats_of_a_constant(tmp_path):
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[4] x) => (float[N] y) <float[8] c0 = {1,2,3,4,5,6,7,8}> {'
    for i in range(10):
        text += f'c{i + 1} = Concat <axis = 0> ({", ".join([f"c{i}"] * 8)})\n'
    done = attempt(parser.parse_model(text + 'y = Concat <axis = 0> (x, c10) }'), tmp_path)
    assert done.returncode in (0, 1)  # layers do what no constant may


def test_constants_without_end(tmp_path):
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[4] x) => (float[N] y) <int64[1] n = {500000000}> {'
    text += 'c = ConstantOfShape (n)\n d = Cast <to = 7> (c)\n e = Cast <to = 1> (d)\n y = Concat <axis = 0> (x, e) }'
    done = attempt(parser.parse_model(text), tmp_path)
    assert done.returncode in (0, 1)
    assert done.returncode == 0 or 'bytes' in done.stderr


@pytest.mark.parametrize('reverse', [False, True])
def test_long_chains_take_linear_time(reverse, tmp_path):
    """100,000 nodes, in their order and from the last to the first."""
    count = 100000
    names = ['x'] + [f't{i}' for i in range(count - 1)] + ['y']
    ops = ['Relu', 'Neg', 'Abs', 'Sigmoid']
    nodes = [helper.make_node(ops[i % 4], [names[i]], [names[i + 1]]) for i in range(count)]
    graph = helper.make_graph(nodes[::-1] if reverse else nodes, 'g', [info('x', [4])], [info('y', [4])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)
    done = attempt(model, tmp_path)
    assert done.returncode == 0, done.stderr


def test_external_data_that_is_a_pipe(tmp_path):
    os.mkfifo(tmp_path / 'weights')
    tensor = TensorProto(name='w', data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    for key, value in (('location', 'weights'), ('offset', '0'), ('length', '16')):
        tensor.external_data.add(key=key, value=value)
    graph = helper.make_graph([helper.make_node('Add', ['x', 'w'], ['y'])], 'g', [info('x', [4])], [info('y', [4])],
                              [tensor])
    done = attempt(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8), tmp_path)
    assert done.returncode == 1 and 'pipe' in done.stderr


@pytest.mark.parametrize('shapes, message', [
    ({'q': [1, 3, 1, 4], 'k': [], 'v': [3], 'mask': [0]}, 'input 1 of rank 0'),
    ({'q': [1, 3, 4], 'k': [1, 3, 4], 'v': [1, 3, 1, 4], 'mask': [3]}, 'input 2 of rank 4'),
    ({'q': [4], 'k': [4], 'v': [4], 'mask': [1]}, 'input 0 of rank 1'),
])
def test_attention_of_other_ranks(shapes, message, tmp_path):
    """A mask reads the sizes of the keys."""
    graph = helper.make_graph([helper.make_node('Attention', list(shapes), ['y'], q_num_heads=1, kv_num_heads=1)], 'g',
                              [info(n, s) for n, s in shapes.items()], [info('y', None)])
    done = attempt(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 24)], ir_version=10), tmp_path)
    assert done.returncode == 1 and message in done.stderr
