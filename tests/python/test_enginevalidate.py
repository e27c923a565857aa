"""enginevalidate: metrics by hand; planted faults are found, each in its layer."""
import csv
import os
import re
import shutil
import struct
import subprocess

import numpy as np
import pytest

from conftest import ROOT, last_line, run_program
from engine import run_engine
from graphs import Graph

DIGITS = ROOT / 'models' / 'digits'
PARAM = ('7767517\n7 7\nInput in 0 1 in 0=8 1=8 2=3\nConvolution c1 1 1 in a 0=16 1=3 4=1 5=1 6=432\nReLU r1 1 1 a b\n'
         'Convolution c2 1 1 b c 0=16 1=3 4=1 5=1 6=2304\nConvolution c3 1 1 c d 0=8 1=1 5=1 6=128\nReLU r2 1 1 d e\n'
         'InnerProduct fc 1 1 e prob 0=10 1=1 2=5120\n')
COUNTS = {'c1': (432, 16), 'c2': (2304, 16), 'c3': (128, 8), 'fc': (5120, 10)}


def weights(scale=1.):
    rng = np.random.default_rng(4)
    return {name: (scale * rng.normal(0, (2 * bias / count) ** .5, count), rng.normal(0, .1, bias))
            for name, (count, bias) in COUNTS.items()}


def write(folder, name, values, param=PARAM):
    (folder / f'{name}.param').write_text(param)
    parts = [part for w, b in values.values() for part in (np.zeros(1), w, b)]
    np.concatenate(parts).astype(np.float32).tofile(folder / f'{name}.bin')
    return folder / f'{name}.param', folder / f'{name}.bin'


@pytest.fixture
def net(tmp_path):
    write(tmp_path, 'm', weights())
    return tmp_path


def validate(folder, *args, name='m', code=0):
    done = run_program('enginevalidate', folder / f'{name}.param', folder / f'{name}.bin', *args)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def layers(folder, *args, name='m', code=0):
    """The first wrong layer and what is said of it (None if all are right), and the log."""
    stdout = validate(folder, '--layers', '--log', folder / 'log.csv', *args, name=name, code=code)
    with open(folder / 'log.csv', newline='') as file:
        rows = list(csv.DictReader(file))
    assert (folder / 'log.csv').read_text().startswith('output_name,similarity,sqnr,pixel_accuracy\n')
    found = re.search(r"^FAIL first wrong layer: \[(\w+) (\w+)\], blob '(.*?)' (.*)$", stdout, re.M)
    assert (found is None) == (code == 0), stdout
    return found.groups() if found else None, {row['output_name']: row for row in rows}


@pytest.mark.parametrize('args', [['--against', 'reference'], ['--against', 'fp32'], ['--against-isa', 'scalar'],
                                  ['--precision', 'fp16', '--against', 'fp32'], ['--precision', 'bf16', '--against', 'fp32'],
                                  ['--reference', '--against', 'fp32', '--no-packing']])
def test_modes_that_agree(net, args):
    assert re.match(r'PASS prob: similarity (1|0\.99\d*), SQNR \S+ dB, pixel accuracy 1, max error', validate(net, *args))
    wrong, rows = layers(net, *args)
    assert wrong is None and list(rows) == ['a', 'b', 'c', 'd', 'e', 'prob']


def test_metrics_by_hand(tmp_path):
    (tmp_path / 'm.param').write_text('7767517\n2 2\nInput in 0 1 in\nNoop n 1 1 in out\n')
    (tmp_path / 'm.bin').write_bytes(b'')
    got = np.array([[[1, 2]], [[3, 4]], [[0, 5]]], np.float32)
    right = np.array([[[1, 2]], [[3, 4]], [[4, 5]]], np.float32)
    np.save(tmp_path / 'in.npy', got)
    np.save(tmp_path / 'right.npy', right)
    args = ['-i', f'in={tmp_path}/in.npy', '--expect', f'out={tmp_path}/right.npy']
    similarity = (got * right).sum() / np.sqrt((got ** 2).sum() * (right ** 2).sum())
    found = re.search(r'FAIL out: similarity (\S+), SQNR (\S+) dB, pixel accuracy (\S+), max error (\S+) \((\S+) of', validate(
        tmp_path, *args, code=3))
    # The channel with the largest value differs at one of two pixels.
    np.testing.assert_allclose([float(v) for v in found.groups()], [similarity, 10 * np.log10((right ** 2).sum() / 16), .5, 4, 1], rtol=1e-5)
    validate(tmp_path, *args, '--threshold', '0.8')
    validate(tmp_path, *args, '--threshold', str(similarity + 1e-6), code=3)
    # Strictly above: the same arrays have a similarity of 1.
    np.save(tmp_path / 'right.npy', got[None])
    validate(tmp_path, *args)
    validate(tmp_path, *args, '--threshold', '1', code=3)
    np.save(tmp_path / 'right.npy', got[:2])
    assert 'shape (3,1,2), expected (2,1,2)' in validate(tmp_path, *args, code=3)


