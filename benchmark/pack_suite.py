#!/usr/bin/env python3
"""Takes the suite of export_suite.py to a machine without PyTorch: graphs with the statistics of their weights instead of the weights.

    pack_suite.py pack FOLDER SUITE.tar.xz      a few MiB for all networks
    pack_suite.py unpack SUITE.tar.xz FOLDER    the same graphs, weights drawn anew from their mean and deviation

What is timed and compared does not depend on the weights: every engine reads the same file, and answers are compared on the spot.
Needs numpy and onnx.
"""
import argparse
import io
import json
import pathlib
import tarfile
import zlib

import numpy as np
import onnx
from onnx import numpy_helper

# Constants of fewer values stay: sizes, axes, scales.
FEW = 512
KEY = 'normal'


def drop_weights(model):
    """Takes the values of large float constants away and leaves mean and deviation in their place."""
    for tensor in model.graph.initializer:
        if tensor.data_type != onnx.TensorProto.FLOAT or np.prod(tensor.dims) < FEW:
            continue
        values = numpy_helper.to_array(tensor)
        if not np.abs(values).max() < 1e6:  # a mask
            continue
        tensor.doc_string = json.dumps({KEY: [float(values.mean()), float(values.std())]})
        tensor.ClearField('raw_data')
        tensor.ClearField('float_data')


def draw_weights(model):
    for tensor in model.graph.initializer:
        if KEY not in tensor.doc_string:
            continue
        mean, deviation = json.loads(tensor.doc_string)[KEY]
        random = np.random.default_rng(zlib.crc32(tensor.name.encode()))
        values = mean + deviation * random.standard_normal(tuple(tensor.dims), dtype=np.float32)
        # Variances and scales stay on their side of zero.
        low = 0.2 * mean if mean > 2 * deviation else -np.inf
        tensor.raw_data = np.maximum(values, low).astype('<f4').tobytes()
        tensor.doc_string = ''


def pack(folder, archive):
    with tarfile.open(archive, 'w:xz') as tar:
        for path in sorted(folder.glob('*.onnx')):
            model = onnx.load(path)
            drop_weights(model)
            data = model.SerializeToString()
            entry = tarfile.TarInfo(path.name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))


def unpack(archive, folder):
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive) as tar:
        for entry in tar:
            name = pathlib.PurePosixPath(entry.name).name
            if not entry.isfile() or not name.endswith('.onnx'):
                continue
            model = onnx.load_model_from_string(tar.extractfile(entry).read())
            draw_weights(model)
            onnx.save(model, folder / name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('what', choices=('pack', 'unpack'))
    parser.add_argument('source', type=pathlib.Path)
    parser.add_argument('target', type=pathlib.Path)
    a = parser.parse_args()
    (pack if a.what == 'pack' else unpack)(a.source, a.target)


if __name__ == '__main__':
    main()
