"""What torch.profiler saw inside one call of ``execute``: operators, ranges and Python frames."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from torch.profiler import ProfilerActivity, profile


def inside_execute(call: Callable[[], Any]) -> list[str]:
    """Names of the events under the C function ``execute``, depth first. Python frames would be among them as "file.py(12): name"."""
    with profile(activities=[ProfilerActivity.CPU], with_stack=True) as trace:
        call()
    found: list[Any] = []

    def search(events: list[Any]) -> None:
        for event in events:
            if re.fullmatch(r"<built-in (function|method) execute.*>", event.name):
                found.append(event)
            else:
                search(event.children)

    search(trace.profiler.kineto_results.experimental_event_tree())
    assert len(found) == 1, "the profiler must see Python, and one call"
    names: list[str] = []

    def collect(event: Any) -> None:
        for child in event.children:
            names.append(child.name)
            collect(child)

    collect(found[0])
    return names


def python_frames(names: list[str]) -> list[str]:
    return [name for name in names if re.search(r"\(\d+\): |^<built-in|^nn\.Module", name)]
