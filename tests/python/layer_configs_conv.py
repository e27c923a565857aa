"""The convolution family beyond 2-D f32: 1-D and 3-D windows, weights as inputs, int8 arithmetic; 1-D and 3-D pooling."""
import numpy as np

from layer_configs import (Config, activation, array, convolution, convolution_depthwise, data, deconvolution, deconvolution_depthwise,
                           image, inner_product, pick)

# Kernel, dilation and stride of w, h, d; the six pads; output_pad and output size of w, h, d.
KERNEL, DILATION, STRIDE = (1, 11, 21), (2, 12, 22), (3, 13, 23)
PADS = ((4, 15), (14, 16), (24, 17))
OUTPUT_PAD = {1: (18,), 2: (18, 19), 3: (18, 19, 20)}
OUTPUT_SIZE = {1: (20,), 2: (20, 21), 3: (25, 26, 27)}


def one_of(*makers):
    return lambda rng: makers[rng.integers(len(makers))](rng)


def blob(rng, channels, axes, size):
    """[channels][d][h][w] of `axes` spatial axes."""
    return data(rng, channels, *(int(rng.integers(*size)) for _ in range(axes)))


def channel_counts(rng, kind, most=24):
    """Inputs, outputs and groups: one kernel per channel, groups of more, or one group (kind 'plain')."""
    if kind == 'plain':
        return *(pick(rng, *(n for n in (1, 3, 4, 8, 13, 16, 24) if n <= most)) for _ in range(2)), 1
    if rng.random() < 0.6:
        c = pick(rng, 1, 3, 4, 8, 16)
        return c, c, c
    group = pick(rng, 1, 2, 3)
    return group * pick(rng, 1, 2, 4), group * pick(rng, 1, 2, 4), group


def sizes(rng, ids, choices, axes):
    """Params for one value per axis, with those that follow from w left out now and then; and the values w, h, d."""
    if rng.random() < 0.5:
        value = pick(rng, *choices)
        return f' {ids[0]}={value}', [value] * axes
    values = [pick(rng, *choices) for _ in range(axes)]
    return ''.join(f' {i}={v}' for i, v in zip(ids, values)), values


def window_of(rng, axes):
    kernel, k = sizes(rng, KERNEL, (1, 2, 3, 4) if axes < 3 else (1, 2, 3), axes)
    dilation, d = sizes(rng, DILATION, (1, 1, 2), axes)
    stride, s = sizes(rng, STRIDE, (1, 2, 3), axes)
    return kernel + dilation + stride, k, d, s


def pads_of(rng, axes, kernel, dilation, stride, most=2):
    # SAME with a window shorter than its step, on one axis of several, makes ncnn crop and write out of bounds.
    same = all((k - 1) * d + 1 >= s for k, d, s in zip(kernel, dilation, stride))
    form = int(rng.integers(4))
    if form == 0:
        return ''
    if form == 1:
        return f' 4={rng.integers(1, most + 1)}'
    if form == 2 and same:
        return f' 4={pick(rng, -233, -234)}'
    return ''.join(f' {i}={rng.integers(most + 1)}' for pair in PADS[:axes] for i in pair)


def cut_of(rng, axes, full):
    """What a deconvolution cuts off its output, of size `full` before output_pad."""
    added = [int(rng.integers(3)) for _ in full]
    text = ''.join(f' {i}={n}' for i, n in zip(OUTPUT_PAD[axes], added))
    form = int(rng.integers(4))
    if form == 0:
        return text
    if form == 1:
        return text + ' 4=1'
    if form == 2:
        return text + ''.join(f' {i}={rng.integers(2)}' for pair in PADS[:axes] for i in pair)
    wanted = [max(1, n + a - int(rng.integers(4))) for n, a in zip(full, added)]
    return text + f' 4={pick(rng, -233, -234)}' + ''.join(f' {i}={n}' for i, n in zip(OUTPUT_SIZE[axes], wanted))


def weights_of(rng, params, x, out, group, kernel, transposed, dynamic):
    """Config with the weight and bias in the model, or as inputs."""
    inner = (out if transposed else x.shape[0]) // group
    outer = x.shape[0] if transposed else out
    bias = int(rng.integers(2))
    values = data(rng, out) if bias else None
    params += f' 5={bias}{activation(rng)}' + (f' 7={group}' if group > 1 else '')
    if dynamic:
        weight = data(rng, outer, inner, *kernel[::-1])
        return Config(f'{params} {28 if transposed else 19}=1', [x, weight] + ([values] if bias else []))
    weight = data(rng, outer * inner * int(np.prod(kernel)))
    return Config(f'0={out}{params} 6={weight.size}', [x], [('tagged', weight)] + ([('raw', values)] if bias else []))


