"""Random networks of ncnn's layers as its converters write them: chains that passes look for, parts and joins, views, constants,
branches of several readers. Each layer's answer is that of the ncnn wheel for this layer alone, in fp32, so that what is expected
does not depend on anybody's fusion, layout or memory."""
import tempfile

import ncnn
import numpy as np

from layer_configs import activation, array, pick



class Refused(Exception):
    """ncnn does not take such a layer, or its answer is of no use for a comparison."""


def weight_bytes(kind, values, half):
    if kind == 'tagged' and half:  # as ncnnoptimize stores weights
        return 0x01306B47.to_bytes(4, 'little') + values.astype(np.float16).tobytes() + bytes(-2 * values.size % 4)
    if kind == 'int8':
        return 0x000D4B38.to_bytes(4, 'little') + values.astype(np.int8).tobytes() + bytes(-values.size % 4)
    return (bytes(4) if kind == 'tagged' else b'') + np.ascontiguousarray(values, np.float32).tobytes()


def sizes_of(shape, depth=11):
    return ' '.join(f'{key}={n}' for key, n in zip({1: (0,), 2: (1, 0), 3: (2, 1, 0), 4: (2, depth, 1, 0)}[len(shape)], shape))


def plain_net():
    """One that computes in fp32, by the simplest of ncnn's code."""
    net = ncnn.Net()
    for name in ('use_fp16_storage', 'use_fp16_packed', 'use_fp16_arithmetic', 'use_bf16_storage', 'use_packing_layout',
                 'use_winograd_convolution'):
        setattr(net.opt, name, False)
    net.opt.num_threads = 1
    return net


class Layer:
    def __init__(self, op, name, inputs, outputs, params, weights):
        self.op, self.name, self.inputs, self.outputs, self.params, self.weights = op, name, inputs, outputs, params, weights
        made = [f'Input {blob} 0 1 {blob}' for blob in inputs] + [self.line(inputs)]
        self.text = f'7767517\n{len(made)} {len(inputs) + len(outputs)}\n' + '\n'.join(made) + '\n'
        self.net = None

    def line(self, inputs):
        return ' '.join([self.op, self.name, str(len(inputs)), str(len(self.outputs)), *inputs, *self.outputs, self.params]).rstrip()

    def run(self, values):
        """The outputs as arrays, of inputs given by name."""
        if self.net is None:
            self.net = plain_net()
            if self.net.load_param_mem(self.text) != 0:
                raise Refused(self.params)
            with tempfile.NamedTemporaryFile() as file:  # load_model_mem() lets go of the bytes that layers read
                file.write(self.weights)
                file.flush()
                if self.net.load_model(file.name) != 0:
                    raise Refused(self.params)
        ex = self.net.create_extractor()
        for name in self.inputs:
            ex.input(name, ncnn.Mat(values[name]).clone())
        answers = []
        for name in self.outputs:
            status, out = ex.extract(name, 1)  # int8 stays int8
            if status != 0 or out.dims == 0 or min(out.w, out.h, out.d, out.c) < 1:
                raise Refused(self.params)
            answers.append(np.array(out))
        return answers


