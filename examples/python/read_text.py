"""Reads the lines of text in a photo or scan with PP-OCR's two models: one finds lines, the other reads them.

    pip download --no-deps rapidocr && unzip rapidocr-*.whl 'rapidocr/models/*'     # Apache 2.0
    python read_text.py PHOTO [--models rapidocr/models] [--out BOXES.png]

The models are converted when they are loaded. The characters that the second one knows stand in its file.
"""
import argparse
import pathlib
import re

import numpy as np
import quoll

LEAST = 0.3  # of a pixel's score to be text
LEAST_MEAN = 0.5  # of a box's mean score
GROW = 1.6  # the model marks the core of a line: area over perimeter, times this, is missing on each side


def scores_of(net, photo, size):
    """The answer for a picture resized to (w, h), blue first, values -1 to 1."""
    x = quoll.image_input(photo, size, order="BGR", mean=[127.5] * 3, norm=[1 / 127.5] * 3)
    return net.run(x)[net.output_names()[0]]


def components(mask):
    """Bounding boxes (x0, y0, x1, y1), ends excluded, of the connected parts of a mask (h, w)."""
    finished, parts = [], []  # of a part: its box, and its runs in the row above and in this one
    for y, row in enumerate(mask):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], row.astype(np.int8), [0]])))
        for part in parts:
            part["above"], part["here"] = part["here"], []
        for begin, end in zip(edges[::2], edges[1::2]):
            new = {"box": [begin, y, end, y + 1], "above": [], "here": [(begin, end)]}
            touching = [p for p in parts if any(b <= end and begin <= e for b, e in p["above"])]
            for p in touching:  # the run joins them
                lows, highs = zip(new["box"][:2], p["box"][:2]), zip(new["box"][2:], p["box"][2:])
                new["box"] = [*map(min, lows), *map(max, highs)]
                new["above"] += p["above"]
                new["here"] += p["here"]
                parts.remove(p)
            parts.append(new)
        finished += [p["box"] for p in parts if not p["here"]]
        parts = [p for p in parts if p["here"]]
    return finished + [p["box"] for p in parts]


def find_lines(net, photo):
    """Boxes (x0, y0, x1, y1) in pixels, from the top to the bottom."""
    h, w = photo.shape[:2]
    scale = max(1, 736 / min(h, w))
    size = [max(32, round(side * scale / 32) * 32) for side in (w, h)]
    scores = scores_of(net, photo, size).reshape(size[1], size[0])
    boxes = []
    for x0, y0, x1, y1 in components(scores > LEAST):
        if min(x1 - x0, y1 - y0) < 3 or scores[y0:y1, x0:x1][scores[y0:y1, x0:x1] > LEAST].mean() < LEAST_MEAN:
            continue
        grow = GROW * (x1 - x0) * (y1 - y0) / (2 * (x1 - x0 + y1 - y0))
        box = np.array([x0 - grow, y0 - grow, x1 + grow, y1 + grow]) * ([w / size[0], h / size[1]] * 2)
        boxes.append(np.clip(box.round().astype(int), 0, [w, h, w, h]))
    return sorted(boxes, key=lambda b: (b[1], b[0]))


def read_line(net, letters, line):
    """The text of a picture of one line, and the mean score of its letters."""
    h, w = line.shape[:2]
    scores = scores_of(net, line, (max(48, round(48 * w / h)), 48)).reshape(-1, len(letters))
    best = scores.argmax(1)
    # One letter at each place, 0 for none: repeated places are one letter (Graves et al., 2006, CTC).
    new = (best != 0) & (best != np.concatenate([[0], best[:-1]]))
    return "".join(letters[i] for i in best[new]), float(scores.max(1)[new].mean()) if new.any() else 0.0


def letters_of(model):
    """The alphabet in an ONNX file's metadata, a letter a line: key and value are fields 1 and 2 of a message."""
    data = pathlib.Path(model).read_bytes()
    at = data.rindex(b"\x0a\x09character\x12") + 12
    length = shift = 0
    while True:  # a varint
        length |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            break
    return ["", *re.split("\n", data[at:at + length].decode().rstrip("\n")), " "]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photo")
    parser.add_argument("--models", type=pathlib.Path, default="rapidocr/models", help="folder; default rapidocr/models")
    parser.add_argument("--out", help="picture to write, with the boxes")
    args = parser.parse_args()
    finder, reader = (next(args.models.glob(f"*_{kind}_*.onnx"), None) for kind in ("det", "rec"))
    if not finder or not reader:
        parser.error(f"{args.models} has no *_det_*.onnx and *_rec_*.onnx: see the first lines of this file")
    photo, letters = quoll.imread(args.photo), letters_of(reader)
    lines = find_lines(quoll.load(finder), photo)
    net = quoll.load(reader)
    for x0, y0, x1, y1 in lines:
        text, score = read_line(net, letters, photo[y0:y1, x0:x1])
        print(f"{x0},{y0} {x1 - x0}x{y1 - y0} {score:.2f} {text}")
    if args.out:
        quoll.imwrite(args.out, quoll.draw_boxes(photo, lines))


if __name__ == "__main__":
    main()
