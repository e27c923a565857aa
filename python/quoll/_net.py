"""Net: a model in Python."""
from __future__ import annotations

import html
import os
import tempfile
from typing import Any, Dict, Iterable, Mapping, Optional, Sequence, Union

import numpy as np

from . import _core, _values

PathLike = Union[str, "os.PathLike[str]"]


class Net(_core.Net):
    """A model.

        net = Net()
        net.opt.num_threads = 2
        net.load_param("m.param")
        net.load_model("m.bin")

    quoll.load(...) does the same. Loaders that fail raise quoll.Error with the reason, and leave the Net empty. Any number of
    threads may run a Net, each with an Extractor of its own; a Net that is running cannot be loaded again.
    """

    def create_extractor(self) -> _core.Extractor:
        """A new Extractor, which is one inference. It keeps the Net alive."""
        return _core.create_extractor(self)

    def run(self, inputs: Any, outputs: Optional[Sequence[str]] = None) -> Dict[str, np.ndarray]:
        """Runs the model on arrays and returns arrays.

        inputs: {name: array or Mat}, or one array for a model with one input. Arrays of a converted model have the axes that the
        original declares, batch included: (n, c, h, w) for images. Arrays of other models have the axes of the blob, (c, h, w),
        or one more in front, the batch. float64 becomes float32; integers become int32 if each value fits.
        outputs: names of blobs; None: the model's outputs.
        Returns {name: array}, with the shape and type that the model declares. Raises quoll.Error with the reason.
        """
        ports = {port.name: port for port in self.inputs}
        all_outputs = {port.name: port for port in self.outputs}
        names = list(all_outputs) if outputs is None else [outputs] if isinstance(outputs, str) else list(outputs)
        extractor = self.create_extractor()
        for name, value in self._named(inputs, ports).items():
            port = ports.get(name)
            extractor.input(name, _values.to_mat(value, port) if port else value)
        results = {}
        for name in names:
            mat = extractor.extract(name)
            results[name] = _values.to_array(mat, all_outputs[name]) if name in all_outputs else mat.numpy()
        return results

    def _named(self, inputs: Any, ports: Mapping[str, _core.Port]) -> Mapping[str, Any]:
        if isinstance(inputs, Mapping):
            return inputs
        if len(ports) != 1:
            raise _core.Error(f"run: the model has {len(ports)} inputs ({', '.join(ports)}); give {{name: array}}")
        return {next(iter(ports)): inputs}

    def predict(self, batch: Iterable[Any]) -> np.ndarray:
        """Runs each item of `batch` and stacks the first outputs: (n, ...). For models with one input.

        Items have the axes of the blob, (c, h, w) for images. As predict() of scikit-learn, with arrays as rows.
        """
        ports, outputs = self.inputs, self.outputs
        if len(ports) != 1 or not outputs:
            raise _core.Error(f"predict: for models of one input, this has {len(ports)}: {', '.join(p.name for p in ports)}")
        results = []
        for item in batch:
            extractor = self.create_extractor()
            value = item if isinstance(item, _core.Mat) else _values._as_blob_type(np.asarray(item), ports[0].name)
            extractor.input(ports[0].name, value)
            results.append(extractor.extract(outputs[0].name).numpy())
        return np.stack(results) if results else np.empty(0, np.float32)

    def __enter__(self) -> "Net":
        return self

    def __exit__(self, *_: Any) -> None:
        self.clear()

    def __repr__(self) -> str:
        return f"<quoll.Net of {len(self.layers())} layers, inputs {self.input_names()}, outputs {self.output_names()}>"

    def _repr_html_(self) -> str:
        """The graph as a table, for notebooks."""
        rows = "".join(
            f"<tr><td>{layer.index}</td><td>{html.escape(layer.type)}</td><td>{html.escape(layer.name)}</td>"
            f"<td>{html.escape(', '.join(layer.bottoms))}</td><td>{html.escape(', '.join(layer.tops))}</td></tr>"
            for layer in self.layers() if layer.tops or layer.bottoms)
        return ("<table><thead><tr><th></th><th>layer</th><th>name</th><th>reads</th><th>makes</th></tr></thead>"
                f"<tbody>{rows}</tbody></table>")


def load(param: PathLike, model: Optional[PathLike] = None, **options: Any) -> Net:
    """Loads a Net from files.

    load("m.param", "m.bin"); load("m.param") if the model has no weights or m.bin is beside it; load("m.onnx"), which converts
    first. options: fields of Option, e.g. num_threads=2. Raises quoll.Error with the reason.
    """
    net = Net()
    for name, value in options.items():
        if not hasattr(net.opt, name):
            raise TypeError(f"load: Option has no '{name}'")
        setattr(net.opt, name, value)
    path = os.fspath(param)
    if path.endswith(".onnx"):
        from ._tools import convert
        if model is not None:
            raise TypeError("load: an ONNX model has its weights in it")
        # Kept as long as the net: a blob that was fused away is made from the file when it is first asked for.
        net._folder = tempfile.TemporaryDirectory(prefix="quoll-")
        return _load_files(net, *convert(path, os.path.join(net._folder.name, "model.param")))
    if model is None:
        beside = (path[:-len(".param.bin")] if path.endswith(".param.bin") else os.path.splitext(path)[0]) + ".bin"
        model = beside if os.path.exists(beside) else None
    return _load_files(net, path, model)


def _load_files(net: Net, param: PathLike, model: Optional[PathLike]) -> Net:
    net.load_param(param)
    if model is None:
        net.load_model_mem(b"")
    else:
        net.load_model(model)
    return net


def run(model: Union[Net, PathLike, Sequence[PathLike]], inputs: Any, outputs: Optional[Sequence[str]] = None) -> Dict[str, np.ndarray]:
    """Net.run for a Net, for a path that load() takes, or for (param, bin)."""
    if not isinstance(model, Net):
        model = load(*model) if isinstance(model, (tuple, list)) else load(model)
    return model.run(inputs, outputs)
