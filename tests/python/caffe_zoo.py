"""Classic nets as their authors' prototxts have them, layer for layer, with random weights; some are narrower, to be quick."""
from caffe_net import CaffeNet, Word


def image_net(rng, size, channels=3, name='data'):
    return CaffeNet(rng, {name: rng.uniform(-1, 1, (1, channels, size, size))})


def alexnet(rng, width=0.25):
    n = image_net(rng, 227)
    at = lambda count: int(count * width) // 2 * 2
    n.relu(n.conv('data', 'conv1', at(96), 11, stride=4))
    lrn = {'local_size': 5, 'alpha': 0.0001, 'beta': 0.75}
    x = n.pool(n.add('LRN', 'conv1', 'norm1', lrn_param=lrn), 'pool1', 3, stride=2)
    n.relu(n.conv(x, 'conv2', at(256), 5, pad=2, group=2))
    x = n.pool(n.add('LRN', 'conv2', 'norm2', lrn_param=lrn), 'pool2', 3, stride=2)
    x = n.relu(n.conv(x, 'conv3', at(384), 3, pad=1))
    x = n.relu(n.conv(x, 'conv4', at(384), 3, pad=1, group=2))
    x = n.relu(n.conv(x, 'conv5', at(256), 3, pad=1, group=2))
    x = n.pool(x, 'pool5', 3, stride=2)
    for name in ('fc6', 'fc7'):
        x = n.relu(n.fc(x, name, at(4096)))
        x = n.add('Dropout', x, dropout_param={'dropout_ratio': 0.5})
    n.add('Softmax', n.fc(x, 'fc8', 1000), 'prob')
    return n


def vgg16(rng, width=0.125):
    n = image_net(rng, 112)
    x = 'data'
    for block, (count, convs) in enumerate(((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)), 1):
        for i in range(1, convs + 1):
            x = n.relu(n.conv(x, f'conv{block}_{i}', int(count * width), 3, pad=1))
        x = n.pool(x, f'pool{block}', 2, stride=2)
    for name in ('fc6', 'fc7'):
        x = n.add('Dropout', n.relu(n.fc(x, name, int(4096 * width))), dropout_param={'dropout_ratio': 0.5})
    n.add('Softmax', n.fc(x, 'fc8', 100), 'prob')
    return n


def inception(n, x, name, counts, width):
    c1, r3, c3, r5, c5, p1 = [max(1, int(c * width)) for c in counts]
    one = n.relu(n.conv(x, f'{name}/1x1', c1, 1))
    three = n.relu(n.conv(x, f'{name}/3x3_reduce', r3, 1))
    three = n.relu(n.conv(three, f'{name}/3x3', c3, 3, pad=1))
    five = n.relu(n.conv(x, f'{name}/5x5_reduce', r5, 1))
    five = n.relu(n.conv(five, f'{name}/5x5', c5, 5, pad=2))
    side = n.pool(x, f'{name}/pool', 3, stride=1, pad=1)
    side = n.relu(n.conv(side, f'{name}/pool_proj', p1, 1))
    return n.add('Concat', [one, three, five, side], f'{name}/output')


def googlenet(rng, width=0.25):
    n = image_net(rng, 224)
    lrn = {'local_size': 5, 'alpha': 0.0001, 'beta': 0.75}
    x = n.relu(n.conv('data', 'conv1/7x7_s2', int(64 * width), 7, pad=3, stride=2))
    x = n.add('LRN', n.pool(x, 'pool1/3x3_s2', 3, stride=2), 'pool1/norm1', lrn_param=lrn)
    x = n.relu(n.conv(x, 'conv2/3x3_reduce', int(64 * width), 1))
    x = n.relu(n.conv(x, 'conv2/3x3', int(192 * width), 3, pad=1))
    x = n.pool(n.add('LRN', x, 'conv2/norm2', lrn_param=lrn), 'pool2/3x3_s2', 3, stride=2)
    x = inception(n, x, 'inception_3a', (64, 96, 128, 16, 32, 32), width)
    x = inception(n, x, 'inception_3b', (128, 128, 192, 32, 96, 64), width)
    x = n.pool(x, 'pool3/3x3_s2', 3, stride=2)
    for letter, counts in zip('abcde', ((192, 96, 208, 16, 48, 64), (160, 112, 224, 24, 64, 64), (128, 128, 256, 24, 64, 64),
                                        (112, 144, 288, 32, 64, 64), (256, 160, 320, 32, 128, 128))):
        x = inception(n, x, f'inception_4{letter}', counts, width)
    x = n.pool(x, 'pool4/3x3_s2', 3, stride=2)
    x = inception(n, x, 'inception_5a', (256, 160, 320, 32, 128, 128), width)
    x = inception(n, x, 'inception_5b', (384, 192, 384, 48, 128, 128), width)
    x = n.pool(x, 'pool5/7x7_s1', 7, 'AVE', stride=1)
    x = n.add('Dropout', x, dropout_param={'dropout_ratio': 0.4})
    n.add('Softmax', n.fc(x, 'loss3/classifier', 1000), 'prob')
    return n


