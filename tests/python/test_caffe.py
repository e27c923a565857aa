"""caffe2engine: nets that it converts are compared with an interpreter of Caffe's layers (caffe_reference.py)."""
import numpy as np
import pytest

from caffe_net import CaffeNet, chunk, text_of, varint
from caffe_layers import CASES
from caffe_random import random_net
from caffe_zoo import ZOO
from caffe_zoo_more import MORE
from conftest import BIN, ROOT, last_line, run_program
from engine import difference, run_engine

pytestmark = pytest.mark.skipif(not (BIN / 'caffe2engine').exists(), reason='built without protobuf: no caffe2engine')

TOLERANCE = 1e-4  # of the range, or of the largest value


class Converted:
    def __init__(self, prototxt, caffemodel, folder):
        self.paths = [folder / name for name in ('in.prototxt', 'in.caffemodel', 'out.param', 'out.bin')]
        self.prototxt, self.caffemodel, self.param, self.bin = self.paths
        self.prototxt.write_text(prototxt)
        self.caffemodel.write_bytes(caffemodel)
        self.done = run_program('caffe2engine', *self.paths)


def convert(net, folder, inputs='layer', form='new'):
    v1 = form == 'v1'
    files = [net.prototxt_v0(inputs), net.caffemodel_v0()] if form == 'v0' else [net.prototxt(inputs, v1), net.caffemodel(v1)]
    converted = Converted(*files, folder)
    assert converted.done.returncode == 0, f'{converted.done.stderr}\n{converted.prototxt.read_text()}'
    return converted


def without_ones(array):
    return array.reshape([s for s in array.shape if s != 1])


def check_blob(name, got, expected):
    """Up to axes of size 1: Caffe's have the batch in front."""
    assert without_ones(got).shape == without_ones(expected).shape, f'{name}: {got.shape}, expected {expected.shape}'
    assert np.isfinite(got).all(), name
    worst = np.abs(got.ravel() - expected.ravel()).max() / max(np.ptp(expected), np.abs(expected).max(), 1e-3)
    assert worst < TOLERANCE, f'{name}: {worst}'


def check(net, folder, inputs='layer', form='new'):
    """The outputs of the converted net."""
    converted = convert(net, folder, inputs, form)
    arrays = {name: array for name, array in net.inputs.items() if name in net.read_ever}
    names = [name for name in net.outputs() if not name.endswith('mask')]
    got = run_engine(converted.param, converted.bin, arrays, names, '--batch')
    for name in names:
        check_blob(name, got[name], net.values[name])


CASE_COUNT = 50


@pytest.mark.parametrize('name', CASES)
def test_layer(name, tmp_path):
    """Random parameters; a blob sSEED_y that differs comes from CASES[name] with that seed."""
    all_ = CaffeNet(None, {})
    for seed in range(CASE_COUNT):
        all_.join(CASES[name](np.random.default_rng([seed, len(name)])), f's{seed}_')
    check(all_, tmp_path)


@pytest.mark.parametrize('name', ZOO)
def test_classic_net(name, tmp_path):
    check(ZOO[name](np.random.default_rng(len(name))), tmp_path)


@pytest.mark.parametrize('name', MORE)
def test_public_net(name, tmp_path):
    check(MORE[name](np.random.default_rng(len(name))), tmp_path)


def test_a_batch_gives_what_its_items_give(tmp_path):
    """The batch is not in the converted files."""
    net = ZOO['ShuffleNet'](np.random.default_rng(5))
    x = np.concatenate([net.inputs['data'], np.random.default_rng(6).uniform(-1, 1, net.inputs['data'].shape)])
    converted = convert(net, tmp_path)
    got = run_engine(converted.param, converted.bin, {'data': x.astype(np.float32)}, ['prob'], '--batch')['prob']
    assert len(got) == 2 and np.abs(got[0] - got[1]).max() > 1e-3
    check_blob('prob', got[:1], net.values['prob'])


@pytest.mark.parametrize('seed', range(60))
def test_random_net(seed, tmp_path):
    net = random_net(seed)
    inputs = ['shape', 'dim', 'layer'][seed % (3 if net.form == 'new' else 2)] if net.inputs['data'].ndim == 4 else 'shape'
    check(net, tmp_path, inputs, net.form)


@pytest.mark.parametrize('name', ['AlexNet', 'GoogLeNet', 'VGG16'])
def test_old_layer_format(name, tmp_path):
    check(ZOO[name](np.random.default_rng(3)), tmp_path, inputs='dim', form='v1')


