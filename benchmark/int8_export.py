"""int8 forms of graph_builder.py's graphs: ncnn's .param and .bin, and ONNX with QuantizeLinear and DequantizeLinear.

Weights are quantized for each output channel, activations of convolutions and inner products by one scale, from the extremes seen
in one run: ncnn's form symmetric, as ncnn2int8 writes it; the ONNX form by ONNX Runtime's own quantize_static in the way that its
documents advise for x86 (QDQ, unsigned activations, signed weights for each channel).
"""
import struct

import numpy as np

INT8_TAG = 0x000D4B38  # before int8 weights in a .bin
INT8_SCALE_TERM = 8    # parameter of Convolution, ConvolutionDepthWise and InnerProduct


def scale_of(extreme):
    """What int8 values are multiples of, inverted as in the file; 1 where all values are zero."""
    return np.where(extreme > 0, 127 / np.where(extreme > 0, extreme, 1), 1).astype(np.float32)


def padded(data):
    """int8 weights fill whole 4 bytes in the file."""
    return data + bytes(-len(data) % 4)


def write_ncnn(graph, weights, blobs, path):
    """PATH.param and PATH.bin; blobs: all blobs of a run, for the scales."""
    pairs = iter(weights)
    quantized = [layer for layer in graph.layers if layer.type in ('Convolution', 'ConvolutionDepthWise', 'InnerProduct')]
    with open(f'{path}.bin', 'wb') as file:
        for layer in quantized:
            weight, bias = next(pairs)
            # Depthwise weights have one scale per group, which is one output channel in these graphs or holds some.
            rows = weight.reshape(layer.params.get(7, layer.params[0]), -1)
            scales = scale_of(np.abs(rows).max(axis=1))
            values = np.clip(np.rint(rows * scales[:, None]), -127, 127).astype(np.int8)
            file.write(struct.pack('<I', INT8_TAG) + padded(values.tobytes()) + bias.tobytes() + scales.tobytes())
            file.write(scale_of(np.abs(blobs[layer.bottoms[0]]).max(keepdims=True).ravel()[:1]).tobytes())
            layer.params[INT8_SCALE_TERM] = 1
    with open(f'{path}.param', 'w') as file:
        file.write(graph.param_text())
    for layer in quantized:
        del layer.params[INT8_SCALE_TERM]


def write_onnx(source, path, data):
    """The quantized form of the ONNX model `source`, calibrated with `data` [c][h][w]."""
    import logging

    from onnxruntime import quantization

    logging.getLogger().setLevel(logging.ERROR)  # it advises to optimize graphs first that need none

    class Once(quantization.CalibrationDataReader):
        def __init__(self):
            self.feeds = iter([{'data': data[None]}])

        def get_next(self):
            return next(self.feeds, None)

    quantization.quantize_static(source, path, Once(), quant_format=quantization.QuantFormat.QDQ, per_channel=True,
                                 activation_type=quantization.QuantType.QUInt8, weight_type=quantization.QuantType.QInt8)


def write_model(graph, weights, blobs, path):
    """PATH_int8.param, .bin and, where ONNX Runtime is there, .onnx, from PATH.onnx."""
    target = f'{path}_int8'
    write_ncnn(graph, weights, blobs, target)
    try:
        write_onnx(f'{path}.onnx', f'{target}.onnx', blobs[graph.data.name].astype(np.float32))
    except ImportError as error:
        print(f'no int8 form in ONNX: {error}')
