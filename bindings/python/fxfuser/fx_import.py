"""GraphModule -> program, once a module: one pass over the nodes, the rest is in the native builder.

A graph of dispatcher overloads, ``getitem`` and arithmetic on sizes is read as it is; one with modules, methods or torch
functions is lowered first (``fxfuser.lowering``); what neither road takes runs as ``gm(*args)``, with the reason.
"""

from __future__ import annotations

import operator
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx
from torch.utils import _pytree as pytree

from fxfuser import _C, calls

Node = torch.fx.Node


# How the native part knows the check of inputs: a plan whose key holds all that it looks at need not repeat it.
INPUT_GUARDS = "torch.export.guards"


class NeedsLowering(Exception):
    """The graph holds targets that are not dispatcher overloads; the text names the first."""


class RunsOriginal(Exception):
    """The module can only run as itself; the text says why."""


class LacksConstant(RunsOriginal):
    """An attribute that the graph reads is not there now; it may be at the next call."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Stands for a node's value inside the stored arguments of a callable step."""

    index: int


_SCALAR_FUNCTIONS: dict[Any, str] = {
    getattr(operator, name): f"operator.{name}"
    for name in (
        "add sub mul floordiv truediv mod pow neg pos abs eq ne lt le gt ge and_ or_ xor not_ lshift rshift".split()
    )
}
for _name in "sym_max sym_min sym_float sym_int sym_not sym_sum sym_ite sym_sqrt".split():
    if hasattr(torch, _name):
        _SCALAR_FUNCTIONS[getattr(torch, _name)] = f"torch.{_name}"


def _value(node: Node) -> Any:
    return node.meta.get("val")


def _where(node: Node) -> str:
    """The innermost frame of the user's code that made this node, as "file.py:12"."""
    trace = node.meta.get("stack_trace") or node.stack_trace
    if not trace:
        return ""
    for line in reversed(trace.splitlines()):
        line = line.strip()
        if line.startswith('File "'):
            path, _, rest = line[6:].partition('", line ')
            return f"{path.rsplit('/', 1)[-1]}:{rest.split(',')[0]}"
    return ""


# Higher-order ops of torch's that call their bodies on plain tensors.
_CALLS_BODIES = frozenset(("cond", "while_loop", "scan", "invoke_subgraph"))


class Body:
    """A graph that a higher-order op calls, run like a graph of its own, with the options of the call around it."""

    def __init__(self, gm: torch.fx.GraphModule) -> None:
        self.gm = gm

    def __call__(self, *args: Any) -> Any:
        return _C.execute_boxed(self.gm, list(args), None)


def call_step(function: Callable[..., Any], args: Any, kwargs: Any, values: list[Any]) -> list[Any]:
    """Runs one callable step on its values and flattens what it returns."""

    def fill(item: Any) -> Any:
        return values[item.index] if isinstance(item, Slot) else item

    result = function(*pytree.tree_map(fill, args), **pytree.tree_map(fill, kwargs))
    return [] if result is None else pytree.tree_leaves(result)


