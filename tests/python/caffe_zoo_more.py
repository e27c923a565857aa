"""More nets that are public as Caffe models, small, with random weights: segmentation, recurrent, detection and face nets."""
import numpy as np

from caffe_net import Word
from caffe_zoo import image_net


def bilinear(channels, kernel):
    """Weights of a Deconvolution with a group for each channel that enlarges."""
    factor = (kernel + 1) // 2
    centre = factor - 1 if kernel % 2 else factor - 0.5
    line = 1 - np.abs(np.arange(kernel) - centre) / factor
    return np.broadcast_to(line[:, None] * line, (channels, 1, kernel, kernel))


def deconv(n, x, name, channels, kernel, stride, pad=0, group=True):
    weights = bilinear(channels, kernel) if group else n.random(n.values[x].shape[1], channels, kernel, kernel, scale=0.1)
    return n.add('Deconvolution', x, name, [weights], convolution_param={
        'num_output': channels, 'kernel_size': kernel, 'stride': stride, 'pad': pad, 'bias_term': False,
        **({'group': channels} if group else {})})


def conv_bn(n, x, name, count, kernel, act='ReLU', **param):
    x = n.batch_norm(n.conv(x, name, count, kernel, bias=False, **param))
    return n.relu(x, act) if act else x


def fcn8s(rng):
    """Long et al.: wide padding at first, Crop by offsets, scores added at three scales."""
    n = image_net(rng, 37)
    x, pools = 'data', {}
    for block, count in enumerate((6, 8, 10, 12, 12), 1):
        x = n.relu(n.conv(x, f'conv{block}_1', count, 3, pad=100 if block == 1 else 1))
        pools[block] = x = n.pool(x, f'pool{block}', 2, stride=2)
    x = n.relu(n.conv(x, 'fc6', 16, 7))
    x = n.relu(n.conv(n.add('Dropout', x, dropout_param={'dropout_ratio': 0.5}), 'fc7', 16, 1))
    x = deconv(n, n.conv(x, 'score_fr', 5, 1), 'upscore2', 5, 4, 2, group=False)
    for block, offset, stride in ((4, 5, 2), (3, 9, 8)):
        scale = n.add('Scale', pools[block], f'scale_pool{block}', [[0.01]], scale_param={'axis': 0, 'num_axes': 0})
        score = n.conv(scale, f'score_pool{block}', 5, 1)
        score = n.add('Crop', [score, x], f'score_pool{block}c', crop_param={'axis': 2, 'offset': offset})
        x = n.add('Eltwise', [x, score], f'fuse_pool{block}', eltwise_param={'operation': Word('SUM')})
        x = deconv(n, x, f'upscore_pool{block}', 5, 2 * stride, stride, group=False)
    n.add('Crop', [x, 'data'], 'score', crop_param={'axis': 2, 'offset': 31})
    n.add('ArgMax', 'score', 'label', argmax_param={'axis': 1})
    return n


def segnet(rng):
    """Badrinarayanan et al.: places of the maxima, BN with two blobs."""
    n = image_net(rng, 32)
    x, masks, counts = 'data', [], (8, 12, 16)
    for block, count in enumerate(counts, 1):
        n.conv(x, f'conv{block}', count, 3, pad=1)
        x = n.relu(n.add('BN', f'conv{block}', f'conv{block}', [n.random(1, count, 1, 1, low=0.5), n.random(1, count, 1, 1)]))
        n.add('Pooling', x, [f'pool{block}', f'pool{block}_mask'],
              pooling_param={'pool': Word('MAX'), 'kernel_size': 2, 'stride': 2})
        masks.append(f'pool{block}_mask')
        x = f'pool{block}'
    for block, count in reversed(list(enumerate((4, *counts[:-1]), 1))):
        x = n.add('Upsample', [x, masks[block - 1]], f'upsample{block}', upsample_param={'scale': 2})
        x = n.conv(x, f'conv{block}_D', count, 3, pad=1)
    n.add('Softmax', x, 'prob', softmax_param={'engine': Word('CAFFE')})
    return n


