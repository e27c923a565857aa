#!/usr/bin/env python3
"""Writes benchmark/models/*.param: well-known networks in deployment form, without weights.

    make_graphs.py            writes the files
    make_graphs.py --check    fails if a file differs, or a count is not the published one
    make_graphs.py --run      also runs each graph in the ncnn wheel with random weights

Batch norms are folded into convolutions, activations fused where the format can, dropout and
auxiliary training heads left out. A graph reads the blob `data` and answers in `output`:
1000 probabilities, or the rows of a detector. The networks are written from the papers named at
each function; where a paper leaves details open, torchvision's public definition decides.
"""

import argparse
import math
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from graph_builder import ADD, AVG, CEIL, MAX, MUL, Graph

MODELS = Path(__file__).resolve().parent / "models"
CLASSES = 1000
TOLERANCE = 0.01


def round_channels(value, divisor=8):
    """The nearest multiple of divisor that is at least 90 % of value (MobileNet's rule)."""
    rounded = max(divisor, int(value + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < 0.9 * value else rounded


def alexnet():
    """Krizhevsky et al. 2012: two groups, local response normalisation, 227 x 227."""
    g = Graph(227, 227)
    x = g.conv(g.data, 96, 11, stride=4, pad=0, act="relu", bn=False)
    x = g.pool(g.lrn(x, 5, 1e-4, 0.75), MAX, 3, 2)
    x = g.conv(x, 256, 5, groups=2, act="relu", bn=False)
    x = g.pool(g.lrn(x, 5, 1e-4, 0.75), MAX, 3, 2)
    x = g.conv(x, 384, 3, act="relu", bn=False)
    x = g.conv(x, 384, 3, groups=2, act="relu", bn=False)
    x = g.conv(x, 256, 3, groups=2, act="relu", bn=False)
    x = g.pool(x, MAX, 3, 2)
    x = g.fc(g.fc(x, 4096, act="relu"), 4096, act="relu")
    return g.finish(g.softmax(g.fc(x, CLASSES)))


def vgg16():
    """Simonyan and Zisserman 2014, configuration D."""
    g = Graph(224, 224)
    x = g.data
    for channels, repeats in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(repeats):
            x = g.conv(x, channels, 3, act="relu", bn=False)
        x = g.pool(x, MAX, 2, 2)
    x = g.fc(g.fc(x, 4096, act="relu"), 4096, act="relu")
    return g.finish(g.softmax(g.fc(x, CLASSES)))


def inception(g, x, one, three_reduce, three, five_reduce, five, projection):
    def conv(y, channels, kernel=1):
        return g.conv(y, channels, kernel, act="relu", bn=False)

    branches = [conv(x, one)]
    branches.append(conv(conv(x, three_reduce), three, 3))
    branches.append(conv(conv(x, five_reduce), five, 5))
    branches.append(conv(g.pool(x, MAX, 3, 1, pad=1), projection))
    return g.concat(branches)


def googlenet():
    """Szegedy et al. 2014, table 1, without the auxiliary classifiers."""
    g = Graph(224, 224)
    x = g.conv(g.data, 64, 7, stride=2, act="relu", bn=False)
    x = g.lrn(g.pool(x, MAX, 3, 2, rounding=CEIL), 5, 1e-4, 0.75)
    x = g.conv(x, 64, act="relu", bn=False)
    x = g.conv(x, 192, 3, act="relu", bn=False)
    x = g.pool(g.lrn(x, 5, 1e-4, 0.75), MAX, 3, 2, rounding=CEIL)
    x = inception(g, x, 64, 96, 128, 16, 32, 32)
    x = inception(g, x, 128, 128, 192, 32, 96, 64)
    x = g.pool(x, MAX, 3, 2, rounding=CEIL)
    x = inception(g, x, 192, 96, 208, 16, 48, 64)
    x = inception(g, x, 160, 112, 224, 24, 64, 64)
    x = inception(g, x, 128, 128, 256, 24, 64, 64)
    x = inception(g, x, 112, 144, 288, 32, 64, 64)
    x = inception(g, x, 256, 160, 320, 32, 128, 128)
    x = g.pool(x, MAX, 3, 2, rounding=CEIL)
    x = inception(g, x, 256, 160, 320, 32, 128, 128)
    x = inception(g, x, 384, 192, 384, 48, 128, 128)
    x = g.pool(x, AVG, 7, 1)
    return g.finish(g.softmax(g.fc(x, CLASSES)))


def basic_block(g, x, channels, stride):
    y = g.conv(x, channels, 3, stride, act="relu")
    y = g.conv(y, channels, 3)
    shortcut = x if x.shape == y.shape else g.conv(x, channels, 1, stride)
    return g.activation(g.binary(ADD, y, shortcut), "relu")


def bottleneck_block(g, x, channels, stride):
    """The stride lies on the 3 x 3 convolution (ResNet 1.5)."""
    y = g.conv(x, channels, act="relu")
    y = g.conv(y, channels, 3, stride, act="relu")
    y = g.conv(y, 4 * channels)
    shortcut = x if x.shape == y.shape else g.conv(x, 4 * channels, 1, stride)
    return g.activation(g.binary(ADD, y, shortcut), "relu")


def resnet(block, repeats):
    """He et al. 2015."""
    g = Graph(224, 224)
    x = g.conv(g.data, 64, 7, stride=2, act="relu")
    x = g.pool(x, MAX, 3, 2, pad=1)
    for stage, count in enumerate(repeats):
        for i in range(count):
            x = block(g, x, 64 << stage, stride=2 if stage > 0 and i == 0 else 1)
    return g.finish(g.softmax(g.fc(g.global_average(x), CLASSES)))


def resnet18():
    return resnet(basic_block, (2, 2, 2, 2))


def resnet50():
    return resnet(bottleneck_block, (3, 4, 6, 3))


def fire(g, x, squeeze, expand):
    x = g.conv(x, squeeze, act="relu", bn=False)
    small = g.conv(x, expand, act="relu", bn=False)
    return g.concat([small, g.conv(x, expand, 3, act="relu", bn=False)])


def squeezenet():
    """Iandola et al. 2016, version 1.1."""
    g = Graph(224, 224)
    x = g.conv(g.data, 64, 3, stride=2, pad=0, act="relu", bn=False)
    x = g.pool(x, MAX, 3, 2, rounding=CEIL)
    x = fire(g, fire(g, x, 16, 64), 16, 64)
    x = g.pool(x, MAX, 3, 2, rounding=CEIL)
    x = fire(g, fire(g, x, 32, 128), 32, 128)
    x = g.pool(x, MAX, 3, 2, rounding=CEIL)
    for squeeze, expand in ((48, 192), (48, 192), (64, 256), (64, 256)):
        x = fire(g, x, squeeze, expand)
    x = g.conv(x, CLASSES, act="relu", bn=False)
    return g.finish(g.softmax(g.global_average(x)))


def mobilenet_v1():
    """Howard et al. 2017, width 1.0."""
    g = Graph(224, 224)
    x = g.conv(g.data, 32, 3, stride=2, act="relu")
    plan = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)]
    plan += [(512, 1)] * 5 + [(1024, 2), (1024, 1)]
    for channels, stride in plan:
        x = g.conv(x, x.shape[0], 3, stride, groups=x.shape[0], act="relu")
        x = g.conv(x, channels, act="relu")
    return g.finish(g.softmax(g.fc(g.global_average(x), CLASSES)))


