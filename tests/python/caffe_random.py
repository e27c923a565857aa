"""Random nets of many layers: blobs read several times, layers in place, batches, ranks that change on the way; in the three
formats that Caffe has had."""
import numpy as np

from caffe_layers import axis_of, blob, flag, real, window
from caffe_net import V0_TYPES, V1_TYPES, CaffeNet, Word

MOST_VALUES = 20000


def first_axis(net, x):
    """Seldom the batch, and only where the engine can make an axis of it."""
    return 0 if net.values[x].ndim < 5 and net.rng.integers(4) == 0 else 1


def own_or(net, x, top):
    """The place of x, or another. Files keep the names of inputs for what is given."""
    return None if flag(net.rng) and x not in net.inputs else top


def in_place(kind, **fields):
    """A layer that may write over its input."""
    def step(net, x, top):
        param = {name: {key: value(net.rng) for key, value in values.items() if flag(net.rng)} for name, values in fields.items()
                 if net.form != 'v0' or name == 'dropout_param'}
        return [net.add(kind, x, own_or(net, x, top), **param)]
    return step


def is_map(net, x, least=1):
    shape = net.values[x].shape
    return len(shape) == 4 and min(shape[2:]) >= least


def fits(size, p, axis, name):
    """Whether a window lies within the padded axis."""
    get = lambda stem, default: int(np.ravel(p.get(f'{stem}_{name}', p.get('kernel_size' if stem == 'kernel' else stem, default)))[0])
    return size + 2 * get('pad', 0) >= (get('kernel', 1) - 1) * get('dilation', 1) + 1


def square_window(rng):
    """As the oldest format can have it."""
    return {'kernel_size': int(rng.integers(1, 4)), 'stride': int(rng.integers(1, 3)), 'pad': int(rng.integers(0, 3))}


