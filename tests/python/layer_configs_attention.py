"""The transformer operators: matrix products, attention, embeddings, RMSNorm, Einsum."""
import string

import numpy as np

from layer_configs import Config, array, data, pick


def sizes(rng, count, most=40):
    return [int(v) for v in rng.integers(1, most, count)]


def int8_weight(rng, count):
    return 'int8', rng.integers(-127, 128, count).astype(np.int8)


def gemm_c(rng, m, n):
    """Shape and broadcast type of C."""
    kind = int(rng.integers(0, 5))
    return kind, [(1,), (m,), (m, 1), (m, n), (1, n)][kind]


def gemm(rng):
    m, n, k = sizes(rng, 3, 70)
    if rng.random() < 0.2:
        m = 1
    trans_a, trans_b, const_a, const_b, const_c, n1m, trans_out = (int(v) for v in rng.integers(0, 2, 7))
    if rng.random() < 0.5:
        const_a, const_b = 0, 1
    with_c, int8 = rng.random() < 0.7, rng.random() < 0.25
    inputs, weights = [], []
    a, b = data(rng, *((k, m) if trans_a else (m, k))), data(rng, *((n, k) if trans_b else (k, n)))
    quantised = int8 and rng.random() < 0.7
    for x, const in ((a, const_a), (b, const_b)):
        if const and quantised:
            weights.append(int8_weight(rng, x.size))
        elif const:
            weights.append(('tagged', x))
        else:
            inputs.append(x[:, None, :] if rng.random() < 0.2 and not quantised else x)
    if int8 and not quantised and (const_a or const_b):
        int8 = False
    kind, shape = gemm_c(rng, m, n)
    if not with_c:
        kind = -1
    elif const_c:
        weights.append(('tagged', data(rng, *shape)))
    else:
        inputs.append(data(rng, *shape))
    if not with_c:
        const_c = 1
    if int8:
        if const_a:
            weights.append(('raw', data(rng, m, low=60, high=127)))
        if const_b:
            weights.append(('raw', data(rng, 1, low=60, high=127)))
    text = f'0={pick(rng, 1.0, 0.5, 2.1)} 1={pick(rng, 1.0, -0.7)} 2={trans_a} 3={trans_b} 4={const_a} 5={const_b} 6={const_c}'
    text += f' 7={m} 8={n} 9={k} 10={kind} 11={n1m} 14={trans_out}' + (' 18=2' if int8 else '')
    return Config(text, inputs, weights)


