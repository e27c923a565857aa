"""com.microsoft's operators against closed forms, and against ONNX Runtime where it is installed."""
import math

import numpy as np
import pytest

onnx = pytest.importorskip('onnx')
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from exact_session import needs_exact_sums  # noqa: E402
from onnx_run import Failure, convert, run  # noqa: E402

RNG = np.random.default_rng(7)


def rand(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def norm(x, scale, bias=0., eps=1e-5, simple=False):
    centred = x if simple else x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred ** 2).mean(-1, keepdims=True) + eps) * scale + bias


def heads(x, n):
    return x.reshape(*x.shape[:2], n, -1).transpose(0, 2, 1, 3)


def attend(q, k, v, mask=0., scale=None):
    scores = q @ k.transpose(0, 1, 3, 2) * (scale or 1 / math.sqrt(q.shape[-1])) + mask
    out = softmax(scores) @ v
    return out.transpose(0, 2, 1, 3).reshape(out.shape[0], out.shape[2], -1)


def causal(queries, keys):
    return np.where(np.arange(keys) <= np.arange(queries)[:, None] + keys - queries, 0, -1e9).astype(np.float32)


def check(tmp_path, op, inputs, constants, attributes, wants, tolerance=1e-4, layer=None, peer=True):
    """inputs, constants: by name, in the order of the operator's inputs; None: absent. wants: one array an output.
    layer: a type that the net has to have. peer: whether ONNX Runtime has it on the CPU."""
    names = [n if a is not None else '' for n, a in {**inputs, **constants}.items()]
    order = attributes.pop('order', None)
    names = [n if ({**inputs, **constants}).get(n) is not None else '' for n in order] if order else names
    outputs = [f'y{i}' if w is not None else '' for i, w in enumerate(wants)]
    node = helper.make_node(op, names, outputs, domain='com.microsoft', **attributes)
    kind = lambda a: helper.np_dtype_to_tensor_dtype(a.dtype)
    graph = helper.make_graph(
        [node], 'g', [helper.make_tensor_value_info(n, kind(a), a.shape) for n, a in inputs.items() if a is not None],
        [helper.make_tensor_value_info(f'y{i}', kind(w), w.shape) for i, w in enumerate(wants) if w is not None],
        [numpy_helper.from_array(a, n) for n, a in constants.items() if a is not None])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17),
                                                    helper.make_opsetid('com.microsoft', 1)], ir_version=8)
    path = tmp_path / 'model.onnx'
    onnx.save(model, path)
    feeds = {n: a for n, a in inputs.items() if a is not None}
    net = convert(path, tmp_path)
    assert layer is None or any(line.startswith(f'{layer} ') for line in net[0].read_text().splitlines())
    have = run(net, feeds, [o for o in outputs if o], tmp_path)
    expected = {o: w for o, w in zip(outputs, wants) if o}
    results = [('closed form', expected)]
    try:
        if peer:
            import onnxruntime
            session = onnxruntime.InferenceSession(model.SerializeToString(), providers=['CPUExecutionProvider'])
            results.append(('ONNX Runtime', dict(zip(expected, session.run(list(expected), feeds)))))
    except ImportError:
        pass
    for oracle, values in results:
        for name, want in values.items():
            assert have[name].shape == want.shape and have[name].dtype == want.dtype, f'{name} ({oracle})'
            a, b = have[name].astype(np.float64), want.astype(np.float64)
            limit = 1 if want.dtype.kind in 'iu' else tolerance * max(1., np.abs(b).max())
            assert np.abs(a - b).max() <= limit, f'{name} ({oracle}): off by {np.abs(a - b).max():.2e}'


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


@pytest.mark.parametrize('bias', [False, True])
def test_fast_gelu(bias, tmp_path):
    x, b = rand(2, 3, 8), rand(8) if bias else None
    check(tmp_path, 'FastGelu', {'x': x}, {'b': b} if bias else {}, {}, [gelu_tanh(x + (b if bias else 0))])


def test_bias_gelu(tmp_path):
    x, b = rand(2, 3, 8), rand(8)
    erf = np.vectorize(math.erf)
    want = (0.5 * (x + b) * (1 + erf((x + b) / math.sqrt(2)))).astype(np.float32)
    check(tmp_path, 'BiasGelu', {'x': x}, {'b': b}, {}, [want])


def test_quick_gelu(tmp_path):
    x = rand(2, 3, 8)
    check(tmp_path, 'QuickGelu', {'x': x}, {}, {'alpha': 1.702}, [x * sigmoid(1.702 * x)])


@pytest.mark.parametrize('flags', [{}, {'transA': 1}, {'transB': 1}, {'transA': 1, 'transB': 1}, {'transBatchA': 1},
                                   {'transBatchB': 1, 'transB': 1}])
def test_fused_matmul(flags, tmp_path):
    a, b = rand(3, 4, 5), rand(3, 5, 6)

    def stored(x, swapped, batch):
        # The flags say how the operand is to be read: this is the other way.
        x = x.transpose(0, 2, 1) if swapped else x
        return np.ascontiguousarray(x.transpose(1, 0, 2) if batch else x)
    ta, tb = flags.get('transA', 0), flags.get('transB', 0)
    inputs = {'a': stored(a, ta, flags.get('transBatchA', 0)), 'b': stored(b, tb, flags.get('transBatchB', 0))}
    check(tmp_path, 'FusedMatMul', inputs, {}, {'alpha': 0.5, **flags}, [(0.5 * a @ b).astype(np.float32)])


@pytest.mark.parametrize('metric', ['euclidean', 'sqeuclidean'])
def test_cdist(metric, tmp_path):
    a, b = rand(5, 3), rand(7, 3)
    want = ((a[:, None] - b) ** 2).sum(-1)
    check(tmp_path, 'CDist', {'a': a, 'b': b}, {}, {'metric': metric}, [np.sqrt(want) if metric == 'euclidean' else want])


@pytest.mark.parametrize('upper', [0, 1])
def test_trilu(upper, tmp_path):
    x = rand(2, 4, 5)
    check(tmp_path, 'Trilu', {'x': x}, {'k': np.int64(1)}, {'upper': upper}, [(np.triu if upper else np.tril)(x, 1)])


@pytest.mark.parametrize('activation', ['Relu', 'LeakyRelu', 'Sigmoid', 'Clip', 'HardSigmoid'])
def test_fused_conv(activation, tmp_path):
    x, w, b = rand(1, 4, 5, 5), rand(6, 4, 1, 1), rand(6)
    y = np.einsum('nchw,oc->nohw', x, w[:, :, 0, 0]) + b[:, None, None]
    params = {'LeakyRelu': [0.1], 'Clip': [-0.5, 0.5], 'HardSigmoid': [0.3, 0.4]}.get(activation)
    want = {'Relu': np.maximum(y, 0), 'LeakyRelu': np.where(y < 0, 0.1 * y, y), 'Sigmoid': sigmoid(y),
            'Clip': np.clip(y, -0.5, 0.5), 'HardSigmoid': np.clip(0.3 * y + 0.4, 0, 1)}[activation]
    attributes = {'activation': activation, **({'activation_params': params} if params else {})}
    check(tmp_path, 'FusedConv', {'x': x}, {'w': w, 'b': b}, attributes, [want.astype(np.float32)])


