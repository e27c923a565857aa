"""Libraries without programs (presets small-*, minimal-*, mingw): the size of the small ones, and mobilenet_v2 by them, under an emulator, as by
this machine's build.

A preset whose build-PRESET is not there is skipped."""
import math
import os
import re
import shutil
import subprocess

import numpy as np
import pytest

from conftest import ROOT, run_program
from engine import difference, run_engine

LIMITS = {'small-aarch64': 2_500_000, 'small-armv7': 2_500_000, 'minimal-aarch64': 300_000, 'minimal-armv7': 218_000}


def cached(build, name):
    return re.search(rf'^{name}:\w+=(.*)$', (build / 'CMakeCache.txt').read_text(), re.M)[1]


def build_of(preset):
    folder = ROOT / f'build-{preset}'
    if not (folder / 'lib' / 'libquoll.a').is_file():
        pytest.skip(f'no {folder}')
    return folder


@pytest.fixture(scope='module')
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp('mobilenet_v2')
    source = ROOT / 'benchmark/models/mobilenet_v2.param'
    done = run_program('benchmark', '1', '1', f'param={source}', '--warmup', '0', '--save-weights', folder)
    assert done.returncode == 0, done.stderr
    param = folder / source.name
    weights = folder / 'mobilenet_v2.bin'
    done = run_program('ncnn2mem', param if param.is_file() else source, weights, folder / 'id.h', folder / 'mem.h', '--external-weights',
                       '--param-bin', folder / 'param.bin')
    assert done.returncode == 0, done.stderr
    x = np.random.default_rng(1).uniform(-1, 1, (3, 224, 224)).astype(np.float32)
    x.tofile(folder / 'in')
    answer = run_engine(param if param.is_file() else source, weights, {'data': x}, ['output'])['output']
    return folder, answer


@pytest.mark.parametrize('preset', LIMITS)
def test_size(preset, tmp_path):
    build = build_of(preset)
    library = (build / 'lib' / 'libquoll.so').resolve()
    subprocess.run([cached(build, 'CMAKE_STRIP'), '-o', tmp_path / 'stripped.so', library], check=True)
    size = (tmp_path / 'stripped.so').stat().st_size
    assert size <= LIMITS[preset], f'{library} has {size} bytes stripped'


def setting(toolchain, name):
    return re.search(rf'^set\({name} (.*)\)', toolchain, re.M)[1]


def run_model(preset, tmp_path, *arguments, library='libquoll.a', source='run_model'):
    """tests/minimal/SOURCE.cpp with the library of the preset, finished; skipped where it cannot run."""
    build = build_of(preset)
    toolchain = (ROOT / 'toolchains' / re.search(r'[^/]*$', cached(build, 'CMAKE_TOOLCHAIN_FILE'))[0]).read_text()
    program = tmp_path / f'{source}.exe'
    if preset == 'mingw':
        compiler, more, emulator = setting(toolchain, 'CMAKE_CXX_COMPILER'), ['-static'], [setting(toolchain, 'CMAKE_CROSSCOMPILING_EMULATOR')]
        if not shutil.which(emulator[0]):
            pytest.skip('no wine')
    else:
        triple = setting(toolchain, 'quoll_triple')
        compiler, more, emulator = f'{triple}-g++', [], [f"qemu-{setting(toolchain, 'quoll_qemu')}", '-L', f'/usr/{triple}']
    subprocess.run([compiler, '-std=c++11', '-Wall', '-Wextra', '-Werror', ROOT / f'tests/minimal/{source}.cpp', '-o', program, '-I', ROOT / 'include',
                    '-I', build / 'generated/public', build / 'lib' / library, *more], check=True)
    return subprocess.run([*emulator, program, *arguments], capture_output=True, text=True, timeout=300,
                          env={**os.environ, 'QEMU_SET_ENV': f"LD_LIBRARY_PATH={build / 'lib'}", 'WINEPREFIX': str(tmp_path / 'wine'), 'WINEDEBUG': '-all'})


# The shared libraries of small-* have DT_RELR, and by lld 14 not the version entry with which glibc loads it.
@pytest.mark.parametrize('preset, library', [*((preset, 'libquoll.a') for preset in [*LIMITS, 'mingw']),
                                             *((preset, 'libquoll.so') for preset in LIMITS if preset.startswith('minimal'))])
def test_mobilenet_v2(preset, library, model, tmp_path):
    folder, answer = model
    done = run_model(preset, tmp_path, folder / 'param.bin', folder / 'mobilenet_v2.bin', folder / 'in', tmp_path / 'out', library=library)
    assert done.returncode == 0, done.stderr
    assert difference(np.fromfile(tmp_path / 'out', np.float32), answer) < 1e-4


@pytest.mark.parametrize('preset', ['minimal-aarch64', 'minimal-armv7'])
def test_derived_classes(preset, tmp_path):
    done = run_model(preset, tmp_path, library='libquoll.so', source='derived')
    assert done.returncode == 0, done.stderr


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


# activation_type and activation_params of param files: the function.
ACTIVATIONS = {
    '9=1': lambda x: max(x, 0),
    '9=2 -23310=1,0.2': lambda x: max(x, 0.2 * x),
    '9=3 -23310=2,-1.0,2.0': lambda x: min(max(x, -1), 2),
    '9=4': sigmoid,
    '9=5': lambda x: x * math.tanh(math.log(1 + math.exp(x))),
    '9=6 -23310=2,0.2,0.5': lambda x: x * min(max(0.2 * x + 0.5, 0), 1),
    '9=7': lambda x: x * sigmoid(x),
    '9=8 -23310=1,0.0': lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2,
    '9=8 -23310=1,1.0': lambda x: x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))) / 2,
}


