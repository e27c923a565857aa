"""Random single-layer nets of the recurrent and signal operators; see layer_configs.py."""
import numpy as np

from layer_configs import Config, array, blob, data, image, pick


def axis(rng):
    x = blob(rng)
    return Config(f'0={rng.integers(-x.ndim, x.ndim)}', [x])


def glu(rng):
    x = blob(rng, channels=(2, 4, 8, 16, 24))
    where = int(rng.integers(-x.ndim, x.ndim))
    while x.shape[where] < 2:
        where = int(rng.integers(-x.ndim, x.ndim))
    return Config(f'0={where}', [x * 3])


def mvn(rng):
    x = blob(rng)
    while x.size // x.shape[0] < 3:  # of a single value only rounding noise is left
        x = blob(rng)
    return Config(f'0={rng.integers(2)} 1={rng.integers(2)} 2={pick(rng, 0.0001, 0.001, 0.1)}', [x])


def statistics_pooling(rng):
    return Config(f'0={rng.integers(2)}', [blob(rng)])


def reorg(rng):
    x = image(rng)
    return Config(f'0={rng.integers(1, 5)} 1={rng.integers(2)}', [x])


def flip(rng):
    x = blob(rng)
    count = int(rng.integers(1, x.ndim + 1))
    axes = [int(a) - (x.ndim if rng.random() < 0.5 else 0) for a in rng.permutation(x.ndim)[:count]]
    return Config(array(0, axes), [x])


def diag(rng):
    if rng.random() < 0.4:
        return Config(f'0={rng.integers(-6, 7)}', [data(rng, int(rng.integers(1, 20)))])
    h, w = int(rng.integers(1, 20)), int(rng.integers(1, 20))
    return Config(f'0={rng.integers(1 - h, w)}', [data(rng, h, w)])


def copy_to(rng):
    x = blob(rng, channels=(3, 4, 8, 12, 16))
    sizes = [int(rng.integers(1, n + 1)) for n in x.shape]
    starts = [int(rng.integers(0, n - s + 1)) for n, s in zip(x.shape, sizes)]
    y = data(rng, *sizes)
    if sizes[0] == 1 and x.ndim in (2, 3) and rng.random() < 0.5:
        y = y[0].copy()
    if rng.random() < 0.5:
        names = {1: ['0'], 2: ['1', '0'], 3: ['2', '1', '0'], 4: ['2', '13', '1', '0']}[x.ndim]
        return Config(' '.join(f'{key}={start}' for key, start in zip(names, starts)), [x, y])
    axes = [int(a) for a in rng.permutation(x.ndim)]
    values = [starts[a] - (x.shape[a] if rng.random() < 0.3 else 0) for a in axes]
    axes = [a - (x.ndim if rng.random() < 0.3 else 0) for a in axes]
    return Config(f'{array(9, values)} {array(11, axes)}', [x, y])


def window(rng):
    kw, dw, sw = pick(rng, 1, 2, 3, 4), pick(rng, 1, 1, 2), pick(rng, 1, 1, 2, 3)
    text, kh, dh, sh = f'1={kw} 2={dw} 3={sw}', kw, dw, sw
    if rng.random() < 0.6:
        kh, dh, sh = pick(rng, 1, 2, 3), pick(rng, 1, 2), pick(rng, 1, 2)
        text += f' 11={kh} 12={dh} 13={sh}'
    return text, (kw, dw, sw), (kh, dh, sh)


def unfold(rng):
    text, across, down = window(rng)
    # Where a stride leaves pixels out, ncnn's SAME_LOWER pads by a negative number.
    same = [' 4=-233', ' 4=-234'] if across[0] >= across[2] and down[0] >= down[2] else []
    pad = pick(rng, '', f' 4={rng.integers(3)}', ' 4=%d 15=%d 14=%d 16=%d' % tuple(rng.integers(0, 3, 4)), *same)
    return Config(f'{text}{pad} 18={rng.uniform(-1, 1):.4f}', [image(rng, size=(8, 16))])