def densenet(rng):
    n = image_net(rng, 32)
    x = n.pool(conv_bn(n, 'data', 'conv1', 8, 7, stride=2, pad=3), 'pool1', 3, stride=2, pad=1)
    for block in (1, 2):
        for i in range(3):
            name = f'conv{block}_{i}'
            y = n.relu(n.batch_norm(x, f'{name}/bn'))
            y = n.relu(n.batch_norm(n.conv(y, f'{name}/x1', 16, 1, bias=False)))
            y = n.conv(y, f'{name}/x2', 4, 3, bias=False, pad=1)
            x = n.add('Concat', [x, y], f'concat_{block}_{i}')
        x = n.conv(n.relu(n.batch_norm(x, f'conv{block}_blk/bn')), f'conv{block}_blk', 8, 1, bias=False)
        x = n.pool(x, f'pool{block}_blk', 2, 'AVE', stride=2)
    x = n.conv(n.pool(x, 'pool5', 0, 'AVE'), 'fc6', 10, 1)
    n.add('Softmax', x, 'prob')
    return n


def inception_resnet(rng):
    """Kernels of one row or column, average pooling with a border, scaled residuals, in the style of v3, v4 and ResNet-v2."""
    n = image_net(rng, 47)
    x = conv_bn(n, 'data', 'conv1_3x3_s2', 8, 3, stride=2)
    x = n.pool(conv_bn(n, x, 'conv2_3x3', 8, 3, pad=1), 'pool1', 3, stride=2)
    one = conv_bn(n, x, 'a_1x1', 6, 1)
    seven = conv_bn(n, conv_bn(n, x, 'a_1x7', 6, (1, 7), pad_h=0, pad_w=3, stride_h=1, stride_w=1), 'a_7x1', 6, (7, 1),
                    pad_h=3, pad_w=0, stride_h=1, stride_w=1)
    side = conv_bn(n, n.pool(x, 'a_pool', 3, 'AVE', stride=1, pad=1), 'a_proj', 6, 1)
    x = n.add('Concat', [one, seven, side], 'a_concat', concat_param={'axis': 1})
    for i in range(2):
        y = n.add('Concat', [conv_bn(n, x, f'b{i}_1x1', 6, 1), conv_bn(n, x, f'b{i}_3x3', 6, 3, pad=1)], f'b{i}_concat')
        y = n.add('Scale', n.conv(y, f'b{i}_up', 18, 1), f'b{i}_scale', [[0.17]], scale_param={'axis': 0, 'num_axes': 0})
        x = n.relu(n.add('Eltwise', [x, y], f'b{i}_sum', eltwise_param={'operation': Word('SUM'), 'coeff': [1.0, 0.9]}))
    left, right = n.pool(x, 'reduce_pool', 3, stride=2), conv_bn(n, x, 'reduce_3x3', 8, 3, stride=2)
    x = n.add('Concat', [left, right], 'reduce')
    size = n.values[x].shape[2]
    x = n.add('Dropout', n.pool(x, 'pool_last', size, 'AVE', stride=1), dropout_param={'dropout_ratio': 0.2})
    n.add('Softmax', n.fc(x, 'classifier', 10), 'prob')
    return n


def senet(rng, by='Axpy'):
    """Squeeze and excitation, by Axpy or by a Scale of two inputs."""
    n = image_net(rng, 24)
    x = conv_bn(n, 'data', 'conv1', 16, 3, pad=1)
    for i in range(2):
        y = conv_bn(n, conv_bn(n, x, f'conv{i}_1', 8, 1), f'conv{i}_2', 16, 3, act=None, pad=1)
        s = n.relu(n.conv(n.pool(y, f'gap{i}', 0, 'AVE'), f'gap{i}_down', 4, 1))
        s = n.add('Sigmoid', n.conv(s, f'gap{i}_up', 16, 1), f'gap{i}_prob')
        if by == 'Axpy':
            x = n.relu(n.add('Axpy', [s, y, x], f'block{i}'))
        else:
            s = n.add('Flatten', s, f'gap{i}_flat')
            y = n.add('Scale', [y, s], f'block{i}_scale', scale_param={'axis': 0})
            x = n.relu(n.add('Eltwise', [y, x], f'block{i}'))
    n.add('Softmax', n.fc(n.pool(x, 'pool5', 0, 'AVE'), 'fc', 7), 'prob')
    return n