def squeeze_excite(g, x, squeezed, act, gate):
    """Hu et al. 2017: channel gates from the channel means."""
    s = g.fc(g.global_average(x), squeezed, act=act)
    return g.binary(MUL, x, g.fc(s, x.shape[0], act=gate))


def inverted_residual(g, x, kernel, expanded, channels, stride, act, excite=None):
    """Expansion, depthwise, optional gates, linear projection; excite(x) applies the gates."""
    y = g.conv(x, expanded, act=act) if expanded != x.shape[0] else x
    y = g.conv(y, expanded, kernel, stride, groups=expanded, act=act)
    y = excite(y) if excite else y
    y = g.conv(y, channels)
    return g.binary(ADD, y, x) if y.shape == x.shape else y


def mobilenet_v2():
    """Sandler et al. 2018, table 2, width 1.0."""
    g = Graph(224, 224)
    x = g.conv(g.data, 32, 3, stride=2, act="relu6")
    plan = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
            (6, 160, 3, 2), (6, 320, 1, 1))
    for expansion, channels, repeats, stride in plan:
        for i in range(repeats):
            expanded = expansion * x.shape[0]
            x = inverted_residual(g, x, 3, expanded, channels, stride if i == 0 else 1, "relu6")
    x = g.conv(x, 1280, act="relu6")
    return g.finish(g.softmax(g.fc(g.global_average(x), CLASSES)))


