"""The surface of 2022 on CUDA tensors: the central promise of each row, with the kernels that ran, and the dumps of CUDA kernels."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import fxfuser
import pytest
import torch
from fxfuser import FusionDefinition, TorchRefsNvfuserCapabilityMode, execute, make_traced
from numerics import check_against_reference, check_close
from torch.fx.experimental.proxy_tensor import make_fx

RAISE = {"on_error": "raise"}
LINE = re.compile(r"kernel\d+ run in (\d+\.\d+) ms, achieved: (\d[\d.e+-]*) GB/s")


def launches() -> int:
    return int(fxfuser.stats()["launches"]["cuda"])


def cuda(*shape: int) -> torch.Tensor:
    return torch.rand(*shape, device="cuda") + 0.5


def chain(x: torch.Tensor) -> torch.Tensor:
    for _ in range(3):
        x = torch.digamma(torch.sigmoid(x))
    return torch.sigmoid(x)


def ran(gm: torch.fx.GraphModule, *args: Any, executor: str = "nvfuser", **parameters: Any) -> int:
    """Generated CUDA kernels of a later call, which gives eager's values."""
    execute(gm, *args, executor=executor, executor_parameters={**RAISE, **parameters})
    before = launches()
    check_close(execute(gm, *args, executor=executor, executor_parameters={**RAISE, **parameters}), gm(*args), "cuda")
    return launches() - before


def test_views_inside_a_group_and_groups_of_views() -> None:
    x = cuda(4, 6, 8)
    assert ran(make_fx(lambda x: x.sin().transpose(0, 2).reshape(8, 24).cos())(x), x, executor="strictly_nvfuser") == 1
    with pytest.warns(fxfuser.FallbackWarning, match="nothing is fused"):
        assert ran(make_fx(lambda x: x.transpose(0, 2).unsqueeze(0))(x), x) == 0


FUSED = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64)


@pytest.mark.parametrize("start", FUSED, ids=str)
def test_every_pair_of_dtypes(start: torch.dtype) -> None:
    x = torch.tensor([0.0, 1.0, 2.5, 17.75, 100.0, 120.5], device="cuda").to(start)
    ends = [end for end in FUSED if end != start]
    gm = make_fx(lambda x: tuple(torch.ops.aten._to_copy.default(x, dtype=end) for end in ends))(x)
    before = launches()
    for end, ours, eager in zip(ends, execute(gm, x, executor="strictly_nvfuser"), gm(x), strict=True):
        assert torch.equal(ours, eager), end
    assert launches() > before


def test_executor_parameters() -> None:
    gm = make_fx(lambda x: torch.digamma(x.sin().exp()).cos())(cuda(4, 4))
    assert [ran(gm, cuda(4, 4), **parameters) for parameters in ({}, {"allow_single_op_fusion": False}, {"use_python_fusion_cache": False})] == [2, 1, 2]


def test_layer_norm_under_the_capability_mode() -> None:
    x = cuda(8, 64).half()
    with TorchRefsNvfuserCapabilityMode():
        gm = make_fx(lambda x: torch.nn.functional.layer_norm(x, (64,)))(x)
    assert "nvprims.var_mean.main" in {str(node.target) for node in gm.graph.nodes}
    before = launches()
    torch.testing.assert_close(execute(gm, x, executor="strictly_nvfuser"), gm(x), rtol=2e-3, atol=2e-3)
    assert launches() == before + 1


def test_the_chain_is_four_kernels_and_three_calls() -> None:
    x = cuda(3, 3)
    gm = make_fx(chain)(x)
    execute(gm, x, executor_parameters=RAISE)
    before = fxfuser.stats()
    check_close(execute(gm, x, executor_parameters=RAISE), gm(x), "chain")
    after = fxfuser.stats()
    assert after["launches"]["cuda"] - before["launches"]["cuda"] == 4 and after["aten_steps"] - before["aten_steps"] == 3


def test_strict_lists_what_it_can_not_take() -> None:
    gm = make_fx(chain)(cuda(3, 3))
    with pytest.raises(ValueError, match=r"can't take 3 of 7 nodes:(\n  digamma\w* \(aten.digamma.default\).*){3}"):
        execute(gm, cuda(3, 3), executor="strictly_nvfuser")
    assert ran(gm, cuda(3, 3)) == 4


def test_many_partitions_share_a_kernel() -> None:
    def long(x: torch.Tensor) -> torch.Tensor:
        for _ in range(300):
            x = torch.digamma(x.sin() + 1.5)
        return x

    gm = make_fx(long)(cuda(4, 6))
    execute(gm, cuda(4, 6), executor_parameters=RAISE)
    before = fxfuser.stats()
    assert ran(gm, cuda(4, 6)) == 300
    after = fxfuser.stats()
    assert after["compiles"] == before["compiles"] and after["plan_misses"] == before["plan_misses"]


def test_built_once_and_right_for_other_kinds() -> None:
    gm = make_fx(lambda x: torch.softmax(x * 1.5, -1))(cuda(4, 6))
    execute(gm, cuda(4, 6), executor_parameters=RAISE)
    before = fxfuser.stats()["plan_misses"]
    assert ran(gm, cuda(4, 6)) == 1
    check_close(execute(gm, (x := cuda(4, 6),), executor_parameters=RAISE), gm(x), "one tuple of arguments")
    assert fxfuser.stats()["plan_misses"] == before
    for x in (cuda(5, 3), cuda(7), cuda(6, 4).t(), cuda(4, 6).double(), cuda(2, 3, 4, 5)):
        assert ran(gm, x) == 1
    host = fxfuser.stats()["launches"]["host"]
    x = torch.rand(4, 6)
    check_close(execute(gm, x, executor_parameters=RAISE), gm(x), "cpu")
    assert fxfuser.stats()["launches"]["host"] == host + 1


