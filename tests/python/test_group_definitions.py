"""Groups of traced graphs printed as definitions (dump word python_definition): the text runs and computes the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import fxfuser
import pytest
import torch
from direct_samples import direct_samples
from fxfuser import FusionDefinition, execute
from measured import measured
from numerics import check_close
from samples import Sample, samples
from table_check import table_targets
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

Launches = Callable[[], int]
Capture = pytest.CaptureFixture[str]
WORD = "def fusion_group"


def printed(gm: torch.fx.GraphModule, args: tuple[Any, ...], capfd: Capture, **options: Any) -> tuple[Any, str]:
    capfd.readouterr()
    result = execute(gm, *args, executor_parameters={"dump": ["python_definition"], **options})
    return result, capfd.readouterr().out


def read(text: str) -> list[FusionDefinition]:
    """The definitions that a text makes, in its order."""
    scope: dict[str, Any] = {"FusionDefinition": FusionDefinition, "DataType": fxfuser.DataType, "torch": torch}
    exec(text, scope)  # noqa: S102
    out = []
    for name in [name for name in scope if name.startswith("fusion_group")]:
        with FusionDefinition() as fd:
            scope[name](fd)
        out.append(fd)
    return out


def layer(x: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y = torch.nn.functional.gelu((x * 2 + 1).transpose(0, 1) * weight)
    z = torch.nn.functional.layer_norm(y, (y.shape[-1],))
    return torch.softmax(z, -1), z.sum(0, keepdim=True), (y > 0.5).any()


def views(x: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y = (x.exp() + weight.square()[:, None]).unsqueeze(1).expand(-1, 2, -1)
    return torch.cat([y.exp(), y[:, :, :1].sigmoid()], 2), y.permute(2, 0, 1).flatten().neg(), torch.var_mean(y, 2)[1].squeeze(1).relu()


def casts(x: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y = (x.double() * weight.half()[:, None]).float()
    return torch.where(y > 0.3, y, 0.25).to(torch.bfloat16), y.to(torch.int32) + 1, torch.full_like(y, 2.0) * y


@pytest.mark.parametrize("fn", [layer, views, casts], ids=lambda fn: fn.__name__)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_the_text_of_a_group_runs(fn: Callable[..., tuple[torch.Tensor, ...]], dtype: torch.dtype, capfd: Capture, launches: Launches) -> None:
    args = (torch.rand(6, 5).to(dtype), torch.rand(6).to(dtype))
    gm = make_fx(fn)(*args)
    ours, text = printed(gm, args, capfd, on_error="raise")
    (definition,) = read(text)
    ran = launches()
    results = definition.execute(args, strict=True)
    assert ran > 0 and launches() > ran, text
    check_close(tuple(results), ours if len(results) == len(ours) else None, text)


def test_groups_are_printed_one_by_one_and_once(capfd: Capture, launches: Launches) -> None:
    x = torch.rand(4, 3)
    gm = make_fx(lambda x: torch.digamma(torch.sigmoid(x) + 1).exp() * 2)(x)
    ours, text = printed(gm, (x,), capfd, on_error="raise")
    first, second = read(text)
    (y,) = first.execute([x])
    (z,) = second.execute([torch.digamma(y)])
    check_close(z, ours, text)
    assert launches() == 4
    assert text.startswith("# fusion_group") and "(x_1): sigmoid add\n" in text, "inputs and nodes stand above the text"
    assert printed(gm, (x,), capfd, on_error="raise")[1] == ""


def test_numbers_among_the_inputs(capfd: Capture, launches: Launches) -> None:
    graph = torch.fx.Graph()
    x, scale, shift = (graph.placeholder(name) for name in ("x", "scale", "shift"))
    product = graph.call_function(torch.ops.aten.mul.Tensor, (x, scale))
    graph.output(graph.call_function(torch.ops.aten.add.Tensor, (product, shift)))
    gm = torch.fx.GraphModule(torch.nn.Module(), graph)
    args = (torch.rand(5), 2.5, 3)
    ours, text = printed(gm, args, capfd, on_error="raise")
    (definition,) = read(text)
    check_close(definition.execute(args)[0], ours, text)
    assert "define_scalar(dtype=DataType.Double)" in text and "define_scalar(dtype=DataType.Int)" in text, text
    assert launches() == 2


def test_what_has_no_spelling_is_one_comment(capfd: Capture, launches: Launches) -> None:
    x = torch.rand(4, 6)
    gm = make_fx(lambda x: [part.sin() for part in torch.ops.aten.split.Tensor(x + 1, 3, 1)])(x)
    _, text = printed(gm, (x,), capfd, on_error="raise")
    lines = text.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("# fusion_group") and "split (aten.split.Tensor) has no spelling in fd.ops" in lines[0], text
    assert launches() > 0


def test_a_definition_prints_itself_alone(capfd: Capture) -> None:
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.sin(fd.define_tensor(1)) * 1.03125)
    capfd.readouterr()
    fd.execute([torch.rand(3)], dump=["python_definition"])
    assert "fusion_group" not in capfd.readouterr().out


COMPOSITES = ("nn.functional.batch_norm", "nn.functional.gelu", "softmax", "var_mean", "where", "squeeze", "logsumexp", "clamp", "index_select", "nn.functional.group_norm")


def chosen(dtype: torch.dtype) -> Iterator[Sample]:
    """One sample a target."""
    wanted = table_targets()
    for sample in (*direct_samples(dtype), *samples((dtype,), 1, COMPOSITES)):
        if sample.target in wanted:
            wanted.remove(sample.target)
            yield sample


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_every_row_that_has_a_spelling_means_the_same(dtype: torch.dtype, capfd: Capture) -> None:
    """Nothing is compiled: the texts run op by op through ATen, which tells whether they say what the node says."""
    spelled: set[str] = set()
    for sample in chosen(dtype):
        gm = torch.fx.GraphModule(torch.nn.Module(), sample.graph)
        values = dict(zip((node.name for node in sample.graph.nodes if node.op == "placeholder"), sample.args, strict=True))
        for node in sample.graph.nodes:
            if node.op == "placeholder":
                node.meta["val"] = values[node.name]
        try:
            _, text = printed(gm, sample.args, capfd, compile="never")
        except RuntimeError:
            continue  # a sample that eager refuses
        if WORD not in text:
            continue
        (definition,) = read(text)
        results = definition.execute([values[name] for name in text[text.index("(") + 1 : text.index(")")].split(", ") if name], aten=True)
        eager = [leaf for leaf in pytree.tree_leaves(gm(*sample.args)) if isinstance(leaf, torch.Tensor)]
        assert len(results) >= len(eager), text
        for a, b in zip(results, eager, strict=False):  # what an op writes stands behind what it returns
            assert a.dtype == b.dtype and a.shape == b.shape, text
            torch.testing.assert_close(a, b, rtol=2e-3, atol=1e-3, equal_nan=True, msg=lambda message, text=text: f"{text}\n{message}")
        spelled.add(sample.target)
    measured(f"spelled_targets_{str(dtype).removeprefix('torch.')}", len(spelled))
    print(f"{len(spelled)} targets")
