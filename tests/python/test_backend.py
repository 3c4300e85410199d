"""torch.compile with our backend: names, keywords, answers as eager's, gradients, writes, sizes, graph breaks."""

from __future__ import annotations

import copy
import inspect
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fxfuser
import pytest
import torch
import torch._dynamo
from launch_count import launched
from numerics import check_close
from torch import nn

Launches = Callable[[], int]
NAMES = ("fxfuser", "nvprims_nvfuser", "nvprims_aten")


@pytest.fixture(autouse=True)
def fresh() -> Any:
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("error", fxfuser.FallbackWarning)
        yield


def pointwise(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x) * y + torch.sigmoid(x - y)


@pytest.mark.parametrize("name", NAMES)
def test_names_are_found_without_an_import(name: str) -> None:
    code = f"import torch, sys; f = torch.compile(lambda x: torch.sin(x) + 1, backend={name!r}); f(torch.ones(64)); import fxfuser; assert sum(fxfuser.stats()['launches'].values()) == 1"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_forward_is_eagers_and_in_generated_code(launches: Launches) -> None:
    x, y = torch.randn(33, 65), torch.randn(33, 65)
    check_close(torch.compile(pointwise, backend="fxfuser", fullgraph=True)(x, y), pointwise(x, y), "pointwise")
    assert launches() == 1


@pytest.mark.parametrize("mode", ["default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"])
def test_modes_of_torch_compile(mode: str, launches: Launches) -> None:
    x, y = torch.randn(8, 8), torch.randn(8, 8)
    check_close(torch.compile(pointwise, backend="fxfuser", mode=mode)(x, y), pointwise(x, y), mode)
    assert launches() == 1


def test_options_are_executor_parameters(launches: Launches) -> None:
    x, y = torch.randn(8, 8), torch.randn(8, 8)
    check_close(torch.compile(pointwise, backend="fxfuser", options={"skip_ops": ["tanh", "mul", "add", "sub", "sigmoid"]})(x, y), pointwise(x, y), "skip_ops")
    assert launches() == 0


@pytest.mark.parametrize("keywords, known", [({"mode": "fastest"}, "max-autotune"), ({"options": {"speed": 1}}, "allow_single_op_fusion")])
def test_unknown_modes_and_options_list_the_known(keywords: dict[str, Any], known: str) -> None:
    with pytest.raises(Exception, match=known):
        torch.compile(pointwise, backend="fxfuser", **keywords)(torch.ones(2), torch.ones(2))


def test_dynamic_sizes_are_one_compile(launches: Launches) -> None:
    compiled = torch.compile(lambda x: torch.softmax(torch.tanh(x) * x.shape[0], -1), backend="fxfuser", dynamic=True)
    torch._dynamo.utils.counters.clear()
    for rows, columns in ((4, 7), (9, 33), (128, 65)):
        x = torch.randn(rows, columns)
        check_close(compiled(x), torch.softmax(torch.tanh(x) * rows, -1), f"{rows} x {columns}")
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1
    assert launches() >= 2


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.norm = nn.BatchNorm2d(8)
        self.layer = nn.LayerNorm(8)
        self.head = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.nn.functional.silu(self.norm(self.conv(x))).mean((2, 3))
        return self.head(self.layer(x))


def test_a_training_step_is_eagers(launches: Launches) -> None:
    eager = Net()
    ours = copy.deepcopy(eager)
    compiled = torch.compile(ours, backend="fxfuser", fullgraph=True)
    x, target = torch.randn(4, 3, 12, 12), torch.tensor([0, 1, 2, 3])
    for _ in range(3):
        for model, call in ((eager, eager), (ours, compiled)):
            model.zero_grad()
            torch.nn.functional.cross_entropy(call(x), target).backward()
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter -= 0.1 * parameter.grad
    for (name, a), (_, b) in zip(ours.state_dict().items(), eager.state_dict().items(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5, msg=lambda text, name=name: f"{name}: {text}")
    assert launches() >= 6


@pytest.mark.parametrize("optimizer", [torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD])
@pytest.mark.parametrize("foreach", [True, False])
def test_compiled_optimizer_steps(optimizer: Any, foreach: bool, launches: Launches) -> None:
    start = [torch.randn(5, 3), torch.randn(7)]
    grads = [[torch.randn_like(t) for t in start] for _ in range(3)]
    results = []
    for compile_it in (False, True):
        params = [nn.Parameter(t.clone()) for t in start]
        made = optimizer(params, lr=0.1, weight_decay=0.01, foreach=foreach)
        step = torch.compile(made.step, backend="fxfuser") if compile_it else made.step
        for given in grads:
            for param, grad in zip(params, given, strict=True):
                param.grad = grad.clone()
            step()
        results.append([param.detach() for param in params])
    torch.testing.assert_close(results[1], results[0], rtol=1e-5, atol=1e-6)
    assert launches() >= 1


def test_writes_views_and_breaks_are_eagers(launches: Launches) -> None:
    def function(x: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, ...]:
        state.add_(x.sum(0))
        view = x.view(-1)
        torch._dynamo.graph_break()
        return x, view[1:], torch.exp(x).mul_(2)

    x, state, other = torch.randn(4, 6), torch.zeros(6), torch.zeros(6)
    compiled = torch.compile(function, backend="fxfuser")
    for _ in range(2):
        ours, eager = compiled(x, state), function(x, other)
    check_close((*ours, state), (*eager, other), "writes")
    assert ours[0] is x and ours[1].data_ptr() == eager[1].data_ptr()
    assert launches() >= 2


def test_autocast_and_dropout_are_eagers(launches: Launches) -> None:
    net = nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.Dropout(0.5), nn.Linear(16, 4))
    compiled = torch.compile(net, backend="fxfuser")
    x = torch.randn(8, 16)
    results = []
    for call in (net, compiled):
        net.zero_grad()
        torch.manual_seed(3)
        with torch.autocast("cpu", torch.bfloat16):
            y = call(x)
        y.float().square().mean().backward()
        results.append([y.float(), *(p.grad.clone() for p in net.parameters())])
    torch.testing.assert_close(results[1], results[0], rtol=2e-2, atol=2e-2)
    assert launches() >= 1


