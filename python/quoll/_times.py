"""How long models and their layers take."""
from __future__ import annotations

import dataclasses
import html
import statistics
import time
from typing import Any, Dict, List, Optional

import numpy as np

from . import _core, _values
from ._net import Net


def _inputs(net: Net, inputs: Any) -> Dict[str, Any]:
    """What was given, or random numbers (integers 0 and 1) of the sizes that the model says."""
    if inputs is not None:
        return dict(net._named(inputs, {port.name: port for port in net.inputs}))
    rng = np.random.default_rng(0)
    made = {}
    for port in net.inputs:
        sizes = port.array_sizes if port.array_sizes is not None else port.sizes
        if sizes is None or any(size < 0 for size in sizes[1 if port.batch else 0:]):
            raise _core.Error(f"the model does not say the size of input '{port.name}'; give inputs")
        sizes = [1 if size < 0 else size for size in sizes]
        dtype = _values.element_dtype(port) if port.array_sizes is not None else np.dtype(port.dtype)
        made[port.name] = (rng.uniform(-1, 1, sizes) if dtype.kind == "f" else rng.integers(0, 2, sizes)).astype(dtype)
    return made


def _feed(net: Net, inputs: Dict[str, Any]) -> _core.Extractor:
    ports = {port.name: port for port in net.inputs}
    extractor = net.create_extractor()
    for name, value in inputs.items():
        extractor.input(name, _values.to_mat(value, ports[name]) if name in ports else value)
    return extractor


@dataclasses.dataclass(frozen=True)
class Benchmark:
    """Milliseconds of each run, in order."""
    runs_ms: List[float]

    @property
    def min_ms(self) -> float:
        return min(self.runs_ms)

    @property
    def median_ms(self) -> float:
        return statistics.median(self.runs_ms)

    @property
    def max_ms(self) -> float:
        return max(self.runs_ms)

    def __repr__(self) -> str:
        return (f"<quoll.Benchmark of {len(self.runs_ms)} runs: min {self.min_ms:.3f} median {self.median_ms:.3f} "
                f"max {self.max_ms:.3f} ms>")


def benchmark(net: Net, inputs: Any = None, loops: int = 10, warmup: int = 2) -> Benchmark:
    """Times of whole runs, from giving the inputs to the last output. inputs: as Net.run; None: random numbers of the sizes that
    the model says."""
    if loops < 1:
        raise ValueError(f"benchmark: expected at least 1 loop, got {loops}")
    values, names, times = _inputs(net, inputs), net.output_names(), []
    for _ in range(warmup + loops):
        begin = time.perf_counter()
        extractor = _feed(net, values)
        for name in names:
            extractor.extract(name)
        times.append(1e3 * (time.perf_counter() - begin))
    return Benchmark(times[warmup:])


@dataclasses.dataclass(frozen=True)
class LayerRow:
    """A layer of a Profile: the median of its times, in milliseconds, and its share of all layers' in percent."""
    type: str
    name: str
    algorithm: str
    backend: str
    outputs: List[List[int]]
    ms: float
    percent: float


class Profile:
    """Times of layers: print it, show it in a notebook, rows, or plot()."""

    def __init__(self, rows: List[LayerRow], runs_ms: List[float]):
        self.rows, self.runs_ms = rows, runs_ms

    @property
    def total_ms(self) -> float:
        """Sum of the layers' medians."""
        return sum(row.ms for row in self.rows)

    def by_type(self) -> Dict[str, float]:
        """Milliseconds by type, the largest first."""
        sums: Dict[str, float] = {}
        for row in self.rows:
            sums[row.type] = sums.get(row.type, 0.0) + row.ms
        return dict(sorted(sums.items(), key=lambda item: -item[1]))

    def __str__(self) -> str:
        lines = [f"{'ms':>9} {'%':>5}  {'layer':<24} {'name':<28} {'algorithm':<12} output"]
        for row in self.rows:
            sizes = " ".join("x".join(map(str, size)) for size in row.outputs)
            lines.append(f"{row.ms:9.3f} {row.percent:5.1f}  {row.type[:24]:<24} {row.name[:28]:<28} {row.algorithm[:12]:<12} {sizes}")
        return "\n".join(lines + [f"{self.total_ms:9.3f} 100.0  median of {len(self.runs_ms)} runs"])

    def _repr_html_(self) -> str:
        most = max((row.ms for row in self.rows), default=1) or 1
        rows = "".join(
            f"<tr><td>{html.escape(row.type)}</td><td>{html.escape(row.name)}</td><td>{html.escape(row.algorithm)}</td>"
            f"<td>{' '.join('x'.join(map(str, size)) for size in row.outputs)}</td><td style='text-align:right'>{row.ms:.3f}</td>"
            f"<td style='min-width:12em;text-align:left'><div style='background:#4c78a8;height:0.8em;width:{100 * row.ms / most:.1f}%'></div>"
            "</td></tr>" for row in self.rows)
        return ("<table><thead><tr><th>layer</th><th>name</th><th>algorithm</th><th>output</th><th>ms</th><th></th></tr></thead>"
                f"<tbody>{rows}</tbody></table>")

    def plot(self, axes: Any = None) -> Any:
        """A bar for each type, with matplotlib; returns the axes."""
        if axes is None:
            import matplotlib.pyplot
            axes = matplotlib.pyplot.subplots()[1]
        sums = self.by_type()
        axes.barh(list(sums)[::-1], list(sums.values())[::-1])
        axes.set_xlabel("milliseconds")
        return axes


def profile(net: Net, inputs: Any = None, loops: int = 5, warmup: int = 1) -> Profile:
    """Times of the layers over several runs. inputs: as benchmark()."""
    if loops < 1:
        raise ValueError(f"profile: expected at least 1 loop, got {loops}")
    values, names = _inputs(net, inputs), net.output_names()
    runs: List[List[_core.LayerTime]] = []
    for _ in range(warmup + loops):
        extractor = _feed(net, values)
        extractor.time_layers()
        times: List[_core.LayerTime] = []
        for name in names:
            extractor.extract(name)
            times += extractor.layer_times()
        runs.append(times)
    runs = runs[warmup:]
    medians: Dict[Any, List[float]] = {}
    for times in runs:
        for layer in times:
            medians.setdefault((layer.type, layer.name), []).append(layer.ms)
    total = sum(statistics.median(ms) for ms in medians.values()) or 1.0
    rows = []
    for layer in runs[0]:
        ms = statistics.median(medians[(layer.type, layer.name)])
        rows.append(LayerRow(layer.type, layer.name, layer.algorithm, layer.backend, [list(size) for size in layer.outputs], ms,
                             100 * ms / total))
    return Profile(rows, [sum(layer.ms for layer in times) for times in runs])
