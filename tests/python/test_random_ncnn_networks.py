"""Random networks of ncnn's layers (random_ncnn_network.py): as they are, in smaller floats, with int8 layers, on a Vulkan device,
and written anew, for ncnn.

QUOLL_NETWORKS=FIRST:COUNT takes other seeds.
"""
import os

import numpy as np
import pytest

ncnn = pytest.importorskip('ncnn')

from conftest import GPU, run_program  # noqa: E402
from engine import run_engine  # noqa: E402
from levels import host_levels  # noqa: E402
from random_ncnn_network import network, plain_net  # noqa: E402

FIRST, COUNT = map(int, os.environ.get('QUOLL_NETWORKS', '0:12').split(':'))
SEEDS = range(FIRST, FIRST + COUNT)
# By --precision: error as a share of the largest value where nothing amplifies it, and the change of every blob, as a share of each
# value, that has an effect as large as the rounding of all of them.
BOUNDS = {'fp32': (1e-4, 2e-5), 'fp16': (4e-3, 1.5e-3), 'bf16': (3e-2, 1e-2)}


def check(m, seed, precision, folder, names, *options):
    m.save(folder, split=seed % 3 > 0)
    inputs = {name: m.values[name] for name in m.inputs()}
    want = m.answers(inputs)
    least, change = BOUNDS[precision]
    moved = [m.answers(inputs, change, i) for i in range(3)]
    got = run_engine(folder / 'm.param', folder / 'm.bin', inputs, names, '--precision', precision, *options)
    for name in names:
        expected = want[name].astype(np.float64)
        assert (got[name].dtype, got[name].shape) == (want[name].dtype, expected.shape), name
        error, moves = np.abs(got[name] - expected), [np.abs(other[name] - expected) for other in moved]
        largest = max(np.abs(expected).max(), 1e-3)
        if m.int8:  # a value may fall on the other side of a step of the quantisation, and what follows with it
            assert error.mean() <= max(0.006 * largest, 3 * max(x.mean() for x in moves)), name
            least = 0.08
        assert error.max() <= max(least * largest, 3 * max(x.max() for x in moves)), name


def run_ncnn(folder, inputs, names):
    net = plain_net()
    assert net.load_param(str(folder / 'm.param')) == 0 and net.load_model(str(folder / 'm.bin')) == 0
    ex = net.create_extractor()
    for name, value in inputs.items():
        ex.input(name, ncnn.Mat(value).clone())
    return {name: np.array(ex.extract(name)[1]) for name in names}


def outputs_and_others(m, seed):
    """Outputs alone, or some blobs within, which fusion may have done away with."""
    others = [name for name in m.values if name not in m.inputs()]
    return m.outputs() if seed % 2 else np.random.default_rng(seed).permutation(others)[:4].tolist()


@pytest.mark.parametrize('int8', [False, True])
@pytest.mark.parametrize('seed', SEEDS)
def test_floats(seed, int8, tmp_path):
    m = network(seed, int8)
    check(m, seed, 'fp32', tmp_path, m.outputs(), '--threads', '1')
    levels = host_levels()
    check(m, seed, 'fp32', tmp_path, outputs_and_others(m, seed), '--threads', '3', '--isa', levels[seed % len(levels)])


@pytest.mark.parametrize('precision', ['fp16', 'bf16'])
@pytest.mark.parametrize('seed', SEEDS)
def test_storage(seed, precision, tmp_path):
    m = network(seed)
    check(m, seed, precision, tmp_path, m.outputs())


@pytest.mark.parametrize('seed', SEEDS)
def test_written_files_are_read_by_ncnn(seed, tmp_path):
    """Parameters that equal a default are left out."""
    m = network(seed)
    m.save(tmp_path)
    (tmp_path / 'written').mkdir()
    done = run_program('engineoptimize', '--no-fusion', tmp_path / 'm.param', tmp_path / 'm.bin', tmp_path / 'written/m.param', tmp_path / 'written/m.bin', '0')
    assert done.returncode == 0, done.stderr
    inputs = {name: m.values[name] for name in m.inputs()}
    want, got = (run_ncnn(folder, inputs, m.outputs()) for folder in (tmp_path, tmp_path / 'written'))
    for name, expected in want.items():
        np.testing.assert_allclose(got[name], expected, 1e-5, 1e-5 * np.abs(expected).max())


@pytest.mark.parametrize('seed', SEEDS)
def test_gpu(seed, tmp_path):
    if run_program('bench_gpu', '--list').returncode:
        pytest.skip('no Vulkan device')
    m = network(seed)
    check(m, seed, ('fp32', 'fp16', 'fp32', 'bf16')[seed % 4], tmp_path, m.outputs(), '--gpu', GPU or '0')
