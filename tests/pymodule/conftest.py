"""Tests of the Python package as it is installed: run by an interpreter that has it (scripts/test.sh makes a venv with its wheel)."""
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def digits():
    return ROOT / 'models/digits/digits.param', ROOT / 'models/digits/digits.bin'


@pytest.fixture
def small(tmp_path):
    """A model of one Input and some layers without weights: small(lines of layers) -> path of the param."""
    def make(*layers):
        blobs = {name for line in layers for name in line.split()[4:4 + int(line.split()[2]) + int(line.split()[3])]}
        path = tmp_path / 'small.param'
        path.write_text('7767517\n%d %d\n%s\n' % (len(layers), len(blobs), '\n'.join(layers)))
        return path
    return make