def test_slim_320_is_the_ncnn_form(data, tmp_path):
    folder = data / 'models' / 'slim-320'
    out = [tmp_path / 'slim.param', tmp_path / 'slim.bin']
    done = run_program('caffe2engine', folder / 'slim-320.prototxt', folder / 'slim-320.caffemodel', *out)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f'wrote {out[0]} (') and done.stdout.endswith(f' layers) and {out[1]}\n')
    answers = np.load(folder / 'slim_320.npz')
    x = {'input': answers['in:input']}
    ours = run_engine(*out, x, ['boxes', 'scores'])
    ncnns = run_engine(folder / 'slim_320.param', folder / 'slim_320.bin', x, ['boxes', 'scores'])
    for name in ours:
        assert difference(ours[name], ncnns[name]) < 1e-4
        assert difference(ours[name], answers[f'out:{name}']) < 1e-4


# ---------------------------------------------------------------- forms of files

OLDEST = '''
input: "data" input_dim: 1 input_dim: 3 input_dim: 12 input_dim: 12
layers { layer { name: "pad1" type: "padding" pad: 1 } bottom: "data" top: "pad1" }
layers { layer { name: "conv1" type: "conv" num_output: 4 kernelsize: 3 stride: 2 weight_filler { type: "gaussian" std: 0.01 }
  blobs_lr: 1. } bottom: "pad1" top: "conv1" }
layers { layer { name: "relu1" type: "relu" } bottom: "conv1" top: "conv1" }
layers { layer { name: "pool1" type: "pool" pool: AVE kernelsize: 3 stride: 2 } bottom: "conv1" top: "pool1" }
layers { layer { name: "norm1" type: "lrn" local_size: 3 alpha: 0.5 beta: 0.6 } bottom: "pool1" top: "norm1" }
layers { layer { name: "fc" type: "innerproduct" num_output: 5 biasterm: false } bottom: "norm1" top: "fc" }
layers { layer { name: "drop" type: "dropout" dropout_ratio: 0.3 } bottom: "fc" top: "fc" }
layers { layer { name: "prob" type: "softmax" } bottom: "fc" top: "prob" }
'''


def test_oldest_format(tmp_path):
    net = CaffeNet(np.random.default_rng(9), {'data': np.random.default_rng(8).normal(size=(1, 3, 12, 12))})
    x = net.relu(net.conv('data', 'conv1', 4, 3, stride=2, pad=1))
    x = net.pool(x, 'pool1', 3, 'AVE', stride=2)
    x = net.add('LRN', x, 'norm1', lrn_param={'local_size': 3, 'alpha': 0.5, 'beta': 0.6})
    inputs = net.values[x].size
    net.add('InnerProduct', x, 'fc', [net.random(5, inputs)], name='fc', inner_product_param={'bias_term': False})
    net.add('Softmax', 'fc', 'prob')
    converted = Converted(OLDEST, net.caffemodel_v0(), tmp_path)
    assert converted.done.returncode == 0, converted.done.stderr
    got = run_engine(converted.param, converted.bin, {'data': net.inputs['data'][0]}, ['prob'])
    check_blob('prob', got['prob'], net.values['prob'])


@pytest.mark.parametrize('inputs', ['layer', 'shape', 'dim'])
def test_forms_of_inputs(inputs, tmp_path):
    rng = np.random.default_rng(4)
    net = CaffeNet(rng, {name: rng.normal(size=(1, 3, 5, 6)) for name in ('a', 'b')})
    net.add('Eltwise', ['a', 'b'], 'sum', eltwise_param={'coeff': [2.0, -0.5]})
    check(net, tmp_path, inputs=inputs)


def test_blobs_of_doubles(tmp_path):
    net = CaffeNet(np.random.default_rng(4), {'data': np.ones((1, 4))})
    net.fc('data', 'fc', 3)
    blobs = b''.join(chunk(7, chunk(7, chunk(1, b''.join(map(varint, blob.shape)))) + chunk(8, blob.astype('<f8').tobytes()))
                     for blob in net.layers[0].blobs)
    converted = Converted(net.prototxt(), chunk(100, chunk(1, 'fc') + blobs), tmp_path)
    assert converted.done.returncode == 0, converted.done.stderr
    check_blob('fc', run_engine(converted.param, converted.bin, {'data': np.ones(4, np.float32)}, ['fc'])['fc'],
               net.values['fc'])


