"""The sequence operators that ncnn lacks (and SPP, which its wheel is built without), against closed forms in NumPy."""
import itertools
import zlib

import numpy as np
import pytest

from engine import run_engine
from layer_configs import array, data, pick

CONFIGS = 50


def run_layer(folder, op, params, inputs, weights=(), outputs=1):
    """weights: arrays in file order, ('tagged', x) or ('raw', x)."""
    names, tops = [f'in{i}' for i in range(len(inputs))], [f'out{i}' for i in range(outputs)]
    lines = [f'Input {name} 0 1 {name}' for name in names]
    lines.append(f"{op} op {len(names)} {outputs} {' '.join(names + tops)} {params}")
    (folder / 'm.param').write_text(f'7767517\n{len(lines)} {len(names) + outputs}\n' + '\n'.join(lines) + '\n')
    blob = b''
    for kind, w in weights:
        tag = b'' if kind == 'raw' else b'\0\0\0\0' if w.dtype == np.float32 else (0x000D4B38).to_bytes(4, 'little')
        blob += tag + w.tobytes() + b'\0' * (-w.nbytes % 4)
    (folder / 'm.bin').write_bytes(blob)
    got = run_engine(str(folder / 'm.param'), str(folder / 'm.bin'), dict(zip(names, inputs)), tops)
    return [got[name] for name in tops]


def compare_all(op, make, folder):
    """make(rng) gives (params, inputs, weights, expected outputs) for each seed."""
    for i in range(CONFIGS):
        seed = zlib.crc32(op.encode()) + i
        params, inputs, weights, want = make(np.random.default_rng(seed))
        got = run_layer(folder, op, params, inputs, weights, len(want))
        for k, (a, b) in enumerate(zip(got, want)):
            what = f'{op} {params} on {[x.shape for x in inputs]}, seed {seed}, output {k}'
            assert a.shape == b.shape, f'{what}: {a.shape}, expected {b.shape}'
            if np.issubdtype(b.dtype, np.integer):
                np.testing.assert_array_equal(a, b, err_msg=what)
            else:
                scale = max(1e-3, np.abs(b).max())
                assert np.abs(a - b).max() <= 1e-5 * scale, f'{what}: {np.abs(a - b).max() / scale:.1e} of the range'


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# ---------------------------------------------------------------- ONNX LSTM, GRU, RNN

# In the order of the parameter: the function, and whether it has alpha and beta.
ACTIVATIONS = [
    (lambda x, a, b: np.maximum(x, 0), 0), (lambda x, a, b: np.tanh(x), 0), (lambda x, a, b: sigmoid(x), 0),
    (lambda x, a, b: a * x + b, 2), (lambda x, a, b: np.where(x >= 0, x, a * x), 1), (lambda x, a, b: np.where(x >= a, x, 0), 1),
    (lambda x, a, b: a * np.tanh(b * x), 2), (lambda x, a, b: np.clip(a * x + b, 0, 1), 2),
    (lambda x, a, b: np.where(x >= 0, x, a * (np.exp(x) - 1)), 1), (lambda x, a, b: x / (1 + np.abs(x)), 0),
    (lambda x, a, b: np.log1p(np.exp(x)), 0)]


