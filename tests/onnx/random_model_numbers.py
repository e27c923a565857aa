"""Random nodes that compute: element-wise, reductions, products, norms, recurrent layers, quantised ones."""
import numpy as np

# Inputs are moved to where the function is smooth.
SMOOTH = ('Abs', 'Neg', 'Sigmoid', 'Tanh', 'Softplus', 'Softsign', 'Exp', 'Sin', 'Cos', 'Atan', 'Erf', 'Sinh', 'Asinh', 'Identity',
          'Relu', 'Selu', 'Elu', 'LeakyRelu', 'HardSigmoid', 'ThresholdedRelu')
POSITIVE = ('Sqrt', 'Log', 'Reciprocal')
NEWER = {'HardSwish': 14, 'Mish': 18, 'Gelu': 20, 'Celu': 12}


def unary(m):
    x = m.tensor()
    return m.add(m.pick(*SMOOTH), [x])


def unary_new(m):
    op = m.pick(*NEWER)
    attributes = {'approximate': m.pick('none', 'tanh')} if op == 'Gelu' else {'alpha': m.real(0.2, 2)} if op == 'Celu' else {}
    return m.opset >= NEWER[op] and m.add(op, [m.tensor()], **attributes)


def unary_positive(m):
    x = m.tensor()
    if x is None or not m.add('Abs', [x]):
        return False
    if not m.add('Add', [m.made[-1], m.constant(np.float32(0.5))]):
        return False
    return m.add(m.pick(*POSITIVE), [m.made[-1]])


def activation(m):
    op = m.pick('Elu', 'LeakyRelu', 'Selu', 'HardSigmoid', 'ThresholdedRelu', 'Shrink', 'PRelu', 'Clip')
    x = m.tensor()
    if x is None:
        return False
    if op == 'PRelu':
        shape = m.values[x].shape
        slope = shape[1:2] + (1,) * (len(shape) - 2) if m.chance(0.7) and len(shape) > 1 else shape[-1:]
        return m.add(op, [x, m.constant(m.data(*slope))])
    if op == 'Clip':
        low, high = sorted((m.real(), m.real()))
        if m.opset < 11:
            return m.add(op, [x], min=low, max=high)
        form = m.number(0, 2)
        return m.add(op, [x, m.constant(np.float32(low)) if form < 2 else ''] + ([m.constant(np.float32(high))] if form != 1 else []))
    names = {'Elu': ('alpha',), 'LeakyRelu': ('alpha',), 'Selu': ('alpha', 'gamma'), 'HardSigmoid': ('alpha', 'beta'),
             'ThresholdedRelu': ('alpha',), 'Shrink': ('lambd', 'bias')}[op]
    return m.add(op, [x], **{name: m.real(0.1, 1.5) for name in names})


def binary(m):
    x = m.tensor()
    if x is None:
        return False
    shape = m.values[x].shape
    op = m.pick('Add', 'Sub', 'Mul', 'Div', 'Max', 'Min', 'Add', 'Mul')
    if m.chance(0.4):
        fits = [n for n, y in m.values.items() if y.dtype == np.float32 and n not in m.constants and y.size <= 20000]
        y = m.pick(*fits)
        if op == 'Div':
            op = 'Sub'
    else:
        keep = m.number(0, len(shape))
        other = [m.pick(s, s, 1) for s in shape][keep:]
        if m.chance(0.1):
            other = [m.number(1, 3)] + [m.pick(s, 1) for s in shape]
        values = m.data(*other)
        y = m.constant(np.where(values < 0, values - 0.5, values + 0.5).astype(np.float32))
    return m.add(op, [x, y] if op == 'Div' or m.chance() else [y, x])


def pow_mod(m):
    x = m.tensor()
    if x is None:
        return False
    if m.chance():
        return m.add('Pow', [x, m.constant(m.pick(np.float32(2), np.float32(3), np.int64(2) if m.opset >= 12 else np.float32(2)))])
    return m.opset >= 10 and m.add('Mod', [x, m.constant(np.float32(m.pick(0.7, 1.3)))], fmod=1)


