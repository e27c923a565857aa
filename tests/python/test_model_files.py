"""Files of models that do not go together, are none, or were left behind by a program that was killed."""
import fcntl
import os
import re
import shutil
import signal
import subprocess

import ncnn
import numpy as np
import pytest

from conftest import BIN, ROOT, run_program

DIGITS = ROOT / 'models' / 'digits'


def write_pair(folder, name, scale=1.):
    """The digits with weights of another size, as a program of ours writes them."""
    raw = np.fromfile(DIGITS / 'digits.bin', np.float32) * np.float32(scale)
    raw.tofile(folder / 'raw.bin')
    files = folder / f'{name}.param', folder / f'{name}.bin'
    done = run_program('engineoptimize', DIGITS / 'digits.param', folder / 'raw.bin', *files, '0')
    assert done.returncode == 0, done.stderr
    return files


def load(param, bin_file, code=0):
    """What enginerun says when it loads a model."""
    done = run_program('enginerun', param, bin_file, '--show-io')
    assert done.returncode == code, done.stdout + done.stderr
    return done.stderr


@pytest.fixture
def pairs(tmp_path):
    return write_pair(tmp_path, 'a'), write_pair(tmp_path, 'b', 0.5)


def test_mixed_pairs_are_refused(pairs, tmp_path):
    (param, weights), (other_param, other_weights) = pairs
    load(param, weights)
    load(other_param, other_weights)
    for p, w in [(param, other_weights), (other_param, weights)]:
        assert 'are not those that the param was written with' in load(p, w, 1)
        done = run_program('engineoptimize', p, w, tmp_path / 'x.param', tmp_path / 'x.bin', '0')
        assert done.returncode == 1 and 'are not those that the param was written with' in done.stderr
    assert 'are not those that the param was written with' in load(param, DIGITS / 'digits.bin', 1)
    unnumbered = tmp_path / 'unnumbered.param'  # takes any weights that fit
    unnumbered.write_text(re.sub(r' -23329=5,\S+', '', param.read_text()))
    load(unnumbered, weights)
    load(unnumbered, other_weights)


def test_pairs_are_the_same_again(pairs, tmp_path):
    (param, weights), _ = pairs
    (tmp_path / 'again').mkdir()
    again = write_pair(tmp_path / 'again', 'a')
    assert again[0].read_bytes() == param.read_bytes() and again[1].read_bytes() == weights.read_bytes()


def test_ncnn_loads_a_pair(pairs, tmp_path):
    (param, weights), _ = pairs
    answers = []
    for p, w in [(param, weights), (DIGITS / 'digits.param', DIGITS / 'digits.bin')]:
        net = ncnn.Net()
        assert net.load_param(str(p)) == 0 and net.load_model(str(w)) == 0
        extractor = net.create_extractor()
        x = np.random.default_rng(1).uniform(0, 1, (1, 8, 8)).astype(np.float32)
        extractor.input('data', ncnn.Mat(x).clone())
        answers.append(np.array(extractor.extract('prob')[1]))
    np.testing.assert_allclose(answers[0], answers[1], atol=1e-4)