def onnx_functions(rng, per_direction, directions, clip):
    """Functions a direction, and the parameters that ask for them."""
    def clipped(k):  # the function of an LSTM's cell gets it as it is, in ONNX Runtime too
        return clip and (per_direction < 3 or k % 3 < 2)
    if rng.random() < 0.4:
        kinds, text = ([2, 1, 1] if per_direction == 3 else [2, 1] if per_direction == 2 else [1]) * directions, ''
        alphas = betas = []
    else:
        # Without clip what is not bounded grows beyond all measure. ThresholdedRelu jumps: rounding would decide.
        kinds = [int(pick(rng, *((0, 1, 2, 3, 4, 6, 7, 8, 9, 10) if clipped(k) else (1, 2, 6, 7, 9)))) for k in range(per_direction * directions)]
        alphas = [float(np.float32(v)) for v in rng.uniform(0.2, 1, sum(ACTIVATIONS[k][1] > 0 for k in kinds))]
        betas = [float(np.float32(v)) for v in rng.uniform(0.2, 1, sum(ACTIVATIONS[k][1] > 1 for k in kinds))]
        text = ' ' + array(12, kinds) + (' ' + array(13, alphas) if alphas else '') + (' ' + array(14, betas) if betas else '')
    alpha, beta, made = iter(alphas), iter(betas), []
    for k, kind in enumerate(kinds):
        f, count = ACTIVATIONS[kind]
        a, b = next(alpha) if count > 0 else 0, next(beta) if count > 1 else 0
        bound = (lambda x: np.clip(x, -clip, clip)) if clipped(k) else (lambda x: x)
        made.append(lambda x, f=f, a=a, b=b, bound=bound: f(bound(x), a, b))
    return [made[d * per_direction:(d + 1) * per_direction] for d in range(directions)], text


def lstm_step(x, h, c, w, r, wb, rb, p, f, coupled):
    gi, go, gf, gc = np.split(x @ w.T + h @ r.T + wb + rb, 4)
    pi, po, pf = np.split(p, 3)
    i = f[0](gi + pi * c)
    forget = 1 - i if coupled else f[0](gf + pf * c)
    c = forget * c + i * f[1](gc)
    return f[0](go + po * c) * f[2](c), c


def gru_step(x, h, c, w, r, wb, rb, p, f, after):
    wz, wr, wh = np.split(w, 3)
    rz, rr, rh = np.split(r, 3)
    bz, br, bh = np.split(wb, 3)
    cz, cr, ch = np.split(rb, 3)
    z, reset = f[0](x @ wz.T + h @ rz.T + bz + cz), f[0](x @ wr.T + h @ rr.T + br + cr)
    new = f[1](x @ wh.T + reset * (h @ rh.T + ch) + bh) if after else f[1](x @ wh.T + (reset * h) @ rh.T + ch + bh)
    return (1 - z) * new + z * h, c


def rnn_step(x, h, c, w, r, wb, rb, p, f, _):
    return f[0](x @ w.T + h @ r.T + wb + rb), c


def onnx_recurrent(gates, functions, step, has_cell, has_variant):
    def make(rng):
        size, n, steps, batch, direction, layout = (int(v) for v in rng.integers([1, 1, 1, 1, 0, 0], [9, 20, 8, 5, 3, 2]))
        directions = 2 if direction == 2 else 1
        flat = rng.random() < 0.2
        batch = 1 if flat else batch
        bias, peephole, variant = int(rng.integers(2)), int(rng.integers(2)) * has_cell, int(rng.integers(2)) * has_variant
        lens_in, h_in, c_in = int(rng.integers(2)), int(rng.integers(2)), int(rng.integers(2)) * has_cell
        dynamic = int(rng.random() < 0.3)
        clip = float(pick(rng, 0.0, 0.5))
        f, text = onnx_functions(rng, functions, directions, clip)
        w, r = data(rng, directions, gates * n, size), data(rng, directions, gates * n, n, low=-0.4, high=0.4)
        b = data(rng, directions, 2 * gates * n) if bias else np.zeros((directions, 2 * gates * n), np.float32)
        p = data(rng, directions, 3 * n) if peephole else np.zeros((directions, 3 * n), np.float32)
        x = data(rng, steps, batch, size)
        lens = rng.integers(0, steps + 1, batch).astype(np.int32) if lens_in else np.full(batch, steps, np.int32)
        h0 = data(rng, directions, batch, n) * h_in
        c0 = data(rng, directions, batch, n) * c_in
        y, last_h, last_c = np.zeros((steps, directions, batch, n)), h0.astype(np.float64), c0.astype(np.float64)
        for d, k in itertools.product(range(directions), range(batch)):
            order = range(lens[k])
            for t in (reversed(order) if direction == 1 or d == 1 else order):
                last_h[d, k], last_c[d, k] = step(x[t, k].astype(np.float64), last_h[d, k], last_c[d, k], w[d], r[d],
                                                  *np.split(b[d], 2), p[d], f[d], variant)
                y[t, d, k] = last_h[d, k]

        def state(s):
            return s[:, 0] if flat else s.transpose(1, 0, 2) if layout else s
        params = (f'0={n} 2={direction} 3={layout} 5={clip} 6={bias} 8={lens_in} 9={h_in} 11={dynamic}'
                  + (f' 1={w.size}' if not dynamic else '') + (f' 4={variant}' if has_variant else '')
                  + (f' 7={peephole} 10={c_in}' if has_cell else '') + text)
        inputs = [x[:, 0] if flat else x.transpose(1, 0, 2) if layout else x]
        inputs += [w, r] * dynamic + [b] * (dynamic * bias) + [lens] * lens_in + [state(h0)] * h_in + [state(c0)] * c_in + [p] * (dynamic * peephole)
        weights = [] if dynamic else [('tagged', w), ('tagged', r)] + [('raw', b)] * bias + [('raw', p)] * peephole
        out = y[:, :, 0] if flat else y.transpose(2, 0, 1, 3) if layout else y
        want = [out, state(last_h)] + [state(last_c)] * has_cell
        return params, [np.ascontiguousarray(v) for v in inputs], weights, want[:pick(rng, 1, len(want))]
    return make


