"""GraphModule -> program, once a module: one pass over the nodes, the rest is in the native builder.

A graph of dispatcher overloads, ``getitem`` and arithmetic on sizes is read as it is; one with modules, methods or torch
functions is lowered first (``fxfuser.lowering``); what neither road takes runs as ``gm(*args)``, with the reason.
"""

from __future__ import annotations

import operator
import traceback
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx
from torch.fx.graph import _PyTreeCodeGen
from torch.utils import _pytree as pytree

from fxfuser import _C

Node = torch.fx.Node


class NeedsLowering(Exception):
    """The graph holds targets that are not dispatcher overloads; the text names the first."""


class RunsOriginal(Exception):
    """The module can only run as itself; the text says why."""


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


def _is_named_tuple(target: Any) -> bool:
    return isinstance(target, type) and issubclass(target, tuple)


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
                self._callable(node, str(node.target), module, [])  # guards and assertions
            else:
                raise NeedsLowering(f"{node.op} {node.target}")
        plain = _plain(result)
        leaves, spec = pytree.tree_flatten(plain)
        if any(isinstance(leaf, Node) and leaf in self.objects for leaf in leaves):
            raise RunsOriginal("the graph returns a constant that is no tensor")
        self.builder.set_outputs(leaves)
        return leaves, spec

    def _placeholder(self, node: Node) -> None:
        if str(node.target).startswith("*"):
            raise RunsOriginal(f"the graph takes {node.target}")
        value = _value(node)
        if value is None and "val" in node.meta:
            value = 0  # a placeholder that was None or a number when traced
        self.builder.add_placeholder(node, node.name, value)

    def _get_attr(self, node: Node) -> None:
        path = str(node.target)
        *parents, leaf = path.split(".")
        module: Any = self.gm
        for name in parents:
            children = module.__dict__.get("_modules", {})
            if name not in children:
                raise RunsOriginal(f"the constant {path} has an owner that is no submodule")
            if (id(children), name) not in self._seen_owners:
                self._seen_owners.add((id(children), name))
                self.owners.append((children, name, children[name]))
            module = children[name]
        for kind in ("_parameters", "_buffers", None):
            store = module.__dict__ if kind is None else module.__dict__.get(kind, {})
            if leaf in store:
                value = store[leaf]
                if not isinstance(value, torch.Tensor):
                    self.objects[node] = value
                    return
                own = kind is None and module is self.gm
                self.constants.append((None if own else store, leaf))
                self.builder.add_constant(node, path, value)
                return
        children = module.__dict__.get("_modules", {})
        if leaf in children:
            self.objects[node] = children[leaf]
            return
        raise RunsOriginal(f"the constant {path} is no parameter, buffer or attribute")

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
        elif _is_named_tuple(target):
            members = list(node.args[0]) if len(node.args) == 1 and isinstance(node.args[0], (list, tuple)) else list(node.args)
            if not all(isinstance(member, Node) for member in members):
                raise RunsOriginal(f"{node.name} builds a named tuple of constants")
            self.builder.add_tuple(node, members)
        elif isinstance(target, torch._ops.HigherOrderOperator) and "val" in node.meta:
            self._callable(node, target.name(), target, self._results(node))
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

    def _callable(self, node: Node, name: str, function: Any, results: Sequence[Any]) -> None:
        value = _value(node)
        if isinstance(value, (tuple, list)) and any(isinstance(member, (tuple, list, dict)) for member in value):
            raise RunsOriginal(f"{name} returns a nested structure")
        inputs: list[Node] = []

        def stored(source: Node) -> Any:
            if source in self.objects:
                return self.objects[source]
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


def _plain(structure: Any) -> Any:
    """FX's immutable containers as the plain ones that generated code returns."""
    if isinstance(structure, dict):
        return {key: _plain(value) for key, value in structure.items()}
    if isinstance(structure, list):
        return [_plain(value) for value in structure]
    if isinstance(structure, tuple) and not hasattr(structure, "_fields"):
        return tuple(_plain(value) for value in structure)
    return structure


def _tree_info(gm: torch.fx.GraphModule) -> Any:
    codegen = gm.graph._codegen
    return codegen.pytree_info if isinstance(codegen, _PyTreeCodeGen) else None


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


