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


GENERATORS = {
    'Reshape': one_of(layer_configs.reshape, reshape_by_expression),
    'Crop': one_of(layer_configs.crop, crop_by_expression),
    'Interp': one_of(layer_configs.interp, interp_by_expression),
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