def fold(rng):
    text, across, down = window(rng)
    left, right, top, bottom = (int(v) for v in rng.integers(0, 3, 4))
    w, h = int(rng.integers(8, 16)), int(rng.integers(8, 16))
    columns = 1
    for size, (kernel, dilation, stride) in ((w + left + right, across), (h + top + bottom, down)):
        columns *= (size - (dilation * (kernel - 1) + 1)) // stride + 1
    rows = pick(rng, 1, 3, 4) * across[0] * down[0]
    return Config(f'{text} 4={left} 15={right} 14={top} 16={bottom} 20={w} 21={h}', [data(rng, rows, columns)])


def grid_sample(rng):
    dims = pick(rng, 3, 4)
    kind, padding, align, permuted = pick(rng, 1, 2, 3) if dims == 3 else pick(rng, 1, 2), pick(rng, 1, 2, 3), int(rng.integers(2)), int(rng.integers(2))
    x = data(rng, *[int(v) for v in rng.integers(1, 10, dims)])
    size = [int(v) for v in rng.integers(1, 12, dims - 1)]
    grid = data(rng, *([dims - 1] + size if permuted else size + [dims - 1]), low=-1.3, high=1.3)
    return Config(f'0={kind} 1={padding} 2={align} 3={permuted}', [x, grid])


def stft(rng):
    n_fft = int(rng.integers(4, 40))
    return n_fft, f'0={n_fft} 2={rng.integers(1, n_fft + 1)} 3={rng.integers(2, n_fft + 1)} 4={rng.integers(3)} 7={rng.integers(3)}'


def spectrogram(rng):
    n_fft, text = stft(rng)
    return Config(f'{text} 1={rng.integers(3)} 5={rng.integers(2)} 6={rng.integers(3)} 8={rng.integers(2)}', [data(rng, int(rng.integers(n_fft, 200)))])


def inverse_spectrogram(rng):
    n_fft = int(rng.integers(4, 40))
    # Windows that overlap: where their squares add up to almost nothing, only rounding noise is left.
    text = f'0={n_fft} 2={rng.integers(1, max(2, n_fft // 3))} 3={n_fft} 4={pick(rng, 0, 2)} 7={rng.integers(3)}'
    freqs = n_fft if rng.random() < 0.3 else n_fft // 2 + 1
    return Config(f'{text} 1={rng.integers(3)} 5={rng.integers(2)}', [data(rng, freqs, int(rng.integers(2, 20)), 2)])


def recurrent(gates, bias_rows, states):
    def make(rng):
        size, out, steps, direction = int(rng.integers(1, 20)), int(rng.integers(1, 24)), int(rng.integers(1, 12)), int(rng.integers(3))
        directions = 2 if direction == 2 else 1
        hidden = int(rng.integers(1, 24)) if states == 2 and rng.random() < 0.4 else out
        weight = data(rng, directions * gates * hidden * size)
        weights = [('tagged', w) for w in (weight, data(rng, directions * bias_rows * hidden), data(rng, directions * gates * hidden * out))]
        if hidden != out:
            weights.append(('tagged', data(rng, directions * out * hidden)))
        inputs = [data(rng, steps, size, low=-2, high=2)]
        if rng.random() < 0.5:
            inputs += [data(rng, directions, n) for n in (out, hidden)[:states]]
        params = f'0={out} 1={weight.size} 2={direction}' + (f' 3={hidden}' if hidden != out else '')
        return Config(params, inputs, weights, outputs=pick(rng, 1, 1 + states))
    return make


GENERATORS = {
    'GRU': recurrent(3, 4, 1), 'LSTM': recurrent(4, 4, 2), 'RNN': recurrent(1, 1, 1),
    'CopyTo': copy_to, 'CumulativeSum': axis, 'DeepCopy': lambda rng: Config('', [blob(rng)]), 'Diag': diag, 'Flip': flip, 'Fold': fold, 'GLU': glu,
    'GridSample': grid_sample, 'InverseSpectrogram': inverse_spectrogram, 'MVN': mvn, 'Reorg': reorg,
    'Spectrogram': spectrogram, 'StatisticsPooling': statistics_pooling, 'Unfold': unfold,
}