def resnet50(rng, width=0.25):
    n = image_net(rng, 224)
    x = n.relu(n.batch_norm(n.conv('data', 'conv1', int(64 * width), 7, pad=3, stride=2)))
    x = n.pool(x, 'pool1', 3, stride=2)
    for stage, (count, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3)), 2):
        count = int(count * width)
        for i in range(blocks):
            name, stride = f'res{stage}{chr(97 + i)}', 2 if i == 0 and stage > 2 else 1
            side = n.batch_norm(n.conv(x, f'{name}_branch1', 4 * count, 1, False, stride=stride)) if i == 0 else x
            y = n.relu(n.batch_norm(n.conv(x, f'{name}_branch2a', count, 1, False, stride=stride)))
            y = n.relu(n.batch_norm(n.conv(y, f'{name}_branch2b', count, 3, False, pad=1)))
            y = n.batch_norm(n.conv(y, f'{name}_branch2c', 4 * count, 1, False))
            x = n.relu(n.add('Eltwise', [side, y], name))
    x = n.pool(x, 'pool5', 7, 'AVE', stride=1)
    n.add('Softmax', n.fc(x, 'fc1000', 1000), 'prob')
    return n


def mobilenet_v1(rng, width=0.25, depthwise='Convolution'):
    n = image_net(rng, 224)
    x = n.relu(n.batch_norm(n.conv('data', 'conv1', int(32 * width), 3, False, pad=1, stride=2)))
    for i, (count, stride) in enumerate(((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *((512, 1),) * 5,
                                         (1024, 2), (1024, 1))):
        channels = n.values[x].shape[1]
        x = n.conv(x, f'conv{i}/dw', channels, 3, False, depthwise, pad=1, stride=stride, group=channels)
        x = n.relu(n.batch_norm(x))
        x = n.relu(n.batch_norm(n.conv(x, f'conv{i}/sep', int(count * width), 1, False)))
    x = n.conv(n.pool(x, 'pool6', op='AVE'), 'fc7', 1000, 1)
    n.add('Softmax', x, 'prob')
    return n


def mobilenet_v2(rng, width=0.5):
    n = image_net(rng, 128)
    six = lambda x: n.relu(x, 'ReLU6')
    x = six(n.batch_norm(n.conv('data', 'conv1', int(32 * width), 3, False, pad=1, stride=2)))
    index = 0
    for factor, count, blocks, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                          (6, 160, 3, 2), (6, 320, 1, 1)):
        for i in range(blocks):
            index += 1
            wide = n.values[x].shape[1] * factor
            y = six(n.batch_norm(n.conv(x, f'conv{index}/expand', wide, 1, False)))
            y = n.conv(y, f'conv{index}/dwise', wide, 3, False, 'ConvolutionDepthwise', pad=1,
                       stride=stride if i == 0 else 1)
            y = n.batch_norm(n.conv(six(n.batch_norm(y)), f'conv{index}/linear', int(count * width), 1, False))
            x = n.add('Eltwise', [x, y], f'block{index}') if i else y
    x = n.pool(six(n.batch_norm(n.conv(x, 'conv_last', 640, 1, False))), 'pool', op='AVE')
    n.add('Softmax', n.conv(x, 'fc7', 100, 1), 'prob')
    return n


