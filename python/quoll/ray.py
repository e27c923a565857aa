"""Models on more than one machine, with Ray (pip install "ray[data,serve]").

map_batches() runs a model over a Ray dataset; deployment() serves one with dynamic batching. Each worker loads the model once; Ray
runs a block again whose worker died, so that every row comes once.
"""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from ._net import Net, load
from ._values import _as_blob_type

Model = Union[str, Tuple[str, str]]


def _load(model: Model, options: Mapping[str, Any]) -> Net:
    return load(model, **options) if isinstance(model, str) else load(*model, **options)


class _Worker:
    """A batch {column: array (rows, ...)} in, the model's outputs as further columns out."""

    def __init__(self, model: Model, inputs: Mapping[str, str], outputs: Optional[Sequence[str]], options: Mapping[str, Any]):
        self.net = _load(model, options)
        self.inputs, self.outputs = dict(inputs), outputs

    def __call__(self, batch: Dict[str, np.ndarray]) -> Dict[str, np.ndarray]:
        columns = {name: batch[column] for name, column in self.inputs.items()}
        rows: List[Dict[str, np.ndarray]] = []
        for i in range(len(next(iter(columns.values())))):
            extractor = self.net.create_extractor()
            for name, values in columns.items():
                extractor.input(name, _as_blob_type(np.asarray(values[i]), name))
            rows.append({name: extractor.extract(name).numpy() for name in self.outputs or self.net.output_names()})
        return {**batch, **{name: np.stack([row[name] for row in rows]) for name in rows[0]}} if rows else batch


def map_batches(dataset: Any, model: Model, inputs: Union[str, Mapping[str, str]], outputs: Optional[Sequence[str]] = None, *,
                batch_size: int = 32, workers: int = 1, num_cpus: float = 1, **options: Any) -> Any:
    """A dataset with the model's outputs as columns.

    model: a path that quoll.load takes, or (param, bin), which every machine has. inputs: the column that the model's input is, or
    {input: column}; values of a row have the axes of the blob, (c, h, w) for images; float64 becomes float32, integers int32. outputs: blobs; None: the model's.
    workers: processes, each with num_cpus; options: of quoll.load, num_threads=num_cpus if not given.
    """
    import ray.data  # noqa: F401  (says what is missing)
    settings = {"num_threads": max(1, int(num_cpus)), **options}
    if isinstance(inputs, str):
        names = _load(model, settings).input_names()
        if len(names) != 1:
            raise ValueError(f"map_batches: the model has {len(names)} inputs ({', '.join(names)}); give {{input: column}}")
        inputs = {names[0]: inputs}
    return dataset.map_batches(_Worker, fn_constructor_args=(model, dict(inputs), outputs, settings), batch_size=batch_size,
                               concurrency=workers, num_cpus=num_cpus, batch_format="numpy")


def deployment(model: Model, *, max_batch_size: int = 8, batch_wait_timeout_s: float = 0.01, replicas: int = 1, **options: Any) -> Any:
    """A Ray Serve application: handle.remote(array) or {input: array} gives {output: array}. Requests that come within
    batch_wait_timeout_s run as one batch, by threads of a quoll.Pool of net.opt.num_threads.

        handle = ray.serve.run(quoll.ray.deployment("model.onnx"))
        handle.remote(image).result()
    """
    from ray import serve

    from ._pool import Pool

    @serve.deployment(num_replicas=replicas)
    class Served:
        def __init__(self) -> None:
            self.net = _load(model, options)
            threads = self.net.opt.num_threads
            self.net.opt.num_threads = 1
            self.pool = Pool(self.net, threads)

        @serve.batch(max_batch_size=max_batch_size, batch_wait_timeout_s=batch_wait_timeout_s)
        async def run(self, items: List[Any]) -> List[Dict[str, np.ndarray]]:
            return list(self.pool.map(items))

        async def __call__(self, item: Any) -> Dict[str, np.ndarray]:
            return await self.run(item)

    return Served.bind()
