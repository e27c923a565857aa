"""com.microsoft's mixtures of experts against closed forms, and against ONNX Runtime where it is installed."""
import math

import numpy as np
import pytest

onnx = pytest.importorskip('onnx')
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from onnx_run import Failure, convert  # noqa: E402
from test_contrib import check, gelu_tanh, rand, sigmoid, softmax  # noqa: E402

EXPERTS, HIDDEN, INNER = 4, 32, 16
ORDER = ['w1', 'b1', 'w2', 'b2', 'w3', 'b3']
QUANTIZED = ['w1', 's1', 'b1', 'w2', 's2', 'b2', 'w3', 's3', 'b3', 'z1', 'z2', 'z3', 'mix']


def swiglu(gate, up, a):
    limit = a.get('swiglu_limit', math.inf)
    gate, up = np.minimum(gate, limit), np.clip(up, -limit, limit)
    return gate * sigmoid(a.get('activation_alpha', 1.) * gate) * (up + a.get('activation_beta', 0.))


def activate(hidden, up, a):
    kind = a.get('activation_type', 'relu')
    if kind == 'swiglu':
        fusion = a.get('swiglu_fusion', 0)
        gate, up = ((hidden, up), (hidden[:, ::2], hidden[:, 1::2]), np.split(hidden, 2, -1))[fusion]
        return swiglu(gate, up, a)
    act = {'relu': lambda x: np.maximum(x, 0), 'gelu': gelu_tanh, 'silu': lambda x: x * sigmoid(x), 'identity': lambda x: x}
    return act[kind](hidden) * (1 if up is None else up)


def closed_form(x, router, w, a, mix=None, normalized=False):
    """Each row through the experts that its router likes best."""
    rows = x.reshape(-1, x.shape[-1])
    probabilities = softmax(router)
    want = np.zeros_like(rows)
    for t, row in enumerate(rows):
        best = np.argsort(-router[t], kind='stable')[:a['k']]
        weights = probabilities[t, best] if mix is None else mix[t, best]
        if normalized or a.get('normalize_routing_weights'):
            weights = weights / weights.sum()
        for e, weight in zip(best, weights):
            dot = lambda i, v: v @ w[f'w{i}'][e].T + w.get(f'b{i}', np.zeros((EXPERTS, 1), np.float32))[e]
            hidden = activate(dot(1, row[None]), dot(3, row[None]) if 'w3' in w else None, a)
            want[t] += weight * dot(2, hidden)[0]
    return want.reshape(x.shape).astype(np.float32)


def weights_of(a, third=False, bias=True):
    wide = 2 if a.get('swiglu_fusion', 0) else 1
    sizes = {1: (wide * INNER, HIDDEN), 2: (HIDDEN, INNER), **({3: (INNER, HIDDEN)} if third else {})}
    w = {f'w{i}': rand(EXPERTS, *s) / 4 for i, s in sizes.items()}
    return {**w, **({f'b{i}': rand(EXPERTS, s[0]) for i, s in sizes.items()} if bias else {})}


@pytest.mark.parametrize('attributes, third, bias, peer', [
    (dict(k=1), False, True, True),
    (dict(k=2, activation_type='gelu'), False, False, True),
    (dict(k=2, activation_type='silu', normalize_routing_weights=1), False, True, True),
    (dict(k=3, activation_type='identity'), False, True, True),
    (dict(k=2, activation_type='silu', normalize_routing_weights=1), True, True, False),
    (dict(k=2, activation_type='swiglu'), True, False, False),
    (dict(k=2, activation_type='swiglu', swiglu_fusion=2), False, True, False),
    (dict(k=2, activation_type='swiglu', swiglu_fusion=1, normalize_routing_weights=1), False, True, True),
    (dict(k=2, activation_type='swiglu', swiglu_fusion=1, swiglu_limit=0.75, activation_alpha=1.702, activation_beta=1.),
     False, True, True)])
