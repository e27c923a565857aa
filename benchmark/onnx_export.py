#!/usr/bin/env python3
"""ONNX models of the graphs that graph_builder.py builds, with the same weights as their `.bin`.

    onnx_export.py FOLDER [NAME ...]    writes NAME.param, NAME.bin and NAME.onnx for graphs of make_graphs.py

Opset 13, so that every engine of the last years reads them; batch 1 in front of the graph's (c, h, w). The onnx package is
needed (`pip install onnx`).
"""
import argparse
import sys
from pathlib import Path

import numpy as np

import double_reference
import make_graphs
from graph_builder import ADD, AVG, CEIL, TO_END

OPSET = 13
IR_VERSION = 8


def read_weights(graph, path):
    """[(weights, bias)] of the layers that have some, in file order, from the `.bin` of the graph."""
    values = np.fromfile(path, np.float32)
    expected = sum(1 + w.weight_count + w.bias_count for w in graph.weights)
    if values.size != expected:
        raise ValueError(f"{path}: expected {expected} values, got {values.size}")
    result, at = [], 0
    for w in graph.weights:
        at += 1  # the tag
        weights, bias = np.split(values[at:at + w.weight_count + w.bias_count], [w.weight_count])
        result.append((weights, bias))
        at += w.weight_count + w.bias_count
    return result