def test_each_expected_blob_is_compared(net):
    """Outputs or not: one that is wrong fails, whatever the others are."""
    x = np.random.default_rng(1).uniform(-1, 1, (3, 8, 8)).astype(np.float32)
    np.save(net / 'in.npy', x)
    for name, array in run_engine(net / 'm.param', net / 'm.bin', {'in': x}, ['b', 'e', 'prob'], '--no-fusion').items():
        np.save(net / f'{name}.npy', array)
        np.save(net / f'{name}-wrong.npy', -array - 1)
    args = ['-i', f'in={net}/in.npy']

    def expect(*files):
        return [word for file in files for word in ('--expect', f'{file.split("-")[0]}={net}/{file}.npy')]
    assert validate(net, *args, *expect('prob', 'b', 'e')).count('PASS') == 3
    assert 'FAIL e' in validate(net, *args, *expect('prob', 'b', 'e-wrong'), code=3)
    assert 'FAIL e' in validate(net, *args, *expect('b', 'e-wrong'), code=3)
    assert 'no answer for it' in refused(net, *args, *expect('prob'), '--blob', 'b')


@pytest.mark.parametrize('layer', ['c1', 'c2', 'c3', 'fc'])
@pytest.mark.parametrize('part', [0, 1])
def test_planted_wrong_weight(net, layer, part):
    values = weights()
    values[layer][part][5] += .5
    write(net, 'bad', values)
    blobs = {'c1': 'a', 'c2': 'c', 'c3': 'd', 'fc': 'prob'}
    wrong, _ = layers(net, '--against-model', net / 'm.param', net / 'm.bin', name='bad', code=3)
    assert wrong[:3] == ('InnerProduct' if layer == 'fc' else 'Convolution', layer, blobs[layer])
    assert wrong[3].startswith('error of its own')


@pytest.mark.parametrize('old, new, layer', [
    ('ReLU r1 1 1 a b', 'ReLU r1 1 1 a b 0=0.1', 'r1'), ('ReLU r2 1 1 d e', 'ReLU r2 1 1 d e 0=0.01', 'r2'),
    ('c2 1 1 b c 0=16 1=3 4=1', 'c2 1 1 b c 0=16 1=3 4=1 18=0.5', 'c2'), ('0=8 1=1 5=1 6=128', '0=8 1=1 5=1 6=128 9=1', 'c3'),
    ('c2 1 1 b c 0=16 1=3 4=1', 'c2 1 1 b c 0=16 1=3 4=2 2=2', 'c2'), ('c1 1 1 in a 0=16 1=3 4=1', 'c1 1 1 in a 0=16 1=3 3=2 4=5', 'c1')])
def test_planted_wrong_parameter(net, old, new, layer):
    assert old in PARAM
    write(net, 'bad', weights(), PARAM.replace(old, new))
    wrong, _ = layers(net, '--against-model', net / 'm.param', net / 'm.bin', name='bad', code=3)
    assert wrong[1] == layer


@pytest.mark.parametrize('layer', ['c2', 'fc'])
def test_products_beyond_fp16(net, layer):
    """What layers compute in fp32 stays fp32 where fp16 cannot hold it."""
    values = weights()
    values[layer][0][:] *= 3e6
    write(net, 'big', values)
    assert layers(net, '--precision', 'fp16', '--against', 'fp32', name='big')[0] is None


@pytest.mark.parametrize('layer, blob, old', [('r1', 'b', 'ReLU r1 1 1 a b'), ('r2', 'e', 'ReLU r2 1 1 d e')])
def test_planted_fp16_overflow(net, layer, blob, old):
    """A layer that writes fp16 itself."""
    assert old in PARAM
    write(net, 'big', weights(), PARAM.replace(old, old.replace('ReLU', 'Power') + ' 0=1 1=1e5 2=0'))
    wrong, rows = layers(net, '--precision', 'fp16', '--against', 'fp32', name='big', code=3)
    assert wrong[1:3] == (layer, blob) and 'beyond fp16' in wrong[3] and 'NaN or infinite' in wrong[3]
    assert 'not finite' in validate(net, '--no-fusion', '--precision', 'fp16', '--against', 'fp32', name='big', code=3)
    # bfloat16 has the range of fp32.
    assert layers(net, '--precision', 'bf16', '--against', 'fp32', name='big')[0] is None


