"""The graphs of test_zoo.py on a Vulkan device. Without a GPU that is Mesa's software device, which takes long for the
largest ones: QUOLL_GPU_WHOLE=1 runs these too."""
import json
import os

import numpy as np
import pytest

from onnx_run import BIN, Failure, convert, has_gpu, run, run_program
from test_zoo import DATA, GRAPHS, load_graph, output_names, zoo  # noqa: F401 (zoo is a fixture)

pytestmark = pytest.mark.skipif(not DATA, reason='QUOLL_DATA is not set')
LARGE = {'convnext_tiny', 'swin_t', 'vit_b_32'}
HERE = [name for name in GRAPHS if name not in LARGE or os.environ.get('QUOLL_GPU_WHOLE')]
# Its answers exceed f16.
OVERFLOWS = 'timm_repvgg_a0'
# Layers of integers that follow from sizes alone, and what they lead to.
ON_THE_HOST = {'bert_tiny': {'ShapeOf', 'StridedSlice', 'Gather', 'CastTo', 'Range', 'ReshapeTo', 'TensorBinary'}}


@pytest.fixture(scope='module', autouse=True)
def device():
    if not has_gpu():
        pytest.skip('no Vulkan device')


def spread(array):
    return max(float(array.max()) - float(array.min()), 1e-6)


def error(got, want):
    """The largest difference of an output, as a part of its range; infinite where there is a NaN."""
    worst = [np.abs(got[name].astype(np.float64) - want[name]).max() / spread(want[name]) for name in want]
    return max(w if np.isfinite(w) else np.inf for w in worst)


def check_layers(name, net, inputs, folder):
    """What engineinfo says of where layers run."""
    arguments = [BIN / 'engineinfo', *net, '--exec-plan', '--gpu', 0, '--json', '-', '--brief']
    for i, (key, array) in enumerate(inputs.items()):
        np.save(folder / f'plan{i}.npy', array)
        arguments += ['-i', f'{key}={folder}/plan{i}.npy']
    layers = json.loads(run_program(arguments))['exec_plan']
    types = {layer['type'] for layer in layers if layer['target'] == 'cpu'} - {'Input', 'MemoryData', 'Output'}
    assert types <= ON_THE_HOST.get(name, set())
    assert any(layer['target'] == 'vulkan' for layer in layers)


@pytest.mark.parametrize('name', HERE)
def test_fp32(zoo, name, tmp_path):  # noqa: F811
    """ONNX Runtime's answers within 1e-5 of their range, in regions without a layer of the host in between."""
    model, inputs, expected = load_graph(zoo, name, tmp_path)
    net = convert(model, tmp_path)
    check_layers(name, net, inputs, tmp_path)
    got = run(net, inputs, output_names(net), tmp_path, '--gpu', 0)
    for key, want in expected.items():
        blob = key.removeprefix('out:').removeprefix('val:')
        if key.startswith('idx:'):
            continue
        have = got[blob].ravel()[expected['idx:' + blob]] if key.startswith('val:') else got[blob]
        assert have.shape == want.shape and have.dtype == want.dtype
        assert error({'': have}, {'': want}) <= 1e-5, blob


@pytest.mark.parametrize('name', HERE)
def test_fp16(zoo, name, tmp_path):  # noqa: F811
    """Against fp32 on the CPU with the weights that the device has. What rounding the blobs costs is computed: the CPU rounds
    them to bf16, which has three bits less than f16. The device rounds some blobs that the CPU does not, hence a factor of 3."""
    model, inputs, _ = load_graph(zoo, name, tmp_path)
    net = convert(model, tmp_path, '--fp16')
    names = output_names(net)
    if name == OVERFLOWS:
        with pytest.raises(Failure, match=r'\[Convolution \w+\] output 0: \d+ infinite values'):
            run(net, inputs, names, tmp_path, '--gpu', 0, '--precision', 'fp16', '--check-finite')
        return
    want = run(net, inputs, names, tmp_path)
    bound = 3 * error(run(net, inputs, names, tmp_path, '--precision', 'bf16'), want) / 8
    got = run(net, inputs, names, tmp_path, '--gpu', 0, '--precision', 'fp16')
    assert 0 < error(got, want) <= bound
