"""Programs take a converted model's inputs in one notation: arrays, sizes as ONNX has them, ranges; blobs are called after
what they hold."""
import json
import subprocess

import numpy as np
import pytest

onnx = pytest.importorskip('onnx')
ort = pytest.importorskip('onnxruntime')
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from onnx_run import BIN, WITH_PYTHON, Failure, convert, run, run_program  # noqa: E402

ort.set_default_logger_severity(4)


@pytest.fixture
def embedding(tmp_path):
    """ids [batch, length] int64, mask [batch, length] bool, x [batch, length, 8] -> y."""
    rng = np.random.default_rng(1)
    nodes = [helper.make_node('Gather', ['table', 'ids'], ['g']), helper.make_node('Add', ['g', 'x'], ['a']),
             helper.make_node('Unsqueeze', ['mask', 'last'], ['m']), helper.make_node('Where', ['m', 'a', 'zero'], ['y'])]
    graph = helper.make_graph(
        nodes, 'g', [helper.make_tensor_value_info('ids', TensorProto.INT64, ['batch', 'length']),
                     helper.make_tensor_value_info('mask', TensorProto.BOOL, ['batch', 'length']),
                     helper.make_tensor_value_info('x', TensorProto.FLOAT, ['batch', 'length', 8])],
        [helper.make_tensor_value_info('y', TensorProto.FLOAT, ['batch', 'length', 8])],
        [numpy_helper.from_array(rng.normal(0, 1, (5, 8)).astype(np.float32), 'table'),
         numpy_helper.from_array(np.array([2]), 'last'), numpy_helper.from_array(np.zeros(1, np.float32), 'zero')])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8), tmp_path / 'm.onnx')
    return convert(tmp_path / 'm.onnx', tmp_path), tmp_path


@pytest.mark.parametrize('given', ['a', 'b'])
def test_one_of_several_outputs_as_an_input(given, tmp_path):
    """The node still makes the other."""
    nodes = [helper.make_node('Split', ['x'], ['a', 'b'], axis=1), helper.make_node('Sub', ['a', 'b'], ['y'])]
    graph = helper.make_graph(nodes, 'g', [helper.make_tensor_value_info('x', TensorProto.FLOAT, [2, 6])],
                              [helper.make_tensor_value_info('y', TensorProto.FLOAT, [2, 3])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8), tmp_path / 'm.onnx')
    net = convert(tmp_path / 'm.onnx', tmp_path, '--input', 'x', '--input', given, '--shape', f'{given}=2,3')
    x, other = (np.random.default_rng(3).normal(0, 1, (2, n)).astype(np.float32) for n in (6, 3))
    have = run(net, {'x': x, given: other}, ['y'], tmp_path)['y']
    np.testing.assert_array_equal(have, other - x[:, 3:] if given == 'a' else x[:, :3] - other)


SIZES = ['--shape', 'ids=2,3', '--shape', 'mask=2,3', '--shape', 'x=2,3,8']


def test_benchmark_times_integer_inputs(embedding):
    net, folder = embedding
    report = folder / 'r.json'
    run_program([BIN / 'benchmark', '1', '1', f'param={net[0]}', f'bin={net[1]}', *SIZES, '--json', report])
    assert json.loads(report.read_text())['rows'][0]['inputs'] == ['(2,3)', '(2,3)', '(2,3,8)']
    # Indexes beyond the table are the model's own error: the range was used.
    with pytest.raises(Failure):
        run_program([BIN / 'benchmark', '1', '1', f'param={net[0]}', *SIZES, '--range', '50', '60'])
    np.save(folder / 'ids.npy', np.full((2, 3), 4))
    run_program([BIN / 'benchmark', '1', '1', f'param={net[0]}', '-i', f'ids={folder}/ids.npy', *SIZES[2:]])
    with pytest.raises(Failure, match='size of its input ids'):
        run_program([BIN / 'benchmark', '1', '1', f'param={net[0]}', *SIZES[2:]])
    with pytest.raises(Failure, match='3 axes, expected 2|ids=1,2,3'):
        run_program([BIN / 'benchmark', '1', '1', f'param={net[0]}', '--shape', 'ids=1,2,3,4,5,6', *SIZES[2:]])