def test_nothing_finite_is_no_pass(net):
    """NaN in the input is NaN everywhere, on both sides: nothing says that the answers are right."""
    np.save(net / 'nan.npy', np.full((3, 8, 8), np.nan, np.float32))
    np.save(net / 'right.npy', np.full((10,), np.nan, np.float32))
    inputs = ['--input', f'in={net}/nan.npy']
    for args in (['--against', 'reference'], ['--against', 'fp32'], ['--expect', f'prob={net}/right.npy']):
        assert 'there is nothing to compare' in validate(net, *inputs, *args, code=3)
    done = run_program('enginevalidate', net / 'm.param', net / 'm.bin', *inputs, '--against', 'reference', '--layers', '--log',
                       net / 'log.csv')
    assert done.returncode == 3, done.stdout


def test_nan_weight(net):
    values = weights()
    values['c3'][1][2] = np.nan
    write(net, 'bad', values)
    wrong, _ = layers(net, '--against-model', net / 'm.param', net / 'm.bin', name='bad', code=3)
    assert wrong[1] == 'c3' and 'NaN' in wrong[3]


def test_shape_of_another_model(net):
    param = PARAM.replace('in a 0=16 1=3 4=1', 'in a 0=16 1=3 4=1 3=2').replace('2=5120', '2=1280')
    values = weights()
    values['fc'] = values['fc'][0][:1280], values['fc'][1]
    write(net, 'half', values, param)
    wrong, _ = layers(net, '--against-model', net / 'm.param', net / 'm.bin', name='half', code=3)
    assert wrong[1] == 'c1' and wrong[3] == 'has the shape (16,4,4), expected (16,8,8)'


def test_folder_of_some_blobs(net):
    """Arrays of a few blobs bound the fault from both sides."""
    x = np.random.default_rng(1).uniform(-1, 1, (3, 8, 8)).astype(np.float32)
    np.save(net / 'in.npy', x)
    (net / 'blobs').mkdir()
    for name, array in run_engine(net / 'm.param', net / 'm.bin', {'in': x}, ['b', 'e', 'prob'], '--no-fusion').items():
        np.save(net / 'blobs' / f'{name}.npy', array)
    args = ['-i', f'in={net}/in.npy', '--expect-folder', net / 'blobs']
    assert list(layers(net, *args)[1]) == ['b', 'e', 'prob']
    values = weights()
    values['c2'][0][7] += 1
    write(net, 'bad', values)
    stdout = validate(net, '--layers', '--log', net / 'log.csv', *args, name='bad', code=3)
    assert "first wrong layer: [ReLU r2], blob 'e' error of its own" in stdout
    assert 'nothing is known between the layers [Convolution c2] [Convolution c3] [ReLU r2]' in stdout


def test_trained_models(data, tmp_path):
    path = data / 'models/slim-320/slim_320'
    for name in 'm.param', 'm.bin':
        shutil.copy(f'{path}.{name[2:]}', tmp_path / name)
    assert layers(tmp_path, '--size', 'input=3,240,320', '--precision', 'fp16', '--against', 'fp32')[0] is None
    assert layers(tmp_path, '--size', 'input=3,240,320', '--against', 'reference')[0] is None
    validate(tmp_path, '--size', 'input=3,240,320', '--precision', 'bf16', '--against', 'fp32')


def python_with_onnxruntime():
    for python in filter(None, [os.environ.get('QUOLL_ONNX_PYTHON'), 'python3']):
        if subprocess.run([python, '-c', 'import onnxruntime, onnx'], capture_output=True).returncode == 0:
            return python
    pytest.skip('there is no Python with onnxruntime and onnx')


