"""Where the tests find what they test.

QUOLL_BIN: the bin folder of a build, default build/bin.  ENGINERUN_PREFIX: a command in front of its programs, an emulator.
QUOLL_DATA: a folder of models and oracles; tests that need it are skipped without it.  QUOLL_TEST_GPU: device_server.py.
"""
import os
import pathlib
import shlex
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get('QUOLL_BIN', ROOT / 'build' / 'bin')).resolve()
DATA = pathlib.Path(os.environ['QUOLL_DATA']) if os.environ.get('QUOLL_DATA') else None

sys.path.insert(0, str(ROOT / 'tests'))
import device_server  # noqa: E402
from device_server import GPU  # noqa: E402


def run_program(name, *args, env=None, timeout=600):
    """The finished process of a program of this build; stdout and stderr as text."""
    if name == ON_DEVICE and not env:
        return device_server.run(BIN / name, *args, timeout=timeout)
    command = [*shlex.split(os.environ.get('ENGINERUN_PREFIX', '')), str(BIN / name), *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=timeout,
                          env={**os.environ, **(env or {})})


ON_DEVICE = f'tests/{device_server.PROGRAM}'


def enginerun_of_device(options=()):
    """The program and the options that run a net where QUOLL_TEST_GPU says, unless the options say so themselves."""
    return (ON_DEVICE, ['--gpu', GPU]) if GPU and '--gpu' not in options else ('enginerun', [])


def last_line(text):
    return (text.strip().splitlines() or [''])[-1]


@pytest.fixture(scope='session')
def data():
    if DATA is None:
        pytest.skip('QUOLL_DATA is not set')
    return DATA
