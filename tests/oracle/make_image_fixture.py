#!/usr/bin/env python3
"""Writes tests/data/image_cases.bin: what NumPy makes of turning, warping and drawing pixels.

    python3 tests/oracle/make_image_fixture.py [output]

Everything is written here from its definition in float64, independently of the library. The format
is that of make_pixel_fixture.py; tests/runtime/test_image.cpp reads it. Parameters are ints; floats
come as their bits.
"""
import os
import struct
import sys

import numpy as np

rng = np.random.default_rng(20250117)
cases = []


def array_bytes(a):
    a = np.ascontiguousarray(a)
    kind = {"uint8": b"B", "float32": b"f"}[a.dtype.name]
    return kind + struct.pack("<I%dI" % a.ndim, a.ndim, *a.shape) + a.tobytes()


def add(op, params, given, result):
    params = [struct.unpack("<i", struct.pack("<f", p))[0] if isinstance(p, (float, np.floating))
              else int(p) for p in params]
    cases.append(struct.pack("<I", len(op)) + op.encode()
                 + struct.pack("<I%di" % len(params), len(params), *params)
                 + array_bytes(given) + array_bytes(result))


def image(w, h, c):
    return rng.integers(0, 256, (h, w, c), dtype=np.uint8)


# The EXIF orientations, as what has to be done to an image.
ORIENTATIONS = {1: lambda a: a, 2: np.fliplr, 3: lambda a: np.rot90(a, 2), 4: np.flipud,
                5: lambda a: a.swapaxes(0, 1), 6: lambda a: np.rot90(a, -1),
                7: lambda a: np.rot90(a, 2).swapaxes(0, 1), 8: np.rot90}


def rotations():
    for c in (1, 2, 3, 4):
        for w, h in ((1, 1), (5, 3), (35, 33)):
            img = image(w, h, c)
            for kind, turn in ORIENTATIONS.items():
                add("kanna_rotate", (kind, w, h, c), img, turn(img))


def warped(img, tm, w, h, outside):
    """The bilinear samples of img at tm * (x, y); `outside` has the pixels beyond the edges."""
    tm = np.asarray(tm, np.float32).astype(np.float64)
    y, x = np.mgrid[0:h, 0:w]
    sx, sy = tm[0] * x + tm[1] * y + tm[2], tm[3] * x + tm[4] * y + tm[5]
    x0, y0 = np.floor(sx).astype(int), np.floor(sy).astype(int)
    total = np.zeros((h, w, img.shape[2]))
    for dy in (0, 1):
        for dx in (0, 1):
            px, py = x0 + dx, y0 + dy
            inside = (px >= 0) & (px < img.shape[1]) & (py >= 0) & (py < img.shape[0])
            tap = np.where(inside[..., None], img[np.clip(py, 0, img.shape[0] - 1),
                                                  np.clip(px, 0, img.shape[1] - 1)], outside)
            weight = (1 - np.abs(sx - px)) * (1 - np.abs(sy - py))
            total += tap * weight[..., None]
    return total


def rotation(angle, scale, dx, dy):
    t = np.deg2rad(angle)
    turn = scale * np.array([[np.cos(t), np.sin(t)], [-np.sin(t), np.cos(t)]])
    centre = np.array([dx, dy])
    shift = centre - turn @ centre
    return np.concatenate([np.c_[turn, shift].ravel()])


def smooth(w, h, c):
    """A picture whose neighbours differ little, so that 10-bit positions cost little."""
    y, x = np.mgrid[0:h, 0:w]
    planes = [127.5 + 100 * np.sin(x / (5 + k) + k) * np.cos(y / (7 - k)) for k in range(c)]
    return np.stack(planes, -1).astype(np.uint8)


def warps():
    for c in (1, 2, 3, 4):
        for angle, scale, w, h, tw, th in ((0, 1, 20, 16, 20, 16), (30, 0.8, 31, 22, 40, 35),
                                           (-145, 1.7, 25, 40, 33, 28), (90, 0.3, 12, 9, 50, 40),
                                           (12, 20, 40, 40, 9, 9)):
            tm = rotation(angle, scale, w / 2, h / 2)
            img, before = smooth(w, h, c), image(tw, th, c)
            color = rng.integers(0, 256, 4)
            packed = int(color @ (1 << 8 * np.arange(4)))
            signed = packed - (1 << 32) if packed >= 1 << 31 else packed
            bits = [float(np.float32(v)) for v in tm]
            for kind, outside in ((0, color[:c]), (-233, before)):
                result = warped(img, tm, tw, th, outside)
                given = np.concatenate([img.ravel(), before.ravel()])
                add("warpaffine", [kind, w, h, tw, th, c, signed] + bits, given,
                    np.rint(result).astype(np.uint8))