@pytest.mark.parametrize('number,dtype', enumerate(['<f8', '<f4', '<f2']))
def test_raw_blobs(number, dtype, tmp_path):
    """As NVIDIA's Caffe writes them: bytes of a type."""
    rng = np.random.default_rng(4)
    net = CaffeNet(rng, {'data': np.ones((1, 4))})
    net.add('InnerProduct', 'data', 'fc', [rng.integers(-9, 9, (3, 4)) / 8, rng.integers(-9, 9, 3) / 8], name='fc',
            inner_product_param={'num_output': 3})
    blobs = b''.join(chunk(7, chunk(7, chunk(1, b''.join(map(varint, blob.shape)))) + varint(10 << 3) + varint(number) +
                           chunk(12, blob.astype(dtype).tobytes())) for blob in net.layers[0].blobs)
    converted = Converted(net.prototxt(), chunk(100, chunk(1, 'fc') + blobs), tmp_path)
    assert converted.done.returncode == 0, converted.done.stderr
    check_blob('fc', run_engine(converted.param, converted.bin, {'data': np.ones(4, np.float32)}, ['fc'])['fc'],
               net.values['fc'])


@pytest.mark.parametrize('v1', [False, True])
def test_blobs_that_layers_share_by_name(v1, tmp_path):
    """The file may have them of one layer alone."""
    net = CaffeNet(np.random.default_rng(4), {'data': np.random.default_rng(1).normal(size=(1, 4))})
    blobs = [net.random(4, 4), net.random(4)]
    names = ['w', 'b'] if v1 else [{'name': 'w', 'lr_mult': 1}, {'name': 'b', 'decay_mult': 0}]
    fields = {'inner_product_param': {'num_output': 4}, 'param': names}
    net.add('InnerProduct', 'data', 'fc1', blobs, name='fc1', **fields)
    net.add('InnerProduct', 'fc1', 'fc2', blobs, name='fc2', **fields)
    text = net.prototxt('shape', v1)
    for alone in net.layers:
        one = CaffeNet(None, {})
        one.layers = [alone]
        converted = Converted(text, one.caffemodel(v1), tmp_path)
        assert converted.done.returncode == 0 and converted.done.stderr == '', converted.done.stderr
        got = run_engine(converted.param, converted.bin, {'data': net.inputs['data'][0]}, ['fc2'])
        check_blob('fc2', got['fc2'], net.values['fc2'])


TRAINING = '''
layer { name: "mnist" type: "Data" top: "data" top: "label" include { phase: TRAIN } data_param { source: "x" batch_size: 64 } }
layer { name: "mnist" type: "MemoryData" top: "data" top: "label" include { phase: TEST }
  memory_data_param { batch_size: 1 channels: 2 height: 3 width: 4 } }
layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 5
  weight_filler { type: "xavier" } } param { lr_mult: 1 } }
layer { name: "drop" type: "Dropout" bottom: "ip" top: "ip" exclude { phase: TEST } }
layer { name: "quiet" type: "Silence" bottom: "label" }
layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy" include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
'''


def test_layers_for_training_are_left_out_with_a_message(tmp_path):
    net = CaffeNet(np.random.default_rng(4), {'data': np.random.default_rng(1).normal(size=(1, 2, 3, 4))})
    net.fc('data', 'ip', 5)
    converted = Converted(TRAINING, net.caffemodel(), tmp_path)
    assert converted.done.returncode == 0, converted.done.stderr
    for text in ('Data mnist', 'MemoryData mnist', 'Dropout drop', 'Silence quiet', 'Accuracy accuracy',
                 'SoftmaxWithLoss loss'):
        assert f'{text}: left out' in converted.done.stderr
    got = run_engine(converted.param, converted.bin, {'data': net.inputs['data'][0]}, ['ip'])
    check_blob('ip', got['ip'], net.values['ip'])
    assert 'label' not in converted.param.read_text()


@pytest.mark.parametrize('axes,kind', [(1, 'Convolution'), (3, 'Convolution'), (1, 'Deconvolution'), (3, 'Deconvolution')])
def test_convolution_of_other_ranks(axes, kind, tmp_path):
    """Caffe's window slides over all axes behind the channels: one of size 3 along the last, over maps of one row or slice."""
    rng = np.random.default_rng(axes)
    shape = {1: (1, 4, 9), 3: (1, 4, 1, 1, 9)}[axes]
    flat = CaffeNet(rng, {'x': rng.normal(size=(1, 4, 1, 9))})
    flat.conv('x', 'y', 6, (1, 3), kind=kind, stride_w=2, stride_h=1, pad_w=1, pad_h=0, group=2)
    kernel, stride, pad = ([1] * (axes - 1) + [3], [1] * (axes - 1) + [2], [0] * (axes - 1) + [1])
    text = 'input: "x" ' + text_of({'input_shape': {'dim': list(shape)}, 'layer': {
        'name': 'y', 'type': kind, 'bottom': 'x', 'top': 'y', 'convolution_param': {
            'num_output': 6, 'kernel_size': kernel, 'stride': stride, 'pad': pad, 'group': 2}}})
    converted = Converted(text, flat.caffemodel(), tmp_path)
    assert converted.done.returncode == 0, converted.done.stderr
    got = run_engine(converted.param, converted.bin, {'x': flat.inputs['x'][0].reshape(shape[1:])}, ['y'])
    check_blob('y', got['y'], flat.values['y'])


