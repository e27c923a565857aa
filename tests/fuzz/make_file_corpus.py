#!/usr/bin/env python3
"""Writes the seed corpora of the fuzzers of other files (needs numpy): make_file_corpus.py [FOLDER] (default: corpus/ beside this
script). npy, image, config (quoll.yml), caffe (a prototxt, a NUL and its caffemodel).
"""
import io
import pathlib
import struct
import sys
import zlib

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / 'tests/python'))
from caffe_net import blob_bytes, chunk, text_of  # noqa: E402


def arrays():
    for kind in ('f4', 'f2', 'f8', 'i8', 'i4', 'u1', 'i1', 'u4', '?', '>f4', 'c8'):
        yield kind.replace('?', 'b').replace('>', 'be'), np.arange(6).reshape(2, 3).astype(kind)
    yield 'fortran', np.asfortranarray(np.arange(24, dtype=np.float32).reshape(2, 3, 4))
    yield 'scalar', np.float32(3)
    yield 'none', np.zeros((2, 0, 3), np.float32)
    yield 'five', np.zeros((1, 2, 1, 2, 1), np.float32)


def pictures():
    rgb = bytes(range(4 * 3 * 3))
    yield 'pnm', b'P6 4 3 255\n' + rgb
    yield 'grey', b'P5\n# a comment\n4 3\n255\n' + rgb[:12]
    rows = b''.join(rgb[y * 12:y * 12 + 12] for y in range(3))
    yield 'bmp', b'BM' + struct.pack('<IHHI', 54 + 36, 0, 0, 54) + struct.pack('<IiiHHIIiiII', 40, 4, 3, 1, 24, 0, 36, 0, 0, 0, 0) + rows
    yield 'tga', struct.pack('<BBBHHBHHHHBB', 0, 0, 2, 0, 0, 0, 0, 0, 4, 3, 24, 0) + rgb
    yield 'tga_rle', struct.pack('<BBBHHBHHHHBB', 0, 0, 10, 0, 0, 0, 0, 0, 4, 3, 24, 0) + b'\x83\1\2\3' * 3
    part = lambda kind, data: struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))  # noqa: E731
    for name, depth, colour, row in (('png', 8, 2, 12), ('png16', 16, 6, 32), ('png1', 1, 0, 1)):
        data = b''.join(b'\0' + bytes(i * 7 % 256 for i in range(row)) for _ in range(3))
        yield name, (b'\x89PNG\r\n\x1a\n' + part(b'IHDR', struct.pack('>IIBBBBB', 4, 3, depth, colour, 0, 0, 0)) +
                     part(b'IDAT', zlib.compress(data)) + part(b'IEND', b''))
    marker = lambda kind, data: struct.pack('>BBH', 0xff, kind, 2 + len(data)) + data  # noqa: E731
    for name, frame, last in (('jpeg', 0xc0, 63), ('jpeg_progressive', 0xc2, 0)):  # 16 x 8, three colours, codes of one bit for 0
        tables = b''.join(marker(0xc4, bytes([kind]) + b'\1' + bytes(15) + b'\0') for kind in (0x00, 0x10))
        components = b''.join(bytes([i, 0x11, 0]) for i in (1, 2, 3))
        scan = marker(0xda, b'\3' + b''.join(bytes([i, 0]) for i in (1, 2, 3)) + bytes([0, last, 0])) + b'\0\x0f'
        yield name, (b'\xff\xd8' + marker(0xdb, b'\0' + b'\1' * 64) + marker(frame, struct.pack('>BHHB', 8, 8, 16, 3) + components) +
                     tables + scan + b'\xff\xd9')
    yield 'gif', (b'GIF89a' + struct.pack('<HHBBB', 2, 2, 0x80, 0, 0) + b'\0\0\0\xff\xff\xff' + b',' +
                  struct.pack('<HHHHB', 0, 0, 2, 2, 0) + b'\2\2\x44\x01\0;')


