"""ncnn2int8's forms that need no table: answers near those in float, and the ncnn wheel's on the same files."""
import os

import numpy as np
import pytest

from conftest import last_line, run_program
from engine import run_engine
from quantize_sweep import in_ncnn

pytestmark = pytest.mark.skipif('ENGINERUN_PREFIX' in os.environ, reason='the same on every machine')

# Inputs (name, sizes), the layer's line, weights (a tag before them, how many), and the noise in parts of the largest answer that int8 may make.
CASES = {
    'self attention': ([('x', 11, 32)], 'MultiHeadAttention l 1 1 x y 0=32 1=4 2=1024', [(True, 1024), (False, 32)] * 4, 0.06),
    'cross attention with a mask': ([('x', 7, 20), ('k', 13, 24), ('m', 7, 13)], 'MultiHeadAttention l 3 1 x k m y 0=32 1=4 2=640 3=24 4=24 5=1',
                                    [(True, 640), (False, 32), (True, 768), (False, 32), (True, 768), (False, 32), (True, 640), (False, 20)], 0.06),
    'SDPA': ([('q', 4, 9, 16), ('k', 2, 13, 16), ('v', 2, 13, 24)], 'SDPA l 3 1 q k v y', [], 0.06),
    'Gemm, constant B': ([('x', 5, 24)], 'Gemm l 1 1 x y 3=1 5=1 6=1 8=40 9=24 10=4', [(True, 960), (True, 40)], 0.04),
    'Gemm, constant B by inputs': ([('x', 5, 24)], 'Gemm l 1 1 x y 5=1 6=1 8=40 9=24 10=4', [(True, 960), (True, 40)], 0.04),
    'Gemm, constant A': ([('x', 24, 5)], 'Gemm l 1 1 x y 4=1 6=1 7=40 9=24 10=-1', [(True, 960)], 0.04),
    'Gemm, constant A by inputs': ([('x', 24, 5)], 'Gemm l 1 1 x y 2=1 4=1 6=1 7=40 9=24 10=-1', [(True, 960)], 0.04),
    'Gemm of two inputs': ([('x', 5, 24), ('z', 24, 7)], 'Gemm l 2 1 x z y', [], 0.04),
    'LSTM': ([('x', 6, 16)], 'LSTM l 1 1 x y 0=8 1=512', [(True, 512), (True, 32), (True, 256)], 0.04),
}


@pytest.mark.parametrize('name', CASES)
def test_form(name, tmp_path):
    blobs, line, weights, noise = CASES[name]
    rng = np.random.default_rng(5)
    sizes = {n: ' '.join(f'{i}={v}' for i, v in zip((0, 1, 2), s[::-1])) for n, *s in blobs}
    lines = [f'Input {n} 0 1 {n} {sizes[n]}' for n, *_ in blobs] + [line]
    (tmp_path / 'm.param').write_text('\n'.join(['7767517', f'{len(lines)} {len(lines)}', *lines]) + '\n')
    with open(tmp_path / 'm.bin', 'wb') as file:
        for tag, count in weights:
            np.zeros(int(tag), np.float32).tofile(file)
            (rng.normal(size=count) / 5).astype(np.float32).tofile(file)
    inputs = {n: rng.normal(size=s).astype(np.float32) for n, *s in blobs}
    model, made = (tmp_path / 'm.param', tmp_path / 'm.bin'), (tmp_path / 'q.param', tmp_path / 'q.bin')
    exact = run_engine(*model, inputs, ['y'])['y']
    done = run_program('ncnn2int8', *model, *made)
    assert done.returncode == 0 and done.stdout == '1 layers in int8\n', last_line(done.stderr)
    got = run_engine(*made, inputs, ['y'])['y']
    assert 0 < np.abs(got - exact).max() < noise * np.abs(exact).max()
    theirs = in_ncnn(*made, inputs, ['y'])
    if theirs != 'no ncnn wheel':
        np.testing.assert_allclose(got, theirs['y'].reshape(got.shape), atol=1e-5 * np.abs(exact).max())


def test_embed(tmp_path):
    """A table of words, one scale for all of it."""
    table = np.random.default_rng(5).normal(size=(50, 12)).astype(np.float32)
    (tmp_path / 'm.param').write_text('7767517\n2 2\nInput w 0 1 w 0=7\nEmbed l 1 1 w y 0=12 1=50 3=600\n')
    np.concatenate([np.zeros(1, np.float32), table.ravel()]).tofile(tmp_path / 'm.bin')
    words = np.array([3, 0, 49, 7, 7, 12, 30], np.int32)
    assert run_program('ncnn2int8', tmp_path / 'm.param', tmp_path / 'm.bin', tmp_path / 'q.param', tmp_path / 'q.bin').returncode == 0
    got = run_engine(tmp_path / 'q.param', tmp_path / 'q.bin', {'w': words}, ['y'])['y']
    step = np.abs(table).max() / 127
    np.testing.assert_allclose(got, np.rint(table[words] / step) * step, atol=1e-6)


def test_convolution_that_ncnn_has_no_int8_form_of(tmp_path):
    """Of one axis: ncnn would read its bytes as floats."""
    rng = np.random.default_rng(5)
    (tmp_path / 'm.param').write_text('7767517\n2 2\nInput x 0 1 x 0=6 1=5\nConvolution1D l 1 1 x y 0=4 1=3 5=1 6=60\n')
    np.concatenate([np.zeros(1), rng.normal(size=64)]).astype(np.float32).tofile(tmp_path / 'm.bin')
    (tmp_path / 'm.table').write_text('l_param_0 40 40 40 40\nl 40\n')
    model, made = (tmp_path / 'm.param', tmp_path / 'm.bin'), (tmp_path / 'q.param', tmp_path / 'q.bin')
    done = run_program('ncnn2int8', *model, *made, tmp_path / 'm.table')
    assert done.returncode == 0 and done.stdout == '0 layers in int8\n'
    assert '[Convolution1D l] stays in float: ncnn has no int8 form of it' in done.stderr
    x = {'x': rng.normal(size=(5, 6)).astype(np.float32)}
    np.testing.assert_array_equal(run_engine(*made, x, ['y'])['y'], run_engine(*model, x, ['y'])['y'])


def test_weights_that_are_no_numbers(tmp_path):
    (tmp_path / 'm.param').write_text('7767517\n2 2\nInput x 0 1 x 0=4 1=2\nGemm l 1 1 x y 3=1 5=1 6=1 8=2 9=4 10=-1\n')
    np.array([0, 1, 2, np.nan, 4, 5, 6, 7, 8], np.float32).tofile(tmp_path / 'm.bin')
    done = run_program('ncnn2int8', tmp_path / 'm.param', tmp_path / 'm.bin', tmp_path / 'q.param', tmp_path / 'q.bin')
    assert done.returncode == 0 and done.stdout == '0 layers in int8\n'
    assert '[Gemm l] stays in float: its weights are not there as finite numbers' in done.stderr
