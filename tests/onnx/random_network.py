"""Random networks as people build them, of blocks that fast paths look for: convolutional ones (residual sums, gates, groups,
depthwise, concatenations, parts, resizing) and transformers (norms, attention, windows, gated layers), with random weights."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ACTIVATIONS = (None, 'Relu', 'Relu', 'Relu6', 'HardSwish', 'Silu', 'LeakyRelu', 'Sigmoid', 'Tanh')


class Network:
    def __init__(self, seed, axes=2):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.weights, self.axes = [], [], axes

    def pick(self, *choices):
        return choices[self.rng.integers(len(choices))]

    def chance(self, share=0.5):
        return self.rng.random() < share

    def normal(self, scale, *shape):
        return self.rng.normal(0, scale, shape).astype(np.float32)

    def constant(self, array):
        name = f'c{len(self.weights)}'
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def real(self, value):
        return self.constant(np.float32(value))

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))

    def add(self, op, *inputs, count=1, **attributes):
        """Names of the outputs; the name where there is one."""
        at = len(self.nodes)
        outputs = [f't{at}_{i}' for i in range(count)]
        self.nodes.append(helper.make_node(op, list(inputs), outputs, name=f'n{at}', **attributes))
        return outputs if count > 1 else outputs[0]

    def activation(self, x, kind):
        if kind is None:
            return x
        if kind == 'Relu6':
            return self.add('Clip', x, self.real(0), self.real(6))
        if kind == 'Silu':
            return self.add('Mul', x, self.add('Sigmoid', x))
        if kind == 'Gelu':
            erf = self.add('Add', self.add('Erf', self.add('Div', x, self.real(np.sqrt(2)))), self.real(1))
            return self.add('Mul', self.add('Mul', x, erf), self.real(0.5))
        if kind == 'GeluTanh':
            cube = self.add('Mul', self.add('Mul', x, x), x)
            inner = self.add('Add', x, self.add('Mul', cube, self.real(0.044715)))
            tanh = self.add('Tanh', self.add('Mul', inner, self.real(np.sqrt(2 / np.pi))))
            return self.add('Mul', self.add('Mul', self.real(0.5), x), self.add('Add', tanh, self.real(1)))
        return self.add(kind, x, **({'alpha': 0.1} if kind == 'LeakyRelu' else {}))

    def any_activation(self):
        return self.pick(*ACTIVATIONS)

    def conv(self, x, inputs, outputs, kernel, stride=1, group=1, dilation=1, activation=None, pads=None):
        window = [kernel] * self.axes
        each = inputs // group
        weight = self.normal(self.pick(0.7, 1, 1.5) / np.sqrt(each * kernel**self.axes), outputs, each, *window)
        bias = [self.constant(self.normal(0.3, outputs))] if self.chance(0.8) else []
        y = self.add('Conv', x, self.constant(weight), *bias, kernel_shape=window, strides=[stride] * self.axes, group=group,
                     pads=pads or [(kernel - 1) * dilation // 2] * (2 * self.axes), dilations=[dilation] * self.axes)
        return self.activation(y, activation)

    def model(self, shape, output, opset):
        graph = helper.make_graph(self.nodes, 'g', [helper.make_tensor_value_info('x', TensorProto.FLOAT, shape)],
                                  [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)], self.weights)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid('', opset)], ir_version=8)
        return onnx.shape_inference.infer_shapes(made)


# ---- blocks of convolutional networks: f(network, x, channels, outputs, large) -> (y, channels)
def plain(m, x, c, out, large):
    kernel = m.pick(1, 1, 3, 3, 5, 2)
    odd = kernel == 2 or m.chance(0.15)
    pads = [int(m.rng.integers(0, kernel)) for _ in range(2 * m.axes)] if odd else None
    return m.conv(x, c, out, kernel, m.pick(1, 1, 2) if large else 1, activation=m.any_activation(), pads=pads), out


def residual(m, x, c, out, large):
    y = m.conv(x, c, out, m.pick(1, 3), activation=m.any_activation())
    y = m.conv(y, out, c, m.pick(1, 3), activation=m.pick(None, None, 'Relu'))
    return m.activation(m.add('Add', *((y, x) if m.chance() else (x, y))), m.pick(None, 'Relu', 'Silu')), c


def depthwise(m, x, c, out, large):
    return m.conv(x, c, c, m.pick(3, 5), m.pick(1, 2) if large else 1, group=c, activation=m.any_activation()), c


def inverted(m, x, c, out, large):
    wide = c * m.pick(2, 3)
    y = m.conv(x, c, wide, 1, activation=m.any_activation())
    y = m.conv(y, wide, wide, m.pick(3, 5), group=wide, activation=m.any_activation())
    y = m.conv(y, wide, c, 1)
    return (m.add('Add', x, y) if m.chance(0.7) else y), c


def grouped(m, x, c, out, large):
    group = m.pick(*[g for g in (1, 2, 3, 4, 8) if c % g == 0])
    out = group * m.pick(1, 2, 4, 8)
    return m.conv(x, c, out, m.pick(1, 3), group=group, activation=m.any_activation()), out


def gate(m, x, c, out, large):
    few = max(2, c // 4)
    y = m.conv(m.add('GlobalAveragePool', x), c, few, 1, activation=m.pick('Relu', 'Silu'))
    return m.add('Mul', x, m.conv(y, few, c, 1, activation=m.pick('Sigmoid', 'HardSigmoid'))), c


def joined(m, x, c, out, large):
    sizes = [m.pick(8, 5, 16, 4, 12) for _ in range(m.pick(2, 3))]
    parts = [m.conv(x, c, size, m.pick(1, 3), activation=m.any_activation()) for size in sizes]
    if m.chance(0.4):
        parts.append(x), sizes.append(c)
    return m.add('Concat', *parts, axis=1), sum(sizes)


def divided(m, x, c, out, large):
    if c < 4:
        return plain(m, x, c, out, large)
    first = int(m.rng.integers(1, c))
    a, b = m.add('Split', x, m.ints(first, c - first), count=2, axis=1)
    p, q = m.conv(a, first, out, 1, activation=m.any_activation()), m.conv(b, c - first, out, 3, activation=m.any_activation())
    if m.chance():
        return m.add('Add', p, q), out
    return m.add('Concat', p, b, q, axis=1), 2 * out + c - first


def pooled(m, x, c, out, large):
    kernel = m.pick(2, 3)
    pads = [0] * m.axes + [1] * m.axes if kernel == 2 else [1] * 2 * m.axes
    return m.add(m.pick('MaxPool', 'AveragePool'), x, kernel_shape=[kernel] * m.axes, strides=[1] * m.axes, pads=pads), c


def dilated(m, x, c, out, large):
    return m.conv(x, c, out, 3, dilation=2, activation=m.any_activation()), out


def scaled(m, x, c, out, large):
    return m.activation(m.add(m.pick('Add', 'Mul'), x, m.real(m.pick(0.5, 1.5, -1))), m.any_activation()), c


def resized(m, x, c, out, large):
    if m.axes != 2:
        return plain(m, x, c, out, large)
    y = m.add('Resize', x, '', m.constant(np.float32([1, 1, 2, 2])), mode=m.pick('nearest', 'linear'))
    return m.conv(y, c, out, 3, 2, activation=m.any_activation()), out


def transposed(m, x, c, out, large):
    kernel, pad, more = m.pick((2, 0, 0), (4, 1, 0), (3, 1, 1))
    weight = m.constant(m.normal(1 / np.sqrt(c), c, out, *[kernel] * m.axes))
    y = m.add('ConvTranspose', x, weight, m.constant(m.normal(0.3, out)), kernel_shape=[kernel] * m.axes, strides=[2] * m.axes,
              pads=[pad] * 2 * m.axes, output_padding=[more] * m.axes)
    return m.conv(y, out, out, 3, 2, activation=m.any_activation()), out


BLOCKS = (plain, plain, residual, residual, depthwise, inverted, grouped, gate, joined, divided, pooled, dilated, scaled, resized,
          transposed)


def convolutional(seed):
    """(model, shape of input x) with one to three axes beside the channels."""
    m = Network(seed, axes=2 if seed % 5 else 1 + 2 * (seed % 2))
    channels, x = m.pick(3, 3, 1, 8, 16), 'x'
    size = m.pick(7, 9, 14, 16, 20, 28, 40) if m.axes < 3 else m.pick(5, 7, 8)
    shape = [m.pick(1, 1, 1, 2, 3), channels] + [size + int(m.rng.integers(0, 3)) for _ in range(m.axes)]
    for _ in range(int(m.rng.integers(2, 7))):
        outputs = m.pick(channels, channels, 8, 16, 12, 24, 32, 7, 20, 48)
        x, channels = m.pick(*BLOCKS)(m, x, channels, outputs, size > 5)
    if m.chance():
        y = m.add('Flatten', m.add('GlobalAveragePool', x))
        x = m.add('Gemm', y, m.constant(m.normal(1 / np.sqrt(channels), 10, channels)), m.constant(m.normal(0.3, 10)), transB=1)
    return m.model(shape, x, 14), shape


# ---- parts of transformers, of rows (items, tokens, channels)
def linear(m, x, inputs, outputs, bias=True):
    y = m.add('MatMul', x, m.constant(m.normal(1 / np.sqrt(inputs), inputs, outputs)))
    if not bias:
        return y
    b = m.constant(m.normal(0.3, outputs))
    return m.add('Add', *((y, b) if m.chance() else (b, y)))


def norm(m, x, c):
    factor = m.constant(m.rng.uniform(0.5, 1.5, c).astype(np.float32))
    kind = m.pick('layer', 'steps', 'rms')
    if kind == 'layer':
        return m.add('LayerNormalization', x, factor, m.constant(m.normal(0.2, c)), axis=-1, epsilon=m.pick(1e-5, 1e-6))
    centred = m.add('Sub', x, m.add('ReduceMean', x, axes=[-1])) if kind == 'steps' else x
    square = m.add('ReduceMean', m.add('Pow', centred, m.real(2)), axes=[-1])
    root = m.add('Sqrt', m.add('Add', square, m.real(m.pick(1e-5, 1e-6))))
    y = m.add('Div', centred, root) if m.chance() else m.add('Mul', centred, m.add('Reciprocal', root))
    y = m.add('Mul', factor, y)
    return m.add('Add', y, m.constant(m.normal(0.2, c))) if kind == 'steps' else y


def attention(m, x, n, t, c):
    heads = m.pick(1, 2, 4)
    width = c // heads

    def of_heads(v):
        return m.add('Transpose', m.add('Reshape', v, m.ints(n, t, heads, width)), perm=[0, 2, 1, 3])

    kind = m.pick('three', 'gathered', 'split')
    if kind == 'three':
        q, k, v = (of_heads(linear(m, x, c, c, m.chance(0.8))) for _ in range(3))
    elif kind == 'split':
        q, k, v = (of_heads(part) for part in m.add('Split', linear(m, x, c, 3 * c), m.ints(c, c, c), count=3, axis=-1))
    else:
        y = m.add('Reshape', linear(m, x, c, 3 * c), m.ints(n, t, 3, heads, width))
        y = m.add('Transpose', y, perm=[2, 0, 3, 1, 4])
        q, k, v = (m.add('Gather', y, m.constant(np.int64(i)), axis=0) for i in range(3))
    scale, where = 1 / np.sqrt(width), m.pick('query', 'times', 'over', 'none')
    if where == 'query':
        q = m.add('Mul', q, m.real(scale))
    scores = m.add('MatMul', q, m.add('Transpose', k, perm=[0, 1, 3, 2]))
    if where in ('times', 'over'):
        scores = m.add('Mul', scores, m.real(scale)) if where == 'times' else m.add('Div', scores, m.real(1 / scale))
    mask = m.pick(None, None, 'causal', 'heads', 'where')
    if mask == 'causal':
        scores = m.add('Add', scores, m.constant(np.triu(np.full((t, t), -1e4, np.float32), 1)))
    elif mask == 'heads':
        scores = m.add('Add', scores, m.constant(m.normal(1, 1, heads, t, t)))
    elif mask == 'where':
        scores = m.add('Where', m.constant(m.rng.random((1, 1, t, t)) < 0.8), scores, m.real(-1e9))
    y = m.add('Transpose', m.add('MatMul', m.add('Softmax', scores, axis=-1), v), perm=[0, 2, 1, 3])
    return linear(m, m.add('Reshape', y, m.ints(n, t, c)), c, c)


def rolled(m, x, by):
    for axis in (1, 2):
        a = m.add('Slice', x, m.ints(by), m.ints(2**31), m.ints(axis))
        x = m.add('Concat', a, m.add('Slice', x, m.ints(0), m.ints(by), m.ints(axis)), axis=axis)
    return x


def windows(m, x, n, h, w, c, size):
    """Attention within windows of an image, which may be shifted."""
    y, shift = m.add('Reshape', x, m.ints(n, h, w, c)), m.pick(0, 1, size // 2)
    if shift:
        y = rolled(m, y, shift)
    y = m.add('Transpose', m.add('Reshape', y, m.ints(n, h // size, size, w // size, size, c)), perm=[0, 1, 3, 2, 4, 5])
    count = n * (h // size) * (w // size)
    y = attention(m, m.add('Reshape', y, m.ints(count, size * size, c)), count, size * size, c)
    y = m.add('Transpose', m.add('Reshape', y, m.ints(n, h // size, w // size, size, size, c)), perm=[0, 1, 3, 2, 4, 5])
    y = m.add('Reshape', y, m.ints(n, h, w, c))
    return m.add('Reshape', rolled(m, y, -shift) if shift else y, m.ints(n, h * w, c))


def feed_forward(m, x, c):
    kind = m.pick('Gelu', 'GeluTanh', 'Silu', 'Relu', 'square')
    if kind == 'square':
        y = m.add('Relu', linear(m, x, c, 2 * c))
        return linear(m, m.add('Mul', y, y), 2 * c, c)
    y = m.activation(linear(m, x, c, 2 * c), kind)
    return linear(m, m.add('Mul', y, linear(m, x, c, 2 * c, False)) if m.chance(0.3) else y, 2 * c, c)


def mixed_tokens(m, x, t):
    return m.add('Transpose', linear(m, m.add('Transpose', x, perm=[0, 2, 1]), t, t), perm=[0, 2, 1])


def as_image(m, x, n, c, h, w):
    y = m.add('Reshape', m.add('Transpose', x, perm=[0, 2, 1]), m.ints(n, c, h, w))
    y = m.activation(m.conv(y, c, c, 3, group=m.pick(1, c)), 'Gelu')
    return m.add('Transpose', m.add('Reshape', y, m.ints(n, c, h * w)), perm=[0, 2, 1])


def transformer(seed):
    """(model, shape of input x)"""
    m = Network(seed)
    n, c, size = m.pick(1, 1, 2, 3), m.pick(16, 24, 32, 48, 64), m.pick(2, 4)
    h, w = size * m.pick(1, 2, 3), size * m.pick(2, 3)
    shape, x = [n, h * w, c], 'x'
    if m.chance(0.4):  # of patches
        patch = m.pick(2, 4)
        shape = [n, 3, h * patch, w * patch]
        y = m.add('Conv', 'x', m.constant(m.normal(0.3, c, 3, patch, patch)), m.constant(m.normal(0.3, c)),
                  kernel_shape=[patch, patch], strides=[patch, patch])
        x = m.add('Transpose', m.add('Reshape', y, m.ints(n, c, h * w)), perm=[0, 2, 1])
    for _ in range(int(m.rng.integers(1, 4))):
        norm_last = m.chance(0.3)
        y, kind = x if norm_last else norm(m, x, c), m.pick(0, 0, 1, 2, 2, 3, 4)
        if kind == 0:
            y = attention(m, y, n, h * w, c)
        elif kind == 1:
            y = windows(m, y, n, h, w, c, size)
        else:
            y = (feed_forward(m, y, c) if kind == 2 else mixed_tokens(m, y, h * w) if kind == 3 else as_image(m, y, n, c, h, w))
        x = m.add('Add', *((x, y) if m.chance() else (y, x)))
        x = norm(m, x, c) if norm_last else x
    end = m.pick('tokens', 'mean', 'first')
    if end == 'mean':
        x = linear(m, m.add('ReduceMean', x, axes=[1], keepdims=0), c, 10)
    elif end == 'first':
        x = linear(m, norm(m, m.add('Gather', x, m.constant(np.int64(0)), axis=1), c), c, 10)
    return m.model(shape, x, 17), shape