@pytest.mark.parametrize('op, make', [
    ('OnnxLSTM', onnx_recurrent(4, 3, lstm_step, 1, 1)), ('OnnxGRU', onnx_recurrent(3, 2, gru_step, 0, 1)),
    ('OnnxRNN', onnx_recurrent(1, 1, rnn_step, 0, 0))])
def test_onnx_recurrent(op, make, tmp_path):
    compare_all(op, make, tmp_path)


# ---------------------------------------------------------------- Kaldi

def dynamic_lstm(rng):
    size, cell, recurrent, more, steps, factor = (int(v) for v in rng.integers([1, 1, 1, 0, 1, 1], [9, 12, 6, 4, 12, 4]))
    out_rows, cell_rows = int(rng.integers(1, 5)), int(rng.integers(1, 5))
    offset = int(rng.integers(0, more + 1))
    outputs, scale = recurrent + more, float(np.float32(rng.uniform(0.5, 1)))
    bias_a, bias_b, given = (int(v) for v in rng.integers(0, 2, 3))
    a, b, p = data(rng, 4 * cell, size + recurrent), data(rng, outputs, cell), data(rng, 3, cell)
    ba, bb = data(rng, 4 * cell) * bias_a, data(rng, outputs) * bias_b
    x = data(rng, steps, size)
    forward = sorted(int(v) for v in rng.permutation(steps)[:rng.integers(1, steps + 1)]) if rng.random() < 0.5 else list(range(steps))
    outs, cells = data(rng, out_rows, recurrent) * given, data(rng, cell_rows, cell) * given
    inputs = [x] + [outs, cells] * given
    outs, cells = list(outs.astype(np.float64)), list(cells.astype(np.float64))
    y = []
    for k, t in enumerate(forward):
        i, f, g, o = np.split(a @ np.concatenate([x[t], outs[k]]) + ba, 4)
        before = cells[k]
        i, f = sigmoid(i + p[0] * before), sigmoid(f + p[1] * before)
        c = f * before + i * np.tanh(g)
        y.append(b @ (sigmoid(o + p[2] * c) * np.tanh(c)) + bb)
        outs.append(y[-1][offset:offset + recurrent] * scale)
        cells.append(c * scale)
    text = f'0={-out_rows * factor} 1={-cell_rows * factor} 2={offset} 3={recurrent} 4={cell} 5={outputs} 6={a.size} 7={bias_a} 8={bias_b} 9={scale} 10={factor}'
    if len(forward) < steps:
        text += ' ' + array(11, forward)
    caches = []
    for key, rows, kept in ((12, out_rows, outs), (13, cell_rows, cells)):
        if rng.random() < 0.5:
            indexes = [int(v) for v in rng.integers(0, len(forward), rows)]
            text += ' ' + array(key, indexes)
            caches.append(np.stack([kept[rows + i] for i in indexes]))
        else:
            caches.append(np.stack(kept[-rows:]))
    weights = [('tagged', a), ('raw', p), ('tagged', b)] + [('raw', ba)] * bias_a + [('raw', bb)] * bias_b
    return text, inputs, weights, [np.stack(y)] + pick(rng, [], caches)


