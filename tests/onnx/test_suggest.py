"""What a refusal says: the options with which the model can be converted."""
import subprocess

import numpy as np
import pytest

onnx = pytest.importorskip('onnx')
from onnx import numpy_helper, parser  # noqa: E402

from onnx_run import BIN, convert, run  # noqa: E402


def save(text, folder, opset=17, **constants):
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> g {text}')
    for name, values in constants.items():
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(values), name))
    onnx.save(model, folder / 'm.onnx')
    return folder / 'm.onnx'


def refusal(path, folder, *options):
    done = subprocess.run([BIN / 'onnx2engine', path, folder / 'm.param', folder / 'm.bin', *options], capture_output=True,
                          text=True)
    assert done.returncode == 1 and not (folder / 'm.param').exists()
    return done.stderr


def found(message):
    """The options of the last line, as words."""
    line = message.splitlines()[-1]
    assert line.startswith('onnx2engine: it can be converted with '), message
    return line.split(' with ')[1].split()


@pytest.mark.parametrize('asked', [True, False])
def test_sizes(asked, tmp_path):
    """Six axes that change places are some of blobs' four only if their sizes are known."""
    path = save('(float[A,B,C,D,E,2] x) => (float[e,d,c,b,a,2] y) { y = Transpose <perm = [4, 3, 2, 1, 0, 5]> (x) }', tmp_path)
    options = found(refusal(path, tmp_path, *(['--suggest'] if asked else [])))
    assert options[0] == '--shape' and options[1].startswith('x=')
    net = convert(path, tmp_path, *options)
    sizes = [int(s) for s in options[1].split('=')[1].split(',')]
    x = np.random.rand(*[max(s, 1) for s in sizes]).astype(np.float32)
    np.testing.assert_array_equal(run(net, {'x': x}, ['y'], tmp_path)['y'], x.transpose(4, 3, 2, 1, 0, 5))


def test_number(tmp_path):
    """A branch that cannot be one, and another of an unknown operator: the rate decides."""
    path = save('''(float[1,4] x, int64 sr) => (float[1,4] y) {
        c = Equal(sr, rate)
        y = If (c) <then_branch = a () => (float[1,4] t) { t = Relu(x) },
                    else_branch = b () => (float[1,4] e) { q = SequenceEmpty() e = ConcatFromSequence <axis = 0> (q) }>
    }''', tmp_path, rate=np.int64(16000))
    x = np.float32([[-1, 2, -3, 4]])
    net = convert(path, tmp_path, '--constant', 'sr=16000')
    assert 'Select' not in net[0].read_text()
    np.testing.assert_array_equal(run(net, {'x': x}, ['y'], tmp_path)['y'], np.maximum(x, 0))


def test_list_of_open_length(tmp_path):
    """Axes that are an input."""
    path = save('(float[N,4] x, int64[K] axes) => (float[N] y) { y = ReduceSum <keepdims = 0> (x, axes) }', tmp_path)
    options = found(refusal(path, tmp_path))
    assert options == ['--constant', 'axes=1']
    x = np.random.rand(3, 4).astype(np.float32)
    np.testing.assert_allclose(run(convert(path, tmp_path, *options), {'x': x}, ['y'], tmp_path)['y'], x.sum(1), 1e-6)


@pytest.mark.parametrize('text', ['sr=1,2', 'sr=nothing'])
def test_constants_that_are_none(text, tmp_path):
    path = save('(float[1,4] x, int64 sr) => (float[1,4] y) { n = Cast <to = 1> (sr) y = Mul(x, n) }', tmp_path)
    assert 'sr' in refusal(path, tmp_path, '--constant', text)


def test_nothing_helps(tmp_path):
    path = save('(float[N,4] x) => (float[N,4] y) { y = NoSuchOperator(x) }', tmp_path)
    assert 'no sizes or constants' in refusal(path, tmp_path, '--suggest')
    assert 'it can be converted' not in refusal(path, tmp_path)
