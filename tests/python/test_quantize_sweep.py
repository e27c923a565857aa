"""A small part of quantize_sweep.py: whole nets without a flag but the data, here and in the ncnn wheel."""
import os

import pytest

from conftest import DATA, ROOT
from quantize_sweep import try_graph, try_model

pytestmark = pytest.mark.skipif('ENGINERUN_PREFIX' in os.environ, reason='the same on every machine')


def check(row, least_db):
    for kind, layers, sqnr in ('affine', row['layers'], row['sqnr_db']), ('int8', row['int8_layers'], row['int8_db']):
        assert layers[kind] > 20 and layers.get('float', 0) == 0
        assert sqnr > least_db
    assert row['ncnn'] == 'no ncnn wheel' or row['ncnn'] <= max(0.02, row['error'])


@pytest.mark.parametrize('name', ['squeezenet', 'shufflenet_v2', 'efficientnet_b0'])  # the last has Swish
def test_bundled_graphs(name, tmp_path):
    check(try_graph(ROOT / 'benchmark' / 'models' / f'{name}.param', 2, tmp_path), 40)


def test_face_detector(tmp_path):
    if DATA is None:
        pytest.skip('QUOLL_DATA is not set')
    base = DATA / 'models' / 'slim-320'
    check(try_model(base / 'slim_320.param', base / 'slim_320.bin', 2, tmp_path), 25)
