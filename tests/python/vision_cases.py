"""Random single-layer nets for the operators on images and boxes with ONNX semantics (see tensor_cases.py).

The first axis of every input is the batch of its blob, as enginerun --batch takes it: 1 where there is none. Answers and the inputs
of `node` are as ONNX has them.
"""
import itertools

import numpy as np

from tensor_cases import Case, floats, ints, pick, wide


def windows(rng, count, low=1):
    """Kernel, strides, dilations, pads and spatial sizes that go together."""
    kernel = [int(v) for v in rng.integers(1, 4, count)]
    strides = [int(v) for v in rng.integers(1, 4, count)]
    dilations = [int(pick(rng, 1, 1, 2)) for _ in range(count)]
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    pads = [int(rng.integers(0, k)) for k in kernel * 2]
    space = [max(e, low) + int(rng.integers(0, 6)) for e in extents]
    return kernel, strides, dilations, pads, space


def output_size(size, extent, stride, before, after, ceil_mode):
    room = size + before + after - extent
    count = (room + (stride - 1 if ceil_mode else 0)) // stride + 1
    return count - ((count - 1) * stride >= size + before)


def pool_reference(x, kernel, strides, dilations, pads, ceil_mode, function):
    """function(values, indexes of the values, taps in the padded input) for each window of each plane."""
    count, space = len(kernel), x.shape[2:]
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    out = [output_size(space[i], extents[i], strides[i], pads[i], pads[count + i], ceil_mode) for i in range(count)]
    results = np.empty(x.shape[:2] + tuple(out), object)
    for at in np.ndindex(*results.shape):
        taps, padded = [], 1
        for i in range(count):
            places = at[2 + i] * strides[i] - pads[i] + np.arange(kernel[i]) * dilations[i]
            taps.append([int(p) for p in places if 0 <= p < space[i]])
            padded *= sum(p < space[i] + pads[count + i] for p in places)
        spots = list(itertools.product(*taps))
        results[at] = function([x[at[:2] + spot] for spot in spots], [at[:2] + spot for spot in spots], padded)
    return results


