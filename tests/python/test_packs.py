"""Packs: kernels that are compiled beforehand, for this machine or for a GPU that is not there, and read in another process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import fxfuser
import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

MODEL = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.line = torch.nn.LayerNorm(16), torch.nn.Linear(16, 16)
    def forward(self, x):
        return torch.softmax(self.line(self.norm(torch.nn.functional.gelu(self.line(x) * 1.90625))), -1)
torch.manual_seed(0)
model, x = Model().eval().requires_grad_(False), torch.rand(6, 16)
"""
SAVE = MODEL + """
import sys
with torch.no_grad():
    torch.export.save(torch.export.export(model, (x,)), sys.argv[1])
"""
RUN = MODEL + """
import sys, fxfuser
if sys.argv[2:]:
    print("usable", fxfuser.load_cache(sys.argv[2]))
gm = torch.export.load(sys.argv[1]).module()
with torch.no_grad():
    torch.testing.assert_close(fxfuser.execute(gm, x), gm(x))
stats = fxfuser.stats()
assert stats["launches"]["host"] > 0
print("compiles", stats["compiles"], "disk_hits", stats["kernel_disk_hits"], "launches", stats["launches"]["host"])
"""


def python(*arguments: str, cache: Path, code: int = 0, **environment: str) -> str:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=240, env={**os.environ, "FXFUSER_CACHE_DIR": str(cache), **environment})
    assert done.returncode == code, done.stdout + done.stderr[-2000:]
    return done.stdout + (done.stderr if code else "")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model.pt2"
    python("-c", SAVE, str(path), cache=path.parent / "cache")
    return path


def test_a_pack_for_the_host_leaves_nothing_to_compile(saved: Path, tmp_path: Path) -> None:
    pack = tmp_path / "pack"
    told = python("-m", "fxfuser", "warm", str(saved), "--out", str(pack), cache=tmp_path / "first")
    count = len(list(pack.glob("*.bin")))
    assert told == f"{count} kernels for host in {pack}\n" and count > 0
    assert not list((tmp_path / "first").glob("*.bin")), "the pack is not the cache folder"
    cold = python("-c", RUN, str(saved), cache=tmp_path / "second")
    assert f"compiles {count} disk_hits 0" in cold
    before = sorted((path.name, path.stat().st_mtime_ns) for path in pack.iterdir())
    pack.chmod(0o500)
    warm = python("-c", RUN, str(saved), str(pack), cache=tmp_path / "third")
    pack.chmod(0o700)
    assert f"usable {count}" in warm and f"compiles 0 disk_hits {count}" in warm
    assert sorted((path.name, path.stat().st_mtime_ns) for path in pack.iterdir()) == before, "a pack is read only"


def test_an_entry_that_is_damaged_is_compiled_anew(saved: Path, tmp_path: Path) -> None:
    pack = tmp_path / "pack"
    python("-m", "fxfuser", "warm", str(saved), "--out", str(pack), cache=tmp_path / "first")
    first, *rest = sorted(pack.glob("*.bin"))
    first.write_bytes(first.read_bytes()[:-7])
    told = python("-c", RUN, str(saved), str(pack), cache=tmp_path / "second")
    assert f"usable {len(rest)}" in told and "compiles 1 " in told


def test_kernels_for_other_flags_do_not_fit(saved: Path, tmp_path: Path) -> None:
    """The key of an entry holds version, compiler, flags and the processor's features, and is compared in full."""
    pack = tmp_path / "pack"
    python("-m", "fxfuser", "warm", str(saved), "--out", str(pack), cache=tmp_path / "first")
    for path in pack.glob("*.bin"):
        text = path.read_bytes()
        path.write_bytes(text.replace(b"fxfuser 0.1.0\n", b"fxfuser 0.0.9\n", 1))
    told = python("-c", RUN, str(saved), str(pack), cache=tmp_path / "second", code=1)
    assert "ValueError: none of the" in told and "fxfuser 0.0.9" in told and "here it is:\nfxfuser 0.1.0" in told


def other_writes(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)


def link(folder: Path) -> None:
    folder.with_name("target").mkdir(mode=0o700)
    folder.symlink_to(folder.with_name("target"))


@pytest.mark.parametrize(("make", "text"), [(other_writes, "can be written by other users"), (link, "is a link"), (lambda folder: None, "can't be read"), (Path.mkdir, "holds no compiled kernels")],
                         ids=["open", "link", "absent", "empty"])
def test_folders_that_are_no_packs(make: Callable[[Path], None], text: str, tmp_path: Path) -> None:
    make(tmp_path / "pack")
    with pytest.raises(ValueError, match=text):
        fxfuser.load_cache(tmp_path / "pack")


def test_a_pack_for_a_gpu_that_is_not_there_holds_what_a_plan_for_it_asks_for(tmp_path: Path) -> None:
    try:
        fxfuser._C.compile_cuda("nothing", 'extern "C" __global__ void nothing() {}', 90)
    except RuntimeError as error:
        pytest.skip(f"needs NVRTC: {error}")
    x = torch.rand(8, 32)
    gm = make_fx(lambda x: torch.softmax(torch.nn.functional.gelu(x) * 1.71875, -1).sum(0))(x)
    count = fxfuser.warm(gm, tmp_path / "pack", arch="sm_90")
    names = {kernel["name"] for kernel in fxfuser.explain(gm, target="cuda").data["kernels"]}
    entries = [path.read_bytes() for path in (tmp_path / "pack").glob("*.bin")]
    assert len(entries) == count and names
    for name in names:
        (entry,) = [entry for entry in entries if f" {name}(".encode() in entry.split(b"\x7fELF")[0]]
        assert b"sm_90" in entry.split(name.encode())[0] and b"\x7fELF" in entry, "the machine code comes behind its key"
    assert fxfuser.warm(gm, tmp_path / "pack", arch="sm_90") == count
    assert len(list((tmp_path / "pack").glob("*.bin"))) == count


def test_arguments_that_make_no_sense(saved: Path, tmp_path: Path) -> None:
    gm = make_fx(torch.sigmoid)(torch.rand(3))
    with pytest.raises(ValueError, match="arch is 'sm_9x'; it can be 'host', or 'sm_90'"):
        fxfuser.warm(gm, tmp_path / "pack", arch="sm_9x")
    with pytest.raises(TypeError, match="GraphModule"):
        fxfuser.warm(torch.nn.Linear(2, 2), tmp_path / "pack")  # type: ignore[arg-type]
    told = python("-m", "fxfuser", "warm", str(saved), "--arch", "gpu", "--out", str(tmp_path / "pack"), cache=tmp_path / "cache", code=2)
    assert "arch is 'gpu'" in told
    told = python("-m", "fxfuser", "warm", str(tmp_path / "no.pt2"), "--out", str(tmp_path / "pack"), cache=tmp_path / "cache", code=2)
    assert "can't be read" in told


def test_the_example_of_the_page_runs(tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "caches.md").read_text()
    (code,) = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    told = python("-c", code + "\nprint(fxfuser.stats()['launches']['host'], fxfuser.stats()['compiles'])", cache=tmp_path / "cache")
    assert told.split() == ["1", "1"], "one compile, into the pack"