class _Importer:
    """One walk over a graph."""

    def __init__(self, gm: torch.fx.GraphModule) -> None:
        self.gm = gm
        self.builder = _C.GraphBuilder(type(gm).__name__)
        self.owners: list[tuple[Any, str, Any]] = []
        self.constants: list[tuple[Any, str]] = []
        self.objects: dict[Node, Any] = {}  # get_attr nodes that are no tensors
        self.called: list[torch.nn.Module] = []
        self.baked: list[int] = []  # placeholders that tracing wrote into the graph as a number
        self._placeholders = 0
        self._traced = any("val" in node.meta for node in gm.graph.nodes)
        self._seen_owners: set[tuple[int, str]] = set()

    def run(self) -> tuple[list[Any], Any]:
        """Returns the flat outputs (already set) and the container that held them."""
        result: Any = None
        known: set[Node] = set()
        for node in self.gm.graph.nodes:
            for source in node.all_input_nodes:
                if source not in known:
                    raise ValueError(f"the graph is broken: node {node.name} ({node.target}) reads {source.name}, which does not come before it")
            known.add(node)
            if node.op == "placeholder":
                self._placeholder(node)
            elif node.op == "get_attr":
                self._get_attr(node)
            elif node.op == "call_function":
                self._call_function(node)
            elif node.op == "output":
                result = node.args[0]
            elif node.op == "call_module" and not node.users and _value(node) is None:
                module = self.gm.get_submodule(str(node.target))
                self.called.extend(module.modules())
                self._callable(node, INPUT_GUARDS if _checks_inputs(module) else str(node.target), module, [])  # guards and assertions
            else:
                raise NeedsLowering(f"{node.op} {node.target}")
        plain = _plain(result)
        leaves, spec = pytree.tree_flatten(plain)
        if any(isinstance(leaf, Node) and leaf in self.objects for leaf in leaves):
            raise RunsOriginal("the graph returns a constant that is no tensor")
        self.builder.set_outputs([leaf for leaf in leaves if isinstance(leaf, Node)])
        return leaves, spec

    def _placeholder(self, node: Node) -> None:
        if str(node.target).startswith("*"):
            raise RunsOriginal(f"the graph takes {node.target}")
        value = _value(node)
        if value is None and "val" in node.meta:
            value = 0  # a placeholder that was None or a number when traced
        if self._traced and "val" not in node.meta and not node.users:
            self.baked.append(self._placeholders)
        self._placeholders += 1
        self.builder.add_placeholder(node, node.name, value)

    def _get_attr(self, node: Node) -> None:
        path = str(node.target)
        *parents, leaf = path.split(".")
        module: Any = self.gm
        for name in parents:
            children = module.__dict__.get("_modules", {})
            if name not in children:
                raise LacksConstant(f"the constant {path} has an owner that is no submodule")
            if (id(children), name) not in self._seen_owners:
                self._seen_owners.add((id(children), name))
                self.owners.append((children, name, children[name]))
            module = children[name]
        for kind in ("_parameters", "_buffers", None):
            store = module.__dict__ if kind is None else module.__dict__.get(kind, {})
            if leaf in store:
                value = store[leaf]
                owner = None if kind is None and module is self.gm else store
                if not isinstance(value, torch.Tensor):
                    self.objects[node] = value
                    self.owners.append((owner, leaf, value))
                elif self.builder.add_constant(node, path, value):
                    self.constants.append((owner, leaf))
                return
        children = module.__dict__.get("_modules", {})
        if leaf in children:
            self.objects[node] = children[leaf]
            self.owners.append((children, leaf, children[leaf]))
            self.called.extend(children[leaf].modules())
            return
        raise LacksConstant(f"the constant {path} is no parameter, buffer or attribute")

    def _call_function(self, node: Node) -> None:
        target = node.target
        if isinstance(target, torch._ops.OpOverload):
            if not self._reads_objects(node) and self.builder.add_op(
                node, node.name, target, node.args, node.kwargs, _value(node), _where(node)
            ):
                return
            self._callable(node, str(target), target, self._results(node))
        elif target is operator.getitem:
            self._getitem(node)
        elif isinstance(_value(node), (torch.SymInt, torch.SymFloat, torch.SymBool, int, float, bool)) and target in _SCALAR_FUNCTIONS:
            self.builder.add_scalar(node, node.name, _SCALAR_FUNCTIONS[target], node.args, _where(node))
        elif calls.is_named_tuple(target):
            members = list(node.args[0]) if len(node.args) == 1 and isinstance(node.args[0], (list, tuple)) else list(node.args)
            if not all(isinstance(member, Node) for member in members):
                raise RunsOriginal(f"{node.name} builds a named tuple of constants")
            self.builder.add_tuple(node, members)
        elif isinstance(target, torch._ops.HigherOrderOperator) and "val" in node.meta:
            self._callable(node, target.name(), target, self._results(node), runs_bodies=target.name() in _CALLS_BODIES)
        else:
            raise NeedsLowering(f"call_function {getattr(target, '__name__', target)}")

    def _getitem(self, node: Node) -> None:
        source, index = node.args
        if isinstance(source, Node) and isinstance(index, int) and source not in self.objects:
            if self.builder.add_getitem(node, source, index):
                return
        if isinstance(_value(node), torch.Tensor) and isinstance(source, Node) and isinstance(_value(source), torch.Tensor):
            raise NeedsLowering("getitem on a tensor")
        self._callable(node, "operator.getitem", operator.getitem, self._results(node))

    def _reads_objects(self, node: Node) -> bool:
        return bool(self.objects) and any(source in self.objects for source in node.all_input_nodes)

    def _results(self, node: Node) -> list[Any]:
        if "val" not in node.meta:
            raise NeedsLowering(f"{node.target} without a traced value")
        return pytree.tree_leaves(node.meta["val"])

    def _callable(self, node: Node, name: str, function: Any, results: Sequence[Any], runs_bodies: bool = False) -> None:
        value = _value(node)
        if isinstance(value, (tuple, list)) and any(isinstance(member, (tuple, list, dict)) for member in value):
            raise RunsOriginal(f"{name} returns a nested structure")
        inputs: list[Node] = []

        def stored(source: Node) -> Any:
            if source in self.objects:
                found = self.objects[source]
                return Body(found) if runs_bodies and isinstance(found, torch.fx.GraphModule) else found
            if source not in inputs:
                inputs.append(source)
            return Slot(inputs.index(source))

        args = _plain(torch.fx.node.map_arg(node.args, stored))
        kwargs = _plain(torch.fx.node.map_arg(node.kwargs, stored))

        def step(values: list[Any]) -> list[Any]:
            return call_step(function, args, kwargs, values)

        self.builder.add_callable(
            node, node.name, name, step, inputs, len(results), isinstance(value, (tuple, list)), list(results), _where(node)
        )