def window_pool(rng):
    count, op = int(rng.integers(1, 4)), int(rng.integers(4))
    kernel, strides, dilations, pads, space = windows(rng, count)
    ceil_mode, include, p, order = (int(v) for v in (rng.integers(2), rng.integers(2), rng.integers(1, 4), rng.integers(2)))
    dtype = pick(rng, np.float32, np.uint8) if op < 2 else np.float32
    shape = (int(rng.integers(2, 4)), int(rng.integers(1, 4)), *space)
    x = rng.uniform(-2, 2, shape).astype(dtype) if dtype is np.float32 else rng.integers(0, 255, shape).astype(dtype)
    params = f'0={op} 5={ceil_mode} 7={include} 8={p} 9={order}' + ints(1, kernel) + ints(2, strides) + ints(3, dilations)
    attributes = {'kernel_shape': kernel, 'strides': strides, 'dilations': dilations, 'ceil_mode': ceil_mode}
    auto_pad = int(rng.integers(1, 4)) if rng.random() < 0.3 else 0
    if auto_pad:
        params += f' 6={auto_pad}'
        attributes['auto_pad'] = [None, 'SAME_UPPER', 'SAME_LOWER', 'VALID'][auto_pad]
        pads = [0] * (2 * count)
        for i in range(count if auto_pad < 3 else 0):
            total = max((-(-space[i] // strides[i]) - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1 - space[i], 0)
            pads[i] = total // 2 if auto_pad == 1 else (total + 1) // 2
            pads[count + i] = total - pads[i]
        attributes.pop('ceil_mode')
        params += ' 5=0'
        ceil_mode = 0
    else:
        params += ints(4, pads)
        attributes['pads'] = pads
    rule = [lambda v, at, padded: max(v), lambda v, at, padded: min(v),
            lambda v, at, padded: np.sum(v, dtype=np.float64) / (padded if include else len(v)),
            lambda v, at, padded: np.sum(np.abs(np.array(v, np.float64))**p)**(1 / p)][op]
    want = [pool_reference(x, kernel, strides, dilations, pads, ceil_mode, rule).astype(dtype)]
    node = None
    if op == 0:
        at = pool_reference(x, kernel, strides, dilations, pads, ceil_mode, lambda v, at, padded: at[int(np.argmax(v))])
        spatial = list(space) if not order else list(space)[::-1]
        number = lambda a: int(np.ravel_multi_index(tuple(a[:2]) + (tuple(a[2:]) if not order else tuple(a[2:])[::-1]), (*shape[:2], *spatial)))
        want.append(np.array([number(a) for a in at.ravel()], np.int32).reshape(at.shape))
        node = ('MaxPool', [x], {**attributes, 'storage_order': order})
    elif op == 2:
        node = ('AveragePool', [x], {**attributes, 'count_include_pad': include})
    elif op == 3:
        node = ('LpPool', [x], {**attributes, 'p': p})
    if auto_pad in (1, 2) and max(dilations) > 1:
        node = None  # ONNX Runtime pads as if there were no dilation
    return Case(params, [x], want, node, 1e-5 if dtype is np.float32 and op > 1 else 0.0)


def max_unpool(rng):
    count = int(rng.integers(1, 4))
    kernel = [int(v) for v in rng.integers(1, 4, count)]
    pads = [int(rng.integers(0, k)) if k > 1 and rng.random() < 0.3 else 0 for k in kernel * 2]
    space = [int(v) for v in rng.integers(2, 5, count)]
    shape = (int(rng.integers(2, 4)), int(rng.integers(1, 3)), *space)
    strides = kernel
    out = [(space[i] - 1) * strides[i] + kernel[i] - pads[i] - pads[count + i] for i in range(count)]
    given = rng.random() < 0.5
    if given:
        out = [o + int(rng.integers(0, 3)) for o in out]
    full = shape[:2] + tuple(out)
    x = rng.uniform(-2, 2, shape).astype(np.float32)
    if np.prod(full) < x.size:
        return max_unpool(rng)
    index = rng.permutation(int(np.prod(full)))[:x.size].reshape(shape).astype(np.int32)
    want = np.zeros(full, np.float32)
    want.reshape(-1)[index.ravel()] = x.ravel()
    params = ints(1, kernel) + ints(2, strides) + ints(4, pads)
    node = ('MaxUnpool', [x, wide(index)], {'kernel_shape': kernel, 'strides': strides, 'pads': pads})
    if given:
        node[1].append(np.array(full, np.int64))
        return Case(params, [x, index, np.array([full], np.int32)], [want], node)
    return Case(params, [x, index], [want], node)


def col2im(rng):
    count = int(rng.integers(1, 4))
    kernel, strides, dilations, pads, space = windows(rng, count)
    n, c = (int(v) for v in (rng.integers(2, 4), rng.integers(1, 4)))
    blocks = [(space[i] + pads[i] + pads[count + i] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(count)]
    x = rng.uniform(-1, 1, (n, c * int(np.prod(kernel)), int(np.prod(blocks)))).astype(np.float32)
    split = x.reshape(n, c, *kernel, *blocks)
    want = np.zeros((n, c, *space), np.float64)
    for tap in np.ndindex(*kernel):
        for block in np.ndindex(*blocks):
            at = [block[i] * strides[i] + tap[i] * dilations[i] - pads[i] for i in range(count)]
            if all(0 <= a < s for a, s in zip(at, space)):
                want[(slice(None), slice(None), *at)] += split[(slice(None), slice(None), *tap, *block)]
    node = ('Col2Im', [x, np.array(space, np.int64), np.array(kernel, np.int64)],
            {'strides': strides, 'dilations': dilations, 'pads': pads})
    params = ints(0, space) + ints(1, kernel) + ints(2, strides) + ints(3, dilations) + ints(4, pads)
    return Case(params, [x], [want.astype(np.float32)], node, 1e-5, by_reference=count != 2)


def affine_grid(rng):
    count, align = int(rng.integers(2, 4)), int(rng.integers(2))
    space = [int(v) for v in rng.integers(2, 6, count)]
    n = int(rng.integers(2, 4))
    theta = rng.uniform(-1, 1, (n, count, count + 1)).astype(np.float32)
    lines = [np.linspace(-1, 1, s) if align else (2 * np.arange(s) + 1) / s - 1 for s in space]
    grid = np.stack([*np.meshgrid(*lines, indexing='ij')][::-1] + [np.ones(space)], -1)
    want = np.einsum('nij,...j->n...i', theta.astype(np.float64), grid).astype(np.float32)
    size = [n, 2, *space]
    return Case(ints(0, size) + f' 1={align}', [theta], [want], ('AffineGrid', [theta, np.array(size, np.int64)], {'align_corners': align}), 1e-5)


def iou(a, b):
    low, high = np.maximum(a[:2], b[:2]), np.minimum(a[2:], b[2:])
    common = np.prod(np.maximum(high - low, 0))
    return common / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - common)


def non_max_suppression(rng):
    batch, classes, count = (int(v) for v in (rng.integers(1, 4), rng.integers(1, 4), rng.integers(1, 20)))
    center = int(rng.integers(2))
    corner, size = rng.uniform(0, 1, (batch, count, 2)), rng.uniform(0.2, 0.6, (batch, count, 2))
    boxes = np.concatenate([corner, size if center else corner + size], -1).astype(np.float32)
    if not center and rng.random() < 0.3:
        boxes = boxes[..., [2, 1, 0, 3]].copy()
    scores = rng.uniform(0, 1, (batch, classes, count)).astype(np.float32)
    most, overlap, least = int(rng.integers(0, 7)), float(np.float32(rng.uniform(0, 0.9))), float(np.float32(rng.uniform(0, 0.9)))
    rows = []
    for b, label in np.ndindex(batch, classes):
        kept = []
        for i in np.argsort(-scores[b, label], kind='stable'):
            box = boxes[b, i].astype(np.float64)
            box = np.concatenate([box[:2] - box[2:] / 2, box[:2] + box[2:] / 2]) if center else np.concatenate(
                [np.minimum(box[:2], box[2:]), np.maximum(box[:2], box[2:])])
            if scores[b, label, i] > np.float32(least) and len(kept) < most and all(iou(box, other) <= overlap for other in kept):
                kept.append(box)
                rows.append((b, label, i))
    want = np.array(rows, np.int32).reshape(-1, 3)
    node = ('NonMaxSuppression', [boxes, scores, np.array([most], np.int64), np.array([overlap], np.float32), np.array([least], np.float32)],
            {'center_point_box': center})
    fed = [boxes, scores] if rng.random() < 0.5 else [boxes[None], scores[None]]
    if rng.random() < 0.5:
        return Case(f'0={center} 1={most} 2={overlap!r} 3={least!r}', fed, [want], node)
    fed += [np.array([[most]], np.int32), np.array([[overlap]], np.float32), np.array([[least]], np.float32)]
    return Case(f'0={center}', fed, [want], node)


# Resize

MODES = ['nearest', 'linear', 'cubic']
TRANSFORMS = ['half_pixel', 'pytorch_half_pixel', 'align_corners', 'asymmetric', 'tf_crop_and_resize', 'half_pixel_symmetric']
NEAREST = ['round_prefer_floor', 'round_prefer_ceil', 'floor', 'ceil']
POLICIES = ['stretch', 'not_larger', 'not_smaller']


def source_position(transform, i, size, out, scale, start, end):
    length = scale * size
    if transform == 2:
        return 0.0 if length == 1 else i * (size - 1) / (length - 1)
    if transform == 3:
        return i / scale
    if transform == 4:
        return (start + end) * (size - 1) / 2 if length == 1 else start * (size - 1) + i * (end - start) * (size - 1) / (length - 1)
    if transform == 1 and length == 1:
        return -0.5
    shift = size / 2 * (1 - out / length) if transform == 5 else 0
    return shift + (i + 0.5) / scale - 0.5


def kernel_weight(mode, x, a):
    x = abs(x)
    if mode == 1:
        return max(1 - x, 0)
    return (a + 2) * x**3 - (a + 3) * x**2 + 1 if x <= 1 else a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0


def resample_matrix(size, out, scale, options, start=0.0, end=1.0):
    """out x size weights, and which rows are extrapolated."""
    matrix, outside = np.zeros((out, size)), np.zeros(out, bool)
    for i in range(out):
        x = source_position(options['transform'], i, size, out, scale, start, end)
        outside[i] = options['transform'] == 4 and not 0 <= x <= size - 1
        if options['mode'] == 0:
            at = [np.ceil(x - 0.5), np.floor(x + 0.5), np.floor(x), np.ceil(x)][options['nearest']]
            matrix[i, int(np.clip(at, 0, size - 1))] = 1
            continue
        stretch = min(scale, 1.0) if options['antialias'] else 1.0
        reach = int(np.ceil(options['mode'] / stretch)) + 1
        total = 0
        for at in range(int(np.floor(x)) - reach, int(np.floor(x)) + reach + 2):
            if options['exclude'] and not 0 <= at < size:
                continue
            w = kernel_weight(options['mode'], (at - x) * stretch, options['a'])
            matrix[i, int(np.clip(at, 0, size - 1))] += w
            total += w
        matrix[i] /= total or 1
    return matrix, outside


def resize(rng):
    rank = int(rng.integers(2, 5))
    x = rng.uniform(-1, 1, [int(v) for v in rng.integers(2, 7, rank)]).astype(np.float32)
    options = {'mode': int(rng.integers(3)), 'transform': int(rng.integers(6)), 'nearest': int(rng.integers(4)), 'a': pick(rng, -0.75, -0.5),
               'exclude': int(rng.integers(2)), 'antialias': int(rng.integers(4) == 0)}
    options['antialias'] *= options['mode'] != 0
    options['exclude'] *= options['mode'] == 2
    if options['transform'] == 4:
        options['antialias'] = 0
    axes = [rank - 2, rank - 1] if rng.random() < 0.7 else [rank - 1]
    by_scale, policy = rng.random() < 0.5, 0
    params = ' '.join(f'{i}={v}' for i, v in enumerate([options['mode'], options['transform'], options['nearest'], options['a'],
                                                        options['exclude'], 0.25, options['antialias']]))
    attributes = {'mode': MODES[options['mode']], 'coordinate_transformation_mode': TRANSFORMS[options['transform']],
                  'nearest_mode': NEAREST[options['nearest']], 'cubic_coeff_a': options['a'], 'exclude_outside': options['exclude'],
                  'extrapolation_value': 0.25, 'antialias': options['antialias'], 'axes': axes}
    scale = {a: float(np.float32(pick(rng, 0.5, 0.7, 1.0, 1.5, 2.0, 2.3))) for a in axes}
    out = {a: int(np.floor(np.float32(scale[a]) * np.float32(x.shape[a]))) for a in axes}
    lists = [None, None, None]  # roi, scales, sizes
    if by_scale:
        lists[1] = np.array([scale[a] for a in axes], np.float32)
    else:
        out = {a: int(rng.integers(1, 12)) for a in axes}
        lists[2] = np.array([out[a] for a in axes], np.int64)
        scale = {a: out[a] / x.shape[a] for a in axes}
        if options['transform'] != 4 and rng.random() < 0.4:
            policy = int(rng.integers(1, 3))
            common = (min if policy == 1 else max)(scale.values())
            scale = {a: common for a in axes}
            out = {a: int(common * x.shape[a] + 0.5) for a in axes}
            attributes['keep_aspect_ratio_policy'] = POLICIES[policy]
            if min(out.values()) < 1:
                return resize(rng)
    roi = {a: (0.0, 1.0) for a in axes}
    if options['transform'] == 4:
        roi = {a: (float(np.float32(rng.uniform(-0.2, 0.5))), float(np.float32(rng.uniform(0.5, 1.2)))) for a in axes}
        lists[0] = np.array([roi[a][0] for a in axes] + [roi[a][1] for a in axes], np.float32)
    want = x.astype(np.float64)
    for a in axes:
        matrix, outside = resample_matrix(x.shape[a], out[a], scale[a], options, *roi[a])
        want = np.moveaxis(np.tensordot(matrix, np.moveaxis(want, a, 0), 1), 0, a)
        want[tuple(outside if i == a else slice(None) for i in range(rank))] = 0.25
    node = ('Resize', [x, *lists], attributes)
    params += f' 7={policy}' + ints(9, axes)
    # ONNX goes by scale * size where its runtime rounds that first.
    cut = options['transform'] in (1, 2, 4) and any(scale[a] * x.shape[a] != out[a] for a in axes)
    if rng.random() < 0.5:
        params += ''.join(f(k, v) for k, f, v in [(10, floats, lists[1]), (11, ints, lists[2]), (12, floats, lists[0])] if v is not None)
        return Case(params, [x[None]], [want.astype(np.float32)], node, 1e-5, by_reference=cut)
    params += f' 8={sum(1 << i for i in range(3) if lists[i] is not None)}'
    fed = [v[None].astype(np.int32) if v.dtype == np.int64 else v[None] for v in lists if v is not None]
    return Case(params, [x[None], *fed], [want.astype(np.float32)], node, 1e-5, by_reference=cut)


# Boxes into images

def corners_at(plane, y, x):
    """The four pixels around a point, each times its bilinear weight."""
    h, w = plane.shape
    y0, x0 = min(int(y), h - 1), min(int(x), w - 1)
    y1, x1, fy, fx = min(y0 + 1, h - 1), min(x0 + 1, w - 1), y - y0, x - x0
    return [plane[y0, x0] * (1 - fx) * (1 - fy), plane[y0, x1] * fx * (1 - fy), plane[y1, x0] * (1 - fx) * fy, plane[y1, x1] * fx * fy]


def crop_and_resize(rng):
    n, c, h, w = (int(v) for v in (rng.integers(1, 4), rng.integers(1, 4), rng.integers(2, 9), rng.integers(2, 9)))
    out = [int(v) for v in rng.integers(1, 6, 2)]
    image = rng.uniform(-1, 1, (n, c, h, w)).astype(np.float32)
    count, nearest = int(rng.integers(1, 5)), int(rng.integers(2))
    boxes = rng.uniform(-0.3, 1.3, (count, 4)).astype(np.float32)
    index = rng.integers(0, n, count).astype(np.int32)
    want = np.full((count, c, *out), -0.5)
    for b in range(count):
        y1, x1, y2, x2 = boxes[b].astype(np.float64)
        spots = []
        for low, high, size, steps in [(y1, y2, h, out[0]), (x1, x2, w, out[1])]:
            spots.append([low * (size - 1) + i * (high - low) * (size - 1) / (steps - 1) for i in range(steps)] if steps > 1
                         else [0.5 * (low + high) * (size - 1)])
        for (i, y), (j, x) in itertools.product(enumerate(spots[0]), enumerate(spots[1])):
            if 0 <= y <= h - 1 and 0 <= x <= w - 1:
                for q in range(c):
                    plane = image[index[b], q].astype(np.float64)
                    want[b, q, i, j] = plane[int(np.floor(y + 0.5)), int(np.floor(x + 0.5))] if nearest else sum(corners_at(plane, y, x))
    node = ('CropAndResize', [image, boxes, index, np.array(out, np.int32)],
            {'domain': 'com.microsoft', 'mode': ['bilinear', 'nearest'][nearest], 'extrapolation_value': -0.5})
    params = f'0={out[0]} 1={out[1]} 2={nearest} 3=-0.5'
    return Case(params, [image, boxes[None], index[None]], [want.astype(np.float32)], node, 1e-4)


def roi_align(rng):
    n, c, h, w = (int(v) for v in (rng.integers(1, 4), rng.integers(1, 4), rng.integers(3, 9), rng.integers(3, 9)))
    out = [int(v) for v in rng.integers(1, 5, 2)]
    image = rng.uniform(-1, 1, (n, c, h, w)).astype(np.float32)
    count, mode, half, ratio, scale = (int(rng.integers(1, 5)), int(rng.integers(2)), int(rng.integers(2)), int(rng.integers(0, 4)),
                                       pick(rng, 1.0, 0.5))
    corner = rng.uniform(-2, 6, (count, 2)) / scale
    boxes = np.concatenate([corner, corner + rng.uniform(0.5, 8, (count, 2)) / scale], 1).astype(np.float32)
    index = rng.integers(0, n, count).astype(np.int32)
    want = np.zeros((count, c, *out))
    for b in range(count):
        x1, y1, x2, y2 = boxes[b].astype(np.float64) * scale - (0.5 if half else 0)
        rw, rh = (x2 - x1, y2 - y1) if half else (max(x2 - x1, 1), max(y2 - y1, 1))
        bh, bw = rh / out[0], rw / out[1]
        gh, gw = (ratio, ratio) if ratio else (int(np.ceil(bh)), int(np.ceil(bw)))
        for q, i, j in np.ndindex(c, *out):
            plane, samples = image[index[b], q].astype(np.float64), []
            for u, v in np.ndindex(gh, gw):
                y, x = y1 + i * bh + (u + 0.5) * bh / gh, x1 + j * bw + (v + 0.5) * bw / gw
                inside = -1 <= y <= h and -1 <= x <= w
                samples.append(corners_at(plane, min(max(y, 0), h - 1), min(max(x, 0), w - 1)) if inside else [0.0])
            want[b, q, i, j] = max(map(max, samples)) if mode else np.mean([sum(s) for s in samples])
    node = ('RoiAlign', [image, boxes, wide(index)],
            {'mode': ['avg', 'max'][mode], 'output_height': out[0], 'output_width': out[1], 'sampling_ratio': ratio, 'spatial_scale': scale,
             'coordinate_transformation_mode': 'half_pixel' if half else 'output_half_pixel'})
    params = f'0={mode} 1={out[0]} 2={out[1]} 3={ratio} 4={scale} 5={half}'
    return Case(params, [image, boxes[None], index[None]], [want.astype(np.float32)], node, 1e-4)


GENERATORS = {
    'WindowPool': window_pool, 'MaxUnpool': max_unpool, 'Col2Im': col2im, 'AffineGrid': affine_grid,
    'NonMaxSuppression': non_max_suppression, 'Resize': resize, 'CropAndResize': crop_and_resize, 'OnnxROIAlign': roi_align,
}
