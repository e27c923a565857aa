"""engineoptimize: the same answers from fewer layers; files that stay as they are when it runs on its own output."""
import os
import re
import struct

import numpy as np
import pytest

from conftest import ROOT, last_line, run_program
from engine import difference, run_engine
from graphs import BUNDLED, SHARED, Graph, random_weights

LIMIT = 1e-5
DIGITS = ROOT / 'models' / 'digits'


def optimize(param, binary, folder, *args, name='out'):
    out = folder / f'{name}.param', folder / f'{name}.bin'
    done = run_program('engineoptimize', param, binary, *out, *args)
    assert done.returncode == 0, done.stderr
    return *out, done.stdout


def counts(stdout, row):
    found = re.search(rf'^{row} +([\d,]+) +-> +([\d,]+)', stdout, re.M)
    return [int(text.replace(',', '')) for text in found.groups()]


def check_answer(got, expected, name):
    """Within LIMIT; the same places without a number (int8 graphs with random scales give NaN); as empty (detectors)."""
    assert got.shape == expected.shape, name
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(np.isfinite(got), finite)
    if finite.any():
        assert difference(got[finite], expected[finite]) <= LIMIT, name


def determined(graph):
    """The outputs, but a detector's inputs in its place: a net with random weights gives it hundreds of boxes of almost equal
    score, and the last bit says which of them suppresses which."""
    names = []
    for words in graph.lines:
        bottoms, tops = words[4:4 + int(words[2])], words[4 + int(words[2]):4 + int(words[2]) + int(words[3])]
        is_output = any(name in graph.outputs for name in tops)
        names += bottoms if is_output and words[0].endswith('DetectionOutput') else [n for n in tops if n in graph.outputs]
    return list(dict.fromkeys(names))


def check_same(param, binary, folder, *args):
    new_param, new_bin, stdout = optimize(param, binary, folder, '0', *args)
    graph = Graph(param)
    before, after = counts(stdout, 'layers')
    assert after <= before and len(Graph(new_param).lines) == after
    assert Graph(new_param).outputs == graph.outputs and list(Graph(new_param).inputs) == list(graph.inputs)
    x, names = graph.random_inputs(), determined(graph)
    expected = run_engine(param, binary, x, names, '--no-fusion')
    got = run_engine(new_param, new_bin, x, names)
    for name in names:
        check_answer(got[name], expected[name], name)
    # Its own output does not change any more.
    again = optimize(new_param, new_bin, folder, '0', *args, name='again')
    assert new_param.read_bytes() == again[0].read_bytes() and new_bin.read_bytes() == again[1].read_bytes()
    return stdout


def graphs():
    """Those that are bundled, and of the others what is no list of the same layers."""
    known = [Graph(param).types for param in BUNDLED]
    return BUNDLED + [param for param in SHARED if Graph(param).types not in known]


@pytest.mark.parametrize('param', graphs(), ids=lambda p: f'{p.parent.name}-{p.stem}')
def test_graphs(param, tmp_path):
    check_same(param, random_weights(param, tmp_path), tmp_path)
    for file in tmp_path.glob('*.bin'):  # pytest keeps the folder, and these are up to 500 MB each
        file.unlink()


def test_digits(tmp_path):
    stdout = check_same(DIGITS / 'digits.param', DIGITS / 'digits.bin', tmp_path)
    assert 'multiply-accumulates' in stdout


@pytest.mark.parametrize('model', ['slim-320/slim_320', 'fastestdet/FastestDet'])
def test_trained(data, model, tmp_path):
    path = data / 'models' / model
    answers = np.load(f'{path}.npz')
    inputs = {k[3:]: answers[k] for k in answers.files if k.startswith('in:')}
    for flag, limit in ('0', 1e-4), ('65536', 3e-2), ('bf16', 3e-1):
        param, binary, _ = optimize(f'{path}.param', f'{path}.bin', tmp_path, flag)
        expected = {k[4:]: answers[k] for k in answers.files if k.startswith('out:')}
        got = run_engine(param, binary, inputs, expected)
        assert max(difference(got[name], expected[name]) for name in expected) <= limit, flag


NET = ('7767517\n{} {}\nInput in 0 1 in 0=6 1=5 2=3\nConvolution conv 1 1 in a 0=4 1=3 5=1 6=108\nBatchNorm bn 1 1 a b 0=4\n'
       'ReLU relu 1 1 b c\n{}')
TAIL = ('Split split 1 2 c d e\nPooling pool 1 1 d f 0=1 4=1\nFlatten flat 1 1 f g\nConvolution fc 1 1 g prob 0=2 1=1 6=8\n'
        'ReLU other 1 1 e out2\n')