class Exporter:
    """Turns layers into nodes; one method a layer type, called with the layer and its params."""

    def __init__(self, graph, weights):
        import onnx

        self.onnx = onnx
        self.graph = graph
        self.weights = iter(weights)
        self.nodes, self.constants, self.shapes = [], [], {}

    def constant(self, name, array):
        self.constants.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def integers(self, name, values):
        return self.constant(name, np.array(values, np.int64))

    def node(self, kind, inputs, outputs, **attributes):
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, outputs, name=outputs[0], **attributes))
        return outputs[0]

    def weights_of(self, layer, shape):
        weights, bias = next(self.weights)
        return [self.constant(layer.name + "_weight", weights.reshape(shape)), self.constant(layer.name + "_bias", bias)]

    def activated(self, layer, inner, make):
        """`make(output)` followed by the activation that the layer's params 9 and 10 name."""
        kind, values = layer.params.get(9, 0), layer.params.get(10, [])
        out = layer.tops[0]
        if kind == 0:
            return make(out)
        x = make(inner)
        if kind == 1:
            return self.node("Relu", [x], [out])
        if kind == 2:
            return self.node("LeakyRelu", [x], [out], alpha=float(values[0]))
        if kind == 3:
            bounds = [self.constant(f"{out}_{i}", np.float32(v)) for i, v in enumerate(values)]
            return self.node("Clip", [x, *bounds], [out])
        if kind == 4:
            return self.node("Sigmoid", [x], [out])
        if kind == 6:
            gate = self.node("HardSigmoid", [x], [out + "_gate"], alpha=float(values[0]), beta=float(values[1]))
            return self.node("Mul", [x, gate], [out])
        raise ValueError(f"{layer.name}: activation {kind} has no export")

    def convolution(self, layer, p):
        kernel, groups = p[1], p.get(7, 1)
        inputs = p[6] // (p[0] * kernel * kernel)
        operands = layer.bottoms + self.weights_of(layer, (p[0], inputs, kernel, kernel))
        attributes = dict(kernel_shape=[kernel] * 2, strides=[p[3]] * 2, pads=[p[4]] * 4, group=groups)
        self.activated(layer, layer.name + "_linear", lambda out: self.node("Conv", operands, [out], **attributes))

    def inner_product(self, layer, p):
        flat = self.node("Flatten", layer.bottoms, [layer.name + "_flat"], axis=1)
        operands = [flat] + self.weights_of(layer, (p[0], p[2] // p[0]))
        self.activated(layer, layer.name + "_linear", lambda out: self.node("Gemm", operands, [out], transB=1))

    def pooling(self, layer, p):
        if p.get(4):
            mean = self.node("GlobalAveragePool", layer.bottoms, [layer.name + "_mean"])
            return self.node("Flatten", [mean], layer.tops, axis=1)
        attributes = dict(kernel_shape=[p[1]] * 2, strides=[p[2]] * 2, pads=[p[3]] * 4, ceil_mode=int(p[5] == CEIL))
        if p[0] == AVG:
            return self.node("AveragePool", layer.bottoms, layer.tops, count_include_pad=0, **attributes)
        return self.node("MaxPool", layer.bottoms, layer.tops, **attributes)

    def binary(self, layer, p):
        a, b = layer.bottoms
        if len(self.shapes[b]) < len(self.shapes[a]):
            axes = self.integers(layer.name + "_axes", [2, 3])
            b = self.node("Unsqueeze", [b, axes], [layer.name + "_map"])
        self.node("Add" if p[0] == ADD else "Mul", [a, b], layer.tops)

    def slice(self, layer, p):
        self.node("Split", layer.bottoms + [self.integers(layer.name + "_parts", p[0])], layer.tops, axis=1)

    def crop(self, layer, p):
        ends = [np.iinfo(np.int64).max if v == TO_END else v for v in p[10]]
        bounds = [self.integers(f"{layer.name}_{name}", values)
                  for name, values in (("starts", p[9]), ("ends", ends), ("axes", [a + 1 for a in p[11]]))]
        self.node("Slice", layer.bottoms + bounds, layer.tops)

    def reshaped(self, name, x, shape, out):
        return self.node("Reshape", [x, self.integers(name, shape)], [out])

    def shuffle(self, layer, p):
        channels, height, width = self.shapes[layer.bottoms[0]]
        parts = self.reshaped(layer.name + "_to", layer.bottoms[0], [1, p[0], channels // p[0], height, width],
                              layer.name + "_parts")
        turned = self.node("Transpose", [parts], [layer.name + "_turned"], perm=[0, 2, 1, 3, 4])
        self.reshaped(layer.name + "_back", turned, [1, channels, height, width], layer.tops[0])

    def interp(self, layer, p):
        scales = self.constant(layer.name + "_scales", np.array([1, 1, p[1], p[2]], np.float32))
        self.node("Resize", [layer.bottoms[0], "", scales], layer.tops, mode="nearest",
                  coordinate_transformation_mode="asymmetric", nearest_mode="floor")

    def layer(self, layer):
        """Adds the nodes of one layer."""
        p, same = layer.params, (layer.bottoms, layer.tops)
        kind = layer.type
        if kind in ("Convolution", "ConvolutionDepthWise"):
            self.convolution(layer, p)
        elif kind in ("Concat", "Softmax"):
            self.node(kind, *same, axis=1)
        elif kind == "ReLU":
            self.node("Relu", *same)
        elif kind == "HardSigmoid":
            self.node(kind, *same, alpha=float(p[0]), beta=float(p[1]))
        elif kind == "Swish":
            gate = self.node("Sigmoid", layer.bottoms, [layer.name + "_gate"])
            self.node("Mul", [layer.bottoms[0], gate], layer.tops)
        elif kind == "LRN":
            self.node(kind, *same, size=p[1], alpha=p[2], beta=p[3], bias=p[4])
        elif kind == "Reshape":
            self.reshaped(layer.name + "_shape", layer.bottoms[0], [1, *self.shapes[layer.tops[0]]], layer.tops[0])
        elif kind == "Permute" and p == {0: 1}:
            self.node("Transpose", *same, perm=[0, 1, 3, 2])
        else:
            others = {"InnerProduct": self.inner_product, "Pooling": self.pooling, "BinaryOp": self.binary,
                      "Slice": self.slice, "Crop": self.crop, "ShuffleChannel": self.shuffle, "Interp": self.interp}
            if kind not in others:
                raise ValueError(f"{layer.name}: {kind} has no export")
            others[kind](layer, p)

    def model(self):
        helper, float32 = self.onnx.helper, self.onnx.TensorProto.FLOAT
        graph = self.graph
        self.shapes = dict(graph.shapes, **{graph.output.name: graph.output.shape})
        for layer in graph.layers:
            if layer.type != "Input":
                self.layer(layer)
        ends = [helper.make_tensor_value_info(b.name, float32, [1, *b.shape]) for b in (graph.data, graph.output)]
        body = helper.make_graph(self.nodes, "graph", ends[:1], ends[1:], self.constants)
        model = helper.make_model(body, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="quoll")
        model.ir_version = IR_VERSION
        self.onnx.checker.check_model(model)
        return model


def export(graph, weights, path):
    """Writes the graph with weights as of read_weights to `path`."""
    path.write_bytes(Exporter(graph, weights).model().SerializeToString())


def soften(graph, binary):
    """Scales the inner product under a last softmax, so that its answer is not one class alone.

    Random networks' logits have deviations from 0.1 to 1000; they get one of about 2.
    """
    last, before = graph.layers[-1], graph.layers[-2]
    if last.type != "Softmax" or before.type != "InnerProduct":
        return
    weights = read_weights(graph, binary)
    data = np.random.default_rng(3).standard_normal(graph.data.shape, dtype=np.float32)
    logits = double_reference.run_graph(graph, weights, data)[before.tops[0]]
    values = np.memmap(binary, np.float32, mode="r+")
    values[-sum(map(len, weights[-1])):] *= np.float32(2 / logits.std())
    values.flush()


def write_model(name, folder, seed=1):
    """Writes NAME.param, NAME.bin and NAME.onnx with random weights; returns the graph."""
    graph = make_graphs.BUILDERS[name]()
    param, binary = folder / f"{name}.param", folder / f"{name}.bin"
    param.write_text(graph.param_text())
    make_graphs.write_random_weights(graph, binary, seed)
    soften(graph, binary)
    export(graph, read_weights(graph, binary), folder / f"{name}.onnx")
    return graph


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", choices=[[], *make_graphs.BUILDERS], metavar="NAME")
    a = parser.parse_args()
    a.folder.mkdir(parents=True, exist_ok=True)
    for name in a.names or make_graphs.BUILDERS:
        graph = write_model(name, a.folder)
        print(f"{name}: {graph.data.shape} -> {graph.output.shape}, {graph.macs:,} multiply-adds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