def variadic(m):
    x = m.tensor()
    if x is None:
        return False
    shape = m.values[x].shape
    others = [m.constant(m.data(*shape[m.number(0, len(shape)):])) for _ in range(m.number(0, 2))]
    return m.add(m.pick('Sum', 'Mean', 'Max', 'Min'), [x] + others)


def compare(m):
    x = m.tensor()
    if x is None or not m.add(m.pick('Greater', 'Less', *(['GreaterOrEqual', 'LessOrEqual'] if m.opset >= 12 else [])),
                              [x, m.constant(np.float32(m.real(-0.5, 0.5)))]):
        return False
    c = m.made[-1]
    how = m.number(0, 3)
    if how == 0:
        return m.add('Where', [c, x, m.constant(np.float32(m.real()))])
    if how == 1:
        return m.add('Not', [c]) and m.add('Cast', [m.made[-1]], to=1)
    if how == 2:
        return m.add('Cast', [c], to=m.pick(1, 6, 7))
    return m.add('Where', [c, m.constant(m.data(*m.values[x].shape[-1:])), x])


def cast(m):
    x = m.tensor(types=(np.float32, np.int64, np.int32, np.bool_))
    return x is not None and m.values[x].dtype != np.float32 and m.add('Cast', [x], to=1)


def integers(m):
    x = m.tensor(types=(np.int64,))
    if x is None:
        return False
    values = m.values[x]
    other = m.constant(m.rng.integers(1, 6, values.shape[m.number(0, values.ndim):]).astype(np.int64))
    return m.add(m.pick('Add', 'Sub', 'Mul', 'Div'), [x, other])


def reduce(m):
    x = m.tensor()
    if x is None:
        return False
    op = m.pick('ReduceSum', 'ReduceMean', 'ReduceMax', 'ReduceMin', 'ReduceL1', 'ReduceL2', 'ReduceSumSquare', 'ReduceLogSumExp')
    rank, keep = m.values[x].ndim, m.number(0, 1)
    axes = m.some_axes(rank) if rank else []
    if m.opset < 11:
        axes = [a % rank for a in axes]
    as_input = m.opset >= (13 if op == 'ReduceSum' else 18)
    if not axes or m.chance(0.15):
        return m.add(op, [x], keepdims=keep, noop_with_empty_axes=m.number(0, 1) if as_input and m.chance(0.3) else None)
    if as_input:
        return m.add(op, [x, m.ints(*axes)], keepdims=keep)
    return m.add(op, [x], axes=axes, keepdims=keep)


def arg(m):
    x = m.tensor(where=lambda x: x.ndim > 0)
    if x is None:
        return False
    axis = m.number(-m.values[x].ndim if m.opset >= 11 else 0, m.values[x].ndim - 1)
    return m.add(m.pick('ArgMax', 'ArgMin'), [x], axis=axis, keepdims=m.number(0, 1),
                 select_last_index=m.number(0, 1) if m.opset >= 12 and m.chance(0.3) else None)


def top_k(m):
    x = m.tensor(where=lambda x: x.ndim > 0 and np.unique(x).size == x.size)
    if x is None or m.opset < 11:
        return False
    axis = m.axis(m.values[x].ndim)
    return m.add('TopK', [x, m.ints(m.number(1, m.values[x].shape[axis]))], 2, axis=axis, largest=m.number(0, 1))


def cumulative(m):
    x = m.tensor(where=lambda x: x.ndim > 0)
    if x is None or m.opset < 11:
        return False
    return m.add('CumSum', [x, m.constant(np.int64(m.axis(m.values[x].ndim)))], exclusive=m.number(0, 1), reverse=m.number(0, 1))


def softmax(m):
    x = m.tensor(where=lambda x: x.ndim > 0)
    if x is None:
        return False
    axis = m.number(-m.values[x].ndim if m.opset >= 11 else 0, m.values[x].ndim - 1)
    return m.add(m.pick('Softmax', 'Softmax', 'LogSoftmax', 'Hardmax'), [x], axis=axis if m.chance(0.8) else None)