def mobilenet_v3():
    """Howard et al. 2019, table 1 (large), width 1.0."""
    g = Graph(224, 224)
    x = g.conv(g.data, 16, 3, stride=2, act="hardswish")
    relu, hard = "relu", "hardswish"
    plan = ((3, 16, 16, False, relu, 1), (3, 64, 24, False, relu, 2), (3, 72, 24, False, relu, 1),
            (5, 72, 40, True, relu, 2), (5, 120, 40, True, relu, 1), (5, 120, 40, True, relu, 1),
            (3, 240, 80, False, hard, 2), (3, 200, 80, False, hard, 1),
            (3, 184, 80, False, hard, 1), (3, 184, 80, False, hard, 1),
            (3, 480, 112, True, hard, 1), (3, 672, 112, True, hard, 1),
            (5, 672, 160, True, hard, 2), (5, 960, 160, True, hard, 1),
            (5, 960, 160, True, hard, 1))
    for kernel, expanded, channels, gated, act, stride in plan:
        squeezed = round_channels(expanded // 4)
        excite = (lambda y, s=squeezed: squeeze_excite(g, y, s, "relu", "hardsigmoid"))
        x = inverted_residual(g, x, kernel, expanded, channels, stride, act,
                              excite if gated else None)
    x = g.global_average(g.conv(x, 960, act=hard))
    return g.finish(g.softmax(g.fc(g.fc(x, 1280, act=hard), CLASSES)))


def efficientnet_b0():
    """Tan and Le 2019, table 1; the gates squeeze to a quarter of the block's input channels."""
    g = Graph(224, 224)
    x = g.conv(g.data, 32, 3, stride=2, act="swish")
    plan = ((1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3),
            (6, 5, 1, 112, 3), (6, 5, 2, 192, 4), (6, 3, 1, 320, 1))
    for expansion, kernel, stride, channels, repeats in plan:
        for i in range(repeats):
            squeezed = x.shape[0] // 4
            excite = (lambda y, s=squeezed: squeeze_excite(g, y, s, "swish", "sigmoid"))
            x = inverted_residual(g, x, kernel, expansion * x.shape[0], channels,
                                  stride if i == 0 else 1, "swish", excite)
    x = g.conv(x, 1280, act="swish")
    return g.finish(g.softmax(g.fc(g.global_average(x), CLASSES)))


def shuffle_unit(g, x, channels, stride):
    """Half of the output comes straight (or by a depthwise shortcut), half through three convs."""
    half = channels // 2
    if stride == 1:
        kept, y = g.halves(x)
    else:
        kept = g.conv(x, x.shape[0], 3, stride, groups=x.shape[0])
        kept, y = g.conv(kept, half, act="relu"), x
    y = g.conv(y, half, act="relu")
    y = g.conv(y, half, 3, stride, groups=half)
    y = g.conv(y, half, act="relu")
    return g.shuffle(g.concat([kept, y]), 2)


def shufflenet_v2():
    """Ma et al. 2018, table 5, width 1.0."""
    g = Graph(224, 224)
    x = g.conv(g.data, 24, 3, stride=2, act="relu")
    x = g.pool(x, MAX, 3, 2, pad=1)
    for channels, repeats in ((116, 4), (232, 8), (464, 4)):
        for i in range(repeats):
            x = shuffle_unit(g, x, channels, stride=2 if i == 0 else 1)
    x = g.conv(x, 1024, act="relu")
    return g.finish(g.softmax(g.fc(g.global_average(x), CLASSES)))


def cross_stage_block(g, x):
    """(the whole block's output, the inner 1 x 1 convolution's output that the neck uses)."""
    channels = x.shape[0]
    x = g.conv(x, channels, 3, act="leaky")
    first = g.conv(g.second_half(x), channels // 2, 3, act="leaky")
    second = g.conv(first, channels // 2, 3, act="leaky")
    inner = g.conv(g.concat([second, first]), channels, act="leaky")
    return g.concat([x, inner]), inner


def yolov4_tiny():
    """Wang et al. 2020 (Scaled-YOLOv4) and Darknet's yolov4-tiny.cfg, 80 classes, 3 anchors, 416.

    `output` is (2535, 85): a row of raw x, y, w, h, objectness and class scores for each anchor,
    row-major cell within anchor within head, the 13 x 13 head first.
    """
    g = Graph(416, 416)
    x = g.conv(g.data, 32, 3, stride=2, act="leaky")
    x = g.conv(x, 64, 3, stride=2, act="leaky")
    for _ in range(3):
        x, inner = cross_stage_block(g, x)
        x = g.pool(x, MAX, 2, 2)
    x = g.conv(x, 512, 3, act="leaky")
    neck = g.conv(x, 256, act="leaky")
    coarse = g.conv(g.conv(neck, 512, 3, act="leaky"), 255, bn=False)
    fine = g.upsample(g.conv(neck, 128, act="leaky"), 2)
    fine = g.conv(g.concat([fine, inner]), 256, 3, act="leaky")
    fine = g.conv(fine, 255, bn=False)
    return g.finish(g.concat([g.rows_per_anchor(coarse, 3), g.rows_per_anchor(fine, 3)]))


@dataclass(frozen=True)
class Published:
    """Multiply-adds of one inference and trained parameters (batch norm unfolded), with source."""

    macs: float
    parameters: float
    source: str


TORCHVISION = "torchvision 0.29 model weights' meta: num_params, _ops"
SZE = "Sze et al. 2017, Efficient Processing of Deep Neural Networks, table 2"
# Szegedy et al. 2014, table 1, column "ops": the rows in millions, but for the first convolution,
# where the table's 34 M does not fit its own 7x7x3x64 filters over 112x112 positions.
GOOGLENET_MACS = 112 * 112 * 64 * 7 * 7 * 3 + 1e6 * sum(
    (360, 128, 304, 73, 88, 100, 119, 170, 54, 71, 1))

PUBLISHED = {
    "alexnet": Published(724e6, 61e6, SZE),
    "vgg16": Published(15.47e9, 138_357_544, TORCHVISION),
    "googlenet": Published(GOOGLENET_MACS, 7.0e6, "Szegedy et al. 2014, table 1; weights: " + SZE),
    "resnet18": Published(1.814e9, 11_689_512, TORCHVISION),
    "resnet50": Published(4.089e9, 25_557_032, TORCHVISION),
    "squeezenet": Published(0.349e9, 1_235_496, TORCHVISION),
    "mobilenet_v1": Published(569e6, 4.2e6, "Howard et al. 2017, table 8"),
    "mobilenet_v2": Published(0.301e9, 3_504_872, TORCHVISION),
    "mobilenet_v3": Published(0.217e9, 5_483_032, TORCHVISION),
    "shufflenet_v2": Published(0.145e9, 2_278_604, TORCHVISION),
    "efficientnet_b0": Published(0.386e9, 5_288_548, TORCHVISION),
    "yolov4_tiny": Published(6.9e9 / 2, 6.05e6, "Darknet readme: 6.9 BFlops at 416; parameters: "
                             "NXP's YOLOv4-tiny model card"),
}
BUILDERS = {name: globals()[name] for name in PUBLISHED}


def counts_agree(name, graph):
    """Prints the counts; true when they are the published ones within 1 %, or exactly if exact.

    A parameter count published to the last digit (an int in the table) must be met exactly.
    """
    published = PUBLISHED[name]
    macs_off = graph.macs / published.macs - 1
    parameters_off = graph.trained_parameters / published.parameters - 1
    limit = 0 if isinstance(published.parameters, int) else TOLERANCE
    good = abs(macs_off) <= TOLERANCE and abs(parameters_off) <= limit
    print(f"{name:<16} {graph.macs:>14,} MACs ({macs_off:+.2%})  {graph.trained_parameters:>11,} "
          f"parameters ({parameters_off:+.2%})  {'ok' if good else 'NOT AS PUBLISHED'}  "
          f"[{published.source}]")
    return good


def file_agrees(name, graph):
    path = MODELS / f"{name}.param"
    if path.is_file() and path.read_text() == graph.param_text():
        return True
    print(f"{path}: differs from what make_graphs.py builds")
    return False


def write_random_weights(graph, path, seed):
    """A `.bin` with normal weights of variance 2 / fan-in, so that values keep their size."""
    import numpy as np
    from param_graph import raw_fp32, tagged_fp32

    random = np.random.default_rng(seed)
    with path.open("wb") as file:
        for w in graph.weights:
            weight = random.standard_normal(w.weight_count, dtype=np.float32)
            file.write(tagged_fp32(weight * np.float32(math.sqrt(2 / w.fan_in))))
            bias = random.standard_normal(w.bias_count, dtype=np.float32)
            file.write(raw_fp32(bias * np.float32(0.1)))


def run_ncnn(param, weights, data):
    """`output` of the net for `data` [c, h, w], in fp32 throughout."""
    import ncnn
    import numpy as np

    net = ncnn.Net()
    net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = False
    net.opt.use_bf16_storage = False
    if net.load_param(str(param)) or net.load_model(str(weights)):
        raise RuntimeError(f"ncnn does not load {param}")
    extractor = net.create_extractor()
    extractor.input("data", ncnn.Mat(data).clone())
    status, mat = extractor.extract("output")
    if status:
        raise RuntimeError(f"ncnn returned {status} for {param}")
    return np.array(mat)


def runs_in_ncnn(name, graph, folder):
    """Runs the graph on noise; checks the shape, that values are finite and depend on the input."""
    import numpy as np

    param, weights = folder / f"{name}.param", folder / f"{name}.bin"
    param.write_text(graph.param_text())
    write_random_weights(graph, weights, seed=1)
    random = np.random.default_rng(2)
    inputs = [random.standard_normal(graph.data.shape, dtype=np.float32) for _ in range(2)]
    first, second = (run_ncnn(param, weights, x) for x in inputs)
    size = weights.stat().st_size
    weights.unlink()
    expected = sum(4 + 4 * (w.weight_count + w.bias_count) for w in graph.weights)
    good = (first.shape == graph.output.shape and np.isfinite(first).all() and size == expected
            and not np.array_equal(first, second))
    if len(first.shape) == 1:
        good = good and abs(first.sum() - 1) < 1e-4
    print(f"{name:<16} ncnn: {first.shape} in {first.min():.3g}..{first.max():.3g}  "
          f"{'ok' if good else 'WRONG'}")
    return bool(good)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    parser.add_argument("--run", action="store_true", help="run the graphs in the ncnn wheel")
    parser.add_argument("names", nargs="*", help=f"of {', '.join(BUILDERS)}; default: all")
    args = parser.parse_args()
    unknown = set(args.names) - set(BUILDERS)
    if unknown:
        parser.error(f"no such graph: {', '.join(sorted(unknown))}")
    good = True
    for name in args.names or BUILDERS:
        graph = BUILDERS[name]()
        good &= counts_agree(name, graph)
        if args.check:
            good &= file_agrees(name, graph)
        else:
            (MODELS / f"{name}.param").write_text(graph.param_text())
        if args.run:
            with tempfile.TemporaryDirectory() as folder:
                good &= runs_in_ncnn(name, graph, Path(folder))
    stray = {p.stem for p in MODELS.glob("*.param")} - set(BUILDERS)
    if stray:
        print(f"no builder makes {', '.join(sorted(stray))}")
    return 0 if good and not stray else 1


if __name__ == "__main__":
    sys.exit(main())