def lines_of(text, folder):
    converted = Converted(text, CaffeNet.caffemodel(small_net()), folder)
    assert converted.done.returncode == 0, converted.done.stderr
    return [' '.join(line.split()) for line in converted.param.read_text().splitlines()[2:]]


def test_yolo_outputs(tmp_path):
    text = '''input: "x" input: "z"
    layer { name: "a" type: "YoloDetectionOutput" bottom: "x" top: "a" yolo_detection_output_param { num_classes: 3 num_box: 2
      confidence_threshold: 0.25 nms_threshold: 0.5 coords: 4 biases: 1.5 biases: 2 biases: 3 biases: 4 } }
    layer { name: "b" type: "Yolov3DetectionOutput" bottom: "x" bottom: "z" top: "b" yolov3_detection_output_param {
      num_classes: 3 num_box: 1 nms_threshold: 0.5 mask: 1 mask: 0 anchors_scale: 32 anchors_scale: 16 mask_group_num: 2
      biases: [1, 2, 3, 4] } }'''
    lines = lines_of(text, tmp_path)
    assert 'YoloDetectionOutput a 1 1 x_splitncnn_0 a 0=3 1=2 2=0.25 3=0.5 -23304=4,1.5,2.0,3.0,4.0' in lines
    assert ('Yolov3DetectionOutput b 2 1 x_splitncnn_1 z b 0=3 1=1 3=0.5 -23304=4,1.0,2.0,3.0,4.0 -23305=2,1.0,0.0 '
            '-23306=2,32.0,16.0') in lines


def test_blobs_read_twice_go_through_split(tmp_path):
    text = '''input: "x"
    layer { name: "a" type: "ReLU" bottom: "x" top: "a" } layer { name: "b" type: "Split" bottom: "a" top: "b" top: "c" }
    layer { name: "s" type: "Eltwise" bottom: "b" bottom: "c" bottom: "a" bottom: "b" top: "s" }'''
    assert lines_of(text, tmp_path) == [
        'Input x 0 1 x', 'ReLU a 1 1 x a', 'Split splitncnn_0 1 2 a a_splitncnn_0 a_splitncnn_1',
        'Split b 1 2 a_splitncnn_0 b c', 'Split splitncnn_1 1 2 b b_splitncnn_0 b_splitncnn_1',
        'Eltwise s 4 1 b_splitncnn_0 c a_splitncnn_1 b_splitncnn_1 s 0=1']


def test_layers_in_place_keep_the_name_for_the_end(tmp_path):
    text = '''input: "x" layer { name: "a" type: "ReLU" bottom: "x" top: "x" }
    layer { name: "b" type: "Power" bottom: "x" top: "y" } layer { name: "c" type: "AbsVal" bottom: "y" top: "y" }
    layer { name: "d" type: "TanH" bottom: "y" top: "y" } layer { name: "e" type: "Sigmoid" bottom: "y" top: "z" }'''
    assert lines_of(text, tmp_path) == ['Input x 0 1 x', 'ReLU a 1 1 x x_a', 'Power b 1 1 x_a y_b', 'AbsVal c 1 1 y_b y_c',
                                        'TanH d 1 1 y_c y', 'Sigmoid e 1 1 y z']


def test_python_proposal_layer(tmp_path):
    text = '''input: "s" input: "m" input: "i" layer { name: "p" type: "Python" bottom: "s" bottom: "m" bottom: "i" top: "rois"
    python_param { module: "rpn.proposal_layer" layer: "ProposalLayer" param_str: "'feat_stride': 8" } }'''
    assert 'Proposal p 3 1 s m i rois 0=8' in lines_of(text, tmp_path)
    for more in (r"\n'scales': [8, 16, 32]", r"\n'scales': [8.0,16,32]\n'ratios': [0.5, 1, 2]", r"\n'ratios': !!python/tuple [.5, 1, 2]",
                 r"\n'scales':\n- 8\n- 16\n- 32\n'ratios': (0.5, 1, 2)"):
        assert 'Proposal p 3 1 s m i rois 0=8' in lines_of(text.replace("': 8", "': 8" + more), tmp_path)


