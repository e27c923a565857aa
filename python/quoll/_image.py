"""Images: reading and writing files with Pillow, inputs for models, drawing boxes."""
from __future__ import annotations

import os
from typing import Any, Iterable, Optional, Sequence, Tuple, Union

import numpy as np

from . import _core

_CHANNELS = {"RGB": 3, "BGR": 3, "GRAY": 1, "RGBA": 4, "BGRA": 4}


def _pillow() -> Any:
    try:
        import PIL.Image
        import PIL.ImageDraw
        import PIL.ImageOps
    except ImportError as error:
        raise ImportError("pictures from and to files need Pillow: pip install pillow") from error
    return PIL


def imread(path: Union[str, "os.PathLike[str]"]) -> np.ndarray:
    """Reads an image as uint8 (h, w, 3), RGB, turned as its EXIF tag says. Needs Pillow."""
    pil = _pillow()
    with pil.Image.open(path) as image:
        return np.array(pil.ImageOps.exif_transpose(image).convert("RGB"))


def imwrite(path: Union[str, "os.PathLike[str]"], image: np.ndarray) -> None:
    """Writes uint8 (h, w, 3) RGB, (h, w, 4) RGBA or (h, w) grey, in the format of the name's ending. Needs Pillow."""
    _pillow().Image.fromarray(np.ascontiguousarray(image)).save(path)


def image_input(image: Any, size: Optional[Tuple[int, int]] = None, *, order: str = "RGB", source: str = "RGB",
                mean: Sequence[float] = (), norm: Sequence[float] = ()) -> _core.Mat:
    """Makes the input of a network from an image: a float32 Mat (channels, h, w).

    image: a path, or uint8 (h, w, channels) or (h, w). size: (w, h) to resize to, in pixels. source, order: the channels of the
    image and of the network: RGB, BGR, GRAY, RGBA or BGRA. mean, norm: (x - mean) * norm for each channel, x from 0 to 255.
    Raises TypeError for other arrays.
    """
    if isinstance(image, (str, os.PathLike)):
        image, source = imread(image), "RGB"
    pixels = np.ascontiguousarray(image)
    if pixels.dtype != np.uint8 or pixels.ndim not in (2, 3):
        raise TypeError(f"image: expected uint8 (h, w, channels) or (h, w), got {pixels.dtype} {pixels.shape}")
    if pixels.ndim == 2:
        source = "GRAY"
    for name in (order, source):
        if name not in _CHANNELS:
            raise ValueError(f"image_input: expected one of {', '.join(_CHANNELS)}, got '{name}'")
    if (pixels.shape[2] if pixels.ndim == 3 else 1) != _CHANNELS[source]:
        raise ValueError(f"image: {source} has {_CHANNELS[source]} channels, got {pixels.shape}")
    kind = getattr(_core.Mat.PixelType, f"PIXEL_{source}" if source == order else f"PIXEL_{source}2{order}")
    h, w = pixels.shape[:2]
    mat = (_core.Mat.from_pixels(pixels, kind, w, h) if size is None
           else _core.Mat.from_pixels_resize(pixels, kind, w, h, size[0], size[1]))
    if len(mean) or len(norm):
        mat.substract_mean_normalize(list(mean), list(norm))
    return mat


def draw_boxes(image: np.ndarray, boxes: Iterable[Sequence[float]], labels: Optional[Sequence[str]] = None) -> np.ndarray:
    """Returns a copy of `image`, uint8 (h, w, 3), with boxes (x0, y0, x1, y1), in pixels, and their labels drawn in. Needs Pillow."""
    pil = _pillow()
    picture = pil.Image.fromarray(np.ascontiguousarray(image))
    draw = pil.ImageDraw.Draw(picture)
    width = max(2, min(picture.size) // 200)
    for index, box in enumerate(boxes):
        draw.rectangle([float(v) for v in box[:4]], outline=(255, 64, 64), width=width)
        if labels is not None:
            # Above the box, so that it hides nothing in it.
            left, _, right, bottom = draw.textbbox((0, 0), labels[index])
            x, y = float(box[0]), float(box[1]) - bottom - 2
            y = y if y >= 0 else float(box[3]) + 2
            draw.rectangle([x, y, x + right - left + 4, y + bottom + 2], fill=(255, 64, 64))
            draw.text((x + 2, y), labels[index], fill=(255, 255, 255))
    return np.array(picture)
