"""Random single-layer nets of ncnn's simple operators; see layer_configs.py, whose forms some of these widen."""
import numpy as np

import layer_configs
from layer_configs import Config, array, blob, data, image, pick, plain


def one_of(*generators):
    return lambda rng: pick(rng, *generators)(rng)


def term(rng, size):
    """An expression of that value, of numbers alone."""
    if size < 0:
        return f'neg({term(rng, -size)})'
    forms = [f'{size}', f'+({size - 2},2)', f'-({size + 3},3)', f'//({2 * size},2)', f'max({size},{size - 1})', f'min({size},{size + 5})',
             f'abs(neg({size}))', f'/({3 * size},3)', f'trunc({size}.4)', f'ceil({size - 1}.5)', f'floor({size}.9)', f'round({size - 1}.8)',
             f'sqrt(square({size}))', f'fmod({size + 100},100)', f'remainder({size - 100},100)', f'+(*({size},3),*({size},-2))',
             f'rshift(lshift({size},3),3)', f'or({size},0)', f'and({size},4095)', f'xor(xor({size},21),21)', f'({size})', f'+({size},sign(0))']
    return pick(rng, *forms)


def named(rng, inputs, size):
    """An expression of that value that may refer to the inputs' sizes."""
    names = {1: 'w', 2: 'hw', 3: 'chw', 4: 'cdhw'}
    known = [(f'{i}{axis}', n) for i, x in enumerate(inputs) for axis, n in zip(names[x.ndim], x.shape)]
    name, n = known[rng.integers(len(known))]
    return pick(rng, f'+({name},{size - n})', f'-({term(rng, size + n)},{name})', f'//(*({size},{name}),{name})', term(rng, size))


def reshape_by_expression(rng):
    inputs = [blob(rng)] + [blob(rng) for _ in range(rng.integers(0, 3))]
    sizes, left = [], inputs[0].size
    for _ in range(rng.integers(0, 4)):
        sizes.append(int(rng.choice([k for k in range(1, left + 1) if left % k == 0])))
        left //= sizes[-1]
    sizes.append(left)
    texts = [named(rng, inputs, n) for n in sizes]
    if rng.random() < 0.3:
        texts[rng.integers(len(texts))] = '-1'
    return Config('6="%s"' % ','.join(texts), inputs)


def crop_by_expression(rng):
    x = blob(rng, channels=(4, 8, 12, 16))
    inputs = [x] + [blob(rng) for _ in range(rng.integers(0, 2))]
    axes = sorted(rng.choice(x.ndim, int(rng.integers(1, x.ndim + 1)), replace=False).tolist())
    starts, ends = [], []
    for a in axes:
        start = int(rng.integers(0, x.shape[a]))
        starts.append(named(rng, inputs, start if rng.random() < 0.6 else start - x.shape[a]))
        ends.append(named(rng, inputs, int(rng.integers(start + 1, x.shape[a] + 1))) if rng.random() < 0.6 else '-233')
    return Config(f'19="{",".join(starts)}" 20="{",".join(ends)}" 21="{",".join(str(a) for a in axes)}"', inputs)


def interp_by_expression(rng):
    inputs = [blob(rng, (2, 3, 3), channels=(1, 3, 4, 8, 16))] + [blob(rng, (2, 3)) for _ in range(rng.integers(0, 2))]
    kind = int(rng.integers(1, 4))
    sizes = [named(rng, inputs, int(n)) for n in rng.integers(1, 20, 2)]
    return Config(f'0={kind} 9="{",".join(sizes)}" 6={rng.integers(2) if kind > 1 else 0}', inputs)


def tile(rng):
    x = blob(rng)
    if rng.random() < 0.5:
        return Config(f'0={rng.integers(0, 4)} 1={rng.integers(1, 5)}', [x])
    return Config(array(2, [int(n) for n in rng.integers(1, 4, rng.integers(0, 5))]), [x])


def expand_dims(rng):
    x = blob(rng, (1, 2, 3))
    return Config(array(3, [int(a) for a in rng.integers(-4, 4, rng.integers(0, 4))]), [x])


def squeeze(rng):
    x = data(rng, *(1 if rng.random() < 0.5 else rng.integers(1, 9) for _ in range(rng.integers(1, 5))))
    if rng.random() < 0.5:
        return Config(array(3, [int(a) for a in rng.integers(-4, 4, rng.integers(0, 4))]), [x])
    return Config('0=%d 1=%d 11=%d 2=%d' % tuple(rng.integers(0, 2, 4)), [x])