def matmul(m):
    x = m.tensor(where=lambda x: x.ndim > 0)
    if x is None:
        return False
    shape = m.values[x].shape
    if m.chance(0.25):
        fits = [n for n, y in m.values.items() if y.dtype == np.float32 and n not in m.constants and y.ndim > 1
                and y.shape[-2] == shape[-1]]
        return bool(fits) and m.add('MatMul', [x, m.pick(*fits)])
    if m.chance(0.3) and len(shape) > 1:
        batch = [m.pick(s, 1) for s in shape[:-2]][m.number(0, max(0, len(shape) - 2)):]
        return m.add('MatMul', [m.constant(m.data(*batch, m.number(1, 6), shape[-2])), x])
    batch = [m.pick(s, 1) for s in shape[:-2]] if m.chance(0.3) else []
    tail = [shape[-1]] if m.chance(0.1) else [*batch, shape[-1], m.number(1, 17)]
    return m.add('MatMul', [x, m.constant(m.data(*tail))])


def gemm(m):
    x = m.shaped(2)
    if x is None:
        return False
    trans_a, trans_b = m.number(0, 1), m.number(0, 1)
    rows, inner = m.values[x].shape[::-1] if trans_a else m.values[x].shape
    columns = m.number(1, 20)
    b = m.constant(m.data(*((columns, inner) if trans_b else (inner, columns))))
    c = m.pick([], [(columns,)], [(1, columns)], [(rows, 1)], [(rows, columns)], [()], [(1,)])
    return m.add('Gemm', [x, b] + [m.constant(m.data(*s)) for s in c], transA=trans_a, transB=trans_b,
                 alpha=m.pick(1.0, 0.5), beta=m.pick(1.0, 2.0))


def einsum(m):
    if m.opset < 12:
        return False
    equation, ranks = m.pick(('ij,jk->ik', (2, 2)), ('bij,bjk->bik', (3, 3)), ('bhid,bhjd->bhij', (4, 4)), ('ij->ji', (2,)),
                             ('bij->bi', (3,)), ('bhwc,hkc->bhwk', (4, 3)), ('i,j->ij', (1, 1)), ('...ij,...kj->...ik', (3, 3)),
                             ('bchw->bhwc', (4,)), ('ij,ij->', (2, 2)), ('abc,cd->abd', (3, 2)), ('bhwc,wkc->bhwk', (4, 3)))
    x = m.shaped(ranks[0])
    if x is None:
        return False
    letters = [t.replace('...', '.') for t in equation.split('->')[0].split(',')]
    sizes = dict(zip(letters[0], m.values[x].shape))
    others = [m.constant(m.data(*[sizes.setdefault(k, m.number(1, 5)) for k in term])) for term in letters[1:]]
    return m.add('Einsum', [x] + others, equation=equation)


def norm(m):
    x = m.shaped(2, 3, 4)
    if x is None:
        return False
    shape = m.values[x].shape
    if len(shape) < 2:
        return False
    c = shape[1]
    scale, shift = m.constant(m.data(c, low=0.5, high=1.5)), m.constant(m.data(c))
    op = m.pick('BatchNormalization', 'InstanceNormalization', 'LpNormalization', 'LayerNormalization', 'GroupNormalization',
                'MeanVarianceNormalization')
    if op == 'BatchNormalization':
        return m.add(op, [x, scale, shift, m.constant(m.data(c)), m.constant(m.data(c, low=0.5, high=1.5))], epsilon=1e-3)
    if op == 'InstanceNormalization':
        return int(np.prod(shape[2:])) > 2 and m.add(op, [x, scale, shift], epsilon=1e-2)
    if op == 'LpNormalization':
        return m.add(op, [x], axis=m.axis(len(shape)), p=m.pick(1, 2))
    if op == 'LayerNormalization' and m.opset >= 17:
        axis = m.axis(len(shape))
        tail = shape[axis % len(shape):]
        inputs = [x, m.constant(m.data(*tail, low=0.5, high=1.5))] + ([m.constant(m.data(*tail))] if m.chance() else [])
        return int(np.prod(tail)) > 2 and m.add(op, inputs, axis=axis, epsilon=1e-2)
    if op == 'GroupNormalization' and m.opset >= 21 and len(shape) > 2:
        groups = m.pick(*[g for g in range(1, c + 1) if c % g == 0])
        return m.add(op, [x, scale, shift], num_groups=groups, epsilon=1e-2)
    return op == 'MeanVarianceNormalization' and len(shape) == 4 and int(np.prod(shape)) // c > 3 and m.add(op, [x])


