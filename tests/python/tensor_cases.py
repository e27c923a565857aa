"""Random single-layer nets for the tensor operators, each with the answer that NumPy gives.

A generator takes a numpy Generator and returns a Case. `node` names the ONNX operator of the same meaning, so that the closed forms
can be checked against ONNX Runtime: (op_type, inputs, attributes), inputs with None where one is left out.
"""
from dataclasses import dataclass
from typing import Any

import numpy as np

INT_MAX = 2**31 - 1


@dataclass
class Case:
    params: str
    inputs: list
    expected: list
    node: Any = None
    tolerance: float = 0.0  # in parts of the largest value; 0: the same bits
    by_reference: bool = False  # ask ONNX's reference implementation: its runtime departs from it


def pick(rng, *choices):
    return choices[rng.integers(len(choices))]


def ints(key, values):
    return f' {-23300 - key}={len(values)},' + ','.join(str(int(v)) for v in values) if len(values) else ''


def floats(key, values):
    return f' {-23300 - key}={len(values)},' + ','.join(repr(float(np.float32(v))) for v in values) if len(values) else ''


def sizes(rng, rank=None, low=1, high=6):
    return tuple(int(v) for v in rng.integers(low, high + 1, rank or rng.integers(1, 5)))


def values(rng, shape, dtype=None):
    """Few different values, so that ties happen; floats otherwise."""
    dtype = dtype or pick(rng, np.float32, np.int32, np.int8, np.uint8)
    if dtype is np.float32 and rng.random() < 0.7:
        return rng.uniform(-2, 2, shape).astype(dtype)
    return rng.integers(0 if dtype is np.uint8 else -5, 6, shape).astype(dtype)


def axis_of(rng, rank):
    """An axis from the front, and the same as a layer or ONNX may name it."""
    axis = int(rng.integers(rank))
    return axis, axis - rank if rng.random() < 0.5 else axis


def wide(a):
    return a.astype(np.int64)


def as_vector(a):
    """A scalar is one axis of size 1."""
    a = np.asarray(a)
    return a.reshape(1) if a.ndim == 0 else a


# Shapes

def shape_of(rng):
    x = values(rng, sizes(rng), np.float32)
    start, end = int(rng.integers(-5, 5)), int(rng.integers(-5, 7))
    want = np.array(x.shape, np.int32)[max(start + x.ndim if start < 0 else start, 0):max(end + x.ndim, 0) if end < 0 else end]
    if rng.random() < 0.3:
        return Case('2=1', [x], [np.array([x.size], np.int32)], ('Size', [x], {}))
    return Case(f'0={start} 1={end}', [x], [want], ('Shape', [x], {'start': start, 'end': end}))


def spread(rng, shape):
    """A shape that broadcasts to `shape`."""
    some = [s if rng.random() < 0.6 else 1 for s in shape]
    return tuple(some[int(rng.integers(0, len(some))):])


def expand(rng):
    full = sizes(rng)
    x = values(rng, spread(rng, full))
    wanted = spread(rng, full) if rng.random() < 0.4 else full
    want = x * np.ones(wanted, x.dtype)
    node = ('Expand', [x, np.array(wanted, np.int64)], {})
    if rng.random() < 0.5:
        return Case(ints(0, wanted), [x], [want], node)
    return Case('', [x, np.array(wanted, np.int32)], [want], node)


def reshape_to(rng):
    x = values(rng, sizes(rng))
    wanted = list(rng.permutation(x.shape))
    if rng.random() < 0.5:
        wanted = [int(np.prod(wanted[:2])), *wanted[2:]]
    elif len(wanted) < 4:
        wanted.insert(int(rng.integers(len(wanted) + 1)), 1)
    answer = x.reshape(wanted)
    for i in range(min(len(wanted), x.ndim)):
        if wanted[i] == x.shape[i] and rng.random() < 0.5:
            wanted[i] = 0
    if rng.random() < 0.5:
        wanted[int(rng.integers(len(wanted)))] = -1
    node = ('Reshape', [x, np.array(wanted, np.int64)], {})
    if rng.random() < 0.5:
        return Case(ints(0, wanted), [x], [answer], node)
    return Case('', [x, np.array(wanted, np.int32)], [answer], node)


