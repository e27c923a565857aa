"""Whole models: trained ones against recorded answers, graphs without weights for running at all, the oracles' own scripts."""
import re
import subprocess
import sys

import numpy as np
import pytest

from conftest import BIN, DATA, ROOT, last_line, run_program
from engine import difference, run_engine
from levels import host_levels

DIGITS = ROOT / 'models' / 'digits'
# A limit on the largest difference, in parts of the output's range: fp32 sums in another order stay well below.
LIMIT = 1e-4
TRAINED = {'slim-320/slim_320': 'slim-320/slim_320.npz', 'fastestdet/FastestDet': 'fastestdet/FastestDet.npz'}
BENCH_GRAPHS = sorted(p.stem for p in (DATA / 'models/ncnn-bench').glob('*.param')
                      if not p.stem.endswith('_int8') and p.stem != 'vision_transformer') if DATA else ['QUOLL_DATA is not set']


@pytest.mark.parametrize('light', ['light', 'no-light'])
@pytest.mark.parametrize('threads', [1, 2])
@pytest.mark.parametrize('level', host_levels())
@pytest.mark.parametrize('model', TRAINED)
def test_trained_model(data, model, level, threads, light):
    answers = np.load(data / 'models' / TRAINED[model])
    inputs = {k[3:]: answers[k] for k in answers.files if k.startswith('in:')}
    expected = {k[4:]: answers[k] for k in answers.files if k.startswith('out:')}
    path = data / 'models' / model
    args = ['--threads', threads] + (['--no-light-mode'] if light == 'no-light' else [])
    got = run_engine(f'{path}.param', f'{path}.bin', inputs, expected, *args, env={'QUOLL_CPU_MASK': level})
    for name in expected:
        assert difference(got[name], expected[name]) <= LIMIT, name


# slim-320 takes any size; FastestDet joins grids that fit only at multiples of 32.
@pytest.mark.parametrize('model, input_name, outputs, size', [
    ('slim-320/slim_320', 'input', ['scores', 'boxes'], size) for size in [(1, 1), (7, 333), (97, 131), (239, 321), (480, 17)]
] + [('fastestdet/FastestDet', 'input.1', ['758'], size) for size in [(32, 32), (96, 160), (288, 352)]])
def test_fast_layers_agree_with_reference_at_odd_sizes(data, model, input_name, outputs, size):
    x = {input_name: np.random.default_rng(3).uniform(-1, 1, (3, *size)).astype(np.float32)}
    path = data / 'models' / model
    reference = run_engine(f'{path}.param', f'{path}.bin', x, outputs, '--reference')
    for args in ([], ['--no-packing'], ['--threads', '2']):
        got = run_engine(f'{path}.param', f'{path}.bin', x, outputs, *args)
        for name in outputs:
            assert difference(got[name], reference[name]) <= LIMIT, (name, args)


@pytest.mark.parametrize('graph', BENCH_GRAPHS)
def test_bench_graph_runs(data, graph):
    done = run_program('benchmark', '1', '2', '0', '-1', '0', f'param={data}/models/ncnn-bench/{graph}.param', '--warmup', '0')
    assert done.returncode == 0, last_line(done.stderr)


def layer_types():
    return set(re.findall(r'^QUOLL_LAYER\w*\(\d+, (\w+),', (ROOT / 'src/layer/layer_list.inc').read_text(), re.M))


def run_script(summary, *command):
    """Runs an oracle's script; its summary line must say that all is good (its exit code is not always 0 then)."""
    done = subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True, timeout=3600)
    found = re.search(summary, done.stdout, re.M)
    assert found, done.stdout + done.stderr
    good, total = map(int, found.groups())
    assert good == total > 0, done.stdout


@pytest.mark.parametrize('cases, level', [('cases', host_levels()[-1])] + [('cases-more', level) for level in host_levels()])
def test_oracle_cases(data, cases, level):
    """The single-layer cases of every operator that this engine has; `more`: expressions and equations as pnnx writes them."""
    run_script(r'^(\d+) of (\d+) single-layer cases', data / 'oracle/check_cases.py', BIN / 'enginerun',
               data / f'oracle/{cases}.tar.xz', '--ops', ','.join(sorted(layer_types())), '--', '--isa', level)


def test_oracle_graphs(data):
    run_script(r'^(\d+) of (\d+) whole graphs', data / 'oracle/graphs.py', BIN / 'enginerun', data / 'oracle/graphs.npz',
               data / 'models/ncnn-bench')


@pytest.mark.parametrize('level', host_levels())
def test_digits_answers(level):
    answers = np.load(DIGITS / 'digits_reference.npz')
    got = run_engine(DIGITS / 'digits.param', DIGITS / 'digits.bin', {'data': answers['data']}, ['fc', 'prob'], '--batch',
                     env={'QUOLL_CPU_MASK': level})
    n = len(answers['data'])
    assert difference(got['fc'].reshape(n, 10), answers['logits_torch']) <= LIMIT
    assert difference(got['prob'].reshape(n, 10), answers['prob_torch']) <= LIMIT


@pytest.mark.parametrize('precision, least', [('fp32', 359), ('fp16', 358), ('bf16', 356)])
def test_digits_accuracy(precision, least):
    """Of the 360 held-out images PyTorch, ONNX Runtime and ncnn read 359 right."""
    heldout = np.load(DIGITS / 'heldout.npz')
    data = heldout['images'][:, None].astype(np.float32) / 255
    prob = run_engine(DIGITS / 'digits.param', DIGITS / 'digits.bin', {'data': data}, ['prob'], '--batch', '--precision',
                      precision)['prob']
    right = int((prob.reshape(len(data), 10).argmax(1) == heldout['labels']).sum())
    assert least <= right <= 360
    if precision == 'fp32':
        assert right == 359
