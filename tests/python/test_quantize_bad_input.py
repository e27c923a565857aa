"""enginequantize with what it cannot use: each is named, and outputs are whole or not there."""
import json
import os
import re

import numpy as np
import pytest

from conftest import last_line, run_program
from engine import run_engine
from quantizing import DIGITS, digits, digits_model, one_layer, quantize

pytestmark = pytest.mark.skipif('ENGINERUN_PREFIX' in os.environ, reason='the same on every machine')


@pytest.mark.parametrize('text, word', [('fc 1 x\n', 'line 1'), ('', 'no scales'), ('fc\n', 'no scales behind'),
                                        ('fc_param_0 1 2\nfc 3\n', 'expected 10'), ('other_param_0 1\nother 1\n', 'no scales for any'),
                                        ('fc_param_0 ' + '1 ' * 10 + '\n', 'none of its input')])
def test_bad_tables(text, word, tmp_path):
    (tmp_path / 't').write_text(text)
    done = run_program('ncnn2int8', *digits_model(), tmp_path / 'q.param', tmp_path / 'q.bin', tmp_path / 't')
    assert done.returncode == 1 and word in last_line(done.stderr)
    assert not (tmp_path / 'q.param').exists()


@pytest.mark.parametrize('text, word', [
    ('{', 'parse error'), ('[]', 'expected a mapping'), ('{"layer": {}}', "unknown key 'layer'"), ('{"version": 2}', 'version'),
    ('{"layers": {"fc": "int9"}}', "'int9'"), ('{"layers": {"nobody": "float"}}', "no layer 'nobody'"),
    ('{"quantizer_targets": {"activations": [{"bitwidth": 8}]}}', 'activations[0]: target_name'),
    ('{"quantizer_targets": {"activations": [{"target_name": "data", "bitwidth": 17}]}}', 'activations[0].bitwidth'),
    ('{"quantizer_targets": {"activations": [{"target_name": "data", "quantizer": {"type": "LogTholdQuantizer"}}]}}', 'LogThold'),
    ('{"quantizer_targets": {"activations": [{"target_name": "data", "quantizer": {"type": "ConstantQuantizer"}}]}}', 'min_vals')])
def test_bad_overrides(text, word, digits, tmp_path):
    (tmp_path / 'o.json').write_text(text)
    done = quantize(digits_model(), tmp_path / 'q', '--data', digits[0] / 'x.npy', '--override', tmp_path / 'o.json', code=1)
    assert word in last_line(done.stderr)


def test_samples_of_an_input_that_says_no_size(tmp_path):
    """An array of several samples is one of them, until --shape says how many axes these have."""
    (tmp_path / 'm.param').write_text('7767517\n2 2\nInput x 0 1 x\nConvolution c 1 1 x y 0=2 1=1 6=6\n')
    np.arange(7, dtype=np.float32).tofile(tmp_path / 'm.bin')
    np.save(tmp_path / 'x.npy', np.random.default_rng(1).normal(size=(4, 3, 5, 6)).astype(np.float32))
    model = tmp_path / 'm.param', tmp_path / 'm.bin'
    done = quantize(model, tmp_path / 'q', '--data', tmp_path / 'x.npy', code=1)
    assert 'if an array holds several samples, --shape INPUT=... says what one is' in last_line(done.stderr)
    quantize(model, tmp_path / 'q', '--data', tmp_path / 'x.npy', '--shape', 'x=3,5,6')


def test_unreadable_images(tmp_path):
    images = tmp_path / 'images'
    images.mkdir()
    for i in range(10):
        (images / f'{i}.png').write_bytes((DIGITS / 'images' / f'{i}.png').read_bytes())
    (images / 'broken.png').write_bytes(b'\x89PNG no')
    (images / 'empty.jpg').write_bytes(b'')
    args = '--data', images, '--norm', 1 / 255, '--holdout', 0
    done = quantize(digits_model(), tmp_path / 'q', *args)
    assert 'broken.png' in done.stderr and 'empty.jpg' in done.stderr and done.stderr.count('skipped') == 2
    assert '10 samples to calibrate with' in done.stderr
    (tmp_path / 'q.param').unlink()
    done = quantize(digits_model(), tmp_path / 'q', *args, '--strict', code=1)
    assert 'broken.png' in done.stderr or 'empty.jpg' in done.stderr
    assert not (tmp_path / 'q.param').exists()