@pytest.mark.parametrize('activation', ['Selu', 'HardSigmoid', 'LeakyRelu'])
def test_fused_gemm(activation, tmp_path):
    x, w, b = rand(3, 4), rand(4, 5), rand(5)
    y = x @ w + b
    want, values = {'Selu': (.7 * np.where(y > 0, y, 1.3 * np.expm1(y)), {'alpha': 1.3, 'gamma': .7}),
                    'HardSigmoid': (np.clip(.2 * y + .4, 0, 1), {'alpha': .2, 'beta': .4}),
                    'LeakyRelu': (np.where(y < 0, .1 * y, y), {'alpha': .1})}[activation]
    attributes = {'activation': activation, **{f'activation_{name}': value for name, value in values.items()}}
    check(tmp_path, 'FusedGemm', {'x': x}, {'w': w, 'b': b}, attributes, [want.astype(np.float32)])


@pytest.mark.parametrize('simple', [False, True])
def test_skip_norm(simple, tmp_path):
    x, skip, scale, beta, bias = rand(2, 3, 8), rand(2, 3, 8), rand(8), rand(8), rand(8)
    total = x + skip + bias
    constants = {'scale': scale, 'beta': None if simple else beta, 'bias': bias}
    order = ['x', 'skip', 'scale', 'bias'] if simple else ['x', 'skip', 'scale', 'beta', 'bias']
    check(tmp_path, 'SkipSimplifiedLayerNormalization' if simple else 'SkipLayerNormalization',
          {'x': x, 'skip': skip}, constants, {'order': order, 'epsilon': 1e-5},
          [norm(total, scale, 0 if simple else beta, simple=simple), None, None, total])


def test_embed_layer_norm(tmp_path):
    ids, segments = RNG.integers(0, 11, (2, 5)).astype(np.int32), RNG.integers(0, 2, (2, 5)).astype(np.int32)
    word, position, segment, gamma, beta = rand(11, 8), rand(6, 8), rand(2, 8), rand(8), rand(8)
    mask = np.int32([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
    want = norm(word[ids] + position[:5] + segment[segments], gamma, beta, 1e-12)
    check(tmp_path, 'EmbedLayerNormalization', {'ids': ids, 'segments': segments, 'mask': mask},
          {'word': word, 'position': position, 'segment': segment, 'gamma': gamma, 'beta': beta},
          {'order': ['ids', 'segments', 'word', 'position', 'segment', 'gamma', 'beta', 'mask'], 'epsilon': 1e-12},
          [want, np.int32([3, 5])])


def test_embed_layer_norm_without_segments(tmp_path):
    ids, word, position, gamma, beta = RNG.integers(0, 11, (2, 5)).astype(np.int32), rand(11, 8), rand(6, 8), rand(8), rand(8)
    check(tmp_path, 'EmbedLayerNormalization', {'ids': ids}, {'word': word, 'position': position, 'gamma': gamma, 'beta': beta},
          {'order': ['ids', '', 'word', 'position', '', 'gamma', 'beta'], 'epsilon': 1e-12},
          [norm(word[ids] + position[:5], gamma, beta, 1e-12), np.int32([0, 0])])


def test_embed_layer_norm_of_an_open_batch_without_mask(tmp_path):
    """ONNX Runtime's tools always name a mask index."""
    constants = {'word': rand(11, 8), 'position': rand(6, 8), 'gamma': rand(8), 'beta': rand(8)}
    node = helper.make_node('EmbedLayerNormalization', ['ids', '', 'word', 'position', '', 'gamma', 'beta'], ['y', 'mask_index'],
                            domain='com.microsoft', epsilon=1e-12)
    graph = helper.make_graph([node], 'g', [helper.make_tensor_value_info('ids', 6, ['items', 'length'])],
                              [helper.make_tensor_value_info('y', 1, [None] * 3), helper.make_tensor_value_info('mask_index', 6, [None])],
                              [numpy_helper.from_array(a, n) for n, a in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17), helper.make_opsetid('com.microsoft', 1)], ir_version=8),
              tmp_path / 'm.onnx')
    ids = RNG.integers(0, 11, (3, 5)).astype(np.int32)
    have = run(convert(tmp_path / 'm.onnx', tmp_path), {'ids': ids}, ['y', 'mask_index'], tmp_path)
    np.testing.assert_allclose(have['y'], norm(constants['word'][ids] + constants['position'][:5], constants['gamma'], constants['beta'], 1e-12),
                               1e-4, 1e-4)
    np.testing.assert_array_equal(have['mask_index'], np.zeros(3))


@pytest.mark.parametrize('mask', ['none', 'rows', 'causal'])
def test_attention(mask, tmp_path):
    x, w, b = rand(2, 5, 8), rand(8, 24), rand(24)
    q, k, v = (heads(p, 2) for p in np.split(x @ w + b, 3, -1))
    rows = np.int32([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]])
    bias = {'none': 0., 'rows': np.where(rows, 0, -1e9)[:, None, None], 'causal': causal(5, 5)}[mask]
    inputs = {'x': x, **({'mask': rows} if mask == 'rows' else {})}
    check(tmp_path, 'Attention', inputs, {'w': w, 'b': b},
          {'order': ['x', 'w', 'b', 'mask'], 'num_heads': 2, 'unidirectional': int(mask == 'causal')},
          [attend(q, k, v, bias).astype(np.float32)], layer='SDPA')


def test_attention_of_causal_rows_that_are_padded_in_front(tmp_path):
    """Such a row sees the padding before it, none of what comes later."""
    x, w, b = rand(2, 5, 8), rand(8, 24), rand(24)
    q, k, v = (heads(p, 2) for p in np.split(x @ w + b, 3, -1))
    rows = np.int32([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]])
    bias = np.where(rows, 0, -1e4)[:, None, None] + causal(5, 5)
    check(tmp_path, 'Attention', {'x': x, 'mask': rows}, {'w': w, 'b': b},
          {'order': ['x', 'w', 'b', 'mask'], 'num_heads': 2, 'unidirectional': 1},
          [attend(q, k, v, bias).astype(np.float32)], tolerance=2e-3, layer='SDPA')


@pytest.mark.parametrize('past', [False, True])
def test_multi_head_attention(past, tmp_path):
    q, k, v, bias = rand(2, 3, 8), rand(2, 5, 8), rand(2, 5, 8), rand(24)
    extra = rand(1, 2, 3, 7 if past else 5)
    old_k, old_v = (rand(2, 2, 2, 4), rand(2, 2, 2, 4)) if past else (None, None)
    parts = [heads(x + b, 2) for x, b in zip((q, k, v), np.split(bias, 3))]
    if past:
        parts[1], parts[2] = (np.concatenate([o, n], 2) for o, n in zip((old_k, old_v), parts[1:]))
    wants = [attend(*parts, extra)] + ([parts[1], parts[2]] if past else [])
    check(tmp_path, 'MultiHeadAttention', {'q': q, 'k': k, 'v': v, 'extra': extra, 'old_k': old_k, 'old_v': old_v},
          {'bias': bias}, {'order': ['q', 'k', 'v', 'bias', 'padding', 'extra', 'old_k', 'old_v'], 'num_heads': 2}, wants,
          layer='SDPA')


