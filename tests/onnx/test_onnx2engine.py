"""The program's options, its errors, and what it leaves behind."""
import hashlib
import os
import pathlib
import pty
import resource
import signal
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip('onnx')
import onnx  # noqa: E402
from onnx import helper, numpy_helper, parser  # noqa: E402

from onnx_run import BIN, WITH_PYTHON, Failure, convert, run, run_program  # noqa: E402

TWO = '''<ir_version: 8, opset_import: ["" : 17]> g (float[N,4,5,6] x, int64[2] i) => (float y, float z)
<float two = {2.0}> { a = Mul(x, two) s = Sigmoid(a) y = Mul(a, s) z = Gather<axis = 1>(y, i) }'''

ONE = '<ir_version: 8, opset_import: ["" : 17]> g (float[1,4,5,6] x) => (float y) { y = Relu(x) }'


def model(folder, text=TWO):
    path = folder / 'model.onnx'
    onnx.save(parser.parse_model(text), path)
    return path


def layers(net):
    return [line.split() for line in open(net[0]).read().splitlines()[2:]]


def big_model(path, megabytes, external=False):
    """A chain of products with matrices of 16 MiB, as a large language model has them."""
    rng = np.random.default_rng(1)
    nodes, weights, at = [], [], 'x'
    for i in range(megabytes // 16):
        block = rng.standard_normal(1 << 16).astype(np.float32) / 64
        weights.append(numpy_helper.from_array(np.tile(block, 64).reshape(2048, 2048), f'w{i}'))
        nodes += [helper.make_node('MatMul', [at, f'w{i}'], [f'p{i}']), helper.make_node('Relu', [f'p{i}'], [f'r{i}'])]
        at = f'r{i}'
    float_type = onnx.TensorProto.FLOAT
    graph = helper.make_graph(nodes, 'g', [helper.make_tensor_value_info('x', float_type, [1, 2048])],
                              [helper.make_tensor_value_info(at, float_type, [1, 2048])], weights)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)
    onnx.save(made, path, save_as_external_data=external, location='weights.data' if external else None)
    return at


def peak_and_time(arguments):
    """Peak memory in bytes and seconds of computing, which do not depend on what else the machine does. A small process
    starts the program: a child's peak counts what it was forked from."""
    starter = ('import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); '
               'used = resource.getrusage(resource.RUSAGE_CHILDREN); '
               'print(used.ru_maxrss, used.ru_utime + used.ru_stime)')
    peak, seconds = run_program([sys.executable, '-c', starter, *arguments]).split()[-2:]
    return int(peak) * 1024, float(seconds)


@pytest.mark.parametrize('external', [False, True])
def test_big_model(tmp_path, external):
    """100 MB in less than 10 s, and less than three times its size in memory."""
    path = tmp_path / 'big.onnx'
    out = big_model(path, 112, external)
    size = 112 << 20
    peak, seconds = peak_and_time([BIN / 'onnx2engine', path, tmp_path / 'm.param', tmp_path / 'm.bin'])
    assert peak < 3 * size and seconds < 10, (peak / size, seconds)
    x = np.full((1, 2048), 0.01, np.float32)
    got = run((tmp_path / 'm.param', tmp_path / 'm.bin'), {'x': x}, [out], tmp_path)[out]
    assert got.shape == (1, 2048) and np.isfinite(got).all()


def test_external_data_elsewhere(tmp_path):
    inside = tmp_path / 'inside'
    inside.mkdir()
    path = inside / 'm.onnx'
    big_model(path, 16, True)
    (tmp_path / 'weights.data').write_bytes((inside / 'weights.data').read_bytes())
    made = onnx.load(path, load_external_data=False)
    for location in ('../weights.data', str(tmp_path / 'weights.data'), 'a/../../weights.data', '..', ''):
        for entry in made.graph.initializer[0].external_data:
            if entry.key == 'location':
                entry.value = location
        path.write_bytes(made.SerializeToString())
        with pytest.raises(Failure, match='expected a file beside the model'):
            convert(path, tmp_path)
    os.remove(inside / 'weights.data')
    os.symlink(tmp_path / 'weights.data', inside / 'weights.data')
    for entry in made.graph.initializer[0].external_data:
        if entry.key == 'location':
            entry.value = 'weights.data'
    path.write_bytes(made.SerializeToString())
    with pytest.raises(Failure, match='expected a file beside the model'):
        convert(path, tmp_path)