def test_numbers_that_are_none(tmp_path):
    rng = np.random.default_rng(5)
    x = rng.normal(size=(30, 6)).astype(np.float32)
    x[4, 2] = np.nan
    np.save(tmp_path / 'x.npy', x)
    model = one_layer(tmp_path, rng.normal(size=(3, 6)).astype(np.float32))
    done = quantize(model, tmp_path / 'q', '--data', tmp_path / 'x.npy', '--holdout', 0)
    assert "x.npy[4]: input 'data' has values that are NaN" in done.stderr and done.stderr.count('skipped') == 1
    weight = rng.normal(size=(3, 6)).astype(np.float32)
    weight[1, 1] = np.inf
    done = quantize(one_layer(tmp_path, weight), tmp_path / 'q', '--data', tmp_path / 'x.npy', '--holdout', 0)
    assert 'stays in float' in done.stderr and ' 8=' not in (tmp_path / 'q.param').read_text()


def test_no_sample_of_numbers(tmp_path):
    np.save(tmp_path / 'x.npy', np.full((30, 6), np.nan, np.float32))
    model = one_layer(tmp_path, np.ones((3, 6), np.float32))
    done = quantize(model, tmp_path / 'q', '--data', tmp_path / 'x.npy', '--holdout', 0, code=1)
    assert done.stderr.count('skipped: ') == 30 and 'none of the 30 samples' in last_line(done.stderr)
    assert not list(tmp_path.glob('q.*'))


def test_held_out_samples_that_are_no_numbers(tmp_path):
    """Half of them are held out: wherever the one is, it is named, and --strict stops at it."""
    rng = np.random.default_rng(5)
    model = one_layer(tmp_path, rng.normal(size=(3, 6)).astype(np.float32))
    for bad in range(6):
        x = rng.normal(size=(6, 6)).astype(np.float32)
        x[bad, 1] = np.inf
        np.save(tmp_path / 'x.npy', x)
        args = '--data', tmp_path / 'x.npy', '--holdout', 0.5
        done = quantize(model, tmp_path / 'q', *args)
        assert done.stderr.count(f'skipped: {tmp_path}/x.npy[{bad}]') == 1
        (tmp_path / 'q.param').unlink()
        done = quantize(model, tmp_path / 'q', *args, '--strict', code=1)
        assert f'x.npy[{bad}]' in last_line(done.stderr) and not (tmp_path / 'q.param').exists()


def test_only_held_out_samples_are_no_numbers(tmp_path):
    rng = np.random.default_rng(5)
    model, named = one_layer(tmp_path, rng.normal(size=(3, 6)).astype(np.float32)), 0
    for bad in range(3):
        x = rng.normal(size=(3, 6)).astype(np.float32)
        x[bad] = np.nan
        np.save(tmp_path / 'x.npy', x)
        done = quantize(model, tmp_path / 'q', '--data', tmp_path / 'x.npy', '--holdout', 0.34)
        named += 'on 2 samples, which were calibrated with too' in done.stdout
        assert f'x.npy[{bad}]' in done.stderr
    assert named == 1


def test_constant_activations(tmp_path):
    np.save(tmp_path / 'x.npy', np.zeros((30, 6), np.float32))
    model = one_layer(tmp_path, np.ones((3, 6), np.float32))
    done = quantize(model, tmp_path / 'q', '--data', tmp_path / 'x.npy')
    assert done.stderr.count("'data' was always 0") == 1
    np.save(tmp_path / 'x.npy', np.full((30, 6), 0.25, np.float32))
    for method in 'kl', 'aciq', 'mse', 'percentile', 'minmax':
        quantize(model, tmp_path / 'q', '--data', tmp_path / 'x.npy', '--method', method)
        got = run_engine(tmp_path / 'q.param', tmp_path / 'q.bin', {'data': np.full(6, 0.25, np.float32)}, ['out'])['out']
        np.testing.assert_allclose(got, 1.5, rtol=0.02)


def test_activations_of_denormal_numbers(tmp_path):
    """4096 bins over a range that small are more than a float holds."""
    rng = np.random.default_rng(5)
    np.save(tmp_path / 'x.npy', (rng.random((30, 6)) * 1e-40).astype(np.float32))
    model = one_layer(tmp_path, np.ones((3, 6), np.float32))
    done = quantize(model, tmp_path / 'q', '--data', tmp_path / 'x.npy')
    assert "[InnerProduct fc] stays in float: its input 'data' is too small to have a scale" in done.stderr


