"""Arrays as a model's inputs and outputs say them, to Mats and back."""
from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from . import _core

# ONNX's numbers of element types (TensorProto.DataType) that NumPy has.
_TYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_, 10: np.float16,
          11: np.float64, 12: np.uint32, 13: np.uint64}
_MOST_AXES = 4


def element_dtype(port: _core.Port) -> np.dtype:
    """The NumPy type of an output's array: of types that NumPy lacks, that of the values."""
    return np.dtype(_TYPES.get(port.element_type, np.float32))


def _as_blob_type(array: np.ndarray, name: str) -> np.ndarray:
    """Other floats as float32, other integers as int32 where each value fits; what a Mat holds, as it is."""
    if array.dtype in (np.float32, np.float16, np.int32, np.int8, np.uint8, np.bool_) or array.dtype.name == "bfloat16":
        return array
    if array.dtype.kind == "f":  # also those of the other byte order
        return array.astype(np.float32)
    if array.dtype.kind in "iu":
        limits = np.iinfo(np.int32)
        if array.size and (array.min() < limits.min or array.max() > limits.max):
            raise _core.Error(f"input '{name}': a value of the {array.dtype} array does not fit 32 bits")
        return array.astype(np.int32)
    raise TypeError(f"input '{name}': expected an array of numbers, got dtype {array.dtype}")


def _of_element_type(array: np.ndarray, port: _core.Port) -> np.ndarray:
    """The array in the type of Mat that holds the port's element type; TypeError if it is of another kind."""
    wanted = element_dtype(port)
    kinds = "f" if wanted.kind == "f" else "iub"
    got = "f" if array.dtype.kind == "f" or array.dtype.name == "bfloat16" else array.dtype.kind
    if got not in kinds:
        raise TypeError(f"input '{port.name}': expected {wanted}, got {array.dtype}")
    if wanted.kind == "f":
        return array if array.dtype == np.float32 else array.astype(np.float32)
    target = wanted if wanted.itemsize == 1 else np.dtype(np.int32)
    if wanted.kind == "b":
        target = np.dtype(np.uint8)
        array = array.astype(np.bool_)
    elif array.size and array.dtype != target:
        limits = np.iinfo(target)
        if int(array.min()) < limits.min or int(array.max()) > limits.max:
            raise _core.Error(f"input '{port.name}': a value of the {array.dtype} array does not fit {target}")
    return array if array.dtype == target else array.astype(target)


def to_mat(value: Any, port: _core.Port) -> _core.Mat:
    """The Mat of an input. Arrays of a converted model have the axes that the original declares, its batch included; others
    those of the blob, (c, h, w) and the like, or one more in front, the batch, where the model says the blob's size."""
    if isinstance(value, _core.Mat):
        return value
    array = np.asarray(value) if not hasattr(value, "__dlpack__") or isinstance(value, np.ndarray) else np.from_dlpack(value)
    sizes = port.array_sizes
    if sizes is None:
        batch = port.sizes is not None and array.ndim == len(port.sizes) + 1
        # Not a number alone, which Mat would take for a size.
        return _core.Mat(np.atleast_1d(_as_blob_type(array, port.name)), batch_index=0 if batch else None)
    if array.ndim != len(sizes) and not (port.any_rank and array.ndim >= len(sizes)):
        raise _core.Error(f"input '{port.name}': expected {len(sizes)} axes {_size_text(sizes)}, got {array.ndim} {array.shape}")
    for axis, (got, said) in enumerate(zip(array.shape, sizes)):
        if said >= 0 and got != said and not (axis == 0 and port.batch) and not port.any_rank:
            raise _core.Error(f"input '{port.name}': expected an array {_size_text(sizes)}, got {array.shape}")
    array = _of_element_type(array, port)
    axes = list(array.shape)
    batch = port.batch and axes
    inner = axes[1:] if batch else axes
    inner = inner or [1]
    while len(inner) > _MOST_AXES:  # the outermost ones share an axis of the blob
        inner[:2] = [inner[0] * inner[1]]
    array = array.reshape(([axes[0]] if batch else []) + inner)
    return _core.Mat(array, batch_index=0 if batch else None)


def _size_text(sizes: Sequence[int]) -> str:
    return "(" + ", ".join("any" if size < 0 else str(size) for size in sizes) + ")"


def to_array(mat: _core.Mat, port: _core.Port) -> np.ndarray:
    """The array of an output, with the axes and element type that a converted model declares."""
    if mat.dims == 0:
        return np.empty(0, np.float32)
    sizes = port.array_sizes
    if sizes is None:
        return mat.numpy()
    array = mat.numpy(batch_index=0) if port.batch else mat.numpy()
    if port.any_rank:
        if not sizes and array.shape == (1,):
            array = array.reshape(())
    elif array.ndim != len(sizes):
        array = array.reshape(_full_sizes(list(sizes), port, mat, array.size))
    wanted = element_dtype(port)
    return array if array.dtype == wanted else array.astype(wanted)


def _full_sizes(sizes: list, port: _core.Port, mat: _core.Mat, total: int) -> list:
    if port.batch and sizes:
        sizes[0] = mat.n
    if sizes.count(-1) > 1:
        raise _core.Error(f"output '{port.name}': the sizes of its axes {_size_text(sizes)} are not known")
    known = int(np.prod([size for size in sizes if size >= 0], dtype=np.int64))
    if (-1 in sizes and (known == 0 or total % known)) or (-1 not in sizes and known != total):
        raise _core.Error(f"output '{port.name}': {total} values for an array {_size_text(sizes)}")
    return sizes