def test_validate_and_info_take_the_arrays_that_run_takes(embedding):
    net, folder = embedding
    rng = np.random.default_rng(2)
    arrays = {'ids': rng.integers(0, 5, (2, 3)), 'mask': rng.integers(0, 2, (2, 3)).astype(bool),
              'x': rng.normal(0, 1, (2, 3, 8)).astype(np.float32)}
    given = []
    for name, array in arrays.items():
        np.save(folder / f'{name}.npy', array)
        given += ['-i', f'{name}={folder}/{name}.npy']
    assert 'PASS y' in run_program([BIN / 'enginevalidate', *net, *given, '--against', 'reference'])
    assert 'PASS y' in run_program([BIN / 'enginevalidate', *net, *SIZES, '--against', 'reference'])
    python = __import__('sys').executable
    for inputs in (given, SIZES):
        assert 'PASS y' in run_program([BIN / 'enginevalidate', *net, *inputs, '--onnx', folder / 'm.onnx', '--python', python])
    for inputs in (given, SIZES):
        assert '(2,3,8)' in run_program([BIN / 'engineinfo', *net, *inputs, '--show-io'])


def test_check_finds_open_sizes(tmp_path):
    rng = np.random.default_rng(3)
    nodes = [helper.make_node('Conv', ['x', 'w'], ['c'], kernel_shape=[7, 7], strides=[4, 4]), helper.make_node('Relu', ['c'], ['y'])]
    graph = helper.make_graph(
        nodes, 'g', [helper.make_tensor_value_info('x', TensorProto.FLOAT, ['n', 3, 'h', 'w'])],
        [helper.make_tensor_value_info('y', TensorProto.FLOAT, None)],
        [numpy_helper.from_array(rng.normal(0, 1, (4, 3, 7, 7)).astype(np.float32), 'w')])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8), tmp_path / 'm.onnx')
    done = subprocess.run([BIN / 'onnx2engine', tmp_path / 'm.onnx', tmp_path / 'm.param', tmp_path / 'm.bin', '--check'],
                          capture_output=True, text=True, env=WITH_PYTHON)
    assert done.returncode == 0, done.stderr
    assert 'cosine 1.0000000' in done.stdout


