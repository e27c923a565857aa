"""What `cmake --install` puts down, used from outside: find_package, pkg-config, every header alone."""
import os
import subprocess

import pytest

from conftest import BIN, ROOT

BUILD = BIN.parent
CONSUMER = ROOT / 'tests' / 'install' / 'consumer'
HEADERS = sorted(p.name for p in (ROOT / 'include/quoll').glob('*.h')) + ['platform.h']
ANSWER = '321 654\n'


def run(*command, **more):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope='session')
def prefix(tmp_path_factory):
    folder = tmp_path_factory.mktemp('prefix')
    run('cmake', '--install', BUILD, '--prefix', folder)
    return folder


def library_folder(prefix):
    return next(prefix.glob('lib*/**/libquoll.a')).parent


def test_find_package(prefix, tmp_path):
    run('cmake', '-G', 'Ninja', '-S', CONSUMER, '-B', tmp_path, f'-DCMAKE_PREFIX_PATH={prefix}')
    run('cmake', '--build', tmp_path)
    assert run(tmp_path / 'consumer') == ANSWER
    assert run(tmp_path / 'consumer_shared') == ANSWER


@pytest.mark.parametrize('kind', ['shared', 'static'])
def test_pkg_config(prefix, tmp_path, kind):
    folder = library_folder(prefix)
    env = {**os.environ, 'PKG_CONFIG_PATH': str(folder / 'pkgconfig')}
    flags = run('pkg-config', '--cflags', '--libs', *(['--static'] if kind == 'static' else []), 'quoll', env=env).split()
    if kind == 'static':
        flags = [str(folder / 'libquoll.a') if flag == '-lquoll' else flag for flag in flags]
    run('c++', '-std=c++11', CONSUMER / 'consumer.cpp', '-o', tmp_path / 'consumer', *flags)
    assert run(tmp_path / 'consumer', env={**os.environ, 'LD_LIBRARY_PATH': str(folder)}) == ANSWER


@pytest.mark.parametrize('header', HEADERS)
def test_header_alone_as_cxx11(prefix, tmp_path, header):
    source = tmp_path / 'alone.cpp'
    source.write_text(f'#include <quoll/{header}>\n#include <quoll/{header}>\nint main() {{ return 0; }}\n')
    run('c++', '-std=c++11', '-Wall', '-Wextra', '-Wpedantic', '-Wshadow', '-Werror', '-fsyntax-only', '-I', prefix / 'include', source)


def test_nothing_private_is_installed(prefix):
    files = {str(p.relative_to(prefix)) for p in prefix.rglob('*') if p.is_file() and 'include' in p.parts}
    assert files
    assert {f.split('/')[-1] for f in files if f.endswith('.h') and '/quoll/' in f and '/ncnn/' not in f} == set(HEADERS)
