"""Trains the small classifiers that quantize_compare.py quantises: a MobileNetV2-like net (depthwise convolutions, ReLU6), one of MobileNetV3's
kind (HardSwish, squeeze and excitation) and a vision transformer, on Fashion-MNIST.

    benchmark/quantize_train.py OUT [--only mobilenet] [--epochs 5] [--data /usr/share/datasets/fashion-mnist]

Some minutes each on one core. Writes OUT/NAME.onnx, opset 13, input [batch, 1, 28, 28], and OUT/fashion.npz: `calibration` (1,000 of the training
images as [1, 28, 28] f32, which were trained with), `test` (all 10,000) and `labels` of the latter. Needs PyTorch (1.13 does; Debian's python3-torch) and the
images (Debian's dataset-fashion-mnist).
"""
import argparse
import gzip
import inspect
import pathlib
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional

MEAN, STD = 0.2860, 0.3530


def read_idx(path):
    """An array of the IDX format: u8, sizes big endian."""
    data = gzip.open(path).read()
    sizes = np.frombuffer(data, '>i4', data[3], 4)
    return np.frombuffer(data, np.uint8, -1, 4 + 4 * data[3]).reshape(sizes)


def images_and_labels(folder, part):
    images = read_idx(folder / f'{part}-images-idx3-ubyte.gz').astype(np.float32)
    return ((images / 255 - MEAN) / STD)[:, None], read_idx(folder / f'{part}-labels-idx1-ubyte.gz').astype(np.int64)


class Excite(nn.Module):
    """Squeeze and excitation."""

    def __init__(self, channels):
        super().__init__()
        self.down, self.up = nn.Conv2d(channels, channels // 4, 1), nn.Conv2d(channels // 4, channels, 1)

    def forward(self, x):
        return x * functional.hardsigmoid(self.up(functional.relu(self.down(functional.adaptive_avg_pool2d(x, 1)))))


class Inverted(nn.Module):
    """An inverted residual block."""

    def __init__(self, inputs, outputs, stride, expand, activation, excite):
        super().__init__()
        wide = inputs * expand
        layers = []
        if expand > 1:
            layers += [nn.Conv2d(inputs, wide, 1, bias=False), nn.BatchNorm2d(wide), activation()]
        layers += [nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False), nn.BatchNorm2d(wide), activation()]
        if excite:
            layers.append(Excite(wide))
        layers += [nn.Conv2d(wide, outputs, 1, bias=False), nn.BatchNorm2d(outputs)]
        self.layers, self.residual = nn.Sequential(*layers), stride == 1 and inputs == outputs

    def forward(self, x):
        y = self.layers(x)
        return x + y if self.residual else y


def mobilenet(activation=nn.ReLU6, excite=False):
    blocks = [nn.Conv2d(1, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), activation()]
    inputs = 16
    for expand, outputs, stride in ((1, 16, 1), (4, 24, 2), (4, 24, 1), (4, 40, 2), (4, 40, 1), (4, 64, 1), (4, 64, 1)):
        blocks.append(Inverted(inputs, outputs, stride, expand, activation, excite and expand > 1))
        inputs = outputs
    blocks += [nn.Conv2d(inputs, 160, 1, bias=False), nn.BatchNorm2d(160), activation(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(160, 10)]
    return nn.Sequential(*blocks)


class Block(nn.Module):
    """Attention and two products, normalised before."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm2, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        tokens, width = x.shape[1], x.shape[2]
        q, k, v = self.qkv(self.norm1(x)).reshape(-1, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-1, -2) * (width // self.heads) ** -0.5).softmax(-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(-1, tokens, width))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    def __init__(self, width=48, depth=3, heads=4):
        super().__init__()
        self.patches = nn.Conv2d(1, width, 4, 4)
        self.places = nn.Parameter(torch.randn(1, 49, width) * 0.02)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2) + self.places
        return self.head(self.norm(self.blocks(x)).mean(1))


NETS = {'mobilenet': (mobilenet, 0.01), 'mobilenet-hswish': (lambda: mobilenet(nn.Hardswish, True), 0.01), 'transformer': (Transformer, 0.003)}


def right(model, images, labels):
    with torch.no_grad():
        return sum(int((model(x).argmax(1) == y).sum()) for x, y in zip(images.split(500), labels.split(500))) / len(labels)


def train(name, images, labels, test, epochs):
    torch.manual_seed(1)
    make, rate = NETS[name]
    model = make()
    steps = epochs * (len(images) // 128)
    optimizer = torch.optim.AdamW(model.parameters(), rate / 10, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps)
    begin = time.process_time()
    for epoch in range(epochs):
        model.train()
        for batch in torch.randperm(len(images))[:len(images) // 128 * 128].split(128):
            x = images[batch]
            if torch.rand(()) < 0.5:
                x = x.flip(3)
            loss = functional.cross_entropy(model(x.contiguous(memory_format=torch.channels_last)), labels[batch], label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        model.eval()
        print(f'{name}: epoch {epoch + 1} of {epochs}, {right(model, *test):.4f} of the test images, {time.process_time() - begin:.0f} s of CPU', flush=True)
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('out', type=pathlib.Path)
    parser.add_argument('--only', choices=NETS)
    parser.add_argument('--epochs', type=int, default=5)
    parser.add_argument('--data', type=pathlib.Path, default=pathlib.Path('/usr/share/datasets/fashion-mnist'))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    images, labels = images_and_labels(args.data, 'train')
    test, test_labels = images_and_labels(args.data, 't10k')
    np.savez_compressed(args.out / 'fashion.npz', calibration=images[:1000], test=test, labels=test_labels)
    tensors = [torch.from_numpy(a) for a in (images, labels, test, test_labels)]
    for name in NETS:
        if args.only in (None, name):
            model = train(name, *tensors[:2], tensors[2:], args.epochs)
            # The newer exporter writes no opset 13, which is what the peers' tools take best.
            older = {'dynamo': False} if 'dynamo' in inspect.signature(torch.onnx.export).parameters else {}
            torch.onnx.export(model, torch.zeros(1, 1, 28, 28), str(args.out / f'{name}.onnx'), opset_version=13,
                              input_names=['image'], output_names=['scores'], dynamic_axes={'image': {0: 'batch'}, 'scores': {0: 'batch'}}, **older)


if __name__ == '__main__':
    main()