@pytest.fixture
def net(tmp_path):
    rng = np.random.default_rng(1)
    (tmp_path / 'm.param').write_text(NET.format(9, 12, TAIL))
    norm = [rng.uniform(.5, 2, 4), rng.uniform(-1, 1, 4), rng.uniform(.5, 2, 4), rng.uniform(-1, 1, 4)]
    parts = [np.zeros(1), rng.uniform(-1, 1, 108), rng.uniform(-1, 1, 4), *norm, np.zeros(1), rng.uniform(-1, 1, 8)]
    np.concatenate(parts).astype(np.float32).tofile(tmp_path / 'm.bin')
    return tmp_path


def test_report(net):
    stdout = check_same(net / 'm.param', net / 'm.bin', net)
    for line in ('BatchNorm into Convolution (1)', 'ReLU into Convolution (1)', 'Flatten left out (1)',
                 'Convolution of one pixel to InnerProduct (1)'):
        assert line in stdout.splitlines()
    assert Graph(net / 'out.param').types == ['Input', 'Convolution', 'Split', 'Pooling', 'InnerProduct', 'ReLU']
    assert counts(stdout, 'layers') == [9, 6]
    assert counts(stdout, 'parameters') == [108 + 4 + 16 + 8, 108 + 4 + 8]
    # conv: 4 x 3 outputs of 4 channels with 27 taps each; fc: 8.
    assert counts(stdout, 'multiply-accumulates') == [12 * 4 * 27 + 8] * 2
    assert counts(stdout, 'weight bytes')[1] == 4 * (1 + 108 + 4 + 1 + 8)


def test_hints(net):
    text = optimize(net / 'm.param', net / 'm.bin', net, '0')[0].read_text()
    line, = (line for line in text.splitlines() if line.startswith('Convolution'))
    assert line.endswith(' -23330=4,3,4,3,4')
    assert '-23330' not in optimize(net / 'm.param', net / 'm.bin', net, '0', '--no-hints')[0].read_text()
    other = optimize(net / 'm.param', net / 'm.bin', net, '0', '--size', 'in=3,10,9')[0].read_text()
    assert ' -23330=4,3,7,8,4' in other


def test_kept_blobs_and_no_fusion(net):
    kept = optimize(net / 'm.param', net / 'm.bin', net, '0', '--keep', 'b')[0]
    assert 'b' in Graph(kept).blobs and Graph(kept).types[:3] == ['Input', 'Convolution', 'ReLU']
    plain = optimize(net / 'm.param', net / 'm.bin', net, '0', '--no-fusion', '--no-hints')
    # Written params say which weights are theirs.
    lines = [[word for word in line if not word.startswith('-23329=')] for line in Graph(plain[0]).lines]
    assert lines == Graph(net / 'm.param').lines and 'nothing to do' in plain[2]
    assert plain[1].read_bytes() == (net / 'm.bin').read_bytes()


@pytest.mark.parametrize('start, end, inputs, outputs', [
    ('conv', 'relu', ['in'], ['c']), ('bn', '', ['a'], ['prob', 'out2']), ('', 'bn', ['in'], ['b']), ('a', 'c', ['a'], ['c']),
    ('pool', 'prob', ['d'], ['prob']), ('split', 'other', ['c'], ['out2']), ('in', '', ['in'], ['prob', 'out2'])])
def test_cut(net, start, end, inputs, outputs):
    param, binary, _ = optimize(net / 'm.param', net / 'm.bin', net, '0', start, end)
    graph = Graph(param)
    assert list(graph.inputs) == inputs and graph.outputs == outputs
    x = np.random.default_rng(2).uniform(-1, 1, (3, 5, 6)).astype(np.float32)
    whole = run_engine(net / 'm.param', net / 'm.bin', {'in': x}, inputs + outputs, '--no-fusion')
    part = run_engine(param, binary, {name: whole[name] for name in inputs}, outputs)
    for name in outputs:
        assert difference(part[name], whole[name]) <= LIMIT
    assert graph.inputs[inputs[0]] == whole[inputs[0]].shape


@pytest.mark.parametrize('inputs, outputs, left', [
    (['a'], ['c'], ['a']), ([], ['b', 'prob'], ['in']), (['c'], [], ['c']), (['d', 'e'], ['prob', 'out2'], ['d', 'e']),
    (['b'], ['b', 'out2'], ['b'])])
