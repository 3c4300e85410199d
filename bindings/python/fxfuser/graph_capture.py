"""CUDA graphs of plans, captured through ``torch.cuda.CUDAGraph``."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import threading
from collections.abc import Callable

import torch

_lock = threading.Lock()  # one stream a device serves all captures


@functools.cache
def _side_stream(device: int) -> torch.cuda.Stream:
    """A stream that nobody else has: those of ``torch.cuda.Stream`` come from a pool of 32, so what another thread enqueues on its
    own could be captured."""
    handle, non_blocking = ctypes.c_void_p(), 1
    with torch.cuda.device(device):
        status = ctypes.CDLL("libcuda.so.1").cuStreamCreate(ctypes.byref(handle), non_blocking)
    if status != 0:
        raise RuntimeError(f"cuStreamCreate failed with {status}")
    return torch.cuda.ExternalStream(handle.value, device)


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