def block_weight(rng, rows, count, bits, block):
    """A matrix of small integers packed to `bits` a value, and its scales."""
    values = rng.integers(-(1 << (bits - 1)), 1 << (bits - 1), (rows, count))
    stream = ((values[:, :, None] >> np.arange(bits)) & 1).reshape(rows, -1).astype(np.uint8)
    packed = np.packbits(stream, axis=1, bitorder='little')
    return packed.view(np.int8), data(rng, rows, -(-count // block), low=5, high=20)


def block_term(rng):
    """Of 4 or 6 bits: with 8 ncnn's x86 code rounds the inputs, too."""
    bits, scaled, code = pick(rng, 4, 6), int(rng.integers(2)), int(rng.integers(3))
    return bits * 100 + scaled * 10 + code, bits, scaled, 32 << code


def gemm_blocks(rng):
    m, n, k = sizes(rng, 3, 160)
    term, bits, scaled, block = block_term(rng)
    packed, scales = block_weight(rng, n, k, bits, block)
    weights, inputs = [('bytes', packed)], [data(rng, m, k)]
    kind, shape = gemm_c(rng, m, n)
    const_c = int(rng.integers(2))
    if const_c:
        weights.append(('tagged', data(rng, *shape)))
    else:
        inputs.append(data(rng, *shape))
    weights.append(('raw', scales))
    if scaled:
        weights.append(('raw', data(rng, k, low=0.5, high=2)))
    return Config(f'0={pick(rng, 1.0, 0.5)} 1={pick(rng, 1.0, -0.7)} 3=1 5=1 6={const_c} 7={m} 8={n} 9={k} 10={kind} 18={term}',
                  inputs, weights)


def gemm_any(rng):
    return gemm_blocks(rng) if rng.random() < 0.2 else gemm(rng)


def matmul(rng):
    m, n, k = sizes(rng, 3)
    trans_b = int(rng.integers(2))
    c, d = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    dims_a, dims_b = int(rng.integers(1, 5)), int(rng.integers(1, 5))
    b_matrix = (n, k) if trans_b else (k, n)

    def outer(dims):
        full = {2: (), 3: (c,), 4: (c, d)}[dims] if max(dims_a, dims_b) < 4 else {2: (), 3: (d,), 4: (c, d)}[dims]
        return tuple(1 if rng.random() < 0.15 else v for v in full)

    if max(dims_a, dims_b) == 4 and 3 in (dims_a, dims_b):  # ncnn lines a 3-D operand's axis up with d
        dims_a = dims_b = 4
    a = data(rng, k) if dims_a == 1 else data(rng, *outer(dims_a), m, k)
    b = data(rng, k) if dims_b == 1 else data(rng, *outer(dims_b), *b_matrix)
    return Config(f'0={trans_b}', [a, b])


def sdpa(rng):
    """Without cache: that of ncnn's x86 code has a layout of its own."""
    src, dst, size, out_size = sizes(rng, 4, 30)
    groups, per_group = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    heads = groups * per_group
    mask, int8 = int(rng.integers(2)), rng.random() < 0.25
    if rng.random() < 0.3:
        src = 1
    inputs = [data(rng, heads, src, size), data(rng, groups, dst, size), data(rng, groups, dst, out_size)]
    if mask:
        inputs.append(data(rng, *(pick(rng, (), (heads,), (1,))), src, dst))
    return Config(f'5={mask} 6={pick(rng, 0.0, 0.3, -0.4)}' + (' 18=2' if int8 else ''), inputs)


def mha_weights(rng, shapes, kind):
    """Weights of the four projections [out, in] in file order; kind: 0, int8 term 2, or a block term."""
    first, scales, more = [], [], []
    for i, (rows, count) in enumerate(shapes):
        if kind >= 400:
            block = 32 << kind % 10
            packed, scale = block_weight(rng, rows, count, kind // 100, block)
            first.append(('bytes', packed))
            scales.append(('raw', scale))
            if kind % 100 // 10:
                more.append(('raw', data(rng, count, low=0.5, high=2)))
        elif kind:
            first.append(int8_weight(rng, rows * count))
            scales.append(('raw', data(rng, rows if i < 3 else 1, low=100, high=200)))
        else:
            first.append(('tagged', data(rng, rows, count)))
        first.append(('raw', data(rng, rows)))
    return first + scales + more


def multi_head_attention(rng):
    """Without cache, as sdpa."""
    heads = int(rng.integers(1, 5))
    embed = heads * int(rng.integers(1, 13))
    blobs = int(rng.integers(1, 4))
    qdim, kdim, vdim = sizes(rng, 3)
    if blobs == 1:
        kdim = vdim = qdim
    if blobs == 2:
        vdim = kdim
    src, dst = sizes(rng, 2, 24)
    mask = int(rng.integers(2))
    if blobs == 1:
        dst = src
    kind = pick(rng, 0, 0, 0, 2, block_term(rng)[0])
    inputs = [data(rng, src, qdim), data(rng, dst, kdim), data(rng, dst, vdim)][:blobs]
    if mask:
        inputs.append(data(rng, *(pick(rng, (), (heads,))), src, dst))
    weights = mha_weights(rng, [(embed, qdim), (embed, kdim), (embed, vdim), (qdim, embed)], kind)
    text = f'0={embed} 1={heads} 2={embed * qdim} 3={kdim} 4={vdim} 5={mask}'
    text += f' 6={pick(rng, 0.3, 1.0)}' if rng.random() < 0.5 else ''
    return Config(text + (f' 18={kind}' if kind else ''), inputs, weights)


def rotary_embed(rng):
    heads, positions, half = sizes(rng, 3, 24)
    width, interleaved = half, int(rng.integers(2))
    if not interleaved and rng.random() < 0.4:
        width = 2 * half
    return Config(f'0={interleaved}', [data(rng, heads, positions, 2 * half), data(rng, positions, width), data(rng, positions, width)])


def rms_norm(rng):
    dims = int(rng.integers(1, 4))
    x = data(rng, *sizes(rng, dims, 30))
    size = x.shape[-1] * (x.shape[-2] if dims == 3 and rng.random() < 0.4 else 1)
    affine = int(rng.integers(2))
    return Config(f'0={size} 1={pick(rng, 0.001, 1e-6)} 2={affine}', [x], [('raw', data(rng, size))] if affine else [])


def embed(rng):
    words, size, count = sizes(rng, 3, 50)
    bias, int8 = int(rng.integers(2)), rng.random() < 0.4
    indexes = rng.integers(-2, words + 2, count).astype(np.int32)
    weights = [int8_weight(rng, words * size) if int8 else ('tagged', data(rng, words * size))]
    weights += [('raw', data(rng, size))] if bias else []
    weights += [('raw', data(rng, 1, low=50, high=100))] if int8 else []
    return Config(f'0={size} 1={words} 2={bias} 3={words * size}' + (' 18=2' if int8 else ''), [indexes], weights)


def einsum(rng):
    letters = string.ascii_lowercase[8:8 + int(rng.integers(2, 7))]
    size = {c: int(rng.integers(1, 7)) for c in letters}
    count = int(rng.integers(1, 4))
    inputs = [''.join(rng.permutation(list(letters))[:int(rng.integers(1, min(4, len(letters)) + 1))]) for _ in range(count)]
    used = sorted(set(''.join(inputs)))
    output = ''.join(used[:int(rng.integers(1, min(4, len(used)) + 1))])
    text = ','.join(inputs) + '->' + output
    return Config(array(0, [ord(c) for c in text]), [data(rng, *(size[c] for c in i)) for i in inputs])


GENERATORS = {
    'Gemm': gemm_any, 'MatMul': matmul, 'SDPA': sdpa, 'MultiHeadAttention': multi_head_attention, 'RotaryEmbed': rotary_embed,
    'RMSNorm': rms_norm, 'Embed': embed, 'Einsum': einsum,
}
