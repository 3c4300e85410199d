"""What a call's arguments mean: ``execute(gm, *args)``, or ``execute(gm, args)`` where it can mean nothing else."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.fx
from torch.fx.graph import _PyTreeCodeGen
from torch.utils import _pytree as pytree

Arguments = tuple[Any, ...]


def tree_info(gm: torch.fx.GraphModule) -> Any:
    """The structure of inputs and outputs that the graph carries; None when its placeholders are the arguments themselves."""
    codegen = gm.graph._codegen
    return codegen.pytree_info if isinstance(codegen, _PyTreeCodeGen) else None


def placeholders(gm: torch.fx.GraphModule) -> list[torch.fx.Node]:
    return [node for node in gm.graph.nodes if node.op == "placeholder"]


def is_named_tuple(target: Any) -> bool:
    return isinstance(target, type) and issubclass(target, tuple)


def readings(gm: torch.fx.GraphModule, args: Arguments, kwargs: dict[str, Any]) -> Iterator[tuple[list[Any], Arguments]]:
    """The readings that fit the module, best first: the placeholders' values, and the positional arguments that ``gm`` takes."""
    candidates = [args]
    if len(args) == 1 and not kwargs and isinstance(args[0], (tuple, list)):
        candidates.append(tuple(args[0]))
    for candidate in candidates:
        leaves = _flatten(gm, candidate, kwargs)
        if leaves is not None:
            yield leaves, candidate


def flatten_inputs(gm: torch.fx.GraphModule, args: Arguments, kwargs: dict[str, Any]) -> tuple[list[Any], Arguments] | None:
    """The reading of a call of a module that has a program; None when the arguments fit it in neither."""
    found = list(readings(gm, args, kwargs))
    if len(found) == 2 and not takes_sequence(gm):
        return found[1]
    return found[0] if found else None


def choose(gm: torch.fx.GraphModule, args: Arguments, kwargs: dict[str, Any], works: Callable[[Arguments], bool]) -> Arguments:
    """The reading of a call of a module without structure: where both fit, the first that ``works``.

    Raises:
        TypeError: neither fits; the text names both.
    """
    found = [reading for _, reading in readings(gm, args, kwargs)]
    if not found:
        raise TypeError(mismatch(gm, args, kwargs))
    if len(found) == 1:
        return found[0]
    return next((reading for reading in found if works(reading)), found[0])


def takes_sequence(gm: torch.fx.GraphModule) -> bool:
    """True when ``execute(gm, [a])`` may mean ``gm([a])``: nothing says that the first placeholder is a tensor."""
    nodes = placeholders(gm)
    if not nodes or tree_info(gm) is not None or isinstance(nodes[0].meta.get("val"), torch.Tensor):
        return False
    return not any(_is_tensor_operand(user, nodes[0]) for user in nodes[0].users)


def _is_tensor_operand(user: torch.fx.Node, node: torch.fx.Node) -> bool:
    if not isinstance(user.target, torch._ops.OpOverload):
        return False
    named = {argument.name: argument for argument in user.target._schema.arguments}
    positional = zip(user.target._schema.arguments, user.args, strict=False)
    given = [*positional, *((named[name], value) for name, value in user.kwargs.items() if name in named)]
    return any(value is node and str(argument.type).startswith(("Tensor", "Optional[Tensor")) for argument, value in given)


def example_leaves(gm: torch.fx.GraphModule, args: Arguments, kwargs: dict[str, Any]) -> list[Any]:
    """The inputs in the order of the placeholders; none where no arguments are given.

    Raises:
        TypeError: the arguments fit the module in neither reading.
    """
    if not args and not kwargs:
        return []
    flat = flatten_inputs(gm, args, kwargs)
    if flat is None:
        raise TypeError(mismatch(gm, args, kwargs))
    return flat[0]


def mismatch(gm: torch.fx.GraphModule, args: Arguments, kwargs: dict[str, Any]) -> str:
    """Why the arguments fit the module in neither reading."""
    count = len(placeholders(gm))
    text = "Number of placeholder nodes in the graph must match the number of arguments: "
    info = tree_info(gm)
    given = len(args) + len(kwargs)
    if info is None:
        names = f", by name {', '.join(kwargs)}" if kwargs else ""
        text += f"the module takes {count} and was given {given}{names}"
    else:
        leaves = len(pytree.tree_leaves((args, kwargs)))
        text += f"the module takes {count} in the structure {_one_line(info.in_spec)} and was given {leaves} in {_one_line(pytree.tree_structure((args, kwargs)))}"
    return f"{text} (read as execute(gm, *args); a single tuple or list is read as execute(gm, args) when its length is {count})"


def _one_line(spec: Any) -> str:
    return " ".join(str(spec).split())


def _flatten(gm: torch.fx.GraphModule, args: Arguments, kwargs: dict[str, Any]) -> list[Any] | None:
    info = tree_info(gm)
    if info is not None:
        return _flatten_tree(info.in_spec, args, kwargs)
    leaves = list(args)
    nodes = placeholders(gm)
    if len(leaves) > len(nodes):
        return None
    rest = dict(kwargs)
    for node in nodes[len(leaves) :]:
        if str(node.target) in rest:
            leaves.append(rest.pop(str(node.target)))
        elif node.args:
            leaves.append(node.args[0])
        else:
            return None
    return None if rest else leaves


def _flatten_tree(spec: Any, args: Arguments, kwargs: dict[str, Any]) -> list[Any] | None:
    with_kwargs = spec.type is tuple and spec.num_children == 2 and spec.child(1).type is dict and spec.child(0).type is tuple
    tree: Any = (args, kwargs) if with_kwargs else args
    if not with_kwargs and kwargs:
        return None
    if with_kwargs:
        names = spec.child(1).context
        if set(names) != set(kwargs):
            return None
        tree = (args, {name: kwargs[name] for name in names})
    leaves, found = pytree.tree_flatten(tree)
    return leaves if found == spec else None


_aten_copies: weakref.WeakKeyDictionary[torch.fx.GraphModule, torch.fx.GraphModule] = weakref.WeakKeyDictionary()


def run_aten(gm: Any, args: Arguments, kwargs: dict[str, Any]) -> Any:
    """``executor="aten"``: the module itself, with nodes that build a named tuple made plain (they don't run as traced)."""
    if not isinstance(gm, torch.fx.GraphModule):
        raise TypeError(f"execute takes a torch.fx.GraphModule, not {type(gm).__name__}")
    from fxfuser import lowering

    args = lowering.reading_of(gm, args, kwargs)
    if any(node.op == "call_function" and is_named_tuple(node.target) for node in gm.graph.nodes):
        gm = _without_named_tuples(gm)
    return gm(*args, **kwargs)


def _without_named_tuples(gm: torch.fx.GraphModule) -> torch.fx.GraphModule:
    copy = _aten_copies.get(gm)
    if copy is None:
        graph = torch.fx.Graph()
        mapping: dict[torch.fx.Node, Any] = {}
        for node in gm.graph.nodes:
            if node.op == "call_function" and is_named_tuple(node.target):
                mapping[node] = torch.fx.node.map_arg(tuple(node.args[0]) if len(node.args) == 1 else node.args, mapping.__getitem__)
            elif node.op == "output":
                graph.output(torch.fx.node.map_arg(node.args[0], mapping.__getitem__))
            else:
                mapping[node] = graph.node_copy(node, mapping.__getitem__)
        graph._codegen = gm.graph._codegen
        copy = torch.fx.GraphModule(gm, graph)
        _aten_copies[gm] = copy
    return copy