def convolution(kind):
    def step(net, x, top):
        rng, shape = net.rng, net.values[x].shape
        if not is_map(net, x):
            return None
        channels = shape[1]
        groups = [g for g in range(1, channels + 1) if channels % g == 0]
        group = int(rng.choice(groups))
        count = channels if kind == 'DepthwiseConvolution' else group * int(rng.integers(1, 5))
        p = square_window(rng) if net.form == 'v0' else window(rng, None)
        if flag(rng) and net.form != 'v0':
            p['dilation'] = int(rng.integers(1, 3))
        if not all(fits(shape[a], p, a, name) for a, name in ((2, 'h'), (3, 'w'))):
            return None
        kernel = p.pop('kernel_size', None)
        kernel = (p.pop('kernel_h'), p.pop('kernel_w')) if kernel is None else int(np.ravel(kernel)[0])
        if kind == 'Deconvolution':  # padding cuts the output
            p = {key: value for key, value in p.items() if not key.startswith('pad')}
            p['pad'] = int(rng.integers(0, (min(np.ravel(kernel)) + 1) // 2))
        if kind != 'DepthwiseConvolution':
            p['group'] = group
        return [net.conv(x, top, count, kernel, flag(rng), kind, **p)]
    return step


def pooling(net, x, top):
    rng, shape = net.rng, net.values[x].shape
    if not is_map(net, x, 2):
        return None
    op = str(rng.choice(['MAX', 'AVE']))
    if rng.integers(5) == 0 and net.form != 'v0':
        return [net.pool(x, top, op=op)]
    kernel = int(rng.integers(2, 4))
    if min(shape[2:]) < kernel:
        return None
    p = {'stride': int(rng.integers(1, kernel + 1)), 'pad': int(rng.integers(0, kernel))}
    return [net.pool(x, top, kernel, op, **p)]


def spp(net, x, top):
    if not is_map(net, x, 8):
        return None
    return [net.add('SPP', x, top, spp_param={'pyramid_height': int(net.rng.integers(1, 4)), 'pool': Word(net.rng.choice(['MAX', 'AVE']))})]


def lrn(net, x, top):
    if not is_map(net, x):
        return None
    region = {'norm_region': Word('WITHIN_CHANNEL')} if flag(net.rng) and net.form != 'v0' else {}
    return [net.add('LRN', x, top, lrn_param={'local_size': int(net.rng.choice([3, 5])), 'alpha': 0.5, **region})]


def batch_norm(net, x, top):
    c = net.values[x].shape[1]
    blobs = [net.random(c) * 3, net.random(c, low=0.5, scale=2) * 3, [3.0]]
    return [net.add('BatchNorm', x, own_or(net, x, top), blobs)]


def scale(net, x, top):
    shape, rng = net.values[x].shape, net.rng
    axis = int(rng.integers(1, len(shape)))
    count = int(rng.integers(1, len(shape) - axis + 1))
    p = {'axis': axis - len(shape) if flag(rng) else axis, 'num_axes': count, 'bias_term': flag(rng)}
    blobs = [net.random(*shape[axis:axis + count], low=0.5, scale=1.5) for _ in range(1 + p['bias_term'])]
    return [net.add('Scale', x, own_or(net, x, top), blobs, scale_param=p)]


def bias(net, x, top):
    return [net.add('Bias', x, own_or(net, x, top), [net.random(net.values[x].shape[1])])]


def prelu(net, x, top):
    shared = flag(net.rng)
    slope = net.random(1 if shared else net.values[x].shape[1])
    return [net.add('PReLU', x, own_or(net, x, top), [slope], prelu_param={'channel_shared': shared})]


def mvn(net, x, top):
    if not is_map(net, x, 2):
        return None
    return [net.add('MVN', x, top, mvn_param={'across_channels': flag(net.rng), 'normalize_variance': flag(net.rng), 'eps': 0.01})]


def inner_product(net, x, top):
    shape = net.values[x].shape
    return [net.fc(x, top, int(net.rng.integers(1, 20)), **({'axis': axis_of(net.rng, shape)} if flag(net.rng) and net.form != 'v0' else {}))]


def partners(net, x, same):
    """Blobs whose sizes are those of x, but for axes that `same` excepts."""
    shape = net.values[x].shape
    return [name for name, value in net.values.items()
            if value.ndim == len(shape) and all(a == b or not same(i) for i, (a, b) in enumerate(zip(value.shape, shape)))]


def eltwise(net, x, top):
    rng = net.rng
    others = partners(net, x, lambda a: True)
    xs = [x] + [str(name) for name in rng.choice(others, int(rng.integers(1, 3)))]
    op = str(rng.choice(['SUM', 'SUM', 'PROD', 'MAX']))
    p = {'operation': Word(op), **({'coeff': [real(-1, 1)(rng) for _ in xs]} if op == 'SUM' and flag(rng) else {})}
    return [net.add('Eltwise', xs, own_or(net, x, top) or x, eltwise_param=p)]


def concat(net, x, top):
    shape, rng = net.values[x].shape, net.rng
    axis = int(rng.integers(first_axis(net, x), len(shape)))
    others = partners(net, x, lambda a: a != axis)
    xs = [x] + [str(name) for name in rng.choice(others, int(rng.integers(1, 3)))]
    new = net.form != 'v0' and flag(rng)
    p = {'axis': axis - len(shape) if flag(rng) else axis} if new else {'concat_dim': axis}
    return [net.add('Concat', xs, top, concat_param=p)]


def slices(net, x, top):
    shape, rng = net.values[x].shape, net.rng
    axis = int(rng.integers(first_axis(net, x), len(shape)))
    if shape[axis] < 2:
        return None
    point = int(rng.integers(1, shape[axis]))
    tops = [top, f'{top}_b']
    net.add('Slice', x, tops, slice_param={'axis' if flag(rng) else 'slice_dim': axis, 'slice_point': [point]})
    return tops


def split(net, x, top):
    tops = [top, f'{top}_b']
    net.add('Split', x, tops)
    return tops


def softmax(net, x, top):
    shape = net.values[x].shape
    p = {'softmax_param': {'axis': axis_of(net.rng, shape, first_axis(net, x))}} if flag(net.rng) and net.form != 'v0' else {}
    return [net.add('Softmax', x, own_or(net, x, top), **p)]


def flatten(net, x, top):
    shape, rng = net.values[x].shape, net.rng
    first = int(rng.integers(first_axis(net, x), len(shape)))
    last = int(rng.integers(first, len(shape)))
    return [net.add('Flatten', x, top, **({'flatten_param': {'axis': first, 'end_axis': last}} if flag(rng) and net.form == 'new' else {}))]


def reshape(net, x, top):
    shape, rng = net.values[x].shape, net.rng
    rest = int(np.prod(shape[1:]))
    factors = [f for f in range(2, rest + 1) if rest % f == 0] or [1]
    f = int(rng.choice(factors))
    dims = [[0, f, -1], [0, -1, f, 1], [shape[0], rest], [0, 0, -1], [0, -1]][rng.integers(5)]
    return [net.add('Reshape', x, top, reshape_param={'shape': {'dim': dims}})]


def permute(net, x, top):
    rank = net.values[x].ndim
    order = [0] + [int(a) + 1 for a in net.rng.permutation(rank - 1)]
    if first_axis(net, x) == 0:
        order = [int(a) for a in net.rng.permutation(rank)]
    return [net.add('Permute', x, top, permute_param={'order': order})]


def reduction(net, x, top):
    shape, rng = net.values[x].shape, net.rng
    axis = axis_of(rng, shape, 1)
    if axis % len(shape) < 2:
        return None
    op = Word(rng.choice(['SUM', 'ASUM', 'SUMSQ', 'MEAN']))
    return [net.add('Reduction', x, top, reduction_param={'operation': op, 'axis': axis, 'coeff': real(0.1, 0.5)(rng)})]


def tile(net, x, top):
    axis = axis_of(net.rng, net.values[x].shape, first_axis(net, x))
    return [net.add('Tile', x, top, tile_param={'axis': axis, 'tiles': int(net.rng.integers(1, 4))})]


def crop(net, x, top):
    """To the sizes of a smaller blob, or to those of its own pooled form."""
    shape, rng = net.values[x].shape, net.rng
    axis = int(rng.integers(1, len(shape)))
    likes = [name for name, value in net.values.items() if value.ndim == len(shape) and
             all(value.shape[a] <= shape[a] for a in range(axis, len(shape)))]
    like = str(rng.choice(likes))
    offset = [int(rng.integers(0, shape[a] - net.values[like].shape[a] + 1)) for a in range(axis, len(shape))]
    return [net.add('Crop', [x, like], top, crop_param={'axis': axis, 'offset': offset})]


def upsample(net, x, top):
    if not is_map(net, x):
        return None
    return [net.add('Upsample', x, top, upsample_param={'scale': 2})]


def shuffle_channel(net, x, top):
    if not is_map(net, x) or net.values[x].shape[1] % 2:
        return None
    return [net.add('ShuffleChannel', x, top, shuffle_channel_param={'group': 2})]


def scale_by_blob(net, x, top):
    """A factor for each channel or value, from the first axis on (squeeze-and-excitation)."""
    shape = net.values[x].shape
    factors = [name for name, value in net.values.items() if 2 <= value.ndim <= len(shape) and value.shape == shape[:value.ndim]]
    return [net.add('Scale', [x, str(net.rng.choice(factors))], top, scale_param={'axis': 0})]


def axpy(net, x, top):
    shape = net.values[x].shape
    factors = [name for name, value in net.values.items() if value.shape in (shape[:2], shape[:2] + (1, 1))]
    if len(shape) != 4 or not factors:
        return None
    others = partners(net, x, lambda a: True)
    return [net.add('Axpy', [str(net.rng.choice(factors)), x, str(net.rng.choice(others))], top)]


def reverse(net, x, top):
    axis = axis_of(net.rng, net.values[x].shape, first_axis(net, x))
    return [net.add('Reverse', x, top, reverse_param={'axis': axis})]


def normalize(net, x, top):
    if not is_map(net, x):
        return None
    shared = flag(net.rng)
    return [net.add('Normalize', x, top, [net.random(1 if shared else net.values[x].shape[1], low=1, scale=4)], norm_param={
        'across_spatial': flag(net.rng), 'channel_shared': shared, 'eps': 1e-6})]


def interp(net, x, top):
    if not is_map(net, x):
        return None
    size = {'height': int(net.rng.integers(2, 16)), 'width': int(net.rng.integers(2, 16))}
    return [net.add('Interp', x, top, interp_param=size if flag(net.rng) else {'zoom_factor': 2})]


def im2col(net, x, top):
    if not is_map(net, x, 3):
        return None
    return [net.add('Im2col', x, top, convolution_param={'kernel_size': 3, 'stride': int(net.rng.integers(1, 3)), 'pad': 1})]


def total(net, x, top):
    """One value per item, or of all."""
    p = {'operation': Word(net.rng.choice(['SUM', 'MEAN', 'ASUM'])), 'axis': first_axis(net, x), 'coeff': 0.25}
    return [net.add('Reduction', x, top, reduction_param=p)]


def reshape_inside(net, x, top):
    """The axes from one on."""
    shape, rng = net.values[x].shape, net.rng
    if len(shape) > 4:
        return None
    axis = int(rng.integers(1, len(shape)))
    p = [{'shape': {'dim': [-1]}, 'axis': axis}, {'shape': {'dim': [-1, 1]}, 'axis': axis - len(shape) - 1, 'num_axes': 1},
         {'shape': {'dim': [1]}, 'axis': axis, 'num_axes': 0}, {'shape': {'dim': [-1, int(np.prod(shape[1:]))]}},
         {'shape': {'dim': [1, -1, shape[-1]]}}][rng.integers(5)]
    return [net.add('Reshape', x, top, reshape_param=p)]


def batch_reindex(net, x, top):
    if net.values[x].ndim > 4:
        return None
    items = len(net.values[x])
    order = net.random(int(net.rng.integers(1, 5)), low=0, scale=items).astype(int).reshape(-1, 1)
    net.add('Parameter', [], f'{top}_order', [order], parameter_param={'shape': {'dim': list(order.shape)}})
    return [net.add('BatchReindex', [x, f'{top}_order'], top)]


STEPS = {
    'Axpy': axpy, 'Reverse': reverse, 'Normalize': normalize, 'Interp': interp, 'Im2col': im2col, 'Total': total,
    'ReshapeInside': reshape_inside, 'BatchReindex': batch_reindex, 'ReLU6': in_place('ReLU6'),
    'Swish': in_place('Swish', swish_param={'beta': real(0.5, 2)}),
    'AbsVal': in_place('AbsVal'), 'BatchNorm': batch_norm, 'Bias': bias, 'BNLL': in_place('BNLL'), 'Concat': concat,
    'Convolution': convolution('Convolution'), 'Crop': crop, 'Deconvolution': convolution('Deconvolution'),
    'DepthwiseConvolution': convolution('DepthwiseConvolution'),
    'Dropout': in_place('Dropout', dropout_param={'dropout_ratio': real(0.1, 0.9)}),
    'ELU': in_place('ELU', elu_param={'alpha': real(0.1, 2)}), 'Eltwise': eltwise,
    'Exp': in_place('Exp', exp_param={'base': real(1.5, 2), 'scale': real(-0.2, 0.2)}), 'Flatten': flatten,
    'InnerProduct': inner_product, 'LRN': lrn, 'MVN': mvn, 'Permute': permute, 'Pooling': pooling,
    'Power': in_place('Power', power_param={'scale': real(0.5, 2), 'shift': real(-1, 1)}), 'PReLU': prelu, 'Reduction': reduction,
    'ReLU': in_place('ReLU', relu_param={'negative_slope': real(0, 1)}), 'Reshape': reshape, 'Scale': scale,
    'ScaleByBlob': scale_by_blob, 'ShuffleChannel': shuffle_channel, 'Sigmoid': in_place('Sigmoid'), 'Slice': slices,
    'Softmax': softmax, 'Split': split, 'SPP': spp, 'TanH': in_place('TanH'), 'Tile': tile, 'Upsample': upsample,
}


def random_net(seed):
    """A net that the format of its `form` can have: 'new', 'v1' (before 2015) or 'v0' (of 2013)."""
    rng = np.random.default_rng(seed)
    form = ['v1', 'v0', 'new', 'new', 'new'][seed % 5]
    names = [name for name in STEPS if form == 'new' or name in {'v1': V1_TYPES, 'v0': V0_TYPES}[form]]
    axes = 2 if rng.integers(3) else int(rng.integers(0, 4))  # behind the channels
    sizes = rng.integers(4, 17 if axes < 3 else 7, axes)
    shape = [int(rng.integers(1, 4)), int(rng.choice([1, 2, 3, 4, 8, 16])), *(int(s) for s in sizes)]
    net = CaffeNet(rng, {name: blob(rng, *shape) for name in ['data', 'other'][:rng.integers(1, 3)]})
    net.form = form
    live, wanted = list(net.inputs), int(rng.integers(6, 20))
    while len(net.layers) < wanted and live:
        x = live[-1] if flag(rng) else str(rng.choice(live))
        added = STEPS[str(rng.choice(names))](net, x, f'b{len(net.layers)}')
        for top in added or []:
            value = net.values[top]
            if np.abs(value).max() > 100:  # lest differences of large numbers remain
                net.add('TanH', top)
            live = [name for name in live if name != top]
            if value.size <= MOST_VALUES and 2 <= value.ndim <= 5:
                live.append(top)
    return net
