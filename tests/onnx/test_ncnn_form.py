"""onnx2engine --ncnn: ncnn's own module loads what is written and answers as ONNX Runtime; what ncnn does not have is refused by name."""
import os
import pathlib

import numpy as np
import pytest

ncnn = pytest.importorskip('ncnn')
onnx = pytest.importorskip('onnx')
ort = pytest.importorskip('onnxruntime')
from onnx import helper  # noqa: E402

from onnx_run import BIN, ROOT, Failure, convert, run_program  # noqa: E402
from test_file_size import model_of  # noqa: E402


DATA = os.environ.get('QUOLL_DATA')


def check(path, inputs, folder, *options):
    """Arrays with an axis of 1 for the batch, which ncnn's blobs do not have."""
    net = ncnn.Net()
    for name in ('use_fp16_storage', 'use_fp16_packed', 'use_fp16_arithmetic', 'use_bf16_storage'):
        setattr(net.opt, name, False)
    param, weights = convert(path, folder, '--ncnn', *options)
    assert net.load_param(str(param)) == 0 and net.load_model(str(weights)) == 0
    session = ort.InferenceSession(str(path), providers=['CPUExecutionProvider'])
    for output in session.get_outputs():
        ex = net.create_extractor()
        for name, x in inputs.items():
            ex.input(name, ncnn.Mat(x[0]).clone())
        status, mat = ex.extract(output.name)
        want = session.run([output.name], inputs)[0]
        assert status == 0
        np.testing.assert_allclose(np.array(mat).reshape(want.shape), want, 1e-4, 1e-4)


def random(*sizes):
    return np.random.default_rng(0).random(sizes, dtype=np.float32)


def test_digits(tmp_path):
    check(ROOT / 'models' / 'digits' / 'digits.onnx', {'data': random(1, 1, 8, 8)}, tmp_path)


@pytest.mark.skipif(not DATA, reason='QUOLL_DATA is not set')
def test_detectors(tmp_path):
    data = pathlib.Path(DATA)
    check(data / 'models' / 'fastestdet' / 'FastestDet.onnx', {'input.1': random(1, 3, 352, 352)}, tmp_path)
    check(data / 'models' / 'slim-320' / 'version-slim-320_simplified.onnx', {'input': random(1, 3, 240, 320)}, tmp_path)


def save(nodes, folder, weights=None, outputs=('y',)):
    x = random(1, 4, 6, 8)
    onnx.save(model_of(nodes, {'x': x}, {name: np.array(v) for name, v in (weights or {}).items()}, outputs=outputs), folder / 'm.onnx')
    return folder / 'm.onnx', {'x': x}


def test_outputs_that_are_inputs_or_read(tmp_path):
    nodes = [helper.make_node('Identity', ['x'], ['z']), helper.make_node('Abs', ['x'], ['y']), helper.make_node('Neg', ['y'], ['w'])]
    check(*save(nodes, tmp_path, outputs=('y', 'z', 'w')), tmp_path)


@pytest.mark.parametrize('start, end, axis', [(1, 3, 1), (-3, 2**31, 2), (0, -2, 3), (-100, 3, 2), (-100, 100, 3)])
def test_slices(start, end, axis, tmp_path):
    lists = {'s': [start], 'e': [end], 'a': [axis]}
    check(*save([helper.make_node('Slice', ['x', *lists], ['y'])], tmp_path, lists), tmp_path)


def test_silu(tmp_path):
    check(*save([helper.make_node('Sigmoid', ['x'], ['s']), helper.make_node('Mul', ['x', 's'], ['y'])], tmp_path), tmp_path)


@pytest.mark.parametrize('exponent', [-1, 0.5, 2, 3, 4])
def test_powers(exponent, tmp_path):
    """ncnn's own have no values of numbers that are not positive."""
    shift = -0.5 if exponent > 1 else 0.1
    nodes = [helper.make_node('Add', ['x', 's'], ['a']), helper.make_node('Pow', ['a', 'e'], ['b']), helper.make_node('Mul', ['b', 'a'], ['y'])]
    check(*save(nodes, tmp_path, {'s': np.float32(shift), 'e': np.float32([[[[[exponent]]]]][0])}), tmp_path)


@pytest.mark.parametrize('exponent', [3, 4])
def test_powers_beside_names_of_their_parts(exponent, tmp_path):
    nodes = [helper.make_node('Pow', ['x', 'e'], ['b']), helper.make_node('Neg', ['x'], ['b/square']), helper.make_node('Abs', ['x'], ['b/base']),
             helper.make_node('Mul', ['b', 'b/square'], ['m']), helper.make_node('Mul', ['m', 'b/base'], ['y'])]
    check(*save(nodes, tmp_path, {'e': np.float32(exponent)}), tmp_path)


def test_what_it_lacks_is_named(tmp_path):
    path, _ = save([helper.make_node('Slice', ['x', 's', 'e', 'a', 't'], ['v']), helper.make_node('Hardmax', ['v'], ['y'])], tmp_path,
                   {'s': [0], 'e': [8], 'a': [3], 't': [2]})
    with pytest.raises(Failure, match=r'ncnn has no Hardmax .*StridedSlice'):
        convert(path, tmp_path, '--ncnn')
    assert not list(tmp_path.glob('*.param'))


@pytest.mark.parametrize('mode, padding', [('bilinear', 'zeros'), ('bicubic', 'border'), ('nearest', 'zeros'), ('bilinear', 'reflection')])
def test_samples_of_a_grid(mode, padding, tmp_path):
    """ncnn rounds ties up, and reflects once."""
    node = helper.make_node('GridSample', ['x', 'grid'], ['y'], mode=mode, padding_mode=padding)
    path, inputs = save([node], tmp_path, {'grid': 8 * random(1, 3, 5, 2) - 4})
    if mode == 'nearest' or padding == 'reflection':
        with pytest.raises(Failure, match='param 4 of GridSample'):
            convert(path, tmp_path, '--ncnn')
    else:
        check(path, inputs, tmp_path)


def test_check(tmp_path):
    said = run_program([BIN / 'onnx2engine', ROOT / 'models' / 'digits' / 'digits.onnx', tmp_path / 'd.param', tmp_path / 'd.bin', '--ncnn', '--check'])
    assert 'prob: cosine' in said