class Network:
    def __init__(self, seed, int8=False):
        self.rng, self.int8 = np.random.default_rng(seed), int8
        self.large, self.half = self.chance(0.15), self.chance(0.2)
        self.most = 150000 if self.large else 20000  # values of a blob
        self.layers, self.values = [], {}

    # ---- numbers
    def pick(self, *choices):
        return choices[self.rng.integers(len(choices))]

    def chance(self, share=0.5):
        return self.rng.random() < share

    def number(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def uniform(self, low, high):
        return f'{self.rng.uniform(low, high):.4f}'

    def normal(self, scale, *shape):
        return self.rng.normal(0, scale, shape).astype(np.float32)

    # ---- building
    def input(self, shape, values=None):
        name = f'in{len(self.layers)}'
        self.layers.append(Layer('Input', name, [], [name], sizes_of(shape) if self.chance() else '', b''))
        self.values[name] = self.normal(1, *shape) if values is None else values
        return name

    def constant(self, values):
        return self.add('MemoryData', [], sizes_of(values.shape), [('raw', values)])

    def add(self, op, inputs, params='', weights=(), outputs=1):
        """Names of the outputs; the name where there is one."""
        inputs = [inputs] if isinstance(inputs, str) else list(inputs)
        at = len(self.layers)
        names = [f'b{at}'] if outputs == 1 else [f'b{at}_{i}' for i in range(outputs)]
        layer = Layer(op, f'l{at}', inputs, names, params, b''.join(weight_bytes(kind, values, self.half) for kind, values in weights))
        for name, value in zip(names, layer.run(self.values)):
            if value.size > self.most or value.size == 0 or value.dtype == np.float32 and not (
                    np.isfinite(value).all() and 1e-3 < np.abs(value).max() < 300):
                raise Refused(op)
            self.values[name] = value
        self.layers.append(layer)
        return names[0] if outputs == 1 else names

    def shape(self, name):
        return self.values[name].shape

    def blobs(self, accept):
        return [n for n, v in self.values.items() if v.dtype == np.float32 and accept(v)]

    def any_blob(self, *dims):
        """Mostly one of the last; of that many axes."""
        names = self.blobs(lambda v: not dims or v.ndim in dims)
        if not dims and self.chance(0.8):  # few blocks go on from a vector
            names = [n for n in names if self.values[n].ndim > 1] or names
        if not names:
            raise Refused('no such blob')
        return names[-1 - min(int(self.rng.exponential(2)), len(names) - 1)]

    def try_block(self, block, *args):
        layers, values = len(self.layers), dict(self.values)
        try:
            return block(self, *args)
        except Refused:
            del self.layers[layers:]
            self.values = values
            return None

    # ---- what was built
    def readers(self):
        count = dict.fromkeys(self.values, 0)
        for layer in self.layers:
            for name in layer.inputs:
                count[name] += 1
        return count

    def inputs(self):
        return [layer.outputs[0] for layer in self.layers if layer.op == 'Input']

    def outputs(self):
        return [name for name, count in self.readers().items() if count == 0 and name not in self.inputs()]

    def save(self, folder, split=True):
        """m.param and m.bin; with a Split behind each blob of several readers, as ncnn needs it, or without."""
        left, lines, blobs = {n: c for n, c in self.readers().items() if c > 1}, [], 0
        for layer in self.layers:
            inputs = []
            for name in layer.inputs:
                inputs.append(f'{name}_{left[name] - 1}' if split and name in left else name)
                if split and name in left:
                    left[name] -= 1
            lines.append(layer.line(inputs))
            blobs += len(layer.outputs)
            for name in layer.outputs if split else ():
                if name in left:
                    copies = [f'{name}_{i}' for i in range(left[name])]
                    lines.append(' '.join(['Split', f's{len(lines)}', '1', str(len(copies)), name, *copies]))
                    blobs += len(copies)
        (folder / 'm.param').write_text(f'7767517\n{len(lines)} {blobs}\n' + '\n'.join(lines) + '\n')
        (folder / 'm.bin').write_bytes(b''.join(layer.weights for layer in self.layers))

    def answers(self, inputs, change=0.0, seed=0):
        """All blobs for inputs by name, each changed by that share of its values, up or down."""
        rng, values = np.random.default_rng(seed), {}

        def moved(v):
            return (v * (1 + change * rng.choice([-1, 1], v.shape))).astype(np.float32) if change and v.dtype == np.float32 else v
        for layer in self.layers:
            if layer.op == 'Input':
                values[layer.outputs[0]] = moved(inputs[layer.outputs[0]])
            else:
                for name, value in zip(layer.outputs, layer.run(values)):
                    values[name] = moved(value)
        return values


# ---- activations and norms, of any blob
def activate(m, x, kind=None):
    c = m.shape(x)[0]
    kind = kind or m.pick('ReLU', 'ReLU', 'ReLU', 'Clip', 'PReLU', 'Sigmoid', 'TanH', 'Swish', 'HardSwish', 'HardSigmoid', 'ELU', 'SELU',
                          'CELU', 'GELU', 'Mish', 'Softplus', 'Silu', 'Relu6', 'Gelu', 'HardSwishOps', 'Leaky', 'UnaryOp', 'AbsVal')
    if kind == 'Silu':
        y = m.add('Sigmoid', x)
        return m.add('BinaryOp', [x, y] if m.chance() else [y, x], '0=2')
    if kind == 'Relu6':
        return m.add('Clip', x, '0=0 1=6')
    if kind == 'Leaky':
        return m.add('ReLU', x, f'0={m.uniform(0.01, 0.3)}')
    if kind == 'Clip':
        return m.add('Clip', x, f'0={m.uniform(-1, 0)} 1={m.uniform(0.1, 2)}')
    if kind == 'PReLU':
        count = m.pick(1, c)
        return m.add('PReLU', x, f'0={count}', [('raw', m.normal(0.3, count))])
    if kind == 'GELU':
        return m.add('GELU', x, m.pick('', '0=1'))
    if kind == 'ELU':
        return m.add('ELU', x, f'0={m.uniform(0.1, 1.5)}')
    if kind == 'Gelu':
        y = m.add('Erf', m.add('BinaryOp', x, '0=3 1=1 2=1.41421356'))
        y = m.add('BinaryOp', [x, m.add('BinaryOp', y, '0=0 1=1 2=1.0')], '0=2')
        return m.add('BinaryOp', y, '0=2 1=1 2=0.5')
    if kind == 'HardSwishOps':
        y = m.add('Clip', m.add('BinaryOp', x, '0=0 1=1 2=3.0'), '0=0 1=6')
        return m.add('BinaryOp', m.add('BinaryOp', [x, y], '0=2'), '0=3 1=1 2=6.0')
    if kind in ('HardSwish', 'HardSigmoid') and m.chance():
        return m.add(kind, x, f'0={m.uniform(0.1, 0.3)} 1={m.uniform(0.3, 0.7)}')
    if kind == 'UnaryOp':
        return m.add('UnaryOp', x, f'0={m.pick(0, 1, 4, 9, 10, 14, 16, 7)}')
    return m.add(kind, x)


def maybe_activate(m, x):
    return activate(m, x) if m.chance(0.6) else x


def affine(m, x):
    c, kind = m.shape(x)[0], m.pick('BatchNorm', 'BatchNorm', 'Scale', 'Bias', 'BinaryOp', 'ScaleInput')
    if kind == 'BatchNorm':
        values = [m.normal(0.5, c) + 1, m.normal(0.5, c), np.abs(m.normal(1, c)) + 0.3, m.normal(0.5, c)]
        return m.add('BatchNorm', x, f'0={c} 1={m.pick(0.0, 1e-5, 0.001)}', [('raw', v) for v in values])
    if kind == 'Scale':
        bias = m.number(0, 1)
        return m.add('Scale', x, f'0={c} 1={bias}', [('raw', m.normal(0.7, c)) for _ in range(1 + bias)])
    if kind == 'Bias':
        return m.add('Bias', x, f'0={c}', [('raw', m.normal(0.7, c))])
    if kind == 'ScaleInput':
        return m.add('Scale', [x, m.constant(m.normal(0.7, c))], '0=-233')
    return with_constant(m, x)


def norm(m, x):
    shape = m.shape(x)
    c, dims, eps = shape[0], len(shape), m.pick(1e-5, 0.001, 1e-6)
    kind = m.pick('LayerNorm', 'GroupNorm', 'InstanceNorm', 'RMSNorm', 'Normalize', 'LRN', 'MVN', 'LayerNormOps')
    on = m.number(0, 1)
    if kind in ('LayerNorm', 'RMSNorm') and dims < 4:
        size = shape[-1] * (shape[-2] if dims == 3 and m.chance(0.3) else 1)
        if size < 4:
            raise Refused('of a single value only rounding noise is left')
        return m.add(kind, x, f'0={size} 1={eps} 2={on}', [('raw', m.normal(0.5, size) + 1)] * on + [('raw', m.normal(0.5, size))] * (on and kind == 'LayerNorm'))
    if kind == 'GroupNorm' and dims < 4:
        group = m.pick(*[g for g in (1, 2, 4, 8) if c % g == 0])
        if m.values[x].size // group < 4:
            raise Refused('noise')
        return m.add('GroupNorm', x, f'0={group} 1={c} 2={eps} 3={on}', [('raw', m.normal(0.5, c) + 1), ('raw', m.normal(0.5, c))] * on)
    if dims == 3 and shape[1] * shape[2] > 3:
        if kind == 'InstanceNorm':
            return m.add('InstanceNorm', x, f'0={c if on else 0} 1={eps} 2={on}', [('raw', m.normal(0.5, c) + 1), ('raw', m.normal(0.5, c))] * on)
        if kind == 'Normalize':
            shared = m.number(0, 1)
            count = 1 if shared else c
            return m.add('Normalize', x, f'0={m.number(0, 1)} 1={shared} 2=0.0001 3={count} 4={m.number(0, 1)} 9={m.number(0, 2)}', [('raw', m.normal(1, count))])
        if kind == 'LRN':
            return m.add('LRN', x, f'0={m.number(0, 1)} 1={m.pick(3, 5)} 2={m.uniform(0.1, 1)} 3=0.75 4={m.pick(1.0, 2.0)}')
        if kind == 'MVN':
            return m.add('MVN', x, f'0={m.number(0, 1)} 1={m.number(0, 1)} 2=0.001')
    if kind == 'LayerNormOps' and shape[-1] > 3:
        mean = m.add('Reduction', x, '0=3 1=0 -23303=1,-1 4=1 5=1')
        centred = m.add('BinaryOp', [x, mean], '0=1')
        square = m.add('UnaryOp', centred, '0=4') if m.chance() else m.add('BinaryOp', centred, '0=6 1=1 2=2.0')
        var = m.add('BinaryOp', m.add('Reduction', square, '0=3 1=0 -23303=1,-1 4=1 5=1'), '0=0 1=1 2=0.001')
        y = m.add('BinaryOp', [centred, m.add('UnaryOp', var, '0=5')], '0=3')
        if on:
            y = m.add('BinaryOp', [y, m.constant(m.normal(1, shape[-1]))], '0=2') if dims == 1 else y
        return y
    raise Refused(kind)


# ---- elementwise
def operation(m):
    return m.pick(0, 0, 0, 1, 2, 2, 4, 5, 7)


def scalar(m, x):
    op = m.pick(0, 1, 2, 3, 4, 5, 7)
    return m.add('BinaryOp', x, f'0={op} 1=1 2={m.uniform(0.3, 2)}')


def with_constant(m, x):
    shape = list(m.shape(x))
    form = m.pick('channel', 'all', 'ones', 'one', 'last')
    if form == 'channel':
        shape = [shape[0]] + [1] * (len(shape) - 1) if m.chance() else shape[:1]
    elif form == 'ones':
        shape = [n if m.chance() else 1 for n in shape]
    elif form == 'one':
        shape = [1]
    elif form == 'last':
        shape = [1] * (len(shape) - 1) + shape[-1:]
    c = m.constant(m.normal(1, *shape))
    return m.add('BinaryOp', [x, c] if m.chance(0.7) else [c, x], f'0={operation(m)}')


def combine(m, x):
    shape = m.shape(x)

    def fits(v):
        return v.ndim == len(shape) and all(a == b or 1 in (a, b) for a, b in zip(v.shape, shape)) or v.shape == shape[:1]
    others = m.blobs(fits)
    y = others[m.number(0, len(others) - 1)]
    return m.add('BinaryOp', [x, y] if m.chance() else [y, x], f'0={operation(m)}')


def eltwise(m, x):
    others = m.blobs(lambda v: v.shape == m.shape(x))
    names = [x] + [others[m.number(0, len(others) - 1)] for _ in range(m.number(1, 3))]
    op = m.number(0, 2)
    coefficients = ' ' + array(1, [float(v) for v in m.rng.uniform(-2, 2, len(names))]) if op == 1 and m.chance(0.4) else ''
    return m.add('Eltwise', names, f'0={op}{coefficients}')


# ---- windows
def pads(m, kernel, dilation, stride, same=True):
    extent = (kernel - 1) * dilation + 1
    form = m.pick('same', 'half', 'half', 'none', 'four') if same and extent >= stride else m.pick('half', 'none', 'four')
    if form == 'same':
        return f' 4={m.pick(-233, -234)}'
    if form == 'half':
        return f' 4={extent // 2}'
    return '' if form == 'none' else ' 4=%d 15=%d 14=%d 16=%d' % tuple(m.rng.integers(0, kernel + 1, 4))


def int8_terms(m, x, count, out, groups, term):
    weight = m.rng.integers(-127, 128, count).astype(np.int8)
    scale = 1 if m.values[x].dtype == np.int8 else 127 / max(float(np.abs(m.values[x]).max()), 1e-3)
    weights = [('raw', m.rng.uniform(60, 300, groups).astype(np.float32)), ('raw', np.float32([scale]))]
    return weight, weights + ([('raw', np.float32([m.rng.uniform(10, 60)]))] if term > 100 else [])


def conv(m, x, out=None, kernel=None, stride=None, group=1, act=None):
    stored = m.values[x].dtype == np.int8
    shape = m.shape(x)
    c = shape[0]
    one_d = len(shape) == 2
    op = ('Convolution' if group == 1 else 'ConvolutionDepthWise') + ('1D' if one_d else '3D' if len(shape) == 4 else '')
    axes = len(shape) - 1
    out = out or group * m.pick(*((1, 1, 2, 4) if group > 1 else (32, 64, 96, 128) if m.large else (1, 3, 4, 8, 13, 16, 24, 32)))
    kernel, dilation, stride = kernel or m.pick(1, 1, 3, 3, 3, 5, 2), m.pick(1, 1, 1, 1, 2), stride or m.pick(1, 1, 1, 2)
    extra = f' 1={kernel} 2={dilation} 3={stride}'
    if axes == 2 and m.chance(0.15):
        extra += f' 11={m.pick(1, 2, 3)} 13={stride} 12={dilation}'
    high = int(extra.split(' 11=')[1].split()[0]) if ' 11=' in extra else kernel
    extra += pads(m, min(kernel, high), dilation, stride)
    if min(shape[1:]) < (max(kernel, high) - 1) * dilation + (1 if dilation == 1 else 5):
        raise Refused('ncnn writes out of bounds')
    bias = m.number(0, 1)
    count = out * (c // group) * kernel ** (axes - 1) * (high if axes > 1 else kernel)
    act = activation(m.rng) if act is None and m.chance(0.5) else act or ''
    text = f'0={out}{extra} 5={bias} 6={count}{act}' + (f' 7={group}' if group > 1 else '')
    biases = [('raw', m.normal(0.3, out))] * bias
    if stored or m.int8 and axes == 2 and m.chance(0.7):
        term = m.pick(1, 1, 2, 101, 102)
        weight, scales = int8_terms(m, x, count, out, (group if term % 100 == 1 else 1) if group > 1 else out, term)
        y = m.add(op, x, f'{text} 8={term}', [('int8', weight)] + biases + scales)
        if term < 100:
            return y
        if m.chance(0.4):
            y = m.add(*m.pick(('Concat', [y, y], '0=0'), ('ReLU', y), ('Noop', y)))
        return conv(m, y, act=act)
    if axes == 2 and m.chance(0.1):
        text += ' 18=0.5'
    scale = m.pick(0.7, 1, 1.5) / np.sqrt(count / out)
    if axes < 3 and m.chance(0.06):
        weight = m.constant(m.normal(scale, *((out, c // group, high, kernel) if axes == 2 else (out, c // group, kernel))))
        blobs = [x, weight] + ([m.constant(biases[0][1])] if bias else [])
        return m.add(op, blobs, f'{extra.strip()} 5={bias}{act} 19=1' + (f' 7={group}' if group > 1 else ''))
    return m.add(op, x, text, [('tagged', m.normal(scale, count))] + biases)


def depthwise(m, x):
    c = m.shape(x)[0]
    group = m.pick(c, c, c, *[g for g in (2, 3, 4) if c % g == 0])
    return conv(m, x, c if group == c else None, m.pick(3, 3, 5, 1), group=group) if group > 1 else conv(m, x)


def deconv(m, x):
    shape, kernel, stride = m.shape(x), m.pick(1, 2, 3, 4), m.pick(1, 2, 2, 3)
    c, group = shape[0], m.pick(1, 1, shape[0])
    out = c if group > 1 else m.pick(1, 3, 4, 8, 16)
    cut = m.pick('', ' 4=1', ' 4=1 15=0 14=0 16=1', ' 18=1', ' 18=1 19=0') if kernel > 2 else ''
    bias, count = m.number(0, 1), c * out // group * kernel * kernel
    text = f'0={out} 1={kernel} 3={stride}{cut} 5={bias} 6={count}{activation(m.rng) if m.chance() else ""}' + (f' 7={group}' if group > 1 else '')
    return m.add('Deconvolution' + ('DepthWise' if group > 1 else ''), x, text,
                 [('tagged', m.normal(1 / np.sqrt(count / out), count))] + [('raw', m.normal(0.3, out))] * bias)


def pool(m, x):
    dims = len(m.shape(x))
    op = {2: 'Pooling1D', 3: 'Pooling', 4: 'Pooling3D'}[dims]
    kind, form = m.number(0, 1), m.rng.random()
    if form < 0.2:
        return m.add(op, x, f'0={kind} 4=1')
    if form < 0.35:
        return m.add(op, x, f'0={kind} 7=1 8={m.number(1, 5)}' + (f' 18={m.number(1, 5)}' if dims > 2 else ''))
    kernel = m.pick(2, 3, 3, 5)
    stride, mode = m.number(1, min(3, kernel)), m.number(0, 3)
    if min(m.shape(x)[1:]) < kernel:
        raise Refused('ncnn writes out of bounds')
    text = f'0={kind} 1={kernel} 2={stride} 5={mode} 6={m.number(0, 1)}'
    if mode < 2:
        text += f' 3={m.number(0, kernel // 2)}'
        if m.chance(0.3):
            text += ' 14=%d 13=%d 15=%d' % tuple(m.rng.integers(0, kernel // 2 + 1, 3))
    return m.add(op, x, text)


def image_op(m, x):
    c, h, w = m.shape(x)
    kind = m.pick('PixelShuffle', 'ShuffleChannel', 'Reorg', 'Interp', 'Interp', 'Unfold', 'GridSample', 'Deconv', 'InterpLike')
    if kind == 'PixelShuffle':
        factor = m.pick(2, 3, 4)
        if c % (factor * factor):
            x = conv(m, x, factor * factor * m.pick(1, 3, 4))
        return m.add(kind, x, f'0={factor} 1={m.number(0, 1)}')
    if kind == 'ShuffleChannel':
        return m.add(kind, x, f'0={m.pick(*[g for g in (2, 3, 4) if c % g == 0] or [1])} 1={m.number(0, 1)}')
    if kind == 'Reorg':
        return m.add(kind, x, f'0=2 1={m.number(0, 1)}')
    if kind == 'Interp':
        method = m.number(1, 3)
        size = m.pick('1=2.0 2=2.0', '1=2.0 2=2.0', f'3={m.number(1, 20)} 4={m.number(1, 20)}', f'1={m.uniform(0.5, 2.2)} 2={m.uniform(0.5, 2.2)}')
        return m.add(kind, x, f'0={method} {size} 6={m.number(0, 1) if method > 1 else 0}')
    if kind == 'InterpLike':
        return m.add('Interp', [x, m.any_blob(3)], f'0={m.number(1, 2)} 5=1')
    if kind == 'Unfold' and min(h, w) > 2:
        return m.add(kind, x, f'1={m.pick(2, 3)} 3={m.pick(1, 2)} 4={m.number(0, 1)}')
    if kind == 'GridSample' and min(h, w) > 4:  # points that are reflected twice ncnn reads from beside the image
        grid = m.constant(m.rng.uniform(-1.2, 1.2, (m.number(2, 9), m.number(2, 9), 2)).astype(np.float32))
        return m.add(kind, [x, grid], f'0={m.pick(1, 3)} 1={m.number(1, 3)} 2={m.number(0, 1)}')
    return deconv(m, x)


# ---- parts, joins, views
def join(m, x):
    shape, axis = m.shape(x), m.number(0, len(m.shape(x)) - 1) if m.chance(0.4) else 0

    def fits(v):
        return v.ndim == len(shape) and v.shape[:axis] == shape[:axis] and v.shape[axis + 1:] == shape[axis + 1:]
    others = m.blobs(fits)
    names = [x] + [others[m.number(0, len(others) - 1)] for _ in range(m.number(1, 3))]
    m.rng.shuffle(names)
    return m.add('Concat', names, f'0={axis if m.chance() else axis - len(shape)}')


def parts(m, x):
    shape = m.shape(x)
    axis = m.number(0, len(shape) - 1) if m.chance(0.4) else 0
    n = shape[axis]
    cuts = sorted(set(m.rng.integers(1, n, m.number(1, 3)).tolist())) if n > 1 else []
    if not cuts:
        raise Refused('one part')
    if m.chance() and n % (len(cuts) + 1) == 0:
        text = array(0, [-233] * (len(cuts) + 1))
    elif m.chance(0.3):
        text = array(2, [c if m.chance() else c - n for c in cuts])
    else:
        sizes = [b - a for a, b in zip([0] + cuts, cuts + [n])]
        text = array(0, sizes[:-1] + [m.pick(sizes[-1], -233)])
    made = m.add('Slice', x, f'{text} 1={axis if m.chance() else axis - len(shape)}', outputs=len(cuts) + 1)
    made = [maybe_activate(m, y) if m.chance() else y for y in made]
    if m.chance(0.4):
        made = [made[i] for i in m.rng.permutation(len(made))]
        return m.add('Concat', made, f'0={axis}')
    return made[0]


def factors(m, size, count):
    """`count` numbers whose product is `size`."""
    sizes = []
    for _ in range(count - 1):
        sizes.append(int(m.rng.choice([k for k in range(1, min(size, 32) + 1) if size % k == 0])))
        size //= sizes[-1]
    return sizes + [size]


def view(m, x):
    shape = m.shape(x)
    dims = len(shape)
    kind = m.pick('Reshape', 'Reshape', 'Permute', 'Permute', 'Flatten', 'ExpandDims', 'Squeeze', 'Crop', 'Crop', 'Padding', 'Tile', 'Flip', 'CopyTo')
    if kind == 'Reshape':
        sizes = factors(m, m.values[x].size, m.number(1, 4))
        keys = {1: (0,), 2: (1, 0), 3: (2, 1, 0), 4: (2, 11, 1, 0)}[len(sizes)]
        texts = [str(n) for n in sizes]
        for i, key in enumerate(keys):  # 0: as the input's
            at = {0: dims - 1, 1: dims - 2, 2: 0, 11: 1}[key]
            if 0 <= at < dims and shape[at] == sizes[i] and m.chance(0.3) and (key != 11 or dims == 4) and (key != 2 or dims > 2):
                texts[i] = '0'
        if m.chance(0.4):
            texts[m.number(0, len(texts) - 1)] = '-1'
        return m.add(kind, x, ' '.join(f'{key}={t}' for key, t in zip(keys, texts)))
    if kind == 'Permute' and dims > 1:
        return m.add(kind, x, f'0={m.number(0, {2: 1, 3: 5, 4: 23}[dims])}')
    if kind == 'ExpandDims' and dims < 4:
        return m.add(kind, x, array(3, [m.number(-dims - 1, dims)]))
    if kind == 'Squeeze' and 1 in shape and dims > 1:
        return m.add(kind, x, array(3, [shape.index(1)]))
    if kind == 'Crop':
        axes = sorted(m.rng.choice(dims, m.number(1, dims), replace=False).tolist())
        starts = [m.number(0, shape[a] // 2) for a in axes]
        ends = [m.number(s + 1, shape[a]) if m.chance(0.6) else -233 for s, a in zip(starts, axes)]
        return m.add(kind, x, f'{array(9, starts)} {array(10, ends)} {array(11, axes)}')
    if kind == 'Padding':
        mode = m.number(0, 2)
        most = [2, 2, min(2, min(shape) - 1)][mode]
        across = tuple(m.rng.integers(0, most + 1, 4)) if dims > 1 else (0, 0, *m.rng.integers(0, most + 1, 2))
        y = m.add(kind, x, '0=%d 1=%d 2=%d 3=%d' % across + f' 4={mode} 5={m.pick("0.0", "0.0", m.uniform(-1, 1))}')
        return conv(m, y) if dims == 3 and m.chance(0.6) else y
    if kind == 'Tile':
        return m.add(kind, x, array(2, m.rng.integers(1, 3, dims).tolist()))
    if kind == 'Flip':
        return m.add(kind, x, array(0, [m.number(-dims, dims - 1)]))
    if kind == 'CopyTo':
        part = view_part(m, x)
        starts = [m.number(0, n - k) for n, k in zip(shape, m.shape(part))]
        return m.add(kind, [x, part], sizes_of(starts, 13))
    return m.add('Flatten', x)


def view_part(m, x):
    shape = m.shape(x)
    ends = [m.number(1, n) for n in shape]
    return maybe_activate(m, m.add('Crop', x, f'{array(9, [0] * len(shape))} {array(10, ends)} {array(11, list(range(len(shape))))}'))


def reduce(m, x):
    dims = len(m.shape(x))
    if m.chance(0.2):
        return m.add('Softmax', x, f'0={m.number(-dims, dims - 1)} 1=1')
    if m.chance(0.15):
        return m.add('CumulativeSum', x, f'0={m.number(-dims, dims - 1)}')
    axes = [int(a) - (dims if m.chance() else 0) for a in m.rng.choice(dims, m.number(1, dims), replace=False)]
    return m.add('Reduction', x, f'0={m.pick(0, 2, 3, 3, 3, 4, 5, 7, 8)} 1=0 2={m.pick(1.0, 1.0, 0.5)} {array(3, axes)} 4={m.number(0, 1)} 5=1')


# ---- products
def linear(m, x, out=None):
    shape = m.shape(x)
    if len(shape) > 3:
        raise Refused('InnerProduct of 4 axes')
    count = shape[1] if len(shape) == 2 else m.values[x].size
    out, bias = out or m.pick(1, 3, 8, 16, 33, 64), m.number(0, 1)
    if out * count > 1 << 18:
        raise Refused('large')
    text = f'0={out} 1={bias} 2={out * count}{activation(m.rng) if m.chance(0.4) else ""}'
    if m.int8 and m.chance(0.7):
        weight, scales = int8_terms(m, x, out * count, out, out, 1)
        return m.add('InnerProduct', x, f'{text} 8={m.pick(1, 2)}', [('int8', weight)] + [('raw', m.normal(0.3, out))] * bias + scales)
    return m.add('InnerProduct', x, text, [('tagged', m.normal(1 / np.sqrt(count), out * count))] + [('raw', m.normal(0.3, out))] * bias)


def gemm(m, x):
    rows, k = m.shape(x)
    n, trans, form = m.pick(1, 4, 7, 16, 33), m.number(0, 1), m.number(-1, 4)
    c = {-1: (), 0: (1,), 1: (rows,), 2: (rows, 1), 3: (rows, n), 4: (1, n)}[form]
    return m.add('Gemm', x, f'0={m.pick(1.0, 0.5)} 1={m.pick(1.0, -0.7)} 3={trans} 5=1 6=1 8={n} 9={k} 10={form} 14={m.number(0, 1)}',
                 [('tagged', m.normal(1 / np.sqrt(k), n * k))] + ([('tagged', m.normal(0.5, *c))] if c else []))


def attention(m, x):
    """Of rows of a matrix: projections, heads, products, and back; or one layer that is all of it."""
    rows, size = m.shape(x)
    heads = m.pick(*[h for h in (1, 2, 3, 4) if size % h == 0])
    each, form = size // heads, m.pick('layer', 'products', 'sdpa')
    if form == 'layer':
        weights = []
        for _ in range(4):
            weights += [('tagged', m.normal(1 / np.sqrt(size), size * size)), ('raw', m.normal(0.2, size))]
        return m.add('MultiHeadAttention', x, f'0={size} 1={heads} 2={size * size} 3={size} 4={size}', weights)
    if m.chance(0.3):  # one product for the three
        q, k, v = m.add('Slice', linear(m, x, 3 * size), f'{array(0, [-233] * 3)} 1=1', outputs=3)
    else:
        q, k, v = (linear(m, x, size) for _ in range(3))
    q, k, v = (m.add('Permute', m.add('Reshape', y, f'0={each} 1={heads} 2=-1'), '0=2') for y in (q, k, v))
    if form == 'sdpa':
        y = m.add('SDPA', [q, k, v], '')
    else:
        if m.chance():
            q = m.add('BinaryOp', q, f'0=2 1=1 2={each ** -0.5:.5f}')
        scores = m.add('MatMul', [q, k], '0=1') if m.chance() else m.add('MatMul', [q, m.add('Permute', k, '0=1')], '0=0')
        if m.chance(0.4):
            scores = m.add('BinaryOp', [scores, m.constant(m.normal(1, *m.pick((1, rows, rows), (heads, rows, rows))))], '0=0')
        y = m.add('MatMul', [m.add('Softmax', scores, '0=-1 1=1'), v])
    return m.add('Reshape', m.add('Permute', y, '0=2'), f'0={size} 1=-1')


def recurrent(m, x):
    op, gates, bias_rows, states = m.pick(('LSTM', 4, 4, 2), ('GRU', 3, 4, 1), ('RNN', 1, 1, 1))
    size, out, direction = m.shape(x)[1], m.pick(1, 4, 8, 13, 16), m.number(0, 2)
    both = 2 if direction == 2 else 1
    weights = [('tagged', m.normal(0.4, both * gates * out * size)), ('tagged', m.normal(0.3, both * bias_rows * out)), ('tagged', m.normal(0.4, both * gates * out * out))]
    outputs = m.pick(1, 1, 1 + states)
    made = m.add(op, x, f'0={out} 1={both * gates * out * size} 2={direction}', weights, outputs=outputs)
    return made if outputs == 1 else made[0]


def matrix_op(m, x):
    rows, size = m.shape(x)
    kind = m.pick('linear', 'linear', 'gemm', 'attention', 'attention', 'recurrent', 'recurrent', 'matmul', 'conv1d', 'glu', 'feed', 'norm')
    if kind == 'matmul':
        b = m.constant(m.normal(1 / np.sqrt(size), *m.pick((size, 8), (size, 5), (size,), (2, size, 4))))
        return m.add('MatMul', [x, b], '0=0')
    if kind == 'glu':
        return m.add('GLU', x, f'0={m.number(0, 1)}')
    if kind == 'feed':
        return m.add('BinaryOp', [linear(m, activate(m, linear(m, x, m.pick(16, 24, 32))), size), x], '0=0')
    return {'linear': linear, 'gemm': gemm, 'attention': attention, 'recurrent': recurrent, 'conv1d': conv, 'norm': norm}[kind](m, x)


# ---- blocks of images
def residual(m, x):
    y = maybe_activate(m, conv(m, x, None, m.pick(1, 3), 1))
    y = conv(m, y, m.shape(x)[0], 1, 1, act='')
    if m.shape(y) != m.shape(x):
        raise Refused('sizes')
    y = maybe_affine(m, y)
    if m.chance(0.2):
        y = m.add('Eltwise', [x, y], '0=1')
    else:
        y = m.add('BinaryOp', [x, y] if m.chance() else [y, x], '0=0')
    return maybe_activate(m, y)


def maybe_affine(m, x):
    for _ in range(m.pick(0, 0, 1, 2)):
        x = affine(m, x)
    return x


def conv_chain(m, x):
    y = conv(m, x) if m.chance(0.7) else depthwise(m, x)
    return maybe_activate(m, maybe_affine(m, y))


def gate(m, x):
    c = m.shape(x)[0]
    y = m.add('Pooling', x, '0=1 4=1') if m.chance() else m.add('Reduction', x, f'0=3 1=0 {array(3, [1, 2])} 4={m.number(0, 1)} 5=1')
    if len(m.shape(y)) == 3 or m.chance():
        y = activate(m, linear(m, y, max(2, c // 4)), m.pick('ReLU', 'Swish'))
        y = m.add(m.pick('Sigmoid', 'HardSigmoid'), linear(m, y, c))
        if m.chance():
            y = m.add('Reshape', y, f'0=1 1=1 2={m.pick(c, -1)}')
    return m.add('BinaryOp', [x, y] if m.chance() else [y, x], '0=2')


def branches(m, x):
    names = [maybe_activate(m, conv(m, x, m.pick(4, 5, 8, 16), m.pick(1, 3), 1)) for _ in range(m.number(2, 3))]
    if len({m.shape(n)[1:] for n in names}) > 1:
        raise Refused('sizes')
    if m.chance(0.3) and m.shape(x)[1:] == m.shape(names[0])[1:]:
        names.append(x)
    y = m.add('Concat', names, '0=0')
    return y if m.chance(0.6) else parts(m, y)


def shuffle_unit(m, x):
    c = m.shape(x)[0]
    if c % 2:
        raise Refused('odd')
    a, b = m.add('Slice', x, f'{array(0, [-233, -233])} 1=0', outputs=2)
    b = conv(m, m.add('ReLU', conv(m, b, c // 2, 1, 1)), c // 2, 1, 1)
    if m.shape(a) != m.shape(b):
        raise Refused('sizes')
    y = m.add('Concat', [a, b], '0=0')
    if m.chance():
        return m.add('ShuffleChannel', y, '0=2')
    h, w = m.shape(y)[1:]
    y = m.add('Reshape', y, f'0={w} 1={h} 11={c // 2} 2=2')
    return m.add('Reshape', m.add('Permute', y, f'0={m.pick(6, 7, 14, 18)}'), f'0={w} 1={h} 2={c}')


ANY = (activate, activate, affine, norm, norm, norm, scalar, with_constant, combine, combine, eltwise, join, join, parts, parts, view, view, view, reduce)
OF_DIMS = {1: (linear,), 2: (matrix_op,) * 8 + (pool,), 3: (conv_chain,) * 6 + (residual, residual, residual, gate, gate, branches, branches, shuffle_unit, image_op, image_op, image_op, pool, pool, linear, depthwise), 4: (conv, pool)}


def network(seed, int8=False):
    """A Network of one to three inputs and up to some twenty blocks."""
    m = Network(seed, int8)
    for _ in range(m.pick(1, 1, 2)):
        dims = m.pick(3, 3, 3, 3, 2, 2, 2, 1, 4) if not int8 else 3
        c = m.pick(1, 3, 3, 4, 8, 12, 16, 24)
        most = {2: 40, 3: 40 if m.large else 18, 4: 7}
        m.input((c,) + tuple(m.number(3 if dims == 4 else 4, most[dims]) for _ in range(dims - 1)))
    for _ in range(m.number(3, 16)):
        x = m.any_blob()
        own = OF_DIMS[len(m.shape(x))]
        m.try_block(m.pick(*own) if m.chance(0.6) else m.pick(*ANY), x)
    if len(m.layers) == len(m.inputs()):
        m.add('ReLU', m.any_blob())
    return m
