"""Definitions on CUDA tensors: one fusion for both devices, factories beside the inputs, writes into an input."""

from __future__ import annotations

import fxfuser
import torch
from fxfuser import DataType, Fusion, FusionDefinition


def launches(target: str) -> int:
    return int(fxfuser.stats()["launches"][target])


def test_one_fusion_runs_on_both_devices() -> None:
    fusion = Fusion()
    with FusionDefinition(fusion) as fd:
        x = fd.define_tensor(2)
        centred = x - fd.ops.broadcast(fd.ops.sum(x, [1]) / x.size(1), [False, True])
        fd.add_output(fd.ops.relu(centred) + fd.ops.iota(32, dtype=DataType.Float))
    for device, target in (("cuda", "cuda"), ("cpu", "host")):
        x = torch.randn(48, 32, device=device)
        before = launches(target)
        (out,) = fusion.execute([x], on_error="raise")
        assert launches(target) > before
        torch.testing.assert_close(out, (x - x.mean(1, keepdim=True)).relu() + torch.arange(32.0, device=device))


def test_alias_input_is_written_on_the_device() -> None:
    x, total = torch.randn(64, 96, device="cuda", dtype=torch.float16), torch.zeros(96, device="cuda")
    with FusionDefinition() as fd:
        t, acc = fd.from_pytorch(x), fd.from_pytorch(total)
        fd.add_output(acc + fd.ops.sum(fd.ops.cast(t, DataType.Float), [0]), alias_input=acc)
        fd.add_output(fd.ops.cast(t * 2.0, DataType.Half))
    before = launches("cuda")
    (out,) = fd.execute([x, total])
    assert launches("cuda") > before
    torch.testing.assert_close(out, x * 2)
    torch.testing.assert_close(total, x.float().sum(0))
    fd.validate([x, total])


def test_scalars_and_cpu_scalars_beside_the_device() -> None:
    x = torch.randn(1024, device="cuda")
    with FusionDefinition() as fd:
        t, s, c = fd.from_pytorch(x), fd.define_scalar(), fd.define_tensor([], [], is_cpu=True)
        flag = fd.define_scalar(DataType.Bool)
        fd.add_output(fd.ops.where(flag, t * s + c, t))
    for flag_given in (True, False):
        before = launches("cuda")
        (out,) = fd.execute([x, 1.5, torch.tensor(2.0), flag_given])
        assert launches("cuda") > before
        torch.testing.assert_close(out, x * 1.5 + 2 if flag_given else x)


def test_factories_without_inputs_take_the_device_that_is_named() -> None:
    with FusionDefinition() as fd:
        fd.add_output(fd.ops.full([3], 2.0, DataType.Float) + fd.ops.iota(3, dtype=DataType.Float))
    (out,) = fd.execute([], device="cuda")
    torch.testing.assert_close(out, torch.tensor([2.0, 3.0, 4.0], device="cuda"))
