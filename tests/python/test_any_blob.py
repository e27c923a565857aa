"""Any blob of a trained net can be read, and given in place of the inputs, with the defaults; the answers are ncnn's (the PyPI
wheel). Fusion joins layers, so that many of these blobs are made only when they are asked for."""
import ncnn
import numpy as np
import pytest

from conftest import ROOT
from engine import difference, run_engine
from graphs import Graph

LIMIT = 1e-4
MODELS = {'slim-320': 'models/slim-320/slim_320', 'FastestDet': 'models/fastestdet/FastestDet', 'digits': None}
# Size of the input along w and h, where the file leaves it open or this is faster.
SIZES = {'slim-320': (3, 120, 160), 'FastestDet': (3, 160, 128)}


class Peer:
    def __init__(self, path):
        self.net = ncnn.Net()
        for name in ('use_fp16_storage', 'use_fp16_packed', 'use_fp16_arithmetic', 'use_bf16_storage', 'use_packing_layout',
                     'use_winograd_convolution'):
            setattr(self.net.opt, name, False)
        assert self.net.load_param(f'{path}.param') == 0 and self.net.load_model(f'{path}.bin') == 0

    def run(self, inputs, outputs):
        """{name: array}; without those that cannot be computed of these inputs."""
        ex = self.net.create_extractor()
        for name, x in inputs.items():
            assert ex.input(name, ncnn.Mat(x).clone()) == 0
        answers = {name: ex.extract(name) for name in outputs}
        return {name: np.array(mat) for name, (status, mat) in answers.items() if status == 0}


@pytest.fixture(params=MODELS)
def model(request):
    """(path without suffix, graph, inputs)"""
    if MODELS[request.param] is None:
        path = ROOT / 'models/digits/digits'
    else:
        path = request.getfixturevalue('data') / MODELS[request.param]
    graph = Graph(f'{path}.param')
    rng = np.random.default_rng(11)
    inputs = {name: rng.uniform(-1, 1, SIZES.get(request.param, shape)).astype(np.float32) for name, shape in graph.inputs.items()}
    return path, graph, inputs


def test_every_blob_can_be_extracted(model):
    path, graph, inputs = model
    names = [name for name in graph.blobs if name not in inputs]
    theirs = Peer(path).run(inputs, names)
    assert len(theirs) == len(names) > 5
    ours = run_engine(f'{path}.param', f'{path}.bin', inputs, names)
    for name in names:
        assert difference(ours[name], theirs[name]) <= LIMIT, name


def test_every_blob_alone(model):
    """One in a run: only that one is kept, everything around it fuses as it likes."""
    path, graph, inputs = model
    names = [name for name in graph.blobs if name not in inputs]
    theirs = Peer(path).run(inputs, names)
    for name in names[::max(1, len(names) // 40)]:
        ours = run_engine(f'{path}.param', f'{path}.bin', inputs, [name])
        assert difference(ours[name], theirs[name]) <= LIMIT, name


def test_any_blob_can_be_given(model):
    path, graph, inputs = model
    names = [name for name in graph.blobs if name not in inputs]
    peer = Peer(path)
    values = peer.run(inputs, names)
    rng = np.random.default_rng(5)
    checked = 0
    for name in names[::max(1, len(names) // 40)]:
        given = {name: rng.permutation(values[name].ravel()).reshape(values[name].shape)}
        theirs = peer.run(given, [output for output in graph.outputs if output != name])
        if not theirs:
            continue  # every output needs the net's own input as well
        ours = run_engine(f'{path}.param', f'{path}.bin', given, theirs)
        for output, answer in theirs.items():
            assert difference(ours[output], answer) <= LIMIT, (name, output)
        checked += 1
    assert checked >= 3