def squeezenet(rng, width=0.5):
    n = image_net(rng, 227)
    x = n.pool(n.relu(n.conv('data', 'conv1', int(64 * width), 3, stride=2)), 'pool1', 3, stride=2)
    for i, squeeze in enumerate((16, 16, 32, 32, 48, 48, 64, 64), 2):
        squeeze = int(squeeze * width)
        s = n.relu(n.conv(x, f'fire{i}/squeeze1x1', squeeze, 1))
        one = n.relu(n.conv(s, f'fire{i}/expand1x1', 4 * squeeze, 1))
        three = n.relu(n.conv(s, f'fire{i}/expand3x3', 4 * squeeze, 3, pad=1))
        x = n.add('Concat', [one, three], f'fire{i}/concat')
        if i in (3, 5):
            x = n.pool(x, f'pool{i}', 3, stride=2)
    x = n.add('Dropout', x, dropout_param={'dropout_ratio': 0.5})
    x = n.relu(n.conv(x, 'conv10', 1000, 1))
    n.add('Softmax', n.pool(x, 'pool10', op='AVE'), 'prob')
    return n


def shufflenet(rng, group=3):
    n = image_net(rng, 128)
    x = n.pool(n.relu(n.batch_norm(n.conv('data', 'conv1', 24, 3, False, pad=1, stride=2))), 'pool1', 3, stride=2)
    for stage, (count, blocks) in enumerate(((60, 3), (120, 4), (240, 2)), 2):
        for i in range(blocks):
            name, channels = f'stage{stage}_{i}', n.values[x].shape[1]
            out = count if i else count - channels
            middle = count // 4 // group * group
            y = n.conv(x, f'{name}_conv1', middle, 1, False, group=1 if stage == 2 and i == 0 else group)
            y = n.relu(n.batch_norm(y))
            y = n.add('ShuffleChannel', y, f'{name}_shuffle', shuffle_channel_param={'group': group})
            y = n.conv(y, f'{name}_conv2', middle, 3, False, 'DepthwiseConvolution', pad=1, stride=1 if i else 2)
            y = n.batch_norm(n.conv(n.batch_norm(y), f'{name}_conv3', out, 1, False, group=group))
            if i:
                x = n.relu(n.add('Eltwise', [x, y], name))
            else:
                side = n.pool(x, f'{name}_match', 3, 'AVE', stride=2)
                x = n.relu(n.add('Concat', [side, y], name))
    n.add('Softmax', n.fc(n.pool(x, 'pool_ave', op='AVE'), 'fc', 100), 'prob')
    return n


def ssd(rng, classes=5):
    """Seven layers of VGG kind and four maps with heads, put together as in SSD300."""
    n = image_net(rng, 96)
    x, maps = 'data', []
    for i, count in enumerate((8, 16, 24, 32, 32), 1):
        x = n.relu(n.conv(x, f'conv{i}', count, 3, pad=1))
        if i == 4:
            maps.append(n.add('Normalize', x, 'conv4_norm', [n.random(count, low=5, scale=20)],
                              norm_param={'across_spatial': False, 'scale_filler': {'type': 'constant', 'value': 20},
                                          'channel_shared': False}))
        x = n.pool(x, f'pool{i}', 3, stride=1, pad=1) if i == 5 else n.pool(x, f'pool{i}', 2, stride=2)
    x = n.relu(n.conv(x, 'fc6', 48, 3, pad=3, dilation=3))
    maps.append(x)
    x = n.relu(n.conv(n.relu(n.conv(x, 'conv6_1', 16, 1)), 'conv6_2', 32, 3, pad=1, stride=2))
    maps.append(x)
    maps.append(n.relu(n.conv(n.relu(n.conv(x, 'conv7_1', 16, 1)), 'conv7_2', 32, 3, pad=1, stride=2)))
    heads = {'loc': [], 'conf': []}
    priors = []
    for i, name in enumerate(maps):
        ratios = [2.0] if i == 0 else [2.0, 3.0]
        count = 2 + 2 * len(ratios)
        for head, per_prior in (('loc', 4), ('conf', classes)):
            y = n.conv(name, f'{name}_mbox_{head}', count * per_prior, 3, pad=1)
            y = n.add('Permute', y, f'{y}_perm', permute_param={'order': [0, 2, 3, 1]})
            heads[head].append(n.add('Flatten', y, f'{y}_flat', flatten_param={'axis': 1}))
        priors.append(n.add('PriorBox', [name, 'data'], f'{name}_mbox_priorbox', prior_box_param={
            'min_size': [12.0 + 18 * i], 'max_size': [30.0 + 18 * i], 'aspect_ratio': ratios, 'flip': True, 'clip': i == 3,
            'variance': [0.1, 0.1, 0.2, 0.2], 'offset': 0.5}))
    loc = n.add('Concat', heads['loc'], 'mbox_loc', concat_param={'axis': 1})
    conf = n.add('Concat', heads['conf'], 'mbox_conf', concat_param={'axis': 1})
    prior = n.add('Concat', priors, 'mbox_priorbox', concat_param={'axis': 2})
    conf = n.add('Reshape', conf, 'mbox_conf_reshape', reshape_param={'shape': {'dim': [0, -1, classes]}})
    conf = n.add('Softmax', conf, 'mbox_conf_softmax', softmax_param={'axis': 2})
    conf = n.add('Flatten', conf, 'mbox_conf_flatten', flatten_param={'axis': 1})
    n.add('DetectionOutput', [loc, conf, prior], 'detection_out', detection_output_param={
        'num_classes': classes, 'share_location': True, 'background_label_id': 0,
        'nms_param': {'nms_threshold': 0.45, 'top_k': 400}, 'code_type': Word('CENTER_SIZE'), 'keep_top_k': 40,
        'confidence_threshold': 0.25})
    return n


