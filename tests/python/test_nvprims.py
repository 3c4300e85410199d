"""torch.ops.nvprims: schemas from the table, shapes and values of the torch functions, no backward, fused where a row can."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fxfuser
import pytest
import torch
from fxfuser import execute, nvprims
from numerics import check_close
from nvprim_samples import BINARY, OTHERS, UNARY, by_hand, from_opinfo
from samples import combine
from table_check import FALLBACK_IS_RIGHT
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

CALLS = by_hand()
RANDOM = ("rand_like.default",)
ALONE_NO_KERNEL = ("broadcast_in_dim", "clone", "imag", "real", "squeeze", "transpose", "view", "view_of")  # views, a lone copy, and what complex tensors have


def overload(name: str) -> Any:
    packet, _, which = name.partition(".")
    return getattr(getattr(torch.ops.nvprims, packet), which)


def detached(args: Any) -> Any:
    return pytree.tree_map(lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf, args)


def test_the_list_of_2022_is_there() -> None:
    assert set(nvprims.names()) == {*UNARY, *BINARY, *OTHERS}
    assert set(CALLS) == {f"{name}.{which}" for name in nvprims.names() for which in getattr(torch.ops.nvprims, name).overloads()}


@pytest.mark.parametrize("name", CALLS)
def test_opcheck(name: str) -> None:
    for args, kwargs in CALLS[name]:
        checks = ("test_schema", "test_autograd_registration", "test_faketensor") if name in RANDOM else torch.library._OPCHECK_DEFAULT_UTILS
        result = torch.library.opcheck(overload(name), detached(args), kwargs, test_utils=checks)
        assert set(result.values()) == {"SUCCESS"}, result


@pytest.mark.parametrize("name", CALLS)
def test_meta_has_eagers_shapes(name: str) -> None:
    for args, kwargs in CALLS[name]:
        eager = pytree.tree_leaves(overload(name)(*detached(args), **kwargs))
        moved = pytree.tree_map(lambda leaf: leaf.to("meta") if isinstance(leaf, torch.Tensor) else leaf, args)
        if name.startswith("full"):
            kwargs = {**kwargs, "device": torch.device("meta")}
        meta = pytree.tree_leaves(overload(name)(*moved, **kwargs))
        assert [(m.shape, m.dtype, m.stride()) for m in meta] == [(e.shape, e.dtype, e.stride()) for e in eager]
        assert all(m.is_meta for m in meta)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool], ids=str)
def test_opinfo_samples_eager_and_fused(dtype: torch.dtype) -> None:
    found = list(from_opinfo(dtype, 3))
    chosen = [sample for sample, _ in found]
    assert len({sample.name for sample in chosen}) >= (40 if dtype.is_floating_point else 10)
    gm, args, starts = combine(chosen)
    eager = gm(*args)
    for (sample, expected), start in zip(found, starts, strict=True):
        torch.testing.assert_close(eager[start], expected, rtol=0, atol=0, equal_nan=True, msg=lambda text, sample=sample: f"{sample.target}: {text}")
    before = sum(fxfuser.stats()["launches"].values())
    ours = execute(gm, *args, executor_parameters={"on_error": "raise"})
    assert sum(fxfuser.stats()["launches"].values()) > before
    for sample, start in zip(chosen, starts, strict=True):
        if dtype == torch.bfloat16:
            torch.testing.assert_close(ours[start], eager[start], rtol=1.6e-2, atol=1e-2, equal_nan=True)
        else:
            check_close(ours[start], eager[start], f"{sample.target} {dtype}")
    nodes = [row for row in fxfuser.explain(gm, *args).nodes() if row["target"].startswith("nvprims.")]
    assert len(nodes) == len(chosen)
    left = [(row["target"], row.get("reason")) for row in nodes if row["status"] != "fused" and not (row.get("reason") or "").startswith(FALLBACK_IS_RIGHT)]
    assert not left
    assert sum(row["status"] == "fused" for row in nodes) > len(nodes) // 2


@pytest.mark.parametrize("name", CALLS)
def test_impl_nvfuser_writes_the_call_into_a_definition(name: str, launches: Callable[[], int]) -> None:
    """As older code builds a fusion from a graph: the attribute of packet and overload, called with a definition's handles."""
    nvprims.register_nvprims()
    if name in RANDOM:
        args, kwargs = CALLS[name][0]
        with fxfuser.FusionDefinition() as fd:
            fd.add_output(overload(name).impl_nvfuser(fd, fd.from_pytorch(args[0])))
        (out,) = fd.execute([args[0]])
        assert out.shape == args[0].shape and 0 <= float(out.min()) <= float(out.max()) < 1
        return
    for args, kwargs in CALLS[name]:
        args = detached(args)
        tensors = [leaf for leaf in args if isinstance(leaf, torch.Tensor)]
        expected = pytree.tree_leaves(overload(name)(*detached(args), **kwargs))
        with fxfuser.FusionDefinition() as fd:
            handles = iter([fd.from_pytorch(tensor) for tensor in tensors])
            given = [next(handles) if isinstance(arg, torch.Tensor) else arg for arg in args]
            made = overload(name).impl_nvfuser(fd, *given, **kwargs)
            made = list(made) if isinstance(made, (tuple, list)) else [made]
            for result, like in zip(made, expected, strict=True):
                fd.add_output(fd.ops.cast(result, like.dtype))
        for ours, eager in zip(fd.execute(tensors, on_error="raise"), expected, strict=True):
            torch.testing.assert_close(ours, eager, check_stride=False, equal_nan=True)
    packet = name.partition(".")[0]
    assert launches() > 0 or packet in ALONE_NO_KERNEL


