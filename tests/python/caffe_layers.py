"""Nets of one layer (or the few that belong together) with random parameters, one generator a layer type."""
import numpy as np

from caffe_net import CaffeNet, Word


def blob(rng, *shape, low=-2.0, high=2.0):
    return rng.uniform(low, high, shape)


def sizes(rng, channels=None, least=1, most=13):
    """A random n c h w, n = 1."""
    c = channels or int(rng.integers(1, 18))
    return (1, c, int(rng.integers(least, most)), int(rng.integers(least, most)))


def any_rank(rng, least=1):
    """A batch of one and 1 to 3 axes."""
    return (1, *(int(s) for s in rng.integers(least, 9, rng.integers(1, 4))))


def net_of(rng, shape, **range_):
    return CaffeNet(rng, {'x': blob(rng, *shape, **range_)})


def flag(rng):
    return bool(rng.integers(2))


def plain(kind, low=-2.0, high=2.0, **fields):
    """A layer without weights whose fields are functions of the generator."""
    def make(rng):
        net = net_of(rng, any_rank(rng), low=low, high=high)
        param = {name: {key: value(rng) for key, value in values.items() if flag(rng)} for name, values in fields.items()}
        net.add(kind, 'x', 'y', **param)
        return net
    return make


def real(low, high):
    return lambda rng: round(float(rng.uniform(low, high)), 3)


def window(rng, size, most=4):
    """Some of the ways to write a window that fits."""
    p = {}
    if flag(rng):
        k = int(rng.integers(1, most))
        p['kernel_size'] = k if flag(rng) else [k]
    else:
        p['kernel_h'], p['kernel_w'] = (int(k) for k in rng.integers(1, most, 2))
    form = rng.integers(3)
    if form == 0:
        p['stride'] = int(rng.integers(1, 4))
    elif form == 1:
        p['stride_h'], p['stride_w'] = (int(s) for s in rng.integers(1, 4, 2))
    form = rng.integers(3)
    if form == 0:
        p['pad'] = int(rng.integers(0, 3))
    elif form == 1:
        p['pad_h'], p['pad_w'] = (int(s) for s in rng.integers(0, 3, 2))
    return p


def convolution(kind):
    def make(rng):
        depthwise = kind in ('DepthwiseConvolution', 'ConvolutionDepthwise')
        group = int(rng.choice([1, 1, 2, 3]))
        channels = group * int(rng.integers(1, 6))
        count = channels if depthwise else group * int(rng.integers(1, 6))
        if not depthwise and flag(rng) and flag(rng):
            group, count = channels, channels * int(rng.integers(1, 3))
        net = net_of(rng, sizes(rng, channels, 7, 15))
        p = window(rng, None)
        kernel = p.pop('kernel_size', None)
        kernel = (p.pop('kernel_h'), p.pop('kernel_w')) if kernel is None else int(np.ravel(kernel)[0])
        if flag(rng):
            p['dilation'] = int(rng.integers(1, 3))
        if not depthwise:
            p['group'] = group
        net.conv('x', 'y', count, kernel, flag(rng), kind, **p)
        return net
    return make


def pooling(rng):
    net = net_of(rng, sizes(rng, None, 4, 20), low=-3, high=-1 if flag(rng) else 3)
    op = Word(rng.choice(['MAX', 'AVE']))
    if rng.integers(6) == 0:
        net.add('Pooling', 'x', 'y', pooling_param={'pool': op, 'global_pooling': True})
        return net
    p = window(rng, None, 5)
    kernels = p['kernel_size'] if 'kernel_size' in p else [p['kernel_h'], p['kernel_w']]
    least = int(np.min(kernels))
    for name in ('pad', 'pad_h', 'pad_w'):
        if name in p:
            p[name] = min(p[name], least - 1)
    if 'kernel_size' in p:
        p['kernel_size'] = int(np.ravel(p['kernel_size'])[0])
    if rng.integers(4) == 0:
        p['round_mode'] = Word('FLOOR')
    # Without a border Caffe keeps windows that begin behind the blob: no values are under them.
    strides = [p.get('stride', p.get('stride_h', 1)), p.get('stride', p.get('stride_w', 1))]
    pads = [p.get('pad', p.get('pad_h', 0)), p.get('pad', p.get('pad_w', 0))]
    if not any(pads) and max(strides) > least:
        p.pop('round_mode', None)
        p['round_mode'] = Word('FLOOR')
    net.add('Pooling', 'x', 'y', pooling_param={'pool': op, **p})
    return net


