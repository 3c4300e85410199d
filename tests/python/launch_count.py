"""How many kernels and ops a call launches, read from torch.profiler: the same rule for our kernels, for those of torch.compile's default backend and for ATen."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

KERNEL = re.compile(r"^fxfuser_|cpp_fused|^triton_")
# Allocations, views whose schemas don't say so, and reads of a number.
NOTHING = frozenset("empty empty_like empty_strided new_empty new_empty_strided resize_ set_ lift_fresh detach_ _unsafe_view _reshape_alias _local_scalar_dense".split())


@functools.cache
def _kind(name: str) -> str:
    """`counted`, `nothing` (a view, an allocation) or `made of others` for an event of this name."""
    if KERNEL.search(name):
        return "counted"
    namespace, _, op = name.partition("::")
    if not op or not hasattr(torch.ops, namespace) or not hasattr(getattr(torch.ops, namespace), op):
        return "made of others"
    packet = getattr(getattr(torch.ops, namespace), op)
    if op in NOTHING:
        return "nothing"
    overloads = [found for found in (getattr(packet, overload) for overload in packet.overloads()) if torch._C._dispatch_has_kernel(found.name())]
    if any(torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), "CompositeImplicitAutograd") for overload in overloads):
        return "made of others"
    results = [result.alias_info for result in overloads[0]._schema.returns]
    return "nothing" if results and all(alias is not None and not alias.is_write for alias in results) else "counted"


def _walk(event: Any) -> Iterator[str]:
    if "AccumulateGrad" in event.name:  # PyTorch's own, with each backend
        return
    kind = _kind(event.name)
    if kind == "counted":
        yield event.name
    elif kind == "made of others":
        for child in event.cpu_children:
            yield from _walk(child)


def launched(call: Callable[[], Any]) -> Counter[str]:
    """What one call launches, by name: generated kernels and outermost ops that compute; no views, no allocations."""
    with profile(activities=[ProfilerActivity.CPU], acc_events=True) as trace:
        call()
    return Counter(name for event in trace.events() if event.cpu_parent is None for name in _walk(event))