def test_onnx_runtime(data, tmp_path):
    python = python_with_onnxruntime()
    folder = data / 'models/slim-320'
    for name in 'm.param', 'm.bin':
        shutil.copy(folder / f'slim_320.{name[2:]}', tmp_path / name)
    args = ['--size', 'input=3,240,320', '--onnx', folder / 'version-slim-320_without_postprocessing.onnx', '--python', python]
    stdout = validate(tmp_path, *args)
    assert 'PASS scores' in stdout and 'PASS boxes' in stdout
    stdout = validate(tmp_path, *args, '--blob', '245')
    assert 'PASS scores' in stdout and 'PASS 245' in stdout
    assert '--blob 999: there is no answer' in refused(tmp_path, *args, '--blob', '999')
    # The convolutions there have batch norms behind them, which are folded here: their outputs share nothing but the name.
    stdout = validate(tmp_path, '--layers', '--log', tmp_path / 'log.csv', *args)
    assert 'the names mean something else' in stdout
    # A fault between blobs that both know: the bias of the last convolution of the scores.
    data_ = bytearray((tmp_path / 'm.bin').read_bytes())
    data_[-4:] = struct.pack('<f', 7)
    (tmp_path / 'm.bin').write_bytes(data_)
    stdout = validate(tmp_path, '--layers', '--log', tmp_path / 'log.csv', *args, code=3)
    assert 'FAIL first wrong layer' in stdout


def test_onnx_that_cannot_run(net):
    assert 'No such file' in refused(net, '--onnx', net / 'no.onnx')
    (net / 'm.onnx').write_bytes(b'nonsense')
    assert 'cannot be run' in refused(net, '--onnx', net / 'm.onnx', '--python', net / 'nothing')
    assert 'ONNX Runtime' in refused(net, '--onnx', net / 'm.onnx')


def test_inputs(net):
    np.save(net / 'x.npy', np.full((3, 8, 8), .5, np.float32))
    validate(net, '--against', 'reference', '--input', f'in={net}/x.npy')
    validate(net, '--against', 'reference', '--range', '-100', '100', '--seed', '7')
    text = PARAM.replace(' 0=8 1=8 2=3', '')
    write(net, 'm', weights(), text)
    validate(net, '--against', 'reference', '--size', 'in=3,8,8')
    assert "size of input 'in'" in refused(net, '--against', 'reference')


def refused(folder, *args, code=1):
    before = sorted(p.name for p in folder.iterdir())
    done = run_program('enginevalidate', folder / 'm.param', folder / 'm.bin', *args)
    assert done.returncode == code, done.stdout + done.stderr
    assert sorted(p.name for p in folder.iterdir()) == before
    assert last_line(done.stderr).startswith('enginevalidate: ')
    return last_line(done.stderr)


def test_what_is_read_is_not_overwritten(net):
    np.save(net / 'x.npy', np.ones((3, 8, 8), np.float32))
    args = ['-i', f'in={net}/x.npy', '--layers', '--log', net / 'x.npy']
    assert 'is an input' in refused(net, *args, '--against', 'fp32')
    write(net, 'other', weights())
    args = ['--against-model', net / 'other.param', net / 'other.bin', '--layers', '--log', net / 'other.bin']
    assert 'is an input' in refused(net, *args)


def test_what_is_refused(net):
    assert 'give one of' in refused(net, code=2)
    assert 'give one of' in refused(net, '--against', 'fp32', '--onnx', 'x', code=2)
    assert 'No such file' in refused(net, '--expect', f'prob={net}/no.npy')
    assert 'name of a blob' in refused(net, '--expect', f'prib={net}/no.npy')
    assert 'no folder' in refused(net, '--expect-folder', net / 'nothing')
    (net / 'nothing').mkdir()
    assert 'nothing to compare' in refused(net, '--expect-folder', net / 'nothing')
    assert 'No such file' in refused(net, '--against-model', net / 'no.param', net / 'no.bin')
    assert "--shape: no blob 'im'" in refused(net, '--against', 'fp32', '--shape', 'im=3,8,8')
    assert 'int8' in refused(net, '--precision', 'int8', '--against', 'fp32')
    assert 'level' in refused(net, '--against-isa', 'mmx')
    assert 'written' in refused(net, '--against', 'fp32', '--layers', '--log', '/dev/full')
    assert 'is an input' in refused(net, '--against', 'fp32', '--layers', '--log', net / 'm.bin')
    (net / 'm.bin').write_bytes(struct.pack('<3f', 0, 0, 0))
    assert '[Convolution c1]' in refused(net, '--against', 'fp32')


def test_an_input_as_a_blob(net):
    for more in ([], ['--layers', '--log', net / 'log.csv']):
        validate(net, '--against', 'fp32', '--blob', 'in', *more)
    assert '--blob none: there is no answer' in refused(net, '--against-model', net / 'm.param', net / 'm.bin', '--layers', '--blob', 'none')


def test_no_colour_in_a_pipe(net):
    assert '\033' not in validate(net, '--against', 'reference')


def test_version():
    assert re.fullmatch(r'quoll \d+\.\d+\.\d+\n', run_program('enginevalidate', '--version').stdout)
