"""A cast looks at both of its dtypes: every pair of dtypes runs, in a kernel or through ATen, and gives eager's values. Checks of
rows, those of the table and those that a user registers, see the whole node."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator

import fxfuser
import pytest
import torch
from fxfuser import TorchRefsNvfuserCapabilityMode, execute, explain, register_check, register_op
from torch.fx.experimental.proxy_tensor import make_fx

Launches = Callable[[], int]
FUSED = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.float8_e4m3fn, torch.float8_e5m2)
OTHER = (torch.complex64, torch.complex128, torch.uint16, torch.uint32)
VALUES = torch.tensor([0.0, 1.0, 2.5, 3.49, 17.75, 100.0, 120.5, 0.1])


def source(dtype: torch.dtype) -> torch.Tensor:
    return VALUES.to(dtype)


def same(ours: torch.Tensor, eager: torch.Tensor) -> bool:
    """To the last bit, for dtypes without equal as well."""
    return ours.dtype == eager.dtype and ours.stride() == eager.stride() and torch.equal(ours.contiguous().view(torch.uint8), eager.contiguous().view(torch.uint8))


@pytest.mark.parametrize("start", [*FUSED, *OTHER], ids=str)
def test_every_pair_of_dtypes(start: torch.dtype) -> None:
    """One graph casts to all dtypes; a pair of two that kernels take is fused, others say why they are not."""
    x, ends = source(start), [end for end in (*FUSED, *OTHER) if end != start]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # complex to real
        gm = make_fx(lambda x: tuple(torch.ops.aten._to_copy.default(x, dtype=end) for end in ends))(x)
        before = fxfuser.stats()
        ours, eager = execute(gm, x, executor_parameters={"on_error": "raise"}), gm(x)
    after = fxfuser.stats()
    for end, a, b in zip(ends, ours, eager, strict=True):
        assert same(a, b), f"{start} to {end}: {a} {b}"
    verdicts = {end: node for end, node in zip(ends, explain(gm, x).nodes(), strict=True)}
    for end, node in verdicts.items():
        assert (node["status"] == "fused") == (start in FUSED and end in FUSED), (end, node)
        assert node["status"] == "fused" or node["reason"], (end, node)
    fused = sum(node["status"] == "fused" for node in verdicts.values())
    assert after["aten_steps"] - before["aten_steps"] == len(ends) - fused
    assert (after["launches"]["host"] - before["launches"]["host"] > 0) == (fused > 0)


@pytest.mark.parametrize(("end", "lowered"), [(torch.float16, True), (torch.float64, True), (torch.int64, True), (torch.uint8, False), (torch.int16, False)], ids=str)
def test_the_capability_mode_decides_by_both_dtypes(end: torch.dtype, lowered: bool, launches: Launches) -> None:
    """As in 2022 a cast to a dtype that nvprims have not stays an ATen call, and runs fused all the same."""
    x = torch.rand(8) * 100
    with TorchRefsNvfuserCapabilityMode():
        gm = make_fx(lambda x: x.to(end))(x)
    targets = [str(node.target) for node in gm.graph.nodes if node.op == "call_function"]
    assert targets == ["nvprims.convert_element_type.default" if lowered else "aten._to_copy.default"]
    assert same(execute(gm, x, executor="strictly_nvfuser"), x.to(end))
    assert launches() == 1


WHOLE_NODE = {
    "another device": (lambda x: torch.ops.aten._to_copy.default(x, device=torch.device("meta")), "device"),
    "another memory format": (lambda x: torch.ops.aten._to_copy.default(x, dtype=torch.float64, memory_format=torch.channels_last), "memory_format"),
}


@pytest.mark.parametrize("name", WHOLE_NODE)
def test_a_cast_with_more_than_a_dtype_says_why_it_stays(name: str, launches: Launches) -> None:
    fn, reason = WHOLE_NODE[name]
    x = torch.rand(2, 3, 4, 4)
    gm = make_fx(fn)(x)
    with pytest.warns(fxfuser.FallbackWarning, match="nothing is fused"):
        ours = execute(gm, x)
    assert ours.stride() == gm(x).stride() and ours.device == gm(x).device
    (node,) = explain(gm, x).nodes()
    assert node["status"] == "aten" and reason in node["reason"], node
    assert launches() == 0


@pytest.fixture(scope="module")
def library() -> Iterator[torch.library.Library]:
    """Ops of a user: each doubles its argument."""
    library = torch.library.Library("row_checks", "FRAGMENT")
    for name in ("asked", "refused", "raising", "late"):
        library.define(f"{name}(Tensor self, float scale=1.0) -> Tensor")
        library.impl(name, lambda self, scale=1.0: self * 2, "CompositeExplicitAutograd")
        library.impl(name, lambda self, scale=1.0: torch.empty_like(self), "Meta")
    yield library


def row(name: str, check: str) -> dict[str, str | dict[str, str]]:
    return {"op": f"row_checks_{name}", "targets": {f"row_checks.{name}.default": "self _"}, "kind": "pointwise", "dtypes": "float", "result": "default", "expr": "{self}*2", "check": check}


def test_a_registered_check_sees_the_node(library: torch.library.Library, launches: Launches) -> None:
    seen: list[tuple[str, str, list[str | None]]] = []

    def only_vectors(name: str, target: str, inputs: list[str | None]) -> bool | str:
        seen.append((name, target, inputs))
        return True if inputs[0] is not None and inputs[0].count(",") == 0 else "only vectors are taken"

    register_check("only_vectors", only_vectors)
    register_op(row("asked", "only_vectors"))
    gm = make_fx(lambda x: torch.ops.row_checks.asked(x) + 1)(torch.rand(6))
    x = torch.rand(6)
    torch.testing.assert_close(execute(gm, x, executor="strictly_nvfuser"), x * 2 + 1)
    assert launches() == 1
    assert seen[0] == ("asked", "row_checks.asked.default", ["float32[6]@cpu"])
    matrix = torch.rand(2, 3)
    torch.testing.assert_close(execute(gm, matrix), matrix * 2 + 1)
    assert launches() == 2, "the sum alone"
    assert "only vectors are taken" in next(node["reason"] for node in explain(gm, matrix).nodes() if node["name"] == "asked")
    with pytest.raises(ValueError, match=r"asked \(row_checks.asked.default\): .*only vectors are taken"):
        execute(gm, matrix, executor="strictly_nvfuser")


def test_a_row_may_not_name_a_check_that_is_not_there(library: torch.library.Library, launches: Launches) -> None:
    with pytest.raises(ValueError, match='row "row_checks_late": unknown check "comes_later"; there are .*cast_pair'):
        register_op(row("late", "comes_later"))
    x = torch.rand(6)
    gm = make_fx(lambda x: torch.ops.row_checks.late(x))(x)
    with pytest.warns(fxfuser.FallbackWarning):
        torch.testing.assert_close(execute(gm, x), x * 2)
    assert launches() == 0, "the refused row left nothing"
    register_check("comes_later", lambda name, target, inputs: None)
    register_op(row("late", "comes_later"))
    torch.testing.assert_close(execute(gm, x, executor="strictly_nvfuser"), x * 2)
    assert launches() == 1


def test_an_error_in_a_check_is_the_callers(library: torch.library.Library) -> None:
    def broken(name: str, target: str, inputs: list[str | None]) -> bool:
        raise ZeroDivisionError("in the check")

    register_check("broken", broken)
    register_op(row("raising", "broken"))
    x = torch.rand(6)
    gm = make_fx(lambda x: torch.ops.row_checks.raising(x))(x)
    with pytest.raises(ZeroDivisionError, match="in the check"):
        execute(gm, x)


def test_pairs_with_a_chain_round_once_a_cast(launches: Launches) -> None:
    """float32 -> a -> b inside one kernel is a then b, bit by bit."""
    x = torch.rand(64) * 200 - 50
    pairs = list(itertools.product((torch.int32, torch.float16, torch.bfloat16, torch.bool, torch.float64), repeat=2))
    gm = make_fx(lambda x: tuple((x * 1).to(a).to(b) for a, b in pairs))(x)
    for pair, ours, eager in zip(pairs, execute(gm, x, executor="strictly_nvfuser"), gm(x), strict=True):
        assert same(ours, eager), pair
    assert launches() >= 1
