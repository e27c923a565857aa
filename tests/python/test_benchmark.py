"""The command line and the report of benchmark."""
import json
import re
import subprocess
import sys

import numpy as np
import pytest

from conftest import BIN, ROOT, last_line, run_program
from engine import run_engine

NET = ('7767517\n4 4\nInput in 0 1 in {size}\nConvolution conv 1 1 in conv 0=32 1=3 4=1 5=1 6=864\nReLU relu 1 1 conv relu\n'
       'InnerProduct fc 1 1 relu out 0=3 1=1 2=6144\n')


@pytest.fixture
def net(tmp_path):
    path = tmp_path / 'net.param'
    path.write_text(NET.format(size='0=8 1=8 2=3'))
    return path


def report(*args, tmp_path):
    file = tmp_path / 'report.json'
    done = run_program('benchmark', *args, '--json', file)
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads(file.read_text())


def test_rows_and_report(net, tmp_path):
    stdout, result = report('5', '1', '0', '-1', '0', f'param={net}', tmp_path=tmp_path)
    assert stdout.splitlines()[:5] == ['loop_count = 5', 'num_threads = 1', 'powersave = 0', 'gpu_device = -1', 'cooling_down = 0']
    (row,) = result['rows']
    assert row['model'] == 'net' and row['inputs'] == ['(3,8,8)'] and len(row['times_ms']) == 5
    assert 0 < row['min_ms'] <= row['median_ms'] <= row['max_ms'] and row['load_ms'] > 0 and row['peak_mib'] > 1
    assert row['median_ms'] == sorted(row['times_ms'])[2]
    assert result['threads'] == 1 and result['machine']['isa'] and result['date'].endswith('Z')
    words = stdout.splitlines()[5].split()
    assert words[0] == 'net' and words[1:3] == ['min', '=']


def test_shape_overrides_and_weights_are_saved(tmp_path):
    net = tmp_path / 'sized.param'
    net.write_text(NET.format(size=''))
    _, result = report('1', '1', f'param={net}', 'shape=[8,8,3]', '--save-weights', tmp_path, tmp_path=tmp_path)
    assert result['rows'][0]['inputs'] == ['(3,8,8)']
    weights = np.fromfile(tmp_path / 'sized.bin', np.float32)
    assert weights.size == 1 + 864 + 32 + 1 + 6144 + 3
    assert weights[0] == 0 and weights[897] == 0 and np.isfinite(weights).all() and 0 < np.abs(weights).max() < 1
    assert (weights[-3:] > 0).all()
    again = run_program('benchmark', '1', f'param={net}', f'bin={tmp_path}/sized.bin', 'shape=[8,8,3]')
    assert again.returncode == 0, again.stderr
    out = run_engine(net, tmp_path / 'sized.bin', {'in': np.ones((3, 8, 8), np.float32)}, ['out'])['out']
    assert out.shape == (3,) and np.isfinite(out).all()


def test_a_model_that_fails_is_one_row(net, tmp_path):
    (tmp_path / 'bad.param').write_text('7767517\n1 1\nFrobnicate f 0 1 out\n')
    done = run_program('benchmark', '1', '--models', tmp_path, '--json', tmp_path / 'r.json')
    assert done.returncode == 1
    assert 'Frobnicate' in last_line(done.stderr)
    rows = json.loads((tmp_path / 'r.json').read_text())['rows']
    assert [row['model'] for row in rows] == ['bad', 'net']
    assert 'Frobnicate' in rows[0]['error'] and rows[1]['median_ms'] > 0


def test_filter(net, tmp_path):
    (tmp_path / 'bad.param').write_text('7767517\n1 1\nFrobnicate f 0 1 out\n')
    done = run_program('benchmark', '1', '--models', tmp_path, '--filter', '^n')
    assert done.returncode == 0 and 'bad' not in done.stdout
    assert 'no model has such a name' in run_program('benchmark', '--models', tmp_path, '--filter', 'x').stderr
    assert '--filter' in run_program('benchmark', '--models', tmp_path, '--filter', '(').stderr


