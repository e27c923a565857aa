"""The smallest libraries (presets minimal-*): their size, and mobilenet_v2 by them as by this machine's build.

A preset whose build-PRESET is not there is skipped."""
import re
import subprocess

import numpy as np
import pytest

from conftest import ROOT, run_program
from engine import difference, run_engine

LIMITS = {'minimal-aarch64': 900_000, 'minimal-armv7': 700_000}


def cached(build, name):
    return re.search(rf'^{name}:\w+=(.*)$', (build / 'CMakeCache.txt').read_text(), re.M)[1]


@pytest.fixture(params=LIMITS)
def build(request):
    folder = ROOT / f'build-{request.param}'
    if not (folder / 'lib' / 'libquoll.so').is_file():
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


def test_size(build, tmp_path):
    library = (build / 'lib' / 'libquoll.so').resolve()
    subprocess.run([cached(build, 'CMAKE_STRIP'), '-o', tmp_path / 'stripped.so', library], check=True)
    size = (tmp_path / 'stripped.so').stat().st_size
    assert size <= LIMITS[build.name.removeprefix('build-')], f'{library} has {size} bytes stripped'


def test_mobilenet_v2(build, model, tmp_path):
    folder, answer = model
    toolchain = (ROOT / 'toolchains' / f"{re.search(r'([^/]*)[.]cmake$', cached(build, 'CMAKE_TOOLCHAIN_FILE'))[1]}.cmake").read_text()
    triple = re.search(r'set\(quoll_triple (.*)\)', toolchain)[1]
    emulator = f"qemu-{re.search(r'set.quoll_qemu (.*).$', toolchain, re.M)[1]}"
    program = tmp_path / 'run_model'
    subprocess.run([f'{triple}-g++', '-std=c++11', '-Wall', '-Wextra', '-Werror', ROOT / 'tests/minimal/run_model.cpp', '-o', program,
                    '-I', ROOT / 'include', '-I', build / 'generated/public', '-L', build / 'lib', '-lquoll', f"-Wl,-rpath,{build / 'lib'}"], check=True)
    done = subprocess.run([emulator, '-L', f'/usr/{triple}', program, folder / 'param.bin', folder / 'mobilenet_v2.bin', folder / 'in',
                           tmp_path / 'out'], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert difference(np.fromfile(tmp_path / 'out', np.float32), answer) < 1e-4
