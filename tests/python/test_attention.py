"""Attention with caches and 8-bit weights, against closed forms in NumPy (where ncnn's x86 code has layouts and roundings of its own)."""
import numpy as np
import pytest

from engine import difference, run_engine
from layer_configs import data, pick
from layer_configs_attention import block_weight, sizes
from test_ncnn_layers import param_text, weight_bytes
from layer_configs import Config

CONFIGS = 50
LIMIT = 1e-5


def run(folder, op, config, *args):
    (folder / 'm.param').write_text(param_text(op, config))
    (folder / 'm.bin').write_bytes(weight_bytes(config))
    inputs = {f'in{i}': x for i, x in enumerate(config.inputs)}
    return list(run_engine(folder / 'm.param', folder / 'm.bin', inputs, [f'out{i}' for i in range(config.outputs)], *args).values())


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(q, k, v, mask, scale):
    """Heads first; in double precision."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    return softmax(q @ k.swapaxes(-1, -2) * scale + (0 if mask is None else mask)) @ v


def check(got, want, text):
    for i, (a, b) in enumerate(zip(got, want)):
        assert difference(a, b.astype(np.float32)) <= LIMIT, f'output {i} of {text}'


@pytest.mark.parametrize('form', ['fast', 'reference'])
def test_sdpa_with_cache(tmp_path, form):
    rng = np.random.default_rng(5)
    for seed in range(CONFIGS):
        src, cur, past, size, out_size = sizes(rng, 5, 40)
        groups, per_group = int(rng.integers(1, 4)), int(rng.integers(1, 4))
        if rng.random() < 0.5:
            src = cur = 1
        mask = data(rng, src, past + cur) if rng.random() < 0.5 else None
        q, k, v = data(rng, groups * per_group, src, size), data(rng, groups, cur, size), data(rng, groups, cur, out_size)
        past_k, past_v = data(rng, groups, past, size), data(rng, groups, past, out_size)
        scale = pick(rng, 0.0, 0.25)
        config = Config(f'5={int(mask is not None)} 6={scale} 7=1', [q, k, v] + ([] if mask is None else [mask]) + [past_k, past_v], outputs=3)
        keys, values = np.concatenate([past_k, k], 1), np.concatenate([past_v, v], 1)
        want = attention(q, keys.repeat(per_group, 0), values.repeat(per_group, 0), mask, scale or size ** -0.5)
        check(run(tmp_path, 'SDPA', config, *(['--reference'] if form == 'reference' else [])), [want, keys, values],
              f'configuration {seed}: {config.params} on {[x.shape for x in config.inputs]}')


@pytest.mark.parametrize('form', ['fast', 'reference'])
def test_multi_head_attention_with_cache(tmp_path, form):
    rng = np.random.default_rng(6)
    for seed in range(CONFIGS):
        heads, size = int(rng.integers(1, 5)), int(rng.integers(1, 20))
        embed, blobs = heads * size, int(rng.integers(1, 4))
        qdim, kdim, vdim = sizes(rng, 3)
        if blobs < 3:
            vdim = kdim = qdim if blobs == 1 else kdim
        src, cur, past = sizes(rng, 3, 24)
        src, cur = (1, 1) if rng.random() < 0.3 else (src, src if blobs == 1 else cur)
        dst = past + cur if blobs == 1 else past
        mask = data(rng, src, dst) if rng.random() < 0.5 else None
        x = [data(rng, src, qdim), data(rng, cur, kdim), data(rng, cur, vdim)][:blobs]
        past_k, past_v = data(rng, embed, past), data(rng, embed, past)
        shapes = [(embed, qdim), (embed, kdim), (embed, vdim), (qdim, embed)]
        w = [(data(rng, *s), data(rng, s[0])) for s in shapes]
        keys, values = past_k, past_v
        if blobs == 1:
            keys, values = (np.concatenate([old, (x[0] @ m.T + b).T], 1) for old, (m, b) in ((past_k, w[1]), (past_v, w[2])))
        config = Config(f'0={embed} 1={heads} 2={embed * qdim} 3={kdim} 4={vdim} 5={int(mask is not None)} 6=0.3 7=1',
                        x + ([] if mask is None else [mask]) + [past_k, past_v], [p for m, b in w for p in (('tagged', m), ('raw', b))], outputs=3)
        split = [y.reshape(heads, size, -1).swapaxes(1, 2) for y in ((x[0] @ w[0][0].T + w[0][1]).T, keys, values)]
        joined = attention(*split, mask, 0.3).swapaxes(0, 1).reshape(src, embed)
        check(run(tmp_path, 'MultiHeadAttention', config, *(['--reference'] if form == 'reference' else [])),
              [joined @ w[3][0].T + w[3][1], keys, values], f'configuration {seed}: {config.params} on {[x.shape for x in config.inputs]}')


def test_gemm_with_blocks_of_eight_bits(tmp_path):
    rng = np.random.default_rng(7)
    for seed in range(CONFIGS):
        m, n, k = sizes(rng, 3, 150)
        scaled, code = int(rng.integers(2)), int(rng.integers(3))
        packed, scales = block_weight(rng, n, k, 8, 32 << code)
        x, factors = data(rng, m, k), data(rng, k, low=0.5, high=2)
        weights = [('bytes', packed), ('raw', scales)] + ([('raw', factors)] if scaled else [])
        config = Config(f'3=1 5=1 6=1 8={n} 9={k} 10=-1 18={800 + 10 * scaled + code}', [x], weights)
        w = packed.reshape(n, k) / scales.repeat(32 << code, 1)[:, :k].astype(np.float64) * (factors if scaled else 1)
        check(run(tmp_path, 'Gemm', config), [x @ w.T], f'configuration {seed}: {config.params}')


# A decoder layer: queries, keys and values from Gemms, two heads of queries a group of keys.
DECODER = '''7767517
17 22
Input x 0 1 x
Input mask 0 1 mask
Input cache 0 2 past_k past_v
Split xs 1 3 x x0 x1 x2
Gemm q 1 1 x0 q 3=1 5=1 6=1 8=32 9=24 10=-1
Gemm k 1 1 x1 k 3=1 5=1 6=1 8=16 9=24 10=-1
Gemm v 1 1 x2 v 3=1 5=1 6=1 8=16 9=24 10=-1
Reshape q1 1 1 q q1 0=8 1=4 2=-1
Reshape k1 1 1 k k1 0=8 1=2 2=-1
Reshape v1 1 1 v v1 0=8 1=2 2=-1
Permute q2 1 1 q1 q2 0=2
Permute k2 1 1 k1 k2 0=2
Permute v2 1 1 v1 v2 0=2
SDPA a 6 3 q2 k2 v2 mask past_k past_v a out_k out_v 5=1 7=1
Permute a1 1 1 a a1 0=2
Reshape a2 1 1 a1 a2 0=32 1=-1
Gemm o 1 1 a2 out 3=1 5=1 6=1 8=24 9=32 10=-1
'''
SELF = '''7767517
4 7
Input x 0 1 x
Input mask 0 1 mask
Input cache 0 2 past_k past_v
MultiHeadAttention a 4 3 x mask past_k past_v out out_k out_v 0=24 1=3 2=576 5=1 7=1
'''


def causal(rows, columns):
    """Row i of the last `rows` positions sees the columns up to its own."""
    return np.where(np.arange(columns) <= np.arange(columns - rows, columns)[:, None], 0, -1e38).astype(np.float32)


@pytest.mark.parametrize('graph, shapes', [
    (DECODER, [(True, 32 * 24), (True, 16 * 24), (True, 16 * 24), (True, 24 * 32)]),
    (SELF, [(True, 24 * 24), (False, 24)] * 4)], ids=['sdpa', 'multi_head_attention'])
@pytest.mark.parametrize('args', [[], ['--reference'], ['--threads', '2']], ids=['fast', 'reference', 'threads'])
def test_steps_with_cache_give_what_one_run_gives(tmp_path, graph, shapes, args):
    rng = np.random.default_rng(8)
    (tmp_path / 'm.param').write_text(graph)
    (tmp_path / 'm.bin').write_bytes(b''.join((b'\0\0\0\0' if tagged else b'') + data(rng, n).tobytes() for tagged, n in shapes))
    model = tmp_path / 'm.param', tmp_path / 'm.bin'
    x = data(rng, 13, 24)
    whole = run_engine(*model, {'x': x, 'mask': causal(13, 13)}, ['out', 'out_k', 'out_v'], *args)
    rows, cache, at = [], {}, 0
    for step in (6, 1, 1, 4, 1):  # the first one has no cache
        inputs = {'x': x[at:at + step], 'mask': causal(step, at + step), **cache}
        got = run_engine(*model, inputs, ['out', 'out_k', 'out_v'], *args)
        rows.append(got['out'])
        cache, at = {'past_k': got['out_k'], 'past_v': got['out_v']}, at + step
    assert difference(np.concatenate(rows), whole['out']) <= LIMIT
    assert difference(cache['past_k'], whole['out_k']) <= LIMIT and difference(cache['past_v'], whole['out_v']) <= LIMIT
