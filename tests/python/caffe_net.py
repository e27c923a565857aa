"""Caffe nets for tests: built layer by layer, computed on the way, written as prototxt and caffemodel."""
import struct

import numpy as np

from caffe_reference import LAYERS


class Word(str):
    """A value that the text has without quotes, of an enum."""


def text_of(fields, indent=''):
    """{name: value} as protobuf text. A list is a repeated field, a dict a message."""
    lines = []
    for name, values in fields.items():
        for value in values if isinstance(values, (list, tuple)) else [values]:
            if isinstance(value, dict):
                lines += [f'{indent}{name} {{', text_of(value, indent + '  '), f'{indent}}}']
            elif isinstance(value, bool):
                lines.append(f'{indent}{name}: {str(value).lower()}')
            elif isinstance(value, str) and not isinstance(value, Word):
                lines.append(f'{indent}{name}: "{value}"')
            else:
                lines.append(f'{indent}{name}: {value}')
    return '\n'.join(line for line in lines if line)


def varint(value):
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))


def chunk(number, payload):
    """A field with a length: bytes, a string or a message."""
    payload = payload.encode() if isinstance(payload, str) else payload
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def blob_bytes(blob, legacy=False):
    """A BlobProto; legacy: num, channels, height, width in place of the shape."""
    if legacy:
        sizes = [1] * (4 - blob.ndim) + list(blob.shape)
        head = b''.join(varint(i + 1 << 3) + varint(size) for i, size in enumerate(sizes))
    else:
        head = chunk(7, chunk(1, b''.join(map(varint, blob.shape))))
    return head + chunk(5, blob.astype('<f4').tobytes())


# Types of the format before 2015.
V1_TYPES = {'AbsVal': (35, 'ABSVAL'), 'Concat': (3, 'CONCAT'), 'Convolution': (4, 'CONVOLUTION'), 'Dropout': (6, 'DROPOUT'),
            'Eltwise': (25, 'ELTWISE'), 'Flatten': (8, 'FLATTEN'), 'InnerProduct': (14, 'INNER_PRODUCT'), 'LRN': (15, 'LRN'),
            'Pooling': (17, 'POOLING'), 'Power': (26, 'POWER'), 'ReLU': (18, 'RELU'), 'Sigmoid': (19, 'SIGMOID'),
            'Slice': (33, 'SLICE'), 'Softmax': (20, 'SOFTMAX'), 'TanH': (23, 'TANH'), 'Deconvolution': (39, 'DECONVOLUTION'),
            'MVN': (34, 'MVN'), 'ArgMax': (30, 'ARGMAX'), 'BNLL': (2, 'BNLL'), 'Exp': (38, 'EXP'),
            'Threshold': (31, 'THRESHOLD')}


# Types and fields of the format of 2013; its im2col had no fields.
V0_TYPES = {'BNLL': 'bnll', 'Concat': 'concat', 'Convolution': 'conv', 'Dropout': 'dropout', 'Flatten': 'flatten',
            'InnerProduct': 'innerproduct', 'LRN': 'lrn', 'Pooling': 'pool', 'ReLU': 'relu', 'Sigmoid': 'sigmoid',
            'Softmax': 'softmax', 'Split': 'split', 'TanH': 'tanh'}
V0_FIELDS = {'bias_term': 'biasterm', 'kernel_size': 'kernelsize'}


class Layer:
    def __init__(self, name, kind, bottom, top, fields, blobs):
        self.name, self.type, self.bottom, self.top = name, kind, bottom, top
        self.fields, self.blobs = fields, blobs

    def param(self, name):
        return self.fields.get(name, {})