def stochastic_pooling(rng):
    net = net_of(rng, sizes(rng, None, 4, 12), low=0.1)
    size = {'kernel_size': int(rng.integers(2, 4)), 'stride': 2} if flag(rng) else {'global_pooling': True}
    net.add('Pooling', 'x', 'y', pooling_param={'pool': Word('STOCHASTIC'), **size})
    return net


def unpooling(rng):
    """SegNet: places of the maxima, used by an Upsample."""
    h, w = (int(s) for s in rng.integers(4, 12, 2))
    net = net_of(rng, (1, int(rng.integers(1, 7)), h, w))
    net.add('Pooling', 'x', ['y', 'mask'], pooling_param={'pool': Word('MAX'), 'kernel_size': 2, 'stride': 2})
    net.add('Power', 'y', 'z', power_param={'scale': 1.5})
    sized = h % 2 or w % 2 or flag(rng)
    p = {'scale': 2, **({'upsample_h': h, 'upsample_w': w} if sized else {})}
    net.add('Upsample', ['z', 'mask'], 'up', upsample_param=p)
    return net


def inner_product(rng):
    shape = any_rank(rng)
    net = net_of(rng, shape)
    axis = int(rng.integers(1, len(shape))) if flag(rng) else 1
    count, inputs = int(rng.integers(1, 20)), int(np.prod(shape[axis:]))
    transpose, bias = flag(rng), flag(rng)
    weight = net.random(*((inputs, count) if transpose else (count, inputs)))
    axis = axis - len(shape) if rng.integers(4) == 0 else axis
    net.add('InnerProduct', 'x', 'y', [weight] + [net.random(count)] * bias, inner_product_param={
        'num_output': count, 'bias_term': bias, 'axis': axis, 'transpose': transpose})
    return net


def embed(rng):
    words, count, bias = int(rng.integers(2, 30)), int(rng.integers(1, 9)), flag(rng)
    net = CaffeNet(rng, {'x': rng.integers(0, words, (1, int(rng.integers(1, 12))))})
    net.add('Embed', 'x', 'y', [net.random(words, count)] + [net.random(count)] * bias,
            embed_param={'num_output': count, 'input_dim': words, 'bias_term': bias})
    return net


def im2col(rng):
    net = net_of(rng, sizes(rng, None, 7, 12))
    p = {key: value for key, value in window(rng, None).items()}
    net.add('Im2col', 'x', 'y', convolution_param=p)
    return net


def spp(rng):
    height = int(rng.integers(1, 4))
    net = net_of(rng, sizes(rng, None, 2 ** (height + 1), 24), low=-2, high=-1 if flag(rng) else 2)
    net.add('SPP', 'x', 'y', spp_param={'pyramid_height': height, 'pool': Word(rng.choice(['MAX', 'AVE']))})
    return net


def batch_norm(rng):
    shape = sizes(rng, None, 2) if flag(rng) else any_rank(rng)
    net = net_of(rng, shape)
    c = shape[1]
    p = {'eps': 1e-3} if flag(rng) else {}
    more = [net.random(c, low=0.5, scale=1.5), net.random(c)] if flag(rng) else []
    scaled = {'scale_bias': True} if more else {}
    factor = float(rng.choice([0.0, 1.0, 713.5]))
    blobs = [net.random(c) * factor, net.random(c, low=0.3, scale=2) * max(factor, 1), [factor], *more]
    if len(shape) == 4 and shape[2] * shape[3] > 4 and flag(rng):
        net.add('BatchNorm', 'x', 'y', blobs if more else (), batch_norm_param={'use_global_stats': False, 'eps': 1e-3, **scaled})
        return net
    if factor == 0.0:
        p = {'eps': 0.1}
    p.update(scaled)
    net.add('BatchNorm', 'x', 'y', blobs, batch_norm_param=p)
    return net