def yolo_v2(rng):
    n = image_net(rng, 64)
    x, leaky = 'data', {'relu_param': {'negative_slope': 0.1}}
    for i, count in enumerate((8, 12, 16), 1):
        x = n.relu(n.batch_norm(n.conv(x, f'conv{i}', count, 3, bias=False, pad=1)), **leaky)
        before, x = x, n.pool(x, f'pool{i}', 2, stride=2)
    side = n.add('Reorg', n.conv(before, 'conv_side', 4, 1), 'reorg', reorg_param={'stride': 2})
    x = n.add('Concat', [side, x], 'concat')
    n.conv(n.relu(n.conv(x, 'conv8', 16, 3, pad=1), **leaky), 'result', 5 * 7, 1)
    return n


def yolo_v3(rng):
    """Upsample between scales, shortcuts."""
    n = image_net(rng, 64)
    leaky = {'relu_param': {'negative_slope': 0.1}}
    act = lambda x, name, count, kernel, **param: n.relu(n.batch_norm(n.conv(x, name, count, kernel, bias=False, **param)), **leaky)
    x = act(act('data', 'conv0', 8, 3, pad=1), 'conv1', 8, 3, pad=1, stride=2)
    for i in range(2):
        y = act(act(x, f's{i}_1', 4, 1), f's{i}_2', 8, 3, pad=1)
        x = n.add('Eltwise', [x, y], f'shortcut{i}', eltwise_param={'operation': Word('SUM')})
    deep = act(x, 'down', 16, 3, pad=1, stride=2)
    n.conv(deep, 'yolo16', 21, 1)
    up = n.add('Upsample', act(deep, 'lateral', 4, 1), 'up', upsample_param={'scale': 2})
    n.conv(n.add('Concat', [up, x], 'route'), 'yolo32', 21, 1)
    return n


def crnn(rng):
    """Text lines: columns become the steps of two LSTMs in turn."""
    n = image_net(rng, 32, channels=1)
    n.inputs['data'] = rng.uniform(-1, 1, (1, 1, 16, 48)).astype(np.float32)
    n.values['data'] = n.inputs['data'].astype(np.float64)
    x = n.pool(n.relu(n.conv('data', 'conv1', 8, 3, pad=1)), 'pool1', 2, stride=2)
    x = n.pool(n.relu(n.conv(x, 'conv2', 12, 3, pad=1)), 'pool2', 2, stride_h=2, stride_w=2)
    x = n.relu(n.conv(x, 'conv3', 16, (4, 1), pad_h=0, pad_w=0, stride_h=1, stride_w=1))
    x = n.add('Permute', x, 'blstm_input', permute_param={'order': [3, 0, 1, 2]})
    x = n.add('Reshape', x, 'steps', reshape_param={'shape': {'dim': [0, 0, -1]}})
    steps = n.values[x].shape[0]
    n.inputs['cont'] = np.concatenate([[[0]], np.ones((steps - 1, 1))]).astype(np.float32)
    n.values['cont'] = n.inputs['cont'].astype(np.float64)
    for i in (1, 2):
        count = n.values[x].shape[2]
        blobs = [n.random(4 * 10, count, scale=count ** -0.5), n.random(4 * 10, scale=0.1), n.random(4 * 10, 10, scale=0.3)]
        x = n.add('LSTM', [x, 'cont'], f'lstm{i}', blobs, recurrent_param={'num_output': 10})
    n.fc(x, 'fc1x', 11, axis=2)
    n.add('Softmax', 'fc1x', 'probs', softmax_param={'axis': 2})
    return n


