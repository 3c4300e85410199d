"""What a forward graph saves for its backward graph: the cheapest cut in bytes through the values that kernels can't recompute for free."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.fx
from torch._functorch import config
from torch._functorch.compile_utils import fx_graph_cse, raise_getitems
from torch._functorch.partitioners import (
    NodeInfo,
    _extract_fwd_bwd_modules,
    _size_of,
    classify_nodes,
    force_save_bw_mutation_src,
    force_save_collectives,
    force_save_effectful_ops,
    has_recomputable_ops,
    min_cut_rematerialization_partition,
    reordering_to_mimic_autograd_engine,
)
from torch.fx.experimental.proxy_tensor import is_sym_node
from torch.utils.checkpoint import CheckpointPolicy

from fxfuser import _C

Modules = tuple[torch.fx.GraphModule, torch.fx.GraphModule]

# Kinds of rows, and composite rows that open into pointwise rows alone: a kernel that reads their inputs has them for nothing.
FREE_KINDS = frozenset(("pointwise", "view", "cast", "factory"))
FREE_COMPOSITES = frozenset(
    """
    clamp clone contiguous div_mode full_like gelu gelu_backward masked_fill nan_to_num new_full new_ones new_zeros ones ones_like pow
    pow_of_number random_bits scalar_tensor to_copy to_dtype tril triu where zeros zeros_like
    """.split()
)
UNBOUNDED = 1 << 60
NOT_A_SIZE = 1_000_000  # for numbers that depend on data: saved when nothing else is possible


class Rows:
    """What the table says of a node's target, at the time of the trace."""

    def __init__(self) -> None:
        self.known: set[str] = set()
        self.free: set[str] = set()
        for row in json.loads(_C.ops_json()):
            self.known.update(row["targets"])
            if row["kind"] in FREE_KINDS or row.get("metadata_only") or row["op"] in FREE_COMPOSITES:
                self.free.update(row["targets"])

    def is_free(self, node: torch.fx.Node) -> bool:
        return node.target is operator.getitem or is_sym_node(node) or is_view(node) or str(node.target) in self.free

    def is_fused(self, node: torch.fx.Node) -> bool:
        return node.target is operator.getitem or str(node.target) in self.known


def is_view(node: torch.fx.Node) -> bool:
    """An op whose result is a view of an argument."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return False
    aliases = [result.alias_info for result in node.target._schema.returns]
    return bool(aliases) and all(alias is not None and not alias.is_write for alias in aliases)


def is_materialized_backward(node: torch.fx.Node, info: NodeInfo, rows: Rows) -> bool:
    """Whether the backward graph hands it, or a view of it, to something other than a kernel: then it is written to memory."""
    work, seen = [node], {node}
    while work:
        for user in work.pop().users:
            if not info.is_required_fw(user) and user.op == "call_function" and not rows.is_fused(user) and not is_view(user) and not is_sym_node(user):
                return True
            if is_view(user) and user not in seen:
                seen.add(user)
                work.append(user)
    return False


def weight(node: torch.fx.Node, info: NodeInfo) -> int:
    """Bytes that saving it costs; UNBOUNDED for what can't be saved."""
    value = node.meta.get("val")
    if is_sym_node(node):
        return 1 if isinstance(value, torch.SymInt) else NOT_A_SIZE
    if not isinstance(value, torch.Tensor):
        return UNBOUNDED
    if config.treat_parameters_as_free_to_save and node in info.static_lifetime_input_nodes:
        return 0
    size = int(_size_of(node))
    if is_view(node):  # a view keeps all of what it is a view of
        bases = [weight(base, info) for base in node.all_input_nodes[:1] if isinstance(base.meta.get("val"), torch.Tensor)]
        return max([size, *bases]) + 1
    return size


def saved_values(graph: torch.fx.Graph, info: NodeInfo) -> list[torch.fx.Node]:
    """The values on the cheapest cut, in the order of the graph."""
    rows = Rows()
    nodes = [node for node in graph.nodes if node.op != "output"]
    index = {node: 2 * at for at, node in enumerate(nodes)}  # where a node's value is made; one on, where it is had
    source, sink = 2 * len(nodes), 2 * len(nodes) + 1
    edges: list[tuple[int, int, int]] = []
    for node in nodes:
        entry = index[node]
        if node in info.required_bw_nodes:
            if node in info.tangents_closure:
                edges.append((entry, sink, UNBOUNDED))
                continue
            edges.append((entry + 1, sink, UNBOUNDED))
        if info.is_required_fw(node) and stays(node, info, rows):
            edges.append((source, entry, UNBOUNDED))
        edges.append((entry, entry + 1, weight(node, info)))
        edges.extend((entry + 1, index[user], UNBOUNDED) for user in node.users if user.op != "output")
    beyond = _C.min_cut(2 * len(nodes) + 2, edges, source, sink)
    return [node for node in nodes if not beyond[index[node]] and beyond[index[node] + 1]]


def stays(node: torch.fx.Node, info: NodeInfo, rows: Rows) -> bool:
    """Whether a node of the forward graph is not to be computed again."""
    if node.op != "call_function":
        return node.op == "placeholder"
    if node.meta.get("recompute") == CheckpointPolicy.MUST_SAVE:
        return True
    if not rows.is_free(node):
        return True
    return node.target is not operator.getitem and not is_view(node) and not is_sym_node(node) and is_materialized_backward(node, info, rows)


def has_a_policy(module: torch.fx.GraphModule) -> bool:
    """What was asked for about single nodes or a budget is torch's to settle."""
    return has_recomputable_ops(module) or config.activation_memory_budget != 1.0 or any("memory_budget" in node.meta for node in module.graph.nodes)


def partition(
    joint_module: torch.fx.GraphModule,
    joint_inputs: Sequence[Any],
    *,
    num_fwd_outputs: int,
    static_lifetime_input_indices: list[int] | None = None,
    **more: Any,
) -> Modules:
    """A ``partition_fn`` of AOTAutograd: the forward and the backward graph of a joint graph.

    Checkpointed regions and memory budgets go to torch's own partition function.
    """
    static = static_lifetime_input_indices or []

    def by_torch() -> Modules:
        made: Modules = min_cut_rematerialization_partition(joint_module, joint_inputs, num_fwd_outputs=num_fwd_outputs, static_lifetime_input_indices=static, **more)
        return made

    if has_a_policy(joint_module) or config.enable_activation_offloading or config._sync_decision_cross_ranks:
        return by_torch()
    joint_module.graph.eliminate_dead_code()
    joint_module.recompile()
    joint_module.graph = fx_graph_cse(joint_module.graph)
    force_save_collectives(joint_module)
    force_save_effectful_ops(joint_module)
    force_save_bw_mutation_src(joint_module)
    info = classify_nodes(joint_module, static, num_fwd_outputs)
    if not info.required_bw_nodes:
        return by_torch()
    saved = saved_values(joint_module.graph, info)
    forward, backward = _extract_fwd_bwd_modules(
        joint_module,
        [node for node in saved if not is_sym_node(node)],
        [node for node in saved if is_sym_node(node)],
        num_fwd_outputs=num_fwd_outputs,
        static_lifetime_input_nodes=info.static_lifetime_input_nodes,
    )
    return raise_getitems(forward), raise_getitems(reordering_to_mimic_autograd_engine(backward))


PARTITIONS: dict[str, Callable[..., Modules]] = {"bytes": partition, "torch": min_cut_rematerialization_partition}
