"""Equal definitions are one fusion: what counts as equal, what is counted, what is forgotten, and who may define at once."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import fxfuser
import pytest
import torch
from definitions import host_launches
from fxfuser import DataType, Fusion, FusionCache, FusionDefinition

X = torch.linspace(-1, 1, 12)


@pytest.fixture(autouse=True)
def empty_cache() -> Any:
    FusionCache.reset()
    yield
    FusionCache.get(max_fusions=8192)
    FusionCache.reset()


def scaled(factor: Any, name: str = "mul", dtype: Any = DataType.Float) -> FusionDefinition:
    with FusionDefinition() as fd:
        fd.add_output(getattr(fd.ops, name)(fd.define_tensor(1, dtype), fd.define_constant(factor)))
    return fd


DIFFERENT: list[tuple[str, Callable[[], FusionDefinition]]] = [
    ("a float", lambda: scaled(2.0)),
    ("one bit more", lambda: scaled(2.0000000000000004)),
    ("an int", lambda: scaled(2)),
    ("a bool", lambda: scaled(True)),
    ("a complex number", lambda: scaled(2 + 0j)),
    ("zero", lambda: scaled(0.0)),
    ("minus zero", lambda: scaled(-0.0)),
    ("NaN", lambda: scaled(float("nan"))),
    ("another op", lambda: scaled(2.0, "add")),
    ("another dtype", lambda: scaled(2.0, dtype=DataType.Double)),
]


def test_records_compare_by_value() -> None:
    ids = [make().id() for _, make in DIFFERENT]
    assert len(set(ids)) == len(DIFFERENT)
    assert [make().id() for _, make in DIFFERENT] == ids
    stats = FusionCache.get().stats()
    assert (stats["hits"], stats["misses"], stats["num_fusions"]) == (len(DIFFERENT), len(DIFFERENT), len(DIFFERENT))


def test_a_hit_compiles_and_plans_nothing() -> None:
    torch.testing.assert_close(scaled(1.75).execute([X])[0], X * 1.75)
    before = fxfuser.stats()
    torch.testing.assert_close(scaled(1.75).execute([X])[0], X * 1.75)
    after = fxfuser.stats()
    assert after["launches"]["host"] == before["launches"]["host"] + 1
    assert (after["compiles"], after["plan_misses"], after["plan_hits"]) == (before["compiles"], before["plan_misses"], before["plan_hits"] + 1)


def test_the_cache_is_bounded_and_forgets_what_was_used_longest_ago() -> None:
    cache = FusionCache.get(max_fusions=2)
    first, second = scaled(1.0), scaled(2.0)
    first_id, second_id = first.id(), second.id()
    assert scaled(1.0).id() == first_id
    third_id = scaled(3.0).id()
    assert cache.num_fusions() == 2
    assert Fusion(first_id).id() == first_id and Fusion(third_id).id() == third_id
    with pytest.raises(RuntimeError, match="Invalid fusion id!"):
        Fusion(second_id)
    before = host_launches()
    torch.testing.assert_close(second.execute([X])[0], X * 2)  # who holds it can run it
    assert host_launches() == before + 1
    assert scaled(2.0).id() not in (first_id, second_id, third_id)
    assert cache.stats()["evictions"] == 2
    FusionCache.get(max_fusions=1)
    assert cache.num_fusions() == 1
    with pytest.raises(ValueError, match="at least one"):
        FusionCache.get(max_fusions=0)


def test_numbers_that_are_no_size_and_no_id() -> None:
    for size in (0, -1):
        with pytest.raises(ValueError, match="holds at least one"):
            FusionCache.get(max_fusions=size)
    for make in (Fusion, FusionDefinition):
        with pytest.raises(RuntimeError, match="Invalid fusion id! There is no fusion -1"):
            make(-1)


def test_counts_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    scaled(1.0), scaled(1.0), scaled(2.0)
    FusionCache.get().print_stats()
    assert capsys.readouterr().out == "fusions: 2 of at most 8192; lookups: 1 hits, 2 misses; evicted: 0\n"


def test_definitions_nest_and_the_outer_one_goes_on() -> None:
    with FusionDefinition() as outer:
        x = outer.define_tensor(1)
        y = x * 2.0
        with FusionDefinition() as inner:
            inner.add_output(inner.ops.exp(inner.define_tensor(1)))
        z = y + 1.0
        outer.add_output(z)
    before = host_launches()
    torch.testing.assert_close(outer.execute([X])[0], X * 2 + 1)
    torch.testing.assert_close(inner.execute([X])[0], X.exp())
    assert host_launches() == before + 2


def test_a_body_that_raises_leaves_no_trace() -> None:
    fusion = Fusion()
    fd = FusionDefinition(fusion)
    with pytest.raises(KeyError, match="user"):
        with fd:
            x = fd.define_tensor(1)
            fd.add_output(fd.ops.exp(x))
            raise KeyError("user")
    assert not fusion.defined()
    assert FusionCache.get().stats()["misses"] == 0
    with pytest.raises(RuntimeError, match="not open"):
        fd.ops.exp(x)
    with pytest.raises(RuntimeError, match="not open"):
        x + 1
    with fd:  # the same object may try again
        fd.add_output(fd.ops.exp(fd.define_tensor(1)))
    before = host_launches()
    torch.testing.assert_close(fusion.execute([X])[0], X.exp())
    assert host_launches() == before + 1


def test_threads_define_and_run_at_once() -> None:
    results: dict[int, Any] = {}
    start = threading.Barrier(6)

    def work(index: int) -> None:
        start.wait()
        try:
            fd = scaled(float(index % 3) + 0.25)
            results[index] = (fd.id(), fd.execute([X])[0])
        except Exception as error:  # reported below
            results[index] = error

    before = host_launches()
    threads = [threading.Thread(target=work, args=(index,)) for index in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for index in range(6):
        identifier, value = results[index]
        assert identifier == results[index % 3][0]
        torch.testing.assert_close(value, X * (index % 3 + 0.25))
    assert FusionCache.get().num_fusions() == 3 and host_launches() == before + 6


def test_clear_caches_keeps_definitions() -> None:
    fd = scaled(4.5)
    fd.execute([X])
    identifier = fd.id()
    fxfuser.clear_caches()
    assert Fusion(identifier).id() == identifier
    before = host_launches()
    torch.testing.assert_close(fd.execute([X])[0], X * 4.5)
    assert host_launches() == before + 1


def test_nothing_holds_a_dropped_definition() -> None:
    class Marked(FusionDefinition):
        pass

    import weakref

    fd = Marked()
    with fd:
        fd.add_output(fd.define_tensor(1) * 3.0)
    dead = weakref.ref(fd)
    del fd
    gc.collect()
    assert dead() is None