@pytest.mark.parametrize('items', [0, 2])
def test_output_that_cannot_hold_a_batch(items, tmp_path):
    """Else the file has the sizes that the model says, and not as many values."""
    text = 'g (float[1,3,4] x) => (float[3,1,4] y) { y = Transpose <perm = [1, 0, 2]> (x) }'
    onnx.save(parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}'), tmp_path / 'm.onnx')
    net = convert(tmp_path / 'm.onnx', tmp_path)
    with pytest.raises(Failure, match=f'a batch of {items}'):
        run(net, {'x': np.ones((items, 3, 4), np.float32)}, ['y'], tmp_path)


def test_half_storage(tmp_path):
    path = tmp_path / 'm.onnx'
    out = big_model(path, 16)
    x = np.random.default_rng(3).standard_normal((1, 2048)).astype(np.float32)
    want = run(convert(path, tmp_path), {'x': x}, [out], tmp_path)[out]
    whole = (tmp_path / 'm.bin').stat().st_size
    for option, tolerance in (('--fp16', 1e-3), ('--bf16', 1e-2)):
        net = convert(path, tmp_path, option)
        assert (tmp_path / 'm.bin').stat().st_size <= whole // 2 + 64
        have = run(net, {'x': x}, [out], tmp_path)[out]
        assert 0 < np.abs(have - want).max() <= tolerance * np.ptp(want)
    with pytest.raises(Failure, match='exit code 2'):
        convert(path, tmp_path, '--fp16', '--bf16')


@pytest.mark.parametrize('number', ['1.5', '1e30'])
def test_constant_that_is_no_integer(number, tmp_path):
    with pytest.raises(Failure, match='expected whole numbers'):
        convert(model(tmp_path), tmp_path, '--constant', f'i={number}')


@pytest.mark.parametrize('output', ["that's", 'a b', 'a"b', 'a\x7fb'])
def test_an_output_is_the_whole_array_whatever_its_name_is(output, tmp_path):
    """Not the blob behind it, which has fewer axes."""
    nodes = [helper.make_node('Transpose', ["it's"], ['t'], perm=[2, 0, 1]), helper.make_node('Reshape', ['t', 'shape'], ['r']),
             helper.make_node('Cast', ['r'], [output], to=onnx.TensorProto.INT64)]
    graph = helper.make_graph(nodes, 'g', [helper.make_tensor_value_info("it's", 1, [2, 3, 4])], [helper.make_tensor_value_info(output, 7, [1, 2, 3, 4, 1])],
                              [numpy_helper.from_array(np.int64([1, 2, 3, 4, 1]), 'shape')])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8), tmp_path / 'm.onnx')
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    have = run(convert(tmp_path / 'm.onnx', tmp_path), {"it's": x}, [output], tmp_path)[output]
    assert have.dtype == np.int64
    np.testing.assert_array_equal(have, x.transpose(2, 0, 1).reshape(1, 2, 3, 4, 1))


def test_names(tmp_path):
    made = parser.parse_model(TWO)
    for i, node in enumerate(made.graph.node):
        node.name = f'block/{node.op_type} {i}'
    onnx.save(made, tmp_path / 'm.onnx')
    kept = {words[1] for words in layers(convert(tmp_path / 'm.onnx', tmp_path, '--keep-names'))}
    assert {'x', 'block/Mul_0', 'block/Mul_2', 'block/Gather_3'} <= kept
    other = {words[1] for words in layers(convert(tmp_path / 'm.onnx', tmp_path))}
    assert not any(name.startswith('block') for name in other)