def crnn_both_ways(rng):
    """The fork for text that has layers of its own: each LSTM runs forwards and backwards."""
    n = image_net(rng, 16)
    x = n.relu(n.conv('data', 'conv1', 8, 3, pad=1))
    x = n.relu(n.conv(x, 'conv2', 12, (16, 1), pad_h=0, pad_w=0, stride_h=1, stride_w=1))
    x = n.add('Transpose', x, 'steps4', transpose_param={'dim': [3, 0, 1, 2]})
    x = n.add('Reshape', x, 'blstm_input', reshape_param={'shape': {'dim': [0, 0, -1]}})
    marks = n.add('ContinuationIndicator', x, 'indicator', continuation_indicator_param={'axis': 0})
    lstm = lambda x, name: n.add('LSTM', [x, marks], name, [n.random(40, n.values[x].shape[2], scale=0.3), n.random(40, scale=0.1),
                                                           n.random(40, 10, scale=0.3)], recurrent_param={'num_output': 10})
    for i in (1, 2):
        forward = lstm(x, f'lstm{i}')
        back = lstm(n.add('Reverse', x, f'lstm{i}_reverse_input', reverse_param={'axis': 0}), f'rlstm{i}')
        back = n.add('Reverse', back, f'lstm{i}_reversed', reverse_param={'axis': 0})
        x = n.add('Concat', [forward, back], f'blstm{i}', concat_param={'axis': 2})
    n.add('Softmax', n.fc(x, 'fc1x', 11, axis=2), 'probs', softmax_param={'axis': 2})
    return n


def mtcnn(rng, stage='P'):
    n = image_net(rng, {'P': 33, 'R': 24, 'O': 48}[stage])
    prelu = lambda x: n.add('PReLU', x, None, [n.random(n.values[x].shape[1], low=0.1, scale=0.4)])
    x = prelu(n.conv('data', 'conv1', 10, 3))
    x = n.pool(x, 'pool1', 2 if stage == 'P' else 3, stride=2)
    x = prelu(n.conv(x, 'conv2', 16, 3))
    if stage == 'P':
        x = prelu(n.conv(x, 'conv3', 32, 3))
        n.add('Softmax', n.conv(x, 'conv4-1', 2, 1), 'prob1')
        n.conv(x, 'conv4-2', 4, 1)
        return n
    x = n.pool(x, 'pool2', 3, stride=2)
    x = prelu(n.fc(prelu(n.conv(x, 'conv3', 24, 2)), 'conv4', 32))
    n.add('Softmax', n.fc(x, 'conv5-1', 2), 'prob1')
    n.fc(x, 'conv5-2', 4)
    if stage == 'O':
        n.fc(x, 'conv5-3', 10)
    return n


def openpose(rng):
    """Two branches refined in stages; each stage reads the features again."""
    n = image_net(rng, 46)
    x = n.pool(n.relu(n.conv('data', 'conv1_1', 8, 3, pad=1)), 'pool1_stage1', 2, stride=2)
    features = y = n.relu(n.conv(x, 'conv4_4_CPM', 12, 3, pad=1))
    for stage in (1, 2, 3):
        ends = []
        for branch, count in ((1, 38), (2, 19)):
            z = n.relu(n.conv(y, f'Mconv1_stage{stage}_L{branch}', 10, 3 if stage == 1 else 7, pad=1 if stage == 1 else 3))
            ends.append(n.conv(z, f'Mconv7_stage{stage}_L{branch}', count, 1))
        y = n.add('Concat', [*ends, features], f'concat_stage{stage + 1}') if stage < 3 else None
    n.add('Concat', list(reversed(ends)), 'net_output', concat_param={'axis': 1})
    return n