def bn(rng):
    shape = sizes(rng)
    net = net_of(rng, shape)
    blobs = [net.random(1, shape[1], 1, 1) for _ in range(2)]
    if flag(rng):
        blobs += [net.random(1, shape[1], 1, 1), net.random(1, shape[1], 1, 1, low=0.5, scale=2)]
    net.add('BN', 'x', 'y', blobs, **({'bn_param': {'eps': 0.001}} if flag(rng) else {}))
    return net


def affine(kind):
    """Weights for one axis, several or none."""
    def make(rng):
        shape = any_rank(rng)
        net = net_of(rng, shape)
        axis = int(rng.integers(1, len(shape)))
        count = int(rng.choice([-1, 0, *range(1, len(shape) - axis + 1)]))
        own = () if count == 0 else shape[axis:] if count < 0 else shape[axis:axis + count]
        p = {'axis': axis - len(shape) if flag(rng) else axis, 'num_axes': count}
        if axis == 1 and count == 1 and flag(rng):
            p = {}
        biased = kind == 'Scale' and flag(rng)
        if biased:
            p['bias_term'] = True
        blobs = [net.random(*(own or (1,))) for _ in range(1 + biased)]
        net.add(kind, 'x', 'y', blobs, **{'scale_param' if kind == 'Scale' else 'bias_param': p})
        return net
    return make


def affine_of_blob(kind):
    """The second input has the sizes of the first from the batch on."""
    def make(rng):
        shape = any_rank(rng)
        known = shape[:rng.integers(2, len(shape) + 1)]
        net = CaffeNet(rng, {'x': blob(rng, *shape), 's': blob(rng, *known)})
        p = {'axis': 0}
        biased = kind == 'Scale' and flag(rng)
        if biased:
            p['bias_term'] = True
        net.add(kind, ['x', 's'], 'y', [net.random(*known)] * biased,
                **{'scale_param' if kind == 'Scale' else 'bias_param': p})
        return net
    return make


def batch_reindex(rng):
    items, picked = (int(n) for n in rng.integers(1, 6, 2))
    net = CaffeNet(rng, {'x': blob(rng, items, 3, 2), 'order': rng.integers(0, items, (picked, 1))})
    net.add('BatchReindex', ['x', 'order'], 'y')
    return net


def filter_(rng):
    selector = rng.integers(0, 2, (int(rng.integers(2, 7)), 1))
    selector[rng.integers(len(selector))] = 1
    net = CaffeNet(rng, {'x': blob(rng, len(selector), 4), 'z': blob(rng, len(selector), 2, 3), 'selector': selector})
    net.add('Filter', ['x', 'z', 'selector'], ['y', 'yz'])
    return net


def axpy(rng):
    shape = sizes(rng)
    net = CaffeNet(rng, {'x': blob(rng, *shape), 'y': blob(rng, *shape), 's': blob(rng, *shape[:2], *([1, 1] * flag(rng)))})
    net.add('Axpy', ['s', 'x', 'y'], 'z')
    return net


def prelu(rng):
    shape = any_rank(rng)
    net = net_of(rng, shape)
    shared = flag(rng)
    net.add('PReLU', 'x', 'y', [net.random(1 if shared else shape[1])], prelu_param={'channel_shared': shared})
    return net