def test_make_traced_keeps_its_traces() -> None:
    traces = []

    def fn(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        traces.append(1)
        return torch.sigmoid(a) * b

    run, before = make_traced(fn), launches()
    for _ in range(3):
        a, b = cuda(3, 4), cuda(3, 4)
        torch.testing.assert_close(run(a, b, executor="nvfuser"), torch.sigmoid(a) * b)
    assert len(traces) == 1 and launches() == before + 3


def test_a_definition() -> None:
    with FusionDefinition() as fd:
        x = fd.define_tensor(2)
        fd.add_output(fd.ops.sum(fd.ops.relu(x) * 3.0, [1]))
    before, x = launches(), cuda(16, 33)
    (out,) = fd.execute([x], on_error="raise")
    torch.testing.assert_close(out, (x.relu() * 3).sum(1))
    assert launches() == before + 1


def test_dumps_of_cuda_kernels(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    x = cuda(64, 100)
    gm = make_fx(lambda x: torch.softmax(x * 2.125, -1))(x)
    capfd.readouterr()
    execute(gm, x, executor_parameters={**RAISE, "dump": ["cuda_kernel", "cuda_to_file", "ptx", "sass", "launch_param"]})
    text = capfd.readouterr().out
    name = re.search(r"^FXF_KERNEL\([\d, ]+\) (fxfuser_normalization_\w+)\(", text, re.M)
    assert name is not None, text
    assert re.search(rf"^\.visible \.entry {name[1]}\(", text, re.M)
    assert re.search(rf"^Launch Parameters: kernel\d+ {name[1]}: BlockDim.x = \d+, .*GridDim.x = \d+, .*Smem Size = \d+$", text, re.M)
    assert "FXF_KERNEL" in (tmp_path / f"{name[1]}.cu").read_text()
    assert "EXIT" in text or "no disassembler answers" in text


def test_bandwidth_of_each_launch(capfd: pytest.CaptureFixture[str]) -> None:
    x = cuda(1 << 12, 1 << 12)
    gm = make_fx(lambda x: x * 2 + 1)(x)
    options = {**RAISE, "dump": "dump_eff_bandwidth"}
    execute(gm, x, executor_parameters=options)
    capfd.readouterr()
    before = launches()
    for _ in range(5):
        check_close(execute(gm, x, executor_parameters=options), gm(x), "timed")
    lines = LINE.findall(capfd.readouterr().out)
    assert len(lines) == launches() - before == 5
    for milliseconds, achieved in lines:
        assert float(achieved) == pytest.approx(2 * x.nbytes / float(milliseconds) / 1e6, rel=1e-4 / float(milliseconds) + 1e-3)
        assert float(achieved) < 20_000


def test_bandwidth_leaves_a_capture_whole(capfd: pytest.CaptureFixture[str]) -> None:
    x = cuda(256, 256)
    gm = make_fx(lambda x: x * 2 + 1)(x)
    options = {**RAISE, "dump": "dump_eff_bandwidth"}
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        execute(gm, x, executor_parameters=options)
    torch.cuda.synchronize()
    capfd.readouterr()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        out = execute(gm, x, executor_parameters=options)
    assert re.fullmatch(rf"kernel\d+ captured in a CUDA graph, {2 * x.nbytes} bytes: its time is not known here\n", capfd.readouterr().out)
    x.add_(1)
    graph.replay()
    torch.cuda.synchronize()
    check_close(out, gm(x), "replayed")


def test_a_group_as_a_definition(capfd: pytest.CaptureFixture[str]) -> None:
    x, weight = cuda(64, 48).half(), cuda(48).half()
    fn = lambda x, weight: torch.softmax(torch.nn.functional.gelu(x * 2) * weight, -1)  # noqa: E731
    gm = make_fx(fn)(x, weight)
    capfd.readouterr()
    execute(gm, x, weight, executor_parameters={**RAISE, "dump": ["python_definition"]})
    text = capfd.readouterr().out
    scope: dict[str, Any] = {"FusionDefinition": FusionDefinition, "DataType": fxfuser.DataType, "torch": torch}
    exec(text, scope)  # noqa: S102
    with FusionDefinition() as fd:
        next(scope[name] for name in scope if name.startswith("fusion_group"))(fd)
    before = launches()
    (again,) = fd.execute([x, weight], strict=True)
    assert launches() > before
    check_against_reference(again, gm(x, weight), fn(x.double(), weight.double()), text)  # its casts round where eager does


def test_a_pack_made_without_loading_serves_the_device(tmp_path: Path) -> None:
    x = cuda(96, 40)
    gm = make_fx(lambda x: torch.softmax(x * 1.65625, -1).sum(0))(x)
    major, minor = torch.cuda.get_device_capability()
    count = fxfuser.warm(gm, tmp_path / "pack", arch=f"sm_{major}{minor}")
    fxfuser.clear_caches(disk=True)
    assert fxfuser.load_cache(tmp_path / "pack") == count
    before = fxfuser.stats()["compiles"]
    assert ran(gm, x) > 0
    assert fxfuser.stats()["compiles"] == before