def test_cut_between_blobs(net, inputs, outputs, left):
    options = [word for kind, blobs in (('--input', inputs), ('--output', outputs)) for blob in blobs for word in (kind, blob)]
    param, binary, _ = optimize(net / 'm.param', net / 'm.bin', net, '0', *options)
    graph, outputs = Graph(param), outputs or ['prob', 'out2']
    assert sorted(graph.inputs) == left and set(outputs) <= set(graph.blobs)
    x = np.random.default_rng(2).uniform(-1, 1, (3, 5, 6)).astype(np.float32)
    whole = run_engine(net / 'm.param', net / 'm.bin', {'in': x}, set(left + outputs), '--no-fusion')
    part = run_engine(param, binary, {name: whole[name] for name in left}, outputs, '--no-fusion')
    for name in outputs:
        assert difference(part[name], whole[name]) <= LIMIT


def test_strip_names(net):
    param, binary, _ = optimize(net / 'm.param', net / 'm.bin', net, '0', '--strip-names', '--keep', 'b', '--no-hints')
    graph = Graph(param)
    assert sorted(name for name in graph.blobs if not name.isdigit()) == ['b', 'in', 'out2', 'prob']
    assert [words[1] for words in graph.lines] == [str(i) for i in range(len(graph.lines))]
    x = {'in': np.random.default_rng(2).uniform(-1, 1, (3, 5, 6)).astype(np.float32)}
    expected = run_engine(net / 'm.param', net / 'm.bin', x, ['prob', 'out2'])
    for name, got in run_engine(param, binary, x, ['prob', 'out2']).items():
        assert difference(got, expected[name]) <= LIMIT
    again = optimize(param, binary, net, '0', '--strip-names', '--keep', 'b', '--no-hints', name='again')
    assert param.read_bytes() == again[0].read_bytes() and binary.read_bytes() == again[1].read_bytes()


def test_dead_layers(tmp_path):
    (tmp_path / 'm.param').write_text('7767517\n6 6\nInput in 0 1 in\nInput unused 0 1 unused\nMemoryData k 0 1 k 0=2\n'
                                      'ReLU r 1 1 in out\nSigmoid s 1 1 in z\nNoop sink 1 0 z\n')
    (tmp_path / 'm.bin').write_bytes(struct.pack('<2f', 1, 2))
    param, binary, stdout = optimize(tmp_path / 'm.param', tmp_path / 'm.bin', tmp_path, '0', '--no-fusion')
    assert 'layers that nothing needs removed (3)' in stdout
    assert Graph(param).types == ['Input', 'Input', 'ReLU'] and binary.stat().st_size == 0


@pytest.mark.parametrize('flag, size', [('0', 4), ('1', 2), ('65536', 2), ('fp16', 2), ('bf16', 2)])
def test_storage(net, flag, size):
    param, binary, _ = optimize(net / 'm.param', net / 'm.bin', net, flag)
    assert binary.stat().st_size == 4 + 108 * size + 16 + 4 + 8 * size
    x = {'in': np.random.default_rng(2).uniform(-1, 1, (3, 5, 6)).astype(np.float32)}
    expected = run_engine(net / 'm.param', net / 'm.bin', x, ['prob', 'out2'])
    got = run_engine(param, binary, x, ['prob', 'out2'])
    for name in expected:
        assert difference(got[name], expected[name]) <= (1e-5 if size == 4 else 3e-3 if flag != 'bf16' else 3e-2)
    back = optimize(param, binary, net, '0', name='back')
    again = run_engine(*back[:2], x, ['prob'])
    np.testing.assert_array_equal(again['prob'], got['prob'])


def test_weights_that_f16_cannot_hold(tmp_path):
    (tmp_path / 'm.param').write_text('7767517\n2 2\nInput in 0 1 in\nInnerProduct fc 1 1 in out 0=1 2=2\n')
    (tmp_path / 'm.bin').write_bytes(struct.pack('<I2f', 0, 70000, 1))
    done = run_program('engineoptimize', *(tmp_path / n for n in ('m.param', 'm.bin', 'o.param', 'o.bin')), '1')
    assert done.returncode == 0 and '[InnerProduct fc] weight_data' in done.stderr
    assert (tmp_path / 'o.bin').read_bytes() == (tmp_path / 'm.bin').read_bytes()


def test_other_weights_and_params_stay(tmp_path):
    """int8 and table weights, custom layers' params, parameters that no schema knows."""
    (tmp_path / 'm.param').write_text('7767517\n4 4\nInput in 0 1 in\nInnerProduct a 1 1 in a 0=1 2=4 8=1\n'
                                      'InnerProduct b 1 1 a b 0=4 2=4 31=7\nMyLayer own 1 1 b out 0=1 1=2.5 -23302=2,3,4\n')
    table = np.linspace(-1, 1, 256).astype(np.float32)
    (tmp_path / 'm.bin').write_bytes(struct.pack('<I4b2f', 0x000D4B38, 1, -2, 3, -4, .5, .25) + struct.pack('<I', 256) +
                                     table.tobytes() + bytes([1, 50, 100, 255]))
    param, binary, _ = optimize(tmp_path / 'm.param', tmp_path / 'm.bin', tmp_path, '0')
    lines = {words[1]: words[6:] for words in Graph(param).lines if words[0] != 'Input'}
    assert lines == {'a': ['0=1', '2=4', '8=1'], 'b': ['0=4', '2=4', '31=7'], 'own': ['0=1', '1=2.5', '-23302=2,3,4']}
    data = binary.read_bytes()
    assert data[:16] == (tmp_path / 'm.bin').read_bytes()[:16]
    np.testing.assert_array_equal(np.frombuffer(data[20:], np.float32), table[[1, 50, 100, 255]])


