"""One model for many threads."""
from __future__ import annotations

import queue
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Dict, Iterable, Iterator, Optional, Sequence

import numpy as np

from ._net import Net


class Pool:
    """Threads that run a Net, each item in one of them. pool.map(items), pool.submit(inputs) and pool.run(inputs) may be called
    from any thread.

    Each thread uses one Extractor at a time, and net.opt.num_threads threads within layers: for a pool with as many threads as
    cores, load the net with num_threads=1.
    """

    def __init__(self, net: Net, threads: int = 2):
        if threads < 1:
            raise ValueError(f"Pool: expected at least 1 thread, got {threads}")
        self.net = net
        self._slots = threading.BoundedSemaphore(threads)
        self._threads = threads
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="quoll")

    def run(self, inputs: Any, outputs: Optional[Sequence[str]] = None) -> Dict[str, np.ndarray]:
        """Net.run on the calling thread, as soon as fewer than `threads` others are running."""
        with self._slots:
            return self.net.run(inputs, outputs)

    def submit(self, inputs: Any, outputs: Optional[Sequence[str]] = None) -> "Future[Dict[str, np.ndarray]]":
        """Net.run on a thread of the pool; returns a Future."""
        return self._executor.submit(self.run, inputs, outputs)

    def map(self, items: Iterable[Any], outputs: Optional[Sequence[str]] = None) -> Iterator[Dict[str, np.ndarray]]:
        """Yields the results in the order of the items. Only a few items are taken ahead."""
        waiting: "queue.SimpleQueue[Future[Dict[str, np.ndarray]]]" = queue.SimpleQueue()
        for item in items:
            waiting.put(self.submit(item, outputs))
            if waiting.qsize() > 2 * self._threads:
                yield waiting.get().result()
        while not waiting.empty():
            yield waiting.get().result()

    def close(self) -> None:
        """Waits for what was submitted. The pool then takes nothing more."""
        self._executor.shutdown()

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
