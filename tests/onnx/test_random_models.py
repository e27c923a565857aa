"""Random ONNX models against ONNX Runtime: as they are, and with open sizes that change from run to run.

QUOLL_MODELS=FIRST:COUNT takes other seeds (default 0:COUNT of each node family, a few of mixed ones).
"""
import os
import re

import numpy as np
import onnx
import pytest

from onnx_run import BIN, Failure, run
from random_model import RandomModel, families, run_ort

FIRST, COUNT = map(int, os.environ.get('QUOLL_MODELS', '0:6').split(':'))
SINGLE = 1e-6
# A node that the converter cannot convert, or one whose output has an unknown number of axes; more than five axes, which arrays of sizes unknown do not have.
REFUSED = re.compile(r'cannot load .*\[onnx\] n\d+ \([^)]*\): (?!output t\d+: (?!.*rank is known only at run time))|sizes of its axes are not known')


def sensitivity(model, feed, expected):
    """How far each output moves when the inputs do by rounding errors."""
    rng = np.random.default_rng(1)
    moved = {name: (x * (1 + SINGLE * rng.choice([-1, 1], x.shape))).astype(x.dtype) if x.dtype == np.float32 else x
             for name, x in feed.items()}
    return [np.abs(a.astype(np.float64) - b).max(initial=0) if a.shape == b.shape else np.inf
            for a, b in zip(expected, run_ort(model, moved))]


def check(model, feed, folder):
    expected = run_ort(model, feed)
    if expected is None:
        return  # ONNX Runtime checks more of a whole model than of its nodes
    names = [o.name for o in model.graph.output]
    moves = sensitivity(model, feed, expected)
    try:
        have = run((folder / 'm.onnx',), feed, names, folder)
    except Failure as error:
        if REFUSED.search(str(error)):
            return
        raise AssertionError(str(error)) from None
    for name, want, move in zip(names, expected, moves):
        got = have[name]
        assert got.shape == want.shape, f'{name}: shape {got.shape}, ONNX Runtime {want.shape}'
        if want.dtype.kind == 'f':
            allowed = 50 * move + 1e-4 * max(1e-2, float(np.abs(want).max(initial=0)))
            error = float(np.abs(got.astype(np.float64) - want).max(initial=0))
            assert error <= allowed, f'{name}: error {error:.3g}, range {np.abs(want).max():.3g}, rounding explains {move:.2g}'
        elif move == 0:  # else a decision that rounding may turn
            assert np.array_equal(got.astype(np.int64), want.astype(np.int64)), f'{name}: {got.ravel()[:20]} {want.ravel()[:20]}'


def text_of(model):
    return onnx.printer.to_text(model)[:3000]


def check_model(made, folder):
    if not made.nodes:
        return
    for open_sizes in (False, True):
        model = made.model(open_sizes)
        onnx.save(model, folder / 'm.onnx')
        try:
            check(model, made.feed(), folder)
        except AssertionError as error:
            raise AssertionError(f'{error}\nopset {made.opset}\n{text_of(model)}') from None


@pytest.mark.parametrize('family', sorted(families()))
def test_family(family, tmp_path):
    for seed in range(FIRST, FIRST + COUNT):
        check_model(RandomModel(seed, nodes=1, only=family), tmp_path)


@pytest.mark.parametrize('seed', range(FIRST, FIRST + 10 * COUNT))
def test_mixed(seed, tmp_path):
    check_model(RandomModel(seed, nodes=3 + seed % 10), tmp_path)