def transforms():
    for _ in range(8):
        angle, scale, dx, dy = rng.uniform(-180, 180), rng.uniform(0.1, 3), *rng.uniform(-50, 50, 2)
        args = [float(np.float32(v)) for v in (angle, scale, dx, dy)]
        add("get_rotation_matrix", args, np.zeros(1, np.float32),
            rotation(*args).astype(np.float32))
        n = int(rng.integers(2, 9))
        src, dst = rng.uniform(-100, 100, (2, n, 2)).astype(np.float32)
        # unknowns a, b, tx, ty of (a x - b y + tx, b x + a y + ty)
        x, y, one, zero = src[:, 0], src[:, 1], np.ones(n), np.zeros(n)
        matrix = np.concatenate([np.c_[x, -y, one, zero], np.c_[y, x, zero, one]])
        right = np.concatenate([dst[:, 0], dst[:, 1]])
        a, b, tx, ty = np.linalg.lstsq(matrix.astype(np.float64), right, rcond=None)[0]
        add("get_affine_transform", [n], np.stack([src, dst]),
            np.array([a, -b, tx, b, a, ty], np.float32))
        tm = rng.uniform(-2, 2, (2, 3)).astype(np.float32)
        inverse = np.linalg.inv(np.r_[tm.astype(np.float64), [[0, 0, 1]]])[:2]
        add("invert_affine_transform", [], tm, inverse.astype(np.float32))


def drawn(op, params, w, h, inside):
    """A mask of the painted pixels."""
    add(op, (w, h) + params, np.zeros(1, np.uint8), inside.astype(np.uint8))


def drawings():
    for w, h in ((26, 20), (9, 31)):
        y, x = np.mgrid[0:h, 0:w]
        for rx, ry, rw, rh in ((3, 4, 10, 8), (-5, -6, 12, 20), (10, 20, 100, 100), (5, 5, 0, 0),
                               (60, 60, 5, 5), (2, 2, 1, 1)):
            filled = (x >= rx) & (x < rx + rw) & (y >= ry) & (y < ry + rh)
            drawn("draw_rectangle", (rx, ry, rw, rh, -1), w, h, filled)
            for t in (1, 2, 5):
                a, b = t // 2, t - t // 2
                outer = (x >= rx - a) & (x < rx + rw + b) & (y >= ry - a) & (y < ry + rh + b)
                inner = (x >= rx + b) & (x < rx + rw - a) & (y >= ry + b) & (y < ry + rh - a)
                drawn("draw_rectangle", (rx, ry, rw, rh, t), w, h, outer & ~inner)
        for cx, cy, r in ((15, 12, 9), (0, 0, 8), (-3, 20, 12), (8, 8, 1), (8, 8, 0), (100, 9, 5)):
            d = np.hypot(x - cx, y - cy)
            outermost = np.maximum(abs(x - cx), abs(y - cy)) >= r
            drawn("draw_circle", (cx, cy, r, -1), w, h, (d <= r) & ~outermost)
            for t in (1, 2, 5):
                ring = (d >= r - t / 2) & (d < r + t / 2)
                drawn("draw_circle", (cx, cy, r, t), w, h, ring)
        for x0, y0, x1, y1 in ((2, 3, 30, 21), (10, 5, 10, 25), (25, 8, 3, 8), (-10, -4, 50, 37),
                               (12, 28, 14, 1), (5, 5, 5, 5), (30, 29, 0, 0)):
            length = (x1 - x0) ** 2 + (y1 - y0) ** 2
            for t in (1, 2, 7):
                along = (x - x0) * (x1 - x0) + (y - y0) * (y1 - y0)
                across = (x - x0) * (y1 - y0) - (y - y0) * (x1 - x0)
                near = 2 * across * across < t * length
                drawn("draw_line", (x0, y0, x1, y1, t), w, h,
                      (along >= 0) & (along <= length) & near)


def main():
    for make in (rotations, warps, transforms, drawings):
        make()
    default = os.path.join(os.path.dirname(__file__), "..", "data", "image_cases.bin")
    path = sys.argv[1] if len(sys.argv) > 1 else default
    with open(path, "wb") as f:
        f.write(b"QPX1" + struct.pack("<I", len(cases)) + b"".join(cases))
    print("%s: %d cases, %d bytes" % (os.path.normpath(path), len(cases), os.path.getsize(path)))


if __name__ == "__main__":
    main()
