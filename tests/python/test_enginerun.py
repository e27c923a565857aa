"""The command line of enginerun: arrays in, arrays out, and what it says when something is wrong."""
import struct

import numpy as np
import pytest

from conftest import last_line, run_program
from engine import EngineError, run_engine

RELU = '7767517\n2 2\nInput in 0 1 {0}\nReLU relu 1 1 {0} {1}\n'
# Nothing is computed: what goes in must come out.
COPY = '7767517\n2 3\nInput in 0 1 in\nSplit copy 1 2 in a b\n'
BIAS_NET = '7767517\n2 2\nInput in 0 1 in\nInnerProduct fc 1 1 in out 0=2 1=0 2=6\n'


@pytest.fixture
def relu(tmp_path):
    path = tmp_path / 'relu.param'
    path.write_text(RELU.format('in', 'out'))
    return path


@pytest.fixture
def copy(tmp_path):
    path = tmp_path / 'copy.param'
    path.write_text(COPY)
    return path


def refused(param, binary, inputs, outputs, *args):
    with pytest.raises(EngineError) as error:
        run_engine(param, binary, inputs, outputs, *args)
    return str(error.value)


@pytest.mark.parametrize('dtype', [np.float32, np.int32, np.int8, np.uint8])
@pytest.mark.parametrize('shape', [(1,), (7,), (3, 5), (2, 3, 5), (2, 3, 5, 7)])
def test_arrays_come_back_as_they_went(copy, dtype, shape):
    x = np.arange(np.prod(shape), dtype=dtype).reshape(shape)
    out = run_engine(copy, '', {'in': x}, ['a', 'b'])
    for name in 'ab':
        assert out[name].dtype == dtype
        np.testing.assert_array_equal(out[name], x)


@pytest.mark.parametrize('shape', [(2, 7), (4, 3, 5), (3, 2, 3, 5), (2, 2, 3, 5, 7), (1, 3, 5)])
def test_batches(relu, shape):
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    out = run_engine(relu, '', {'in': x}, ['out'], '--batch')['out']
    np.testing.assert_array_equal(out, np.maximum(x, 0).reshape(out.shape))
    assert out.shape == (shape if shape[0] > 1 else shape[1:])


def test_other_dtypes_are_converted(copy):
    x = np.array([1.5, -2, 65504], np.float16)
    out = run_engine(copy, '', {'in': x}, ['a'])['a']
    assert out.dtype == np.float32
    np.testing.assert_array_equal(out, x.astype(np.float32))
    x = np.array([1 / 3, -1e-50, 2.0**70])
    out = run_engine(copy, '', {'in': x}, ['a'])['a']
    assert out.dtype == np.float32
    np.testing.assert_array_equal(out, x.astype(np.float32))
    wide = np.array([2**31 - 1, -2**31, 5], np.int64)
    out = run_engine(copy, '', {'in': wide}, ['a'])['a']
    assert out.dtype == np.int32
    np.testing.assert_array_equal(out, wide)
    assert 'element 1 is 2147483648' in refused(copy, '', {'in': np.array([0, 2**31], np.int64)}, ['a'])


@pytest.mark.parametrize('array, says', [
    (np.zeros(3, '>f4'), "'>f4'"),
    (np.zeros(3, np.complex64), "'<c8'"),
    (np.float32(3), 'shape ()'),
    (np.zeros((1, 2, 1, 2, 1), np.float32), 'expected 1 to 4 axes'),
    (np.zeros((3, 0), np.float32), 'each axis must have'),
    (np.asfortranarray(np.zeros((3, 4), np.float32)), 'Fortran'),
])
def test_arrays_that_are_refused(copy, array, says):
    assert says in refused(copy, '', {'in': array}, ['a'])


def npy(header, data=b'', version=1):
    text = header.encode('latin1')
    length = struct.pack('<H' if version == 1 else '<I', len(text))
    return b'\x93NUMPY' + bytes([version, 0]) + length + text + data


GOOD = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n"