def test_a_flag_is_never_a_dim() -> None:
    x = torch.randn(3, 4)
    for unbiased in (True, False):
        for ours, eager in zip(torch.ops.nvprims.var_mean(x, unbiased), torch.var_mean(x, unbiased), strict=True):
            torch.testing.assert_close(ours, eager, rtol=0, atol=0)
    gm = make_fx(lambda t: torch.ops.nvprims.var_mean(t, False))(x)
    before = sum(fxfuser.stats()["launches"].values())
    check_close(execute(gm, x), torch.var_mean(x, False), "var_mean")
    assert sum(fxfuser.stats()["launches"].values()) > before


@pytest.mark.parametrize("name", ["sin.default", "mul.default", "transpose.default", "sum.default", "var_mean.main"])
def test_forward_needs_no_backward_which_raises(name: str) -> None:
    args, kwargs = CALLS[name][0]
    args = tuple(arg.clone().requires_grad_() if isinstance(arg, torch.Tensor) else arg for arg in args)
    out = pytree.tree_leaves(overload(name)(*args, **kwargs))[0]
    assert out.requires_grad
    with pytest.raises(RuntimeError, match="backwards not supported on prim"):
        out.sum().backward()
    if name != "transpose.default":  # a view of a leaf requires grad in eager too
        with torch.no_grad():
            assert not pytree.tree_leaves(overload(name)(*args, **kwargs))[0].requires_grad


def test_views_are_views() -> None:
    x = torch.randn(3, 4)
    for name in ("transpose.default", "view_of.default", "view.shape"):
        out = overload(name)(x, *CALLS[name][0][0][1:]) if name != "transpose.default" else overload(name)(x, [1, 0])
        assert out._base is x
        version = x._version
        out.add_(1)
        assert x._version > version


