"""Scalar code and unpacking take next to no time in the zoo's graphs (benchmark --cliffs)."""
import subprocess

import pytest

from onnx_run import BIN
from test_zoo import DATA, GRAPHS, load_graph, zoo  # noqa: F401

pytestmark = pytest.mark.skipif(not DATA, reason='QUOLL_DATA is not set')
# Per cent of a network's time.
CEILING = 3
# benchmark gives floats to every input; these take numbers of words.
INTEGERS = ['bert_tiny', 'gpt2_tiny']


def cliffs(model, *options):
    done = subprocess.run([BIN / 'benchmark', '8', '1', '--cliffs', '--ceiling', str(CEILING), *options, model],
                          capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize('name', [name for name in GRAPHS if name not in INTEGERS])
def test_zoo_has_no_cliffs(name, zoo, tmp_path):  # noqa: F811
    model, _, _ = load_graph(zoo, name, tmp_path)
    code, out, err = cliffs(model)
    assert 'cliffs: ' in out, err
    if code:  # a pause of the machine in a short run
        code, out, err = cliffs(model)
    assert code == 0, out


def test_scalar_layers_are_found(zoo, tmp_path):  # noqa: F811
    model, _, _ = load_graph(zoo, 'unet_tiny', tmp_path)
    code, out, _ = cliffs(model, '--reference')
    assert code == 1
    (share,) = [line for line in out.splitlines() if line.startswith('cliffs: ')]
    assert float(share.split()[1]) > 99
    assert any('Convolution' in line and 'scalar' in line for line in out.splitlines())