@pytest.mark.parametrize('packed', [2, 3])
def test_multi_head_attention_of_packed_values(packed, tmp_path):
    """As graphs for GPUs have them; ONNX Runtime's kernel for CPUs refuses them."""
    q, all_of_it = rand(2, 5, 8), rand(2, 5, 2, packed, 4)
    parts = [all_of_it[:, :, :, i].transpose(0, 2, 1, 3) for i in range(packed)]
    parts = parts if packed == 3 else [heads(q, 2), *parts]
    inputs = {'packed': all_of_it} if packed == 3 else {'q': q, 'packed': all_of_it}
    check(tmp_path, 'MultiHeadAttention', inputs, {}, {'num_heads': 2}, [attend(*parts)], layer='SDPA', peer=False)


@pytest.mark.parametrize('queries, keys', [(1, 4), (3, 5), (3, 3), (5, 3)])
def test_causal_multi_head_attention_of_other_keys(queries, keys, tmp_path):
    """The last query sees all, as in ONNX Runtime."""
    q, k, v = rand(2, queries, 8), rand(2, keys, 8), rand(2, keys, 8)
    seen = np.arange(keys) <= np.arange(queries)[:, None]
    seen[-1] = True
    want = attend(*(heads(x, 2) for x in (q, k, v)), np.where(seen, 0, np.float32(-1e9)).astype(np.float32))
    check(tmp_path, 'MultiHeadAttention', {'q': q, 'k': k, 'v': v}, {}, {'num_heads': 2, 'unidirectional': 1}, [want])


def rotated(x, cos, sin, interleaved=False):
    """x: batch, heads, length, size; cos and sin: length, size / 2."""
    a, b = (x[..., 0::2], x[..., 1::2]) if interleaved else np.split(x, 2, -1)
    real, imaginary = a * cos - b * sin, a * sin + b * cos
    if interleaved:
        return np.stack([real, imaginary], -1).reshape(x.shape)
    return np.concatenate([real, imaginary], -1)


@pytest.mark.parametrize('interleaved', [0, 1])
def test_rotary_embedding(interleaved, tmp_path):
    x, angles = rand(2, 2, 5, 6), rand(9, 3)
    cos, sin = np.cos(angles), np.sin(angles)
    positions = RNG.integers(0, 9, (2, 5)).astype(np.int64)
    want = rotated(x, cos[positions][:, None], sin[positions][:, None], interleaved)
    check(tmp_path, 'RotaryEmbedding', {'x': x, 'positions': positions}, {'cos': cos, 'sin': sin},
          {'interleaved': interleaved}, [want])


@pytest.mark.parametrize('columns, attributes, words', [
    (0, {}, 'num_heads'), (2, {'num_heads': 2, 'rotary_embedding_dim': 3}, '3 values of heads of 4 are turned'),
    (2, {'num_heads': 2, 'rotary_embedding_dim': 6}, '6 values of heads of 4 are turned')])
def test_rotary_embedding_of_sizes_that_do_not_fit(columns, attributes, words, tmp_path):
    x, cache = rand(2, 3, 8), rand(5, columns)
    with pytest.raises(Failure, match=words):
        check(tmp_path, 'RotaryEmbedding', {'x': x, 'positions': np.zeros((2, 3), np.int64)}, {'cos': cache, 'sin': cache}, attributes, [x])


@pytest.mark.parametrize('past', [0, 3])
def test_group_query_attention(past, tmp_path):
    steps = 1 if past else 4
    q, k, v = rand(1, steps, 64), rand(1, steps, 32), rand(1, steps, 32)
    old_k, old_v = (rand(1, 2, past, 16), rand(1, 2, past, 16)) if past else (None, None)
    angles = rand(16, 8)
    cos, sin = np.cos(angles), np.sin(angles)
    at = slice(past, past + steps)
    rq, rk, hv = rotated(heads(q, 4), cos[at], sin[at]), rotated(heads(k, 2), cos[at], sin[at]), heads(v, 2)
    if past:
        rk, hv = np.concatenate([old_k, rk], 2), np.concatenate([old_v, hv], 2)
    total = past + steps
    want = attend(rq, rk.repeat(2, 1), hv.repeat(2, 1), causal(steps, total))
    names = ['q', 'k', 'v', 'old_k', 'old_v', 'lengths', 'total', 'cos', 'sin']
    check(tmp_path, 'GroupQueryAttention', {'q': q, 'k': k, 'v': v, 'old_k': old_k, 'old_v': old_v},
          {'lengths': np.int32([total - 1]), 'total': np.int32(total), 'cos': cos, 'sin': sin},
          {'order': names, 'num_heads': 4, 'kv_num_heads': 2, 'do_rotary': 1}, [want, rk, hv], layer='SDPA')


def with_sink(q, k, v, bias, sink):
    """sink: a score a head beside the others of each row, whose weight is dropped."""
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]) + bias
    all_scores = np.concatenate([scores, np.broadcast_to(sink.reshape(1, -1, 1, 1), (*scores.shape[:3], 1))], -1)
    weights = np.exp(all_scores - all_scores.max(-1, keepdims=True))
    return np.swapaxes((weights / weights.sum(-1, keepdims=True))[..., :-1] @ v, 1, 2).reshape(q.shape[0], q.shape[2], -1)


@pytest.mark.parametrize('past, what', [(0, 'sink'), (3, 'sink'), (0, 'smooth'), (0, 'norm'), (3, 'norm'), (0, 'window'), (0, 'bias')])
def test_group_query_attention_of_newer_decoders(past, what, tmp_path):
    """gpt-oss's sinks, Qwen3's norms of queries and keys, alone and with windows and biases."""
    steps = 1 if past else 5
    q, k, v = rand(1, steps, 64), rand(1, steps, 32), rand(1, steps, 32)
    old_k, old_v = (rand(1, 2, past, 16), rand(1, 2, past, 16)) if past else (None, None)
    total = past + steps
    sink = None if what in ('smooth', 'norm') else 2 * rand(4)
    norms = [1 + rand(16), 1 + rand(16)] if what == 'norm' else [None, None]
    added = rand(1, 4, steps, total) if what == 'bias' else None
    hq, hk, hv = heads(q, 4), heads(k, 2), heads(v, 2)
    if what == 'norm':
        hq, hk = (x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-3) * w for x, w in zip((hq, hk), norms))
    if past:
        hk, hv = np.concatenate([old_k, hk], 2), np.concatenate([old_v, hv], 2)
    bias = causal(steps, total)
    attributes = {'num_heads': 4, 'kv_num_heads': 2}
    if what == 'smooth':
        attributes['smooth_softmax'] = 1
    if what == 'norm':
        attributes['qk_norm_epsilon'] = 1e-3
    if what == 'window':
        attributes['local_window_size'] = 2
        bias = bias + np.where(np.subtract.outer(np.arange(steps), np.arange(total)) > 1, -np.inf, 0)
    bias = bias + (added if what == 'bias' else 0)
    if what == 'norm':
        want = attend(hq, hk.repeat(2, 1), hv.repeat(2, 1), bias)
    else:
        want = with_sink(hq, hk.repeat(2, 1), hv.repeat(2, 1), bias, np.zeros(4) if sink is None else sink).astype(np.float32)
    names = ['q', 'k', 'v', 'old_k', 'old_v', 'lengths', 'total', 'cos', 'sin', 'positions', 'added', 'sink', 'ks', 'vs', 'qn', 'kn']
    check(tmp_path, 'GroupQueryAttention', {'q': q, 'k': k, 'v': v, 'old_k': old_k, 'old_v': old_v, 'added': added},
          {'lengths': np.int32([total - 1]), 'total': np.int32(total), 'sink': sink, 'qn': norms[0], 'kn': norms[1]},
          {'order': names, **attributes}, [want.astype(np.float32), hk, hv], layer='SDPA', peer=what != 'norm')


