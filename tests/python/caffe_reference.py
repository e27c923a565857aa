"""What Caffe's layers compute, in NumPy: written from their documented behaviour, independent of the converter.

Blobs are arrays with the batch first. Each function takes a Layer (see caffe_net.py), its input arrays, and gives the list of
its outputs. Sums are taken in float64. Formulas: the layer catalogue of Caffe 1.0 and, for layers of forks, the papers and forks
that are named at the functions.
"""
import math

import numpy as np


def pair(param, name, default, own=('{}_h', '{}_w')):
    """(height, width) of a parameter that has one value for both, two, or a field for each."""
    stem = 'kernel' if name == 'kernel_size' else name
    names = [pattern.format(stem) for pattern in own]
    if any(n in param for n in names):
        return tuple(param.get(n, default) for n in names)
    value = param.get(name, default)
    return tuple(value) if isinstance(value, (list, tuple)) and len(value) == 2 else (np.ravel(value)[0],) * 2


def windows(x, kernel, stride, dilation=(1, 1)):
    """A view (n, c, out_h, out_w, kernel_h, kernel_w) of x."""
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]
    view = np.lib.stride_tricks.sliding_window_view(x, extent, axis=(2, 3))
    return view[:, :, ::stride[0], ::stride[1], ::dilation[0], ::dilation[1]]


