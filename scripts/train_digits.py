#!/usr/bin/env python3
"""Trains the digit classifier of models/digits and writes every file of that folder but README.md.

    pip install torch onnx onnxscript onnxruntime scikit-learn pillow
    python scripts/train_digits.py [--out models/digits] [--seed 7]

One thread and deterministic kernels: the same seed and the same package versions on the same kind
of CPU give the same bytes. Then `scripts/check_digits.py` compares the files with each other.
"""

import argparse
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from PIL import Image
from sklearn.datasets import load_digits
from torch import nn

from param_graph import Layer, param_text, raw_fp32, tagged_fp32

EPOCHS = 60
BATCH = 32
HELD_OUT = 360
SPLIT_SEED = 20240607
CELL = 32
SHEET_COLUMNS, SHEET_ROWS = 8, 5


class DigitsNet(nn.Module):
    """Input [n, 1, 8, 8] in 0..1, output [n, 10] logits. `stem_bn` is folded on export."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, 16, 3, padding=1)
        self.stem_bn = nn.BatchNorm2d(16)
        self.dw1 = nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.pw1 = nn.Conv2d(16, 32, 1)
        self.bn1 = nn.BatchNorm2d(32)
        self.res = nn.Conv2d(32, 32, 3, padding=1)
        self.dw2 = nn.Conv2d(32, 32, 3, padding=1, groups=32)
        self.pw2 = nn.Conv2d(32, 48, 1)
        self.fc = nn.Linear(48 * 2 * 2, 10)
        self.dropout = nn.Dropout(0.3)

    def forward(self, x):
        x = torch.relu(self.stem_bn(self.stem(x)))
        x = torch.relu(self.bn1(self.pw1(self.dw1(x))))
        x = nn.functional.max_pool2d(x, 2)
        x = x + torch.relu(self.res(x))
        x = torch.relu(self.pw2(self.dw2(x)))
        x = nn.functional.avg_pool2d(x, 2)
        return self.fc(self.dropout(torch.flatten(x, 1)))


class WithSoftmax(nn.Module):
    """The deployed form: [1, 1, 8, 8] to class probabilities [1, 10]."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, data):
        return torch.softmax(self.net(data), dim=1)


def load_split():
    """((train images, labels), (held-out images, labels)); images are uint8 [n, 8, 8] in 0..255.

    The data set's grey levels 0..16 are stretched to 8 bits here, so that a PNG holds an input
    without loss. The split does not depend on the training seed.
    """
    digits = load_digits()
    images = np.rint(digits.images * (255 / 16)).astype(np.uint8)
    labels = digits.target.astype(np.uint8)
    order = np.random.RandomState(SPLIT_SEED).permutation(len(images))
    held, train = order[:HELD_OUT], order[HELD_OUT:]
    return (images[train], labels[train]), (images[held], labels[held])


def to_input(images):
    """uint8 [n, 8, 8] to the network's float32 input [n, 1, 8, 8], pixel / 255."""
    return (images.astype(np.float32) * np.float32(1 / 255))[:, None]


def shifted(batch, generator):
    """Each image moved by -1, 0 or 1 pixel along both axes, black where nothing moves in."""
    padded = nn.functional.pad(batch, (1, 1, 1, 1))
    moves = torch.randint(0, 3, (len(batch), 2), generator=generator)
    return torch.stack([p[:, y : y + 8, x : x + 8] for p, (y, x) in zip(padded, moves.tolist())])