def lrn(rng):
    net = net_of(rng, sizes(rng, None, 3))
    p = {'local_size': int(rng.choice([1, 3, 5, 7])), 'alpha': real(0.01, 2)(rng), 'beta': real(0.3, 1)(rng)}
    if flag(rng):
        p['norm_region'] = Word('WITHIN_CHANNEL')
    if flag(rng):
        p['k'] = 2.0
    if 'norm_region' in p:
        p.pop('k', None)
    net.add('LRN', 'x', 'y', lrn_param=p)
    return net


def mvn(rng):
    net = net_of(rng, sizes(rng, None, 3))
    net.add('MVN', 'x', 'y', mvn_param={'normalize_variance': flag(rng), 'across_channels': flag(rng), 'eps': 0.01})
    return net


def eltwise(rng):
    shape, count = any_rank(rng), int(rng.integers(2, 5))
    net = CaffeNet(rng, {f'x{i}': blob(rng, *shape) for i in range(count)})
    op = str(rng.choice(['PROD', 'SUM', 'MAX']))
    p = {'operation': Word(op)}
    if op == 'SUM' and flag(rng):
        p['coeff'] = [real(-2, 2)(rng) for _ in range(count)]
    net.add('Eltwise', list(net.inputs), 'y', eltwise_param=p if flag(rng) or op != 'SUM' else
            {key: p[key] for key in p if key != 'operation'})
    return net


def axis_of(rng, shape, first=1):
    axis = int(rng.integers(first, len(shape)))
    return axis - len(shape) if flag(rng) else axis


def softmax(rng):
    shape = any_rank(rng)
    net = net_of(rng, shape)
    net.add('Softmax', 'x', 'y', **({'softmax_param': {'axis': axis_of(rng, shape)}} if flag(rng) else {}))
    return net


def clip(rng):
    net = net_of(rng, any_rank(rng))
    net.add('Clip', 'x', 'y', clip_param={'min': -0.5, 'max': real(0, 1)(rng)})
    return net


def arg_max(rng):
    shape = any_rank(rng, 3)
    net = net_of(rng, shape)
    p = {'out_max_val': flag(rng), 'top_k': int(rng.integers(1, 4))}
    if flag(rng):
        p['axis'] = axis_of(rng, shape)
    net.add('ArgMax', 'x', 'y', argmax_param=p)
    return net


def reduction(rng):
    shape = any_rank(rng)
    net = net_of(rng, shape)
    p = {'operation': Word(rng.choice(['SUM', 'ASUM', 'SUMSQ', 'MEAN'])), 'axis': axis_of(rng, shape, 0),
         'coeff': real(0.1, 2)(rng)}
    net.add('Reduction', 'x', 'y', reduction_param=p if flag(rng) else {'coeff': 0.5})
    return net


def concat(rng):
    shape = any_rank(rng)
    axis = int(rng.integers(1, len(shape)))
    inputs = {}
    for i in range(rng.integers(1, 5)):
        inputs[f'x{i}'] = blob(rng, *(int(rng.integers(1, 6)) if a == axis else s for a, s in enumerate(shape)))
    net = CaffeNet(rng, inputs)
    name = 'concat_dim' if flag(rng) else 'axis'
    axis = axis - len(shape) if name == 'axis' and flag(rng) else axis
    net.add('Concat', list(inputs), 'y', concat_param={name: axis})
    return net


def slices(rng):
    shape = list(any_rank(rng))
    axis, pieces = int(rng.integers(1, len(shape))), int(rng.integers(1, 5))
    shape[axis] = pieces * int(rng.integers(1, 4))
    p = {'slice_dim' if flag(rng) else 'axis': axis}
    if flag(rng):
        shape[axis] = int(rng.integers(pieces, 14))
        p['slice_point'] = sorted(int(v) for v in rng.choice(np.arange(1, shape[axis]), pieces - 1, replace=False))
    net = net_of(rng, shape)
    net.add('Slice', 'x', [f'y{i}' for i in range(pieces)], slice_param=p)
    return net


