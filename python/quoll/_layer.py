"""Layers in Python."""
from __future__ import annotations

from typing import Any, Sequence

from . import _core


class Layer:
    """A layer in Python: override forward(), and load_param() and load_model() if the layer has parameters and weights.

        class Twice(quoll.Layer):
            def forward(self, x):
                return 2 * x

        net.register_custom_layer("Twice", Twice)

    `type` and `name` are set before load_param. One object serves all runs, of several threads too; the GIL is held while it runs.
    """

    type = ""
    name = ""

    def load_param(self, params: _core.ParamDict) -> None:
        """Takes the parameters of the layer's line in the param file: params.get(0, 1.0)."""

    def load_model(self, weights: _core.ModelBin) -> None:
        """Takes the weights, in file order: weights.load(count, 0)."""

    def create_pipeline(self, opt: _core.Option) -> None:
        """Called once, after the weights."""

    def forward(self, *inputs: Any) -> Any:
        """Takes an array (w,), (h, w), (c, h, w) or (c, d, h, w) for each input; returns one array, or a tuple with one for each
        output. A batch comes item by item. What it raises is the cause of the quoll.Error that extract() raises."""
        raise NotImplementedError(f"{type(self).__name__}.forward")

    def _load_param(self, params: _core.ParamDict) -> None:
        self.load_param(params)

    def _load_model(self, weights: _core.ModelBin) -> None:
        self.load_model(weights)

    def _create_pipeline(self, opt: _core.Option) -> None:
        self.create_pipeline(opt)

    def _forward(self, inputs: Sequence[_core.Mat], outputs: int, opt: _core.Option) -> Sequence[Any]:
        result = self.forward(*(mat.numpy() for mat in inputs))
        return result if isinstance(result, (tuple, list)) else (result,)
