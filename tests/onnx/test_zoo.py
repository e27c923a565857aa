"""Graphs and models from exporters against ONNX Runtime's answers. Needs QUOLL_DATA (models and graphs)
and numpy; the packed graphs also need onnx, with which their weights are filled in."""
import os
import pathlib
import sys
import tarfile

import numpy as np
import pytest

from onnx_run import BIN, Failure, convert, run

DATA = os.environ.get('QUOLL_DATA')
pytestmark = pytest.mark.skipif(not DATA, reason='QUOLL_DATA is not set')
# Of the range of an output.
TOLERANCE = 1e-4

GRAPHS = ['bert_tiny', 'convnext_tiny', 'crnn_lstm', 'deeplabv3_mobilenet', 'efficientnet_b0', 'googlenet',
          'gpt2_tiny', 'mobilenet_v2', 'mobilenet_v3_small', 'resnet18', 'shufflenet_v2_x1_0', 'squeezenet1_1',
          'swin_t', 'timm_edgenext_xx_small', 'timm_mobilevit_xxs', 'timm_repvgg_a0', 'timm_test_vit',
          'unet_tiny', 'vit_b_32', 'yolo_head']
MODELS = ['slim-320/version-slim-320', 'slim-320/version-slim-320_simplified',
          'slim-320/version-slim-320_without_postprocessing', 'fastestdet/FastestDet']


@pytest.fixture(scope='session')
def zoo(tmp_path_factory):
    """The folder that packed graphs are unpacked to, and the module that fills in their weights."""
    pytest.importorskip('onnx')
    folder = tmp_path_factory.mktemp('zoo')
    with tarfile.open(pathlib.Path(DATA) / 'zoo' / 'graphs.tar.xz') as archive:
        archive.extractall(folder, filter='data')
    sys.path.insert(0, str(pathlib.Path(DATA) / 'zoo'))
    import expand
    return folder, expand


def load_graph(zoo, name, folder):
    """The model's path, its inputs and the expected outputs."""
    import onnx
    packed, expand = zoo
    model = folder / (name + '.onnx')
    onnx.save(expand.expand(onnx.load(packed / (name + '.onnx'), load_external_data=False)), model)
    z = np.load(packed / (name + '.npz'))
    expected = {k: z[k] for k in z.files if k.startswith(('out:', 'val:'))}
    expected.update({k: z[k] for k in z.files if k.startswith('idx:')})
    return model, expand.feeds_of(z), expected


def output_names(net):
    lines = [line.split() for line in open(net[0]).read().splitlines()[2:]]
    return [words[5] for words in lines if words[0] == 'Output']


def input_names(net):
    lines = [line.split() for line in open(net[0]).read().splitlines()[2:]]
    return [words[4] for words in lines if words[0] == 'Input']


def check(net, inputs, expected, folder, **how):
    got = run(net, inputs, output_names(net), folder, **how)
    for name, want in expected.items():
        if name.startswith('idx:'):
            continue
        key = name.removeprefix('out:').removeprefix('val:')
        assert key in got, f'{key} is none of {list(got)}'
        have = got[key].ravel()[expected['idx:' + key]] if name.startswith('val:') else got[key]
        assert have.shape == want.shape and have.dtype == want.dtype
        spread = max(float(want.max() - want.min()), 1e-6)
        worst = float(np.abs(have.astype(np.float64) - want).max())
        assert worst <= TOLERANCE * spread, f'{key}: off by {worst / spread:.2e} of the range'


@pytest.mark.parametrize('name', GRAPHS)
def test_graph(zoo, name, tmp_path):
    """On the CPU; then whole, and half of the layers, on a back end with memory of its own."""
    model, inputs, expected = load_graph(zoo, name, tmp_path)
    net = convert(model, tmp_path)
    check(net, inputs, expected, tmp_path)
    for share, seed in ((1, 0), (0.5, 1)):
        check(net, inputs, expected, tmp_path, program=(BIN / 'tests' / 'recorded_run', share, seed))


@pytest.mark.parametrize('name', MODELS)
def test_model(name, tmp_path):
    path = pathlib.Path(DATA) / 'models' / (name + '.onnx')
    z = np.load(str(path) + '.npz')
    net = convert(path, tmp_path)
    names = input_names(net)
    inputs = {k.removeprefix('in:'): z[k] for k in z.files if k.removeprefix('in:') in names}
    expected = {k: z[k] for k in z.files if k.removeprefix('out:') in output_names(net)}
    assert len(inputs) == len(names) and expected, f'{z.files} for {names}'
    check(net, inputs, expected, tmp_path)


def test_sequence_lengths(zoo, tmp_path):
    """One conversion, any length: the answer for a prefix does not depend on what the file was exported with."""
    model, inputs, expected = load_graph(zoo, 'bert_tiny', tmp_path)
    net = convert(model, tmp_path)
    for length in (1, 7, 24, 128):
        ids = np.resize(inputs['input_ids'], (1, length))
        got = run(net, {'input_ids': ids, 'attention_mask': np.ones_like(ids)}, output_names(net), tmp_path)
        assert all(np.isfinite(a).all() for a in got.values())
        assert sorted(a.shape for a in got.values()) == sorted([(1, 128), (1, length, 128)])


def test_batches(zoo, tmp_path):
    """A batch larger than the model's gives each item's answer."""
    model, inputs, expected = load_graph(zoo, 'squeezenet1_1', tmp_path)
    net = convert(model, tmp_path)
    image = next(iter(inputs.values()))
    for count in (2, 5):
        batch = np.concatenate([image * (i + 1) / count for i in range(count)])
        name = next(iter(inputs))
        got = run(net, {name: batch}, output_names(net), tmp_path)['view']
        assert got.shape == (count, 1000)
        for i in range(count):
            single = run(net, {name: batch[i:i + 1]}, output_names(net), tmp_path)['view']
            np.testing.assert_allclose(got[i], single[0], rtol=1e-5, atol=1e-6)


def test_truncated(zoo, tmp_path):
    """A file that is cut short is an error, and nothing is written."""
    model, _, _ = load_graph(zoo, 'bert_tiny', tmp_path)
    whole = model.read_bytes()
    for size in (0, 1, 100, 5000, len(whole) // 2, len(whole) - 1):
        model.write_bytes(whole[:size])
        with pytest.raises(Failure, match='exit code 1'):
            convert(model, tmp_path)
        assert not (tmp_path / 'm.param').exists() and not (tmp_path / 'm.bin').exists()


@pytest.mark.parametrize('name', ['bert_tiny', 'crnn_lstm', 'yolo_head'])
def test_damaged(zoo, name, tmp_path):
    """Flipped bits give a model or an error, no crash, and an error leaves nothing behind."""
    model, _, _ = load_graph(zoo, name, tmp_path)
    whole = model.read_bytes()
    rng = np.random.default_rng(11)
    for i in range(40):
        # The nodes come first, the weights later.
        at = int(rng.integers(0, len(whole) if i % 4 == 0 else min(len(whole), 40000)))
        damaged = bytearray(whole)
        damaged[at] ^= 1 << int(rng.integers(0, 8))
        model.write_bytes(damaged)
        try:
            convert(model, tmp_path)
        except Failure as e:
            assert 'exit code 1:' in str(e), f'byte {at}: {e}'
            assert not (tmp_path / 'm.param').exists() and not (tmp_path / 'm.bin').exists()
        else:
            os.remove(tmp_path / 'm.param'), os.remove(tmp_path / 'm.bin')