@pytest.mark.parametrize('more', [r"\n'scales': [4, 8, 16, 32]", r"\n'scales':\n- 8\n- 16", r"\n'ratios': [1]", r"\n'scales': !!python/tuple [8, 16]"])
def test_python_proposal_layer_of_other_anchors(more, tmp_path):
    text = f'''input: "s" input: "m" input: "i" layer {{ name: "p" type: "Python" bottom: "s" bottom: "m" bottom: "i" top: "rois"
    python_param {{ module: "rpn.proposal_layer" layer: "ProposalLayer" param_str: "'feat_stride': 16{more}" }} }}'''
    assert 'Python p: anchors: expected' in refuse(tmp_path, text)


def test_sizes_of_data_layers(tmp_path):
    text = '''layer { name: "d" type: "DummyData" top: "x" dummy_data_param { shape { dim: 2 dim: 3 dim: 4 dim: 5 } } }
    layer { name: "a" type: "ReLU" bottom: "x" top: "y" }'''
    assert lines_of(text, tmp_path) == ['Input x 0 1 x 0=5 1=4 2=3', 'ReLU a 1 1 x y']
    text = text.replace('top: "x"', 'top: "x" top: "z"') + ' layer { name: "b" type: "ReLU" bottom: "z" top: "w" }'
    for more, size in (('', '0=5 1=4 2=3'), ('shape { dim: 2 dim: 6 dim: 7 dim: 8 }', '0=8 1=7 2=6')):
        assert f'Input z 0 1 z {size}' in lines_of(text.replace('dim: 5 }', 'dim: 5 } ' + more), tmp_path)


# ---------------------------------------------------------------- bad files

def small_net():
    net = CaffeNet(np.random.default_rng(4), {'data': np.ones((1, 3, 6, 6))})
    net.relu(net.conv('data', 'conv', 4, 3))
    net.fc('conv', 'fc', 3)
    return net


def refuse(folder, prototxt=None, caffemodel=None):
    """The message for files that cannot be converted; nothing may be written."""
    net = small_net()
    converted = Converted(prototxt if prototxt is not None else net.prototxt(),
                          caffemodel if caffemodel is not None else net.caffemodel(), folder)
    assert converted.done.returncode == 1, converted.done.stderr
    assert sorted(p.name for p in folder.iterdir()) == ['in.caffemodel', 'in.prototxt']
    assert last_line(converted.done.stderr).startswith('caffe2engine: ')
    return converted.done.stderr


def test_statistics_of_a_batch_of_two(tmp_path):
    message = refuse(tmp_path, """input: "data" input_dim: [2, 3, 6, 6] layer { name: "bn" type: "BatchNorm" bottom: "data"
    top: "bn" batch_norm_param { use_global_stats: false } }""")
    assert 'BatchNorm bn: ' in message and 'a batch of 1' in message


def test_unsupported_layers_are_all_named(tmp_path):
    net = small_net()
    text = net.prototxt() + ''.join(f'layer {{ name: "odd{i}" type: "{kind}" bottom: "fc" top: "odd{i}" }}\n'
                                    for i, kind in enumerate(('Strange', 'Python', 'Warp')))
    message = refuse(tmp_path, text)
    for i, kind in enumerate(('Strange', 'Python', 'Warp')):
        assert f'error: {kind} odd{i}: ' in message
    assert '3 of 7 layers' in last_line(message)


def test_mask_of_a_window_behind_the_input(tmp_path):
    """Caffe makes 3 x 3 of this, the last of them of no values."""
    message = refuse(tmp_path, """input: "data" input_dim: [1, 1, 5, 5] layer { name: "pool" type: "Pooling" bottom: "data"
    top: "pool" top: "mask" pooling_param { pool: MAX kernel_size: 1 stride: 3 } }""")
    assert 'Pooling pool: its last window' in message


