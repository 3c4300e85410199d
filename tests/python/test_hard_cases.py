"""Cases that once went wrong, each for its whole kind: keys of plans, threads, writes that overlap, lowered modules, edges."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable
from typing import Any

import fxfuser
import pytest
import torch
import torch.autograd.forward_ad as fw
from fxfuser import execute
from numerics import check_close
from torch.fx.experimental.proxy_tensor import make_fx

RAISE = {"on_error": "raise"}
NUMBERS = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)


def in_threads(count: int, work: Callable[[int], None]) -> None:
    problems: list[BaseException] = []

    def guarded(index: int) -> None:
        try:
            work(index)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=guarded, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems, problems[0]


def test_a_plan_serves_one_dtype_only() -> None:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(torch.ops.aten.add.Tensor, (x, x)))
    gm = torch.fx.GraphModule(torch.nn.Module(), graph)
    for _ in range(2):
        for dtype in NUMBERS:
            value = torch.ones(3, 3, dtype=dtype)
            check_close(execute(gm, value), gm(value), str(dtype))


def test_threads_with_different_options() -> None:
    x = torch.randn(50, 50)
    gm = make_fx(lambda x: (x * 2 + 1).relu().sin())(x)
    expected = gm(x)

    def work(index: int) -> None:
        parameters: dict[str, Any] = {"skip_ops": ["aten.relu.default"]} if index % 2 else {"allow_single_op_fusion": index % 4 == 0}
        for _ in range(300):
            torch.testing.assert_close(execute(gm, x, executor_parameters=parameters), expected)

    in_threads(8, work)


def test_caches_cleared_while_calls_run() -> None:
    x = torch.randn(50, 50)
    gm = make_fx(lambda x: (x * 2 + 1).relu().sin())(x)
    expected = gm(x)

    def work(index: int) -> None:
        for step in range(100):
            torch.testing.assert_close(execute(gm, x), expected)
            if index == 0 and step % 10 == 0:
                fxfuser.clear_caches()

    in_threads(6, work)


def test_first_calls_of_a_lowered_module_from_threads() -> None:
    x = torch.randn(20, 20)
    for _ in range(3):
        gm = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh()))
        barrier = threading.Barrier(4)

        def work(_: int, gm: torch.fx.GraphModule = gm, barrier: threading.Barrier = barrier) -> None:
            barrier.wait()
            torch.testing.assert_close(execute(gm, x), gm(x))

        in_threads(4, work)


@pytest.mark.parametrize("fn", [lambda x: x.flip(0), lambda x: x.sum(0), lambda x: x.softmax(0), lambda x: x.amax(-1), lambda x: x.flip(-1) * 2])
def test_dims_of_a_tensor_without_dims(fn: Callable[[torch.Tensor], torch.Tensor]) -> None:
    x = torch.randn(())
    gm = make_fx(fn)(x)
    check_close(execute(gm, x), gm(x), "0-dim")


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool], ids=str)
def test_casts_inside_a_fusion_wrap(dtype: torch.dtype) -> None:
    for source in (torch.float32, torch.bfloat16, torch.float64):
        x = torch.tensor([-2.0, -100.0, -200.0, 300.0, 0.5, -0.5, 127.6, 40.0]).to(source)
        gm = make_fx(lambda x: (x.to(dtype).float() + 0.5, (x * 2).clamp(-300, 300).to(dtype)))(x)
        check_close(execute(gm, x, executor_parameters=RAISE), gm(x), f"{source} to {dtype}")


@pytest.mark.parametrize("value", [False, True])
def test_largest_and_smallest_of_booleans(value: bool) -> None:
    x = torch.full((4, 3), value)
    x[1, 1] = not value
    gm = make_fx(lambda x: (x.amax(0), x.amin(0), x.max(), x.min(), x[:, 0].max(), x.amax((0, 1))))(x)
    check_close(execute(gm, x, executor_parameters=RAISE), gm(x), "bool")


@pytest.mark.parametrize("op", ["any", "all", "sum", "amax", "mean"])
@pytest.mark.parametrize("keepdim", [False, True])
def test_an_empty_list_of_dims(op: str, keepdim: bool, launches: Callable[[], int]) -> None:
    call = getattr(torch.ops.aten, op)
    reduce = {"any": "dims", "all": "dims", "sum": "dim_IntList", "mean": "dim"}.get(op, "default")
    for shape in ((), (3,), (2, 3)):
        x = torch.randn(shape)
        gm = make_fx(lambda x: (getattr(call, reduce)(x, [], keepdim), x * 2))(x)
        check_close(execute(gm, x, executor_parameters=RAISE), gm(x), f"{op} of {shape}")
    assert launches() > 0


def overlapping() -> list[tuple[torch.Tensor, torch.Tensor]]:
    same, base, square = torch.ones(4, 4), torch.randn(5, 4), torch.randn(4, 4)
    return [(same, same), (base[1:], base[:-1]), (square, square.t()), (square, square[0])]


@pytest.mark.parametrize("fn", [lambda x, y: (x.add_(1), x * y)[1], lambda x, y: (x.mul_(2), y.add_(1))[1], lambda x, y: (x.sub_(y.sum(0)), y * 1)[1]])
def test_writes_to_inputs_that_overlap(fn: Callable[..., torch.Tensor]) -> None:
    gm = make_fx(fn)(torch.ones(4, 4), torch.ones(4, 4))
    for index in range(4):
        ours, eager = overlapping()[index], None
        first = ours[0]._base if ours[0]._base is not None else ours[0]
        kept = first.clone()
        try:
            eager = gm(*ours)
            wanted = first.clone()
        except RuntimeError as error:
            first.copy_(kept)
            with pytest.raises(RuntimeError, match=str(error)[:30].replace("(", ".")):
                execute(gm, *ours)
            continue
        first.copy_(kept)
        result = execute(gm, *ours)
        assert torch.equal(first, wanted) and torch.equal(result, eager if eager is not ours[0] else result), index


def test_in_place_keeps_the_written_dtype() -> None:
    for a, b in ((torch.tensor(1.0, dtype=torch.bfloat16), torch.tensor(2.0)), (torch.tensor(3, dtype=torch.int32), torch.tensor(2))):
        gm = make_fx(lambda a, b: a.clone().mul_(b))(a, b)
        check_close(execute(gm, a, b), gm(a, b), "0-dim in place")


def test_metadata_only_in_place_ops_on_inputs() -> None:
    gm = make_fx(lambda x: x.unsqueeze_(0) * 2)(torch.randn(3))
    ours, eager = torch.randn(3), torch.randn(3)
    eager.copy_(ours)
    check_close(execute(gm, ours), gm(eager), "unsqueeze_")
    assert ours.shape == eager.shape


def test_writes_to_an_input_whose_sizes_change_too() -> None:
    def transposed(x: torch.Tensor) -> torch.Tensor:
        x.clamp_(0)
        x.transpose_(0, 1)
        return x * 2

    def squeezed(x: torch.Tensor) -> torch.Tensor:
        y = x.unsqueeze_(0).mul_(2)
        x.squeeze_(0)
        return y + x.add_(1)

    for function in (transposed, squeezed):
        gm = make_fx(function)(torch.randn(4, 6))
        for _ in range(3):
            ours = torch.randn(4, 6)
            eager = ours.clone()
            before = fxfuser.stats()["launches"]["host"]
            check_close(execute(gm, ours, executor_parameters=RAISE), gm(eager), function.__name__)
            check_close(ours, eager, "the input")
            assert fxfuser.stats()["launches"]["host"] > before


def test_named_dims_are_the_modules() -> None:
    gm = torch.fx.symbolic_trace(lambda x: torch.tanh(x) * 2)
    x = torch.randn(4, 6, names=("rows", "columns"))
    assert execute(gm, x).names == gm(x).names == ("rows", "columns")


INTEGERS = {
    "add": [(5, 3), (-5, 3), (2**63 - 1, 1)],
    "sub": [(5, 3), (3, 5), (-(2**63), 1)],
    "mul": [(5, 3), (-5, 3), (2**62, 4)],
    "pow": [(3, 4), (-3, 3), (1, 70), (-1, 70), (3, 0), (3, 70)],
    "floordiv": [(8, 3), (-8, 3), (8, -1), (-8, -3)],
    "mod": [(8, 3), (-8, 3), (8, -1), (8, -3)],
    "lshift": [(3, 5), (-3, 5), (0, 70), (3, 70)],
    "rshift": [(9, 2), (-9, 2), (9, 70), (-9, 70)],
}


@pytest.mark.parametrize("op", INTEGERS)
def test_arithmetic_of_integers(op: str) -> None:
    """Exact, or an error where 64 bits don't do."""
    for given, other in INTEGERS[op]:
        graph = torch.fx.Graph()
        x, n = graph.placeholder("x"), graph.placeholder("n")
        number = graph.call_function(getattr(operator, op), (n, other))
        graph.output((graph.call_function(torch.ops.aten.mul.Tensor, (x, 2.0)), number))
        gm = torch.fx.GraphModule(torch.nn.Module(), graph)
        wanted = getattr(operator, op)(given, other)
        if -(2**63) <= wanted < 2**63:
            assert execute(gm, torch.ones(3), given)[1] == wanted, (op, given, other)
        else:
            with pytest.raises(RuntimeError, match="more than 64 bits"):
                execute(gm, torch.ones(3), given)