def test_moe(attributes, third, bias, peer, tmp_path):
    for shape in ((5, HIDDEN), (2, 3, HIDDEN)):
        x = rand(*shape)
        router = rand(x.size // HIDDEN, EXPERTS)
        w = weights_of(attributes, third, bias)
        check(tmp_path, 'MoE', {'x': x, 'router': router}, {n: w.get(n) for n in ORDER}, dict(attributes),
              [closed_form(x, router, w, attributes)], peer=peer)


def quantize(w, bits, block, zeros):
    """Codes as bytes, scales, zero points as bytes or None, and the weights that they stand for."""
    blocks = w.reshape(*w.shape[:2], -1, block or w.shape[2])
    half, top = 2 ** (bits - 1), 2 ** bits - 1
    if zeros:
        low = blocks.min(-1)
        scale = ((blocks.max(-1) - low) / top).astype(np.float32)
        zero = np.clip(np.round(-low / scale), 0, top)
    else:
        scale = (np.abs(blocks).max(-1) / (half - 1)).astype(np.float32)
        zero = np.full(scale.shape, half)
    codes = np.clip(np.round(blocks / scale[..., None] + zero[..., None]), 0, top)
    floats = ((codes - zero[..., None]) * scale[..., None]).reshape(w.shape).astype(np.float32)

    def packed(x):
        x = x.astype(np.uint8)
        if bits == 8:
            return x
        x = np.pad(x, [(0, 0), (0, 0), (0, x.shape[2] % 2)])
        return x[..., ::2] | x[..., 1::2] << 4
    return packed(codes.reshape(w.shape)), scale if block else scale[..., 0], packed(zero) if zeros else None, floats


@pytest.mark.parametrize('bits, block, zeros, mixed, peer', [
    (4, 16, False, False, True), (4, 16, True, False, True), (4, 0, False, False, True), (8, 0, False, False, True),
    # ONNX Runtime rounds activations, too.
    (8, 16, True, False, False), (4, 16, False, True, True)])
def test_q_moe(bits, block, zeros, mixed, peer, tmp_path):
    a = dict(k=2, expert_weight_bits=bits, activation_type='swiglu', swiglu_fusion=1, normalize_routing_weights=int(mixed))
    if block:
        a['block_size'] = block
    x, router = rand(5, HIDDEN), rand(5, EXPERTS)
    w = weights_of(a)
    constants = {n: w.get(n) for n in QUANTIZED}
    for i in (1, 2):
        constants[f'w{i}'], constants[f's{i}'], constants[f'z{i}'], w[f'w{i}'] = quantize(w[f'w{i}'], bits, block, zeros)
    if mixed:
        constants['mix'] = sigmoid(rand(5, EXPERTS)).astype(np.float32)
    want = closed_form(x, router, w, a, constants['mix'], normalized=True)
    check(tmp_path, 'QMoE', {'x': x, 'router': router}, constants, a, [want], peer=peer)


@pytest.mark.parametrize('change, reason', [
    (dict(k=5), '5 of 4 experts'), (dict(activation_type='swiglu'), 'swiglu_fusion'),
    (dict(activation_type='relu2'), 'activation_type relu2'), ('b1', 'other sizes')])
def test_refused_moe(change, reason, tmp_path):
    a = {'k': 1, **(change if isinstance(change, dict) else {})}
    w = weights_of({})
    if change == 'b1':
        w['b1'] = w['b1'][:, :-1]
    tensors = [numpy_helper.from_array(w[n], n) for n in ORDER[:4]]
    info = lambda n, *s: helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
    node = helper.make_node('MoE', ['x', 'router', *ORDER[:4]], ['y'], domain='com.microsoft', **a)
    graph = helper.make_graph([node], 'g', [info('x', 5, HIDDEN), info('router', 5, EXPERTS)], [info('y', 5, HIDDEN)], tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17), helper.make_opsetid('com.microsoft', 1)]),
              tmp_path / 'm.onnx')
    with pytest.raises(Failure, match=reason):
        convert(tmp_path / 'm.onnx', tmp_path)