def flatten(rng):
    shape = any_rank(rng)
    net = net_of(rng, shape)
    first = int(rng.integers(1, len(shape)))
    last = int(rng.integers(first, len(shape)))
    p = {'axis': first, 'end_axis': last - len(shape) if flag(rng) else last}
    net.add('Flatten', 'x', 'y', **({'flatten_param': p} if flag(rng) else {}))
    return net


def reshape(rng):
    a, b, c = (int(s) for s in rng.integers(2, 6, 3))
    shape, dims, extra = [
        ((1, a * b, c, 3), [0, a, b, -1], {}), ((1, a * b, c, 3), [0, -1, 0, 3], {}), ((1, a, b, c), [1, -1], {}),
        ((1, a, b, c), [0, 0, -1], {}), ((1, a, b * c), [b, -1], {'axis': 2}), ((1, a, b, c), [-1], {'axis': -2}),
        ((1, a, b, c), [1, -1, a], {'axis': 1, 'num_axes': 2}), ((1, a * b * c), [0, a, b, c], {}),
        ((1, a, b, c), [1], {'axis': 1, 'num_axes': 0}), ((1, a, b, c), [-1, a, b, c], {}),
    ][rng.integers(10)]
    net = net_of(rng, shape)
    net.add('Reshape', 'x', 'y', reshape_param={'shape': {'dim': dims}, **extra})
    return net


def permute(rng):
    shape = any_rank(rng)
    order = [0] + [int(a) + 1 for a in rng.permutation(len(shape) - 1)]
    if order == list(range(len(shape))):
        order = order[:rng.integers(1, len(order) + 1)]
    net = net_of(rng, shape)
    net.add('Permute', 'x', 'y', permute_param={'order': order})
    return net


def transpose(rng):
    shape = any_rank(rng)
    net = net_of(rng, shape)
    net.add('Transpose', 'x', 'y', transpose_param={'dim': [0] + [int(a) + 1 for a in rng.permutation(len(shape) - 1)]})
    return net


def reverse(rng):
    shape = any_rank(rng)
    net = net_of(rng, shape)
    net.add('Reverse', 'x', 'y', reverse_param={'axis': int(rng.integers(-len(shape) + 1, len(shape)))})
    return net


def crop(rng):
    shape = any_rank(rng, 3)
    axis = int(rng.integers(1, len(shape)))
    like = [int(rng.integers(1, s + 1)) if a >= axis else int(rng.integers(1, 5)) for a, s in enumerate(shape)]
    like[0] = int(rng.integers(1, 4))  # which Caffe does not look at
    offsets = [int(rng.integers(0, shape[a] - like[a] + 1)) for a in range(axis, len(shape))]
    p = {'axis': axis - len(shape) if flag(rng) else axis}
    form = rng.integers(3)
    if form == 0:
        p['offset'] = offsets
    elif form == 1:
        p['offset'] = min(offsets)
    net = CaffeNet(rng, {'x': blob(rng, *shape), 'like': blob(rng, *like)})
    net.add('Crop', ['x', 'like'], 'y', crop_param=p)
    return net


def tile(rng):
    shape = any_rank(rng)
    net = net_of(rng, shape)
    net.add('Tile', 'x', 'y', tile_param={'axis': axis_of(rng, shape), 'tiles': int(rng.integers(1, 4))})
    return net


def shuffle_channel(rng):
    group = int(rng.integers(1, 5))
    net = net_of(rng, sizes(rng, group * int(rng.integers(1, 6))))
    net.add('ShuffleChannel', 'x', 'y', shuffle_channel_param={'group': group})
    return net


def interp(rng):
    shape = sizes(rng, None, 5)
    p = [{'height': int(rng.integers(1, 20)), 'width': int(rng.integers(1, 20))}, {'zoom_factor': int(rng.integers(1, 5))},
         {'shrink_factor': int(rng.integers(1, 4))}, {'zoom_factor': 3, 'shrink_factor': 2}, None][rng.integers(5)]
    pads = {'pad_beg': -int(rng.integers(0, 3)), 'pad_end': -int(rng.integers(0, 3))} if flag(rng) else {}
    if p is None:
        net = CaffeNet(rng, {'x': blob(rng, *shape), 'like': blob(rng, *sizes(rng))})
        net.add('Interp', ['x', 'like'], 'y', interp_param=pads)
        return net
    net = net_of(rng, shape)
    net.add('Interp', 'x', 'y', interp_param={**p, **pads})
    return net


