"""com.microsoft's operators of language models' decoders against closed forms, and against ONNX Runtime where it is installed."""
import numpy as np
import pytest

from test_contrib import attend, check, heads, rand

RNG = np.random.default_rng(11)
ATTENTION = ['q', 'k', 'v', 'mask', 'scores', 'past_k', 'past_v', 'length', '', '', 'bias']


@pytest.mark.parametrize('length', [0, 3])
@pytest.mark.parametrize('masked, biased', [(False, True), (True, False)])
def test_decoder_masked_attention(length, masked, biased, tmp_path):
    q, k, v = rand(2, 1, 32), rand(2, 1, 32), rand(2, 1, 32)
    past = {'k': rand(2, 4, 6, 8), 'v': rand(2, 4, 6, 8)}
    bias = rand(96) if biased else None
    mask = np.ones((2, length + 1), np.int32) if masked else None
    if masked:
        mask[1, :length // 2] = 0
    rows = {n: x + (bias[32 * i:32 * i + 32] if biased else 0) for i, (n, x) in enumerate((('q', q), ('k', k), ('v', v)))}
    present = {n: p.copy() for n, p in past.items()}
    for n in present:
        present[n][:, :, length] = heads(rows[n], 4)[:, :, 0]
    want = attend(heads(rows['q'], 4), present['k'][:, :, :length + 1], present['v'][:, :, :length + 1],
                  0 if mask is None else np.where(mask[:, None, None], 0, np.float32(-10000)))
    inputs = {'q': q, 'k': k, 'v': v, 'mask': mask, 'past_k': past['k'], 'past_v': past['v'], 'length': np.array([length], np.int32)}
    check(tmp_path, 'DecoderMaskedMultiHeadAttention', inputs, {'bias': bias},
          {'num_heads': 4, 'past_present_share_buffer': 1, 'order': ATTENTION}, [want, present['k'], present['v']])


def test_decoder_cross_attention(tmp_path):
    q, k, v, bias = rand(2, 1, 32), rand(2, 4, 6, 8), rand(2, 4, 6, 8), rand(96)
    check(tmp_path, 'DecoderMaskedMultiHeadAttention', {'q': q, 'k': k, 'v': v}, {'bias': bias},
          {'num_heads': 4, 'order': ATTENTION}, [attend(heads(q + bias[:32], 4), k, v)])


@pytest.mark.parametrize('layout, streams', [(0, [0, 0, 0, 0, 1, 1, 2, 2]), (1, [0, 1, 2, 0, 1, 2, 0, 0])])
@pytest.mark.parametrize('flat', [False, True])
def test_multimodal_rotary_embedding(layout, streams, flat, tmp_path):
    x, cos, sin = rand(2, 4, 3, 16), rand(20, 8), rand(20, 8)
    positions = RNG.integers(0, 20, (3, 2, 3))
    c, s = (np.stack([cache[positions[stream], i] for i, stream in enumerate(streams)], -1)[:, None] for cache in (cos, sin))
    a, b = x[..., :8], x[..., 8:]
    want = np.concatenate([a * c - b * s, a * s + b * c], -1)
    joined = lambda y: np.ascontiguousarray(y.transpose(0, 2, 1, 3).reshape(2, 3, 64)) if flat else y
    check(tmp_path, 'MRotaryEmbedding', {'x': joined(x), 'positions': positions}, {'cos': cos, 'sin': sin},
          {'mrope_section': [4, 2, 2], 'mrope_layout': layout, **({'num_heads': 4, 'rotary_embedding_dim': 16} if flat else {})},
          [joined(want)])