def test_cut(tmp_path):
    """What lies before an input is not looked at, not even by patterns."""
    path = model(tmp_path)
    net = convert(path, tmp_path, '--input', 'x', '--input', 's', '--output', 'y', '--shape', 's=2,4,5,6',
                  '--shape', 'x=2,4,5,6')
    x = np.random.default_rng(2).standard_normal((2, 4, 5, 6)).astype(np.float32)
    got = run(net, {'x': x, 's': x + 1}, ['y'], tmp_path)['y']
    np.testing.assert_allclose(got, 2 * x * (x + 1), rtol=1e-5)


def test_sizes_of_the_file_become_open(tmp_path):
    text = 'g (float[1,2,3] x) => (float[p,q] y) { y = Flatten <axis = 2> (x) }'
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}'), tmp_path / 'm.onnx')
    net = convert(tmp_path / 'm.onnx', tmp_path, '--shape', 'x=-1,2,-1')
    for shape in ((1, 2, 3), (3, 2, 5)):
        x = np.ones(shape, np.float32)
        assert run(net, {'x': x}, ['y'], tmp_path)['y'].shape == (2 * shape[0], shape[2])


def test_report(tmp_path):
    convert(model(tmp_path), tmp_path, '--report', tmp_path / 'r.txt')
    lines = (tmp_path / 'r.txt').read_text().splitlines()
    assert '1 fused: Swish' in lines and '3 nodes converted' in lines, lines


def test_sums(tmp_path):
    path = model(tmp_path)
    said = run_program([BIN / 'onnx2engine', path, tmp_path / 'a.param', tmp_path / 'a.bin', '--sha256']).split()
    files = [path, tmp_path / 'a.param', tmp_path / 'a.bin']
    assert said == [w for f in files for w in (hashlib.sha256(f.read_bytes()).hexdigest(), str(f))]


def check(path, folder, *options, env=None):
    return subprocess.run([BIN / 'onnx2engine', path, folder / 'm.param', folder / 'm.bin', '--check', *options],
                          capture_output=True, text=True, env=env)


def test_check(tmp_path):
    pytest.importorskip('onnxruntime')
    done = check(model(tmp_path), tmp_path, '--shape', 'x=2,4,5,6', env=WITH_PYTHON)
    assert done.returncode == 0, done.stderr
    assert [line.split(':')[0] for line in done.stdout.splitlines()] == ['y', 'z']
    assert all(word in done.stdout for word in ('cosine 1.0000000', 'max error', 'SQNR'))
    os.remove(tmp_path / 'model.onnx')
    other = parser.parse_model(TWO.replace('2.0', '3.0'))
    onnx.save(other, tmp_path / 'model.onnx')
    script = (BIN.parent.parent / 'tools' / 'onnx' / 'check_onnx.py')
    if script.exists():  # another model than the converted one
        done = subprocess.run([sys.executable, script, BIN / 'enginerun', tmp_path / 'model.onnx', tmp_path / 'm.param',
                               tmp_path / 'm.bin', 'x=2,4,5,6'], capture_output=True, text=True)
        assert done.returncode == 1 or 'cosine 0.99' in done.stdout, done.stdout


def test_check_without_packages(tmp_path):
    """A python3 without them, and none at all."""
    bare = tmp_path / 'bin'
    bare.mkdir()
    (bare / 'python3').write_text(f'#!/bin/sh\nexec {sys.executable} -S -E "$@"\n')
    (bare / 'python3').chmod(0o755)
    done = check(model(tmp_path), tmp_path, env={'PATH': str(bare)})
    assert done.returncode == 1 and '--check needs the Python packages numpy and onnxruntime' in done.stderr
    os.remove(bare / 'python3')
    done = check(tmp_path / 'model.onnx', tmp_path, env={'PATH': str(bare)})
    assert done.returncode == 1 and '--check needs python3' in done.stderr
    assert (tmp_path / 'm.param').exists()  # the conversion itself is done