def test_bytes_that_are_left_over(pairs, tmp_path):
    (param, weights), (_, other) = pairs
    size = weights.stat().st_size
    bad = tmp_path / 'bad.bin'
    for more in [weights.read_bytes(), other.read_bytes(), b'x', bytes(16)]:
        bad.write_bytes(weights.read_bytes() + more)
        assert f'the layers read {size} bytes of weights, and {len(more)} of {size + len(more)} are left over' in load(param, bad, 1)
    raw = (DIGITS / 'digits.bin').read_bytes()
    bad.write_bytes(raw + raw)
    assert f'the layers read {len(raw)} bytes of weights, and {len(raw)} of {2 * len(raw)} are left over' in load(
        DIGITS / 'digits.param', bad, 1)
    for length in (size - 1, size - 4, size // 2, 4, 0):
        bad.write_bytes(weights.read_bytes()[:length])
        assert 'are not those that the param was written with' in load(param, bad, 1)


def caffemodel():
    layer = b'\x0a\x04conv\x12\x0bConvolution' + b'\x3a\x82\x08' + b'\x2a\x80\x08' + bytes(1024)
    return b'\x0a\x05LeNet' + b'\xa2\x06' + bytes([len(layer) % 128 + 128, len(layer) // 128]) + layer


FOREIGN = {
    'model.onnx': ((DIGITS / 'digits.onnx').read_bytes(), 'an ONNX model, which onnx2engine converts'),
    'model.caffemodel': (caffemodel(), 'a caffemodel, which caffe2engine converts'),
    'model.prototxt': (b'# LeNet\nname: "LeNet"\nlayer {\n}\n', 'a prototxt, which caffe2engine converts'),
    'model.tflite': (b'\x1c\0\0\0TFL3' + bytes(100), 'a TFLite model'),
    'model.pt': (b'PK\3\4' + bytes(100), 'a ZIP archive'),
    'model.h5': (b'\x89HDF\r\n\x1a\n' + bytes(100), 'an HDF5 file'),
    'model.gguf': (b'GGUF\3\0\0\0' + bytes(100), 'a GGUF model'),
}


@pytest.mark.parametrize('name', FOREIGN)
def test_other_formats_are_named(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(FOREIGN[name][0])
    as_param = tmp_path / 'as.param'
    shutil.copy(path, as_param)
    binary_param = tmp_path / 'as.param.bin'
    shutil.copy(path, binary_param)
    assert FOREIGN[name][1] in load(DIGITS / 'digits.param', path, 1)
    assert FOREIGN[name][1] in load(as_param, DIGITS / 'digits.bin', 1)
    assert FOREIGN[name][1] in load(binary_param, DIGITS / 'digits.bin', 1)
    for param, weights in [(DIGITS / 'digits.param', path), (as_param, DIGITS / 'digits.bin')]:
        done = run_program('engineoptimize', param, weights, tmp_path / 'x.param', tmp_path / 'x.bin', '0')
        assert done.returncode == 1 and FOREIGN[name][1] in done.stderr
    digits, made = [DIGITS / 'digits.param', DIGITS / 'digits.bin'], [tmp_path / 'x.param', tmp_path / 'x.bin']
    for command in [['ncnn2mem', digits[0], path, tmp_path / 'id.h', tmp_path / 'mem.h'], ['ncnn2int8', *digits, *made, path],
                    ['enginequantize', *digits, *made, '--from-table', path], ['enginequantize', *digits, *made, '--override', path],
                    ['enginedeploy', path, tmp_path / 'x.tar.gz']]:
        done = run_program(*command)
        assert done.returncode == 1 and f'{path.name}: expected ' in done.stderr and FOREIGN[name][1] in done.stderr, done.stderr


def test_swapped_arguments(tmp_path):
    assert 'a file of weights, as it seems' in load(DIGITS / 'digits.bin', DIGITS / 'digits.param', 1)
    assert 'is a text param' in load(DIGITS / 'digits.param', DIGITS / 'digits.param', 1)
    binary = tmp_path / 'd.param.bin'
    done = run_program('ncnn2mem', DIGITS / 'digits.param', DIGITS / 'digits.bin', tmp_path / 'id.h', tmp_path / 'mem.h',
                       '--param-bin', binary)
    assert done.returncode == 0, done.stderr
    load(binary, DIGITS / 'digits.bin')
    shutil.copy(binary, tmp_path / 'd.param')
    shutil.copy(DIGITS / 'digits.param', tmp_path / 't.param.bin')
    assert 'is a binary param' in load(tmp_path / 'd.param', DIGITS / 'digits.bin', 1)
    assert 'is a binary param' in load(DIGITS / 'digits.param', binary, 1)
    assert 'is a text param' in load(tmp_path / 't.param.bin', DIGITS / 'digits.bin', 1)


def test_embedded_pairs(pairs, tmp_path):
    """ncnn2mem's copy of the graph asks for the weights that lie beside it."""
    for (param, weights), wrong in zip(pairs, [pairs[1][1], pairs[0][1]]):
        binary = tmp_path / f'{param.stem}.param.bin'
        done = run_program('ncnn2mem', param, weights, tmp_path / 'id.h', tmp_path / 'mem.h', '--param-bin', binary)
        assert done.returncode == 0, done.stderr
        load(binary, weights)
        assert 'are not those' in load(binary, wrong, 1)
        done = run_program('ncnn2mem', param, wrong, tmp_path / 'id.h', tmp_path / 'mem.h', '--param-bin', binary)
        assert done.returncode == 1 and 'are not those' in done.stderr


def test_leftovers_are_removed(tmp_path):
    dead, alive = tmp_path / '.quoll-part-1-0', tmp_path / '.quoll-part-2-0'
    dead.write_text('left behind')
    with open(alive, 'w') as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        write_pair(tmp_path, 'a')
        assert not dead.exists() and alive.exists()
    write_pair(tmp_path, 'a')
    assert sorted(p.name for p in tmp_path.iterdir()) == ['a.bin', 'a.param', 'raw.bin']


def test_killed_programs_leave_a_pair_or_an_error(tmp_path):
    """Killed at any moment: the files are the old pair, the new one, or do not load together."""
    write_pair(tmp_path, 'm')
    old = [(tmp_path / f'm.{e}').read_bytes() for e in ('param', 'bin')]
    raw = tmp_path / 'raw.bin'
    write_pair(tmp_path, 'n', 0.25)
    new = [(tmp_path / f'n.{e}').read_bytes() for e in ('param', 'bin')]
    command = [BIN / 'engineoptimize', DIGITS / 'digits.param', raw, tmp_path / 'm.param', tmp_path / 'm.bin', '0']
    for i in range(30):
        for name, content in zip(('m.param', 'm.bin'), old):
            (tmp_path / name).write_bytes(content)
        process = subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(i * 0.002)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        now = [(tmp_path / f'm.{e}').read_bytes() for e in ('param', 'bin')]
        assert now in (old, new) or 'are not those' in load(tmp_path / 'm.param', tmp_path / 'm.bin', 1)
    assert subprocess.run([*map(str, command)], capture_output=True).returncode == 0
    assert not list(tmp_path.glob('.quoll-part-*'))


def test_long_names(tmp_path):
    files = tmp_path / f'{"n" * 246}.param', tmp_path / f'{"n" * 251}.bin'
    assert [len(path.name) for path in files] == [252, 255]
    done = run_program('engineoptimize', DIGITS / 'digits.param', DIGITS / 'digits.bin', *files, '0')
    assert done.returncode == 0, done.stderr
    load(*files)
