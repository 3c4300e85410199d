"""The option ``fused_rng``: random ops of a traced graph draw from one seed a call and device.

A seed is a tensor that the graph itself draws, so that the backward graph computes a mask again from eight saved bytes and a captured
graph draws anew at each replay. Which ops have a seeded form is what the table says (``fxfuser.seeded_*``).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import torch
import torch.fx
from torch._ops import OpOverload
from torch.fx.experimental.proxy_tensor import get_proxy_mode
from torch.utils.checkpoint import CheckpointPolicy

from fxfuser import _C

_SEEDED = "fxfuser.seeded_"


class _Draws:
    """What one trace has drawn: a seed a device, and how many nodes read one."""

    def __init__(self) -> None:
        self.seeds: dict[torch.device, torch.Tensor] = {}
        self.nodes = 0

    def seed(self, device: torch.device) -> torch.Tensor:
        if device not in self.seeds:
            self.seeds[device] = torch.ops.fxfuser.random_seed(device=device)
        return self.seeds[device]

    def number(self) -> int:
        self.nodes += 1
        return self.nodes


_draws: WeakKeyDictionary[Any, _Draws] = WeakKeyDictionary()  # by tracer: a body of a higher-order op has a seed of its own


def _seeded(overload: OpOverload, seeded: OpOverload) -> Callable[..., Any]:
    names = [argument.name for argument in overload._schema.arguments]
    usual = {argument.name: argument.default_value for argument in overload._schema.arguments if argument.has_default_value()}

    def opened(*args: Any, **kwargs: Any) -> Any:
        given = {**usual, **dict(zip(names, args, strict=False)), **kwargs}
        mode = get_proxy_mode()
        if mode is None or given.get("generator") is not None or given.get("p") == 0 or given.get("train") is False:
            return NotImplemented
        first = given[names[0]]
        device = first.device if isinstance(first, torch.Tensor) else torch.device(given["device"] or torch.get_default_device())
        draws = _draws.setdefault(mode.tracer, _Draws())
        return seeded(*(given[name] for name in names), draws.seed(device), draws.number())

    return opened


def seeded_forms() -> dict[Any, Callable[..., Any]]:
    """Decompositions of the random ops that the table has a seeded form of."""
    found: dict[Any, Callable[..., Any]] = {}
    for target in (target for row in json.loads(_C.ops_json()) for target in row["targets"] if target.startswith(_SEEDED)):
        name, overload = target.removeprefix(_SEEDED).split(".")
        aten = getattr(getattr(torch.ops.aten, name), overload)
        found[aten] = _seeded(aten, getattr(getattr(torch.ops.fxfuser, f"seeded_{name}"), overload))
    return found


def keeping_seeds(partition: Callable[..., Any]) -> Callable[..., Any]:
    """``partition``, with seeds saved for the backward graph whatever a checkpointed region says of them."""

    def keeping(joint_module: torch.fx.GraphModule, joint_inputs: Any, **more: Any) -> Any:
        for node in joint_module.graph.find_nodes(op="call_function", target=torch.ops.fxfuser.random_seed.default):
            node.meta["recompute"] = CheckpointPolicy.MUST_SAVE
        return partition(joint_module, joint_inputs, **more)

    return keeping