# Gather and scatter

def indexes(rng, size, shape):
    return rng.integers(-size, size, shape).astype(np.int32)


def gather(rng):
    x = values(rng, sizes(rng, int(rng.integers(1, 4))))
    axis, name = axis_of(rng, x.ndim)
    if rng.random() < 0.3:
        index = indexes(rng, x.shape[axis], ())
        return Case(f'0={name} 1=1', [x, index.reshape(1)], [as_vector(np.take(x, index, axis))], ('Gather', [x, wide(index)], {'axis': name}))
    index = indexes(rng, x.shape[axis], sizes(rng, int(rng.integers(1, 6 - x.ndim))))
    return Case(f'0={name}', [x, index], [np.take(x, index, axis)], ('Gather', [x, wide(index)], {'axis': name}))


def elements_index(rng, x, axis, unique=False):
    shape = [int(rng.integers(1, s + 1)) for s in x.shape]
    if not unique:
        shape[axis] = int(rng.integers(1, 8))
        return indexes(rng, x.shape[axis], shape)
    lines = np.moveaxis(np.empty(shape, np.int32), axis, -1)
    index = np.array([rng.permutation(x.shape[axis])[:shape[axis]] for _ in range(lines.size // shape[axis])], np.int32)
    return np.ascontiguousarray(np.moveaxis(index.reshape(lines.shape), -1, axis))


def gather_elements(rng):
    x = values(rng, sizes(rng))
    axis, name = axis_of(rng, x.ndim)
    index = elements_index(rng, x, axis)
    part = x[tuple(slice(None) if i == axis else slice(s) for i, s in enumerate(index.shape))]
    return Case(f'0={name}', [x, index], [np.take_along_axis(part, index, axis)], ('GatherElements', [x, wide(index)], {'axis': name}))


def gather_nd(rng):
    x = values(rng, sizes(rng))
    batch = int(rng.integers(0, x.ndim))
    k = int(rng.integers(1, x.ndim - batch + 1))
    while True:
        lead = x.shape[:batch] + sizes(rng, int(rng.integers(1, 3)))[:int(rng.integers(0, 2)) + (batch == 0)]
        if len(lead) + 1 <= 4 and len(lead) + x.ndim - batch - k <= 4:
            break
    index = np.stack([indexes(rng, x.shape[batch + i], lead) for i in range(k)], -1)
    want = np.empty(lead + x.shape[batch + k:], x.dtype)
    for at in np.ndindex(*lead):
        want[at] = x[at[:batch] + tuple(index[at])]
    return Case(f'0={batch}', [x, index], [as_vector(want)], ('GatherND', [x, wide(index)], {'batch_dims': batch}))


def compress(rng):
    x = values(rng, sizes(rng))
    flat = rng.random() < 0.3
    axis, name = axis_of(rng, x.ndim)
    keep = rng.random(rng.integers(1, (x.size if flat else x.shape[axis]) + 1)) < 0.6
    want = np.compress(keep, x, None if flat else axis)
    return Case('' if flat else f'0={name}', [x, keep], [want], ('Compress', [x, keep], {} if flat else {'axis': name}))


REDUCTIONS = ['none', 'add', 'mul', 'max', 'min']


def combine(reduction, old, new):
    return [new, old + new, old * new, np.maximum(old, new), np.minimum(old, new)][reduction]


def scatter_elements(rng):
    x = values(rng, sizes(rng), pick(rng, np.float32, np.int32))
    axis, name = axis_of(rng, x.ndim)
    reduction = int(rng.integers(5))
    index = elements_index(rng, x, axis, unique=reduction == 0)
    updates = values(rng, index.shape, x.dtype.type)
    want = x.copy()
    for at in np.ndindex(*index.shape):
        to = tuple(int(index[at]) if i == axis else v for i, v in enumerate(at))
        want[to] = combine(reduction, want[to], updates[at])
    attributes = {'axis': name, 'reduction': REDUCTIONS[reduction]}
    return Case(f'0={name} 1={reduction}', [x, index, updates], [want], ('ScatterElements', [x, wide(index), updates], attributes), 1e-6)


def scatter_nd(rng):
    x = values(rng, sizes(rng), pick(rng, np.float32, np.int32))
    k = int(rng.integers(1, x.ndim + 1))
    reduction = int(rng.integers(5))
    places = int(np.prod(x.shape[:k]))
    count = int(rng.integers(1, places + 1))
    numbers = rng.permutation(places)[:count] if reduction == 0 else rng.integers(0, places, count)
    index = np.stack(np.unravel_index(numbers, x.shape[:k]), -1).astype(np.int32)
    index -= (rng.random(index.shape) < 0.5) * np.array(x.shape[:k], np.int32)
    updates = values(rng, (count, *x.shape[k:]), x.dtype.type)
    want = x.copy()
    for row, update in zip(index, updates):
        want[tuple(row)] = combine(reduction, want[tuple(row)], update)
    node = ('ScatterND', [x, wide(index), updates], {'reduction': REDUCTIONS[reduction]})
    return Case(f'1={reduction}', [x, index, updates], [want], node, 1e-6)


# Values

ARITHMETIC = ['Add', 'Sub', 'Mul', 'Div', 'Mod', 'Mod', 'Pow', 'Max', 'Min']
COMPARISONS = ['Equal', 'Less', 'Greater', 'LessOrEqual', 'GreaterOrEqual']


def quotient(a, b):
    return a / b if a.dtype == np.float32 else (np.sign(a) * np.sign(b) * (abs(a) // abs(b))).astype(a.dtype)


def tensor_binary(rng):
    full = sizes(rng)
    op = int(rng.integers(22))
    dtype = bool if 14 <= op <= 16 else pick(rng, np.int32, np.int8, np.uint8) if op >= 17 else pick(rng, np.float32, np.int32, np.uint8)
    shapes = [full, spread(rng, full)][::pick(rng, 1, -1)]
    a, b = (rng.random(s) < 0.5 if dtype is bool else values(rng, s, dtype) for s in shapes)
    attributes, tolerance = {}, 0.0
    if op in (3, 4, 5):
        b[b == 0] = 3
    if op == 6:
        a, b = (np.abs(a) + 1, b) if dtype is np.float32 else (a % 4, np.abs(b) % 3)
        a, b = a.astype(dtype), b.astype(dtype)
    if op < 9:
        functions = [np.add, np.subtract, np.multiply, quotient, np.mod, np.fmod, np.power, np.maximum, np.minimum]
        want = functions[op](a, b).astype(dtype)
        tolerance = 1e-6 if dtype is np.float32 else 0.0
        node = (ARITHMETIC[op], [a, b], {'fmod': 1} if op == 5 else {})
        if (op == 4 and dtype is np.float32) or (dtype is np.uint8 and op != 4):
            node = None  # ONNX or its runtime has no such form
    elif op < 14:
        want = [np.equal, np.less, np.greater, np.less_equal, np.greater_equal][op - 9](a, b)
        node = (COMPARISONS[op - 9], [a, b], {}) if dtype is not np.uint8 else None
    elif op < 17:
        want = [np.logical_and, np.logical_or, np.logical_xor][op - 14](a, b)
        node = (['And', 'Or', 'Xor'][op - 14], [a, b], {})
    elif op < 20:
        want = [np.bitwise_and, np.bitwise_or, np.bitwise_xor][op - 17](a, b)
        node = (['BitwiseAnd', 'BitwiseOr', 'BitwiseXor'][op - 17], [a, b], {})
    else:
        b = (np.abs(b) % 9).astype(dtype)
        unsigned = {np.int32: np.uint32, np.int8: np.uint8, np.uint8: np.uint8}[dtype]
        u, v = a.astype(unsigned), b.astype(np.uint64)
        want = [lambda: u.astype(np.uint64) << v, lambda: u.astype(np.uint64) >> v][op - 20]().astype(unsigned).astype(dtype)
        node = ('BitShift', [a, b], {'direction': ['LEFT', 'RIGHT'][op - 20]}) if dtype is np.uint8 and (b < 8).all() else None
    if want.dtype == bool:
        want = want.astype(np.uint8)
    return Case(f'0={op}', [a, b], [want], node, tolerance)


def where(rng):
    full = sizes(rng)
    shapes = [full, spread(rng, full), spread(rng, full)]
    order = rng.permutation(3)
    condition = rng.random(shapes[order[0]]) < 0.5
    dtype = pick(rng, np.float32, np.int32, np.uint8)
    x, y = values(rng, shapes[order[1]], dtype), values(rng, shapes[order[2]], dtype)
    return Case('', [condition, x, y], [np.where(condition, x, y)], ('Where', [condition, x, y], {}))


def tensor_unary(rng):
    op = int(rng.integers(8))
    shape = sizes(rng)
    if op in (4, 5):
        x = rng.choice(np.array([np.nan, np.inf, -np.inf, 0, -1, 3.4e38], np.float32), shape)
        negative, positive = int(rng.integers(2)), int(rng.integers(2))
        if op == 4:
            return Case('0=4', [x], [np.isnan(x).astype(np.uint8)], ('IsNaN', [x], {}))
        want = (np.isposinf(x) & bool(positive)) | (np.isneginf(x) & bool(negative))
        return Case(f'0=5 1={negative} 2={positive}', [x], [want.astype(np.uint8)],
                    ('IsInf', [x], {'detect_negative': negative, 'detect_positive': positive}))
    if op == 6:
        x = rng.random(shape) < 0.5
        return Case('0=6', [x], [(~x).astype(np.uint8)], ('Not', [x], {}))
    x = values(rng, shape, pick(rng, np.int32, np.int8, np.uint8) if op == 7 else pick(rng, np.float32, np.int32, np.int8))
    if op == 3 and x.dtype == np.float32:
        x = np.round(x * 4) / 2  # halves
    want = [np.abs, np.negative, np.sign, np.round, None, None, None, np.invert][op](x).astype(x.dtype)
    node = (['Abs', 'Neg', 'Sign', 'Round', '', '', '', 'BitwiseNot'][op], [x], {})
    return Case(f'0={op}', [x], [want], None if op == 3 and x.dtype != np.float32 else node)


def cast_to(rng):
    to = int(rng.integers(7))
    dtype = pick(rng, np.float32, np.int32, np.int8, np.uint8)
    x = rng.uniform(-300, 300, sizes(rng)).astype(np.float32) if dtype is np.float32 else rng.integers(-400, 400, sizes(rng)).astype(dtype)
    if to >= 3 and to < 6 and dtype is np.float32:
        want_type = [np.int32, np.int8, np.uint8][to - 3]
        want = np.clip(np.trunc(x), np.iinfo(want_type).min, np.iinfo(want_type).max).astype(want_type)
        node = ('Cast', [x], {'to': want_type}) if to == 3 else None  # ONNX leaves limits undefined
    else:
        want_type = [np.float32, np.float16, np.float32, np.int32, np.int8, np.uint8, bool][to]
        want = x.astype(want_type)
        node = ('Cast', [x], {'to': want_type}) if to != 2 else None
    if want.dtype == bool:
        want = want.astype(np.uint8)
    # enginerun widens f16 and bf16 in its outputs
    want = want.astype(np.float32) if want.dtype == np.float16 else want
    return Case(f'0={to}', [x], [want], node, [0, 1e-3, 1e-2, 0, 0, 0, 0][to])


# ONNX's number: exponent bits, mantissa bits, bias, largest value, what is beyond it without saturate.
FLOAT_FORMATS = {
    10: (5, 10, 15, 65504, np.inf), 16: (8, 7, 127, 255 * 2.0**120, np.inf), 17: (4, 3, 7, 448, np.nan), 18: (4, 3, 8, 240, np.nan),
    19: (5, 2, 15, 57344, np.inf), 20: (5, 2, 16, 57344, np.nan), 23: (2, 1, 1, 6, 6), 27: (2, 3, 1, 7.5, 7.5), 28: (3, 2, 3, 28, 28),
}
INT_TYPES = {4: (16, False, np.int32), 5: (16, True, np.int32), 21: (4, False, np.uint8), 22: (4, True, np.int8),
             25: (2, False, np.uint8), 26: (2, True, np.int8)}


def narrow_to(rng):
    if rng.random() < 0.4:
        kind = pick(rng, *INT_TYPES)
        bits, signed, dtype = INT_TYPES[kind]
        x = rng.integers(-2**31 if dtype is np.int32 else -128, 2**31 if dtype is np.int32 else 128, sizes(rng)).astype(dtype)
        low = wide(x) & (2**bits - 1)
        return Case(f'0={kind}', [x], [np.where(signed & (low >> (bits - 1) == 1), low - 2**bits, low).astype(dtype)])
    kind, saturate, mode = pick(rng, *FLOAT_FORMATS), int(rng.integers(2)), int(rng.integers(3))
    _, mantissa, bias, largest, beyond = FLOAT_FORMATS[kind]
    x = (rng.uniform(-2, 2, sizes(rng)) * 2.0**rng.integers(-20, 20)).astype(np.float32)
    step = 2.0**(np.maximum(np.frexp(np.abs(x).astype(np.float64))[1] - 1, 1 - bias) - mantissa)
    want = np.copysign((np.rint, np.ceil, np.floor)[mode](np.abs(x) / step) * step, x)
    want = np.where(np.abs(want) > largest, np.copysign(largest if saturate else beyond, x), want).astype(np.float32)
    return Case(f'0={kind} 1={saturate} 2={mode}', [x], [want])


def bit_cast(rng):
    kinds = {1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 10: np.float16}
    held = {np.uint16: np.int32, np.int16: np.int32, np.float16: np.float32}
    source = pick(rng, *kinds)
    target = pick(rng, *[k for k, t in kinds.items() if np.dtype(t).itemsize == np.dtype(kinds[source]).itemsize])
    x = values(rng, sizes(rng), np.float32 if kinds[source] in held else kinds[source])
    x = x.astype(np.int32).astype(kinds[source]) if source in (4, 5) else x.astype(kinds[source])
    want = x.view(kinds[target])
    plain = [a.astype(held.get(kinds[k], kinds[k])) for a, k in ((x, source), (want, target))]
    return Case(f'0={source} 1={target}', [plain[0]], [plain[1]])


# Tensors out of little

def constant_of_shape(rng):
    shape = sizes(rng)
    kind, dtype = pick(rng, (0, np.float32), (3, np.int32), (4, np.int8), (5, np.uint8))
    value = dtype(rng.integers(0, 100)) + dtype(0.5 if kind == 0 else 0)
    params = f'0={kind} ' + (f'1={float(value)}' if kind == 0 else f'2={int(value)}')
    return Case(params, [np.array(shape, np.int32)], [np.full(shape, value, dtype)],
                ('ConstantOfShape', [np.array(shape, np.int64)], {'value': np.array([value], dtype)}))


def range_of(rng):
    if rng.random() < 0.5:
        start, limit = rng.integers(-20, 20, 2)
        delta = pick(rng, -5, -1, 1, 2, 7)
        triple = [np.array(v, np.int32) for v in (start, limit, delta)]
    else:
        start, limit = rng.uniform(-5, 5, 2)
        triple = [np.array(v, np.float32) for v in (start, limit, pick(rng, -0.5, 0.25, 1.5))]
    want = np.arange(*[float(v) for v in triple]).astype(triple[0].dtype)
    return Case('', [v.reshape(1) for v in triple], [want], ('Range', triple, {}), 1e-6)


def eye_like(rng):
    x = values(rng, sizes(rng, 2))
    k = int(rng.integers(-4, 5))
    kind, dtype = pick(rng, (-1, x.dtype.type), (0, np.float32), (3, np.int32), (5, np.uint8))
    node = ('EyeLike', [x], {'k': k, 'dtype': dtype}) if dtype in (np.float32, np.int32) and x.dtype != np.int8 else None
    return Case(f'0={k} 1={kind}', [x], [np.eye(*x.shape, k=k, dtype=dtype)], node)


def one_hot(rng):
    depth = int(rng.integers(1, 7))
    scalar = rng.random() < 0.2
    index = rng.integers(-depth - 2, depth + 2, () if scalar else sizes(rng, int(rng.integers(1, 4)))).astype(np.int32)
    axis, name = axis_of(rng, index.ndim + 1)
    pair = values(rng, 2, pick(rng, np.float32, np.int32))
    inside = np.where((index >= -depth) & (index < depth), index % depth, -1)
    hot = np.expand_dims(inside, axis) == np.arange(depth).reshape([depth if i == axis else 1 for i in range(index.ndim + 1)])
    want = np.where(hot, pair[1], pair[0])
    node = ('OneHot', [wide(index), np.array(depth, np.int64), pair], {'axis': name})
    params = f'0={name} 2={int(scalar)}'
    if rng.random() < 0.5:
        return Case(params + f' 1={depth}', [as_vector(index), pair], [want], node)
    return Case(params, [as_vector(index), pair, np.array([depth], np.int32)], [want], node)


# Search

def non_zero(rng):
    x = values(rng, sizes(rng))
    x[rng.random(x.shape) < 0.5] = 0
    return Case('', [x], [np.stack(np.nonzero(x)).astype(np.int32)], ('NonZero', [x], {}) if x.dtype != np.int8 else None)


def arg_reduce(rng):
    x = values(rng, sizes(rng), pick(rng, np.float32, np.int32, np.uint8))
    least, keep, last = (int(v) for v in rng.integers(0, 2, 3))
    axis, name = axis_of(rng, x.ndim)
    function = np.argmin if least else np.argmax
    want = x.shape[axis] - 1 - function(np.flip(x, axis), axis) if last else function(x, axis)
    want = np.expand_dims(want, axis) if keep else as_vector(want)
    node = (['ArgMax', 'ArgMin'][least], [x], {'axis': name, 'keepdims': keep, 'select_last_index': last})
    return Case(f'0={least} 1={name} 2={keep} 3={last}', [x], [want.astype(np.int32)], node)


def top_k(rng):
    x = values(rng, sizes(rng), pick(rng, np.float32, np.int32))
    axis, name = axis_of(rng, x.ndim)
    k = int(rng.integers(0, x.shape[axis] + 1))
    largest = int(rng.integers(2))
    order = np.argsort(-x if largest else x, axis, kind='stable').take(range(k), axis)
    node = ('TopK', [x, np.array([k], np.int64)], {'axis': name, 'largest': largest, 'sorted': 1})
    params = f'1={name} 2={largest}'
    if rng.random() < 0.3:
        order.sort(axis)
        params, node = params + ' 3=0', None
    want = [np.take_along_axis(x, order, axis), order.astype(np.int32)]
    if rng.random() < 0.5:
        return Case(f'0={k} {params}', [x], want, node)
    return Case(params, [x, np.array([k], np.int32)], want, node)


def unique(rng):
    x = values(rng, sizes(rng, high=4), pick(rng, np.float32, np.int32, np.int8))
    if rng.random() < 0.7:
        x = (x > 0).astype(x.dtype)
    flat, ordered = rng.random() < 0.4, int(rng.integers(2))
    axis, name = axis_of(rng, x.ndim)
    y, first, inverse, counts = np.unique(x, True, True, True, axis=None if flat else axis)
    inverse = inverse.reshape(-1)
    if not ordered:
        rank = np.argsort(first)
        y, inverse = np.take(y, rank, 0 if flat else axis), np.argsort(rank)[inverse]
        first, counts = first[rank], counts[rank]
    want = [y] + [v.astype(np.int32) for v in (first, inverse, counts)]
    attributes = {'sorted': ordered} if flat else {'sorted': ordered, 'axis': name}
    node = ('Unique', [x], attributes) if x.dtype != np.int32 else None
    return Case(f'1={ordered}' + ('' if flat else f' 0={name}'), [x], want, node)


# Along axes

def cum_sum(rng):
    x = values(rng, sizes(rng), pick(rng, np.float32, np.int32))
    axis, name = axis_of(rng, x.ndim)
    exclusive, reverse = (int(v) for v in rng.integers(0, 2, 2))
    want = np.flip(x, axis) if reverse else x
    total = np.cumsum(want, axis, dtype=np.float64)
    want = total - want if exclusive else total
    want = (np.flip(want, axis) if reverse else want).astype(x.dtype)
    node = ('CumSum', [x, np.array(name, np.int64)], {'exclusive': exclusive, 'reverse': reverse})
    params = f'1={exclusive} 2={reverse}'
    if rng.random() < 0.5:
        return Case(f'{params} 0={name}', [x], [want], node, 1e-6)
    return Case(params, [x, np.array([name], np.int32)], [want], node, 1e-6)


def trilu(rng):
    x = values(rng, sizes(rng, int(rng.integers(2, 5))))
    upper, k = int(rng.integers(2)), int(rng.integers(-7, 8))
    want = np.triu(x, k) if upper else np.tril(x, k)
    node = ('Trilu', [x, np.array(k, np.int64)], {'upper': upper}) if x.dtype == np.float32 else None
    if rng.random() < 0.5:
        return Case(f'0={upper} 1={k}', [x], [want], node)
    return Case(f'0={upper}', [x, np.array([k], np.int32)], [want], node)


def log_softmax(rng):
    x = rng.uniform(-50, 50, sizes(rng)).astype(np.float32)
    axis, name = axis_of(rng, x.ndim)
    shifted = x.astype(np.float64) - x.max(axis, keepdims=True)
    return Case(f'0={name}', [x], [(shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))).astype(np.float32)],
                ('LogSoftmax', [x], {'axis': name}), 1e-5)


def hardmax(rng):
    x = values(rng, sizes(rng), np.float32)
    axis, name = axis_of(rng, x.ndim)
    want = np.zeros_like(x)
    np.put_along_axis(want, np.expand_dims(x.argmax(axis), axis), 1, axis)
    return Case(f'0={name}', [x], [want], ('Hardmax', [x], {'axis': name}))


def lp_normalization(rng):
    x = values(rng, sizes(rng), np.float32)
    axis, name = axis_of(rng, x.ndim)
    p = int(rng.integers(1, 3))
    norm = (np.abs(x.astype(np.float64))**p).sum(axis, keepdims=True)**(1 / p)
    want = np.divide(x, norm, out=np.zeros(x.shape), where=norm != 0)
    return Case(f'0={name} 1={p}', [x], [want.astype(np.float32)], ('LpNormalization', [x], {'axis': name, 'p': p}), 1e-5)


def mean_variance(rng):
    x = rng.uniform(-3, 3, sizes(rng)).astype(np.float32)
    axes = [int(a) for a in rng.permutation(x.ndim)[:rng.integers(0, x.ndim + 1)]]
    over = tuple(axes) or None
    wide_x = x.astype(np.float64)
    want = (wide_x - wide_x.mean(over, keepdims=True)) / (wide_x.std(over, keepdims=True) + 1e-9)
    if (wide_x.std(over) < 1e-3).any():  # one value alone: 0, which rounding must not blow up
        want = np.where(wide_x.std(over, keepdims=True) < 1e-3, 0, want)
    return Case(ints(0, axes), [x], [want.astype(np.float32)], None, 1e-5)


def det(rng):
    n = int(rng.integers(1, 6))
    x = rng.uniform(-2, 2, (*sizes(rng, int(rng.integers(1, 3)))[:int(rng.integers(0, 3))], n, n)).astype(np.float32)
    want = np.linalg.det(x.astype(np.float64)).astype(np.float32)
    return Case('', [x], [as_vector(want)], ('Det', [x], {}), 1e-4)


# Moves

def strided_slice(rng):
    x = values(rng, sizes(rng))
    axes = [int(a) for a in rng.permutation(x.ndim)[:rng.integers(1, x.ndim + 1)]]
    if rng.random() < 0.3:
        axes = list(range(len(axes)))
    starts, ends, steps, cut = [], [], [], [slice(None)] * x.ndim
    for axis in axes:
        size, step = x.shape[axis], int(pick(rng, 1, 1, 2, 3, -1, -2))
        start, end = int(rng.integers(-size, size + 3)), int(rng.integers(-size - 3, size + 3))
        if rng.random() < 0.3:
            start, end = (0, INT_MAX) if step > 0 else (INT_MAX, -INT_MAX)
        starts.append(start), ends.append(end), steps.append(step)
        cut[axis] = slice(start, end, step)
    want = x[tuple(cut)]
    named = [a - x.ndim if rng.random() < 0.5 else a for a in axes]
    lists = [starts, ends, named, steps]
    if axes == list(range(len(axes))) and rng.random() < 0.5:
        lists[2] = []
    node = ('Slice', [x] + [np.array(v, np.int64) if v else None for v in lists], {})
    if rng.random() < 0.5 or not lists[2]:
        return Case(''.join(ints(i, v) for i, v in enumerate(lists)), [x], [want], node)
    return Case('', [x] + [np.array(v, np.int32) for v in lists], [want], node)


def stack(rng):
    x = [values(rng, sizes(rng, int(rng.integers(1, 4))))]
    x += [values(rng, x[0].shape, x[0].dtype.type) for _ in range(rng.integers(0, 3))]
    axis, name = axis_of(rng, x[0].ndim + 1)
    return Case(f'0={name}', x, [np.stack(x, axis)])


def unstack(rng):
    x = values(rng, sizes(rng))
    axis, name = axis_of(rng, x.ndim)
    return Case(f'0={name}', [x], [as_vector(part) for part in np.moveaxis(x, axis, 0)])


def reverse_sequence(rng):
    x = values(rng, sizes(rng, int(rng.integers(2, 5))))
    batch, time = (int(a) for a in rng.permutation(2 if rng.random() < 0.5 else x.ndim)[:2])
    lengths = rng.integers(1, x.shape[time] + 1, x.shape[batch]).astype(np.int32)
    moved = np.moveaxis(x, (batch, time), (0, 1)).copy()
    for i, length in enumerate(lengths):
        moved[i, :length] = moved[i, :length][::-1].copy()
    node = ('ReverseSequence', [x, wide(lengths)], {'batch_axis': batch, 'time_axis': time}) if batch + time == 1 else None
    return Case(f'0={batch} 1={time}', [x, lengths], [np.moveaxis(moved, (0, 1), (batch, time))], node)


def depth_to_space(rng):
    size, mode, inverse = int(rng.integers(1, 4)), int(rng.integers(2)), int(rng.integers(2))
    c, h, w = sizes(rng, 3)
    deep = values(rng, (c * size * size, h, w), pick(rng, np.float32, np.uint8))
    split = deep.reshape((size, size, c, h, w) if mode == 0 else (c, size, size, h, w))
    wide_form = split.transpose((2, 3, 0, 4, 1) if mode == 0 else (0, 3, 1, 4, 2)).reshape(c, h * size, w * size)
    params = f'0={size} 1={mode} 2={inverse}'
    if inverse:
        node = ('SpaceToDepth', [wide_form[None]], {'blocksize': size}) if mode == 0 and deep.dtype == np.float32 else None
        return Case(params, [wide_form], [deep], node)
    node = ('DepthToSpace', [deep[None]], {'blocksize': size, 'mode': ['DCR', 'CRD'][mode]}) if deep.dtype == np.float32 else None
    return Case(params, [deep], [wide_form], node)


GENERATORS = {
    'ShapeOf': shape_of, 'Expand': expand, 'ReshapeTo': reshape_to, 'Gather': gather, 'GatherElements': gather_elements,
    'GatherND': gather_nd, 'Compress': compress, 'ScatterElements': scatter_elements, 'ScatterND': scatter_nd,
    'TensorBinary': tensor_binary, 'Where': where, 'TensorUnary': tensor_unary, 'CastTo': cast_to,
    'NarrowTo': narrow_to, 'BitCast': bit_cast,
    'ConstantOfShape': constant_of_shape, 'Range': range_of, 'EyeLike': eye_like, 'OneHot': one_hot, 'NonZero': non_zero,
    'ArgReduce': arg_reduce, 'TopK': top_k, 'Unique': unique, 'CumSum': cum_sum, 'Trilu': trilu, 'LogSoftmax': log_softmax,
    'Hardmax': hardmax, 'LpNormalization': lp_normalization, 'MeanVarianceNormalization': mean_variance, 'Det': det,
    'StridedSlice': strided_slice, 'Stack': stack, 'Unstack': unstack, 'ReverseSequence': reverse_sequence,
    'DepthToSpace': depth_to_space,
}