def affine_function(*values, low=-2.0, high=2.0):
    """Parameter 0 one of the values, 1 and 2 a scale and a shift that keep arguments in [0.1, 6] for positive inputs."""
    def make(rng):
        first = f' 0={pick(rng, *values)}' if rng.random() < 0.7 else ''
        rest = f' 1={rng.uniform(0.2, 2):.4f} 2={rng.uniform(0, 2):.4f}' if rng.random() < 0.7 else ''
        return Config((first + rest).strip(), [blob(rng, low=low, high=high)])
    return make


def maybe(rng, key, low, high):
    """A parameter, or its default."""
    return f' {key}={rng.uniform(low, high):.4f}' if rng.random() < 0.7 else ''


def region(rng, x, scale):
    """Corners of a region that lies within the map of that scale, or sticks out a little."""
    h, w = x.shape[1] / scale, x.shape[2] / scale
    left, top = rng.uniform(-0.1, 0.6) * w, rng.uniform(-0.1, 0.6) * h
    return np.float32([left, top, left + rng.uniform(0.05, 0.6) * w, top + rng.uniform(0.05, 0.6) * h])


def roi_pooling(rng):
    x, scale = image(rng), pick(rng, 1.0, 0.25, 0.0625)
    return Config(f'0={rng.integers(1, 8)} 1={rng.integers(1, 8)} 2={scale}', [x, region(rng, x, scale)])


def roi_align(rng):
    x, scale = image(rng), pick(rng, 1.0, 0.25, 0.0625)
    corners, version, aligned = region(rng, x, scale), int(rng.integers(2)), int(rng.integers(2))
    if version == 0:  # where samples leave the map ncnn reads what lies behind it
        corners = np.clip(corners, aligned / scale, np.float32([x.shape[2], x.shape[1]] * 2) / scale - 1 / scale)
    return Config(f'0={rng.integers(1, 8)} 1={rng.integers(1, 8)} 2={scale} 3={rng.integers(0, 4)} 4={aligned} 5={version}', [x, corners])


def psroi_pooling(rng):
    w, h, out, scale = int(rng.integers(1, 4)), int(rng.integers(1, 4)), int(rng.integers(1, 6)), pick(rng, 1.0, 0.25, 0.0625)
    x = image(rng, w * h * out)
    return Config(f'0={w} 1={h} 2={scale} 3={out}', [x, region(rng, x, scale)])


def proposal(rng):
    h, w, stride = int(rng.integers(1, 7)), int(rng.integers(1, 7)), pick(rng, 8, 16)
    inputs = [rng.permutation(18 * h * w).reshape(18, h, w).astype(np.float32), data(rng, 36, h, w, low=-0.4, high=0.4), np.float32([h * stride, w * stride, rng.uniform(0.3, 1.5)])]
    params = f'0={stride} 1={pick(rng, 4, 8, 16)} 2={pick(rng, 10, 50, 6000)} 3={pick(rng, 1, 5, 300)} 4={rng.uniform(0.2, 0.9):.3f} 5={rng.integers(0, 20)}'
    return Config(params, inputs, outputs=int(rng.integers(1, 3)))


def unary_op(rng):
    op = int(rng.integers(28))
    low, high = {5: (0, 9), 6: (0.1, 9), 7: (-9, 9), 8: (0.1, 9), 11: (-1.4, 1.4), 12: (-1, 1), 13: (-1, 1), 15: (0.1, 9), 17: (0.1, 9),
                 25: (1.1, 9), 26: (-0.95, 0.95), 27: (-0.9, 9)}.get(op, (-5, 5))
    return Config(f'0={op}', [blob(rng, low=low, high=high)])


def any_axes(rng, x):
    """A blob that x can be combined with: of as many axes or fewer, each as long as x's or 1."""
    y = [n if rng.random() < 0.6 else 1 for n in x.shape]
    form = rng.integers(3)
    if form == 1:  # one value, or one for each of the outermost axis, or the innermost
        y = pick(rng, [1], [x.shape[0]], [x.shape[-1]])
    elif form == 2 and x.ndim > 2:  # the outermost axes
        y = list(x.shape[:rng.integers(1, x.ndim)])
    return data(rng, *y, low=0.2, high=2.0)


def binary_op(rng):
    op = int(rng.integers(19))
    x = blob(rng, low=0.2, high=2.0)
    if rng.random() < 0.25:
        return Config(f'0={op} 1=1 2={rng.uniform(0.2, 2):.5f}', [x])
    inputs = [x, any_axes(rng, x)]
    if op not in (6, 9, 12, 13, 15, 16, 17, 18):  # powers of negative numbers; jumps, where rounding decides
        inputs = [v * rng.choice([-1, 1], v.shape).astype(np.float32) for v in inputs]
    return Config(f'0={op}', inputs if rng.random() < 0.5 else inputs[::-1])


