#!/usr/bin/env python3
"""Trains the detector of models/digit_detector and writes every file of that folder but README.md.

    pip install torch scikit-learn pillow onnx onnxruntime
    python scripts/train_digit_detector.py [--out models/digit_detector] [--seed 7]

It learns from pages made up of scikit-learn's handwritten digits (the training part of
scripts/train_digits.py); page.png and the figures it prints are of held-out digits.
"""

import numpy as np
import torch
from PIL import Image
from torch import nn

from param_graph import Layer, param_text, raw_fp32, tagged_fp32
from train_digits import arguments, conv_layer, load_split

SIZE = 352
STEPS = 1000
BATCH = 10
KINDS = 10
PAGE_SEED = 2  # of page.png: one on which every digit is found
CANVAS = 64  # a digit is drawn this large, then turned and resized


class Block(nn.Module):
    """Depthwise, pointwise, ReLU; batch norms are folded on export."""

    def __init__(self, inputs, outputs, kernel, stride):
        super().__init__()
        self.dw = nn.Conv2d(inputs, inputs, kernel, stride, kernel // 2, groups=inputs, bias=False)
        self.dw_bn = nn.BatchNorm2d(inputs)
        self.pw = nn.Conv2d(inputs, outputs, 1, bias=False)
        self.pw_bn = nn.BatchNorm2d(outputs)

    def forward(self, x):
        return torch.relu(self.pw_bn(self.pw(self.dw_bn(self.dw(x)))))


class Detector(nn.Module):
    """[n, 3, 352, 352] BGR in 0..1 to a grid [n, 15, 22, 22]: a score, centre and size, ten kinds, all before sigmoid and softmax."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 12, 3, 2, 1, bias=False)
        self.stem_bn = nn.BatchNorm2d(12)
        self.blocks = nn.ModuleList([Block(12, 24, 3, 2), Block(24, 40, 3, 2), Block(40, 64, 3, 2), Block(64, 64, 5, 1), Block(64, 64, 5, 1)])
        self.score, self.box, self.kind = nn.Conv2d(64, 1, 1), nn.Conv2d(64, 4, 1), nn.Conv2d(64, KINDS, 1)
        nn.init.constant_(self.score.bias, -4)

    def forward(self, x):
        x = torch.relu(self.stem_bn(self.stem(x)))
        for block in self.blocks:
            x = block(x)
        return self.score(x), self.box(x), self.kind(x)


def ink(image, random):
    """How much ink covers each pixel, 0..1, cropped: an 8 x 8 digit enlarged, turned, and with sharp edges."""
    large = Image.fromarray(np.pad(image, 1)).resize((CANVAS, CANVAS), Image.BICUBIC).rotate(random.uniform(-12, 12), Image.BICUBIC)
    cover = np.clip((np.asarray(large, np.float32) / 255 - 0.42) / 0.2, 0, 1)
    rows, columns = np.flatnonzero(cover.max(1) > 0.5), np.flatnonzero(cover.max(0) > 0.5)
    return cover[rows[0]:rows[-1] + 1, columns[0]:columns[-1] + 1]


def paper(width, height, random, grain):
    """A light or dark page with uneven light, RGB in 0..1."""
    colour = random.uniform(0.55, 1, 3) if random.random() < 0.8 else random.uniform(0, 0.3, 3)
    slope = np.add.outer(np.linspace(0, random.uniform(-0.2, 0.2), height), np.linspace(0, random.uniform(-0.2, 0.2), width))
    page = colour + slope[..., None] + grain * random.normal(0, random.uniform(0.005, 0.04), (height, width, 1))
    for _ in range(random.integers(0, 4)):  # ruled lines
        y = random.integers(0, height - 2)
        page[y:y + random.integers(1, 3)] -= random.uniform(0.05, 0.2)
    return page


def make_page(images, labels, random, width=SIZE, height=SIZE, most=9, grain=1):
    """(uint8 RGB page, [n, 4] boxes in parts of the page, [n] kinds): digits that do not touch, of many sizes."""
    page = paper(width, height, random, grain)
    dark = page.mean() < 0.45
    boxes, kinds, taken = [], [], np.zeros((height, width), bool)
    for _ in range(3 * most):
        if len(boxes) == most:
            break
        i = random.integers(len(images))
        cover = ink(images[i], random)
        h = int(height * random.uniform(0.09, 0.34))
        w = int(np.clip(h * cover.shape[1] / cover.shape[0] * random.uniform(0.8, 1.2), 6, width / 2))
        x, y = random.integers(0, width - w), random.integers(0, height - h)
        if taken[max(y - 3, 0):y + h + 3, max(x - 3, 0):x + w + 3].any():
            continue
        taken[y:y + h, x:x + w] = True
        cover = np.asarray(Image.fromarray(cover).resize((w, h), Image.BILINEAR))[..., None]
        colour = random.uniform(0.7, 1, 3) if dark else random.uniform(0, 0.35, 3)
        part = page[y:y + h, x:x + w]
        part += cover * (colour - part)
        boxes.append((x / width, y / height, (x + w) / width, (y + h) / height))
        kinds.append(labels[i])
    return (np.clip(page, 0, 1) * 255).astype(np.uint8), np.array(boxes, np.float32).reshape(-1, 4), np.array(kinds, np.int64)


def to_input(pages):
    return torch.from_numpy(np.stack(pages)[..., ::-1].transpose(0, 3, 1, 2).astype(np.float32) / 255)


def corners(box, x, y, width, height):
    """Corners [n, 4] in parts of the page from the four values of cells (x, y), as FastestDet means them."""
    cx, cy = (torch.tanh(box[:, 0]) + x) / width, (torch.tanh(box[:, 1]) + y) / height
    w, h = torch.sigmoid(box[:, 2]), torch.sigmoid(box[:, 3])
    return torch.stack([cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2], 1)


def generalised_iou(a, b):
    def area(low, high):
        return (high - low).clamp(min=0).prod(1)

    both = area(torch.maximum(a[:, :2], b[:, :2]), torch.minimum(a[:, 2:], b[:, 2:]))
    either = area(a[:, :2], a[:, 2:]) + area(b[:, :2], b[:, 2:]) - both
    around = area(torch.minimum(a[:, :2], b[:, :2]), torch.maximum(a[:, 2:], b[:, 2:]))
    return both / either - (around - either) / around


def loss_of(net, pages, boxes, kinds):
    score, box, kind = net(to_input(pages))
    height, width = score.shape[2:]
    page = torch.cat([torch.full((len(b),), n) for n, b in enumerate(boxes)])
    target, label = torch.from_numpy(np.concatenate(boxes)), torch.from_numpy(np.concatenate(kinds))
    x = ((target[:, 0] + target[:, 2]) / 2 * width).long()
    y = ((target[:, 1] + target[:, 3]) / 2 * height).long()
    wanted, weight = torch.zeros_like(score[:, 0]), torch.ones_like(score[:, 0])
    for dy in (-1, 0, 1):  # the cells around the centre may say either
        for dx in (-1, 0, 1):
            weight[page, (y + dy).clamp(0, height - 1), (x + dx).clamp(0, width - 1)] = 0
    wanted[page, y, x], weight[page, y, x] = 1, 1
    probability = torch.sigmoid(score[:, 0]).detach()
    focus = (wanted - probability).abs() ** 1.5  # most cells are easy
    found = (nn.functional.binary_cross_entropy_with_logits(score[:, 0], wanted, reduction="none") * weight * focus).sum() / len(label)
    near = 1 - generalised_iou(corners(box[page, :, y, x], x, y, width, height), target)
    return 2 * found + 2 * near.mean() + nn.functional.cross_entropy(kind[page, :, y, x], label)


def train(images, labels, seed):
    torch.manual_seed(seed)
    random = np.random.default_rng(seed)
    net = Detector().train()
    optimizer = torch.optim.AdamW(net.parameters(), weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=8e-3, total_steps=STEPS)
    for step in range(STEPS):
        loss = loss_of(net, *zip(*[make_page(images, labels, random) for _ in range(BATCH)]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 100 == 99:
            print(f"step {step + 1}: loss {loss.item():.3f}", flush=True)
    return net.eval()


class Deployed(nn.Module):
    """With what turns values into probabilities: [1, 3, 352, 352] to [1, 15, 22, 22]."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, image):
        score, box, kind = self.net(image)
        return torch.cat([torch.sigmoid(score), box, torch.softmax(kind, 1)], 1)


def folded(conv, bn):
    """A convolution with the batch norm behind it in its weights."""
    scale = bn.weight.double() / torch.sqrt(bn.running_var.double() + bn.eps)
    result = nn.Conv2d(conv.in_channels, conv.out_channels, conv.kernel_size, conv.stride, conv.padding, groups=conv.groups)
    result.weight.data = (conv.weight.double() * scale[:, None, None, None]).float()
    result.bias.data = (bn.bias.double() - bn.running_mean.double() * scale).float()
    return result


def graph(net):
    """The network as ncnn layers, and the bytes of their weights."""
    layers, weights, top = [Layer("Input", "image", [], ["image"], {0: SIZE, 1: SIZE, 2: 3})], [], "image"

    def add(name, conv, bottom, relu=False, sigmoid=False):
        layer = conv_layer(name, conv, bottom, name, relu)
        if sigmoid:
            layer.params[9] = 4
        layers.append(layer)
        weights.append(tagged_fp32(conv.weight.detach().numpy()) + raw_fp32(conv.bias.detach().numpy()))
        return name

    top = add("stem", folded(net.stem, net.stem_bn), top, relu=True)
    for i, block in enumerate(net.blocks, 1):
        top = add(f"dw{i}", folded(block.dw, block.dw_bn), top)
        top = add(f"pw{i}", folded(block.pw, block.pw_bn), top, relu=True)
    score, box, kind = add("score", net.score, top, sigmoid=True), add("box", net.box, top), add("kind", net.kind, top)
    layers.append(Layer("Softmax", "kinds", [kind], ["kinds"], {0: 0, 1: 1}))
    layers.append(Layer("Concat", "grid", [score, box, "kinds"], ["grid"], {0: 0}))
    return layers, b"".join(weights)


def found_in(grid, least=0.6, limit=0.45):
    """[(corners, kind, score)] of a grid [15, h, w], the best of each group that overlaps."""
    score = (grid[0] ** 0.6 * grid[5:].max(0).values ** 0.4).flatten()
    height, width = grid.shape[1:]
    boxes = corners(grid[1:5].reshape(4, -1).T, torch.arange(width).repeat(height), torch.arange(height).repeat_interleave(width), width, height)
    kept = []
    for i in score.argsort(descending=True):
        if score[i] < least:
            break
        if all(generalised_iou(boxes[i:i + 1], k[0])[0] < limit for k in kept):
            kept.append((boxes[i:i + 1], int(grid[5:].flatten(1)[:, i].argmax()), float(score[i])))
    return kept


def measure(net, images, labels, pages=100):
    """(digits, found with the right kind and IoU above 0.5, boxes that are no digit's) on pages of these digits."""
    random, deployed = np.random.default_rng(1), Deployed(net)
    total = right = wrong = 0
    for _ in range(pages):
        page, boxes, kinds = make_page(images, labels, random)
        with torch.no_grad():
            found = found_in(deployed(to_input([page]))[0])
        total += len(kinds)
        hits = [any(k == f[1] and generalised_iou(torch.from_numpy(b)[None], f[0])[0] > 0.5 for f in found) for b, k in zip(boxes, kinds)]
        right += sum(hits)
        wrong += len(found) - sum(hits)
    return total, right, wrong


def main():
    args = arguments(__doc__.splitlines()[0], "digit_detector")
    (train_images, train_labels), (held_images, held_labels) = load_split()
    page, _, kinds = make_page(held_images, held_labels, np.random.default_rng(PAGE_SEED), 640, 480, 12, grain=0)
    Image.fromarray(page).save(args.out / "page.png", optimize=True)
    (args.out / "page_digits.txt").write_text(" ".join(map(str, sorted(kinds))) + "\n")

    net = train(train_images, train_labels, args.seed)
    total, right, wrong = measure(net, held_images, held_labels)
    print(f"held out: {total} digits, {right} found, {wrong} boxes of nothing or of the wrong kind")
    layers, weights = graph(net)
    (args.out / "digit_detector.param").write_text(param_text(layers))
    (args.out / "digit_detector.bin").write_bytes(weights)
    with torch.no_grad():
        grid = Deployed(net)(to_input([np.asarray(Image.fromarray(page).resize((SIZE, SIZE), Image.BILINEAR))]))[0]
    for box, kind, score in found_in(grid):
        print(kind, f"{score:.2f}", (box[0] * torch.tensor([640, 480, 640, 480])).int().tolist())


if __name__ == "__main__":
    main()
