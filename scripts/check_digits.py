#!/usr/bin/env python3
"""Compares the files of models/digits with each other through ncnn and ONNX Runtime.

    pip install numpy ncnn onnxruntime pillow
    python scripts/check_digits.py [models/digits]

Checks that ncnn on .param/.bin and ONNX Runtime on .onnx give the stored reference answers, that
both classify the held-out set alike, and that the PNGs hold the held-out images. Needs no PyTorch.
"""

import sys
from pathlib import Path

import ncnn
import numpy as np
import onnxruntime
from PIL import Image

TOLERANCE = 1e-4
MIN_ACCURACY = 0.98
CELL = 32


def ncnn_runner(folder):
    """A function from (input [1, 8, 8], blob name) to the blob as a numpy array."""
    net = ncnn.Net()
    net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = False
    net.opt.use_bf16_storage = False
    if net.load_param(str(folder / "digits.param")) or net.load_model(str(folder / "digits.bin")):
        raise SystemExit("ncnn does not load digits.param / digits.bin")

    def run(data, blob):
        extractor = net.create_extractor()
        extractor.input("data", ncnn.Mat(np.ascontiguousarray(data)).clone())
        status, mat = extractor.extract(blob)
        if status:
            raise SystemExit(f"ncnn: extract {blob} returned {status}")
        return np.array(mat)

    return net, run


def worst(name, got, want, limit=TOLERANCE):
    """Prints and returns whether the largest difference is within the limit."""
    diff = float(np.abs(np.asarray(got, np.float64) - want).max())
    print(f"{name:<34} max difference {diff:.3g} (limit {limit:g})")
    return diff < limit


def check_reference(folder, run, session):
    reference = np.load(folder / "digits_reference.npz")
    data = reference["data"]
    prob = np.stack([run(x, "prob") for x in data])
    logits = np.stack([run(x, "fc") for x in data])
    ort = np.concatenate([session.run(["prob"], {"data": x[None]})[0] for x in data])
    scale = max(1.0, float(np.abs(reference["logits_torch"]).max()))
    return all([
        worst("ncnn prob, PyTorch", prob, reference["prob_torch"]),
        worst("ncnn prob, ONNX Runtime stored", prob, reference["prob_onnxruntime"]),
        worst("ncnn logits / max, PyTorch", logits / scale, reference["logits_torch"] / scale),
        worst("ONNX Runtime prob, PyTorch", ort, reference["prob_torch"]),
    ])


def check_held_out(folder, run, session):
    held = np.load(folder / "heldout.npz")
    images, labels = held["images"], held["labels"]
    data = (images.astype(np.float32) * np.float32(1 / 255))[:, None]
    ours = np.stack([run(x, "prob") for x in data])
    ort = np.concatenate([session.run(["prob"], {"data": x[None]})[0] for x in data])
    right = ours.argmax(1) == labels
    wrong = [(int(i), int(labels[i]), int(ours[i].argmax())) for i in np.flatnonzero(~right)]
    print(f"held out: ncnn {right.sum()} of {len(labels)} right ({right.mean():.4f}), "
          f"ONNX Runtime {(ort.argmax(1) == labels).sum()}; wrong (index, label, answer): {wrong}")
    same = bool((ours.argmax(1) == ort.argmax(1)).all())
    return all([worst("held out: ncnn, ONNX Runtime", ours, ort), same,
                right.mean() >= MIN_ACCURACY])


def check_images(folder):
    """The sheet, reduced to 8 x 8 a cell by taking and by averaging, and the single PNGs."""
    held = np.load(folder / "heldout.npz")
    sheet = Image.open(folder / "sheet.png")
    labels = np.array([line.split() for line in (folder / "sheet_labels.txt").open()], int)
    rows, columns = labels.shape
    want = held["images"][: rows * columns].reshape(rows, columns, 8, 8).transpose(0, 2, 1, 3)
    want = want.reshape(rows * 8, columns * 8)
    small = (columns * 8, rows * 8)
    ok = sheet.mode == "L" and sheet.size == (columns * CELL, rows * CELL)
    for method in (Image.NEAREST, Image.BOX):
        ok &= np.array_equal(np.asarray(sheet.resize(small, method)), want)
    ok &= np.array_equal(labels.ravel(), held["labels"][: rows * columns])
    for label in range(10):
        image = np.asarray(Image.open(folder / "images" / f"{label}.png"))
        ok &= np.array_equal(image, held["images"][held["labels"] == label][0])
    print(f"images: {'as in heldout.npz' if ok else 'DIFFER from heldout.npz'}")
    return bool(ok)


def main():
    default = Path(__file__).resolve().parent.parent / "models" / "digits"
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    net, run = ncnn_runner(folder)
    session = onnxruntime.InferenceSession(folder / "digits.onnx",
                                           providers=["CPUExecutionProvider"])
    results = [check_reference(folder, run, session), check_held_out(folder, run, session),
               check_images(folder)]
    net.clear()
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