def convolution(layer, x):
    p = layer.param('convolution_param')
    kernel, stride = pair(p, 'kernel_size', 0), pair(p, 'stride', 1)
    pad, dilation = pair(p, 'pad', 0), pair(p, 'dilation', 1)
    group = p.get('group', 1)
    if layer.type in ('DepthwiseConvolution', 'ConvolutionDepthwise') and group == 1:
        group = p['num_output']
    x = np.pad(x, ((0, 0), (0, 0), (pad[0],) * 2, (pad[1],) * 2))
    view = windows(x, kernel, stride, dilation)
    n, c, oh, ow = view.shape[:4]
    columns = np.ascontiguousarray(view.transpose(0, 2, 3, 1, 4, 5)).reshape(n * oh * ow, group, -1)
    weight = layer.blobs[0].reshape(group, p['num_output'] // group, -1)
    y = np.einsum('pgk,gok->pgo', columns, weight, optimize=True) if group == c and group > 1 else \
        np.stack([columns[:, g] @ weight[g].T for g in range(group)], axis=1)
    y = y.reshape(n, oh, ow, -1).transpose(0, 3, 1, 2)
    if p.get('bias_term', True):
        y = y + layer.blobs[1].reshape(1, -1, 1, 1)
    return [y]


def deconvolution(layer, x):
    p = layer.param('convolution_param')
    kernel, stride = pair(p, 'kernel_size', 0), pair(p, 'stride', 1)
    pad, dilation = pair(p, 'pad', 0), pair(p, 'dilation', 1)
    group = p.get('group', 1)
    n, c, h, w = x.shape
    per_group = p['num_output'] // group
    weight = layer.blobs[0].reshape(group, c // group, per_group, *kernel)
    size = [(s - 1) * st + (k - 1) * d + 1 for s, st, k, d in zip((h, w), stride, kernel, dilation)]
    y = np.zeros((n, group, per_group, *size))
    parts = x.reshape(n, group, c // group, h, w)
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            rows = slice(i * dilation[0], i * dilation[0] + (h - 1) * stride[0] + 1, stride[0])
            columns = slice(j * dilation[1], j * dilation[1] + (w - 1) * stride[1] + 1, stride[1])
            y[..., rows, columns] += np.einsum('ngihw,gio->ngohw', parts, weight[..., i, j])
    y = y.reshape(n, -1, *size)[:, :, pad[0]:size[0] - pad[0], pad[1]:size[1] - pad[1]]
    if p.get('bias_term', True):
        y = y + layer.blobs[1].reshape(1, -1, 1, 1)
    return [y]


def pool_count(size, kernel, stride, pad, any_pad, floor):
    steps = (size + 2 * pad - kernel) / stride
    count = (math.floor(steps) if floor else math.ceil(steps)) + 1
    if any_pad and (count - 1) * stride >= size + pad:
        count -= 1
    return count


def pool(x, op, kernel, stride, pad, floor=False):
    n, c, h, w = x.shape
    counts = [pool_count(s, k, st, pd, max(pad) > 0, floor) for s, k, st, pd in zip((h, w), kernel, stride, pad)]
    y, mask = np.zeros((n, c, *counts)), np.zeros((n, c, *counts))
    for i in range(counts[0]):
        top = i * stride[0] - pad[0]
        bottom = min(top + kernel[0], h + pad[0])
        for j in range(counts[1]):
            left = j * stride[1] - pad[1]
            right = min(left + kernel[1], w + pad[1])
            part = x[:, :, max(top, 0):min(bottom, h), max(left, 0):min(right, w)]
            if op == 'STOCHASTIC':
                y[:, :, i, j] = (part * part).sum(axis=(2, 3)) / part.sum(axis=(2, 3))
                continue
            if op == 'AVE':
                y[:, :, i, j] = part.sum(axis=(2, 3)) / ((bottom - top) * (right - left))
                continue
            flat = part.reshape(n, c, -1)
            best = flat.argmax(axis=2)
            y[:, :, i, j] = flat.max(axis=2)
            mask[:, :, i, j] = (max(top, 0) + best // part.shape[3]) * w + max(left, 0) + best % part.shape[3]
    return y, mask


def pooling(layer, x):
    p = layer.param('pooling_param')
    op, floor = str(p.get('pool', 'MAX')), str(p.get('round_mode', 'CEIL')) == 'FLOOR'
    if p.get('global_pooling', False):
        kernel, stride, pad = x.shape[2:], (1, 1), (0, 0)
    else:
        kernel, stride, pad = pair(p, 'kernel_size', 0), pair(p, 'stride', 1), pair(p, 'pad', 0)
    return list(pool(x, op, kernel, stride, pad, floor))[:len(layer.top)]


def spp(layer, x):
    p = layer.param('spp_param')
    parts = []
    for level in range(p['pyramid_height']):
        bins = 2 ** level
        kernel = [math.ceil(s / bins) for s in x.shape[2:]]
        pad = [(k * bins - s + 1) // 2 for k, s in zip(kernel, x.shape[2:])]
        parts.append(pool(x, str(p.get('pool', 'MAX')), kernel, kernel, pad)[0].reshape(len(x), -1))
    return [np.concatenate(parts, axis=1)]


def inner_product(layer, x):
    p = layer.param('inner_product_param')
    axis = p.get('axis', 1) % x.ndim
    weight = layer.blobs[0].reshape(layer.blobs[0].shape[-2:])
    weight = weight if p.get('transpose', False) else weight.T
    y = x.reshape(*x.shape[:axis], -1) @ weight
    return [y + layer.blobs[1].ravel() if p.get('bias_term', True) else y]


def embed(layer, x):
    p = layer.param('embed_param')
    y = layer.blobs[0][x.astype(int)]
    return [y + layer.blobs[1] if p.get('bias_term', True) else y]


def im2col(layer, x):
    p = layer.param('convolution_param')
    pad = pair(p, 'pad', 0)
    x = np.pad(x, ((0, 0), (0, 0), (pad[0],) * 2, (pad[1],) * 2))
    view = windows(x, pair(p, 'kernel_size', 0), pair(p, 'stride', 1), pair(p, 'dilation', 1))
    n, c, h, w = view.shape[:4]
    return [view.transpose(0, 1, 4, 5, 2, 3).reshape(n, -1, h, w)]


def batch_norm(layer, x):
    p = layer.param('batch_norm_param')
    shape = [1, -1] + [1] * (x.ndim - 2)
    if p.get('use_global_stats', True):
        factor = layer.blobs[2].ravel()[0]
        factor = 0 if factor == 0 else 1 / factor
        mean, variance = layer.blobs[0] * factor, layer.blobs[1] * factor
    else:
        axes = (0, *range(2, x.ndim))
        mean, variance = x.mean(axis=axes), x.var(axis=axes)
    y = (x - mean.reshape(shape)) / np.sqrt(variance.reshape(shape) + p.get('eps', 1e-5))
    if p.get('scale_bias'):  # of NVIDIA's Caffe
        y = y * layer.blobs[3].reshape(shape) + layer.blobs[4].reshape(shape)
    return [y]


def bn(layer, x):
    """SegNet's, with mean and variance (four blobs) or folded into slope and bias (two)."""
    slope, bias, *statistics = [blob.reshape(1, -1, 1, 1) for blob in layer.blobs]
    if statistics:
        x = (x - statistics[0]) / np.sqrt(statistics[1] + layer.param('bn_param').get('eps', 1e-5))
    return [x * slope + bias]


def spread(values, x, axis):
    """Values for the axes from `axis` on, to be multiplied with x."""
    return values.reshape([1] * axis + list(values.shape) + [1] * (x.ndim - axis - values.ndim))


def scale(layer, x, factor=None):
    p = layer.param('scale_param')
    axis = p.get('axis', 1) % x.ndim
    blobs = list(layer.blobs)
    factor = blobs.pop(0) if factor is None else factor
    if p.get('num_axes', 1) == 0 and factor.size == 1:
        factor = factor.reshape(())
    y = x * spread(factor, x, axis)
    return [y + spread(blobs[0].reshape(factor.shape), x, axis) if p.get('bias_term', False) else y]


def bias(layer, x, values=None):
    p = layer.param('bias_param')
    values = layer.blobs[0] if values is None else values
    return [x + spread(values.reshape(()) if p.get('num_axes', 1) == 0 else values, x, p.get('axis', 1) % x.ndim)]


def axpy(layer, factor, x, y):
    """SENet's: a factor for each channel."""
    return [factor.reshape(*x.shape[:2], 1, 1) * x + y]


def prelu(layer, x):
    slope = layer.blobs[0].ravel()
    slope = slope[0] if slope.size == 1 else slope.reshape([1, -1] + [1] * (x.ndim - 2))
    return [np.where(x > 0, x, x * slope)]


def lrn(layer, x):
    p = layer.param('lrn_param')
    size, alpha, beta = p.get('local_size', 5), p.get('alpha', 1.0), p.get('beta', 0.75)
    half = (size - 1) // 2
    if str(p.get('norm_region', 'ACROSS_CHANNELS')) == 'WITHIN_CHANNEL':
        mean = pool(x * x, 'AVE', (size, size), (1, 1), (half, half))[0]
        return [x * (1 + alpha * mean) ** -beta]
    squares = np.pad(x * x, ((0, 0), (half, half), (0, 0), (0, 0)))
    total = sum(squares[:, i:i + x.shape[1]] for i in range(size))
    return [x * (p.get('k', 1.0) + alpha / size * total) ** -beta]


def mvn(layer, x):
    p = layer.param('mvn_param')
    axes = tuple(range(1 if p.get('across_channels', False) else 2, x.ndim))
    y = x - x.mean(axis=axes, keepdims=True)
    if p.get('normalize_variance', True):
        y = y / (np.sqrt((y * y).mean(axis=axes, keepdims=True)) + p.get('eps', 1e-9))
    return [y]


def eltwise(layer, *xs):
    p = layer.param('eltwise_param')
    op = str(p.get('operation', 'SUM'))
    if op == 'SUM':
        return [sum(c * x for c, x in zip(p.get('coeff', [1.0] * len(xs)), xs))]
    return [np.prod(xs, axis=0) if op == 'PROD' else np.max(xs, axis=0)]


def softmax(layer, x):
    axis = layer.param('softmax_param').get('axis', 1)
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return [e / e.sum(axis=axis, keepdims=True)]


def arg_max(layer, x):
    p = layer.param('argmax_param')
    k, values = p.get('top_k', 1), p.get('out_max_val', False)
    if 'axis' in p:
        order = np.flip(np.argsort(x, axis=p['axis'], kind='stable'), axis=p['axis'])
        order = np.take(order, range(k), axis=p['axis'])
        return [np.take_along_axis(x, order, axis=p['axis']) if values else order.astype(np.float64)]
    flat = x.reshape(len(x), -1)
    order = np.flip(np.argsort(flat, axis=1, kind='stable'), axis=1)[:, :k]
    rows = [order] + [np.take_along_axis(flat, order, axis=1)] * values
    return [np.stack(rows, axis=1).astype(np.float64)]


def reduction(layer, x):
    p = layer.param('reduction_param')
    axes = tuple(range(p.get('axis', 0) % x.ndim, x.ndim))
    op = str(p.get('operation', 'SUM'))
    y = {'SUM': x, 'ASUM': np.abs(x), 'SUMSQ': x * x, 'MEAN': x}[op]
    y = y.mean(axis=axes) if op == 'MEAN' else y.sum(axis=axes)
    return [y * p.get('coeff', 1.0)]


def concat(layer, *xs):
    p = layer.param('concat_param')
    return [np.concatenate(xs, axis=p.get('concat_dim', p.get('axis', 1)))]


def slices(layer, x):
    p = layer.param('slice_param')
    axis = p.get('slice_dim', p.get('axis', 1))
    return np.split(x, p.get('slice_point', len(layer.top)), axis=axis)


def flatten(layer, x):
    p = layer.param('flatten_param')
    first, last = p.get('axis', 1) % x.ndim, p.get('end_axis', -1) % x.ndim
    return [x.reshape(*x.shape[:first], -1, *x.shape[last + 1:])]


def reshape(layer, x):
    p = layer.param('reshape_param')
    dims = list(p['shape']['dim'])
    first = p.get('axis', 0)
    first = first + x.ndim + 1 if first < 0 else first
    end = x.ndim if p.get('num_axes', -1) == -1 else first + p['num_axes']
    dims = [x.shape[first + i] if d == 0 else d for i, d in enumerate(dims)]
    return [x.reshape(*x.shape[:first], *dims, *x.shape[end:])]


def permute(layer, x):
    order = list(layer.param('permute_param')['order'])
    return [x.transpose(order + [a for a in range(x.ndim) if a not in order])]


def continuation_indicator(layer, x):
    marks = np.ones(x.shape[:2])
    marks[0] = 0
    return [marks]


def crop(layer, x, like):
    p = layer.param('crop_param')
    axis, offset = p.get('axis', 2) % x.ndim, np.ravel(p.get('offset', 0))
    cut = [slice(None)] * x.ndim
    for a in range(axis, x.ndim):
        start = int(offset[a - axis if len(offset) > 1 else 0])
        cut[a] = slice(start, start + like.shape[a])
    return [x[tuple(cut)]]


def tile(layer, x):
    p = layer.param('tile_param')
    return [np.concatenate([x] * p['tiles'], axis=p.get('axis', 1))]


def shuffle_channel(layer, x):
    group = layer.param('shuffle_channel_param').get('group', 1)
    n, c, h, w = x.shape
    return [x.reshape(n, group, c // group, h, w).swapaxes(1, 2).reshape(x.shape)]


def interp(layer, x, like=None):
    """DeepLab's: bilinear with the corners in place; negative pads cut off."""
    p = layer.param('interp_param')
    begin, end = p.get('pad_beg', 0), p.get('pad_end', 0)
    x = x[:, :, -begin:x.shape[2] + end, -begin:x.shape[3] + end]
    size = []
    for axis, name in ((2, 'height'), (3, 'width')):
        s = (x.shape[axis] - 1) // p.get('shrink_factor', 1) + 1
        s += (s - 1) * (p.get('zoom_factor', 1) - 1)
        size.append(like.shape[axis] if like is not None else p.get(name, s))
    for axis, count in ((2, size[0]), (3, size[1])):
        length = x.shape[axis]
        at = np.arange(count) * ((length - 1) / (count - 1) if count > 1 else 0)
        low = np.minimum(at.astype(int), length - 1)
        high = np.minimum(low + 1, length - 1)
        part = (at - low).reshape([-1 if a == axis else 1 for a in range(4)])
        x = np.take(x, low, axis) * (1 - part) + np.take(x, high, axis) * part
    return [x]


def upsample(layer, x, mask=None):
    """Repeated values (YOLO's forks), or each to where it came from (SegNet's)."""
    p = layer.param('upsample_param')
    factor = p.get('scale', 2)
    if mask is None:
        return [x.repeat(factor, axis=2).repeat(factor, axis=3)]
    n, c, h, w = x.shape
    size = p.get('upsample_h', h * factor), p.get('upsample_w', w * factor)
    y = np.zeros((n, c, size[0] * size[1]))
    np.put_along_axis(y, mask.reshape(n, c, -1).astype(int), x.reshape(n, c, -1), axis=2)
    return [y.reshape(n, c, *size)]


def reorg(layer, x):
    """YOLOv2's in Caffe: the place within a patch is the slower part of the channel."""
    s = layer.param('reorg_param')['stride']
    n, c, h, w = x.shape
    y = x.reshape(n, c, h // s, s, w // s, s).transpose(0, 3, 5, 1, 2, 4)
    return [y.reshape(n, c * s * s, h // s, w // s)]


def normalize(layer, x):
    """SSD's, of ParseNet."""
    p = layer.param('norm_param')
    axes = (1, 2, 3) if p.get('across_spatial', True) else (1,)
    length = np.sqrt((x * x).sum(axis=axes, keepdims=True) + p.get('eps', 1e-10))
    return [x / length * layer.blobs[0].reshape(1, -1, 1, 1)]


def prior_sizes(p):
    ratios = [1.0]
    for ratio in p.get('aspect_ratio', []):
        if all(abs(ratio - r) >= 1e-6 for r in ratios):
            ratios += [ratio, 1 / ratio] if p.get('flip', True) else [ratio]
    for i, least in enumerate(p['min_size']):
        yield least, least
        if 'max_size' in p:
            yield (math.sqrt(least * p['max_size'][i]),) * 2
        for ratio in ratios[1:]:
            yield least * math.sqrt(ratio), least / math.sqrt(ratio)


def prior_box(layer, x, image):
    """SSD's: boxes as parts of the image, then variances."""
    p = layer.param('prior_box_param')
    h, w = pair(p, 'img_size', 0, ('img_h', 'img_w'))
    h, w = (h, w) if h else image.shape[2:]
    step_h, step_w = pair(p, 'step', 0)
    step_h, step_w = (step_h, step_w) if step_h else (h / x.shape[2], w / x.shape[3])
    offset, boxes = p.get('offset', 0.5), []
    for i in range(x.shape[2]):
        for j in range(x.shape[3]):
            cy, cx = (i + offset) * step_h, (j + offset) * step_w
            boxes += [[(cx - sw / 2) / w, (cy - sh / 2) / h, (cx + sw / 2) / w, (cy + sh / 2) / h]
                      for sw, sh in prior_sizes(p)]
    boxes = np.array(boxes)
    if p.get('clip', False):
        boxes = boxes.clip(0, 1)
    variance = np.ravel(p.get('variance', 0.1))
    variances = np.broadcast_to(variance if len(variance) == 4 else variance.repeat(4), boxes.shape)
    return [np.stack([boxes.ravel(), variances.ravel()])[None]]


def overlap(box, boxes):
    """Intersection over union."""
    w = (np.minimum(box[2], boxes[:, 2]) - np.maximum(box[0], boxes[:, 0])).clip(0)
    h = (np.minimum(box[3], boxes[:, 3]) - np.maximum(box[1], boxes[:, 1])).clip(0)
    area = lambda b: (b[..., 2] - b[..., 0]) * (b[..., 3] - b[..., 1])
    return w * h / np.maximum(area(box) + area(boxes) - w * h, 1e-30)


def suppress(boxes, threshold):
    """Indexes of the boxes that stay; they come best first."""
    kept = []
    for i, box in enumerate(boxes):
        if not kept or (overlap(box, boxes[kept]) <= threshold).all():
            kept.append(i)
    return kept


def decode(priors, moves):
    """Corner boxes; priors (boxes, variances), moves in the CENTER_SIZE code."""
    boxes, variances = priors
    size, centre = boxes[:, 2:] - boxes[:, :2], (boxes[:, 2:] + boxes[:, :2]) / 2
    centre = centre + variances[:, :2] * moves[:, :2] * size
    size = size * np.exp(variances[:, 2:] * moves[:, 2:])
    return np.concatenate([centre - size / 2, centre + size / 2], axis=1)


def detection_output(layer, moves, scores, priors):
    """SSD's: label, score, xmin, ymin, xmax, ymax. As the engine has it: best first, not label by label, and without the
    image's number in front."""
    p = layer.param('detection_output_param')
    nms = p.get('nms_param', {})
    boxes = decode(priors[0].reshape(2, -1, 4), moves.reshape(-1, 4))
    scores = scores.reshape(len(boxes), p['num_classes'])
    rows = []
    for label in range(p['num_classes']):
        if label == p.get('background_label_id', 0):
            continue
        order = np.argsort(-scores[:, label], kind='stable')
        order = order[scores[order, label] > p.get('confidence_threshold', -np.inf)]
        order = order[:nms['top_k']] if nms.get('top_k', -1) >= 0 else order
        kept = order[suppress(boxes[order], nms.get('nms_threshold', 0.3))] if len(order) else order
        rows += [[label, scores[i, label], *boxes[i]] for i in kept]
    rows.sort(key=lambda row: -row[1])
    if p.get('keep_top_k', -1) >= 0:
        rows = rows[:p['keep_top_k']]
    return [np.array(rows).reshape(1, -1, 6)]


def anchors(p):
    """Faster R-CNN's, around pixel 0."""
    base, boxes = p.get('base_size', 16), []
    for ratio in p.get('ratio', [0.5, 1, 2]):
        w = round(math.sqrt(base * base / ratio))
        h = round(w * ratio)
        for factor in p.get('scale', [8, 16, 32]):
            half = np.array([w * factor - 1, h * factor - 1]) / 2
            boxes.append(np.concatenate([(base - 1) / 2 - half, (base - 1) / 2 + half]))
    return np.array(boxes)


def proposal(layer, scores, moves, image):
    """Faster R-CNN's; rows of x1 y1 x2 y2. As the engine has it: without the image's number in front, and boxes overlap by
    their areas (x2 - x1) (y2 - y1), where py-faster-rcnn adds 1 to each side."""
    p = layer.param('proposal_param')
    base, stride = anchors(p), p.get('feat_stride', 16)
    count, (h, w) = len(base), scores.shape[2:]
    image = image.ravel()
    shift = np.stack(np.meshgrid(np.arange(w) * stride, np.arange(h) * stride) * 2, axis=-1).reshape(-1, 1, 4)
    boxes = (shift + base).reshape(-1, 4)
    moves = moves[0].reshape(count, 4, h, w).transpose(2, 3, 0, 1).reshape(-1, 4)
    scores = scores[0, count:].transpose(1, 2, 0).ravel()
    size = boxes[:, 2:] - boxes[:, :2] + 1
    centre = boxes[:, :2] + size / 2 + moves[:, :2] * size
    size = size * np.exp(moves[:, 2:])
    limit = np.array([image[1], image[0]] * 2) - 1
    boxes = np.concatenate([centre - size / 2, centre + size / 2], axis=1).clip(0, limit)
    size = boxes[:, 2:] - boxes[:, :2] + 1
    large = (size >= p.get('min_size', 16) * image[2]).all(axis=1)
    boxes, scores = boxes[large], scores[large]
    order = np.argsort(-scores, kind='stable')[:p.get('pre_nms_topn', 6000)]
    kept = order[suppress(boxes[order], p.get('nms_thresh', 0.7))][:p.get('post_nms_topn', 300)]
    return [boxes[kept]]


def roi_bins(first, last, count, size):
    step = (last - first) / count
    for i in range(count):
        begin, end = first + math.floor(i * step), first + math.ceil((i + 1) * step)
        yield slice(min(max(begin, 0), size), min(max(end, 0), size))


def half_up(x):
    return math.floor(x + 0.5)


def roi_pooling(layer, x, rois):
    """Fast R-CNN's. rois: 5 values, the first the image's number, or 4."""
    p = layer.param('roi_pooling_param')
    y = np.zeros((len(rois), x.shape[1], p['pooled_h'], p['pooled_w']))
    for n, roi in enumerate(rois.reshape(len(rois), -1)[:, -4:]):
        x1, y1, x2, y2 = [half_up(v * p.get('spatial_scale', 1.0)) for v in roi]
        for i, rows in enumerate(roi_bins(y1, max(y2, y1) + 1, p['pooled_h'], x.shape[2])):
            for j, columns in enumerate(roi_bins(x1, max(x2, x1) + 1, p['pooled_w'], x.shape[3])):
                part = x[0, :, rows, columns]
                y[n, :, i, j] = part.max(axis=(1, 2)) if part.size else 0
    return [y]


def psroi_pooling(layer, x, rois):
    """R-FCN's."""
    p = layer.param('psroi_pooling_param')
    group, dim, factor = p['group_size'], p['output_dim'], p['spatial_scale']
    y = np.zeros((len(rois), dim, group, group))
    for n, roi in enumerate(rois.reshape(len(rois), -1)[:, -4:]):
        start = [half_up(v) * factor for v in roi[:2]]
        size = [max((half_up(v) + 1) * factor - s, 0.1) / group for v, s in zip(roi[2:], start)]
        for i in range(group):
            for j in range(group):
                bounds = [slice(*np.clip([math.floor(k * size[a] + start[a]), math.ceil((k + 1) * size[a] + start[a])],
                                         0, x.shape[3 - a])) for a, k in ((1, i), (0, j))]
                part = x[0].reshape(dim, group, group, *x.shape[2:])[:, i, j, bounds[0], bounds[1]]
                y[n, :, i, j] = part.mean(axis=(1, 2)) if part.size else 0
    return [y]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(layer, x, cont):
    count = layer.param('recurrent_param')['num_output']
    w_x, b, w_h = layer.blobs
    h = c = np.zeros((x.shape[1], count))
    steps = []
    for t in range(len(x)):
        go_on = cont[t].reshape(-1, 1)
        i, f, o, g = np.split(x[t].reshape(x.shape[1], -1) @ w_x.T + b + (h * go_on) @ w_h.T, 4, axis=1)
        c = sigmoid(f) * (c * go_on) + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        steps.append(h)
    return [np.stack(steps)]


def rnn(layer, x, cont):
    w_x, b_h, w_h, w_o, b_o = layer.blobs
    h = np.zeros((x.shape[1], layer.param('recurrent_param')['num_output']))
    steps = []
    for t in range(len(x)):
        h = np.tanh(x[t].reshape(x.shape[1], -1) @ w_x.T + b_h + (h * cont[t].reshape(-1, 1)) @ w_h.T)
        steps.append(np.tanh(h @ w_o.T + b_o))
    return [np.stack(steps)]


def power(layer, x):
    p = layer.param('power_param')
    return [(p.get('shift', 0.0) + p.get('scale', 1.0) * x) ** p.get('power', 1.0)]


def exp(layer, x):
    p = layer.param('exp_param')
    base = p.get('base', -1.0)
    return [(math.e if base == -1 else base) ** (p.get('shift', 0.0) + p.get('scale', 1.0) * x)]


def log(layer, x):
    p = layer.param('log_param')
    base = p.get('base', -1.0)
    return [np.log(p.get('shift', 0.0) + p.get('scale', 1.0) * x) / (1 if base == -1 else math.log(base))]


def relu(layer, x):
    return [np.where(x > 0, x, x * layer.param('relu_param').get('negative_slope', 0.0))]


def elu(layer, x):
    return [np.where(x > 0, x, layer.param('elu_param').get('alpha', 1.0) * np.expm1(np.minimum(x, 0)))]


def clip(layer, x):
    p = layer.param('clip_param')
    return [x.clip(p['min'], p['max'])]


LAYERS = {
    'BatchReindex': lambda l, x, order: [x[order.ravel().astype(int)]],
    'Filter': lambda l, *xs: [x[xs[-1].ravel() != 0] for x in xs[:-1]],
    'AbsVal': lambda l, x: [np.abs(x)], 'ArgMax': arg_max, 'Axpy': axpy, 'BatchNorm': batch_norm, 'Bias': bias, 'BN': bn,
    'BNLL': lambda l, x: [np.logaddexp(0, x)], 'Clip': clip, 'Concat': concat,
    'ContinuationIndicator': continuation_indicator, 'Convolution': convolution,
    'ConvolutionDepthwise': convolution, 'Crop': crop, 'Deconvolution': deconvolution,
    'DepthwiseConvolution': convolution, 'DetectionOutput': detection_output, 'Dropout': lambda l, x: [x], 'ELU': elu,
    'Eltwise': eltwise, 'Embed': embed, 'Exp': exp, 'Flatten': flatten, 'Im2col': im2col, 'InnerProduct': inner_product,
    'Interp': interp, 'Log': log, 'LRN': lrn, 'LSTM': lstm, 'MVN': mvn, 'Normalize': normalize,
    'Parameter': lambda l: [l.blobs[0]], 'Permute': permute, 'Pooling': pooling, 'Power': power, 'PReLU': prelu,
    'PriorBox': prior_box, 'Proposal': proposal, 'PSROIPooling': psroi_pooling, 'Reduction': reduction, 'ReLU': relu,
    'ReLU6': lambda l, x: [x.clip(0, 6)], 'Reorg': reorg, 'Reshape': reshape,
    'Reverse': lambda l, x: [np.flip(x, l.param('reverse_param').get('axis', 0))],
    'Transpose': lambda l, x: [x.transpose(l.param('transpose_param')['dim'])], 'RNN': rnn, 'ROIPooling': roi_pooling,
    'Scale': scale, 'ShuffleChannel': shuffle_channel, 'Sigmoid': lambda l, x: [sigmoid(x)], 'Slice': slices,
    'Softmax': softmax, 'Split': lambda l, x: [x] * len(l.top), 'SPP': spp,
    'Swish': lambda l, x: [x * sigmoid(l.param('swish_param').get('beta', 1.0) * x)], 'TanH': lambda l, x: [np.tanh(x)],
    'Threshold': lambda l, x: [(x > l.param('threshold_param').get('threshold', 0.0)).astype(np.float64)], 'Tile': tile,
    'Upsample': upsample,
}
