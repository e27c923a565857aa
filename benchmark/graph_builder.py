"""Builds feed-forward graphs layer by layer, tracking shapes, multiply-adds and weights.

Shapes are (c, h, w), (h, w) or (n,), as ncnn's Mats seen from numpy. Batch norm is taken as folded
into the convolution before it; only its parameters are remembered, to compare with counts
published for the training form.
"""

import math
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
from param_graph import Layer, param_text  # noqa: E402

MAX, AVG = 0, 1
ADD, MUL = 0, 2
CEIL, FLOOR = 0, 1
TO_END = -233  # "up to the end" in the ends of Crop

# Activations that a convolution or inner product does itself: activation_type, activation_params.
FUSED = {
    "relu": (1, []),
    "leaky": (2, [0.1]),
    "relu6": (3, [0.0, 6.0]),
    "sigmoid": (4, []),
    "hardswish": (6, [1 / 6, 0.5]),
}
# Activations that are layers of their own: layer type, params.
SEPARATE = {
    "relu": ("ReLU", {}),
    "swish": ("Swish", {}),
    "hardsigmoid": ("HardSigmoid", {0: 1 / 6, 1: 0.5}),
}


@dataclass(frozen=True)
class Blob:
    name: str
    shape: tuple


@dataclass(frozen=True)
class Weights:
    """What the `.bin` holds for one layer: weight_count tagged values, then bias_count raw ones."""

    weight_count: int
    bias_count: int
    fan_in: int


