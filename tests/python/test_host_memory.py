"""Memory of large CPU outputs is kept for the next ones: reused, bounded, given back, and a tensor in it is like any other."""

from __future__ import annotations

import io
import os
import pickle
import threading
import time
from typing import Any

import fxfuser
import pytest
import torch
from fxfuser import execute
from torch.fx.experimental.proxy_tensor import make_fx

MIB = 2**20
COUNT = 4 * MIB // 4  # floats in 4 MiB

GM = make_fx(lambda x: torch.relu(x * 2 + 1))(torch.randn(COUNT))


def run(x: torch.Tensor, **parameters: Any) -> torch.Tensor:
    before = fxfuser.stats()["launches"]["host"]
    out = execute(GM, x, executor_parameters=parameters)
    assert fxfuser.stats()["launches"]["host"] == before + 1
    return out


def memory() -> dict[str, int]:
    return fxfuser.stats()["host_memory"]


@pytest.fixture(autouse=True)
def nothing_kept() -> None:
    fxfuser.clear_caches()


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(COUNT)


def test_the_next_call_writes_where_a_dead_output_lay(x: torch.Tensor) -> None:
    before = memory()
    out = run(x)
    address = out.data_ptr()
    assert memory()["fresh"] == before["fresh"] + 1
    del out
    for _ in range(3):
        out = run(x)
        assert out.data_ptr() == address
        assert torch.equal(out, GM(x))
        del out
    assert memory()["reused"] == before["reused"] + 3


def test_a_living_output_is_never_written_again(x: torch.Tensor) -> None:
    held = [(run(x + i), GM(x + i)) for i in range(4)]
    view = run(x)[7:]
    expected = GM(x)[7:]
    for i in range(6):
        run(x - i)
    assert len({out.data_ptr() for out, _ in held}) == 4
    assert all(torch.equal(out, right) for out, right in held) and torch.equal(view, expected)


def test_no_more_is_kept_than_was_asked(x: torch.Tensor) -> None:
    held = [run(x, host_memory=9) for _ in range(5)]
    del held
    assert 8 * MIB <= memory()["kept_bytes"] <= 9 * MIB
    run(x, host_memory=3)
    assert memory()["kept_bytes"] <= 3 * MIB


def test_zero_leaves_all_to_pytorch(x: torch.Tensor) -> None:
    before = memory()
    run(x, host_memory=0)
    assert memory() == before and before["kept_bytes"] == 0


def test_small_outputs_are_pytorchs_own() -> None:
    gm, before = make_fx(lambda x: x * 2 + 1)(torch.randn(64)), memory()
    execute(gm, torch.randn(64))
    assert memory() == before


@pytest.mark.parametrize("value", [-1, True, 2.5, "much"])
def test_other_values_are_refused(x: torch.Tensor, value: object) -> None:
    with pytest.raises((TypeError, ValueError), match="host_memory"):
        execute(GM, x, executor_parameters={"host_memory": value})


def test_given_back_after_a_second_of_rest(x: torch.Tensor) -> None:
    run(x)
    assert memory()["kept_bytes"] >= 4 * MIB
    time.sleep(0.3)
    assert memory()["kept_bytes"] >= 4 * MIB
    deadline = time.monotonic() + 5
    while memory()["kept_bytes"] > 0 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert memory()["kept_bytes"] == 0
    assert torch.equal(run(x), GM(x)), "and it goes on afterwards"


def test_given_back_with_the_caches(x: torch.Tensor) -> None:
    out = run(x)
    run(x)
    assert memory()["kept_bytes"] > 0
    fxfuser.clear_caches()
    assert memory()["kept_bytes"] == 0 and torch.equal(out, GM(x))


def test_many_threads(x: torch.Tensor) -> None:
    failures: list[str] = []

    def work(seed: int) -> None:
        mine = x + seed
        right = GM(mine)
        held = []
        for _ in range(25):
            held = [*held[-1:], execute(GM, mine)]
            if not all(torch.equal(out, right) for out in held):
                failures.append(f"thread {seed}")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == [] and memory()["reused"] > 0


def test_resize_and_set(x: torch.Tensor) -> None:
    out, right = run(x), GM(x)
    out.resize_(3 * COUNT)
    assert torch.equal(out[:COUNT], right)
    out[COUNT:] = 1
    out.resize_(16)
    assert torch.equal(out, right[:16])
    other = torch.zeros(8)
    other.set_(run(x))  # type: ignore[call-overload]
    assert torch.equal(other, right)
    out = run(x)
    out.untyped_storage().resize_(64)
    assert out.untyped_storage().nbytes() == 64 and torch.equal(torch.empty(0).set_(out.untyped_storage(), 0, (16,)), right[:16])


def test_pickle_save_and_deepcopy(x: torch.Tensor) -> None:
    out = run(x)
    assert torch.equal(pickle.loads(pickle.dumps(out)), out)
    file = io.BytesIO()
    torch.save(out, file)
    file.seek(0)
    assert torch.equal(torch.load(file), out)


def test_shared_memory(x: torch.Tensor) -> None:
    out, right = run(x), GM(x)
    out.share_memory_()
    assert out.is_shared() and torch.equal(out, right)
    assert memory()["kept_bytes"] >= 4 * MIB, "the block that was left is kept"


def test_numpy_and_dlpack_hold_the_memory(x: torch.Tensor) -> None:
    array, right = run(x).numpy(), GM(x)
    other = torch.from_dlpack(run(x))
    for i in range(3):
        run(x - i)
    assert (array == right.numpy()).all() and torch.equal(other, right)


def test_outputs_are_like_eagers(x: torch.Tensor) -> None:
    out, right = run(x), GM(x)
    assert out.untyped_storage().nbytes() == right.untyped_storage().nbytes()
    assert out._version == right._version and out.is_leaf and not out.is_inference() and out.storage_offset() == 0
    with torch.inference_mode():
        assert execute(GM, x).is_inference()
    out.add_(1)
    weight = out.requires_grad_()
    (weight * 2).sum().backward()
    assert weight.grad is not None and weight.grad.eq(2).all()


def test_strided_outputs_lie_in_it_too() -> None:
    x = torch.randn(8, 64, 64, 64).to(memory_format=torch.channels_last)
    gm, before = make_fx(lambda x: x * 2 + 1)(x), memory()
    for _ in range(2):
        out = execute(gm, x)
        assert out.stride() == x.stride() and torch.equal(out, x * 2 + 1)
        del out
    assert memory()["reused"] == before["reused"] + 1


def test_a_forked_child_uses_it_and_gives_it_back(x: torch.Tensor) -> None:
    held, right = run(x), GM(x)
    run(x)  # something is kept, and the thread that watches it lives in the parent
    child = os.fork()
    if child == 0:
        torch.set_num_threads(1)
        good = torch.equal(execute(GM, x), right) and torch.equal(held, right)
        deadline = time.monotonic() + 5
        while memory()["kept_bytes"] > 0 and time.monotonic() < deadline:
            time.sleep(0.1)
        os._exit(0 if good and memory()["kept_bytes"] == 0 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert torch.equal(held, right)