def nets():
    """(layers, blobs by layer) of small Caffe nets."""
    rng = np.random.default_rng(5)
    head = {'name': 'n', 'input': 'data', 'input_shape': {'dim': [1, 3, 8, 8]}}
    conv = {'name': 'c', 'type': 'Convolution', 'bottom': 'data', 'top': 'c',
            'convolution_param': {'num_output': 4, 'kernel_size': 3, 'pad': 1, 'stride': 2}}
    relu = {'name': 'r', 'type': 'ReLU', 'bottom': 'c', 'top': 'c'}
    pool = {'name': 'p', 'type': 'Pooling', 'bottom': 'c', 'top': 'p', 'pooling_param': {'kernel_size': 2, 'stride': 2}}
    flat = {'name': 'i', 'type': 'InnerProduct', 'bottom': 'p', 'top': 'i', 'inner_product_param': {'num_output': 5}}
    soft = {'name': 's', 'type': 'Softmax', 'bottom': 'i', 'top': 's'}
    blobs = {'c': [rng.normal(size=(4, 3, 3, 3)), rng.normal(size=4)], 'i': [rng.normal(size=(5, 16)), rng.normal(size=5)]}
    yield 'classifier', {**head, 'layer': [conv, relu, pool, flat, soft]}, blobs
    slices = {'name': 's', 'type': 'Slice', 'bottom': 'data', 'top': ['a', 'b'], 'slice_param': {'axis': 1, 'slice_point': 1}}
    join = {'name': 'j', 'type': 'Concat', 'bottom': ['b', 'a'], 'top': 'j'}
    shape = {'name': 'h', 'type': 'Reshape', 'bottom': 'j', 'top': 'h', 'reshape_param': {'shape': {'dim': [0, -1]}}}
    yield 'shapes', {**head, 'layer': [slices, join, shape]}, {}
    norm = {'name': 'bn', 'type': 'BatchNorm', 'bottom': 'data', 'top': 'bn'}
    scale = {'name': 'sc', 'type': 'Scale', 'bottom': 'bn', 'top': 'sc', 'scale_param': {'bias_term': True}}
    add = {'name': 'e', 'type': 'Eltwise', 'bottom': ['sc', 'data'], 'top': 'e'}
    three = lambda: rng.uniform(0.5, 1, 3)  # noqa: E731
    yield 'norm', {**head, 'layer': [norm, scale, add]}, {'bn': [three(), three(), np.ones(1)], 'sc': [three(), three()]}


def caffe_bytes(net, blobs):
    model = b''.join(chunk(100, chunk(1, name) + b''.join(chunk(7, blob_bytes(np.asarray(b))) for b in list_))
                     for name, list_ in blobs.items())
    return text_of(net).encode() + b'\n\0' + (model or chunk(1, 'n'))


def configs():
    for path in sorted((ROOT / 'examples/deploy').glob('*.yml')):
        yield path.stem, path.read_bytes()
    yield 'caffe', b'''library_name: face-kit
target_abis: [host]
models:
  small.net:
    platform: caffe
    model_file_path: m.prototxt
    weight_file_path: m.caffemodel
    subgraphs:
      - input_tensors: [data]
        input_shapes: ["1,5,6,3"]
        input_ranges: -1,1
        output_tensors: [prob]
        output_shapes: ["1,4"]
        validation_threshold: {CPU: 0.999}
    data_type: fp32_fp32
'''


def main():
    to = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / 'corpus'

    def write(kind, name, data):
        (to / kind).mkdir(parents=True, exist_ok=True)
        (to / kind / f'seed-{name}').write_bytes(data)

    for name, array in arrays():
        stream = io.BytesIO()
        np.save(stream, array)
        write('npy', name, stream.getvalue())
    for name, data in pictures():
        write('image', name, data)
    for name, data in configs():
        write('config', name, data)
    for name, net, blobs in nets():
        write('caffe', name, caffe_bytes(net, blobs))


if __name__ == '__main__':
    main()
