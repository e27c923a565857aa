"""Toolchain files, also those whose compiler is not here: what each sets, and the presets and packages that go with it."""
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import ROOT

TOOLCHAINS = sorted(p for p in (ROOT / 'toolchains').glob('*.cmake') if p.name != 'linux-gnu.cmake')
PRESETS = {p['name']: p for p in json.loads((ROOT / 'CMakePresets.json').read_text())['configurePresets']}
CROSS = sorted(name for name, p in PRESETS.items() if 'toolchainFile' in p)
# Those that bring no compiler of Debian's.
OTHERS = ('wasm32-emscripten', 'android', 'ios')


@pytest.fixture(scope='module')
def configured(tmp_path_factory):
    """A build folder for aarch64 with tests and without scalar kernels."""
    folder = tmp_path_factory.mktemp('configured')
    done = subprocess.run(['cmake', '--preset', 'aarch64', '-B', folder, '-DQUOLL_ISAS=neon', '-DQUOLL_LAYERS=Input', '-DQUOLL_BUILD_TOOLS=OFF',
                           '-DQUOLL_BUILD_EXAMPLES=OFF', '-DQUOLL_BUILD_BENCHMARK=OFF'], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def run_cmake(tmp_path, path, names, *options, environment=()):
    """cmake -P of a file, and what it sets."""
    script = tmp_path / 'show.cmake'
    script.write_text(f'include("{path}")\n' + ''.join(f'message("{name}=${{{name}}}")\n' for name in names))
    done = subprocess.run(['cmake', *options, '-P', script], capture_output=True, text=True, env={**os.environ, **dict(environment)})
    return done, dict(line.split('=', 1) for line in done.stderr.splitlines() if '=' in line)


@pytest.mark.parametrize('path', [p for p in TOOLCHAINS if p.stem not in OTHERS], ids=lambda p: p.stem)
def test_sets_system_and_compiler(path, tmp_path):
    names = ['CMAKE_SYSTEM_NAME', 'CMAKE_SYSTEM_PROCESSOR', 'CMAKE_C_COMPILER', 'CMAKE_CXX_COMPILER', 'CMAKE_FIND_ROOT_PATH', 'CMAKE_CROSSCOMPILING_EMULATOR']
    done, values = run_cmake(tmp_path, path, names)
    assert done.returncode == 0, done.stderr
    assert all(values[name] for name in names), values
    assert values['CMAKE_SYSTEM_NAME'] in ('Linux', 'Windows')
    assert values['CMAKE_CXX_COMPILER'].split('-')[0].rstrip('+') == values['CMAKE_C_COMPILER'].split('-')[0]


def test_emscripten_is_asked_for(tmp_path):
    script = tmp_path / 'show.cmake'
    script.write_text(f'set(QUOLL_EMSCRIPTEN QUOLL_EMSCRIPTEN-NOTFOUND)\nset(CMAKE_FIND_USE_CMAKE_PATH OFF)\ninclude("{ROOT}/toolchains/wasm32-emscripten.cmake")\n')
    done = subprocess.run(['cmake', '-P', script], capture_output=True, text=True, env={'PATH': '/usr/bin:/bin'})
    assert done.returncode == 0 or 'Emscripten is missing: install' in done.stderr, done.stderr


def test_android_takes_the_ndk(tmp_path):
    ndk = tmp_path / 'ndk/build/cmake'
    ndk.mkdir(parents=True)
    (ndk / 'android.toolchain.cmake').write_text('set(CMAKE_SYSTEM_NAME Android)\n')
    path, names = ROOT / 'toolchains/android.cmake', ['CMAKE_SYSTEM_NAME', 'ANDROID_ABI', 'ANDROID_PLATFORM']
    for preset in ('android-arm64-v8a', 'android-armeabi-v7a', 'android-x86_64', 'android-x86'):
        abi = PRESETS[preset]['cacheVariables']['ANDROID_ABI']
        assert abi == preset[len('android-'):]
        done, values = run_cmake(tmp_path, path, names, f'-DANDROID_ABI={abi}', environment={'ANDROID_NDK': str(tmp_path / 'ndk')})
        assert done.returncode == 0, done.stderr
        assert values == {'CMAKE_SYSTEM_NAME': 'Android', 'ANDROID_ABI': abi, 'ANDROID_PLATFORM': 'android-24'}
    done, _ = run_cmake(tmp_path, path, names, environment={'ANDROID_NDK': '/nowhere'})
    assert done.returncode != 0 and "expected the NDK's folder, got '/nowhere'" in done.stderr


def test_ios(tmp_path):
    done, values = run_cmake(tmp_path, ROOT / 'toolchains/ios.cmake', ['CMAKE_SYSTEM_NAME', 'CMAKE_SYSTEM_PROCESSOR', 'CMAKE_OSX_ARCHITECTURES'])
    assert done.returncode == 0, done.stderr
    assert values == {'CMAKE_SYSTEM_NAME': 'iOS', 'CMAKE_SYSTEM_PROCESSOR': 'arm64', 'CMAKE_OSX_ARCHITECTURES': 'arm64'}


@pytest.mark.parametrize('system, architectures, processor', [
    ('aarch64', None, 'aarch64'), ('arm64', 'x86_64', 'x86_64'), ('x86_64', 'arm64', 'arm64'), ('', 'arm64', 'arm64'), ('', None, 'arm64')])
def test_processor_on_apple(system, architectures, processor, tmp_path):
    options = [f'-DCMAKE_SYSTEM_PROCESSOR={system}', '-DAPPLE=1', *([f'-DCMAKE_OSX_ARCHITECTURES={architectures}'] if architectures else [])]
    done, values = run_cmake(tmp_path, ROOT / 'cmake/processor.cmake', ['quoll_processor'], *options)
    assert done.returncode == 0, done.stderr
    assert values == {'quoll_processor': processor}


def test_one_processor_a_build(tmp_path):
    done, _ = run_cmake(tmp_path, ROOT / 'cmake/processor.cmake', [], '-DAPPLE=1', '-DCMAKE_OSX_ARCHITECTURES=arm64;x86_64')
    assert done.returncode != 0 and 'expected one processor, got arm64;x86_64' in done.stderr


# As of the NDK and of Xcode, whose compilers are clang.
@pytest.mark.skipif(not shutil.which('clang++'), reason='no clang')
@pytest.mark.parametrize('target, processor', [('armv7-linux-androideabi24', 'armv7-a'), ('aarch64-linux-android24', 'aarch64'), ('arm64-apple-ios13', 'arm64')])
def test_clang_takes_the_flags_of_levels(target, processor, tmp_path):
    (tmp_path / 'empty.cpp').write_text('int x;\n')
    (tmp_path / 'CMakeLists.txt').write_text(f'''cmake_minimum_required(VERSION 3.25)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
project(levels LANGUAGES CXX)
set(QUOLL_GENERATED_DIR ${{CMAKE_BINARY_DIR}}/generated)
include("{ROOT}/cmake/processor.cmake")
include("{ROOT}/cmake/isa.cmake")
foreach(isa IN LISTS quoll_enabled_isas)
    message(STATUS "row=${{quoll_isa_row_${{isa}}}}")
endforeach()
''')
    done = subprocess.run(['cmake', '-G', 'Ninja', '-S', tmp_path, '-B', tmp_path / 'build', '-DCMAKE_SYSTEM_NAME=Generic', f'-DCMAKE_SYSTEM_PROCESSOR={processor}',
                           '-DCMAKE_CXX_COMPILER=clang++', f'-DCMAKE_CXX_COMPILER_TARGET={target}'], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = [line.split('row=')[1].split('|')[0].split() for line in done.stdout.splitlines() if 'row=' in line]
    assert len(rows) == 2, done.stdout
    for flags in rows:
        compiled = subprocess.run(['clang++', f'--target={target}', *flags, '-c', tmp_path / 'empty.cpp', '-o', tmp_path / 'empty.o'],
                                  capture_output=True, text=True)
        assert compiled.returncode == 0, compiled.stderr


@pytest.mark.skipif(not shutil.which('aarch64-linux-gnu-g++') or not shutil.which('clang++'), reason='no compiler')
def test_files_compiled_by_clang_link(configured, tmp_path):
    files = [tmp_path / 'a.cpp', tmp_path / 'b.cpp']
    for file in files:
        file.write_text('#include "layer/common/built_layers.h"\n')
    done = subprocess.run(['clang++', '-std=c++17', '-shared', '-fPIC', '-I', ROOT / 'src', '-I', configured / 'generated', *files, '-o', tmp_path / 'both.so'],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# A version script may name only what the library has, for lld 16 and later (the NDK's), unless by patterns.
@pytest.mark.skipif(not shutil.which('aarch64-linux-gnu-g++'), reason='no compiler')
def test_exports_are_patterns(configured):
    lines = [line.strip() for line in (configured / 'generated/exports.ver').read_text().splitlines() if '::' in line]
    assert len(lines) > 100
    assert [line for line in lines if not re.search(r'[*?]', line)] == []


# Where every processor has vectors, tests are there without scalar kernels, too.
@pytest.mark.skipif(not shutil.which('aarch64-linux-gnu-g++'), reason='no compiler')
def test_tests_without_scalar_kernels(configured):
    assert (configured / 'build.ninja').is_file()
    assert 'test_simd' in (configured / 'build.ninja').read_text()


@pytest.mark.parametrize('preset', CROSS)
def test_preset_has_its_file_and_packages(preset):
    assert PRESETS[preset]['toolchainFile'].replace('${sourceDir}', str(ROOT)) in map(str, TOOLCHAINS)
    if Path(PRESETS[preset]['toolchainFile']).stem not in OTHERS:  # the pages name what these need
        text = (ROOT / 'scripts/install_deps.sh').read_text()
        assert any(preset in line.split(')')[0].replace('|', ' ').split() for line in text.splitlines() if ') packages+=' in line), preset


def test_each_file_has_a_preset():
    used = {PRESETS[p]['toolchainFile'].rsplit('/', 1)[1] for p in CROSS}
    assert used == {p.name for p in TOOLCHAINS}