def _has_hooks(gm: torch.fx.GraphModule) -> bool:
    """Hooks of the user's. Those that ``ep.module()`` brings only check inputs, as the graph's own guards do."""
    names = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    hooks = [hook for name in names for hook in (gm.__dict__.get(name) or {}).values()]
    return any(not str(getattr(hook, "__module__", "")).startswith(("torch.export.", "torch._export.")) for hook in hooks)


def _is_edited(gm: torch.fx.GraphModule) -> bool:
    """True when the graph no longer says what the compiled code does (an edit without ``recompile()``)."""
    try:
        return bool(gm.graph.python_code("self").src.strip() != gm._code.strip())
    except Exception:  # a graph that no longer generates code was edited
        return True


def import_graph(gm: torch.fx.GraphModule) -> None:
    """Imports a graph as it is and gives the module its program.

    Raises:
        NeedsLowering: a target that only tracing can turn into dispatcher overloads.
        RunsOriginal: a form that neither road takes.
    """
    if _has_hooks(gm):
        raise RunsOriginal("the module has hooks")
    if _is_edited(gm):
        raise RunsOriginal("the graph was edited and not recompiled: call gm.recompile()")
    importer = _Importer(gm)
    _, spec = importer.run()
    info = _tree_info(gm)
    unflatten: Any = spec.unflatten
    if info is not None:
        spec = info.out_spec
        unflatten = spec.unflatten
    placeholders = sum(1 for node in gm.graph.nodes if node.op == "placeholder")
    _C.attach(
        gm, importer.builder, placeholders, _is_flat_input(info), _form(spec), unflatten, importer.owners, importer.constants
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
    except RunsOriginal as error:
        _C.attach_slow(gm, lowering.original(str(error)))


def flatten_inputs(gm: torch.fx.GraphModule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], tuple[Any, ...]] | None:
    """The placeholders' values for a call, and the positional arguments that ``gm`` itself would take.

    Returns None when the arguments fit the module in neither reading, ``execute(gm, *args)`` or ``execute(gm, args)``.
    """
    readings = [args]
    if len(args) == 1 and not kwargs and isinstance(args[0], (tuple, list)):
        readings.append(tuple(args[0]))
    for reading in readings:
        leaves = _flatten_one(gm, reading, kwargs)
        if leaves is not None:
            return leaves, reading
    return None


def _flatten_one(gm: torch.fx.GraphModule, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any] | None:
    info = _tree_info(gm)
    if info is not None:
        spec = info.in_spec
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
    leaves = list(args)
    placeholders = [node for node in gm.graph.nodes if node.op == "placeholder"]
    if len(leaves) > len(placeholders):
        return None
    rest = dict(kwargs)
    for node in placeholders[len(leaves) :]:
        if str(node.target) in rest:
            leaves.append(rest.pop(str(node.target)))
        elif node.args:
            leaves.append(node.args[0])
        else:
            return None
    return None if rest else leaves


_aten_copies: weakref.WeakKeyDictionary[torch.fx.GraphModule, torch.fx.GraphModule] = weakref.WeakKeyDictionary()


def run_aten(gm: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``executor="aten"``: the module itself, with nodes that build a named tuple made plain (they don't run as traced)."""
    if not isinstance(gm, torch.fx.GraphModule):
        raise TypeError(f"execute takes a torch.fx.GraphModule, not {type(gm).__name__}")
    if any(node.op == "call_function" and _is_named_tuple(node.target) for node in gm.graph.nodes):
        gm = _without_named_tuples(gm)
    flat = flatten_inputs(gm, args, kwargs)
    return gm(*(args if flat is None else flat[1]), **kwargs)


def _without_named_tuples(gm: torch.fx.GraphModule) -> torch.fx.GraphModule:
    copy = _aten_copies.get(gm)
    if copy is None:
        graph = torch.fx.Graph()
        mapping: dict[Node, Any] = {}
        for node in gm.graph.nodes:
            if node.op == "call_function" and _is_named_tuple(node.target):
                mapping[node] = torch.fx.node.map_arg(tuple(node.args[0]) if len(node.args) == 1 else node.args, mapping.__getitem__)
            elif node.op == "output":
                graph.output(torch.fx.node.map_arg(node.args[0], mapping.__getitem__))
            else:
                mapping[node] = graph.node_copy(node, mapping.__getitem__)
        graph._codegen = gm.graph._codegen
        copy = torch.fx.GraphModule(gm, graph)
        _aten_copies[gm] = copy
    return copy


def describe_failure(error: BaseException) -> str:
    """One line of an exception."""
    return traceback.format_exception_only(type(error), error)[-1].strip()