def convolutions(axes, kind, dynamic=False):
    def make(rng):
        c, out, group = channel_counts(rng, kind, 24 if axes < 3 else 13)
        params, kernel, dilation, stride = window_of(rng, axes)
        params += pads_of(rng, axes, kernel, dilation, stride) + (' 18=0.5' if rng.random() < 0.2 else '')
        # ncnn crashes on some 2-D outputs of a pixel or two when the weight is an input.
        x = blob(rng, c, axes, {1: (9, 40), 2: (9, 14), 3: (7, 12)}[axes])
        return weights_of(rng, params, x, out, group, kernel, False, dynamic)
    return make


def deconvolutions(axes, kind, dynamic=False):
    def make(rng):
        c, out, group = channel_counts(rng, kind, 16 if axes < 3 else 8)
        params, kernel, dilation, stride = window_of(rng, axes)
        x = blob(rng, c, axes, (3, 20) if axes == 1 else (2, 6))
        full = [(n - 1) * s + d * (k - 1) + 1 for n, k, d, s in zip(x.shape[:0:-1], kernel, dilation, stride)]
        return weights_of(rng, params + cut_of(rng, axes, full), x, out, group, kernel, True, dynamic)
    return make


def whole(rng, *shape):
    return rng.integers(-127, 128, shape).astype(np.int8)


def scales(rng, count, low, high):
    return data(rng, count, low=low, high=high)


def int8_weights(rng, weight_count, scale_count, out, bias, term):
    """Weight, bias and scales in file order. Now and then the weight is f32, which loading rounds."""
    if rng.random() < 0.3:
        weights = [('tagged', data(rng, weight_count))]
        weight_scales = scales(rng, scale_count, 100, 127)
    else:
        weights = [('int8', whole(rng, weight_count))]
        weight_scales = scales(rng, scale_count, 60, 200)
    weights += [('raw', data(rng, out))] if bias else []
    weights += [('raw', weight_scales), ('raw', scales(rng, 1, 80, 160))]
    return weights + ([('raw', scales(rng, 1, 10, 100))] if term > 100 else [])


def convolution_int8(rng):
    c, out, _ = channel_counts(rng, 'plain')
    text, kernel, dilation, stride = window_of(rng, 2)
    bias, term, count = int(rng.integers(2)), pick(rng, 1, 2, 101, 102), out * c * int(np.prod(kernel))
    params = f'0={out}{text}{pads_of(rng, 2, kernel, dilation, stride)} 5={bias} 6={count} 8={term}{activation(rng)}'
    if rng.random() < 0.2:
        params += f' 18={pick(rng, 3.0, -20.7, 0.9)}'
    return Config(params, [image(rng, c, size=(11, 20))], int8_weights(rng, count, out, out, bias, term))


