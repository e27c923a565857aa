"""enginemerge: models side by side in one net, each with the answers that it had."""
import re
import struct

import numpy as np
import pytest

from conftest import ROOT, last_line, run_program
from engine import run_engine
from graphs import Graph

DIGITS = ROOT / 'models' / 'digits'
NETS = {'a': '7767517\n3 3\nInput in 0 1 in\nScale s 1 1 in x 0=1\nReLU r 1 1 x out\n',
        'b': '7767517\n3 3\nInput in 0 1 in\nBias s 1 1 in y 0=1\nReLU own 1 1 y out2\n',
        'c': '7767517\n2 2\nInput other 0 1 data\nMyLayer m 1 1 data out3 0=4\n'}
WEIGHTS = {'a': struct.pack('<f', 3), 'b': struct.pack('<f', -2), 'c': b''}


@pytest.fixture
def nets(tmp_path):
    for name, text in NETS.items():
        (tmp_path / f'{name}.param').write_text(text)
        (tmp_path / f'{name}.bin').write_bytes(WEIGHTS[name])
    return tmp_path


def merge(folder, names, *args):
    files = [folder / f'{name}.{end}' for name in names for end in ('param', 'bin')]
    done = run_program('enginemerge', *files, folder / 'o.param', folder / 'o.bin', *args)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_names_that_collide(nets):
    told = merge(nets, 'ab')
    assert told == ['layer in -> b/in', 'layer s -> b/s', 'blob in -> b/in', '2 models, 6 layers, 6 blobs']
    graph = Graph(nets / 'o.param')
    assert list(graph.blobs) == ['in', 'x', 'out', 'b/in', 'y', 'out2'] and len({words[1] for words in graph.lines}) == 6
    x = np.array([[[1, -2]]], np.float32)
    got = run_engine(nets / 'o.param', nets / 'o.bin', {'in': x, 'b/in': x}, ['out', 'out2'])
    np.testing.assert_array_equal(got['out'].ravel(), [3, 0])
    np.testing.assert_array_equal(got['out2'].ravel(), [0, 0])


def test_prefixes(nets):
    merge(nets, 'ab', '--prefix', 'one_', '--prefix', 'two_')
    assert 'two_/in' in Graph(nets / 'o.param').blobs and 'in' in Graph(nets / 'o.param').blobs
    merge(nets, 'ab', '--always')
    assert list(Graph(nets / 'o.param').blobs) == ['a/in', 'a/x', 'a/out', 'b/in', 'b/y', 'b/out2']


def test_one_model_many_times(nets):
    merge(nets, 'aaa')
    graph = Graph(nets / 'o.param')
    assert len(graph.blobs) == 9 and len({words[1] for words in graph.lines}) == 9
    assert (nets / 'o.bin').read_bytes() == WEIGHTS['a'] * 3


def test_names_that_end_as_new_ones_do(nets):
    """The third model's x cannot be a/x or a/x_, nor what x_ becomes then."""
    (nets / 'a.param').write_text(NETS['a'].replace('out', 'x_'))
    merge(nets, 'aaa')
    assert len(set(Graph(nets / 'o.param').blobs)) == 9


def test_a_prefixed_name_that_is_there_already(nets):
    (nets / 'b.param').write_text(NETS['b'].replace('y', 'b/in'))
    merge(nets, 'ab')
    assert list(Graph(nets / 'o.param').blobs) == ['in', 'x', 'out', 'b/in_', 'b/in', 'out2']


def test_custom_layers(nets):
    merge(nets, 'ac')
    assert Graph(nets / 'o.param').lines[-1] == ['MyLayer', 'm', '1', '1', 'data', 'out3', '0=4']


def test_trained_models(tmp_path, data):
    slim = data / 'models/slim-320/slim_320'
    out = tmp_path / 'o.param', tmp_path / 'o.bin'
    done = run_program('enginemerge', DIGITS / 'digits.param', DIGITS / 'digits.bin', f'{slim}.param', f'{slim}.bin', *out)
    assert done.returncode == 0, done.stderr
    rng = np.random.default_rng(1)
    digits, = Graph(DIGITS / 'digits.param').inputs.values()
    x = {'data': rng.uniform(0, 1, digits).astype(np.float32), 'input': rng.uniform(-1, 1, (3, 240, 320)).astype(np.float32)}
    got = run_engine(*out, x, ['prob', 'scores'])
    np.testing.assert_array_equal(
        got['prob'], run_engine(DIGITS / 'digits.param', DIGITS / 'digits.bin', {'data': x['data']}, ['prob'])['prob'])
    np.testing.assert_array_equal(
        got['scores'], run_engine(f'{slim}.param', f'{slim}.bin', {'input': x['input']}, ['scores'])['scores'])


def refused(folder, *args, code=1):
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    done = run_program('enginemerge', *args)
    assert done.returncode == code, done.stdout + done.stderr
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before
    assert last_line(done.stderr).startswith('enginemerge: ')
    return last_line(done.stderr)


def test_what_is_refused(nets):
    a, b, out = [nets / 'a.param', nets / 'a.bin'], [nets / 'b.param', nets / 'b.bin'], [nets / 'o.param', nets / 'o.bin']
    assert 'No such file' in refused(nets, *a, nets / 'no.param', b[1], *out)
    assert 'No such file' in refused(nets, *a, b[0], nets / 'no.bin', *out)
    assert 'is an input' in refused(nets, *a, *b, out[0], b[1])
    assert 'written' in refused(nets, *a, *b, out[0], '/dev/full')
    assert 'expected pairs' in refused(nets, *a, *b, out[0], code=2)
    assert 'expected pairs' in refused(nets, *a, code=2)
    (nets / 'b.bin').write_bytes(b'')
    assert '[Bias s]' in refused(nets, *a, *b, *out)


def test_version():
    assert re.fullmatch(r'quoll \d+\.\d+\.\d+\n', run_program('enginemerge', '--version').stdout)