def upsample(rng):
    net = net_of(rng, sizes(rng))
    net.add('Upsample', 'x', 'y', upsample_param={'scale': int(rng.integers(1, 5))})
    return net


def reorg(rng):
    s = int(rng.integers(1, 4))
    net = net_of(rng, (1, int(rng.integers(1, 8)), s * int(rng.integers(1, 5)), s * int(rng.integers(1, 5))))
    net.add('Reorg', 'x', 'y', reorg_param={'stride': s})
    return net


def normalize(rng):
    shape, shared = sizes(rng), flag(rng)
    net = net_of(rng, shape)
    net.add('Normalize', 'x', 'y', [net.random(1 if shared else shape[1], low=1, scale=20)], norm_param={
        'across_spatial': flag(rng), 'channel_shared': shared, 'eps': 1e-6})
    return net


def prior_box(rng):
    image = (1, 3, *(int(s) for s in rng.integers(40, 90, 2)))
    net = CaffeNet(rng, {'x': blob(rng, *sizes(rng, 2)), 'image': blob(rng, *image)})
    least = [round(float(v), 2) for v in rng.uniform(4, 30, rng.integers(1, 3))]
    p = {'min_size': least, 'clip': flag(rng), 'flip': flag(rng)}
    if flag(rng):
        p['max_size'] = [round(v * 1.7, 2) for v in least]
    if flag(rng):
        p['aspect_ratio'] = [[2.0], [2.0, 3.0], [1.0, 2.0, 0.5], [0.333, 3.0]][rng.integers(4)]
    p.update([{}, {'variance': 0.2}, {'variance': [0.1, 0.1, 0.2, 0.2]}][rng.integers(3)])
    p.update([{}, {'step': 8.0}, {'step_h': 8.0, 'step_w': 9.0}][rng.integers(3)])
    p.update([{}, {'img_size': 70}, {'img_h': 60, 'img_w': 80}][rng.integers(3)])
    if flag(rng):
        p['offset'] = 0.0
    net.add('PriorBox', ['x', 'image'], 'y', prior_box_param=p)
    return net


def detection_output(rng):
    priors, classes = int(rng.integers(5, 60)), int(rng.integers(2, 6))
    centre, size = rng.uniform(0.1, 0.9, (priors, 2)), rng.uniform(0.1, 0.5, (priors, 2))
    boxes = np.concatenate([centre - size / 2, centre + size / 2], axis=1)
    variances = np.tile([0.1, 0.1, 0.2, 0.2], priors)
    net = CaffeNet(rng, {'loc': rng.normal(0, 1, (1, priors * 4)), 'conf': rng.uniform(0, 1, (1, priors * classes)),
                         'prior': np.stack([boxes.ravel(), variances])[None]})
    p = {'num_classes': classes, 'code_type': Word('CENTER_SIZE'), 'keep_top_k': int(rng.choice([-1, 5, 200])),
         'nms_param': {'nms_threshold': real(0.2, 0.7)(rng), **({'top_k': int(rng.integers(3, 30))} if flag(rng) else {})}}
    if flag(rng):
        p['confidence_threshold'] = real(0, 0.5)(rng)
    net.add('DetectionOutput', ['loc', 'conf', 'prior'], 'y', detection_output_param=p)
    return net