@pytest.mark.parametrize('text,message', [
    ('', 'no layers'),
    ('layer { name: "a"', 'in.prototxt:1:18'),
    ('\x00\x01\x02', 'in.prototxt:1:1'),
    ('input: "data" input_dim: 3', 'input_dim'),
    ('layer { name: "a" type: "ReLU" bottom: "x" top: "y" } layers { name: "b" type: RELU bottom: "x" top: "y" }', 'both'),
    ('layer { name: "a" type: "ReLU" bottom: "none" top: "y" }', "no layer makes its input 'none'"),
    ('layers { name: "a" type: WARP_DRIVE }', 'WARP_DRIVE'),
    ('layers { layer { name: "a" type: "warp" } }', "'warp'"),
    ('layer { name: "a" } ' + 'x { ' * 100000 + '} ' * 100000, 'in.prototxt:1'),
    ('input: "x" layer { name: "a" type: "ReLU" bottom: "x" } layer { name: "b" type: "ReLU" top: "y" }', 'no input'),
    ('input: "x" layer { name: "a" type: "ReLU" bottom: "x" top: "y" } layer { name: "b" type: "ReLU" bottom: "x" top: "y" }',
     "'y' is made by"),
], ids=lambda text: text[:24] if isinstance(text, str) else None)
def test_bad_prototxt(text, message, tmp_path):
    assert message in refuse(tmp_path, text)


@pytest.mark.parametrize('param,message', [
    ('num_output: 4', 'kernel'), ('num_output: 4000000000 kernel_size: 3', 'num_output'),
    ('num_output: 4 kernel_size: 4000000000', 'kernel'), ('num_output: 4 kernel_size: 3 stride: 0', 'stride'),
    ('num_output: 4 kernel_size: 3 dilation: 0', 'dilation'),
    ('num_output: 4 kernel_size: 3 group: 2', ''), ('num_output: 4 kernel_size: 3 group: 0', 'group'),
    ('num_output: 5 kernel_size: 3', 'weight'), ('num_output: 4 kernel_size: 3 pad: 4294967295', 'pad'),
    ('num_output: 4 kernel_size: [3, 3, 3]', 'kernel_size'), ('num_output: 4 kernel_size: 3 axis: 2', 'axis'),
    ('num_output: 0 kernel_size: 3', 'num_output')])
@pytest.mark.parametrize('kind', ['Convolution', 'Deconvolution'])
def test_bad_window(kind, param, message, tmp_path):
    text = f'''input: "data" input_dim: [1, 3, 6, 6]
    layer {{ name: "conv" type: "{kind}" bottom: "data" top: "conv" convolution_param {{ {param} }} }}'''
    answer = refuse(tmp_path, text)
    assert f'{kind} conv: ' in answer and message in answer


def test_reshape_to_the_batch_alone(tmp_path):
    """There is no size behind the batch's to be looked at."""
    text = """input: "data" input_shape { dim: 1 dim: 1 }
    layer { name: "r" type: "Reshape" bottom: "data" top: "r" reshape_param { shape { dim: 1 } } }"""
    converted = Converted(text, small_net().caffemodel(), tmp_path)
    assert converted.done.returncode == 0, converted.done.stderr
    assert '0=-1' in last_line(converted.param.read_text())


@pytest.mark.parametrize('kind,param', [
    ('Reshape', 'reshape_param { shape { dim: 0 dim: 5 } }'), ('Reshape', 'reshape_param { shape { dim: 0 dim: -1 dim: 0 dim: 5 } }'),
    ('Reshape', 'reshape_param { shape { dim: -1 dim: -1 } }'), ('Reshape', 'reshape_param { shape { dim: 0 dim: -7 } }'),
    ('Reshape', 'reshape_param { shape { dim: 9223372036854775807 dim: 9223372036854775807 } }'), ('Reshape', ''),
    ('Reshape', 'reshape_param { shape { dim: 2 } axis: 9 }'), ('Reshape', 'reshape_param { shape { dim: 2 } axis: 1 num_axes: 9 }'),
    ('Flatten', 'flatten_param { axis: 2 end_axis: 1 }'), ('Flatten', 'flatten_param { axis: 7 }'),
    ('Permute', 'permute_param { order: 0 order: 5 }'), ('Permute', 'permute_param { order: 0 order: 1 order: 1 order: 2 }'),
    ('Permute', 'permute_param { order: 4294967295 }'), ('Slice', 'slice_param { slice_point: 1 }'),
    ('Slice', 'slice_param { axis: 9 }'), ('Tile', 'tile_param { axis: 1 tiles: 0 }'), ('Tile', 'tile_param { tiles: -2147483648 }'),
    ('Softmax', 'softmax_param { axis: 4 }'), ('Softmax', 'softmax_param { axis: -2147483648 }'), ('Concat', 'concat_param { axis: 4 }'),
    ('ArgMax', 'argmax_param { top_k: 0 }'), ('ArgMax', 'argmax_param { axis: 1 top_k: 99 }'),
    ('Eltwise', 'eltwise_param { coeff: 1 coeff: 2 }'), ('LRN', 'lrn_param { local_size: 0 }'),
    ('LRN', 'lrn_param { local_size: 4294967295 }'), ('ShuffleChannel', 'shuffle_channel_param { group: 2 }'),
    ('ShuffleChannel', 'shuffle_channel_param { group: 0 }'), ('Interp', 'interp_param { height: -1 width: 5 }'),
    ('Interp', 'interp_param { zoom_factor: 0 }'), ('Interp', 'interp_param { zoom_factor: 2147483647 }'),
    ('Interp', 'interp_param { zoom_factor: 2 pad_beg: -2147483648 }'), ('Interp', 'interp_param { zoom_factor: 2 pad_beg: -9 }'),
    ('Upsample', 'upsample_param { scale: 0 }'), ('Upsample', 'upsample_param { scale: 2147483647 }'),
    ('Upsample', 'upsample_param { upsample_h: 12 upsample_w: 12 }'), ('Upsample', 'upsample_param { scale_h: 3 scale_w: 4 }'),
    ('Reorg', 'reorg_param { stride: 0 }'), ('Reorg', 'reorg_param { stride: 9 }'), ('Reorg', 'reorg_param { reverse: true }'),
    ('PriorBox', ''), ('DetectionOutput', ''), ('ROIPooling', ''), ('PSROIPooling', ''), ('Proposal', ''), ('LSTM', ''),
    ('InnerProduct', ''), ('InnerProduct', 'inner_product_param { num_output: 4294967295 }'), ('Embed', ''), ('Scale', ''),
    ('BatchNorm', ''), ('PReLU', ''), ('Normalize', ''), ('BN', ''), ('Crop', ''), ('Axpy', ''), ('Parameter', ''),
    ('SPP', 'spp_param { pyramid_height: 4294967295 }'), ('SPP', ''), ('Im2col', ''), ('Clip', 'clip_param { min: 1 }'),
    ('Power', 'power_param { power: x }')])