def test_group_query_attention_of_open_sizes(tmp_path):
    """One net for prompts, steps and batches, as decoders are exported, with sinks, windows and rotary positions."""
    onnxruntime = pytest.importorskip('onnxruntime')
    sizes = {'q': ['b', 's', 64], 'k': ['b', 's', 32], 'v': ['b', 's', 32], 'old_k': ['b', 2, 'p', 16], 'old_v': ['b', 2, 'p', 16]}
    angles = rand(64, 8)
    constants = {'cos': np.cos(angles), 'sin': np.sin(angles), 'sink': 2 * rand(4)}
    wants = {'y': ['b', 's', 64], 'new_k': ['b', 2, 't', 16], 'new_v': ['b', 2, 't', 16]}
    node = helper.make_node('GroupQueryAttention', [*sizes, 'lengths', 'total', 'cos', 'sin', '', '', 'sink'], [*wants], domain='com.microsoft',
                            num_heads=4, kv_num_heads=2, do_rotary=1, local_window_size=4)
    integers = [helper.make_tensor_value_info('lengths', TensorProto.INT32, ['b']), helper.make_tensor_value_info('total', TensorProto.INT32, [])]
    graph = helper.make_graph([node], 'g', [helper.make_tensor_value_info(n, 1, s) for n, s in sizes.items()] + integers,
                              [helper.make_tensor_value_info(n, 1, s) for n, s in wants.items()],
                              [numpy_helper.from_array(a, n) for n, a in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17), helper.make_opsetid('com.microsoft', 1)], ir_version=8)
    onnx.save(model, tmp_path / 'm.onnx')
    net = convert(tmp_path / 'm.onnx', tmp_path)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=['CPUExecutionProvider'])
    for batch, steps, past in ((1, 5, 0), (1, 1, 5), (2, 1, 6), (1, 3, 4)):
        extents = {'b': batch, 's': steps, 'p': past}
        feeds = {n: rand(*(extents.get(d, d) for d in s)) for n, s in sizes.items()}
        feeds |= {'lengths': np.full(batch, past + steps - 1, np.int32), 'total': np.array(past + steps, np.int32)}
        have = run(net, feeds, [*wants], tmp_path)
        for name, want in zip(wants, session.run([*wants], feeds)):
            assert have[name].shape == want.shape and np.abs(have[name] - want).max() < 1e-5, f'{name} of {extents}'


class Cached:
    """GroupQueryAttention between caches, in quoll and in ONNX Runtime. `past`: the caches' length; None: known at run time."""
    HEADS, SHARED, SIZE, LONGEST = 4, 2, 16, 64

    def __init__(self, folder, batch, steps, past, rotary=True, packed=False, sink=False, **attributes):
        onnxruntime = pytest.importorskip('onnxruntime')
        own, shared = self.HEADS * self.SIZE, self.SHARED * self.SIZE
        width = own + 2 * shared
        self.sizes = {'q': [batch, steps, width]} if packed else {'q': [batch, steps, own], 'k': [batch, steps, shared], 'v': [batch, steps, shared]}
        self.sizes |= {n: [batch, self.SHARED, past, self.SIZE] for n in ('old_k', 'old_v')}
        angles = rand(self.LONGEST, self.SIZE // 2)
        constants = ({'cos': np.cos(angles), 'sin': np.sin(angles)} if rotary else {}) | ({'sink': 2 * rand(self.HEADS)} if sink else {})
        names = ['q', '' if packed else 'k', '' if packed else 'v', 'old_k', 'old_v', 'lengths', 'total']
        names += ['cos', 'sin'] if rotary else ['', '']
        names += ['', '', 'sink'] if sink else []
        self.outputs = ['y', 'new_k', 'new_v']
        node = helper.make_node('GroupQueryAttention', names, self.outputs, domain='com.microsoft', num_heads=self.HEADS, kv_num_heads=self.SHARED,
                                do_rotary=int(rotary), **attributes)
        inputs = [helper.make_tensor_value_info(n, 1, [f'{n}{i}' if d is None else d for i, d in enumerate(s)]) for n, s in self.sizes.items()]
        inputs += [helper.make_tensor_value_info('lengths', TensorProto.INT32, [batch]), helper.make_tensor_value_info('total', TensorProto.INT32, [])]
        results = {'y': [batch, steps, own], 'new_k': [batch, self.SHARED, None, self.SIZE], 'new_v': [batch, self.SHARED, None, self.SIZE]}
        graph = helper.make_graph([node], 'g', inputs, [helper.make_tensor_value_info(n, 1, s) for n, s in results.items()],
                                  [numpy_helper.from_array(a, n) for n, a in constants.items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17), helper.make_opsetid('com.microsoft', 1)], ir_version=8)
        onnx.save(model, folder / 'm.onnx')
        self.folder, self.net = folder, convert(folder / 'm.onnx', folder)
        self.session = onnxruntime.InferenceSession(model.SerializeToString(), providers=['CPUExecutionProvider'])

    def check(self, batch, steps, buffer, lengths):
        """lengths: of each item's keys in the end. Queries and keys behind them are padding."""
        extents = [batch, None, buffer, None]
        feeds = {n: rand(*((batch, steps)[i] if d is None and n in 'qkv' else extents[i] if d is None else d for i, d in enumerate(s)))
                 for n, s in self.sizes.items()}
        total = max(max(lengths), steps)
        feeds |= {'lengths': np.int32(lengths) - 1, 'total': np.array(total, np.int32)}
        have, wants = run(self.net, feeds, self.outputs, self.folder), self.session.run(self.outputs, feeds)
        for name, want in zip(self.outputs, wants):
            assert have[name].shape == want.shape, name
            for b, length in enumerate(lengths):
                used = length if name != 'y' else min(steps, length)
                a, w = (x[b][:used] if name == 'y' else x[b][:, :used] for x in (have[name], want))
                assert np.abs(a - w).max() < 1e-5, f'{name} of item {b}, {batch} x {steps} of {lengths} in {buffer}'


@pytest.mark.parametrize('options', [
    {}, {'rotary': False}, {'rotary_interleaved': 1}, {'packed': True}, {'local_window_size': 3}, {'softcap': 2.}, {'sink': True},
    {'packed': True, 'sink': True, 'local_window_size': 4, 'scale': 0.3}], ids=lambda o: '-'.join(o) or 'plain')
@pytest.mark.parametrize('batch, steps, buffer, lengths', [
    (1, 5, 12, [5]), (1, 1, 12, [6]), (1, 1, 12, [12]), (1, 3, 12, [9]), (2, 5, 12, [5, 3]), (3, 1, 12, [6, 4, 9]), (2, 1, 6, [7, 4])])
def test_group_query_attention_in_buffers(options, batch, steps, buffer, lengths, tmp_path):
    """Caches longer than their keys, and items of different lengths: their lengths were taken for the number of keys."""
    Cached(tmp_path, batch, steps, buffer, **options).check(batch, steps, buffer, lengths)