def train(images, labels, seed):
    """A trained DigitsNet in eval mode. The held-out images play no part in it."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    data = torch.from_numpy(to_input(images))
    target = torch.from_numpy(labels.astype(np.int64))
    net = DigitsNet().train()
    steps = EPOCHS * -(-len(data) // BATCH)
    optimizer = torch.optim.AdamW(net.parameters(), weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=steps)
    for _ in range(EPOCHS):
        for index in torch.randperm(len(data), generator=generator).split(BATCH):
            logits = net(shifted(data[index], generator))
            loss = nn.functional.cross_entropy(logits, target[index], label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return net.eval()


def accuracy(net, images, labels):
    with torch.no_grad():
        answer = net(torch.from_numpy(to_input(images))).argmax(1).numpy()
    return float((answer == labels).mean())


def folded_stem(net):
    """Weight and bias of `stem` with `stem_bn` folded in, computed in float64."""
    bn = net.stem_bn
    scale = bn.weight.double() / torch.sqrt(bn.running_var.double() + bn.eps)
    weight = net.stem.weight.double() * scale[:, None, None, None]
    bias = (net.stem.bias.double() - bn.running_mean.double()) * scale + bn.bias.double()
    return weight.detach().float().numpy(), bias.detach().float().numpy()


def conv_layer(name, conv, bottom, top, relu=False):
    params = {0: conv.out_channels, 1: conv.kernel_size[0], 5: 1, 6: conv.weight.numel()}
    if conv.stride[0] > 1:
        params[3] = conv.stride[0]
    if conv.padding[0]:
        params[4] = conv.padding[0]
    if conv.groups > 1:
        params[7] = conv.groups
    if relu:
        params[9] = 1
    kind = "ConvolutionDepthWise" if conv.groups > 1 else "Convolution"
    return Layer(kind, name, [bottom], [top], params)


def graph_layers(net):
    """The network as ncnn layers; weights follow in the same order in `weight_bytes`."""
    fc = {0: net.fc.out_features, 1: 1, 2: net.fc.weight.numel()}
    return [
        Layer("Input", "data", [], ["data"], {0: 8, 1: 8, 2: 1}),
        conv_layer("stem", net.stem, "data", "stem", relu=True),
        conv_layer("dw1", net.dw1, "stem", "dw1"),
        conv_layer("pw1", net.pw1, "dw1", "pw1"),
        Layer("BatchNorm", "bn1", ["pw1"], ["bn1"], {0: 32, 1: float(net.bn1.eps)}),
        Layer("ReLU", "relu1", ["bn1"], ["relu1"]),
        Layer("Pooling", "pool1", ["relu1"], ["pool1"], {0: 0, 1: 2, 2: 2}),
        conv_layer("res", net.res, "pool1", "res", relu=True),
        Layer("BinaryOp", "add", ["pool1", "res"], ["add"], {0: 0}),
        conv_layer("dw2", net.dw2, "add", "dw2"),
        conv_layer("pw2", net.pw2, "dw2", "pw2", relu=True),
        Layer("Pooling", "pool2", ["pw2"], ["pool2"], {0: 1, 1: 2, 2: 2}),
        Layer("Flatten", "flatten", ["pool2"], ["flatten"]),
        Layer("InnerProduct", "fc", ["flatten"], ["fc"], fc),
        Layer("Softmax", "prob", ["fc"], ["prob"], {0: 0}),
    ]


def weight_bytes(net):
    def conv(layer):
        values = layer.weight.detach().numpy(), layer.bias.detach().numpy()
        return tagged_fp32(values[0]) + raw_fp32(values[1])

    stem_weight, stem_bias = folded_stem(net)
    bn = net.bn1
    parts = [tagged_fp32(stem_weight), raw_fp32(stem_bias), conv(net.dw1), conv(net.pw1)]
    parts += [raw_fp32(t.detach().numpy())
              for t in (bn.weight, bn.running_mean, bn.running_var, bn.bias)]
    parts += [conv(net.res), conv(net.dw2), conv(net.pw2), conv(net.fc)]
    return b"".join(parts)


def export_onnx(net, path):
    """The network with its Softmax, input `data` [1, 1, 8, 8], output `prob` [1, 10]."""
    program = torch.onnx.export(WithSoftmax(net).eval(), (torch.zeros(1, 1, 8, 8),),
                                input_names=["data"], output_names=["prob"], opset_version=18,
                                dynamo=True, optimize=True, verbose=False)
    model = program.model_proto
    model.graph.name = "digits"
    # The exporter notes source lines and paths of this machine; they are no part of the model.
    del model.metadata_props[:], model.graph.metadata_props[:], model.graph.value_info[:]
    for item in (*model.graph.node, *model.graph.initializer, *model.graph.input,
                 *model.graph.output):
        del item.metadata_props[:]
        item.doc_string = ""
    onnx.checker.check_model(model, full_check=True)
    path.write_bytes(model.SerializeToString(deterministic=True))


def write_images(out, images, labels):
    """One PNG a class (its first held-out image) and a sheet of the first 40, row by row.

    A cell is the image with each pixel repeated 4 x 4: nearest, bilinear (half-pixel centres) and
    area reduction by 4 all give back the exact 8 x 8 values.
    """
    folder = out / "images"
    folder.mkdir(exist_ok=True)
    for label in range(10):
        Image.fromarray(images[labels == label][0]).save(folder / f"{label}.png")
    count = SHEET_ROWS * SHEET_COLUMNS
    cells = images[:count].repeat(CELL // 8, axis=1).repeat(CELL // 8, axis=2)
    sheet = cells.reshape(SHEET_ROWS, SHEET_COLUMNS, CELL, CELL).transpose(0, 2, 1, 3)
    Image.fromarray(sheet.reshape(SHEET_ROWS * CELL, SHEET_COLUMNS * CELL)).save(out / "sheet.png")
    rows = labels[:count].reshape(SHEET_ROWS, SHEET_COLUMNS)
    (out / "sheet_labels.txt").write_text("".join(" ".join(map(str, r)) + "\n" for r in rows))


def write_reference(net, out, images, seed):
    """Inputs with PyTorch's and ONNX Runtime's answers: held-out images and out-of-range noise."""
    noise = np.random.RandomState(seed).standard_normal((3, 1, 8, 8)).astype(np.float32)
    flat = np.stack([np.zeros((1, 8, 8), np.float32), np.ones((1, 8, 8), np.float32)])
    data = np.concatenate([to_input(images[:11]), flat, noise])
    with torch.no_grad():
        logits = net(torch.from_numpy(data))
        prob = torch.softmax(logits, dim=1)
    session = onnxruntime.InferenceSession(out / "digits.onnx", providers=["CPUExecutionProvider"])
    ort = np.concatenate([session.run(["prob"], {"data": x[None]})[0] for x in data])
    np.savez(out / "digits_reference.npz", data=data, logits_torch=logits.numpy(),
             prob_torch=prob.numpy(), prob_onnxruntime=ort)


def arguments(description, model):
    """--out and --seed of a script that writes the folder of a model; torch is made deterministic."""
    parser = argparse.ArgumentParser(description=description)
    folder = Path(__file__).resolve().parent.parent / "models" / model
    parser.add_argument("--out", type=Path, default=folder, help="folder to write to")
    parser.add_argument("--seed", type=int, default=7, help="training seed")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    args.out.mkdir(parents=True, exist_ok=True)
    return args


def main():
    args = arguments(__doc__.splitlines()[0], "digits")
    (train_images, train_labels), (held_images, held_labels) = load_split()
    net = train(train_images, train_labels, args.seed)
    for part, images, labels in (("train", train_images, train_labels),
                                 ("held out", held_images, held_labels)):
        print(f"{part:<8} {len(images):5d} images  {accuracy(net, images, labels):.4f} right")

    (args.out / "digits.param").write_text(param_text(graph_layers(net)))
    (args.out / "digits.bin").write_bytes(weight_bytes(net))
    export_onnx(net, args.out / "digits.onnx")
    np.savez(args.out / "heldout.npz", images=held_images, labels=held_labels)
    write_images(args.out, held_images, held_labels)
    write_reference(net, args.out, held_images, args.seed)


if __name__ == "__main__":
    main()