def test_all_problems_at_once(tmp_path):
    text = '''<ir_version: 8, opset_import: ["" : 17, "other" : 1]> g (float[2,3] x) => (float[2,3] y)
    { a = other.One(x) b = Relu(x) c = other.Two(b) d = Add(a, c) y = other.Three(d) }'''
    done = subprocess.run([BIN / 'onnx2engine', model(tmp_path, text), tmp_path / 'm.param', tmp_path / 'm.bin'],
                          capture_output=True, text=True)
    lines = done.stderr.splitlines()
    assert done.returncode == 1 and lines[-1] == 'onnx2engine: 3 nodes cannot be converted'
    assert [line.split()[3] for line in lines[:3]] == ['(other::One,', '(other::Two,', '(other::Three,']
    assert sorted(os.listdir(tmp_path)) == ['model.onnx']


def test_size_below_zero(tmp_path):
    """A constant shape with a size below 0 is that node's error."""
    path = model(tmp_path, '<ir_version: 8, opset_import: ["" : 17]> g (float[3,4] x) => (float y) '
                           '<int64[1] n = {-5}> { s = ConstantOfShape(n) y = Reshape(x, s) }')
    with pytest.raises(Failure, match='ConstantOfShape.*a size of -5'):
        convert(path, tmp_path)
    assert sorted(os.listdir(tmp_path)) == ['model.onnx']


@pytest.mark.parametrize('text', ['{ x = Abs(x) y = Relu(x) }', '{ y, y = Split(x) }'])
def test_made_twice(tmp_path, text):
    """An output that is called like another value."""
    path = model(tmp_path, '<ir_version: 8, opset_import: ["" : 17]> g (float[2,3] x) => (float[2,3] y) ' + text)
    with pytest.raises(Failure, match='made twice'):
        convert(path, tmp_path)
    assert sorted(os.listdir(tmp_path)) == ['model.onnx']


def limit_files():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))


@pytest.mark.parametrize('param,weights,report', [('/dev/full', 'm.bin', 'r.txt'), ('m.param', '/dev/full', 'r.txt'),
                                                  ('m.param', 'm.bin', '/dev/full'), ('m.param', 'no/m.bin', 'r.txt'),
                                                  ('m.param', 'm.bin', 'no/r.txt')])
def test_nothing_is_left(tmp_path, param, weights, report):
    path = tmp_path / 'm.onnx'
    big_model(path, 16)
    done = subprocess.run([BIN / 'onnx2engine', path, param, weights, '--report', report], cwd=tmp_path,
                          capture_output=True, text=True)
    assert done.returncode == 1 and 'cannot write' in done.stderr, done
    assert sorted(os.listdir(tmp_path)) == ['m.onnx']


@pytest.mark.parametrize('option', [('--shape', 'z=1,2'), ('--constant', 'z=1')])
def test_option_for_no_input(option, tmp_path):
    with pytest.raises(Failure, match=r'z \(input.*given to no input'):
        convert(model(tmp_path), tmp_path, *option)


def test_full_disk(tmp_path):
    """A file that cannot grow beyond 1 MiB; what was there before stays."""
    path = tmp_path / 'm.onnx'
    big_model(path, 16)
    (tmp_path / 'm.bin').write_text('old')
    done = subprocess.run([BIN / 'onnx2engine', path, 'm.param', 'm.bin'], cwd=tmp_path, capture_output=True, text=True,
                          preexec_fn=limit_files)
    assert done.returncode == 1 and 'cannot write' in done.stderr, done
    assert sorted(os.listdir(tmp_path)) == ['m.bin', 'm.onnx'] and (tmp_path / 'm.bin').read_text() == 'old'


