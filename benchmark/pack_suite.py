#!/usr/bin/env python3
"""Takes the suites of export_suite.py and quantize_suite.py to a machine without PyTorch: graphs with the statistics of their weights
instead of the weights.

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

# Constants of fewer values stay: sizes, axes, scales. Of quantized weights there are more, and each has its scales and its bias.
FEW = 512
FEW_QUANTIZED = 32
TYPES = {onnx.TensorProto.FLOAT: '<f4', onnx.TensorProto.INT8: 'i1', onnx.TensorProto.UINT8: 'u1', onnx.TensorProto.INT32: '<i4'}
KEY = 'normal'
PRODUCT = 'product'


def quantized(graph):
    """Initializers that DequantizeLinear reads, and {scales of a bias: (scale of the input, scales of the weight)}."""
    reads = {node.output[0]: node.input for node in graph.node if node.op_type == 'DequantizeLinear'}
    products = {}
    for node in graph.node:
        sources = [reads.get(name) for name in node.input]
        if node.op_type in ('Conv', 'ConvTranspose', 'Gemm') and len(sources) == 3 and all(sources):
            products[sources[2][1]] = sources[0][1], sources[1][1]
    return {name for names in reads.values() for name in names}, products


def forget(tensor, statistics):
    tensor.doc_string = json.dumps(statistics)
    for field in ('raw_data', 'float_data', 'int32_data'):
        tensor.ClearField(field)


def drop_weights(model):
    """Takes the values of large constants away and leaves mean and deviation in their place."""
    dequantized, products = quantized(model.graph)
    for tensor in model.graph.initializer:
        known, kind = tensor.name in dequantized, tensor.data_type
        # Integers of 32 bits may be indices.
        if kind not in TYPES or np.prod(tensor.dims) < (FEW_QUANTIZED if known else FEW) or kind == onnx.TensorProto.INT32 and not known:
            continue
        if tensor.name in products:
            forget(tensor, {PRODUCT: products[tensor.name]})
            continue
        values = numpy_helper.to_array(tensor).astype(np.float64)
        if not np.abs(values).max() < 1e6 and kind == onnx.TensorProto.FLOAT:  # a mask
            continue
        if known and kind == onnx.TensorProto.FLOAT and not values.mean() > 2 * values.std():  # scales that would not stay above zero
            continue
        forget(tensor, {KEY: [float(values.mean()), float(values.std())]})


def draw(tensor, mean, deviation):
    kind = np.dtype(TYPES[tensor.data_type])
    random = np.random.default_rng(zlib.crc32(tensor.name.encode()))
    values = mean + deviation * random.standard_normal(tuple(tensor.dims), dtype=np.float32)
    if kind.kind != 'f':
        limits = np.iinfo(kind)
        return np.clip(np.rint(values), limits.min, limits.max).astype(kind)
    # Variances and scales stay on their side of zero.
    return np.maximum(values, 0.2 * mean if mean > 2 * deviation else -np.inf).astype(kind)


def draw_weights(model):
    tensors, later = {tensor.name: tensor for tensor in model.graph.initializer}, {}
    for tensor in tensors.values():
        statistics = json.loads(tensor.doc_string) if tensor.doc_string.startswith('{') else {}
        if KEY in statistics:
            tensor.raw_data = draw(tensor, *statistics[KEY]).tobytes()
            tensor.doc_string = ''
        elif PRODUCT in statistics:
            later[tensor.name] = statistics[PRODUCT]
    for name, factors in later.items():
        one, other = (numpy_helper.to_array(tensors[factor]) for factor in factors)
        tensors[name].raw_data = (one * other).astype('<f4').tobytes()
        tensors[name].doc_string = ''


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
