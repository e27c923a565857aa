"""Random nodes that move values: shapes, slices, indexes, joins."""
import numpy as np


def reshape(m):
    x = m.tensor()
    if x is None:
        return False
    left, shape = m.values[x].size, []
    for _ in range(m.number(0, 3)):
        divisor = m.pick(*[d for d in range(1, min(left, 16) + 1) if left % d == 0])
        shape.append(divisor)
        left //= divisor
    shape.append(left)
    if m.chance():
        shape[m.rng.integers(len(shape))] = -1
    elif m.chance(0.3) and shape[0] == m.values[x].shape[:1]:
        shape[0] = 0
    return m.add('Reshape', [x, m.ints(*shape)])


def flatten(m):
    x = m.tensor()
    return x is not None and m.add('Flatten', [x], axis=m.number(0, m.values[x].ndim))


def transpose(m):
    x = m.tensor(types=(np.float32, np.int64, np.bool_))
    if x is None:
        return False
    perm = [int(a) for a in m.rng.permutation(m.values[x].ndim)]
    return m.add('Transpose', [x], perm=None if m.chance(0.1) else perm)


def with_axes(m, op, x, axes, **attributes):
    """Axes as an attribute before opset 13, as an input since."""
    if m.opset < 13:
        return m.add(op, [x], axes=axes, **attributes)
    return m.add(op, [x, m.ints(*axes)], **attributes)


def squeeze(m):
    x = m.tensor(where=lambda x: 1 in x.shape, types=(np.float32, np.int64))
    if x is None:
        return False
    ones = [k - (m.values[x].ndim if m.chance(0.3) else 0) for k, s in enumerate(m.values[x].shape) if s == 1]
    if m.chance(0.2):
        return m.add('Squeeze', [x])
    return with_axes(m, 'Squeeze', x, ones[:m.number(1, len(ones))])


def unsqueeze(m):
    x = m.tensor(where=lambda x: x.ndim < 5, types=(np.float32, np.int64))
    if x is None:
        return False
    rank = m.values[x].ndim + (2 if m.chance(0.2) and m.values[x].ndim < 4 else 1)
    axes = [int(a) - (rank if m.opset >= 11 and m.chance(0.3) else 0) for a in m.rng.permutation(rank)[:rank - m.values[x].ndim]]
    return with_axes(m, 'Unsqueeze', x, axes)


def slices(m):
    x = m.tensor(types=(np.float32, np.int64))
    if x is None:
        return False
    shape = m.values[x].shape
    axes = sorted(a % len(shape) for a in m.some_axes(len(shape))) if shape else []
    if not axes:
        return False
    starts, ends, steps = [], [], []
    for a in axes:
        step = m.pick(1, 1, 1, 2, -1, -2) if m.opset >= 10 else 1
        begin, end = sorted((m.number(0, shape[a]), m.number(0, shape[a])))
        if begin == end:
            begin, end = 0, m.pick(2**31 - 1, 2**63 - 1, shape[a])
        if step < 0:
            begin, end = min(end, shape[a]) - 1, begin - 1
            end = -2**31 if end < 0 else end
        elif m.chance(0.3) and begin:
            begin -= shape[a]
        starts.append(begin), ends.append(end), steps.append(step)
    if m.opset < 10:
        return m.add('Slice', [x], starts=starts, ends=ends, axes=axes)
    signed = [a - (len(shape) if m.chance(0.3) else 0) for a in axes]
    return m.add('Slice', [x, m.ints(*starts), m.ints(*ends), m.ints(*signed)] + ([m.ints(*steps)] if set(steps) != {1} else []))


def split(m):
    x = m.tensor(where=lambda x: x.ndim and max(x.shape) > 1)
    if x is None:
        return False
    shape = m.values[x].shape
    axis = m.pick(*[k for k, s in enumerate(shape) if s > 1])
    first = m.number(1, shape[axis] - 1)
    sizes = [first, shape[axis] - first]
    signed = axis - (len(shape) if m.opset >= 11 and m.chance(0.3) else 0)
    if m.opset >= 18 and m.chance(0.3):
        parts = m.number(2, 3)
        return m.add('Split', [x], parts, axis=signed, num_outputs=parts)
    if m.opset < 13:
        return m.add('Split', [x], 2, axis=signed, split=sizes)
    return m.add('Split', [x, m.ints(*sizes)], 2, axis=signed)