def convolution_depthwise_int8(rng):
    c, out, group = channel_counts(rng, 'grouped')
    text, kernel, dilation, stride = window_of(rng, 2)
    bias, term, count = int(rng.integers(2)), pick(rng, 1, 2, 101, 102), out * (c // group) * int(np.prod(kernel))
    params = f'0={out}{text}{pads_of(rng, 2, kernel, dilation, stride)} 5={bias} 6={count} 7={group} 8={term}{activation(rng)}'
    return Config(params, [image(rng, c, size=(11, 20))], int8_weights(rng, count, group if term % 100 == 1 else 1, out, bias, term))


def inner_product_int8(rng):
    config = inner_product(rng)
    params = dict(p.split('=', 1) for p in config.params.split())
    out, count = int(params['0']), int(params['2'])
    return Config(config.params + f' 8={pick(rng, 1, 2)}', config.inputs, int8_weights(rng, count, out, out, int(params['1']), 0))


def deformable(rng):
    c, out, _ = channel_counts(rng, 'plain', 16)
    x = image(rng, c, size=(7, 12))
    kernel, dilation, stride = pick(rng, 1, 2, 3), pick(rng, 1, 1, 2), pick(rng, 1, 2)
    left, right, top, bottom = (int(v) for v in rng.integers(0, 3, 4))
    extent = (kernel - 1) * dilation + 1
    outw, outh = (x.shape[2] + left + right - extent) // stride + 1, (x.shape[1] + top + bottom - extent) // stride + 1
    taps, bias = kernel * kernel, int(rng.integers(2))
    inputs = [x, data(rng, 2 * taps, outh, outw, low=-2.5, high=2.5)] + ([data(rng, taps, outh, outw)] if rng.random() < 0.7 else [])
    weight = data(rng, out * c * taps)
    params = f'0={out} 1={kernel} 2={dilation} 3={stride} 4={left} 15={right} 14={top} 16={bottom} 5={bias} 6={weight.size}{activation(rng)}'
    return Config(params, inputs, [('tagged', weight)] + ([('raw', data(rng, out))] if bias else []))


def poolings(axes):
    kernels, strides, sides = (1, 11, 21), (2, 12, 22), ((3, 14), (13, 15), (23, 16))

    def make(rng):
        x = blob(rng, pick(rng, 1, 3, 4, 8, 13, 16), axes, (8, 30) if axes == 1 else (6, 11))
        kind, form = int(rng.integers(2)), rng.random()
        if form < 0.15:
            return Config(f'0={kind} 4=1', [x])
        if form < 0.35:
            return Config(f'0={kind} 7=1' + ''.join(f' {i}={rng.integers(1, 6)}' for i in (8, 18, 28)[:axes]), [x])
        kernel, k = sizes(rng, kernels, (1, 2, 3, 4), axes)
        stride, s = sizes(rng, strides, (1, 2, 3), axes)
        mode = int(rng.integers(4 if all(a >= b for a, b in zip(k, s)) else 2))
        text = f'0={kind}{kernel}{stride} 5={mode} 6={rng.integers(2)}'
        if mode < 2:
            text += ''.join(f' {i}={rng.integers(size // 2 + 1)}' for pair, size in zip(sides, k) for i in pair)
        return Config(text, [x])
    return make


def factors(rng, count, low, high):
    """One scale or bias for all or for each of `count` channels."""
    size = pick(rng, 1, count)
    return size, [('raw', data(rng, size, low=low, high=high))]


def quantize(rng):
    x = blob(rng, pick(rng, 1, 3, 4, 8, 13, 16), int(rng.integers(4)), (1, 9))
    size, weights = factors(rng, x.shape[0], 30, 160)
    return Config(f'0={size}', [x], weights)


def whole_sums(rng):
    shape = [pick(rng, 1, 3, 4, 8, 13, 16)] + [int(n) for n in rng.integers(1, 9, int(rng.integers(4)))]
    return rng.integers(-30000, 30001, shape).astype(np.int32)


def dequantize(rng):
    x = whole_sums(rng)
    size, weights = factors(rng, x.shape[0], 0.0001, 0.001)
    bias_size, bias = factors(rng, x.shape[0], -1, 1) if rng.random() < 0.6 else (0, [])
    return Config(f'0={size} 1={bias_size}', [x], weights + bias)


def requantize(rng):
    x = whole_sums(rng)
    size, weights = factors(rng, x.shape[0], 0.0001, 0.001)
    out_size, out_weights = factors(rng, x.shape[0], 4, 12)
    bias_size, bias = factors(rng, x.shape[0], -1, 1) if rng.random() < 0.6 else (0, [])
    kind = int(rng.integers(7))
    values = {2: [0.1], 3: [-5.0, 7.0], 6: [1.0 / 6, 0.5]}.get(kind, [])
    params = f'0={size} 1={out_size} 2={bias_size} 3={kind}' + (' ' + array(4, values) if values else '')
    return Config(params, [x], weights + out_weights + bias)


GENERATORS = {
    'Convolution': one_of(convolution, convolutions(2, 'plain', dynamic=True), convolution_int8),
    'ConvolutionDepthWise': one_of(convolution_depthwise, convolutions(2, 'grouped', dynamic=True), convolution_depthwise_int8),
    'Deconvolution': one_of(deconvolution, deconvolutions(2, 'plain', dynamic=True)),
    'DeconvolutionDepthWise': one_of(deconvolution_depthwise, deconvolutions(2, 'grouped', dynamic=True)),
    'InnerProduct': one_of(inner_product, inner_product_int8),
    'Convolution1D': one_of(convolutions(1, 'plain'), convolutions(1, 'plain', dynamic=True)),
    'ConvolutionDepthWise1D': one_of(convolutions(1, 'grouped'), convolutions(1, 'grouped', dynamic=True)),
    'Deconvolution1D': one_of(deconvolutions(1, 'plain'), deconvolutions(1, 'plain', dynamic=True)),
    'DeconvolutionDepthWise1D': one_of(deconvolutions(1, 'grouped'), deconvolutions(1, 'grouped', dynamic=True)),
    'Convolution3D': convolutions(3, 'plain'), 'ConvolutionDepthWise3D': convolutions(3, 'grouped'),
    'DeformableConv2D': deformable, 'Pooling1D': poolings(1), 'Pooling3D': poolings(3),
    'Quantize': quantize, 'Dequantize': dequantize, 'Requantize': requantize,
    'Deconvolution3D': deconvolutions(3, 'plain'), 'DeconvolutionDepthWise3D': deconvolutions(3, 'grouped'),
}
