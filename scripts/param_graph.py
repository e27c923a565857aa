"""Writes ncnn's text graph format (`.param`) and weight blob (`.bin`).

The file is: the magic number, `layer_count blob_count`, then one line a layer,
`Type name bottom_count top_count bottoms... tops... id=value...`. An array parameter is written
`-(23300+id)=length,v0,v1,...`. A number is a float exactly when it has a `.` or an `e`.
Source: ncnn's documentation, "param and model file structure".
"""

import struct
from collections import Counter, defaultdict
from dataclasses import dataclass, field

import numpy as np

MAGIC = 7767517
ARRAY_ID_BASE = -23300
FP32_TAG = 0


@dataclass
class Layer:
    """One line of the file; `params` maps a parameter id to an int, a float or a list of either."""

    type: str
    name: str
    bottoms: list
    tops: list
    params: dict = field(default_factory=dict)


def format_number(value):
    """Text that reads back as the same int, or as the same float32."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return str(int(value))
    if isinstance(value, (float, np.floating)) and np.isfinite(np.float32(value)):
        return str(np.float32(value))
    raise TypeError(f"a parameter must be an int or a finite float, got {value!r}")


def format_param(param_id, value):
    """`id=value`, or the array form when value is a list or tuple."""
    if isinstance(value, (list, tuple)):
        items = [str(len(value))] + [format_number(v) for v in value]
        return f"{ARRAY_ID_BASE - param_id}={','.join(items)}"
    return f"{param_id}={format_number(value)}"


def insert_splits(layers):
    """A copy of the layers in which no blob feeds more than one bottom.

    A blob with n > 1 uses gets a Split layer right behind its producer, with one top for each use.
    """
    uses = Counter(b for layer in layers for b in layer.bottoms)
    result, renamed = [], defaultdict(list)
    for layer in layers:
        bottoms = [renamed[b].pop(0) if uses[b] > 1 else b for b in layer.bottoms]
        result.append(Layer(layer.type, layer.name, bottoms, list(layer.tops), dict(layer.params)))
        for top in layer.tops:
            if uses[top] > 1:
                tops = [f"{top}_use{i}" for i in range(uses[top])]
                renamed[top] = list(tops)
                result.append(Layer("Split", f"{top}_split", [top], tops))
    return result


def check_layers(layers):
    """Raises ValueError unless each blob is made once, before it is used, and used at most once."""
    made, used, names = set(), set(), set()
    for layer in layers:
        if layer.name in names:
            raise ValueError(f"[{layer.type} {layer.name}] the layer name is taken")
        names.add(layer.name)
        for bottom in layer.bottoms:
            if bottom not in made or bottom in used:
                raise ValueError(f"[{layer.type} {layer.name}] {bottom} is not made, or used twice")
            used.add(bottom)
        for top in layer.tops:
            if top in made:
                raise ValueError(f"[{layer.type} {layer.name}] {top} is made twice")
            made.add(top)


def param_text(layers):
    """The `.param` text of the layers, with Split layers put in where a blob has several uses."""
    layers = insert_splits(layers)
    check_layers(layers)
    blob_count = sum(len(layer.tops) for layer in layers)
    lines = [str(MAGIC), f"{len(layers)} {blob_count}"]
    for layer in layers:
        words = [f"{layer.type:<20} {layer.name:<24}"]
        words += [str(len(layer.bottoms)), str(len(layer.tops))]
        words += layer.bottoms + layer.tops
        words += [format_param(i, v) for i, v in sorted(layer.params.items())]
        lines.append(" ".join(words))
    return "\n".join(lines) + "\n"


def tagged_fp32(array):
    """Bytes of a convolution or inner-product weight: a 4-byte storage tag, then float32 values."""
    return struct.pack("<I", FP32_TAG) + raw_fp32(array)


def raw_fp32(array):
    """Bytes of a weight without a tag (biases, batch norm), little-endian float32."""
    return np.ascontiguousarray(array, dtype="<f4").tobytes()