@pytest.mark.parametrize("namespace", ["prims", "nvprims"])
def test_integer_quotients_are_cut_in_kernels_and_out(namespace: str) -> None:
    div = getattr(torch.ops, namespace).div
    a, b = torch.tensor([7, -7, 8]), torch.tensor([2, 2, -3])
    gm = make_fx(lambda a, b: div(a, b))(a, b)
    for single in (True, False):
        out = execute(gm, a, b, executor_parameters={"allow_single_op_fusion": single})
        assert out.dtype == torch.int64 and out.tolist() == [3, -3, -2]
        check_close(execute(gm, a > 0, b > 0, executor_parameters={"allow_single_op_fusion": single}), gm(a > 0, b > 0), "booleans")


def test_what_no_kernel_takes_runs_as_one_aten_call() -> None:
    x = torch.randn(5, dtype=torch.complex64)
    gm = make_fx(lambda t: torch.ops.nvprims.real(torch.ops.nvprims.exp(t)))(x)
    steps = fxfuser.stats()["aten_steps"]
    check_close(execute(gm, x), x.exp().real, "complex")
    assert fxfuser.stats()["aten_steps"] - steps == 2
    gm = make_fx(lambda t: torch.ops.nvprims.rand_like(t) + t)(torch.randn(8))
    torch.manual_seed(3)
    ours = execute(gm, torch.zeros(8))
    torch.manual_seed(3)
    torch.testing.assert_close(ours, torch.rand(8))


def test_a_row_added_at_run_time_is_an_op() -> None:
    row = {"op": "demo_square", "targets": {"nvprims.demo_square.default": "self"}, "kind": "pointwise", "dtypes": "float", "result": "default", "expr": "{self}*{self}"}
    with pytest.raises(ValueError, match="demo_square.*fallback"):
        fxfuser.register_op(row)
    assert not hasattr(torch.ops.nvprims, "demo_square")
    fxfuser.register_op({**row, "fallback": "aten.square.default"})
    x = torch.randn(5)
    gm = make_fx(lambda t: torch.ops.nvprims.demo_square(t) + 1)(x)
    before = sum(fxfuser.stats()["launches"].values())
    check_close(execute(gm, x, executor="strictly_nvfuser"), x * x + 1, "demo_square")
    assert sum(fxfuser.stats()["launches"].values()) == before + 1


def test_a_row_needs_a_schema_where_none_follows() -> None:
    row = {"op": "demo_view", "targets": {"nvprims.demo_view.default": "self shape"}, "kind": "view", "dtypes": "any", "fallback": "aten.reshape.default"}
    with pytest.raises(ValueError, match="demo_view.*schemas.*lacks"):
        fxfuser.register_op(row)
    with pytest.raises(ValueError, match="demo_view.*schemas"):
        fxfuser.register_op({**row, "schemas": {"nvprims.other.default": "(Tensor self) -> Tensor"}})


@pytest.mark.parametrize("op", [torch.ops.nvprims.native_batch_norm.default, torch.ops.aten._native_batch_norm_legit.default])
def test_a_batch_norm_writes_in_training_only(op: Any) -> None:
    """Both schemas mark the running statistics as written: in training they are results that are written back."""
    x, stats = torch.randn(4, 3, 5), (torch.rand(3), torch.rand(3), torch.zeros(3), torch.ones(3))
    for training in (False, True):
        gm = make_fx(lambda x, w, b, m, v: op(x, w, b, m, v, training, 0.1, 1e-5)[0], tracing_mode="fake")(x, *stats)  # noqa: B023
        ours, eager = [stat.clone() for stat in stats], [stat.clone() for stat in stats]
        before = sum(fxfuser.stats()["launches"].values())
        torch.testing.assert_close(execute(gm, x, *ours), gm(x, *eager))
        assert sum(fxfuser.stats()["launches"].values()) - before == 1
        torch.testing.assert_close(ours, eager)
        assert torch.equal(ours[2], stats[2]) != training


def test_full_takes_plain_tensors_only() -> None:
    assert torch.ops.nvprims.full([2], 1.0, layout=torch.strided, pin_memory=False, requires_grad=False).tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="requires_grad at its default only"):
        torch.ops.nvprims.full([2], 1.0, requires_grad=True)