def test_dynamic_lstm(tmp_path):
    compare_all('DynamicLSTM', dynamic_lstm, tmp_path)


# ---------------------------------------------------------------- decoder

def ctc_greedy_decoder(rng):
    batch, steps, classes = (int(v) for v in rng.integers([1, 1, 1], [5, 15, 6]))
    x = data(rng, batch, steps, classes)
    flat = batch == 1 and rng.random() < 0.5
    blank, merge, with_lens, fill = int(rng.integers(-classes, classes)), int(rng.integers(2)), int(rng.integers(2)), int(rng.integers(-3, 0))
    lens = rng.integers(0, steps + 1, batch).astype(np.int32) if with_lens else np.full(batch, steps, np.int32)
    labels, counts = np.full((batch, steps), fill, np.int32), np.zeros(batch, np.int32)
    for k in range(batch):
        best = [int(v) for v in x[k, :lens[k]].argmax(1)]
        kept = [group[0] for group in itertools.groupby(best)] if merge else best
        kept = [v for v in kept if v != blank % classes]
        labels[k, :len(kept)], counts[k] = kept, len(kept)
    inputs = [x[0] if flat else x] + [lens] * with_lens
    return f'0={blank} 1={merge} 2={with_lens} 3={fill}', inputs, [], [labels[0] if flat else labels, counts]


def test_ctc_greedy_decoder(tmp_path):
    compare_all('CTCGreedyDecoder', ctc_greedy_decoder, tmp_path)


# ---------------------------------------------------------------- integers

def integers(rng, *shape):
    return rng.integers(0, 256, shape, np.uint8) if rng.random() < 0.5 else rng.integers(-128, 128, shape, np.int8)


def zero_point(rng, like, *shape):
    info = np.iinfo(like.dtype)
    return rng.integers(info.min, info.max + 1, shape).astype(like.dtype)