def test_bad_parameters(kind, param, tmp_path):
    """One layer on a map of 3 x 6 x 6, with the wrong numbers or with what it needs missing."""
    text = f'input: "data" input_dim: [1, 3, 6, 6] layer {{ name: "odd" type: "{kind}" bottom: "data" top: "odd" {param} }}'
    message = refuse(tmp_path, text)
    assert f'{kind} odd: ' in message or 'in.prototxt:' in message


@pytest.mark.parametrize('param', [
    'kernel_size: 0', 'kernel_size: 3 stride: 0', 'kernel_size: 2 pad: 2', 'kernel_size: 4294967295', 'pool: STOCHASTIC kernel_size: 3 pad: 1',
    'kernel_size: 3 stride: 4294967295', 'kernel_size: 2147483647 pad: 2147483646', 'kernel_h: 3'])
def test_bad_pooling(param, tmp_path):
    text = f'''input: "data" input_dim: [1, 3, 6, 6]
    layer {{ name: "pool" type: "Pooling" bottom: "data" top: "pool" pooling_param {{ {param} }} }}'''
    assert 'Pooling pool: ' in refuse(tmp_path, text)


def test_bad_caffemodel(tmp_path):
    good = small_net().caffemodel()
    assert 'no caffemodel' in refuse(tmp_path, caffemodel=b'')
    assert 'no caffemodel' in refuse(tmp_path, caffemodel=b'7767517\n3 3\n' * 9)
    assert 'HDF5' in refuse(tmp_path, caffemodel=b'\x89HDF\r\n\x1a\n' + bytes(90))
    assert 'no caffemodel, it is a text param' in refuse(tmp_path, caffemodel=b'7767517\n3 3\n' * 9)
    onnx = (ROOT / 'models/digits/digits.onnx').read_bytes()
    assert 'no caffemodel, it is an ONNX model, which onnx2engine converts' in refuse(tmp_path, caffemodel=onnx)
    assert 'no prototxt, it is a text param' in refuse(tmp_path, prototxt='7767517\n3 3\n' * 9)
    for size in range(1, len(good), 37):
        refuse(tmp_path, caffemodel=good[:size])
    assert 'no weights for it' in refuse(tmp_path, caffemodel=chunk(100, chunk(1, 'other')))


def test_weights_that_do_not_fit(tmp_path):
    net = small_net()
    net.layers[0].blobs[0] = net.layers[0].blobs[0][:, :2]
    net.layers[2].blobs[1] = np.ones(7)
    message = refuse(tmp_path, caffemodel=net.caffemodel())
    assert 'Convolution conv: ' in message and 'InnerProduct fc: weight 1: expected 3 values, got 7' in message