def _checks_inputs(module: Any) -> bool:
    """Is a module the check that torch.export puts before a program: of sizes, dtypes and numbers of its inputs?"""
    return type(module).__module__ == "torch.export._unlift" and type(module).__name__ == "GuardsFn"


def _plain(structure: Any) -> Any:
    """FX's immutable containers as the plain ones that generated code returns."""
    if isinstance(structure, dict):
        return {key: _plain(value) for key, value in structure.items()}
    if isinstance(structure, list):
        return [_plain(value) for value in structure]
    if isinstance(structure, tuple) and not hasattr(structure, "_fields") and not isinstance(structure, torch.Size):
        return tuple(_plain(value) for value in structure)
    return structure


def _is_flat_input(info: Any) -> bool:
    if info is None:
        return True
    spec = info.in_spec
    if spec.type is tuple and spec.num_children == 2 and spec.child(1).type is dict:  # (args, kwargs)
        return spec.child(1).num_children == 0 and all(child.is_leaf() for child in spec.child(0).children())
    return spec.type is tuple and all(child.is_leaf() for child in spec.children())


def _form(spec: Any) -> str:
    if spec.is_leaf():
        return "single"
    if spec.type in (tuple, list) and all(child.is_leaf() for child in spec.children()):
        return "tuple" if spec.type is tuple else "list"
    return "tree"


def is_edited(gm: torch.fx.GraphModule) -> bool:
    """True when the graph no longer says what the compiled code does (an edit without ``recompile()``)."""
    try:
        return bool(gm.graph.python_code("self").src.strip() != gm._code.strip())
    except Exception:  # a graph that no longer generates code was edited
        return True


EDITED = "the graph was edited and not recompiled: the module still computes what it did before, call gm.recompile()"


def tell_edit(gm: torch.fx.GraphModule) -> None:
    """Says once a module that its graph has changed since the code that runs was made, where it has."""
    from fxfuser import lowering

    if is_edited(gm) and lowering.is_news(gm, EDITED):
        warnings.warn(EDITED, UserWarning, stacklevel=2)


def import_graph(gm: torch.fx.GraphModule) -> None:
    """Imports a graph as it is and gives the module its program.

    Raises:
        NeedsLowering: a target that only tracing can turn into dispatcher overloads.
        RunsOriginal: a form that neither road takes.
    """
    if is_edited(gm):
        raise RunsOriginal("the graph was edited and not recompiled: call gm.recompile()")
    importer = _Importer(gm)
    leaves, spec = importer.run()
    info = calls.tree_info(gm)
    unflatten: Any = spec.unflatten
    if info is not None:
        spec = info.out_spec
        unflatten = spec.unflatten
    placeholders = calls.placeholders(gm)
    takes_sequence = len(placeholders) == 1 and calls.takes_sequence(gm)
    fixed = [None if isinstance(leaf, Node) else (leaf,) for leaf in leaves]
    _C.attach(
        gm, importer.builder, len(placeholders), _is_flat_input(info), takes_sequence, _form(spec), unflatten, importer.owners,
        importer.constants, fixed, importer.called, importer.baked,
    )


def attach(gm: Any) -> None:
    """Gives a module a program, a lowering road, or the reason why it runs as itself."""
    if not isinstance(gm, torch.fx.GraphModule):
        raise TypeError(f"execute takes a torch.fx.GraphModule (make_fx, ep.module(), symbolic_trace), not {type(gm).__name__}")
    from fxfuser import lowering

    try:
        import_graph(gm)
    except NeedsLowering as error:
        _C.attach_slow(gm, lowering.road(str(error)))
    except LacksConstant as error:
        _C.attach_slow(gm, lowering.original(str(error), lasting=False))
    except RunsOriginal as error:
        _C.attach_slow(gm, lowering.original(str(error)))


def describe_failure(error: BaseException) -> str:
    """One line of an exception."""
    return traceback.format_exception_only(type(error), error)[-1].strip()