def test_group_query_attention_in_buffers_of_any_batch_and_steps(tmp_path):
    """Prompt, several tokens, and one, as in a conversation."""
    net = Cached(tmp_path, None, None, 12, local_window_size=5)
    for batch, steps, lengths in ((1, 5, [5]), (2, 5, [5, 2]), (2, 1, [6, 3]), (1, 3, [9]), (1, 1, [12])):
        net.check(batch, steps, 12, lengths)


def test_group_query_attention_of_open_caches_refuses_other_lengths(tmp_path):
    net = Cached(tmp_path, None, None, None)
    net.check(2, 4, 0, [4, 3])
    net.check(2, 1, 5, [6, 6])
    for batch, lengths in ((1, [4]), (2, [6, 5])):
        with pytest.raises(Failure, match=r'past_key_is_as_long_as_seqlens_k_says\] this does not hold.*--shape'):
            net.check(batch, 1, 5, lengths)


def test_group_query_attention_of_keys_of_unknown_width(tmp_path):
    """They were left out, and only those of the cache attended to."""
    sizes = {'q': [1, 1, 64], 'k': [1, 1, 'width'], 'v': [1, 1, 32], 'old_k': [1, 2, 3, 16], 'old_v': [1, 2, 3, 16]}
    constants = {'lengths': np.int32([3]), 'total': np.int32(4), 'cos': rand(16, 8), 'sin': rand(16, 8)}
    node = helper.make_node('GroupQueryAttention', [*sizes, *constants], ['y', 'new_k', 'new_v'], domain='com.microsoft', num_heads=4,
                            kv_num_heads=2, do_rotary=1)
    graph = helper.make_graph([node], 'g', [helper.make_tensor_value_info(n, 1, s) for n, s in sizes.items()],
                              [helper.make_empty_tensor_value_info(n) for n in node.output],
                              [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17), helper.make_opsetid('com.microsoft', 1)], ir_version=8),
              tmp_path / 'm.onnx')
    with pytest.raises(Failure, match='heads of unknown size'):
        convert(tmp_path / 'm.onnx', tmp_path)


@pytest.mark.parametrize('what, op, inputs, attributes', [
    ('k_scale', 'GroupQueryAttention', 13, {}), ('one of q_norm_weight', 'GroupQueryAttention', 15, {}),
    ('sliding_window_cache', 'GroupQueryAttention', 7, {'sliding_window_cache': 1}),
    ('cache_indirection', 'MultiHeadAttention', 10, {}), ('past_present_share_buffer', 'Attention', 3, {'past_present_share_buffer': 1}),
    ('is_packed_batching', 'RotaryEmbedding', 4, {'is_packed_batching': 1})])
def test_what_attention_is_not_converted_with_is_refused(what, op, inputs, attributes, tmp_path):
    """It was ignored, and the answers were wrong."""
    names = (['x', 'x', 'x'] if op in ('GroupQueryAttention', 'MultiHeadAttention') else ['x', 'w', 'w']) + [''] * (inputs - 4)
    names += ['x'] if inputs > 3 and inputs != 7 else []
    heads_of = {'num_heads': 2, **({'kv_num_heads': 2} if op == 'GroupQueryAttention' else {})}
    node = helper.make_node(op, names, ['y'], domain='com.microsoft', **heads_of, **attributes)
    graph = helper.make_graph([node], 'g', [helper.make_tensor_value_info('x', 1, [1, 4, 8])], [helper.make_empty_tensor_value_info('y')],
                              [numpy_helper.from_array(rand(8, 24), 'w')])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17), helper.make_opsetid('com.microsoft', 1)], ir_version=8),
              tmp_path / 'm.onnx')
    with pytest.raises(Failure, match=rf'opset 1\): {what}'):
        convert(tmp_path / 'm.onnx', tmp_path)