def reduction(rng):
    op = int(rng.integers(11))
    x = blob(rng, low=-1.5 if op in (0, 1, 2, 3, 4, 5, 7, 8, 10) else 0.6, high=1.5)
    text = f'0={op} 2={rng.uniform(-2, 2):.4f} 4={rng.integers(2)}'
    if rng.random() < 0.25:
        return Config(f'{text} 1=1', [x])
    axes = [int(a) - (x.ndim if rng.random() < 0.4 else 0) for a in rng.choice(x.ndim, rng.integers(1, x.ndim + 1), replace=False)]
    return Config(f'{text} 1=0 {array(3, axes)} 5=1', [x])


def padding(rng):
    x = blob(rng, channels=(4, 8, 12, 16))
    kind = int(rng.integers(3))
    # h and w take top, bottom, left, right; the axis before them front and behind, save by reflection of 3 axes
    sizes = (list(x.shape[:0:-1]) if x.ndim == 4 else list(x.shape[::-1])) + [1, 1]
    limit = [5, 5, 5] if kind < 2 else [n - 1 for n in sizes[:3]]
    left, right, top, bottom, front, behind = (int(rng.integers(0, limit[i // 2] + 1)) for i in range(6))
    widths = [top, bottom, left, right, front if x.ndim > 2 else 0, behind if x.ndim > 2 else 0]
    if x.ndim == 1:
        widths[:2] = [0, 0]
    value = f'4={kind} 5={rng.uniform(-1, 1):.4f}'
    if rng.random() < 0.2:
        return Config(f'0=-233 1=-233 2=-233 3=-233 {value}', [x, np.int32(widths)])
    text = ' '.join(f'{key}={n}' for key, n in zip((0, 1, 2, 3, 7, 8), widths))
    if x.ndim >= 3 and kind == 0 and rng.random() < 0.4:
        count = x.shape[0] + (widths[4] + widths[5] if x.ndim == 3 else 0)
        return Config(f'{text} {value} 6={count}', [x], [('raw', data(rng, count))])
    return Config(f'{text} {value}', [x])


def pooling(rng):
    kind, x = int(rng.integers(2)), image(rng, size=(6, 18))
    if rng.random() < 0.3:
        return Config(f'0={kind} 7=1 8={pick(rng, -233, 1, 2, 3, 5, 7)} 18={pick(rng, -233, 1, 2, 3, 5, 7)}', [x])
    kw, kh, sw, sh = (pick(rng, 1, 2, 3, 4, 5) for _ in range(4))
    mode = int(rng.integers(4))
    if mode >= 2:  # beyond the window ncnn writes out of bounds
        sw, sh = min(sw, kw), min(sh, kh)
    text = f'0={kind} 1={kw} 2={sw} 11={kh} 12={sh} 5={mode} 6={rng.integers(2)}'
    if rng.random() < 0.6:
        text += ' 3=%d 14=%d 13=%d 15=%d' % tuple(rng.integers(0, k // 2 + 1) for k in (kw, kw, kh, kh))
    return Config(text, [x])


def slice_(rng):
    x = blob(rng, channels=(4, 8, 12, 16, 24, 32))
    axis = int(rng.integers(x.ndim))
    cuts = sorted(set(rng.integers(1, x.shape[axis], rng.integers(0, 4)).tolist())) if x.shape[axis] > 1 else []
    ends = cuts + [x.shape[axis]]
    key = axis if rng.random() < 0.5 else axis - x.ndim
    if rng.random() < 0.4:
        indices = [n if rng.random() < 0.5 or n == x.shape[axis] else n - x.shape[axis] for n in cuts or ends]
        return Config(f'1={key} {array(2, indices)}', [x], outputs=len(cuts) + 1 if cuts else 1)
    sizes = [b - a for a, b in zip([0] + cuts, ends)]
    if rng.random() < 0.5:
        sizes = [-233] * len(sizes) if len(sizes) <= x.shape[axis] else sizes
    elif rng.random() < 0.5:
        sizes[-1] = -233
    return Config(f'{array(0, sizes)} 1={key}', [x], outputs=len(sizes))


def crop_by_offsets(rng):
    """Offsets, sizes and what is left at the ends; or the size of a second blob."""
    x = blob(rng, channels=(4, 8, 12, 16))
    ids = {'w': (0, 3, 6), 'h': (1, 4, 7), 'd': (13, 14, 15), 'c': (2, 5, 8)}
    text, sizes = '', []
    for name, n in zip({1: 'w', 2: 'hw', 3: 'chw', 4: 'cdhw'}[x.ndim], x.shape):
        start = int(rng.integers(0, n))
        rest = int(rng.integers(0, n - start))
        text += f' {ids[name][0]}={start} {ids[name][1]}=-233 {ids[name][2]}={rest}'
        sizes.append(int(rng.integers(1, n - start + 1)))
    if rng.random() < 0.5:
        return Config(text.strip(), [x])
    offsets = ' '.join(word for word in text.split() if int(word.split('=')[0]) in (0, 1, 2, 13))
    return Config(offsets, [x, data(rng, *sizes)])


def interp(rng):
    kind = int(rng.integers(1, 4))
    x = blob(rng, (1, 2, 3, 3), channels=(1, 3, 4, 8, 16))  # of 4 axes ncnn loses one
    align = f' 6={rng.integers(2)}' if kind > 1 else ''
    form = rng.integers(4)
    if form == 0:
        return Config(f'0={kind} 5=1{align}', [x, data(rng, 2, int(rng.integers(1, 20)), int(rng.integers(1, 20)))])
    if form == 1:
        return Config(f'0={kind} 3={rng.integers(1, 24)} 4={rng.integers(1, 24)}{align}', [x])
    if form == 2:
        return Config(f'0={kind} {pick(rng, "3=7", "4=9")} 1={rng.uniform(0.6, 2.5):.3f} 2={rng.uniform(0.6, 2.5):.3f}{align}', [x])
    return Config(f'0={kind} 1={rng.uniform(0.3, 3):.3f} 2={rng.uniform(0.3, 3):.3f}{align}', [x])


def eltwise(rng):
    op, count = int(rng.integers(3)), int(rng.integers(2, 6))
    x = blob(rng)
    coeffs = ' ' + array(1, [float(v) for v in rng.uniform(-2, 2, count)]) if op == 1 and rng.random() < 0.6 else ''
    return Config(f'0={op}{coeffs}', [x] + [data(rng, *x.shape) for _ in range(count - 1)])


def cast(rng):
    kind = pick(rng, 1, 2, 4)
    return Config(f'0=1 1={kind}', [blob(rng, low=-300, high=300)], tail=f'Cast 0={kind} 1=1')


def pixel_shuffle(rng):
    factor = pick(rng, 1, 2, 3, 4)
    return Config(f'0={factor} 1={rng.integers(2)}', [image(rng, factor * factor * pick(rng, 1, 2, 3, 4, 8, 16), size=(1, 9))])


def permute(rng):
    x = blob(rng)
    return Config(f'0={rng.integers([0, 1, 2, 6, 24][x.ndim])}', [x])


def softmax(rng):
    x = blob(rng) * np.float32(pick(rng, 1, 10, 80))
    return Config(f'0={rng.integers(-x.ndim, x.ndim)} 1=1', [x])


GENERATORS = {
    'Reshape': one_of(layer_configs.reshape, reshape_by_expression),
    'Crop': one_of(layer_configs.crop, crop_by_expression, crop_by_offsets),
    'Interp': one_of(interp, interp_by_expression),
    'UnaryOp': unary_op, 'BinaryOp': binary_op, 'Reduction': reduction, 'Padding': padding, 'Pooling': one_of(layer_configs.pooling, pooling),
    'Slice': slice_, 'Eltwise': eltwise, 'Cast': cast, 'PixelShuffle': pixel_shuffle, 'Permute': permute, 'Softmax': softmax,
    'Tile': tile, 'ExpandDims': expand_dims, 'Squeeze': squeeze,
    'ROIPooling': roi_pooling, 'ROIAlign': roi_align, 'PSROIPooling': psroi_pooling, 'Proposal': proposal,
    'BNLL': plain(low=-9, high=9), 'Softplus': plain(low=-9, high=9), 'Erf': plain(low=-4, high=4),
    'Exp': affine_function(-1.0, 2.0, 0.5, 10.0), 'Log': affine_function(-1.0, 2.0, 10.0, 0.5, low=0.1),
    'Power': affine_function(1.0, 2.0, -0.5, 0.7, 3.3, 0.0, low=0.1),
    'SELU': plain(lambda rng: maybe(rng, 0, 0.5, 2) + maybe(rng, 1, 0.5, 2), low=-5, high=5),
    'CELU': plain(lambda rng: maybe(rng, 0, 0.3, 2), low=-5, high=5),
    'Shrink': plain(lambda rng: maybe(rng, 0, -1, 1) + maybe(rng, 1, 0, 1), low=-2, high=2),
    'Threshold': plain(lambda rng: maybe(rng, 0, -1, 1), low=-2, high=2),
}