def conv_integer(rng):
    group, per_group, outputs = int(rng.integers(1, 4)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    kh, kw, sh, sw, dh, dw = (int(v) for v in rng.integers([1, 1, 1, 1, 1, 1], [4, 4, 3, 3, 3, 3]))
    top, bottom, left, right = (int(v) for v in rng.integers(0, 3, 4))
    x, w = integers(rng, group * per_group, int(rng.integers(6, 11)), int(rng.integers(6, 11))), integers(rng, group * outputs, per_group, kh, kw)
    xz, wz = zero_point(rng, x, 1), zero_point(rng, w, pick(rng, 1, group * outputs))
    wide = np.pad(x.astype(np.int64) - int(xz[0]), ((0, 0), (top, bottom), (left, right)))
    h, width = ((wide.shape[1] - dh * (kh - 1) - 1) // sh + 1), ((wide.shape[2] - dw * (kw - 1) - 1) // sw + 1)
    kernel = w.astype(np.int64) - wz.astype(np.int64).reshape(-1, 1, 1, 1)
    y = np.zeros((group * outputs, h, width), np.int64)
    for p, q, u, v in itertools.product(range(group * outputs), range(per_group), range(kh), range(kw)):
        part = wide[p // outputs * per_group + q, u * dh:u * dh + sh * h:sh, v * dw:v * dw + sw * width:sw][:h, :width]
        y[p] += kernel[p, q, u, v] * part
    dynamic, xz_in, wz_in = (int(v) for v in rng.integers(0, 2, 3))
    text = f'2={dw} 12={dh} 3={sw} 13={sh} 4={left} 15={right} 14={top} 16={bottom} 7={group} 19={dynamic} 20={xz_in} 21={wz_in}'
    text += '' if xz_in else f' 22={xz[0]}'
    text += '' if wz_in else ' ' + array(23, [int(v) for v in wz])
    text += '' if dynamic else f' 0={group * outputs} 1={kw} 11={kh} 6={w.size} 8={int(w.dtype == np.uint8)}'
    return text, [x] + [w] * dynamic + [xz] * xz_in + [wz] * wz_in, [] if dynamic else [('tagged', w.view(np.int8))], [y.astype(np.int32)]


def test_conv_integer(tmp_path):
    compare_all('ConvInteger', conv_integer, tmp_path)


def matmul_integer(rng):
    m, k, n = (int(v) for v in rng.integers(1, 9, 3))
    before = [int(v) for v in rng.integers(1, 4, rng.integers(0, 3))]
    a_shape, b_shape = before + [m, k], before[int(rng.integers(0, len(before) + 1)):] + [k, n]
    a_shape = [1 if i < len(before) and rng.random() < 0.2 else v for i, v in enumerate(a_shape)]
    if rng.random() < 0.15:
        a_shape = [k]
    if rng.random() < 0.15:
        b_shape = [k]
    a, b = integers(rng, *a_shape), integers(rng, *b_shape)
    inputs, text, zeros = [a, b], '', []
    for i, (x, rows) in enumerate(((a, -2), (b, -1))):
        size = x.shape[rows] if x.ndim > 1 else 1
        form = rng.integers(4) if x.ndim > 2 else rng.integers(3)
        if form == 0:
            zeros.append(np.zeros((), np.int64))
            continue
        if form == 3:  # a blob
            shape = list(x.shape)
            shape[-1 if i == 0 else -2] = 1
            z = zero_point(rng, x, *shape)
            zeros.append(z.astype(np.int64))
        else:
            z = zero_point(rng, x, pick(rng, 1, size))
            zeros.append(z.astype(np.int64).reshape(-1, 1) if i == 0 and x.ndim > 1 else z.astype(np.int64))
        if form == 1:
            text += ' ' + array(4 + i, [int(v) for v in z])
        else:
            text += f' {2 + i}=1'
            inputs.append(z)
    y = np.matmul(a.astype(np.int64) - zeros[0], b.astype(np.int64) - zeros[1])
    return text.strip(), inputs, [], [np.atleast_1d(y).astype(np.int32)]


def test_matmul_integer(tmp_path):
    compare_all('MatMulInteger', matmul_integer, tmp_path)


# ---------------------------------------------------------------- spatial pyramid

def spp(rng):
    kind, height = int(rng.integers(2)), int(rng.integers(1, 5))
    x = data(rng, *[int(v) for v in rng.integers(1, 12, 3)])
    out = []
    for level in range(height):
        bins = 2 ** level
        kernel = [-(-n // bins) for n in x.shape[1:]]
        pad = [(k * bins - n + 1) // 2 for k, n in zip(kernel, x.shape[1:])]
        wide = np.pad(x, ((0, 0), (pad[0], pad[0]), (pad[1], pad[1])))[:, :kernel[0] * bins, :kernel[1] * bins]
        cells = wide.reshape(x.shape[0], bins, kernel[0], bins, kernel[1])
        out.append((cells.max((2, 4)) if kind == 0 else cells.mean((2, 4))).ravel())
    return f'0={kind} 1={height}', [x], [], [np.concatenate(out)]


def test_spp(tmp_path):
    compare_all('SPP', spp, tmp_path)