def region_net(rng):
    """The trunk and the proposals of Faster R-CNN and R-FCN."""
    n = CaffeNet(rng, {'data': rng.uniform(-1, 1, (1, 3, 80, 96)), 'im_info': [[80, 96, 1.0]]})
    x = 'data'
    for i, count in enumerate((8, 12, 16, 24), 1):
        x = n.pool(n.relu(n.conv(x, f'conv{i}', count, 3, pad=1)), f'pool{i}', 2, stride=2)
    y = n.relu(n.conv(x, 'rpn_conv/3x3', 16, 3, pad=1))
    score = n.conv(y, 'rpn_cls_score', 18, 1)
    moves = n.add('Power', n.conv(y, 'rpn_bbox_raw', 36, 1), 'rpn_bbox_pred', power_param={'scale': 0.2})
    score = n.add('Reshape', score, 'rpn_cls_score_reshape', reshape_param={'shape': {'dim': [0, 2, -1, 0]}})
    score = n.add('Softmax', score, 'rpn_cls_prob')
    score = n.add('Reshape', score, 'rpn_cls_prob_reshape', reshape_param={'shape': {'dim': [0, 18, -1, 0]}})
    rois = n.add('Proposal', [score, moves, 'im_info'], 'rois', proposal_param={'post_nms_topn': 9, 'nms_thresh': 0.6})
    return n, x, rois


def faster_rcnn(rng):
    n, x, rois = region_net(rng)
    x = n.add('ROIPooling', [x, rois], 'roi_pool5', roi_pooling_param={'pooled_w': 7, 'pooled_h': 7, 'spatial_scale': 0.0625})
    x = n.add('Dropout', n.relu(n.fc(x, 'fc6', 32)))
    n.add('Softmax', n.fc(x, 'cls_score', 21), 'cls_prob')
    n.fc(x, 'bbox_pred', 84)
    return n


def rfcn(rng):
    n, x, rois = region_net(rng)
    for name, dim in (('cls', 5), ('bbox', 8)):
        y = n.conv(x, f'rfcn_{name}', dim * 9, 1)
        param = {'spatial_scale': 0.0625, 'output_dim': dim, 'group_size': 3}
        y = n.add('PSROIPooling', [y, rois], f'psroipooled_{name}_rois', psroi_pooling_param=param)
        y = n.pool(y, f'ave_{name}_rois', 3, 'AVE', stride=3)
        if name == 'cls':
            y = n.add('Softmax', y, 'cls_prob_pre')
        n.add('Reshape', y, f'{name}_reshape', reshape_param={'shape': {'dim': [-1, dim]}})
    return n


ZOO = {
    'AlexNet': alexnet, 'GoogLeNet': googlenet, 'VGG16': vgg16, 'ResNet-50': resnet50, 'MobileNet-v1': mobilenet_v1,
    'MobileNet-v1-DepthwiseConvolution': lambda rng: mobilenet_v1(rng, 0.125, 'DepthwiseConvolution'),
    'MobileNet-v2': mobilenet_v2, 'SqueezeNet': squeezenet, 'ShuffleNet': shufflenet, 'SSD': ssd,
    'Faster-R-CNN': faster_rcnn, 'R-FCN': rfcn,
}