@pytest.mark.parametrize('zeros', [False, True])
def test_matmul_n_bits(zeros, tmp_path):
    k, n, block = 40, 6, 16
    x, blocks = rand(2, 3, k), 3
    q = RNG.integers(0, 16, (n, blocks * block)).astype(np.uint8)
    scales = np.abs(rand(n, blocks)) + 0.1
    zero = RNG.integers(0, 16, (n, blocks)).astype(np.uint8) if zeros else np.full((n, blocks), 8, np.uint8)
    packed = (q[:, 0::2] | q[:, 1::2] << 4).reshape(n, blocks, block // 2)
    padded = np.concatenate([zero, np.zeros((n, 1), np.uint8)], 1)
    packed_zero = (padded[:, 0::2] | padded[:, 1::2] << 4).reshape(-1) if zeros else None
    w = (q.reshape(n, blocks, block).astype(np.float32) - zero[..., None]) * scales[..., None]
    check(tmp_path, 'MatMulNBits', {'x': x}, {'q': packed, 'scales': scales.reshape(-1), 'zero': packed_zero},
          {'K': k, 'N': n, 'bits': 4, 'block_size': block}, [x @ w.reshape(n, -1)[:, :k].T], tolerance=1e-3)


@pytest.mark.parametrize('zeros', [False, True])
@pytest.mark.parametrize('bits', [4, 8])
@pytest.mark.parametrize('k', [32, 40])
@pytest.mark.parametrize('shape', [(), (3,), (2, 3)])
def test_gather_block_quantized(shape, k, bits, zeros, tmp_path):
    rows, block = 7, 16
    blocks, middle = -(-k // block), 1 << bits - 1
    q = RNG.integers(0, 1 << bits, (rows, k)).astype(np.uint8)
    scales = np.abs(rand(rows, blocks)) + 0.1
    zero = RNG.integers(0, 1 << bits, (rows, blocks)).astype(np.uint8) if zeros else np.full((rows, blocks), middle, np.uint8)

    def packed(values):
        values = np.pad(values, ((0, 0), (0, values.shape[1] % 2))) if bits == 4 else values
        return values[:, 0::2] | values[:, 1::2] << 4 if bits == 4 else values
    w = (q.astype(np.float32) - zero.repeat(block, 1)[:, :k]) * scales.repeat(block, 1)[:, :k]
    indices = np.asarray(RNG.integers(0, rows, shape), np.int64)
    check(tmp_path, 'GatherBlockQuantized', {'i': indices}, {'q': packed(q), 's': scales, 'z': packed(zero) if zeros else None},
          {'order': ['q', 'i', 's', 'z'], 'bits': bits, 'block_size': block, 'gather_axis': 0, 'quantize_axis': 1}, [w[indices]])


@pytest.mark.parametrize('kind', [np.uint8, np.int8, np.uint16, np.int16])
@pytest.mark.parametrize('columns', [False, True])
def test_quantize_linear(columns, kind, tmp_path):
    """The operators' older home, where ONNX Runtime's quantiser puts those of 16 and 4 bits below opset 21."""
    x = rand(2, 3, 4) * 3
    limits = np.iinfo(kind)
    scale = np.float32([0.02, 0.05, 0.03]) if columns else np.float32(0.03)
    zero = np.array([limits.min + 9, limits.max - 9, limits.max // 2] if columns else limits.max // 2, kind)
    along = (lambda v: v.reshape(1, 3, 1).astype(np.float32)) if columns else np.float32
    q = np.clip(np.rint(x / along(scale)) + along(zero), limits.min, limits.max).astype(kind)
    check(tmp_path, 'QuantizeLinear', {'x': x}, {'s': scale, 'z': zero}, {'axis': 1}, [q])
    want = (q.astype(np.float32) - along(zero)) * along(scale)
    check(tmp_path, 'DequantizeLinear', {'q': q}, {'s': scale, 'z': zero}, {'axis': 1}, [want])


def quantized(x, scale, zero):
    return np.clip(np.rint(x / np.float32(scale)) + zero, 0, 255).astype(np.uint8)


@pytest.mark.parametrize('op', ['QLinearSigmoid', 'QLinearLeakyRelu', 'QLinearGlobalAveragePool', 'QLinearSoftmax'])
def test_q_linear(op, tmp_path):
    x = RNG.integers(0, 256, (1, 4, 3, 5)).astype(np.uint8)
    real = (x.astype(np.float32) - 120) * np.float32(0.05)
    f, attributes = {'QLinearSigmoid': (sigmoid, {}),
                     'QLinearLeakyRelu': (lambda v: np.where(v < 0, 0.2 * v, v), {'alpha': 0.2}),
                     'QLinearGlobalAveragePool': (lambda v: v.mean((2, 3), keepdims=True), {'channels_last': 0}),
                     'QLinearSoftmax': (softmax, {'axis': -1, 'opset': 13})}[op]
    constants = {'xs': np.float32(0.05), 'xz': np.uint8(120), 'ys': np.float32(1 / 128), 'yz': np.uint8(100)}
    check(tmp_path, op, {'x': x}, constants, attributes, [quantized(f(real), 1 / 128, 100)])


@pytest.mark.parametrize('axis', [1, 2, -1, None])
def test_q_linear_softmax_of_old_opsets(axis, tmp_path):
    """Over all axes from the given one on; the last by default, also where Softmax's is 1."""
    x = RNG.integers(0, 256, (2, 3, 4)).astype(np.uint8)
    real = (x.astype(np.float32) - 120) * np.float32(0.05)
    want = softmax(real.reshape(2, -1) if axis == 1 else real).reshape(x.shape)
    constants = {'xs': np.float32(0.05), 'xz': np.uint8(120), 'ys': np.float32(1 / 256), 'yz': np.uint8(0)}
    check(tmp_path, 'QLinearSoftmax', {'x': x}, constants, {'opset': 12, **({} if axis is None else {'axis': axis})},
          [quantized(want, 1 / 256, 0)], tolerance=1)


def test_q_linear_concat(tmp_path):
    a, b = (RNG.integers(0, 256, (2, n)).astype(np.uint8) for n in (3, 4))
    real = np.concatenate([(a.astype(np.float32) - 9) * np.float32(0.1), (b.astype(np.float32) - 30) * np.float32(0.2)], 1)
    constants = {'ys': np.float32(0.25), 'yz': np.uint8(60), 'as': np.float32(0.1), 'az': np.uint8(9),
                 'bs': np.float32(0.2), 'bz': np.uint8(30)}
    check(tmp_path, 'QLinearConcat', {'a': a, 'b': b}, constants,
          {'order': ['ys', 'yz', 'a', 'as', 'az', 'b', 'bs', 'bz'], 'axis': 1}, [quantized(real, 0.25, 60)])


def test_q_linear_where(tmp_path):
    a, b = (RNG.integers(0, 256, (2, 1, 4)).astype(np.uint8), RNG.integers(0, 256, (3, 1)).astype(np.uint8))
    c = RNG.random((2, 3, 4)) < 0.5
    real = np.where(c, (a.astype(np.float32) - 9) * np.float32(0.1), (b.astype(np.float32) - 30) * np.float32(0.2))
    constants = {'as': np.float32(0.1), 'az': np.uint8(9), 'bs': np.float32(0.2), 'bz': np.uint8(30), 'ys': np.float32(0.25),
                 'yz': np.uint8(60)}
    check(tmp_path, 'QLinearWhere', {'c': c, 'a': a, 'b': b}, constants,
          {'order': ['c', 'a', 'as', 'az', 'b', 'bs', 'bz', 'ys', 'yz']}, [quantized(real, 0.25, 60)])


@pytest.mark.parametrize('kind', [np.uint8, np.int8])
@pytest.mark.parametrize('mask', ['none', 'rows', 'causal', 'past'])
def test_q_attention(mask, kind, tmp_path):
    x, w, b = RNG.integers(0, 256, (2, 5, 8)).astype(np.uint8), RNG.integers(-90, 90, (8, 24)).astype(np.int8), rand(24)
    real = (x.astype(np.float32) - 100) * np.float32(0.02)
    zero = kind(128 if kind is np.uint8 else 3)
    w = w.astype(np.int32) + (128 if kind is np.uint8 else 0)
    q, k, v = (heads(p, 2) for p in np.split(real @ ((w - int(zero)) * np.float32(0.01)) + b, 3, -1))
    rows = np.int32([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]])
    bias = {'none': 0., 'rows': np.where(rows, 0, -1e9)[:, None, None], 'causal': causal(5, 5), 'past': causal(5, 8)}[mask]
    inputs, present = {'x': x, **({'mask': rows} if mask == 'rows' else {})}, []
    if mask == 'past':
        inputs['past'] = rand(2, 2, 2, 3, 4)
        k, v = (np.concatenate([old, new], 2) for old, new in zip(inputs['past'], (k, v)))
        present = [np.stack([k, v]).astype(np.float32)]
    constants = {'w': w.astype(kind), 'b': b, 'xs': np.float32(0.02), 'ws': np.float32(0.01), 'xz': np.uint8(100), 'wz': zero}
    check(tmp_path, 'QAttention', inputs, constants,
          {'order': ['x', 'w', 'b', 'xs', 'ws', 'mask', 'xz', 'wz', 'past'], 'num_heads': 2,
           'unidirectional': int(mask in ('causal', 'past'))},
          [attend(q, k, v, bias).astype(np.float32), *present], layer='SDPA')


def test_q_embed_layer_norm(tmp_path):
    ids, segments = RNG.integers(0, 11, (2, 5)).astype(np.int32), RNG.integers(0, 2, (2, 5)).astype(np.int32)
    tables = {'word': (11, 8), 'position': (6, 8), 'segment': (2, 8), 'gamma': (8,), 'beta': (8,)}
    codes = {name: RNG.integers(0, 256, size).astype(np.uint8) for name, size in tables.items()}
    scales = {name + '_s': np.float32(0.01 * (i + 1)) for i, name in enumerate(tables)}
    zeros = {name + '_z': np.uint8(100 + 9 * i) for i, name in enumerate(tables)}
    word, position, segment, gamma, beta = ((codes[n].astype(np.float32) - zeros[n + '_z']) * scales[n + '_s'] for n in tables)
    mask = np.int32([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
    want = norm(word[ids] + position[:5] + segment[segments], gamma, beta, 1e-12)
    check(tmp_path, 'QEmbedLayerNormalization', {'ids': ids, 'segments': segments, 'mask': mask}, {**codes, **scales, **zeros},
          {'order': ['ids', 'segments', *codes, 'mask', *scales, *zeros], 'epsilon': 1e-12}, [want, np.int32([3, 5])])


def test_dynamic_quantize_matmul(tmp_path):
    x, w, scale, bias = rand(3, 8), RNG.integers(-127, 128, (8, 5)).astype(np.int8), np.float32([0.02]), rand(5)
    low, high = min(0., x.min()), max(0., x.max())
    step = np.float32((high - low) / 255)
    zero = np.clip(np.rint(-low / step), 0, 255)
    near = (np.clip(np.rint(x / step) + zero, 0, 255) - zero) * step
    want = (near @ (w * scale) + bias).astype(np.float32)
    check(tmp_path, 'DynamicQuantizeMatMul', {'x': x}, {'w': w, 'scale': scale, 'zero': np.int8([0]), 'bias': bias}, {},
          [want], tolerance=1e-3)


@pytest.mark.parametrize('other', ['scale', 'zero', 'none'])
def test_a_quantised_range_with_another_scale_or_zero_point(other, tmp_path):
    """`other` is not what DynamicQuantizeLinear says; without a zero point it is 0."""
    x, w = rand(3, 8), RNG.integers(-127, 128, (8, 5)).astype(np.int8)
    step = np.float32((max(x.max(), 0) - min(x.min(), 0)) / 255)
    point = np.uint8(np.rint(-min(x.min(), 0) / step))
    codes = quantized(x, step, int(point)).astype(np.float32)
    scale, zero = np.float32(.5) if other == 'scale' else step, {'zero': np.uint8(7), 'none': np.uint8(0)}.get(other, point)
    want = (codes - zero) * scale @ (w * np.float32(.02))
    inputs = ['q', 'w', 'k' if other == 'scale' else 's', 'ws', {'zero': 'o', 'none': ''}.get(other, 'z'), 'wz']
    nodes = [helper.make_node('DynamicQuantizeLinear', ['x'], ['q', 's', 'z']),
             helper.make_node('MatMulIntegerToFloat', inputs, ['y'], domain='com.microsoft')]
    constants = {'w': w, 'ws': np.float32(.02), 'wz': np.int8(0), 'k': np.float32(.5), 'o': np.uint8(7)}
    graph = helper.make_graph(nodes, 'g', [helper.make_tensor_value_info('x', 1, x.shape)], [helper.make_tensor_value_info('y', 1, want.shape)],
                              [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17), helper.make_opsetid('com.microsoft', 1)], ir_version=8),
              tmp_path / 'm.onnx')
    have = run(convert(tmp_path / 'm.onnx', tmp_path), {'x': x}, ['y'], tmp_path)['y']
    np.testing.assert_allclose(have, want, 1e-3, 1e-3 * np.abs(want).max())


@pytest.mark.parametrize('kind', [np.uint8, np.int8])
@pytest.mark.parametrize('scales', ['one', 'columns', 'columns first'])
@pytest.mark.parametrize('zeros', ['one', 'columns'])
def test_scales_and_zero_points_of_columns(zeros, scales, kind, tmp_path):
    """Of a square matrix, which has as many rows. ONNX Runtime's fusion has the scales in the order in which the model multiplies them."""
    x, w = RNG.integers(0, 256, (3, 4)).astype(np.uint8), RNG.integers(0, 128, (4, 4)).astype(kind)
    scale = np.float32(0.02) if scales == 'one' else np.float32([0.01, 0.02, 0.04, 0.03])
    zero = kind(7) if zeros == 'one' else np.array([1, 20, 7, 90], kind)
    want = ((x.astype(np.float32) - 100) * np.float32(0.05)) @ ((w.astype(np.float32) - zero.astype(np.float32)) * scale)
    order = ['w', 'ws', 'xs'] if scales == 'columns first' else ['w', 'xs', 'ws']
    check(tmp_path, 'MatMulIntegerToFloat', {'x': x},
          {'w': w, 'xs': np.float32(0.05), 'ws': scale, 'xz': np.uint8(100), 'wz': zero}, {'order': ['x', *order, 'xz', 'wz']}, [want])


def test_q_gemm(tmp_path):
    a, b = RNG.integers(0, 256, (3, 6)).astype(np.uint8), RNG.integers(0, 256, (4, 6)).astype(np.uint8)
    c = RNG.integers(-500, 500, 4).astype(np.int32)
    real = ((a.astype(np.int32) - 100) @ (b.astype(np.int32) - 128).T + c) * np.float32(0.02 * 0.03)
    constants = {'as': np.float32(0.02), 'az': np.uint8(100), 'b': b, 'bs': np.float32(0.03), 'bz': np.uint8(128),
                 'c': c, 'ys': np.float32(0.3), 'yz': np.uint8(110)}
    check(tmp_path, 'QGemm', {'a': a}, constants, {'order': ['a', *constants], 'transB': 1, 'alpha': 1.},
          [quantized(real, 0.3, 110)])


def group_norm(x, scale, bias, groups):
    """Channels last."""
    parts = x.reshape(x.shape[0], -1, groups, x.shape[-1] // groups)
    centred = parts - parts.mean((1, 3), keepdims=True)
    return (centred / np.sqrt((centred ** 2).mean((1, 3), keepdims=True) + 1e-5)).reshape(x.shape) * scale + bias


@pytest.mark.parametrize('last', [0, 1])
@pytest.mark.parametrize('skip', [(2, 4, 5, 6), (2, 1, 1, 6), (2, 6), None])
def test_group_norm_of_diffusion_models(skip, last, tmp_path):
    """ONNX Runtime has them for GPUs alone, and so the operators of the next two tests."""
    x, scale, bias, more = rand(2, 4, 5, 6), rand(6), rand(6), rand(6)
    other = None if skip is None else rand(*skip)
    total = x if skip is None else x + (other if len(skip) == 4 else other[:, None, None]) + more
    want = group_norm(total, scale, bias, 3)
    want = want * sigmoid(want)
    order = lambda a: a if last or a is None or a.ndim != 4 else a.transpose(0, 3, 1, 2).copy()
    check(tmp_path, 'SkipGroupNorm' if skip else 'GroupNorm', {'x': order(x), 'skip': order(other)},
          {'scale': scale, 'bias': bias, 'more': more if skip else None},
          {'order': ['x', 'scale', 'bias', *(['skip', 'more'] if skip else [])], 'groups': 3, 'activation': 1, 'channels_last': last},
          [order(want), *([order(total)] if skip else [])], peer=False)


def test_bias_add_and_bias_split_gelu(tmp_path):
    x, skip, bias = rand(2, 7, 8), rand(2, 7, 8), rand(8)
    check(tmp_path, 'BiasAdd', {'x': x, 'skip': skip}, {'bias': bias}, {'order': ['x', 'bias', 'skip']}, [x + bias + skip], peer=False)
    left, right = np.split(x + bias, 2, -1)
    gate = right * 0.5 * (1 + np.vectorize(math.erf)(right / math.sqrt(2)))
    check(tmp_path, 'BiasSplitGelu', {'x': x}, {'bias': bias}, {}, [(left * gate).astype(np.float32)], peer=False)


def test_nhwc_conv(tmp_path):
    x, w, bias = rand(2, 5, 6, 4), rand(3, 2, 2, 4), rand(3)
    windows = np.lib.stride_tricks.sliding_window_view(x, (2, 2), (1, 2))  # n, y, x, channel, window
    want = np.einsum('nyxchw,ohwc->nyxo', windows, w) + bias
    check(tmp_path, 'NhwcConv', {'x': x}, {'w': w, 'bias': bias}, {'kernel_shape': [2, 2]}, [want.astype(np.float32)], peer=False)


@pytest.mark.parametrize('last', [0, 1])
def test_q_linear_conv_with_channels_last(last, tmp_path):
    """What ONNX Runtime makes of quantised models when it optimises them in full."""
    needs_exact_sums()
    x, w = RNG.integers(0, 256, (2, 5, 6, 4), np.uint8), RNG.integers(-128, 128, (3, 4, 2, 2), np.int8)
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.int32) - 120, (2, 2), (1, 2))
    bias = RNG.integers(-500, 500, 3).astype(np.int32)
    total = np.einsum('nyxchw,ochw->nyxo', windows, w.astype(np.int32)) + bias
    want = np.clip(np.rint(total * np.float32(0.02) * np.float32(0.01) / np.float32(0.15)) + 128, 0, 255).astype(np.uint8)
    order = lambda a: a if last else a.transpose(0, 3, 1, 2).copy()
    constants = {'xs': np.float32(0.02), 'xz': np.uint8(120), 'w': w, 'ws': np.float32(0.01), 'wz': np.int8(0), 'ys': np.float32(0.15),
                 'yz': np.uint8(128), 'bias': bias}
    check(tmp_path, 'QLinearConv', {'x': order(x)}, constants, {'channels_last': last, 'kernel_shape': [2, 2]}, [order(want)])


@pytest.mark.parametrize('kind', [np.uint8, np.int8])
def test_nhwc_max_pool(kind, tmp_path):
    x = RNG.integers(np.iinfo(kind).min, np.iinfo(kind).max, (2, 6, 6, 4)).astype(kind)
    want = x.reshape(2, 3, 2, 3, 2, 4).max((2, 4))
    check(tmp_path, 'NhwcMaxPool', {'x': x}, {}, {'kernel_shape': [2, 2], 'strides': [2, 2]}, [want])


def test_layouts_of_one_processor_are_refused(tmp_path):
    node = helper.make_node('ReorderOutput', ['x'], ['y'], domain='com.microsoft.nchwc', channels=8)
    values = [helper.make_tensor_value_info(n, 1, [1, 8, 4, 4]) for n in 'xy']
    onnx.save(helper.make_model(helper.make_graph([node], 'g', values[:1], values[1:]), ir_version=8, opset_imports=[
        helper.make_opsetid('', 17), helper.make_opsetid('com.microsoft.nchwc', 1)]), tmp_path / 'm.onnx')
    with pytest.raises(Failure, match='save with ORT_ENABLE_EXTENDED'):
        convert(tmp_path / 'm.onnx', tmp_path)


@pytest.mark.parametrize('kernel, bias, past, activation', [(4, True, True, 'silu'), (3, False, False, 'none'), (2, True, False, 'swish')])
def test_causal_conv(kernel, bias, past, activation, tmp_path):
    x, w, b = rand(2, 6, 5), rand(6, 1, kernel), rand(6) if bias else None
    state = rand(2, 6, kernel - 1) if past else None
    padded = np.concatenate([state if past else np.zeros((2, 6, kernel - 1), np.float32), x], -1)
    y = sum(padded[:, :, i:i + 5] * w[:, 0, i:i + 1] for i in range(kernel)) + (b[:, None] if bias else 0)
    y = y if activation == 'none' else y * sigmoid(y)
    check(tmp_path, 'CausalConvWithState', {'x': x, 'state': state}, {'w': w, 'b': b},
          {'activation': activation, 'order': ['x', 'w', 'b', 'state']}, [y, np.ascontiguousarray(padded[:, :, -kernel + 1:])])


@pytest.mark.parametrize('rule', ['linear', 'gated', 'delta', 'gated_delta'])
def test_linear_attention(rule, tmp_path):
    batch, steps, q_heads, heads, size = 2, 3, 4, 2, 5
    q, k, v = rand(batch, steps, q_heads * size), rand(batch, steps, heads * size) / 2, rand(batch, steps, heads * size)
    state = rand(batch, heads, size, size)
    decay = -np.abs(rand(batch, steps, heads)) if 'gated' in rule else None
    beta = sigmoid(rand(batch, steps, heads)).astype(np.float32) if 'delta' in rule else None
    now, rows = state.copy(), []
    for t in range(steps):
        if decay is not None:
            now = now * np.exp(decay[:, t])[..., None, None]
        key, value = (a[:, t].reshape(batch, heads, 1, size) for a in (k, v))
        if beta is not None:
            value = beta[:, t][..., None, None] * (value - key @ now)
        now = now + key.transpose(0, 1, 3, 2) @ value
        rows.append((q[:, t].reshape(batch, q_heads, 1, size) @ np.repeat(now, 2, 1) / math.sqrt(size)).reshape(batch, 1, -1))
    check(tmp_path, 'LinearAttention', {'q': q, 'k': k, 'v': v, 'state': state, 'decay': decay, 'beta': beta}, {},
          {'update_rule': rule, 'q_num_heads': q_heads, 'kv_num_heads': heads},
          [np.concatenate(rows, 1).astype(np.float32), now.astype(np.float32)])


def test_linear_attention_gate(tmp_path):
    a, b, bias, scale = rand(2, 3, 4), rand(2, 3, 4), rand(4), -np.abs(rand(4))
    check(tmp_path, 'LinearAttentionGate', {'a': a, 'b': b}, {'bias': bias, 'scale': scale}, {'order': ['a', 'bias', 'scale', 'b']},
          [(scale * np.log1p(np.exp(a + bias))).astype(np.float32), sigmoid(b)])


@pytest.mark.parametrize('heads, activation, given', [(1, 'silu', {}), (4, 'sigmoid', {'epsilon': 1e-4})])
def test_gated_rms_norm(heads, activation, given, tmp_path):
    x, gate, scale = rand(2, 3, heads * 8) / 500, rand(2, 3, heads * 8), rand(8)  # epsilon counts beside such squares
    y = norm(x.reshape(2, 3, heads, 8), scale, eps=given.get('epsilon', 1e-5), simple=True).reshape(x.shape)
    check(tmp_path, 'GatedRMSNorm', {'x': x, 'gate': gate}, {'scale': scale},
          {'activation': activation, **given, 'order': ['x', 'scale', 'gate']},
          [y * sigmoid(gate) * (gate if activation == 'silu' else 1)])


@pytest.mark.parametrize('quant_type', [0, 1])
def test_matmul_bnb4(quant_type, tmp_path):
    k, n, block = 24, 5, 16
    half = [0, 0.0625 / 12, 8 / 12, 1, 4 / 12, 6 / 12, 2 / 12, 3 / 12]
    normal = [-1, -0.6961928, -0.52507305, -0.39491749, -0.28444138, -0.18477343, -0.09105004, 0, 0.0795803, 0.1609302,
              0.2461123, 0.33791524, 0.44070983, 0.562617, 0.72295684, 1]
    values = np.array(normal if quant_type else half + [-v for v in half], np.float32)
    codes, largest = RNG.integers(0, 16, n * k), np.abs(rand((n * k + block - 1) // block))
    w = (values[codes] * np.repeat(largest, block)[:n * k]).reshape(n, k)
    packed = (codes[::2] << 4 | codes[1::2]).astype(np.uint8)
    x = rand(2, 3, k)
    check(tmp_path, 'MatMulBnb4', {'x': x}, {'w': packed, 'largest': largest},
          {'K': k, 'N': n, 'block_size': block, 'quant_type': quant_type}, [x @ w.T])
