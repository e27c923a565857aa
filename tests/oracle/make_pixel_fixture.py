#!/usr/bin/env python3
"""Writes tests/data/pixel_cases.bin: what ncnn makes of pixels and Mats.

    python3 tests/oracle/make_pixel_fixture.py [output]

Needs numpy and the ncnn wheel. tests/runtime/test_pixel.cpp and its neighbours read the file; its
format, little-endian: "QPX1", u32 number of cases; a case is a string (u32 length, bytes), u32
number of parameters and as many i32, the input array, the output array; an array is one byte 'B'
(u8) or 'f' (f32), u32 number of axes, as many u32 sizes (outermost first), the values.
"""
import os
import struct
import sys

import ncnn
import numpy as np

FORMATS = {"RGB": (1, 3), "BGR": (2, 3), "GRAY": (3, 1), "RGBA": (4, 4), "BGRA": (5, 4)}
rng = np.random.default_rng(20240229)
cases = []


def array_bytes(a):
    a = np.ascontiguousarray(a)
    kind = {"uint8": b"B", "float32": b"f"}[a.dtype.name]
    return kind + struct.pack("<I%dI" % a.ndim, a.ndim, *a.shape) + a.tobytes()


def add(op, params, given, result):
    params = [int(p) for p in params]
    assert result.size > 0, (op, params)
    cases.append(struct.pack("<I", len(op)) + op.encode()
                 + struct.pack("<I%di" % len(params), len(params), *params)
                 + array_bytes(given) + array_bytes(result))


def as_bytes(mat):
    """A Mat of whole numbers 0..255 as bytes."""
    values = np.array(mat)
    result = values.astype(np.uint8)
    assert np.array_equal(result, values)
    return result


def image(w, h, channels, pad):
    return rng.integers(0, 256, (h, w * channels + pad), dtype=np.uint8)


def pixel_types():
    for source, (value, _) in FORMATS.items():
        for target, (target_value, _) in FORMATS.items():
            yield source, value if source == target else value | target_value << 16


def conversions():
    for source, kind in pixel_types():
        channels = FORMATS[source][1]
        for w, h, pad in ((1, 1, 0), (7, 3, 0), (19, 2, 5)):
            img = image(w, h, channels, pad)
            mat = ncnn.Mat.from_pixels(img, kind, w, h, w * channels + pad)
            add("from_pixels", (kind, w, h, w * channels + pad), img, as_bytes(mat))


RESIZES = ((13, 9, 7, 5), (5, 4, 17, 11), (8, 8, 16, 16), (16, 16, 8, 8), (2, 2, 9, 9),
           (1, 6, 5, 3), (6, 1, 3, 5), (1, 1, 4, 4), (31, 3, 30, 3), (3, 31, 3, 32), (9, 9, 1, 1))


def resizes():
    for source, kind in pixel_types():
        channels = FORMATS[source][1]
        plain = kind == FORMATS[source][0] and source in ("RGB", "GRAY", "RGBA")
        for w, h, tw, th in RESIZES if plain else RESIZES[:1]:
            pad = (w + h) % 3
            img = image(w, h, channels, pad)
            stride = w * channels + pad
            mat = ncnn.Mat.from_pixels_resize(img, kind, w, h, stride, tw, th)
            add("from_pixels_resize", (kind, w, h, stride, tw, th), img, as_bytes(mat))


def rectangles():
    w, h = 11, 8
    for source, kind in (("RGB", 1), ("GRAY", 3), ("BGRA", 5), ("RGB", 1 | 3 << 16)):
        channels = FORMATS[source][1]
        stride = w * channels + 2
        img = image(w, h, channels, 2)
        for roi in ((0, 0, 11, 8), (3, 2, 5, 4), (10, 7, 1, 1), (0, 5, 11, 3)):
            mat = ncnn.Mat.from_pixels_roi(img, kind, w, h, stride, *roi)
            add("from_pixels_roi", (kind, w, h, stride) + roi, img, as_bytes(mat))
            mat = ncnn.Mat.from_pixels_roi_resize(img, kind, w, h, stride, *roi, 6, 7)
            add("from_pixels_roi_resize", (kind, w, h, stride) + roi + (6, 7), img, as_bytes(mat))


def on_mat(function, given, *args):
    source, result = ncnn.Mat(given).clone(), ncnn.Mat()
    function(source, result, *args)
    return np.array(result).copy()


def values(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def mat_resizes():
    for name in ("resize_nearest", "resize_bilinear", "resize_bicubic"):
        function = getattr(ncnn, name)
        for w, h, tw, th in RESIZES:
            if min(w, h) == 1 and name != "resize_nearest":
                continue  # ncnn reads beside a row of one value
            given = values(2, h, w)
            add(name, (tw, th), given, on_mat(function, given, tw, th))
        for shape in ((5, 9), (3,)):
            given = values(*shape)
            add(name, (4, 2), given, on_mat(function, given, 4, 2))


def borders():
    sides = ((1, 2, 3, 0, 1, 2), (0, 0, 1, 1, 0, 0), (2, 1, 0, 2, 0, 1))
    for shape in ((6,), (4, 5), (4, 3, 5), (2, 4, 3, 5)):
        given = values(*shape)
        for top, bottom, left, right, front, behind in sides:
            for kind in (0, 1, 2):
                args = (top, bottom, left, right, front, behind, kind)
                add("copy_make_border_3d", args, given,
                    on_mat(ncnn.copy_make_border_3d, given, *args, 7.0))
        if len(shape) < 4:  # ncnn leaves axes of a 4-D Mat out
            add("copy_cut_border", (1, 0, 1, 2), given,
                on_mat(ncnn.copy_cut_border, given, *((1, 0) if len(shape) > 1 else (0, 0)), 1, 2))


def casts():
    given = (values(3, 5, 7) * np.float32(1000)).astype(np.float32)
    for name in ("float16", "bfloat16"):
        narrow, wide = ncnn.Mat(), ncnn.Mat()
        source = ncnn.Mat(given).clone()
        getattr(ncnn, "cast_float32_to_" + name)(source, narrow)
        getattr(ncnn, "cast_%s_to_float32" % name)(narrow, wide)
        add("cast_" + name, (), given, np.array(wide).copy())
    mat = ncnn.Mat(given).clone()
    mat.substract_mean_normalize([1.0, 2.0, 3.0], [0.5, 0.25, 2.0])
    add("substract_mean_normalize", (), given, np.array(mat).copy())


def main():
    for make in (conversions, resizes, rectangles, mat_resizes, borders, casts):
        make()
    default = os.path.join(os.path.dirname(__file__), "..", "data", "pixel_cases.bin")
    path = sys.argv[1] if len(sys.argv) > 1 else default
    with open(path, "wb") as f:
        f.write(b"QPX1" + struct.pack("<I", len(cases)) + b"".join(cases))
    print("%s: %d cases, %d bytes" % (os.path.normpath(path), len(cases), os.path.getsize(path)))


if __name__ == "__main__":
    main()