def test_equal_results_are_two_tensors() -> None:
    gm = make_fx(lambda x: (x.neg(), x.neg(), x.neg() + 0))(torch.ones(3))
    first, second, _ = execute(gm, torch.ones(3))
    first.zero_()
    assert second.tolist() == [-1.0] * 3


def test_tangents_are_kept() -> None:
    x = torch.randn(3)
    gm = make_fx(lambda x: x * 2 + 1)(x)
    execute(gm, x)
    with fw.dual_level(), torch.no_grad():
        dual = fw.make_dual(x, torch.ones(3))
        assert fw.unpack_dual(execute(gm, dual)).tangent.tolist() == [2.0] * 3


def test_hooks_and_a_forward_of_the_instance_are_seen() -> None:
    x = torch.randn(3)
    gm = make_fx(lambda x: x * 2 + 1)(x)
    execute(gm, x)
    handle = gm.register_forward_hook(lambda module, inputs, output: output + 100)
    check_close(execute(gm, x), gm(x), "hook")
    handle.remove()
    check_close(execute(gm, x), gm(x), "hook removed")
    gm.forward = lambda x: x - 1
    check_close(execute(gm, x), x - 1, "own forward")


def test_numbers_beyond_int64() -> None:
    gm = make_fx(lambda x, s: x * 2)(torch.ones(2), 2)
    check_close(execute(gm, torch.ones(2), 2**70), torch.ones(2) * 2, "large int")


