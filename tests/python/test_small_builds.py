"""Libraries without programs (presets small-*, minimal-*, mingw): the size of the small ones, and mobilenet_v2 by them, under an emulator, as by
this machine's build.

A preset whose build-PRESET is not there is skipped."""
import os
import re
import shutil
import subprocess

import numpy as np
import pytest

from conftest import ROOT, run_program
from engine import difference, run_engine

LIMITS = {'small-aarch64': 2_500_000, 'small-armv7': 2_500_000, 'minimal-aarch64': 480_000, 'minimal-armv7': 325_000}


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


def run_model(preset, tmp_path, *arguments):
    """tests/minimal/run_model.cpp with the library of the preset, finished; skipped where it cannot run."""
    build = build_of(preset)
    toolchain = (ROOT / 'toolchains' / re.search(r'[^/]*$', cached(build, 'CMAKE_TOOLCHAIN_FILE'))[0]).read_text()
    program = tmp_path / 'run_model.exe'
    if preset == 'mingw':
        compiler, more, emulator = setting(toolchain, 'CMAKE_CXX_COMPILER'), ['-static'], [setting(toolchain, 'CMAKE_CROSSCOMPILING_EMULATOR')]
        if not shutil.which(emulator[0]):
            pytest.skip('no wine')
    else:
        triple = setting(toolchain, 'quoll_triple')
        compiler, more, emulator = f'{triple}-g++', [], [f"qemu-{setting(toolchain, 'quoll_qemu')}", '-L', f'/usr/{triple}']
    subprocess.run([compiler, '-std=c++11', '-Wall', '-Wextra', '-Werror', ROOT / 'tests/minimal/run_model.cpp', '-o', program, '-I', ROOT / 'include',
                    '-I', build / 'generated/public', build / 'lib/libquoll.a', *more], check=True)
    return subprocess.run([*emulator, program, *arguments], capture_output=True, text=True, timeout=300,
                          env={**os.environ, 'WINEPREFIX': str(tmp_path / 'wine'), 'WINEDEBUG': '-all'})


@pytest.mark.parametrize('preset', [*LIMITS, 'mingw'])
def test_mobilenet_v2(preset, model, tmp_path):
    folder, answer = model
    done = run_model(preset, tmp_path, folder / 'param.bin', folder / 'mobilenet_v2.bin', folder / 'in', tmp_path / 'out')
    assert done.returncode == 0, done.stderr
    assert difference(np.fromfile(tmp_path / 'out', np.float32), answer) < 1e-4


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