@pytest.mark.parametrize('content, says', [
    (b'', 'not a .npy'),
    (b'hello, this is no array at all', 'not a .npy'),
    (npy(GOOD)[:9], 'ends inside the header'),
    (npy(GOOD)[:30], 'ends inside the header'),
    (npy(GOOD, b'\0' * 8, version=9), 'version 9'),
    (npy(GOOD, b'\0' * 7), 'needs 8 bytes, but only 7'),
    (npy(GOOD.replace('(2,)', '(99999999999999999999,)')), 'not a dict'),
    (npy(GOOD.replace('(2,)', '(2147483647, 2147483647, 2147483647)')), 'bytes, but only 0'),
    (npy(GOOD.replace('(2,)', '(-2,)'), b'\0' * 8), 'not a dict'),
    (npy(GOOD.replace("'shape'", "'form'"), b'\0' * 8), 'not a dict'),
    (npy("{'descr': '<f4'}", b'\0' * 8), 'not a dict'),
    (npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", b'\0' * 8), 'not a dict'),
    (npy("{'descr': '<f4"), 'not a dict'),
    (npy('', b'\0' * 8), 'not a dict'),
    (b'\x93NUMPY\x02\x00' + struct.pack('<I', 0xffffffff), 'the header has 4294967295 bytes'),
])
def test_files_that_are_refused(copy, tmp_path, content, says):
    path = tmp_path / 'bad.npy'
    path.write_bytes(content)
    done = run_program('enginerun', copy, '--input', f'in={path}', '--output', f'a={tmp_path}/a.npy')
    assert done.returncode == 1
    assert says in last_line(done.stderr)


def test_versions_2_and_3_are_read(copy, tmp_path):
    for version in 2, 3:
        (tmp_path / 'in.npy').write_bytes(npy(GOOD, np.float32([1, 2]).tobytes(), version))
        done = run_program('enginerun', copy, '--input', f'in={tmp_path}/in.npy', '--output', f'a={tmp_path}/a.npy')
        assert done.returncode == 0, done.stderr
        np.testing.assert_array_equal(np.load(tmp_path / 'a.npy'), [1, 2])


@pytest.mark.parametrize('name', ['input.1', '758', 'a=b', 'x=y=z', '=', 'a/b:0', 'out.npy'])
def test_names_of_all_kinds(tmp_path, name):
    path = tmp_path / 'm.param'
    path.write_text(RELU.format(name, name + '_out'))
    x = np.float32([-1, 2])
    np.testing.assert_array_equal(run_engine(path, '', {name: x}, [name + '_out'])[name + '_out'], [0, 2])


def test_files_with_equals_signs(relu, tmp_path):
    folder = tmp_path / 'k=v'
    folder.mkdir()
    np.save(folder / 'in=1.npy', np.float32([-1, 2]))
    done = run_program('enginerun', relu, '--input', f'in={folder}/in=1.npy', '--output', f'out={folder}/out=1.npy')
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(folder / 'out=1.npy'), [0, 2])


def test_intermediate_blobs_and_options(relu):
    x = np.random.default_rng(1).standard_normal((16, 5, 3)).astype(np.float32)
    for args in ([], ['--threads', '2'], ['--isa', 'scalar'], ['--no-light-mode'], ['--reference'], ['--no-packing']):
        out = run_engine(relu, '', {'in': x}, ['in', 'out'], *args)
        np.testing.assert_array_equal(out['in'], x)
        np.testing.assert_array_equal(out['out'], np.maximum(x, 0))
    for precision, epsilon in ('fp16', 2**-11), ('bf16', 2**-8):
        out = run_engine(relu, '', {'in': x}, ['out'], '--precision', precision)['out']
        assert out.dtype == np.float32
        np.testing.assert_allclose(out, np.maximum(x, 0), rtol=epsilon, atol=1e-6)


def test_weights_missing(relu, tmp_path):
    x = np.float32([-1, 2, 3])
    empty = tmp_path / 'empty.bin'
    empty.write_bytes(b'')
    for binary in '', tmp_path / 'no.bin', empty:
        np.testing.assert_array_equal(run_engine(relu, binary, {'in': x}, ['out'])['out'], [0, 2, 3])
    needs = tmp_path / 'needs.param'
    needs.write_text(BIAS_NET)
    message = refused(needs, '', {'in': x}, ['out'])
    assert 'a MODEL.bin is needed' in message and '[InnerProduct fc] weight_data' in message
    assert 'no.bin: No such file' in refused(needs, tmp_path / 'no.bin', {'in': x}, ['out'])
    assert 'the source ends' in refused(needs, empty, {'in': x}, ['out'])
    full = tmp_path / 'full.bin'
    full.write_bytes(struct.pack('<7f', 0, 1, 2, 3, 4, 5, 6))
    np.testing.assert_array_equal(run_engine(needs, full, {'in': x}, ['out'])['out'], [12, 24])


