"""Answers of graph_builder.py's graphs in double arithmetic: what engines are measured against.

Plain NumPy, no engine behind it; a multiply-add is a BLAS dgemm at best.
"""
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from graph_builder import ADD, AVG, CEIL, TO_END

PIXELS_AT_ONCE = 4096  # of a convolution's output: bounds the memory of unrolled windows


def activate(x, p):
    """The activation of params 9 and 10."""
    kind, values = p.get(9, 0), p.get(10, [])
    if kind == 1:
        return np.maximum(x, 0)
    if kind == 2:
        return np.where(x > 0, x, x * float(np.float32(values[0])))
    if kind == 3:
        return np.clip(x, *values)
    if kind == 4:
        return sigmoid(x)
    if kind == 6:
        return x * np.clip(x * float(np.float32(values[0])) + values[1], 0, 1)
    return x


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def windows(x, kernel, stride):
    """[c][out_h][out_w][kernel][kernel] views of x [c][h][w]."""
    return sliding_window_view(x, (kernel, kernel), axis=(1, 2))[:, ::stride, ::stride]


def convolve(x, weights, bias, p):
    """weights [out][in / groups][k][k]."""
    kernel, groups = p[1], p.get(7, 1)
    x = np.pad(x, ((0, 0), (p[4],) * 2, (p[4],) * 2))
    views = windows(x, kernel, p[3])
    channels, height, width = views.shape[:3]
    if groups == channels == p[0]:
        out = np.einsum("cyxij,cij->cyx", views, weights[:, 0])
    else:
        out = np.empty((p[0], height, width))
        rows = max(1, PIXELS_AT_ONCE // width)
        for group, (part, w) in enumerate(zip(np.split(views, groups), np.split(weights, groups))):
            place = out[group * len(w):(group + 1) * len(w)]
            for y in range(0, height, rows):
                block = part[:, y:y + rows].transpose(0, 3, 4, 1, 2)
                place[:, y:y + rows] = (w.reshape(len(w), -1) @ block.reshape(w[0].size, -1)).reshape(len(w), -1, width)
    return activate(out + bias[:, None, None], p)


def pool(x, p):
    if p.get(4):
        return x.mean(axis=(1, 2))
    kernel, stride, pad = p[1], p[2], p[3]
    more = [0, 0]
    if p[5] == CEIL:  # the last window may be incomplete
        more = [-(s + 2 * pad - kernel) % stride for s in x.shape[1:]]
    empty = np.nan if p[0] == AVG else -np.inf
    x = np.pad(x, ((0, 0), (pad, pad + more[0]), (pad, pad + more[1])), constant_values=empty)
    views = windows(x, kernel, stride)
    return np.nanmean(views, axis=(3, 4)) if p[0] == AVG else views.max(axis=(3, 4))


def local_response(x, p):
    size, half = p[1], p[1] // 2
    squares = np.pad(x * x, ((half, size - 1 - half), (0, 0), (0, 0)))
    sums = sliding_window_view(squares, size, axis=0).sum(axis=-1)
    return x / (p[4] + p[2] / size * sums) ** p[3]


def shuffle(x, groups):
    return x.reshape(groups, -1, *x.shape[1:]).swapaxes(0, 1).reshape(x.shape)


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def crop(x, p):
    cut = [slice(None)] * x.ndim
    for start, end, axis in zip(p[9], p[10], p[11]):
        cut[axis] = slice(start, None if end == TO_END else end)
    return x[tuple(cut)]


def broadcast(a, b, p):
    if b.ndim < a.ndim:
        b = b[:, None, None]
    return a + b if p[0] == ADD else a * b


def run_layer(layer, x, shape, weights):
    """The layer's outputs for inputs `x`; weights: an iterator over read_weights' pairs, as doubles."""
    p, kind = layer.params, layer.type
    if kind in ("Convolution", "ConvolutionDepthWise"):
        w, bias = next(weights)
        return [convolve(x[0], w.reshape(p[0], -1, p[1], p[1]), bias, p)]
    if kind == "InnerProduct":
        w, bias = next(weights)
        return [activate(w.reshape(p[0], -1) @ x[0].ravel() + bias, p)]
    if kind == "Slice":
        return np.split(x[0], np.cumsum(p[0])[:-1])
    simple = {
        "Pooling": lambda: pool(x[0], p), "Concat": lambda: np.concatenate(x), "ReLU": lambda: np.maximum(x[0], 0),
        "Swish": lambda: x[0] * sigmoid(x[0]), "Softmax": lambda: softmax(x[0]), "LRN": lambda: local_response(x[0], p),
        "HardSigmoid": lambda: np.clip(x[0] * float(np.float32(p[0])) + p[1], 0, 1),
        "BinaryOp": lambda: broadcast(*x, p), "Crop": lambda: crop(x[0], p), "ShuffleChannel": lambda: shuffle(x[0], p[0]),
        "Interp": lambda: x[0].repeat(int(p[1]), axis=1).repeat(int(p[2]), axis=2),
        "Reshape": lambda: x[0].reshape(shape), "Permute": lambda: x[0].swapaxes(1, 2),
    }
    return [simple[kind]()]


def run_graph(graph, weights, data):
    """All blobs by name, float64, for the input `data`; weights: the pairs of onnx_export.read_weights."""
    doubles = iter([(w.astype(np.float64), b.astype(np.float64)) for w, b in weights])
    shapes = dict(graph.shapes, **{graph.output.name: graph.output.shape})
    blobs = {graph.data.name: data.astype(np.float64)}
    for layer in graph.layers:
        if layer.type == "Input":
            continue
        outputs = run_layer(layer, [blobs[name] for name in layer.bottoms], shapes[layer.tops[0]], doubles)
        blobs.update(zip(layer.tops, outputs))
    return blobs