class CaffeNet:
    """values[blob] is what Caffe has under that name when the layers added so far have run."""

    def __init__(self, rng, inputs):
        self.rng, self.layers, self.values = rng, [], {}
        self.read, self.read_ever = set(), set()  # blobs as they are now; and names
        self.inputs = {name: np.asarray(array, np.float32) for name, array in inputs.items()}
        self.values.update({name: array.astype(np.float64) for name, array in self.inputs.items()})

    def add(self, kind, bottom, top=None, blobs=(), name=None, **fields):
        """Adds a layer; `top` absent: in place. Returns its (first) output's name."""
        bottom = [bottom] if isinstance(bottom, str) else list(bottom)
        top = bottom[:1] if top is None else [top] if isinstance(top, str) else list(top)
        blobs = [np.asarray(blob, np.float32) for blob in blobs]
        layer = Layer(name or f'{top[0]}_{kind.lower()}{len(self.layers)}', kind, bottom, top, fields, blobs)
        double = Layer(layer.name, kind, bottom, top, fields, [blob.astype(np.float64) for blob in blobs])
        self.read.update(bottom)
        self.read_ever.update(bottom)
        self.read.difference_update(top)
        self.layers.append(layer)
        self.values.update(zip(top, LAYERS[kind](double, *(self.values[b] for b in bottom))))
        return top[0]

    def random(self, *shape, scale=1.0, low=None):
        """Normal values, or uniform ones from `low` to scale."""
        values = self.rng.normal(0, scale, shape) if low is None else self.rng.uniform(low, scale, shape)
        return values.astype(np.float32)

    def conv(self, bottom, top, count, kernel, bias=True, kind='Convolution', **param):
        kernels = tuple(kernel) if isinstance(kernel, (list, tuple)) else (kernel, kernel)
        size = {'kernel_size': kernel} if kernels[0] == kernels[1] else {'kernel_h': kernels[0], 'kernel_w': kernels[1]}
        group, channels = param.get('group', 1), self.values[bottom].shape[1]
        group = count if kind not in ('Convolution', 'Deconvolution') else group
        first, second = (channels, count) if kind == 'Deconvolution' else (count, channels)
        shape = (first, second // group, *kernels)
        fan_in = channels // group * kernels[0] * kernels[1]
        blobs = [self.random(*shape, scale=(2 / fan_in) ** 0.5)] + ([self.random(count, scale=0.1)] if bias else [])
        param = {'num_output': count, **size, **param, **({} if bias else {'bias_term': False})}
        return self.add(kind, bottom, top, blobs, name=top, convolution_param=param)

    def fc(self, bottom, top, count, **param):
        inputs = int(np.prod(self.values[bottom].shape[param.get('axis', 1):]))
        blobs = [self.random(count, inputs, scale=inputs ** -0.5), self.random(count, scale=0.1)]
        return self.add('InnerProduct', bottom, top, blobs, name=top, inner_product_param={'num_output': count, **param})

    def relu(self, bottom, kind='ReLU', **fields):
        return self.add(kind, bottom, **fields)

    def batch_norm(self, bottom, top=None, eps=1e-5):
        """BatchNorm, whose sums are over more than one batch, and Scale."""
        count = self.values[bottom].shape[1]
        factor = 998.7
        x = self.values[bottom]
        mean = x.mean(axis=(0, 2, 3)) + self.random(count, scale=0.1)
        variance = x.var(axis=(0, 2, 3)) * self.random(count, low=0.5, scale=2.0) + 1e-3
        top = self.add('BatchNorm', bottom, top, [mean * factor, variance * factor, [factor]], batch_norm_param={'eps': eps})
        return self.add('Scale', top, None, [self.random(count, low=0.5, scale=1.5), self.random(count, scale=0.2)],
                        scale_param={'bias_term': True})

    def pool(self, bottom, top, kernel=0, op='MAX', **param):
        size = {'kernel_size': kernel} if kernel else {'global_pooling': True}
        return self.add('Pooling', bottom, top, pooling_param={'pool': Word(op), **size, **param})

    def join(self, other, prefix):
        """Adds the layers of a net beside those of this one, all its names with a prefix."""
        mark = lambda names: [prefix + name for name in names]
        self.inputs.update({prefix + name: array for name, array in other.inputs.items()})
        self.values.update({prefix + name: array for name, array in other.values.items()})
        self.read.update(mark(other.read)), self.read_ever.update(mark(other.read_ever))
        self.layers += [Layer(prefix + layer.name, layer.type, mark(layer.bottom), mark(layer.top), layer.fields, layer.blobs)
                        for layer in other.layers]

    def outputs(self):
        """Names that no layer reads, in order."""
        names = dict.fromkeys(top for layer in self.layers for top in layer.top)
        return [name for name in names if name not in self.read]

    def input_text(self, form='layer'):
        if form == 'layer':
            return '\n'.join(text_of({'layer': {'name': name, 'type': 'Input', 'top': name,
                                                'input_param': {'shape': {'dim': list(array.shape)}}}})
                             for name, array in self.inputs.items())
        parts = []
        for name, array in self.inputs.items():
            shape = {'input_shape': {'dim': list(array.shape)}} if form == 'shape' else {'input_dim': list(array.shape)}
            parts.append(text_of({'input': name, **shape}))
        return '\n'.join(parts)

    def prototxt_v0(self, inputs='shape'):
        parts = [self.input_text(inputs)]
        for layer in self.layers:
            fields = {V0_FIELDS.get(name, name): value for param in layer.fields.values() for name, value in param.items()}
            inner = {'name': layer.name, 'type': V0_TYPES[layer.type], **fields}
            parts.append(text_of({'layers': {'layer': inner, 'bottom': layer.bottom, 'top': layer.top}}))
        return '\n'.join(parts) + '\n'

    def caffemodel_v0(self):
        net = b''
        for layer in self.layers:
            body = chunk(1, layer.name) + b''.join(chunk(50, blob_bytes(blob, legacy=True)) for blob in layer.blobs)
            net += chunk(2, chunk(1, body))
        return net

    def prototxt(self, inputs='layer', v1=False):
        parts = ['name: "net"', self.input_text(inputs)]
        for layer in self.layers:
            kind = Word(V1_TYPES[layer.type][1]) if v1 else layer.type
            parts.append(text_of({'layers' if v1 else 'layer': {'name': layer.name, 'type': kind, 'bottom': layer.bottom,
                                                                 'top': layer.top, **layer.fields}}))
        return '\n'.join(parts) + '\n'

    def caffemodel(self, v1=False):
        """Names and blobs, with what else a weight file has: types, bottoms, tops."""
        net = chunk(1, 'net')
        for layer in self.layers:
            if v1:
                body = varint(5 << 3) + varint(V1_TYPES[layer.type][0]) + chunk(4, layer.name)
            else:
                body = chunk(1, layer.name) + chunk(2, layer.type)
            body += b''.join(chunk(2 if v1 else 3, b) for b in layer.bottom)
            body += b''.join(chunk(3 if v1 else 4, t) for t in layer.top)
            body += b''.join(chunk(6 if v1 else 7, blob_bytes(blob, v1)) for blob in layer.blobs)
            net += chunk(2 if v1 else 100, body)
        return net