def concat(m):
    x = m.tensor(where=lambda x: x.ndim > 0)
    if x is None:
        return False
    shape = list(m.values[x].shape)
    axis = m.number(0, len(shape) - 1)
    others = [n for n, y in m.values.items() if y.dtype == np.float32 and y.ndim == len(shape) and n not in m.constants
              and all(a == b for k, (a, b) in enumerate(zip(y.shape, shape)) if k != axis)]
    shape[axis] = m.number(1, 5)
    joined = [x, m.pick(*others)] + ([m.constant(m.data(*shape))] if m.chance(0.4) else [])
    order = m.rng.permutation(len(joined))
    return m.add('Concat', [joined[i] for i in order], axis=axis - (len(shape) if m.opset >= 11 and m.chance(0.3) else 0))


def pad(m):
    x = m.tensor(where=lambda x: x.ndim > 0)
    if x is None:
        return False
    shape = m.values[x].shape
    mode = m.pick('constant', 'reflect', 'edge', *(['wrap'] if m.opset >= 19 else []))
    axes = [k for k, s in enumerate(shape) if m.chance()] if mode != 'constant' or m.chance() else list(range(len(shape)))
    low = -1 if mode == 'constant' and m.chance(0.2) else 0
    pads = [m.number(low, min(2, shape[k] - 1 if mode != 'constant' else 2)) if k in axes else 0 for k in range(len(shape))] + \
           [m.number(low, min(2, shape[k] - 1 if mode != 'constant' else 2)) if k in axes else 0 for k in range(len(shape))]
    if m.opset < 11:
        return m.add('Pad', [x], pads=pads, mode=mode, value=m.real() if mode == 'constant' else None)
    value = [m.constant(np.float32(m.real()))] if mode == 'constant' and m.chance() else []
    if m.opset >= 18 and axes and m.chance(0.3):
        chosen = [pads[k] for k in axes] + [pads[k + len(shape)] for k in axes]
        return m.add('Pad', [x, m.ints(*chosen), value[0] if value else '', m.ints(*axes)], mode=mode)
    return m.add('Pad', [x, m.ints(*pads)] + value, mode=mode)


def indexes(m, size, *shape):
    low = -size if m.opset >= 11 and m.chance(0.3) else 0
    return m.constant(m.rng.integers(low, size, shape).astype(np.int64 if m.chance(0.7) else np.int32))


def gather(m):
    x = m.tensor(where=lambda x: x.ndim > 0, types=(np.float32, np.int64))
    if x is None:
        return False
    shape = m.values[x].shape
    axis = m.axis(len(shape))
    return m.add('Gather', [x, indexes(m, shape[axis], *[m.number(1, 3) for _ in range(m.number(0, 2))])], axis=axis)


def gather_elements(m):
    x = m.tensor(where=lambda x: x.ndim > 0)
    if x is None or m.opset < 11:
        return False
    shape = list(m.values[x].shape)
    axis = m.axis(len(shape))
    size = shape[axis]
    chosen = [m.number(1, s) for s in shape]
    chosen[axis] = m.number(1, 6)
    return m.add('GatherElements', [x, indexes(m, size, *chosen)], axis=axis)


def gather_nd(m):
    x = m.tensor(where=lambda x: x.ndim > 1)
    if x is None or m.opset < 12:
        return False
    shape = m.values[x].shape
    batch = m.number(0, 1)
    depth = m.number(1, len(shape) - batch)
    places = list(shape[:batch]) + [m.number(1, 4) for _ in range(m.number(0, 2))]
    index = np.stack([m.rng.integers(0, s, places) for s in shape[batch:batch + depth]], -1)
    return m.add('GatherND', [x, m.constant(index.astype(np.int64))], batch_dims=batch)


def scatter_nd(m):
    x = m.tensor(where=lambda x: x.ndim > 0)
    if x is None or m.opset < 11:
        return False
    shape = m.values[x].shape
    depth = m.number(1, len(shape))
    whole = int(np.prod(shape[:depth]))
    flat = m.rng.permutation(whole)[:m.number(1, min(4, whole))]
    index = np.stack(np.unravel_index(flat, shape[:depth]), -1).astype(np.int64)
    updates = m.constant(m.data(len(flat), *shape[depth:]))
    how = {'reduction': m.pick('none', 'add', 'mul')} if m.opset >= 16 else {}
    if m.opset >= 18 and m.chance():
        how = {'reduction': m.pick('max', 'min')}
    return m.add('ScatterND', [x, m.constant(index), updates], **how)