def test_binary_params(tmp_path):
    words = [7767517, 2, 2, 16, 0, 1, 0, -233, 26, 1, 1, 0, 1, -233]  # Input is type 16, ReLU 26
    path = tmp_path / 'm.param.bin'
    path.write_bytes(struct.pack(f'<{len(words)}i', *words))
    np.testing.assert_array_equal(run_engine(path, '', {'0': np.float32([-1, 2])}, ['1'])['1'], [0, 2])


def test_repeat_and_show_io(tmp_path):
    path = tmp_path / 'm.param'
    path.write_text(RELU.format('in', 'out').replace('1 in\n', '1 in 0=4 1=3 2=2\n', 1))
    done = run_program('enginerun', path, '--show-io')
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ['input  in (2,3,4) from Input in', 'output out (2,3,4) from ReLU relu']
    np.save(tmp_path / 'in.npy', np.float32([1]))
    done = run_program('enginerun', path, '--input', f'in={tmp_path}/in.npy', '--output', f'out={tmp_path}/out.npy',
                       '--repeat', '5')
    assert done.returncode == 0, done.stderr
    assert '5 runs more: min ' in done.stdout


def test_what_is_wrong_is_the_last_line(relu, tmp_path):
    x = {'in': np.float32([1])}
    assert "did you mean in" in refused(relu, '', {'im': np.float32([1])}, ['out'])
    assert "there is no blob 'ouch'" in refused(relu, '', x, ['ouch'])
    assert "input 'in'" in refused(relu, '', {}, ['out'])
    assert 'no layer with int8 weights' in refused(relu, '', x, ['out'], '--precision', 'int8')
    assert 'not a level' in refused(relu, '', x, ['out'], '--isa', 'z80')
    assert 'expected NAME=FILE' in refused(relu, '', x, ['out'], '--input', 'in')
    assert 'given twice' in refused(relu, '', x, ['out'], '--input', f'in={tmp_path}/x.npy')
    assert 'nothing to do' in refused(relu, '', x, [])
    assert 'cannot open' in refused(tmp_path / 'no.param', '', x, ['out'])
    assert 'cannot be created' in refused(relu, '', x, ['out'], '--output', f'in={tmp_path}/no/folder.npy')
    bad = tmp_path / 'bad.param'
    bad.write_text('7767517\n2 2\nInput in 0 1 in\nFrobnicate f 1 1 in out\n')
    assert 'Frobnicate' in refused(bad, '', x, ['out'])
    for args in (['--frob'], ['--threads', '0'], ['--precision', 'fp8'], ['--repeat', 'x']):
        done = run_program('enginerun', relu, *args)
        assert done.returncode == 2
        assert last_line(done.stderr).startswith('enginerun: ')


def test_empty_results_are_arrays(tmp_path):
    net = tmp_path / 'm.param'
    net.write_text('7767517\n2 2\nInput in 0 1 in 0=1 1=1 2=6\nYolov3DetectionOutput d 1 1 in out 0=1 1=1 2=0.9 '
                   '-23304=2,1.0,1.0 -23305=1,0.0 -23306=1,32.0\n')
    out = run_engine(net, '', {'in': np.full((6, 1, 1), -5, np.float32)}, ['out'])['out']
    assert out.shape == (0, 6) and out.dtype == np.float32


def test_what_fp16_cannot_hold(tmp_path):
    """300 x 3000 is beyond 65504: the first run says so, and --check-finite ends it."""
    path = tmp_path / 'grow.param'
    path.write_text('7767517\n4 4\nInput in 0 1 in\nReLU r 1 1 in r\nPower grow 1 1 r e 0=1 1=3000 2=0\nSigmoid s 1 1 e out\n')
    np.save(tmp_path / 'x.npy', np.float32([1, 300]))
    arguments = ['enginerun', path, '-i', f'in={tmp_path}/x.npy', '-o', f'out={tmp_path}/y.npy', '--no-fusion']
    for extra, said in (['--precision', 'fp16'], 'fp16: [Power grow]'), (['--precision', 'bf16'], ''), ([], ''):
        done = run_program(*arguments, *extra)
        assert done.returncode == 0
        assert (said in done.stderr) if said else done.stderr == ''
    done = run_program(*arguments, '--precision', 'fp16', '--check-finite')
    assert done.returncode == 1 and '[Power grow]' in done.stderr