@pytest.mark.parametrize('args, says', [
    (['2', '1', '0', '65'], 'number of a device'),
    (['0'], 'loops'),
    (['2', '0'], 'threads'),
    (['2', '1', '7'], 'powersave'),
    (['1', '1', '0', '-1', '0', '9'], 'sixth number'),
    (['fast'], 'expected a number'),
    (['shape=[1,2,3]'], 'need param=FILE'),
    (['param=x', 'shape=1,2'], 'expected shape='),
    (['param=x', 'shape=[1,2'], 'expected shape='),
    (['param=x', 'shape=[0]'], 'expected shape='),
    (['param=x', 'shape=[1,2,3,4,5]'], 'expected shape='),
    (['param=x', 'shape=[99999999999999999999]'], 'expected shape='),
    (['--precision', 'fp7'], '--precision'),
])
def test_wrong_command_lines(args, says):
    done = run_program('benchmark', *args)
    assert done.returncode == 2 and says in last_line(done.stderr)


def test_what_is_read_is_not_overwritten(net, tmp_path):
    np.save(tmp_path / 'x.npy', np.ones((3, 8, 8), np.float32))
    for option, file in (('--json', net), ('--json', tmp_path / 'x.npy')):
        before = file.read_bytes()
        done = run_program('benchmark', '1', f'param={net}', '--input', f'in={tmp_path}/x.npy', option, file)
        assert done.returncode == 1 and 'is an input' in last_line(done.stderr)
        assert file.read_bytes() == before


def test_shapes_that_do_not_fit(net):
    done = run_program('benchmark', '1', f'param={net}', 'shape=[8,8,3],[4]')
    assert done.returncode == 1 and '2 shapes for 1 inputs' in last_line(done.stderr)
    done = run_program('benchmark', '1', f'param={net}', '--precision', 'int8')
    assert done.returncode == 1 and 'int8' in last_line(done.stderr)


def test_default_models_are_found_from_anywhere(tmp_path):
    done = run_program('benchmark', '1', '--warmup', '0', '--filter', '^squeezenet$')
    assert 'squeezenet' in done.stdout, done.stderr
    assert (ROOT / 'benchmark' / 'models' / 'squeezenet.param').exists()


def test_mobilenet_counts_the_published_multiply_accumulates(tmp_path):
    """568,741,376 with 1001 classes, as in TensorFlow's form; the bundled graph has 1000 classes, 1024 fewer."""
    text = (ROOT / 'benchmark/models/mobilenet_v1.param').read_text()
    assert '0=1000 1=1 2=1024000' in text
    net = tmp_path / 'mobilenet.param'
    net.write_text(text.replace('0=1000 1=1 2=1024000', '0=1001 1=1 2=1025024'))
    stdout, result = report('1', '1', f'param={net}', '--report', tmp_path=tmp_path)
    layers = result['rows'][0]['profile']['layers']
    assert sum(layer['macs'] for layer in layers) == 568741376
    assert '568741376' in stdout


def test_tune_times_the_forms_of_convolutions(net, tmp_path):
    stdout, result = report('1', '1', f'param={net}', '--tune', tmp_path=tmp_path)
    assert result['rows'][0]['tune'] in stdout
    line, summary = result['rows'][0]['tune'].splitlines()
    assert line.split()[:4] == ['8x8', '3>32', 'k3x3', 's1'] and line.count('*') == 1 and 'regret' in line
    taken, best = (float(summary.split(f' ms {word}')[0].split()[-1]) for word in ('as taken', 'at best'))
    assert summary.startswith('net: 1 convolutions') and taken >= best >= 0


