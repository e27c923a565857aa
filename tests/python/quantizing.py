"""enginequantize on nets whose numbers are known, and the digits."""
import json
import pathlib

import numpy as np
import pytest

from conftest import ROOT, run_program

DIGITS = ROOT / 'models' / 'digits'


@pytest.fixture(scope='module')
def digits(tmp_path_factory):
    folder = tmp_path_factory.mktemp('digits')
    held = np.load(DIGITS / 'heldout.npz')
    images = (held['images'].astype(np.float32) / 255)[:, None]
    np.save(folder / 'x.npy', images)
    (folder / 'labels.txt').write_text('\n'.join(str(v) for v in held['labels']))
    return folder, images, held['labels']


def quantize(model, out, *args, code=0):
    done = run_program('enginequantize', *model, f'{out}.param', f'{out}.bin', *args)
    assert done.returncode == code, done.stderr
    return done


def digits_model():
    return DIGITS / 'digits.param', DIGITS / 'digits.bin'


def one_layer(folder, weight, bias=None, name='m'):
    """An inner product of 1-D inputs of weight.shape[1] values."""
    n, k = weight.shape
    (folder / f'{name}.param').write_text(
        f'7767517\n2 2\nInput in 0 1 data 0={k}\nInnerProduct fc 1 1 data out 0={n} 1={int(bias is not None)} 2={n * k}\n')
    parts = [np.zeros(1, np.float32), weight.ravel()] + ([] if bias is None else [bias])
    np.concatenate(parts).astype(np.float32).tofile(folder / f'{name}.bin')
    return folder / f'{name}.param', folder / f'{name}.bin'


def read_table(path):
    rows = [line.split() for line in pathlib.Path(path).read_text().splitlines() if line and line[0] != '#']
    return {row[0]: np.array([float(v) for v in row[1:]]) for row in rows}


def report_layers(folder):
    return {layer['name']: layer for layer in json.loads((folder / 'report.json').read_text())['layers']}


def int8_product(x, weight, bias, input_scale, scales):
    q = np.clip(np.sign(x * input_scale) * np.floor(np.abs(x * input_scale) + 0.5), -127, 127)
    w = np.clip(np.sign(weight * scales[:, None]) * np.floor(np.abs(weight * scales[:, None]) + 0.5), -127, 127)
    return (w @ q) / (input_scale * scales) + bias, w