def proposal(rng):
    h, w = (int(s) for s in rng.integers(3, 7, 2))
    net = CaffeNet(rng, {'score': rng.uniform(0, 1, (1, 18, h, w)), 'move': rng.normal(0, 0.2, (1, 36, h, w)),
                         'im_info': [[h * 16, w * 16, 1.0]]})
    p = {'post_nms_topn': int(rng.integers(5, 60)), 'pre_nms_topn': int(rng.integers(20, 300)), 'nms_thresh': 0.6}
    net.add('Proposal', ['score', 'move', 'im_info'], 'rois', proposal_param=p if flag(rng) else {})
    return net


def regions(rng, size, factor):
    x1, y1 = rng.integers(0, size - 4, 2)
    w, h = rng.integers(1, size - max(x1, y1), 2)
    return np.array([0, x1, y1, x1 + w, y1 + h]) / factor


def roi_pooling(rng):
    bins, factor = int(rng.integers(1, 8)), float(rng.choice([1.0, 0.5, 0.0625]))
    rois = np.array([regions(rng, 12, factor) for _ in range(rng.integers(1, 5))])
    net = CaffeNet(rng, {'x': blob(rng, 1, int(rng.integers(1, 5)), 12, 12), 'rois': rois})
    net.add('ROIPooling', ['x', 'rois'], 'y', roi_pooling_param={'pooled_h': bins, 'pooled_w': bins, 'spatial_scale': factor})
    return net


def psroi_pooling(rng):
    group, dim = int(rng.integers(2, 4)), int(rng.integers(1, 4))
    rois = np.array([regions(rng, 12, 0.25) for _ in range(rng.integers(1, 5))]) + [0, 0.1, 0.2, 0.3, 0.2]
    net = CaffeNet(rng, {'x': blob(rng, 1, dim * group * group, 12, 12), 'rois': rois})
    net.add('PSROIPooling', ['x', 'rois'], 'y', psroi_pooling_param={'spatial_scale': 0.25, 'output_dim': dim,
                                                                   'group_size': group})
    return net


def recurrent(kind):
    def make(rng):
        steps, inputs, count = (int(s) for s in rng.integers(1, 9, 3))
        cont = np.ones((steps, 1))
        cont[0] = 0
        net = CaffeNet(rng, {'x': blob(rng, steps, 1, inputs), 'cont': cont})
        gates = 4 if kind == 'LSTM' else 1
        blobs = [net.random(gates * count, inputs), net.random(gates * count), net.random(gates * count, count)]
        if kind == 'RNN':
            blobs += [net.random(count, count), net.random(count)]
        net.add(kind, ['x', 'cont'], 'y', blobs, recurrent_param={'num_output': count})
        return net
    return make


def parameter(rng):
    shape = any_rank(rng)
    net = net_of(rng, shape)
    net.add('Parameter', [], 'p', [net.random(*shape)], parameter_param={'shape': {'dim': list(shape)}})
    net.add('Eltwise', ['x', 'p'], 'y')
    return net


def sequence(rng):
    """What recognisers of text do: columns of a map become steps; then scores for each step."""
    net = net_of(rng, (1, int(rng.integers(1, 5)), 1, int(rng.integers(2, 7))))
    net.add('Permute', 'x', 'steps', permute_param={'order': [3, 0, 1, 2]})
    net.add('Flatten', 'steps', 'rows', flatten_param={'axis': 2})
    steps = net.values['x'].shape[3]
    net.add('Parameter', [], 'cont', [np.array([0] + [1] * (steps - 1)).reshape(-1, 1)],
            parameter_param={'shape': {'dim': [steps, 1]}})
    inputs, count = net.values['x'].shape[1], 3
    net.add('LSTM', ['rows', 'cont'], 'lstm', [net.random(4 * count, inputs), net.random(4 * count),
                                                net.random(4 * count, count)], recurrent_param={'num_output': count})
    net.fc('lstm', 'scores', 5, axis=2)
    net.add('Softmax', 'scores', 'prob', softmax_param={'axis': 2})
    return net


