"""Random single-layer nets, one generator an operator: Config(params, inputs, weights, outputs).

`params` is the text behind the blob names; `weights` is a list of (kind, array) in file order, kind 'tagged', 'raw' or 'int8'.
Parameter ids are the operator table's.
"""
from dataclasses import dataclass, field

import numpy as np


@dataclass
class Config:
    params: str
    inputs: list
    weights: list = field(default_factory=list)
    outputs: int = 1
    tail: str = ''  # 'Type params' of a second layer that turns the output into one that arrays can hold


def pick(rng, *choices):
    return choices[rng.integers(len(choices))]


def data(rng, *shape, low=-1.0, high=1.0):
    return rng.uniform(low, high, shape).astype(np.float32)


def blob(rng, dims=(1, 2, 3, 4), low=-1.0, high=1.0, channels=(1, 3, 4, 8, 12, 16, 24)):
    """A random array of 1 to 4 axes; the outermost is often a multiple of a vector width."""
    count = pick(rng, *dims)
    outer = pick(rng, *channels)
    return data(rng, *([outer] + [int(rng.integers(1, 10)) for _ in range(count - 1)]), low=low, high=high)


def image(rng, channels=None, low=-1.0, high=1.0, size=(5, 16)):
    c = channels or pick(rng, 1, 3, 4, 8, 13, 16, 24, 32)
    return data(rng, c, int(rng.integers(*size)), int(rng.integers(*size)), low=low, high=high)


def numbers(values):
    return ','.join(repr(float(np.float32(v))) if isinstance(v, (float, np.floating)) else str(v) for v in values)


def array(key, values):
    return f'{-23300 - key}={len(values)},{numbers(values)}' if len(values) else f'{-23300 - key}=0'


def activation(rng):
    kind = int(rng.integers(0, 7))
    values = {2: [0.1], 3: [-0.5, 0.7], 6: [1.0 / 6, 0.5]}.get(kind, [])
    return f' 9={kind}' + (' ' + array(10, values) if values else '')


def window(rng, kernels=(1, 2, 3, 5)):
    """Kernel, dilation and stride; along h often other than along w."""
    kw, dw, sw = pick(rng, *kernels), pick(rng, 1, 1, 2), pick(rng, 1, 1, 2, 3)
    text = f' 1={kw} 2={dw} 3={sw}'
    kh, dh, sh = kw, dw, sw
    if rng.random() < 0.4:
        kh, dh, sh = pick(rng, *kernels), pick(rng, 1, 2), pick(rng, 1, 2)
        text += f' 11={kh} 12={dh} 13={sh}'
    return text, kw, kh


def pads(rng, most=3):
    form = rng.integers(4)
    if form == 0:
        return ''
    if form == 1:
        return f' 4={rng.integers(most + 1)}'
    if form == 2:
        return ' 4=%d 15=%d 14=%d 16=%d' % tuple(rng.integers(0, most + 1, 4))
    return f' 4={pick(rng, -233, -234)}'