def test_weights_that_are_not_read_are_told(tmp_path):
    net = small_net()
    text = net.prototxt().replace('num_output: 4', 'num_output: 4 bias_term: false')
    converted = Converted(text, net.caffemodel(), tmp_path)
    assert converted.done.returncode == 0
    assert converted.done.stderr == 'Convolution conv: the last 1 of its weights are not read\n'


def test_random_damage_does_no_harm(tmp_path):
    rng = np.random.default_rng(6)
    net = small_net()
    good = [net.prototxt().encode(), net.caffemodel()]
    for _ in range(60):
        bytes_ = [bytearray(part) for part in good]
        which = rng.integers(2)
        for _ in range(rng.integers(1, 6)):
            bytes_[which][rng.integers(len(bytes_[which]))] = rng.integers(256 if which else 128)
        for path, content in zip(('a.prototxt', 'a.caffemodel'), bytes_):
            (tmp_path / path).write_bytes(content)
        done = run_program('caffe2engine', *(tmp_path / n for n in ('a.prototxt', 'a.caffemodel', 'o.param', 'o.bin')))
        assert done.returncode in (0, 1), done.stderr
        assert (tmp_path / 'o.param').exists() == (done.returncode == 0)
        for path in ('o.param', 'o.bin'):
            (tmp_path / path).unlink(missing_ok=True)


def test_files_that_cannot_be_opened(tmp_path):
    converted = convert(small_net(), tmp_path)
    before = [path.read_bytes() for path in converted.paths]
    (tmp_path / 'folder').mkdir()
    for i, bad in [(0, 'missing'), (1, 'missing'), (0, 'folder'), (1, 'folder'), (2, 'folder'), (3, 'folder'),
                   (2, 'no/such'), (3, 'no/such'), (2, 'in.prototxt'), (3, 'in.caffemodel'), (3, 'out.param')]:
        paths = list(converted.paths)
        paths[i] = tmp_path / bad
        done = run_program('caffe2engine', *paths)
        assert done.returncode == 1 and str(paths[i]) in last_line(done.stderr), done.stderr
        assert [path.read_bytes() for path in converted.paths] == before
    assert len(list(tmp_path.iterdir())) == 5


def test_disk_full(tmp_path):
    convert(small_net(), tmp_path)
    done = run_program('caffe2engine', tmp_path / 'in.prototxt', tmp_path / 'in.caffemodel', tmp_path / 'o.param', '/dev/full')
    assert done.returncode == 1 and not (tmp_path / 'o.param').exists()


def test_command_line():
    assert run_program('caffe2engine').returncode == 2
    assert run_program('caffe2engine', 'a').returncode == 2
    for option, text in (('--help', 'DEPLOY.prototxt'), ('--version', 'quoll')):
        done = run_program('caffe2engine', option)
        assert done.returncode == 0 and text in done.stdout


def test_names_with_spaces(tmp_path):
    net = CaffeNet(np.random.default_rng(4), {'in put': np.ones((1, 3, 6, 6))})
    net.relu(net.conv('in put', 'conv one', 4, 3))
    net.fc('conv one', 'the end', 3)
    converted = convert(net, tmp_path)
    got = run_engine(converted.param, converted.bin, {'in_put': net.inputs['in put'][0]}, ['the_end'])
    check_blob('the end', got['the_end'], net.values['the end'])


def test_real_extras_are_silent(tmp_path):
    """What prototxts have for training and display is no reason for warnings; what is unknown is one."""
    net = CaffeNet(np.random.default_rng(4), {'data': np.ones((1, 3, 6, 6))})
    net.conv('data', 'conv', 4, 3)
    text = '''name: "n" force_backward: true input: 'data' input_shape { dim: 1 dim: 3 dim: 6 dim: 6 }
    layer { name: 'conv' type: 'Convolution' bottom: 'data' top: 'conv' param { lr_mult: 1 decay_mult: 0 } loss_weight: 0
      propagate_down: false convolution_param { num_output: 4 kernel_size: 3 engine: CUDNN weight_filler { type: 'msra' }
      bias_filler { type: 'constant' value: 0.2 } } } # a comment
    layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" relu_param { engine: CAFFE } }
    layer { name: "prob" type: "Softmax" bottom: "conv" top: "prob" loss_param { ignore_label: -1 normalize: true } }'''
    converted = Converted(text, net.caffemodel(), tmp_path)
    assert converted.done.returncode == 0 and converted.done.stderr == ''
    converted = Converted(text.replace('engine: CAFFE', 'twist: 3'), net.caffemodel(), tmp_path)
    assert converted.done.returncode == 0
    assert converted.done.stderr.startswith('warn: ') and 'in.prototxt:5:' in converted.done.stderr and 'twist' in converted.done.stderr