def test_samples_that_the_model_does_not_run_on(tmp_path):
    """Inputs of other sizes or types, whether they are calibrated with or held out: named, left out, and --strict stops."""
    rng = np.random.default_rng(5)
    (tmp_path / 'm.param').write_text('7767517\n2 2\nInput in 0 1 data\nConvolution c 1 1 data out 0=3 1=1 6=12\n')
    np.concatenate([[0], rng.normal(size=12)]).astype(np.float32).tofile(tmp_path / 'm.bin')
    model, data = (tmp_path / 'm.param', tmp_path / 'm.bin'), tmp_path / 'data'
    data.mkdir()
    for bad in range(6):
        for i in range(6):
            np.save(data / f'{i}.npy', rng.normal(size=(4, 5, 5)).astype(np.float32))
        np.save(data / f'{bad}.npy', (rng.normal(size=(4, 5, 5)) * 9).astype(np.int32) if bad % 2 else np.ones((2, 5, 5), np.float32))
        args = '--data', data, '--holdout', 0.5, '--report', tmp_path / 'r'
        for more in [], ['--method', 'eq', '--rounding', 'reconstruct']:
            done = quantize(model, tmp_path / 'q', *args, *more)
            assert done.stderr.count(f'skipped: {data}/{bad}.npy: the model does not run on it') == 1
            assert 'expected' in done.stderr and re.search('on [23] samples held out', done.stdout)
        (tmp_path / 'q.param').unlink()
        done = quantize(model, tmp_path / 'q', *args, '--strict', code=1)
        assert f'{data}/{bad}.npy: the model does not run on it' in done.stderr and not (tmp_path / 'q.param').exists()


def test_layers_that_no_numbers_reach(tmp_path):
    """Logarithms of negative numbers inside the net."""
    weight = np.ones((3, 6), np.float32)
    (tmp_path / 'm.param').write_text('7767517\n4 4\nInput in 0 1 data 0=6\nInnerProduct first 1 1 data a 0=3 2=18\n'
                                      'UnaryOp log 1 1 a b 0=8\nInnerProduct second 1 1 b out 0=3 2=9\n')
    tag = np.zeros(1, np.float32)
    np.concatenate([tag, -weight.ravel(), tag, np.ones(9, np.float32)]).tofile(tmp_path / 'm.bin')
    np.save(tmp_path / 'x.npy', np.random.default_rng(1).uniform(1, 2, (30, 6)).astype(np.float32))
    done = quantize((tmp_path / 'm.param', tmp_path / 'm.bin'), tmp_path / 'q', '--data', tmp_path / 'x.npy')
    assert "[InnerProduct second] stays in float: all values of its input 'b' were NaN or infinite" in done.stderr
    kinds = {line.split()[1]: ' 8=' in line for line in (tmp_path / 'q.param').read_text().splitlines()[2:]}
    assert kinds['first'] and not kinds['second']


def test_ranges_of_a_layer_that_no_data_reach(digits, tmp_path):
    """A file of ranges that leaves one out, without data: that layer alone stays in float."""
    names = ['data', 'stem', 'dw1', 'pool1', 'dw2', 'pool2']
    (tmp_path / 'log').write_text('\n'.join(f'{name}@@0,3' for name in names))
    ranges = {'quantizer_targets': {'activations': [{'target_name': 'data', 'bitwidth': 8, 'quantizer': {
        'type': 'ConstantQuantizer', 'settings': {'min_vals': 0, 'max_vals': 1}}}]}}
    (tmp_path / 'o.json').write_text(json.dumps(ranges))
    done = quantize(digits_model(), tmp_path / 'q', '--override', tmp_path / 'o.json', '--range-log', tmp_path / 'log', '--no-fusion')
    assert "no data reached its input 'add'" in done.stderr and done.stderr.count('stays in float') >= 1


def test_too_few_samples_to_hold_out(digits, tmp_path):
    folder, images, _ = digits
    np.save(tmp_path / 'one.npy', images[0])
    done = quantize(digits_model(), tmp_path / 'q', '--data', tmp_path / 'one.npy')
    assert '1 sample to calibrate with; ranges want a hundred or more' in done.stderr
    assert 'which were calibrated with too' in done.stdout


def test_outputs_that_cannot_be_written(digits, tmp_path):
    """The second file's place is a folder: the first is not left behind."""
    folder, _, _ = digits
    (tmp_path / 'q.bin').mkdir()
    done = quantize(digits_model(), tmp_path / 'q', '--data', folder / 'x.npy', '--limit', 30, code=1)
    assert 'q.bin' in last_line(done.stderr) and not (tmp_path / 'q.param').exists()