def test_checkpoint_and_cond_run(launches: Launches) -> None:
    from torch.utils.checkpoint import checkpoint

    def function(x: torch.Tensor) -> torch.Tensor:
        y = checkpoint(lambda t: torch.sin(t).exp() * t, x, use_reentrant=False)
        return torch.cond(y.sum() > 0, lambda t: t * 2 + 1, lambda t: t - 1, (y,))

    results = []
    for call in (function, torch.compile(function, backend="fxfuser", fullgraph=True)):
        x = torch.linspace(-1, 1, 40).requires_grad_()
        y = call(x)
        y.sum().backward()
        results.append([y.detach(), x.grad])
    torch.testing.assert_close(results[1], results[0])
    assert launches() >= 1


def test_stances_are_heeded(launches: Callable[[], int]) -> None:
    x, y = torch.randn(8, 8), torch.randn(8, 8)
    compiled = torch.compile(pointwise, backend="fxfuser")
    with torch.compiler.set_stance("force_eager"):
        check_close(compiled(x, y), pointwise(x, y), "force_eager")
    assert launches() == 0
    check_close(compiled(x, y), pointwise(x, y), "default")
    assert launches() == 1


def test_a_reset_frees_the_plans(launches: Launches) -> None:
    x, y = torch.randn(4, 4), torch.randn(4, 4)
    torch.compile(pointwise, backend="fxfuser")(x, y)
    before = fxfuser._C.handle_count()
    assert before >= 1
    torch._dynamo.reset()
    assert fxfuser._C.handle_count() == 0
    check_close(torch.compile(pointwise, backend="fxfuser")(x, y), pointwise(x, y), "after a reset")
    assert launches() == 2


def test_the_inputs_are_given_up() -> None:
    from fxfuser.backend.compiler import Boxed
    from torch.fx.experimental.proxy_tensor import make_fx

    x, y = torch.randn(4), torch.randn(4)
    inputs = [x, y]
    check_close(Boxed(make_fx(pointwise)(x, y), {})(inputs), pointwise(x, y), "boxed")
    assert inputs == []


def test_torchs_signatures_are_those_we_lean_on() -> None:
    from functorch.compile import min_cut_rematerialization_partition
    from torch._functorch.aot_autograd import aot_module_simplified

    given = set(inspect.signature(aot_module_simplified).parameters)
    assert {"fw_compiler", "bw_compiler", "inference_compiler", "decompositions", "partition_fn", "keep_inference_input_mutations"} <= given
    assert list(inspect.signature(min_cut_rematerialization_partition).parameters)[:4] == ["joint_module", "_joint_inputs", "compiler", "num_fwd_outputs"]


@pytest.mark.parametrize("name", ["torch_compile", "with_a_loop"])
def test_the_page_shows_what_runs(name: str) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / f"{name}.md").read_text()
    code = re.findall(r"```python\n(.*?)```", page, re.S)
    assert len(code) == 1
    before = fxfuser.stats()["launches"]["host"]
    exec(compile(code[0], f"{name}.md", "exec"), {"__name__": "example"})  # noqa: S102
    assert fxfuser.stats()["launches"]["host"] > before


def test_counters_and_running_statistics_are_written_together(launches: Launches) -> None:
    """Six batch norms: one kernel counts for all, and what is written back is one op a dtype."""
    eager = nn.Sequential(*(nn.BatchNorm1d(5) for _ in range(6)))
    ours = copy.deepcopy(eager)
    compiled = torch.compile(ours, backend="fxfuser", fullgraph=True)
    for _ in range(2):
        x = torch.randn(4, 5)
        check_close(compiled(x), eager(x), "result")
    for (name, a), (_, b) in zip(ours.named_buffers(), eager.named_buffers(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6, msg=lambda text, name=name: f"{name}: {text}")
    counted = launched(lambda: compiled(x))
    assert sum(number for name, number in counted.items() if name.endswith("[add, add_1, add_2, add_3, add_4, add_5]")) == 1, counted
    assert counted["aten::_foreach_copy_"] == 2 and counted["aten::copy_"] == 0, counted
    assert launches() >= 14


def test_inputs_that_swap_contents_are_written_in_order(launches: Launches) -> None:
    def function(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        old = a.clone()
        a.copy_(b)
        b.copy_(c.t())
        c.copy_(torch.tanh(old) * 2)
        return torch.sin(old) + 1

    ours = [torch.randn(4, 4) for _ in range(3)]
    eager = [t.clone() for t in ours]
    compiled = torch.compile(function, backend="fxfuser", fullgraph=True)
    for _ in range(2):
        check_close((compiled(*ours), *ours), (function(*eager), *eager), "swapped")
    assert launches() >= 2