def scatter_elements(m):
    x = m.tensor(where=lambda x: x.ndim > 0)
    if x is None or m.opset < 11:
        return False
    shape = m.values[x].shape
    axis = m.number(0, len(shape) - 1)
    chosen = [m.number(1, s) for s in shape]
    index = np.argsort(m.rng.random([shape[k] if k == axis else s for k, s in enumerate(chosen)]), axis=axis)
    index = np.take(index, range(chosen[axis]), axis=axis).astype(np.int64)
    how = {'reduction': m.pick('none', 'add', 'mul')} if m.opset >= 16 else {}
    return m.add('ScatterElements', [x, m.constant(index), m.constant(m.data(*chosen))], axis=axis, **how)


def expand(m):
    x = m.tensor(where=lambda x: 1 in x.shape or x.ndim < 3)
    if x is None:
        return False
    shape = [m.number(1, 4) if s == 1 else m.pick(1, s) for s in m.values[x].shape]
    return m.add('Expand', [x, m.ints(*([m.number(1, 3)] if len(shape) < 4 and m.chance(0.3) else []), *shape)])


def tile(m):
    x = m.tensor(where=lambda x: x.ndim > 0)
    return x is not None and m.add('Tile', [x, m.ints(*[m.number(1, 3) for _ in m.values[x].shape])])


def shape_of(m):
    x = m.tensor()
    if x is None:
        return False
    if m.opset >= 15 and m.chance(0.3):
        return m.add('Shape', [x], start=m.number(0, 1))
    return m.add(m.pick('Shape', 'Size'), [x])


def shape_arithmetic(m):
    """A shape that is computed: Shape, Gather, Concat, Reshape, as exporters write view(n, -1)."""
    x = m.tensor(where=lambda x: x.ndim > 1)
    if x is None or not m.add('Shape', [x]):
        return False
    if not m.add('Gather', [m.made[-1], m.ints(m.number(0, m.values[x].ndim - 1))], axis=0):
        return False
    size = m.made[-1]
    parts = [size, m.ints(-1)] if m.chance() else [m.ints(-1), size]
    return m.add('Concat', parts, axis=0) and m.add('Reshape', [x, m.made[-1]])


def constant_of_shape(m):
    x = m.tensor()
    if x is None or not m.add('Shape', [x]) or not m.add('ConstantOfShape', [m.made[-1]]):
        return False
    return m.add('Add', [x, m.made[-1]])


def triangle(m):
    x = m.tensor(where=lambda x: x.ndim > 1)
    return m.opset >= 14 and m.add('Trilu', [x] + ([m.constant(np.int64(m.number(-3, 3)))] if m.chance() else []), upper=m.number(0, 1))


def reverse_sequence(m):
    x = m.tensor(where=lambda x: x.ndim > 1)
    if x is None or m.opset < 10:
        return False
    shape = m.values[x].shape
    batch = m.number(0, 1)
    lengths = m.ints(*m.rng.integers(1, shape[1 - batch] + 1, shape[batch]))
    return m.add('ReverseSequence', [x, lengths], batch_axis=batch, time_axis=1 - batch)


def center_crop_pad(m):
    x = m.tensor(where=lambda x: x.ndim > 1)
    if x is None or m.opset < 18:
        return False
    axes = m.some_axes(m.values[x].ndim)
    return m.add('CenterCropPad', [x, m.ints(*[m.number(1, 9) for _ in axes])], axes=axes)


def one_hot(m):
    index = m.constant(m.rng.integers(-4, 5, [m.number(1, 4) for _ in range(m.number(1, 3))]).astype(np.int64))
    x = m.tensor((1, 2))
    if x is None:
        return False
    values = m.constant(np.float32([m.real(), m.real()]))
    rank = m.values[index].ndim
    name = m.input(m.values[index]) if len(m.inputs) < 4 else None
    return m.add('OneHot', [name, m.constant(np.int64(5)), values], axis=m.number(-1, rank))


NODES = {f.__name__: f for f in (
    reshape, flatten, transpose, squeeze, unsqueeze, slices, split, concat, pad, gather, gather_elements, gather_nd, scatter_nd,
    scatter_elements, expand, tile, shape_of, shape_arithmetic, constant_of_shape, triangle, reverse_sequence, center_crop_pad,
    one_hot)}