class Graph:
    """A graph under construction. Its public counts are macs, parameters and trained_parameters."""

    def __init__(self, width, height, channels=3):
        self.layers = []
        self.weights = []
        self.shapes = {}  # of blobs by name
        self.macs = 0
        self.parameters = 0
        self.batch_norm_channels = 0
        self._numbers = {}
        params = {0: width, 1: height, 2: channels}
        self.data = self._add("Input", "data", [], (channels, height, width), params, name="data")
        self.output = None

    @property
    def trained_parameters(self):
        """Parameters before folding: a batch norm's gamma and beta, where one bias is left now."""
        return self.parameters + self.batch_norm_channels

    def _add(self, kind, stem, bottoms, shape, params=None, name=None):
        if name is None:
            number = self._numbers[stem] = self._numbers.get(stem, 0) + 1
            name = f"{stem}{number}"
        self.layers.append(Layer(kind, name, [b.name for b in bottoms], [name], params or {}))
        self.shapes[name] = tuple(shape)
        return Blob(name, tuple(shape))

    def _add_weights(self, weight_count, outputs, macs):
        self.weights.append(Weights(weight_count, outputs, weight_count // outputs))
        self.parameters += weight_count + outputs
        self.macs += macs

    def conv(self, x, outputs, kernel=1, stride=1, pad=None, groups=1, act=None, bn=True):
        """Convolution with bias; pad defaults to kernel // 2. bn: a batch norm was folded in."""
        channels, height, width = x.shape
        pad = kernel // 2 if pad is None else pad
        out_h, out_w = ((s + 2 * pad - kernel) // stride + 1 for s in (height, width))
        weight_count = outputs * (channels // groups) * kernel * kernel
        params = {0: outputs, 1: kernel, 3: stride, 4: pad, 5: 1, 6: weight_count}
        if groups > 1:
            params[7] = groups
        kind = "ConvolutionDepthWise" if groups > 1 else "Convolution"
        stem = "dwconv" if groups == channels else "conv"
        y = self._add(kind, stem, [x], (outputs, out_h, out_w), params | self._fused(act))
        self._add_weights(weight_count, outputs, weight_count * out_h * out_w)
        self.batch_norm_channels += outputs if bn else 0
        return self._activated(y, act)

    def fc(self, x, outputs, act=None):
        """InnerProduct with bias over all values of x."""
        inputs = math.prod(x.shape)
        params = {0: outputs, 1: 1, 2: inputs * outputs}
        y = self._add("InnerProduct", "fc", [x], (outputs,), params | self._fused(act))
        self._add_weights(inputs * outputs, outputs, inputs * outputs)
        return self._activated(y, act)

    @staticmethod
    def _fused(act):
        if act not in FUSED:
            return {}
        number, values = FUSED[act]
        return {9: number, 10: values} if values else {9: number}

    def _activated(self, x, act):
        return x if act is None or act in FUSED else self.activation(x, act)

    def activation(self, x, act):
        kind, params = SEPARATE[act]
        return self._add(kind, act, [x], x.shape, dict(params))

    def pool(self, x, kind, kernel, stride, pad=0, rounding=FLOOR):
        """Max or average pooling; rounding says what a last, incomplete window counts."""
        channels, height, width = x.shape
        divide = math.ceil if rounding == CEIL else math.floor
        out_h, out_w = (divide((s + 2 * pad - kernel) / stride) + 1 for s in (height, width))
        params = {0: kind, 1: kernel, 2: stride, 3: pad, 5: rounding}
        return self._add("Pooling", "pool", [x], (channels, out_h, out_w), params)

    def global_average(self, x):
        """(c, h, w) to (c,)."""
        return self._add("Pooling", "mean", [x], x.shape[:1], {0: AVG, 4: 1})

    def binary(self, op, a, b):
        """Elementwise a op b; b may be (c,), one value for each channel of a."""
        if b.shape not in (a.shape, a.shape[:1]):
            raise ValueError(f"{a.name} {a.shape} and {b.name} {b.shape} do not go together")
        return self._add("BinaryOp", {ADD: "add", MUL: "mul"}[op], [a, b], a.shape, {0: op})

    def concat(self, blobs):
        """Along the first axis of the shape."""
        rest = {b.shape[1:] for b in blobs}
        if len(rest) != 1:
            raise ValueError(f"concat of {[(b.name, b.shape) for b in blobs]}")
        shape = (sum(b.shape[0] for b in blobs), *rest.pop())
        return self._add("Concat", "concat", blobs, shape, {0: 0})

    def halves(self, x):
        """Both halves of the channels, by a Slice."""
        half = x.shape[0] // 2
        first = self._add("Slice", "slice", [x], (half, *x.shape[1:]), {0: [half, half], 1: 0})
        layer = self.layers[-1]
        layer.tops = [f"{layer.name}_a", f"{layer.name}_b"]
        self.shapes.update({top: first.shape for top in layer.tops})
        return Blob(layer.tops[0], first.shape), Blob(layer.tops[1], first.shape)

    def second_half(self, x):
        """The upper half of the channels alone, by a Crop."""
        half = x.shape[0] // 2
        params = {9: [half], 10: [TO_END], 11: [0]}
        return self._add("Crop", "crop", [x], (half, *x.shape[1:]), params)

    def shuffle(self, x, groups):
        return self._add("ShuffleChannel", "shuffle", [x], x.shape, {0: groups})

    def lrn(self, x, size, alpha, beta):
        """Local response normalisation across channels; alpha is divided by size, as in Caffe."""
        params = {0: 0, 1: size, 2: alpha, 3: beta, 4: 1.0}
        return self._add("LRN", "lrn", [x], x.shape, params)

    def upsample(self, x, factor):
        """Nearest neighbour."""
        channels, height, width = x.shape
        shape = (channels, height * factor, width * factor)
        params = {0: 1, 1: float(factor), 2: float(factor)}
        return self._add("Interp", "upsample", [x], shape, params)

    def rows_per_anchor(self, x, anchors):
        """A detector head (anchors * n, h, w) to a row of n values per box, (anchors * h * w, n)."""
        channels, height, width = x.shape
        values, cells = channels // anchors, height * width
        by_channel = {0: -1, 1: values, 2: anchors}
        x = self._add("Reshape", "reshape", [x], (anchors, values, cells), by_channel)
        x = self._add("Permute", "permute", [x], (anchors, cells, values), {0: 1})
        return self._add("Reshape", "reshape", [x], (anchors * cells, values), {0: values, 1: -1})

    def softmax(self, x):
        return self._add("Softmax", "softmax", [x], x.shape, {0: 0})

    def finish(self, x):
        """Names x `output`; the graph is then complete."""
        for layer in self.layers:
            layer.tops = ["output" if top == x.name else top for top in layer.tops]
        self.output = Blob("output", x.shape)
        return self

    def param_text(self):
        return param_text(self.layers)