@pytest.mark.parametrize('args', [[], ['--table', 'missing/t', '--kind', 'int8'], ['--write-override', 'missing/o'], ['--report', 'x.npy']])
def test_folders_that_cannot_be_written(args, digits, tmp_path):
    """Told before the data are looked at, which are no numbers here."""
    np.save(tmp_path / 'x.npy', np.full((30, 1, 8, 8), np.nan, np.float32))
    args = [tmp_path / word if '/' in word or '.' in word else word for word in args]
    out = tmp_path / 'q' if args else tmp_path / 'missing/q'
    done = quantize(digits_model(), out, '--data', tmp_path / 'x.npy', *args, code=1)
    assert 'cannot be created: N' in last_line(done.stderr) and 'skipped' not in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ['x.npy']


@pytest.mark.parametrize('args, word', [
    (['--shape', 'nobody=1,1,8,8'], "--shape: no blob 'nobody'"), (['--method', 'median'], 'expected best|kl'), (['--kind', 'int5'], '--kind'), (['--layer', 'fc'], '--layer'),
    (['--layer', 'nobody=float'], "no layer 'nobody'"), (['--range', 'data=1'], '--range'), (['--range', 'nobody=0,1'], 'nobody'),
    (['--method', 'constant'], '--constant'), (['--labels', 'missing'], 'missing'), (['--data', 'missing'], 'missing'),
    (['--mean', '1,x'], '--mean'), (['--pixel', 'CMYK'], 'CMYK'), (['--resize', '3'], '--resize'), (['--max-drop', 'x'], '--max-drop'), (['--budget', 'cost=3'], '--budget'),
    (['--kind', 'affine', '--table', 't'], "scales of --kind int8, not of 'affine'")])
def test_bad_arguments(args, word, digits, tmp_path):
    folder, _, _ = digits
    data = [] if '--data' in args else ['--data', folder / 'x.npy']
    done = quantize(digits_model(), tmp_path / 'q', *data, *args, code=1)
    assert word in last_line(done.stderr)
    assert not list(tmp_path.glob('q.*'))


@pytest.mark.parametrize('args, word', [
    (['--from-table', 't', '--kind', 'block4'], '--kind: with --from-table'), (['--from-table', 't', '--layer', 'fc=float'], '--layer: '),
    (['--from-table', 't', '--max-drop', '1%'], '--max-drop: '), (['--from-table', 't', '--range', 'data=0,1'], '--range: '),
    (['--from-table', 't', '--method', 'kl'], '--method: '), (['--kind', 'weights8', '--rounding', 'reconstruct'], 'needs --data'),
    (['--kind', 'weights8', '--labels', 'x'], '--labels needs --data'), (['--kind', 'weights8', '--test-labels', 'x'], 'needs --test')])
def test_options_without_effect(args, word, tmp_path):
    assert word in last_line(quantize(digits_model(), tmp_path / 'q', *args, code=1).stderr)
    assert not list(tmp_path.iterdir())


def test_no_data(tmp_path):
    assert 'affine needs samples' in last_line(quantize(digits_model(), tmp_path / 'q', code=1).stderr)
    assert 'int8 needs samples' in last_line(quantize(digits_model(), tmp_path / 'q', '--table', tmp_path / 't', code=1).stderr)
    (tmp_path / 'empty').mkdir()
    (tmp_path / 'empty.txt').write_text('# nothing\n')
    assert "no samples of input 'data'" in last_line(quantize(digits_model(), tmp_path / 'q', '--data', tmp_path / 'empty.txt', code=1).stderr)
    assert 'no images' in last_line(quantize(digits_model(), tmp_path / 'q', '--data', tmp_path / 'empty', code=1).stderr)


def test_inputs_of_several_items(tmp_path):
    """An array whose first axis the model fixes, as a state of two layers, is one sample, and more of them are as many as they hold."""
    rng = np.random.default_rng(6)
    (tmp_path / 'm.param').write_text('7767517\n2 2\nInput data 0 1 data 0=6 1=1 20=3 -23321=3,2,1,6 22=1 23=1\n'
                                      'InnerProduct fc 1 1 data out 0=4 2=24\n')
    np.concatenate([[0], rng.normal(size=24)]).astype(np.float32).tofile(tmp_path / 'm.bin')
    model, words = (tmp_path / 'm.param', tmp_path / 'm.bin'), []
    for i in range(3):
        np.save(tmp_path / f'{i}.npy', rng.normal(size=(2, 1, 6)).astype(np.float32))
        words.append(tmp_path / f'{i}.npy')
    np.save(tmp_path / 'many.npy', rng.normal(size=(9, 1, 6)).astype(np.float32))
    for data, count in (words, 3), ([tmp_path / 'many.npy'], 9):
        done = quantize(model, tmp_path / 'q', '--data', *data, '--holdout', 0)
        assert f'warning: {count} samples to calibrate with' in done.stderr
