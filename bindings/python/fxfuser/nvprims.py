"""``torch.ops.nvprims``: which prims have an nvprim, which calls of one generated code can take, and what older code asks of one."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch._prims import RETURN_TYPE
from torch.utils import _pytree as pytree

from fxfuser import _C
from fxfuser.nvprims_definition import implementation

# What a call may hold to become an nvprim. Wider than in 2022 nowhere: graphs of that time keep their meaning.
TRACED_DTYPES = frozenset({torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.bool})
# Too costly to compute twice in a training step.
_NOT_RECOMPUTABLE = frozenset({"amax", "amin", "sum", "var", "var_mean", "native_batch_norm", "rand_like"})


@functools.cache
def names() -> tuple[str, ...]:
    """The nvprims of the op table, by packet, in the table's order."""
    found = [target.split(".")[1] for row in json.loads(_C.ops_json()) for target in row["targets"] if target.startswith("nvprims.")]
    return tuple(dict.fromkeys(found))


@functools.cache
def nvprim_of(prim: Any) -> Any:
    """The nvprim packet that a prim (an overload or packet of ``torch.ops.prims``) becomes, or None."""
    qualified = prim.name() if isinstance(prim, torch._ops.OpOverload) else prim._qualified_op_name
    name = qualified.partition("::")[2].partition(".")[0]
    _C.load()
    return getattr(torch.ops.nvprims, name, None)


def is_supported_call(prim: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """True when every dtype in a call is one that nvprims are traced with: of its tensors, and asked for by argument."""
    for leaf in pytree.tree_leaves((args, kwargs)):
        if isinstance(leaf, torch.Tensor) and leaf.dtype not in TRACED_DTYPES:
            return False
        if isinstance(leaf, torch.dtype) and leaf not in TRACED_DTYPES:
            return False
    return True


def is_view(name: str) -> bool:
    """True when the result of an nvprim shares its argument's memory, by its schema."""
    return getattr(torch.ops.nvprims, name).default._schema.returns[0].alias_info is not None


def register_nvprims() -> None:
    """Gives each nvprim the attributes that older code reads: ``impl_nvfuser``, ``impl_aten``, ``return_type``, ``is_recomputable``."""
    _C.load()
    for name in names():
        definition = implementation(name)
        packet = getattr(torch.ops.nvprims, name)
        for op in (packet, *(getattr(packet, overload) for overload in packet.overloads())):
            op.impl_nvfuser = definition
            op.impl_aten = op
            op.return_type = RETURN_TYPE.VIEW if is_view(name) else RETURN_TYPE.NEW
            op.is_recomputable = name not in _NOT_RECOMPUTABLE
