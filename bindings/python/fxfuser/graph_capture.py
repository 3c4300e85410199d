"""CUDA graphs of plans, captured through ``torch.cuda.CUDAGraph``."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable

import torch

_lock = threading.Lock()  # one stream a device serves all captures


@functools.cache
def _side_stream(device: int) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)


def capture(device: int, run: Callable[[], None]) -> torch.cuda.CUDAGraph:
    """What ``run`` enqueues, as a graph with a memory pool of its own; ``run`` is called once before, so that libraries are warm.

    Raises:
        RuntimeError: something in ``run`` can't be captured.
    """
    graph = torch.cuda.CUDAGraph()
    with _lock:
        side, current = _side_stream(device), torch.cuda.current_stream(device)
        side.wait_stream(current)
        with torch.cuda.stream(side):
            run()
            graph.capture_begin(capture_error_mode="thread_local")
            try:
                run()
            except BaseException:
                with contextlib.suppress(RuntimeError):  # the capture is void; what ended it is raised
                    graph.capture_end()
                raise
            graph.capture_end()
        current.wait_stream(side)
    return graph
