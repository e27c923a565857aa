"""Where the tests find what they test.

QUOLL_BIN: the bin folder of a build, default build/bin.  ENGINERUN_PREFIX: a command in front of its programs, an emulator.
QUOLL_DATA: a folder of models and oracles; tests that need it are skipped without it.
QUOLL_TEST_GPU: the number of a Vulkan device. Nets run there as far as the device can, whether it is worth their copies or not.
"""
import os
import pathlib
import shlex
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get('QUOLL_BIN', ROOT / 'build' / 'bin')).resolve()
GPU = os.environ.get('QUOLL_TEST_GPU', '')
DATA = pathlib.Path(os.environ['QUOLL_DATA']) if os.environ.get('QUOLL_DATA') else None


def run_program(name, *args, env=None, timeout=600):
    """The finished process of a program of this build; stdout and stderr as text."""
    command = [*shlex.split(os.environ.get('ENGINERUN_PREFIX', '')), str(BIN / name), *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=timeout,
                          env={**os.environ, **(env or {})})


def enginerun_of_device(options=()):
    """The program and the options that run a net where QUOLL_TEST_GPU says, unless the options say so themselves."""
    return ('tests/enginerun_device', ['--gpu', GPU]) if GPU and '--gpu' not in options else ('enginerun', [])


def last_line(text):
    return (text.strip().splitlines() or [''])[-1]


@pytest.fixture(scope='session')
def data():
    if DATA is None:
        pytest.skip('QUOLL_DATA is not set')
    return DATA