def test_parameters_that_change_or_compare_oddly() -> None:
    x = torch.randn(4, 4)
    gm = make_fx(lambda x: x.relu() + 1)(x)
    execute(gm, x, executor_parameters={"allow_single_op_fusion": True})
    with pytest.raises(TypeError):
        execute(gm, x, executor_parameters={"allow_single_op_fusion": 1})
    skipped = ["aten.relu.default"]
    parameters = {"skip_ops": skipped}
    execute(gm, x, executor_parameters=parameters)
    skipped.clear()
    before = fxfuser.stats()["aten_steps"]
    execute(gm, x, executor_parameters=parameters)
    assert fxfuser.stats()["aten_steps"] == before, "relu is no longer skipped"


def test_lowered_modules_see_what_changes() -> None:
    with torch.no_grad():
        x, y = torch.randn(4, 4), torch.randn(4, 4)
        gm = torch.fx.symbolic_trace(lambda a, b: a + b * 2)
        check_close(execute(gm, x, x), gm(x, x), "one tensor twice")
        check_close(execute(gm, x, y), gm(x, y), "two tensors")
        gm = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.LeakyReLU(0.1)))
        check_close(execute(gm, x), gm(x), "slope 0.1")
        gm.get_submodule("1").negative_slope = 5.0
        check_close(execute(gm, x), gm(x), "slope 5")
        with torch.autocast("cpu", dtype=torch.bfloat16):
            check_close(execute(gm, x), gm(x), "autocast")
        check_close(execute(gm, x), gm(x), "after autocast")
        gm = torch.fx.symbolic_trace(lambda a, s: a * s)
        ones = torch.ones(3)
        execute(gm, ones, 0.0)
        assert torch.signbit(execute(gm, ones, -0.0)).all()


def test_other_default_dtype() -> None:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(torch.ops.aten.mul.Tensor, (x, 2.5)))
    gm = torch.fx.GraphModule(torch.nn.Module(), graph)
    value = torch.ones(3, dtype=torch.int32)
    execute(gm, value), execute(gm, value)
    torch.set_default_dtype(torch.float64)
    try:
        check_close(execute(gm, value), gm(value), "default float64")
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_signed_zeros(dtype: torch.dtype) -> None:
    x = torch.tensor([-0.0, 0.0] * 20, dtype=dtype)
    gm = make_fx(lambda x: (torch.relu(x), x.clamp_min(0), x.clamp_max(0), torch.tanh(x), torch.nn.functional.relu6(x), x.clamp(-1, 1)))(x)
    for ours, eager in zip(execute(gm, x, executor_parameters=RAISE), gm(x), strict=True):
        assert torch.equal(torch.signbit(ours), torch.signbit(eager))


def test_shifts_by_the_width_and_more() -> None:
    for dtype in (torch.uint8, torch.int8, torch.int32):
        x = torch.tensor([100, 3, 127, 1] * 10, dtype=dtype)
        by = torch.tensor([8, 7, 40, 127] * 10, dtype=dtype)
        gm = make_fx(lambda x, by: (x >> by) + 0)(x, by)
        check_close(execute(gm, x, by, executor_parameters=RAISE), gm(x, by), str(dtype))


def test_a_factory_on_cuda_without_an_index() -> None:
    """It is on the device of the tensors that it meets."""
    with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True):
        x = torch.empty(4, device="cuda")
        graph = torch.fx.Graph()
        value = graph.placeholder("x")
        value.meta["val"] = x
        index = graph.call_function(torch.ops.aten.arange.default, (4,), {"device": torch.device("cuda")})
        index.meta["val"] = torch.empty(4, device="cuda", dtype=torch.int64)
        both = graph.call_function(torch.ops.aten.add.Tensor, (value, index))
        both.meta["val"] = torch.empty(4, device="cuda")
        graph.output(both)
        report = fxfuser.explain(torch.fx.GraphModule(torch.nn.Module(), graph), x)
    assert [row["status"] for row in report.nodes()] == ["fused", "fused"], report.nodes()
