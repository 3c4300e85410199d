"""The contract of execute(): call forms, structures, aliasing, layouts, the cases that must run as the module itself."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import fxfuser
import pytest
import torch
from fxfuser import execute
from numerics import check_close
from torch.fx.experimental.proxy_tensor import make_fx

Launches = Callable[[], int]
STRICT = {"executor": "strictly_nvfuser"}


def traced(fn: Callable[..., Any], *args: Any) -> torch.fx.GraphModule:
    with torch.no_grad():
        return make_fx(fn)(*args)


def run(fn: Callable[..., Any], *args: Any, kernels: int | None = None, **options: Any) -> Any:
    """Traces, executes with errors raised, compares with eager, and asserts how many kernels ran."""
    gm = traced(fn, *args)
    before = sum(fxfuser.stats()["launches"].values())
    out = execute(gm, *args, executor_parameters={"on_error": "raise"}, **options)
    check_close(out, gm(*args), getattr(fn, "__name__", "fn"))
    count = sum(fxfuser.stats()["launches"].values()) - before
    if kernels is None:
        assert count > 0, "no generated kernel ran"
    else:
        assert count == kernels, f"{count} kernels ran, expected {kernels}"
    return out


def test_pointwise_is_one_kernel() -> None:
    run(lambda x, y: torch.relu(x * 2 + y).sigmoid(), torch.randn(33, 65), torch.randn(33, 65), kernels=1)


def test_strict_is_one_kernel() -> None:
    run(lambda x: (x.exp() + 1).log(), torch.randn(100), kernels=1, **STRICT)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_both_call_forms(count: int, launches: Launches) -> None:
    args = tuple(torch.randn(8) for _ in range(count))
    gm = traced(lambda *xs: sum(xs) * 2, *args)
    expected = gm(*args)
    check_close(execute(gm, *args), expected, "execute(gm, *args)")
    check_close(execute(gm, args), expected, "execute(gm, tuple)")
    check_close(execute(gm, list(args)), expected, "execute(gm, list)")
    assert launches() == 3


def test_no_placeholders() -> None:
    gm = traced(lambda: torch.ones(3) * 2)
    check_close(execute(gm), gm(), "no inputs")
    check_close(execute(gm, ()), gm(), "no inputs, empty tuple")


def test_exported_module_with_keywords(launches: Launches) -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(16, 16)
            self.norm = torch.nn.LayerNorm(16)

        def forward(self, x: torch.Tensor, *, scale: torch.Tensor) -> dict[str, Any]:
            y = self.norm(self.linear(x)) * scale
            return {"y": y, "pair": (y.relu(), y.tanh())}

    x, scale = torch.randn(4, 16), torch.randn(16)
    model = Model().eval()
    gm = torch.export.export(model, (x,), {"scale": scale}).module()
    with torch.no_grad():
        out = execute(gm, x, scale=scale, executor_parameters={"on_error": "raise"})
        expected = model(x, scale=scale)
    check_close(out, expected, "export")
    assert list(out) == ["y", "pair"] and isinstance(out["pair"], tuple)
    assert launches() >= 1


def test_pytrees_in_and_out(launches: Launches) -> None:
    x = torch.randn(3, 3)
    gm = make_fx(lambda t, d: ({"c": t + d["b"]}, t * d["b"]))(x, {"b": x})
    out = execute(gm, x, {"b": x})
    torch.testing.assert_close(out[0]["c"], x + x)
    torch.testing.assert_close(out[1], x * x)
    assert launches() >= 1


def test_returned_input_is_the_same_object() -> None:
    gm = traced(lambda x, y: (x, x + y, x), torch.randn(4), torch.randn(4))
    x, y = torch.randn(4), torch.randn(4)
    out = execute(gm, x, y)
    assert out[0] is x and out[2] is x


def test_view_of_an_input_is_a_view() -> None:
    gm = traced(lambda x: (x.t(), x * 2), torch.randn(4, 5))
    x = torch.randn(4, 5)
    out = execute(gm, x)
    assert out[0]._base is x and out[0].data_ptr() == x.data_ptr()
    check_close(out, gm(x), "view")


def test_expanded_result_is_a_view_of_what_was_computed(launches: Launches) -> None:
    x = torch.randn(4, 1)
    gm = make_fx(lambda x: ((x * 2).exp().expand(4, 6), x.sum(0, keepdim=True).expand(3, 1)))(x)
    out = execute(gm, x, executor_parameters={"on_error": "raise"})
    check_close(out, gm(x), "expanded")
    assert out[0].stride() == (1, 0) and out[0]._base is not None
    assert launches() > 0
    assert all(row["status"] in ("fused", "view") for row in fxfuser.explain(gm, x).nodes())


def test_none_and_number_outputs() -> None:
    gm = traced(lambda x: (x + 1, None, 3), torch.randn(4))
    x = torch.randn(4)
    out = execute(gm, x)
    assert out[1] is None and out[2] == 3
    check_close(out[0], x + 1, "x + 1")


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.randn(0, 5),
        lambda: torch.randn(()),
        lambda: torch.randn(1, 7).expand(6, 7),
        lambda: torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last),
        lambda: torch.randn(65)[1:],
        lambda: torch.randn(12, 10)[::2, 1::3],
        lambda: torch.randn(6, 5, 4).permute(2, 0, 1),
        lambda: torch.as_strided(torch.randn(20), (4, 5), (3, 1)),
    ],
    ids=["empty", "0-dim", "expanded", "channels_last", "misaligned", "sliced", "permuted", "overlapping"],
)
def test_awkward_layouts(make: Callable[[], torch.Tensor]) -> None:
    x = make()
    run(lambda t: torch.sigmoid(t) * 3 - t, x)


def test_grad_runs_the_module_and_is_right() -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(8))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x * self.weight).tanh()

    x = torch.randn(4, 8)
    model = Model()
    gm = torch.export.export(model, (x,)).module()
    execute(gm, x).sum().backward()
    got = dict(gm.named_parameters())["weight"].grad
    model(x).sum().backward()
    torch.testing.assert_close(got, model.weight.grad)


def test_inference_mode_outputs_are_inference_tensors(launches: Launches) -> None:
    gm = traced(lambda x: x.exp() * 2, torch.randn(8))
    with torch.inference_mode():
        out = execute(gm, torch.randn(8))
    assert out.is_inference()
    assert launches() == 1


def test_subclasses_run_as_the_module() -> None:
    class Tagged(torch.Tensor):
        pass

    gm = traced(lambda x: x * 2 + 1, torch.randn(4))
    x = torch.randn(4).as_subclass(Tagged)
    assert isinstance(execute(gm, x), Tagged)


def test_in_place_on_an_intermediate(launches: Launches) -> None:
    gm = traced(lambda x: (x + 1).relu_().mul_(2), torch.randn(40) - 0.5)
    x = torch.randn(40)
    check_close(execute(gm, x, executor_parameters={"on_error": "raise"}), gm(x), "in place")
    assert launches() == 1


def test_in_place_on_an_input_writes_it_and_bumps_its_version() -> None:
    def fn(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.add_(y)
        return x * 2

    gm = traced(fn, torch.randn(8), torch.randn(8))
    x, y = torch.randn(8), torch.randn(8)
    want = x.clone()
    expected = gm(want, y)
    version = x._version
    out = execute(gm, x, y)
    check_close(out, expected, "result")
    torch.testing.assert_close(x, want)
    assert x._version > version


def test_new_shapes_do_not_compile_again() -> None:
    gm = traced(lambda x: torch.softmax(x * 2 + 1, -1), torch.randn(8, 64))
    execute(gm, torch.randn(8, 64))
    compiles = fxfuser.stats()["compiles"]
    for rows in range(9, 30):
        x = torch.randn(rows, 64)
        check_close(execute(gm, x), gm(x), f"rows={rows}")
    assert fxfuser.stats()["compiles"] <= compiles + 2


def test_other_dtypes_and_ranks_give_the_right_answer() -> None:
    gm = traced(lambda x: (x * 3 + 1).abs(), torch.randn(4, 4))
    for x in (torch.randn(4, 4).double(), torch.randn(5), torch.randint(-5, 5, (3, 3)), torch.randn(2, 3, 4)):
        for _ in range(2):
            check_close(execute(gm, x), gm(x), str(x.dtype))


def test_swapped_parameter_is_seen(launches: Launches) -> None:
    model = torch.nn.LayerNorm(16)
    x = torch.randn(4, 16)
    gm = torch.export.export(model, (x,)).module()
    with torch.no_grad():
        check_close(execute(gm, x), gm(x), "first")
        name = next(iter(dict(gm.named_parameters())))
        owner, _, leaf = name.rpartition(".")
        setattr(gm.get_submodule(owner), leaf, torch.nn.Parameter(torch.randn(16)))
        check_close(execute(gm, x), gm(x), "swapped")
    assert launches() == 2


def test_edited_module_is_read_again() -> None:
    gm = traced(lambda x: x.exp() + 1, torch.randn(4))
    x = torch.randn(4)
    check_close(execute(gm, x), gm(x), "before")
    node = next(n for n in gm.graph.nodes if n.target is torch.ops.aten.exp.default)
    node.target = torch.ops.aten.sin.default
    check_close(execute(gm, x), gm(x), "edited, not recompiled")
    gm.recompile()
    check_close(execute(gm, x), x.sin() + 1, "recompiled")


def test_symbolic_trace_is_lowered(launches: Launches) -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = torch.nn.LayerNorm(8)

        def forward(self, x: torch.Tensor, factor: float = 2.0) -> torch.Tensor:
            return torch.relu(self.norm(x)).mul(factor).view(-1)

    gm = torch.fx.symbolic_trace(Model().requires_grad_(False))
    x = torch.randn(4, 8)
    check_close(execute(gm, x), gm(x), "lowered")
    assert launches() >= 1


def test_a_dead_module_leaves_nothing() -> None:
    gc.collect()
    gm = traced(lambda x: x + 1, torch.randn(4))
    execute(gm, torch.randn(4))
    count = fxfuser._C.handle_count()
    watch = weakref.ref(gm)
    del gm
    gc.collect()
    assert watch() is None
    assert fxfuser._C.handle_count() < count


def test_many_threads_share_one_module() -> None:
    gm = traced(lambda x: torch.softmax(x, -1).sum(-1), torch.randn(8, 32))
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        try:
            for size in range(1, 20):
                x = torch.randn(size, 32, generator=generator)
                check_close(execute(gm, x), gm(x), f"size {size}")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]


def test_aten_executor_is_the_module(launches: Launches) -> None:
    gm = traced(lambda x: x.exp() * 2, torch.randn(4))
    x = torch.randn(4)
    check_close(execute(gm, x, executor="aten"), gm(x), "aten")
    assert launches() == 0


def test_random_ops_keep_eagers_stream() -> None:
    gm = traced(lambda x: torch.nn.functional.dropout(x, 0.5, True) * 2, torch.randn(64))
    x = torch.randn(64)
    torch.manual_seed(7)
    ours = execute(gm, x)
    torch.manual_seed(7)
    check_close(ours, gm(x), "dropout")


def test_mixed_graph_keeps_unsupported_ops_with_aten(launches: Launches) -> None:
    s, d = torch.sigmoid, torch.digamma
    gm = traced(lambda t: s(d(s(d(s(d(s(t))))))), torch.randn(3, 2))
    x = torch.randn(3, 2)
    before = fxfuser.stats()["aten_steps"]
    check_close(execute(gm, x), gm(x), "chain")
    assert launches() == 4
    assert fxfuser.stats()["aten_steps"] - before == 3


def test_single_op_fusion_can_be_turned_off(launches: Launches) -> None:
    gm = traced(lambda x: torch.sigmoid(x), torch.randn(4))
    x = torch.randn(4)
    check_close(execute(gm, x, executor_parameters={"allow_single_op_fusion": False}), gm(x), "off")
    assert launches() == 0
    check_close(execute(gm, x), gm(x), "on")
    assert launches() == 1


def test_deep_graphs_do_not_overflow() -> None:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    x.meta["val"] = torch.randn(2)
    node = x
    for index in range(20000):
        node = graph.call_function(torch.ops.aten.mul.Tensor if index % 20 else torch.ops.aten.digamma.default, (node, 1.0) if index % 20 else (node,))
        node.meta["val"] = torch.randn(2)
    graph.output(node)
    gm = torch.fx.GraphModule(torch.nn.Module(), graph)
    report = fxfuser.explain(gm)
    assert report.totals["nodes"] == 20000


def test_dtypes_and_ranks_that_were_not_traced_are_fused_at_their_first_call() -> None:
    gm = make_fx(lambda x, y: torch.relu(x * 2 + y).sum(-1))(torch.randn(4, 5), torch.randn(5))
    for x, y in ((torch.randn(4, 5).double(), torch.randn(5).double()), (torch.randn(2, 3, 7), torch.randn(3, 7))):
        before = fxfuser.stats()
        torch.testing.assert_close(fxfuser.execute(gm, x, y), gm(x, y))
        after = fxfuser.stats()
        assert after["launches"]["host"] - before["launches"]["host"] == 1
        assert after["aten_steps"] == before["aten_steps"]


def test_sizes_that_are_computed_at_the_call_fuse_and_a_new_one_compiles_nothing() -> None:
    gm = make_fx(lambda x: torch.softmax(x.expand(3, x.shape[0], x.shape[1]).reshape(3 * x.shape[0], x.shape[1]) * 2, -1), tracing_mode="symbolic")(torch.randn(4, 6))
    for sizes, compiles in (((4, 6), None), ((5, 6), 0), ((4, 6), 0)):
        x = torch.randn(sizes)
        before = fxfuser.stats()
        torch.testing.assert_close(fxfuser.execute(gm, x), gm(x))
        after = fxfuser.stats()
        assert after["launches"]["host"] - before["launches"]["host"] == 1
        assert compiles is None or after["compiles"] - before["compiles"] == compiles
    torch.testing.assert_close(fxfuser.execute(gm, x, executor="strictly_nvfuser"), gm(x))
