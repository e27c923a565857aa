"""The programs that come with the package."""
from __future__ import annotations

import os
import pathlib
import subprocess
from typing import Any, List, Mapping, Optional, Sequence, Tuple, Union

from . import _core

PathLike = Union[str, "os.PathLike[str]"]
_BIN = pathlib.Path(__file__).resolve().parent / "bin"


def _folder() -> pathlib.Path:
    return pathlib.Path(os.environ["QUOLL_BIN"]) if os.environ.get("QUOLL_BIN") else _BIN


def tools() -> List[str]:
    """Names of the programs: onnx2engine, engineinfo, ..."""
    folder = _folder()
    return sorted(path.name for path in folder.iterdir() if os.access(path, os.X_OK) and path.is_file()) if folder.is_dir() else []


def tool_path(name: str) -> str:
    """The path of a program; quoll.Error if the package was built without it."""
    path = _folder() / name
    if not path.is_file():
        raise _core.Error(f"this package has no program '{name}'; it has: {', '.join(tools()) or 'none'}. Programs are built where "
                          "scripts/install_deps.sh has installed what they need")
    return str(path)


def run_tool(name: str, *args: Any) -> str:
    """Runs a program to its end and returns what it printed; quoll.Error with its message if it fails."""
    done = subprocess.run([tool_path(name), *map(str, args)], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise _core.Error(done.stderr.strip() or f"{name}: exit code {done.returncode}")
    return done.stdout


def convert(onnx: PathLike, param: Optional[PathLike] = None, model: Optional[PathLike] = None, *,
            shapes: Optional[Mapping[str, Sequence[int]]] = None, args: Sequence[Any] = ()) -> Tuple[str, str]:
    """Converts an ONNX model with onnx2engine; returns the paths of param and bin, by default beside the file.

    shapes: sizes of inputs that the file leaves open, {"x": (1, 3, 224, 224)}. args: more options of onnx2engine ("--fp16").
    quoll.Error names every node that stands in the way.
    """
    onnx = os.fspath(onnx)
    param = os.fspath(param) if param is not None else os.path.splitext(onnx)[0] + ".param"
    model = os.fspath(model) if model is not None else os.path.splitext(param)[0] + ".bin"
    words: List[Any] = list(args)
    for name, sizes in (shapes or {}).items():
        words += ["--shape", f"{name}={','.join(map(str, sizes))}"]
    run_tool("onnx2engine", onnx, param, model, *words)
    return param, model


def quantize(param: PathLike, model: Optional[PathLike], out_param: PathLike, out_model: PathLike,
             data: Union[PathLike, Sequence[PathLike]], *, args: Sequence[Any] = ()) -> str:
    """Makes a model of fewer bits with enginequantize; returns what it printed.

    param: with its weights `model`, or an ONNX model with None. data: a folder, a list of files, images or .npy files, or several of
    these. args: more of its options ("--kind", "int8", "--norm", 1 / 255, "--report", folder); docs/tools/enginequantize.md.
    """
    words = [param] if model is None else [param, model]
    samples = [data] if isinstance(data, (str, os.PathLike)) else list(data)
    return run_tool("enginequantize", *words, out_param, out_model, "--data", *samples, *args)