def recurrent(m):
    x = m.shaped(3, where=lambda x: x.shape[0] * x.shape[1] <= 60)
    if x is None:
        return False
    op, gates = m.pick(('LSTM', 4), ('GRU', 3), ('RNN', 1))
    layout = m.number(0, 1) if m.opset >= 14 and m.chance(0) else 0
    steps, batch, size = m.values[x].shape
    direction = m.pick('forward', 'reverse', 'bidirectional')
    ways, hidden = 2 if direction == 'bidirectional' else 1, m.number(1, 9)
    inputs = [x, m.constant(m.data(ways, gates * hidden, size)), m.constant(m.data(ways, gates * hidden, hidden)),
              m.constant(m.data(ways, 2 * gates * hidden)) if m.chance(0.7) else '']
    inputs.append(m.constant(m.rng.integers(1, steps + 1, batch).astype(np.int32)) if m.chance(0.2) else '')
    states = m.chance(0.4)
    for _ in range(2 if op == 'LSTM' else 1):
        inputs.append(m.constant(m.data(ways, batch, hidden)) if states else '')
    if op == 'LSTM' and m.chance(0.2):
        inputs.append(m.constant(m.data(ways, 3 * hidden)))
    while inputs[-1] == '':
        inputs.pop()
    attributes = {'direction': direction, 'hidden_size': hidden, 'layout': layout or None}
    if op == 'GRU':
        attributes['linear_before_reset'] = m.number(0, 1)
    if m.chance(0.15):
        attributes['clip'] = 1.0
    if op == 'RNN' and m.chance(0.3):
        attributes['activations'] = ['Relu'] * ways
    return m.add(op, inputs, 3 if op == 'LSTM' and m.chance() else 2, **attributes)


def quantized(m):
    """A QDQ pair: values far from where rounding turns."""
    x = m.tensor(where=lambda x: x.ndim > 0)
    if x is None or m.opset < 10:
        return False
    kind, zero = m.pick((np.uint8, 128), (np.uint8, 3), (np.int8, 0), (np.int8, -5))
    scale, zero_point = m.constant(np.float32(0.03)), m.constant(kind(zero))
    steps = m.values[x] / np.float32(0.03)
    if np.abs(steps - np.floor(steps) - 0.5).min(initial=1) < 1e-3:
        return False
    return m.add('QuantizeLinear', [x, scale, zero_point]) and m.add('DequantizeLinear', [m.made[-1], scale, zero_point])


def quantized_product(m):
    x = m.tensor(types=(np.uint8, np.int8), where=lambda x: x.ndim > 1)
    if x is None:
        return False
    kind = m.values[x].dtype.type
    inner = m.values[x].shape[-1]
    w = m.constant(m.rng.integers(-127, 128, (inner, m.number(1, 9))).astype(np.int8))
    zero = m.constant(kind(m.pick(0, 5)))
    return m.add('MatMulInteger', [x, w, zero] + ([m.constant(np.int8(0))] if m.chance() else []))


NODES = {f.__name__: f for f in (
    unary, unary_new, unary_positive, activation, binary, pow_mod, variadic, compare, cast, integers, reduce, arg, top_k, cumulative,
    softmax, matmul, gemm, einsum, norm, recurrent, quantized, quantized_product)}