def test_progress(tmp_path):
    """On a terminal only."""
    path = tmp_path / 'm.onnx'
    big_model(path, 32)
    arguments = [BIN / 'onnx2engine', path, tmp_path / 'm.param', tmp_path / 'm.bin']
    done = subprocess.run(arguments, capture_output=True)
    assert done.returncode == 0 and done.stderr == b''
    master, slave = pty.openpty()
    process = subprocess.Popen(arguments, stderr=slave, env={**os.environ, 'TERM': 'xterm'})
    os.close(slave)
    said = b''
    try:
        while chunk := os.read(master, 4096):
            said += chunk
    except OSError:  # the other end is closed
        pass
    os.close(master)
    assert process.wait() == 0 and b'100%' in said and b'[' in said


def test_help_and_version():
    assert '--keep-names' in run_program([BIN / 'onnx2engine', '--help'])
    assert run_program([BIN / 'onnx2engine', '--version']).split()[-1].count('.') == 2


def test_arrays_of_a_converted_net(tmp_path):
    """int64 in, range-checked, the batch axis included; a wrong name, shape or type is told."""
    net = convert(model(tmp_path), tmp_path)
    x = np.random.default_rng(4).standard_normal((3, 4, 5, 6)).astype(np.float32)
    index = np.array([2, 0], np.int64)
    got = run(net, {'x': x, 'i': index}, ['y', 'z'], tmp_path)
    np.testing.assert_allclose(got['y'], 2 * x / (1 + np.exp(-2 * x)), rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(got['z'], got['y'][:, [2, 0]])
    wrong = [({'x': x, 'i': np.array([2, 1 << 40])}, '32 bits'), ({'x': x, 'i': np.array([1, 2, 3])}, r'2'),
             ({'x': x[0], 'i': index}, 'expected'), ({'x': x.astype(np.int64), 'i': index}, '<f4'),
             ({'x': x, 'j': index}, "'j"), ({'x': x, 'i': index.astype(np.float32)}, '<i8')]
    for inputs, message in wrong:
        with pytest.raises(Failure, match=message):
            run(net, inputs, ['z'], tmp_path)


@pytest.mark.parametrize('program', [['onnx2engine'], ['enginequantize', '--kind', 'weights8']])
def test_data_files_are_no_outputs(program, tmp_path):
    """The model's weights would be gone."""
    proto = onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> g (float[2,64] x) => (float[2,64] y) { y = MatMul(x, w) }')
    proto.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((64, 64), np.float32), 'w'))
    onnx.save(proto, tmp_path / 'm.onnx', save_as_external_data=True, location='m.bin', size_threshold=16)
    before = (tmp_path / 'm.bin').read_bytes()
    with pytest.raises(Failure, match='is an input'):
        run_program([BIN / program[0], *program[1:], tmp_path / 'm.onnx', tmp_path / 'm.param', tmp_path / 'm.bin'])
    assert (tmp_path / 'm.bin').read_bytes() == before and not (tmp_path / 'm.param').exists()


def test_programs_take_onnx(tmp_path):
    """enginerun and benchmark read a model without conversion before."""
    path = model(tmp_path)
    x = np.random.default_rng(6).standard_normal((2, 4, 5, 6)).astype(np.float32)
    inputs = {'x': x, 'i': np.array([1, 1])}
    direct = run((path,), inputs, ['z'], tmp_path)['z']
    np.testing.assert_array_equal(direct, run(convert(path, tmp_path), inputs, ['z'], tmp_path)['z'])
    said = run_program([BIN / 'benchmark', '2', '1', f'param={model(tmp_path, ONE)}'])
    assert 'model' in said
    with pytest.raises(Failure, match='no ONNX model, it is a text param'):
        run_program([BIN / 'onnx2engine', pathlib.Path(__file__).parents[2] / 'models/digits/digits.param', tmp_path / 'p', tmp_path / 'b'])
    (tmp_path / 'broken.onnx').write_bytes(b'no model')
    for program in (['enginerun', tmp_path / 'broken.onnx', '--show-io'], ['benchmark', f'param={tmp_path}/broken.onnx']):
        with pytest.raises(Failure, match='no ONNX model'):
            run_program([BIN / program[0], *program[1:]])