def convolution_like(rng, group=1, channels=None, extra=''):
    c = channels or pick(rng, 1, 3, 4, 8, 13, 16, 32)
    out = group * pick(rng, 1, 2, 4, 8) if group > 1 else pick(rng, 1, 3, 4, 8, 13, 16, 24, 32, 48)
    text, kw, kh = window(rng)
    bias = int(rng.integers(2))
    weight = data(rng, out * (c // group) * kw * kh)
    params = f'0={out}{text}{pads(rng)} 5={bias} 6={weight.size}{activation(rng)}{extra}'
    return params, c, out, [('tagged', weight)] + ([('raw', data(rng, out))] if bias else [])


def convolution(rng):
    params, c, _, weights = convolution_like(rng)
    if rng.random() < 0.2:
        params += ' 18=0.5'
    return Config(params, [image(rng, c, size=(11, 20))], weights)


def convolution_depthwise(rng):
    c = pick(rng, 1, 3, 4, 8, 13, 16, 32)
    if rng.random() < 0.6:
        text, kw, kh = window(rng)
        bias = int(rng.integers(2))
        weight = data(rng, c * kw * kh)
        params = f'0={c}{text}{pads(rng)} 5={bias} 6={weight.size} 7={c}{activation(rng)}'
        return Config(params, [image(rng, c, size=(11, 20))], [('tagged', weight)] + ([('raw', data(rng, c))] if bias else []))
    group = pick(rng, 2, 3, 4)
    params, c, _, weights = convolution_like(rng, group, group * pick(rng, 1, 2, 4, 8), f' 7={group}')
    return Config(params, [image(rng, c, size=(11, 20))], weights)


def deconvolution_params(rng, x, out, count, group=None):
    kw, dw, sw, kh, dh, sh = (pick(rng, *v) for v in ((1, 2, 3, 4), (1, 1, 2), (1, 2, 3)) * 2)
    cut = pick(rng, '', ' 4=1', ' 4=1 15=0 14=0 16=1', ' 18=1', ' 18=1 19=0', 'size')
    if cut == 'size':  # the SAME modes cut the full output down to a given size
        full_w, full_h = (x.shape[2] - 1) * sw + dw * (kw - 1) + 1, (x.shape[1] - 1) * sh + dh * (kh - 1) + 1
        cut = f' 4={pick(rng, -233, -234)} 20={max(1, full_w - rng.integers(4))} 21={max(1, full_h - rng.integers(4))}'
    bias = int(rng.integers(2))
    weight = data(rng, count * kw * kh)
    params = f'0={out} 1={kw} 2={dw} 3={sw} 11={kh} 12={dh} 13={sh}{cut} 5={bias} 6={weight.size}{activation(rng)}'
    return params + (f' 7={group}' if group else ''), [('tagged', weight)] + ([('raw', data(rng, out))] if bias else [])


def deconvolution(rng):
    c, out = pick(rng, 1, 3, 4, 8, 16), pick(rng, 1, 4, 7, 8, 16)
    x = image(rng, c, size=(4, 10))
    params, weights = deconvolution_params(rng, x, out, c * out)
    return Config(params, [x], weights)


def deconvolution_depthwise(rng):
    group = pick(rng, 1, 2, 4)
    c, out = group * pick(rng, 1, 2, 4), group * pick(rng, 1, 2, 4)
    if rng.random() < 0.6:
        c = out = group = pick(rng, 1, 3, 4, 8, 16)
    x = image(rng, c, size=(4, 10))
    params, weights = deconvolution_params(rng, x, out, c * out // group, group)
    return Config(params, [x], weights)


def inner_product(rng):
    x = blob(rng, (1, 2, 3))
    out, bias = pick(rng, 1, 3, 8, 16, 33), int(rng.integers(2))
    count = x.shape[1] if x.ndim == 2 and rng.random() < 0.6 else x.size
    weight = data(rng, out * count)
    return Config(f'0={out} 1={bias} 2={weight.size}{activation(rng)}', [x], [('tagged', weight)] + ([('raw', data(rng, out))] if bias else []))


def pooling(rng):
    kind = int(rng.integers(2))
    form = rng.random()
    if form < 0.15:
        return Config(f'0={kind} 4=1', [image(rng)])
    if form < 0.3:
        return Config(f'0={kind} 7=1 8={rng.integers(1, 6)} 18={rng.integers(1, 6)}', [image(rng)])
    kw, sw = pick(rng, 1, 2, 3, 5), pick(rng, 1, 2, 3)
    text = f'0={kind} 1={kw} 2={sw}'
    kh = kw
    if rng.random() < 0.3:
        kh = pick(rng, 1, 2, 3)
        text += f' 11={kh} 12={pick(rng, 1, 2)}'
    mode = int(rng.integers(4))
    if mode >= 2 and sw > min(kw, kh):  # ncnn writes out of bounds
        mode -= 2
    most = min(kw, kh) // 2
    if mode < 2 and most:
        text += ' 3=%d 14=%d 13=%d 15=%d' % tuple(rng.integers(0, most + 1, 4))
    return Config(f'{text} 5={mode} 6={rng.integers(2)}', [image(rng, size=(7, 18))])


def broadcast_pair(rng):
    a = blob(rng, (1, 2, 3, 4), low=0.1, high=2.0)
    form = rng.integers(4)
    if form == 0:
        b = data(rng, *a.shape, low=0.1, high=2.0)
    elif form == 1:
        b = data(rng, *[n if rng.random() < 0.5 else 1 for n in a.shape], low=0.1, high=2.0)
    elif form == 2:
        b = data(rng, 1, low=0.1, high=2.0)
    else:
        b = data(rng, *a.shape[:1] + (1,) * (a.ndim - 1), low=0.1, high=2.0)
    return [a, b] if rng.random() < 0.6 else [b, a]


def binary_op(rng):
    op = int(rng.integers(12))
    if rng.random() < 0.25:
        return Config(f'0={op} 1=1 2={rng.uniform(0.2, 2):.5f}', [blob(rng, low=0.1, high=2.0)])
    return Config(f'0={op}', broadcast_pair(rng))


def eltwise(rng):
    op, count = int(rng.integers(3)), int(rng.integers(2, 5))
    x = blob(rng, (1, 2, 3))
    coeffs = ' ' + array(1, [float(v) for v in rng.uniform(-2, 2, count)]) if op == 1 and rng.random() < 0.6 else ''
    return Config(f'0={op}{coeffs}', [x] + [data(rng, *x.shape) for _ in range(count - 1)])


def concat(rng):
    x = blob(rng)
    axis = int(rng.integers(x.ndim))
    inputs = []
    for _ in range(rng.integers(2, 5)):
        shape = list(x.shape)
        shape[axis] = pick(rng, 1, 3, 4, 8, 16)
        inputs.append(data(rng, *shape))
    return Config(f'0={axis if rng.random() < 0.5 else axis - x.ndim}', inputs)


def slice_(rng):
    x = blob(rng, channels=(4, 8, 12, 16, 24, 32))
    axis = int(rng.integers(x.ndim))
    count = int(rng.integers(1, 4))
    sizes = []
    left = x.shape[axis]
    for _ in range(count - 1):
        if left > 1:
            sizes.append(int(rng.integers(1, left)))
            left -= sizes[-1]
    sizes.append(left if rng.random() < 0.5 else -233)
    return Config(f'{array(0, sizes)} 1={axis}', [x], outputs=len(sizes))


def split(rng):
    return Config('', [blob(rng)], outputs=int(rng.integers(1, 4)))


def crop(rng):
    x = blob(rng, (1, 2, 3, 4), channels=(4, 8, 12, 16))
    if rng.random() < 0.5:
        axes = sorted(rng.choice(x.ndim, int(rng.integers(1, x.ndim + 1)), replace=False).tolist())
        starts, ends = [], []
        for a in axes:
            start = int(rng.integers(0, x.shape[a]))
            starts.append(start if start == 0 or rng.random() < 0.6 else start - x.shape[a])
            ends.append(int(rng.integers(start + 1, x.shape[a] + 1)) if rng.random() < 0.6 else -233)
        return Config(f'{array(9, starts)} {array(10, ends)} {array(11, axes)}', [x])
    # offsets and sizes of w, h, (d,) c
    sizes = dict(zip({1: 'w', 2: 'hw', 3: 'chw', 4: 'cdhw'}[x.ndim], x.shape))
    text = ''
    for name, offset, size in (('w', 0, 3), ('h', 1, 4), ('d', 13, 14), ('c', 2, 5)):
        if name in sizes:
            start = int(rng.integers(0, sizes[name]))
            text += f' {offset}={start} {size}={rng.integers(1, sizes[name] - start + 1)}'
    return Config(text.strip(), [x])


def flatten(rng):
    return Config('', [blob(rng)])


def reshape(rng):
    x = data(rng, pick(rng, 4, 8, 16), pick(rng, 2, 3, 6), pick(rng, 2, 4, 5))
    total = x.size
    form = rng.integers(4)
    if form == 0:
        return Config('0=-1', [x])
    if form == 1:
        return Config(f'0=-1 1={pick(rng, x.shape[0], 2, 4)}', [x])
    if form == 2:
        return Config(f'0={x.shape[1]} 1=-1 2={pick(rng, 2, 4, x.shape[0])}', [x])
    return Config(f'0={pick(rng, 1, 2)} 1=2 11=-1 2={pick(rng, 1, 2)}', [x]) if total % 8 == 0 else Config('0=0 1=-1', [x])


def permute(rng):
    x = blob(rng, (2, 3, 4))
    return Config(f'0={rng.integers({2: 2, 3: 6, 4: 24}[x.ndim])}', [x])


def padding(rng):
    x = blob(rng, (1, 2, 3, 4), channels=(4, 8, 12, 16))
    kind = int(rng.integers(3))
    most = [3, 3, min(3, min(x.shape) - 1)][kind]
    top, bottom, left, right, front, behind = (int(v) for v in rng.integers(0, most + 1, 6))
    if x.ndim == 1:
        top = bottom = 0
    text = f'0={top} 1={bottom} 2={left} 3={right} 4={kind} 5={rng.uniform(-1, 1):.4f}'
    if x.ndim >= 3 and kind == 0 and rng.random() < 0.5:
        text += f' 7={front} 8={behind}'
    elif x.ndim == 3 and kind == 0 and rng.random() < 0.4:
        return Config(f'{text} 6={x.shape[0]}', [x], [('raw', data(rng, x.shape[0]))])
    return Config(text, [x])


def interp(rng):
    kind, align = pick(rng, 1, 2, 3), int(rng.integers(2))
    if rng.random() < 0.5:
        size = f'1={rng.uniform(0.6, 2.5):.3f} 2={rng.uniform(0.6, 2.5):.3f}'
    else:
        size = f'3={rng.integers(1, 24)} 4={rng.integers(1, 24)}'
    return Config(f'0={kind} {size} 6={align if kind > 1 else 0}', [image(rng)])


def reduction(rng):
    x = blob(rng, low=0.2, high=1.5)
    op, coeff = int(rng.integers(11)), pick(rng, 1.0, 2.0)
    if rng.random() < 0.3:
        return Config(f'0={op} 1=1 2={coeff} 4={rng.integers(2)}', [x])
    axes = sorted(rng.choice(x.ndim, int(rng.integers(1, x.ndim + 1)), replace=False).tolist())
    if rng.random() < 0.4:
        axes = [a - x.ndim for a in axes]
    return Config(f'0={op} 1=0 2={coeff} {array(3, axes)} 4={rng.integers(2)} 5=1', [x])


def plain(params=lambda rng: '', **kwargs):
    return lambda rng: Config(params(rng), [blob(rng, **kwargs)])


def per_channel(name_count, extra=lambda rng, c: '', low=-1.0, dims=(1, 2, 3)):
    """Layers with `name_count` raw weights of one value per channel; parameter 0 is the channel count."""
    def make(rng):
        x = blob(rng, dims)
        c = x.shape[0]
        return Config(f'0={c}{extra(rng, c)}', [x], [('raw', data(rng, c, low=low)) for _ in range(name_count)])
    return make


def batch_norm(rng):
    x = blob(rng)
    c = x.shape[0]
    eps = pick(rng, 0.0, 0.001)
    return Config(f'0={c} 1={eps}', [x], [('raw', data(rng, c)), ('raw', data(rng, c)), ('raw', data(rng, c, low=0.2)), ('raw', data(rng, c))])


def prelu(rng):
    x = blob(rng, (1, 2, 3, 4))
    count = pick(rng, 1, x.shape[0])
    return Config(f'0={count}', [x], [('raw', data(rng, count))])


def scale(rng):
    x = blob(rng)
    c, bias = x.shape[0], int(rng.integers(2))
    return Config(f'0={c} 1={bias}', [x], [('raw', data(rng, c)) for _ in range(1 + bias)])


def softmax(rng):
    x = blob(rng)
    axis = int(rng.integers(-x.ndim, x.ndim))
    return Config(f'0={axis} 1=1', [x * 5])


def lrn(rng):
    return Config(f'0={rng.integers(2)} 1={pick(rng, 1, 3, 5)} 2={rng.uniform(0.1, 1):.4f} 3={pick(rng, 0.75, 0.5)} 4={pick(rng, 1.0, 2.0)}', [image(rng)])


def shuffle_channel(rng):
    group = pick(rng, 2, 3, 4)
    return Config(f'0={group} 1={rng.integers(2)}', [image(rng, group * pick(rng, 1, 2, 4, 8, 12))])


def pixel_shuffle(rng):
    factor = pick(rng, 2, 3)
    return Config(f'0={factor} 1={rng.integers(2)}', [image(rng, factor * factor * pick(rng, 1, 2, 4, 8))])


def memory_data(rng):
    x = blob(rng)
    names = {1: ['0'], 2: ['1', '0'], 3: ['2', '1', '0'], 4: ['2', '11', '1', '0']}[x.ndim]
    return Config(' '.join(f'{key}={size}' for key, size in zip(names, x.shape)), [], [('raw', x.ravel())])


def unary_op(rng):
    op = int(rng.integers(20))
    low, high = (0.1, 0.9) if op in (5, 6, 8, 12, 13, 15, 17) else (-0.9, 0.9)
    return Config(f'0={op}', [blob(rng, low=low, high=high)])


def packing(rng):
    return Config(f'0={pick(rng, 1, 4, 8)}', [blob(rng, channels=(8, 16, 24))], tail='Packing 0=1')


def cast(rng):
    kind = pick(rng, 1, 2, 4)
    x = blob(rng)
    if kind == 4:  # half between two bf16 values ncnn rounds away from zero, we (as IEEE 754 and AVX512-BF16) to even
        bits = x.view(np.uint32)
        bits[bits & 0xffff == 0x8000] += 1
    return Config(f'0=1 1={kind}', [x], tail=f'Cast 0={kind} 1=1')


def prior_box(rng):
    sizes = [float(v) for v in rng.uniform(10, 60, int(rng.integers(1, 3)))]
    bigger = ' ' + array(1, [v * 2 for v in sizes]) if rng.random() < 0.6 else ''
    ratios = ' ' + array(2, [2.0, 3.0][:int(rng.integers(1, 3))])
    steps = ' 9=-233 10=-233 11=-233.0 12=-233.0' if rng.random() < 0.6 else ' 9=300 10=300 11=16.0 12=16.0'
    text = f'{array(0, sizes)}{bigger}{ratios} 3=0.1 4=0.1 5=0.2 6=0.2 7={rng.integers(2)} 8={rng.integers(2)}{steps} 13=0.5'
    return Config(text, [image(rng), data(rng, 3, 120, 100)])


def detection_output(rng):
    priors, classes = int(rng.integers(4, 40)), int(rng.integers(2, 6))
    corners = rng.uniform(0, 0.7, (priors, 2))
    boxes = np.concatenate([corners, corners + rng.uniform(0.05, 0.3, (priors, 2))], 1).astype(np.float32)
    prior = np.stack([boxes.ravel(), np.tile(np.float32([0.1, 0.1, 0.2, 0.2]), priors)]).astype(np.float32)
    text = f'0={classes} 1={rng.uniform(0.3, 0.6):.3f} 2=100 3={pick(rng, 10, 100)} 4={rng.uniform(0.2, 0.6):.3f}'
    # Scores add up to 1: ncnn leaves out priors whose background score says that no class can be above the threshold.
    scores = np.exp(data(rng, priors, classes, low=-4, high=4))
    scores = (scores / scores.sum(1, keepdims=True)).astype(np.float32)
    return Config(text, [data(rng, priors * 4), scores.ravel(), prior])


def yolo_detection_output(rng):
    classes, boxes = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    biases = [float(v) for v in rng.uniform(0.5, 5, 2 * boxes)]
    x = data(rng, boxes * (5 + classes), int(rng.integers(2, 7)), int(rng.integers(2, 7)), low=-3, high=3)
    return Config(f'0={classes} 1={boxes} 2={rng.uniform(0.05, 0.4):.3f} 3=0.45 {array(4, biases)}', [x])


def yolov3_detection_output(rng):
    classes, boxes = int(rng.integers(1, 5)), 3
    biases = [float(v) for v in rng.uniform(10, 100, 12)]
    inputs = [data(rng, boxes * (5 + classes), n, n, low=-3, high=3) for n in (3, 6)]
    return Config(f'0={classes} 1={boxes} 2={rng.uniform(0.1, 0.4):.3f} 3=0.45 {array(4, biases)} {array(5, [3.0, 4.0, 5.0, 0.0, 1.0, 2.0])} {array(6, [32.0, 16.0])}', inputs)


def normalize(rng):
    x = image(rng)
    across_channel, shared = int(rng.integers(2)), int(rng.integers(2))
    count = 1 if shared else x.shape[0]
    across_spatial = int(rng.integers(2))
    channels = '' if across_channel and rng.random() < 0.5 else f' 4={across_channel}'
    return Config(f'0={across_spatial} 1={shared} 2=0.0001 3={count}{channels} 9={rng.integers(3)}', [x], [('raw', data(rng, count))])


def affine(rng, count):
    on = int(rng.integers(2))
    return on, [('raw', data(rng, count)), ('raw', data(rng, count))] if on else []


def instance_norm(rng):
    x = image(rng)
    on, weights = affine(rng, x.shape[0])
    return Config(f'0={x.shape[0]} 1=0.001 2={on}', [x], weights)


def group_norm(rng):
    group = pick(rng, 1, 2, 4)
    x = blob(rng, (1, 2, 3), channels=(4, 8, 16, 24))
    while x.size // group < 4:  # of a single value only rounding noise is left
        x = blob(rng, (1, 2, 3), channels=(4, 8, 16, 24))
    on, weights = affine(rng, x.shape[0])
    return Config(f'0={group} 1={x.shape[0]} 2=0.001 3={on}', [x], weights)


def layer_norm(rng):
    x = blob(rng, (1, 2, 3))
    size = x.shape[-1] if x.ndim < 3 or rng.random() < 0.5 else x.shape[-1] * x.shape[-2]
    on, weights = affine(rng, size)
    return Config(f'0={size} 1=0.001 2={on}', [x], weights)


GENERATORS = {
    'Pooling': pooling, 'BinaryOp': binary_op,
    'Eltwise': eltwise, 'Concat': concat, 'Slice': slice_, 'Split': split, 'Crop': crop, 'Flatten': flatten, 'Reshape': reshape,
    'Permute': permute, 'Padding': padding, 'Interp': interp, 'Reduction': reduction,
    'ReLU': plain(lambda rng: f'0={pick(rng, 0.0, 0.1)}'), 'Clip': plain(lambda rng: '0=-0.5 1=0.3'), 'PReLU': prelu,
    'Swish': plain(), 'HardSwish': plain(lambda rng: f'0={rng.uniform(0.1, 0.5):.4f} 1={rng.uniform(0.2, 0.8):.4f}'),
    'HardSigmoid': plain(lambda rng: f'0={rng.uniform(0.1, 0.5):.4f} 1={rng.uniform(0.2, 0.8):.4f}'), 'Sigmoid': plain(), 'TanH': plain(),
    'Softmax': softmax, 'BatchNorm': batch_norm, 'Scale': scale, 'Bias': per_channel(1), 'LRN': lrn,
    'ShuffleChannel': shuffle_channel, 'PixelShuffle': pixel_shuffle, 'Dropout': plain(lambda rng: f'0={pick(rng, 1.0, 0.5)}'),
    'Noop': plain(), 'MemoryData': memory_data, 'UnaryOp': unary_op, 'Packing': packing, 'Cast': cast,
    'PriorBox': prior_box, 'DetectionOutput': detection_output, 'YoloDetectionOutput': yolo_detection_output,
    'Yolov3DetectionOutput': yolov3_detection_output, 'Normalize': normalize, 'InstanceNorm': instance_norm,
    'GroupNorm': group_norm, 'LayerNorm': layer_norm,
}