@pytest.mark.parametrize('preset', ['minimal-aarch64', 'minimal-armv7'])
@pytest.mark.parametrize('activation', ACTIVATIONS)
def test_activations(preset, activation, tmp_path):
    """An activation of an inner product, whether it has a kernel in the library or not: of biases from -6 to 6, the weights are 0."""
    build_of(preset)
    biases = np.linspace(-6, 6, 25, dtype=np.float32)
    (tmp_path / 'model.param').write_text('7767517\n3 3\nInput data 0 1 data 0=224 1=224 2=3\nPooling mean 1 1 data mean 0=1 4=1\n'
                                          f'InnerProduct product 1 1 mean output 0=25 1=1 2=75 {activation}\n')
    np.concatenate([np.zeros(1 + 75, np.float32), biases]).tofile(tmp_path / 'model.bin')
    np.ones(3 * 224 * 224, np.float32).tofile(tmp_path / 'in')
    done = run_program('ncnn2mem', tmp_path / 'model.param', tmp_path / 'model.bin', tmp_path / 'id.h', tmp_path / 'mem.h', '--external-weights',
                       '--param-bin', tmp_path / 'param.bin')
    assert done.returncode == 0, done.stderr
    done = run_model(preset, tmp_path, tmp_path / 'param.bin', tmp_path / 'model.bin', tmp_path / 'in', tmp_path / 'out')
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.fromfile(tmp_path / 'out', np.float32), [ACTIVATIONS[activation](float(x)) for x in biases], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize('preset', ['minimal-aarch64', 'minimal-armv7'])
@pytest.mark.parametrize('columns', [1, 2, 3, 4, 7, 11])
def test_rows_of_tiles(preset, columns, tmp_path):
    """A convolution with so many outputs in a row, as numpy has it: products of so many rows, some of which have no tile of their own in the library."""
    build_of(preset)
    stride = 221 // (columns - 1) if columns > 1 else 222
    rng = np.random.default_rng(columns)
    x = rng.uniform(-1, 1, (3, 224, 224)).astype(np.float32)
    weight, bias = rng.uniform(-1, 1, (24, 27)).astype(np.float32), rng.uniform(-1, 1, 24).astype(np.float32)
    product = rng.uniform(-1, 1, (10, 24 * columns * columns)).astype(np.float32)
    (tmp_path / 'model.param').write_text(f'7767517\n3 3\nInput data 0 1 data 0=224 1=224 2=3\nConvolution conv 1 1 data conv 0=24 1=3 3={stride} 5=1 6={24 * 27}\n'
                                          f'InnerProduct product 1 1 conv output 0=10 2={product.size}\n')
    np.concatenate([np.zeros(1, np.float32), weight.ravel(), bias, np.zeros(1, np.float32), product.ravel()]).tofile(tmp_path / 'model.bin')
    x.tofile(tmp_path / 'in')
    done = run_program('ncnn2mem', tmp_path / 'model.param', tmp_path / 'model.bin', tmp_path / 'id.h', tmp_path / 'mem.h', '--external-weights',
                       '--param-bin', tmp_path / 'param.bin')
    assert done.returncode == 0, done.stderr
    done = run_model(preset, tmp_path, tmp_path / 'param.bin', tmp_path / 'model.bin', tmp_path / 'in', tmp_path / 'out')
    assert done.returncode == 0, done.stderr
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), (3, 3), (1, 2))[:, ::stride, ::stride]
    assert windows.shape[1:3] == (columns, columns)
    conv = weight.astype(np.float64) @ windows.transpose(0, 3, 4, 1, 2).reshape(27, -1) + bias[:, None]
    expected = product.astype(np.float64) @ conv.ravel()
    np.testing.assert_allclose(np.fromfile(tmp_path / 'out', np.float32), expected, rtol=1e-5, atol=1e-6 * np.abs(product).sum(axis=1).max() * 6)


# Id 8, int8_scale_term, of each.
INT8_LAYERS = {'Convolution': '0=4 1=3 6=108 8=2', 'ConvolutionDepthWise': '0=3 1=3 6=27 7=3 8=1', 'InnerProduct': '0=2 2=12 8=2'}


@pytest.mark.parametrize('preset', ['minimal-aarch64', 'minimal-armv7'])
@pytest.mark.parametrize('layer', INT8_LAYERS)
def test_int8_weights_are_refused(preset, layer, tmp_path):
    build_of(preset)
    text = f'7767517\n2 2\nInput data 0 1 data 0=8 1=8 2=3\n{layer} product 1 1 data output {INT8_LAYERS[layer]}\n'
    (tmp_path / 'int8.param').write_text(text)
    (tmp_path / 'zeros').write_bytes(bytes(4096))
    done = run_program('ncnn2mem', tmp_path / 'int8.param', tmp_path / 'zeros', tmp_path / 'id.h', tmp_path / 'mem.h', '--external-weights', '--param-bin',
                       tmp_path / 'param.bin')
    assert done.returncode == 0, done.stderr
    done = run_model(preset, tmp_path, tmp_path / 'param.bin', tmp_path / 'zeros', tmp_path / 'zeros', tmp_path / 'out')
    assert done.returncode == 1
    assert 'int8_scale_term (8)' in done.stderr and 'QUOLL_INT8 is off' in done.stderr