@pytest.mark.parametrize('option', ['--output', '--keep'])
def test_constants_that_are_asked_for_stay(tmp_path, option):
    (tmp_path / 'm.param').write_text('7767517\n3 3\nInput x 0 1 x\nReLU r 1 1 x y\nMemoryData k 0 1 k 0=2\n')
    (tmp_path / 'm.bin').write_bytes(struct.pack('<2f', 3, 4))
    param, binary, _ = optimize(tmp_path / 'm.param', tmp_path / 'm.bin', tmp_path, '0', option, 'y', option, 'k')
    got = run_engine(param, binary, {'x': np.float32([-1, 2])}, ['y', 'k'])
    np.testing.assert_array_equal(got['y'], [0, 2])
    np.testing.assert_array_equal(got['k'], [3, 4])


@pytest.mark.skipif('ENGINERUN_PREFIX' in os.environ, reason='runs the ncnn wheel')
def test_ncnn_reads_what_is_written(net):
    ncnn = pytest.importorskip('ncnn')
    param, binary, _ = optimize(net / 'm.param', net / 'm.bin', net, '0')
    x = np.random.default_rng(2).uniform(-1, 1, (3, 5, 6)).astype(np.float32)
    theirs = ncnn.Net()
    assert theirs.load_param(str(param)) == 0 and theirs.load_model(str(binary)) == 0
    ex = theirs.create_extractor()
    ex.input('in', ncnn.Mat(x))
    ours = run_engine(net / 'm.param', net / 'm.bin', {'in': x}, ['prob', 'out2'])
    for name in ours:
        assert difference(np.array(ex.extract(name)[1]), ours[name]) <= 1e-3  # ncnn's storage may be narrower


def refused(folder, *args, code=1):
    before = {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}
    done = run_program('engineoptimize', *args)
    assert done.returncode == code, done.stdout + done.stderr
    assert {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()} == before, 'files were left or changed'
    assert last_line(done.stderr).startswith('engineoptimize: ')
    return last_line(done.stderr)


def test_what_is_refused(net):
    good = [net / 'm.param', net / 'm.bin', net / 'o.param', net / 'o.bin']
    assert 'No such file' in refused(net, net / 'no.param', *good[1:], '0')
    assert 'No such file' in refused(net, good[0], net / 'no.bin', *good[2:], '0')
    assert 'No such file' in refused(net, *good[:3], net / 'no' / 'o.bin', '0')
    assert 'is an input' in refused(net, *good[:2], net / 'm.param', net / 'o.bin', '0')
    assert 'written' in refused(net, *good[:3], '/dev/full', '0')
    assert 'written' in refused(net, *good[:2], '/dev/full', net / 'o.bin', '0')
    assert 'no layer and no blob' in refused(net, *good, '0', 'nowhere')
    assert 'does not lead' in refused(net, *good, '0', 'fc', 'conv')
    assert "no blob 'q'" in refused(net, *good, '0', '--keep', 'q')
    assert "no blob 'q'" in refused(net, *good, '0', '--input', 'q')
    assert "no blob 'q'" in refused(net, *good, '0', '--output', 'q')
    assert 'does not lead' in refused(net, *good, '0', '--input', 'c', '--output', 'b')
    assert "no blob 'q'" in refused(net, *good, '0', '--size', 'q=1,2,3')
    assert 'expected NAME=SIZES' in refused(net, *good, '0', '--size', 'in=1,2,x')
    refused(net, *good, '2', code=2)
    refused(net, *good, code=2)
    (net / 'm.bin').write_bytes((net / 'm.bin').read_bytes()[:-4])
    assert '[Convolution fc]' in refused(net, *good, '0')
    (net / 'm.param').write_bytes(b'\0' * 100)
    assert 'a file of weights' in refused(net, *good, '0')
    (net / 'm.param').write_bytes(b'\1' * 100)
    assert 'magic' in refused(net, *good, '0')


def test_version_and_help():
    assert re.fullmatch(r'quoll \d+\.\d+\.\d+\n', run_program('engineoptimize', '--version').stdout)
    assert 'Exit code' in run_program('engineoptimize', '--help').stdout