def test_report_of_layers(net, tmp_path):
    stdout, result = report('3', '1', f'param={net}', '--report', tmp_path=tmp_path)
    for head in ('1. Warm Up', '2. Run without statistics', '3. Run with statistics', '4. Sort by Run Order',
                 '5. Sort by Computation Time (top-10)', '6. Stat by Op Type', '7. Stat by MACs', "8. Summary of Ops' Stat"):
        assert f'\n{head}' in stdout
    (row,) = result['rows']
    layers = row['profile']['layers']
    assert [layer['type'] for layer in layers] == ['Convolution', 'InnerProduct']  # ReLU is fused
    assert [layer['macs'] for layer in layers] == [32 * 27 * 64, 6144]
    assert layers[0]['filter'] == '32x3x3x3' and layers[0]['pad'] == '1x1' and layers[0]['output'] == '(32,8,8)'
    assert layers[1]['filter'] == '3x2048'
    assert row['blocks'] == 0 and row['peak_mib'] > 1
    for i, run in enumerate(row['profile']['runs_ms']):
        assert sum(layer['ms'][i] for layer in layers) <= run
        assert layers[0]['start_ms'][i] + layers[0]['ms'][i] <= layers[1]['start_ms'][i]


def test_profile_files(net, tmp_path):
    trace, page = tmp_path / 'p.json', tmp_path / 'p.html'
    assert run_program('benchmark', '2', '1', f'param={net}', '--profile', trace).returncode == 0
    events = [e for e in json.loads(trace.read_text())['traceEvents'] if e['ph'] == 'X']
    assert [e['name'] for e in events] == ['conv', 'fc'] * 2
    assert all(a['ts'] + a['dur'] <= b['ts'] + 1e-3 for a, b in zip(events, events[1:]))
    assert run_program('benchmark', '2', '1', f'param={net}', '--profile', page).returncode == 0
    text = page.read_text()
    assert text.startswith('<!DOCTYPE html>') and 'http' not in text
    (shown,) = json.loads(re.search(r'<script id="data"[^>]*>(.*?)</script>', text, re.S)[1])
    assert [(l['type'], l['name'], len(l['ms'])) for l in shown['profile']['layers']] == [('Convolution', 'conv', 2), ('InnerProduct', 'fc', 2)]
    done = run_program('benchmark', '1', f'param={net}', '--profile', 'p.txt')
    assert done.returncode == 2 and 'expected .json or .html' in last_line(done.stderr)
    assert run_program('benchmark', '1', f'param={net}', '--profile', tmp_path / 'no' / 'p.html').returncode == 1


def test_cliffs(tmp_path):
    """A scalar layer on channel blocks; in a net of it alone it takes nearly all the time."""
    net = tmp_path / 'cliff.param'
    net.write_text('7767517\n4 4\nInput in 0 1 in 0=64 1=64 2=32\nPooling p 1 1 in p 0=0 1=3 2=1 3=1 5=1\n'
                   'Flip f 1 1 p f -23300=1,2\nReLU r 1 1 f r\n')
    done = run_program('benchmark', '5', '1', '--cliffs', net)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    (first,) = [i for i, line in enumerate(lines) if line.startswith('cliffs: ')]
    words = lines[first + 1].split()
    assert words[4] == 'Flip' and words[5] == 'scalar' and float(words[0]) > 1
    assert run_program('benchmark', '5', '1', '--cliffs', '--ceiling', '0', net).returncode == 1
    assert run_program('benchmark', '5', '1', '--cliffs', '--ceiling', '101', net).returncode == 2


def test_layer_sweep():
    sweep = [sys.executable, ROOT / 'benchmark' / 'layer_sweep.py', '--loops', '1', '--bin', BIN / 'benchmark']
    done = subprocess.run([*sweep, '--filter', r'24>24 k3x3 g3$|^ReLU$|^deconvolution 4x4'], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 4 and sum('GFLOP/s' in line for line in lines) == 3 and sum('GB/s' in line for line in lines) == 1
    assert subprocess.run([*sweep[:-1], '/bin/false', '--filter', '^ReLU$'], capture_output=True, text=True).stdout.split() == ['ReLU', 'failed']


def test_decoder_of_published_sizes(tmp_path):
    path = tmp_path / 'decoder.param'
    make = [sys.executable, ROOT / 'benchmark' / 'make_decoder.py', 'qwen2_5_0_5b', path, '--blocks', '1']
    subprocess.run(make, check=True)
    done = run_program('bench_llm', path, '--prompt', '3', '--tokens', '2', '--rounds', '1')
    assert re.fullmatch(r'best: [\d.]+ and [\d.]+ tokens/s', last_line(done.stdout)), done.stderr
