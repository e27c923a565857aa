"""Random nodes with windows, and those that change sizes of images."""
import numpy as np


def window(m, axes, size, most=3, dilated=True):
    """Attributes of a window over `axes` axes of these sizes."""
    kernel = [m.number(1, min(most, s)) for s in size]
    attributes = {'kernel_shape': kernel}
    if m.chance(0.6):
        attributes['strides'] = [m.number(1, 3) for _ in range(axes)]
    if dilated and m.chance(0.3):
        attributes['dilations'] = [m.number(1, 2) for _ in range(axes)]
    form = m.number(0, 3)
    if form == 1:
        attributes['pads'] = [m.number(0, 2) for _ in range(2 * axes)]
    if form == 2:
        attributes['auto_pad'] = m.pick('SAME_UPPER', 'SAME_LOWER', 'VALID')
        # ONNX Runtime's poolings cut values off in front when windows leave gaps; its convolutions do not.
        attributes['strides'] = [min(s, k) for s, k in zip(attributes.get('strides', [1] * axes), kernel)]
    return attributes


def conv(m):
    x = m.shaped(3, 4, 5)
    if x is None:
        return False
    shape = m.values[x].shape
    group = m.pick(1, 1, shape[1], *[g for g in (2, 3, 4) if shape[1] % g == 0])
    out = group * m.number(1, 5)
    attributes = window(m, len(shape) - 2, shape[2:], 5)
    w = m.constant(m.data(out, shape[1] // group, *attributes['kernel_shape']))
    bias = [m.constant(m.data(out))] if m.chance() else []
    return m.add('Conv', [x, w] + bias, group=group, **attributes)


def conv_transpose(m):
    x = m.shaped(3, 4, 5)
    if x is None:
        return False
    shape = m.values[x].shape
    axes = len(shape) - 2
    group = m.pick(1, 1, shape[1], *[g for g in (2, 3) if shape[1] % g == 0])
    attributes = window(m, axes, [4] * axes, 4)
    strides = attributes.get('strides', [1] * axes)
    if m.chance(0.3):
        attributes['output_padding'] = [m.number(0, max(0, s - 1)) for s in strides]
    if m.chance(0.2):
        attributes['output_shape'] = [(s - 1) * t + m.number(1, 4) for s, t in zip(shape[2:], strides)]
        attributes.pop('pads', None)
    per_group = m.number(1, 4)
    w = m.constant(m.data(shape[1], per_group, *attributes['kernel_shape']))
    bias = [m.constant(m.data(per_group * group))] if m.chance() else []
    return m.add('ConvTranspose', [x, w] + bias, group=group, **attributes)


def pool(m):
    x = m.shaped(3, 4, 5)
    if x is None:
        return False
    shape = m.values[x].shape
    op = m.pick('MaxPool', 'MaxPool', 'AveragePool', 'AveragePool', 'LpPool')
    dilated = op == 'MaxPool' and m.opset >= 10 or op == 'AveragePool' and m.opset >= 19
    attributes = window(m, len(shape) - 2, shape[2:], dilated=dilated)
    if 'auto_pad' in attributes:
        attributes.pop('dilations', None)  # ONNX Runtime does not count them in the output's size then
    if m.opset >= 10 and op != 'LpPool' and m.chance(0.3):
        attributes['ceil_mode'] = 1
    if op == 'AveragePool' and m.chance():
        attributes['count_include_pad'] = 1
    if op == 'LpPool':
        attributes['p'] = m.pick(1, 2)
    return m.add(op, [x], **attributes)


def max_pool_indices(m):
    x = m.shaped(3, 4)
    if x is None:
        return False
    attributes = window(m, m.values[x].ndim - 2, m.values[x].shape[2:], dilated=False)
    return m.add('MaxPool', [x], 2, **attributes)


def global_pool(m):
    return m.add(m.pick('GlobalAveragePool', 'GlobalMaxPool'), [m.shaped(3, 4, 5)])


def resize(m):
    x = m.shaped(3, 4)
    if x is None or m.opset < 11:
        return False
    shape = m.values[x].shape
    mode = m.pick('nearest', 'linear', 'cubic') if len(shape) == 4 else m.pick('nearest', 'linear')
    attributes = {'mode': mode, 'coordinate_transformation_mode': m.pick(
        'half_pixel', 'asymmetric', 'align_corners', 'pytorch_half_pixel')}
    if mode == 'nearest':
        attributes['nearest_mode'] = m.pick('round_prefer_floor', 'round_prefer_ceil', 'floor', 'ceil')
    if mode == 'cubic':
        attributes['cubic_coeff_a'] = m.pick(-0.75, -0.5)
        attributes['exclude_outside'] = m.number(0, 1)
    if m.opset >= 18 and mode != 'nearest' and m.chance(0.3):
        attributes['antialias'] = 1
    empty = '' if m.opset >= 13 else m.constant(np.zeros(0, np.float32))
    if m.chance():
        scales = [1.0, 1.0] + [m.pick(0.5, 2.0, 1.5, 3.0, 0.75, 1.0) for _ in shape[2:]]
        # Where the size that a mode reckons with is a fraction, ONNX's reference and ONNX Runtime disagree.
        if attributes['coordinate_transformation_mode'] in ('align_corners', 'pytorch_half_pixel'):
            scales = [s if s * size == int(s * size) > 1 else 1.0 for s, size in zip(scales, shape)]
        return m.add('Resize', [x, empty, m.constant(np.float32(scales))], **attributes)
    sizes = list(shape[:2]) + [m.number(1, 2 * s + 1) for s in shape[2:]]
    return m.add('Resize', [x, empty, '' if m.opset >= 13 else empty, m.ints(*sizes)], **attributes)


def upsample(m):
    x = m.shaped(4)
    if x is None or m.opset > 9:
        return False
    scales = m.constant(np.float32([1, 1, m.pick(1, 2, 3), m.pick(1, 2)]))
    return m.add('Upsample', [x, scales], mode=m.pick('nearest', 'linear'))


def grid_sample(m):
    x = m.shaped(4)
    if x is None or m.opset < 16:
        return False
    n = m.values[x].shape[0]
    grid = m.constant(m.data(n, m.number(1, 5), m.number(1, 5), 2, low=-1.3, high=1.3))
    names = ('bilinear', 'nearest', 'bicubic') if m.opset < 20 else ('linear', 'nearest', 'cubic')
    return m.add('GridSample', [x, grid], mode=m.pick(*names), align_corners=m.number(0, 1),
                 padding_mode=m.pick('zeros', 'border', 'reflection'))


def roi_align(m):
    x = m.shaped(4, where=lambda x: x.shape[2] > 2 and x.shape[3] > 2)
    if x is None or m.opset < 16:
        return False
    n, _, h, w = m.values[x].shape
    count = m.number(1, 3)
    begin = m.rng.uniform(0, 0.5, (count, 2))
    size = m.rng.uniform(0.2, 0.5, (count, 2))
    rois = np.concatenate([begin, begin + size], 1) * [w, h, w, h] * 2
    return m.add('RoiAlign', [x, m.constant(np.float32(rois)), m.ints(*m.rng.integers(0, n, count))], mode=m.pick('avg', 'max'),
                 output_height=m.number(1, 4), output_width=m.number(1, 4), sampling_ratio=m.number(0, 3), spatial_scale=0.5,
                 coordinate_transformation_mode=m.pick('half_pixel', 'output_half_pixel'))


def blocks(m):
    if m.chance():
        x = m.shaped(4, where=lambda x: x.shape[2] % 2 == 0 and x.shape[3] % 2 == 0)
        return m.add('SpaceToDepth', [x], blocksize=2)
    x = m.shaped(4, where=lambda x: x.shape[1] % 4 == 0)
    return m.add('DepthToSpace', [x], blocksize=2, mode=m.pick('DCR', 'CRD') if m.opset >= 11 else None)


def lrn(m):
    return m.add('LRN', [m.shaped(4)], size=m.pick(1, 3, 5), alpha=0.01, beta=0.75, bias=m.pick(1.0, 2.0))


def col2im(m):
    if m.opset < 18:
        return False
    kernel = [m.number(1, 3), m.number(1, 3)]
    image = [m.number(3, 8), m.number(3, 8)]
    blocks = (image[0] - kernel[0] + 1) * (image[1] - kernel[1] + 1)
    x = m.input(m.data(m.number(1, 2), kernel[0] * kernel[1] * m.number(1, 3), blocks))
    return m.add('Col2Im', [x, m.ints(*image), m.ints(*kernel)])


NODES = {f.__name__: f for f in (conv, conv_transpose, pool, max_pool_indices, global_pool, resize, upsample, grid_sample,
                                 roi_align, blocks, lrn, col2im)}