def batch_axis(rng):
    """Layers along Caffe's axis 0."""
    a, b = (int(s) for s in rng.integers(2, 6, 2))
    net = CaffeNet(rng, {'x': blob(rng, 1, a * b, 3), 'z': blob(rng, 1, a * b, 3)})
    net.add('Concat', ['x', 'z'], 'two', concat_param={'axis': 0})
    net.add('Softmax', 'two', 'shares', softmax_param={'axis': 0})
    net.add('Slice', 'shares', ['first', 'second'], slice_param={'axis': 0})
    net.add('Reshape', 'first', 'rows', reshape_param={'shape': {'dim': [-1, b, 3]}})
    net.add('Permute', 'rows', 'turned', permute_param={'order': [1, 0, 2]})
    net.add('Flatten', 'turned', 'flat', flatten_param={'axis': 0, 'end_axis': 1})
    net.add('Tile', 'second', 'tiled', tile_param={'axis': 0, 'tiles': 2})
    net.add('Reduction', 'tiled', 'sum', reduction_param={'axis': 0})
    net.add('ArgMax', 'rows', 'best', argmax_param={'axis': 0})
    return net


CASES = {
    'AbsVal': plain('AbsVal'), 'ArgMax': arg_max, 'Axpy': axpy, 'BatchNorm': batch_norm, 'BatchAxis': batch_axis,
    'BatchReindex': batch_reindex, 'Filter': filter_, 'StochasticPooling': stochastic_pooling,
    'Bias': affine('Bias'), 'Bias2': affine_of_blob('Bias'), 'BN': bn, 'BNLL': plain('BNLL'), 'Concat': concat,
    'Clip': clip, 'Convolution': convolution('Convolution'), 'Crop': crop,
    'ConvolutionDepthwise': convolution('ConvolutionDepthwise'), 'Deconvolution': convolution('Deconvolution'),
    'DepthwiseConvolution': convolution('DepthwiseConvolution'), 'DetectionOutput': detection_output,
    'Dropout': plain('Dropout', dropout_param={'dropout_ratio': real(0.1, 0.9)}),
    'ELU': plain('ELU', elu_param={'alpha': real(0.1, 2)}), 'Eltwise': eltwise, 'Embed': embed,
    'Exp': plain('Exp', exp_param={'base': real(0.5, 3), 'scale': real(-1, 1), 'shift': real(-1, 1)}),
    'Flatten': flatten, 'Im2col': im2col, 'InnerProduct': inner_product, 'Interp': interp,
    'Log': plain('Log', 0.5, 4, log_param={'base': real(2, 9), 'scale': real(0.5, 2), 'shift': real(0, 1)}), 'LRN': lrn,
    'LSTM': recurrent('LSTM'), 'MVN': mvn, 'Normalize': normalize, 'Parameter': parameter, 'Permute': permute,
    'Pooling': pooling,
    'Power': plain('Power', 0.5, 4, power_param={'power': real(-2, 3), 'scale': real(0.5, 2), 'shift': real(0, 1)}),
    'PReLU': prelu, 'PriorBox': prior_box, 'Proposal': proposal, 'PSROIPooling': psroi_pooling, 'Reduction': reduction,
    'ReLU': plain('ReLU', relu_param={'negative_slope': real(0, 1)}), 'ReLU6': plain('ReLU6', -4, 9), 'Reorg': reorg,
    'Reshape': reshape, 'RNN': recurrent('RNN'), 'ROIPooling': roi_pooling, 'Scale': affine('Scale'),
    'Scale2': affine_of_blob('Scale'), 'Sequence': sequence, 'ShuffleChannel': shuffle_channel, 'Sigmoid': plain('Sigmoid'),
    'Slice': slices, 'Softmax': softmax, 'SPP': spp, 'Swish': plain('Swish', swish_param={'beta': real(0.5, 2)}),
    'TanH': plain('TanH'), 'Threshold': plain('Threshold', threshold_param={'threshold': real(-1, 1)}), 'Tile': tile,
    'Transpose': transpose, 'Reverse': reverse, 'Unpooling': unpooling, 'Upsample': upsample,
}