def test_blobs_of_quantised_values_hold_them(tmp_path):
    rng = np.random.default_rng(4)
    weights = {'s': np.float32(.05), 'z': np.array(140, np.uint8), 'w': rng.integers(-100, 100, (16, 8)).astype(np.int8),
               'ws': np.float32(.01), 'wz': np.array(0, np.int8), 'ys': np.float32(.1), 'yz': np.array(120, np.uint8)}
    nodes = [helper.make_node('QuantizeLinear', ['x', 's', 'z'], ['x_quantized']),
             helper.make_node('DequantizeLinear', ['x_quantized', 's', 'z'], ['xd']),
             helper.make_node('DequantizeLinear', ['w', 'ws', 'wz'], ['wd']), helper.make_node('MatMul', ['xd', 'wd'], ['f']),
             helper.make_node('QuantizeLinear', ['f', 'ys', 'yz'], ['f_quantized']),
             helper.make_node('DequantizeLinear', ['f_quantized', 'ys', 'yz'], ['y'])]
    x = rng.normal(0, 2, (5, 16)).astype(np.float32)
    graph = helper.make_graph(nodes, 'g', [helper.make_tensor_value_info('x', TensorProto.FLOAT, x.shape)],
                              [helper.make_tensor_value_info('y', TensorProto.FLOAT, [5, 8])],
                              [numpy_helper.from_array(a, n) for n, a in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)
    onnx.save(model, tmp_path / 'm.onnx')
    net = convert(tmp_path / 'm.onnx', tmp_path)
    names = [line.split()[4:] for line in net[0].read_text().splitlines()[2:]]
    blobs = {word for words in names for word in words}
    assert not {'x_quantized', 'f_quantized'} & blobs  # held less by 128, they are called otherwise
    np.save(tmp_path / 'x.npy', x)
    stdout = run_program([BIN / 'enginevalidate', *net, '-i', f'x={tmp_path}/x.npy', '--onnx', tmp_path / 'm.onnx', '--layers',
                          '--log', tmp_path / 'log.csv', '--python', __import__('sys').executable])
    assert 'FAIL' not in stdout


def test_layers_names_the_first_without_a_finite_value(tmp_path):
    (tmp_path / 'm.param').write_text('7767517\n4 4\nInput in 0 1 in 0=4\nReLU r 1 1 in a\nUnaryOp log 1 1 a b 0=8\nExp e 1 1 b c 1=-1.0\n')
    (tmp_path / 'm.bin').write_bytes(b'')
    np.save(tmp_path / 'in.npy', -np.ones(4, np.float32))  # the log of 0
    with pytest.raises(Failure):
        run_program([BIN / 'enginevalidate', tmp_path / 'm.param', tmp_path / 'm.bin', '-i', f'in={tmp_path}/in.npy', '--against',
                     'reference', '--layers', '--log', tmp_path / 'log.csv'])
    done = subprocess.run([BIN / 'enginevalidate', tmp_path / 'm.param', tmp_path / 'm.bin', '-i', f'in={tmp_path}/in.npy',
                           '--against', 'reference', '--layers', '--log', tmp_path / 'log.csv'], capture_output=True, text=True)
    assert done.returncode == 3 and "without a finite value: [UnaryOp log], blob 'b'" in done.stdout, done.stdout


def test_random_int8_weights_give_finite_answers(tmp_path):
    (tmp_path / 'm.param').write_text(
        '7767517\n3 3\nInput in 0 1 in 0=8 1=8 2=8\nConvolution c 1 1 in a 0=8 1=3 4=1 5=1 6=576 8=2\n'
        'InnerProduct f 1 1 a y 0=10 1=1 2=5120 8=2\n')
    run_program([BIN / 'benchmark', '1', '1', f'param={tmp_path}/m.param', '--save-weights', tmp_path])
    x = np.random.default_rng(5).uniform(-1, 1, (8, 8, 8)).astype(np.float32)
    y = run((tmp_path / 'm.param', tmp_path / 'm.bin'), {'in': x}, ['y'], tmp_path)['y']
    assert np.isfinite(y).all() and np.ptp(y) > 0


def test_saved_weights_go_with_a_param_that_asks_for_others(embedding):
    net, folder = embedding
    assert '-23329=' in net[0].read_text()
    out = folder / 'random'
    out.mkdir()
    net[1].unlink()  # weights beside the param would be taken
    run_program([BIN / 'benchmark', '1', '1', f'param={net[0]}', *SIZES, '--save-weights', out])
    saved = out / 'm.param', out / 'm.bin'
    assert saved[0].exists() and '-23329=' in saved[0].read_text()
    run_program([BIN / 'benchmark', '1', '1', f'param={saved[0]}', f'bin={saved[1]}', *SIZES])


def test_a_first_axis_that_is_the_batch_keeps_its_size(tmp_path):
    """Time-major sequences, as PyTorch exports them: programs that make up the input make all steps of it."""
    rng = np.random.default_rng(4)
    nodes = [helper.make_node('LSTM', ['x', 'w', 'r'], ['h'], hidden_size=8), helper.make_node('Squeeze', ['h', 'one'], ['y'])]
    graph = helper.make_graph(
        nodes, 'g', [helper.make_tensor_value_info('x', TensorProto.FLOAT, [20, 1, 6])],
        [helper.make_tensor_value_info('y', TensorProto.FLOAT, [20, 1, 8])],
        [numpy_helper.from_array(rng.normal(0, .3, shape).astype(np.float32), name)
         for name, shape in (('w', (1, 32, 6)), ('r', (1, 32, 8)))] + [numpy_helper.from_array(np.array([1]), 'one')])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8), tmp_path / 'm.onnx')
    net = convert(tmp_path / 'm.onnx', tmp_path)
    assert 'x (20,1,6)' in run_program([BIN / 'engineinfo', *net, '--show-io'])
    python = __import__('sys').executable
    assert 'PASS y' in run_program([BIN / 'enginevalidate', *net, '--onnx', tmp_path / 'm.onnx', '--python', python])
    report = tmp_path / 'r.json'
    run_program([BIN / 'benchmark', '1', '1', f'param={net[0]}', f'bin={net[1]}', '--json', report])
    assert json.loads(report.read_text())['rows'][0]['inputs'] == ['(20,1,6)']