def deeplab(rng):
    """Dilated convolutions beside each other, the largest of scales, corners aligned; a pyramid of pooled features."""
    n = image_net(rng, 33)
    x = n.pool(n.relu(n.conv('data', 'conv1', 8, 3, pad=1)), 'pool1', 3, stride=2, pad=1)
    x = n.pool(n.relu(n.conv(x, 'conv2', 12, 3, pad=2, dilation=2)), 'pool2', 3, stride=1, pad=1)
    heads = [n.conv(x, f'fc8_{d}', 5, 3, pad=d, dilation=d) for d in (2, 4, 6)]
    score = n.add('Eltwise', heads, 'fc8', eltwise_param={'operation': Word('SUM')})
    size = n.values[x].shape[2]
    parts = [score]
    for bins in (1, 2, 3):
        kernel = -(-size // bins)
        y = conv_bn(n, n.pool(x, f'psp{bins}', kernel, 'AVE', stride=kernel), f'psp{bins}_conv', 4, 1)
        parts.append(n.add('Interp', y, f'psp{bins}_interp', interp_param={'height': size, 'width': size}))
    x = n.conv(n.add('Concat', parts, 'psp'), 'head', 5, 1)
    x = n.add('Interp', x, 'up', interp_param={'zoom_factor': 2})
    half = n.add('Interp', n.add('Interp', x, 'half', interp_param={'shrink_factor': 2}), 'whole', interp_param={'zoom_factor': 2})
    n.add('Eltwise', [x, half], 'fc_fusion', eltwise_param={'operation': Word('MAX')})
    return n


def hed(rng):
    """Side outputs enlarged, cropped to the image and weighed together."""
    n = image_net(rng, 30)
    x, sides = 'data', []
    for block, (count, pad) in enumerate(((6, 35), (8, 1), (10, 1)), 1):
        x = n.relu(n.conv(x, f'conv{block}', count, 3, pad=pad))
        side = n.conv(x, f'score{block}', 1, 1)
        if block > 1:
            side = deconv(n, side, f'upsample{block}', 1, 2 ** block, 2 ** (block - 1))
        side = n.add('Crop', [side, 'data'], f'crop{block}', crop_param={'axis': 2, 'offset': [34, 34]})
        sides.append(side)
        n.add('Sigmoid', side, f'sigmoid{block}')
        x = n.pool(x, f'pool{block}', 2, stride=2)
    n.add('Sigmoid', n.conv(n.add('Concat', sides, 'concat-upscore'), 'upscore-fuse', 1, 1), 'sigmoid-fuse')
    return n


def face_boxes(rng):
    """CReLU, L2 Normalize, heads permuted and reshaped to rows of scores."""
    n = image_net(rng, 64)
    crelu = lambda x, name: n.relu(n.add('Concat', [x, n.add('Power', x, f'{name}_neg', power_param={'scale': -1.0})], name))
    x = crelu(n.batch_norm(n.conv('data', 'conv1', 6, 7, bias=False, stride=4, pad=3)), 'conv1_CR')
    x = n.pool(x, 'pool1', 3, stride=2)
    x = n.add('Normalize', x, 'norm', [n.random(12, low=5, scale=20)],
              norm_param={'across_spatial': False, 'channel_shared': False})
    rows = {'loc': [], 'conf': []}
    for scale in (1, 2):
        x = n.relu(n.conv(x, f'inception{scale}', 12, 3, pad=1, stride=scale))
        for kind, count in (('loc', 4), ('conf', 2)):
            y = n.conv(x, f'{kind}{scale}', 3 * count, 3, pad=1)
            y = n.add('Permute', y, f'{kind}{scale}_perm', permute_param={'order': [0, 2, 3, 1]})
            rows[kind].append(n.add('Flatten', y, f'{kind}{scale}_flat', flatten_param={'axis': 1}))
    n.add('Concat', rows['loc'], 'mbox_loc', concat_param={'axis': 1})
    n.add('Concat', rows['conf'], 'mbox_conf', concat_param={'axis': 1})
    n.add('Reshape', 'mbox_conf', 'mbox_conf_reshape', reshape_param={'shape': {'dim': [0, -1, 2]}})
    n.add('Softmax', 'mbox_conf_reshape', 'mbox_conf_softmax', softmax_param={'axis': 2})
    n.add('Flatten', 'mbox_conf_softmax', 'mbox_conf_flatten', flatten_param={'axis': 1})
    return n


def sphere_face(rng):
    """Residual blocks of PReLU; the features and their mirror images compared as embeddings."""
    n = image_net(rng, 28)
    prelu = lambda x: n.add('PReLU', x, None, [n.random(n.values[x].shape[1], low=0.1, scale=0.4)])
    x = 'data'
    for i, count in enumerate((8, 12), 1):
        x = prelu(n.conv(x, f'conv{i}_1', count, 3, pad=1, stride=2))
        y = prelu(n.conv(prelu(n.conv(x, f'conv{i}_2', count, 3, pad=1)), f'conv{i}_3', count, 3, pad=1))
        x = n.add('Eltwise', [x, y], f'res{i}', eltwise_param={'operation': Word('SUM')})
    n.fc(x, 'fc5', 16)
    square = n.add('Reduction', n.add('Power', 'fc5', 'square', power_param={'power': 2.0}), 'sum',
                   reduction_param={'operation': Word('SUM'), 'axis': 1})
    inverse = n.add('Power', square, 'inverse', power_param={'power': -0.5, 'shift': 1e-10})
    n.add('Scale', ['fc5', inverse], 'embedding', scale_param={'axis': 0})
    return n


def retina_face(rng):
    """A pyramid: laterals enlarged by a grouped Deconvolution, cropped to what they are added to."""
    n = image_net(rng, 54)
    c, pyramid = [], 'data'
    for i, count in enumerate((8, 12, 16)):
        pyramid = conv_bn(n, pyramid, f'c{i}', count, 3, pad=1, stride=2)
        c.append(pyramid)
    x = None
    for i in (2, 1, 0):
        lateral = conv_bn(n, c[i], f'lateral{i}', 8, 1)
        if x is not None:
            up = n.add('Crop', [deconv(n, x, f'up{i}', 8, 4, 2, pad=1), lateral], f'crop{i}', crop_param={'axis': 2})
            lateral = n.add('Eltwise', [lateral, up], f'plus{i}')
        x = conv_bn(n, lateral, f'out{i}', 8, 3, pad=1)
        score = n.conv(x, f'score{i}', 4, 1)
        h, w = n.values[score].shape[2:]
        score = n.add('Reshape', score, f'score{i}_reshape', reshape_param={'shape': {'dim': [0, 2, -1, w]}})
        prob = n.add('Softmax', score, f'prob{i}', softmax_param={'axis': 1})
        n.add('Reshape', prob, f'prob{i}_reshape', reshape_param={'shape': {'dim': [0, 4, -1, w]}})
    return n


def two_streams(rng):
    """Slices, products and differences of embeddings: matching nets, Siamese pairs, gated units."""
    n = image_net(rng, 20, channels=6)
    n.add('Slice', 'data', ['left', 'right'], slice_param={'axis': 1, 'slice_point': [3]})
    ends = []
    weights = [n.random(8, 3, 3, 3, scale=0.3), n.random(8, scale=0.1)]
    for side in ('left', 'right'):
        x = n.add('Convolution', side, f'{side}_conv', weights, convolution_param={'num_output': 8, 'kernel_size': [3], 'pad': [1]})
        x = n.add('TanH', n.add('LRN', x, f'{side}_norm', lrn_param={
            'local_size': 3, 'norm_region': Word('WITHIN_CHANNEL'), 'alpha': 0.1}), f'{side}_tanh')
        ends.append(n.add('MVN', x, f'{side}_mvn'))
    product = n.add('Eltwise', ends, 'product', eltwise_param={'operation': Word('PROD')})
    away = n.add('AbsVal', n.add('Eltwise', ends, 'difference', eltwise_param={'coeff': [1.0, -1.0]}), 'away')
    both = n.add('Concat', [product, away], 'both', concat_param={'concat_dim': 1})
    n.add('Slice', n.conv(both, 'gates', 8, 1), ['value', 'gate'], slice_param={'slice_dim': 1})
    gated = n.add('Eltwise', ['value', n.add('Sigmoid', 'gate')], 'gated', eltwise_param={'operation': Word('PROD')})
    n.fc(n.add('SPP', gated, 'spp', spp_param={'pyramid_height': 3, 'pool': Word('MAX')}), 'match', 2)
    return n


MORE = {
    'FCN-8s': fcn8s, 'SegNet': segnet, 'DenseNet': densenet, 'Inception-ResNet': inception_resnet, 'SENet-Axpy': senet,
    'SENet-Scale': lambda rng: senet(rng, 'Scale'), 'YOLOv2': yolo_v2, 'YOLOv3': yolo_v3, 'CRNN': crnn, 'CRNN-both-ways': crnn_both_ways, 'MTCNN-P': mtcnn,
    'MTCNN-R': lambda rng: mtcnn(rng, 'R'), 'MTCNN-O': lambda rng: mtcnn(rng, 'O'), 'OpenPose': openpose, 'DeepLab-PSPNet': deeplab,
    'HED': hed, 'FaceBoxes': face_boxes, 'SphereFace': sphere_face, 'RetinaFace': retina_face, 'Two-streams': two_streams,
}
