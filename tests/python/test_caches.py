"""The kernel cache on disk: used, distrusted where it should be, and one compile a kernel among processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import warnings, torch, fxfuser
from torch.fx.experimental.proxy_tensor import make_fx
x = torch.randn(64, 96)
gm = make_fx(lambda x: torch.softmax(x * 2.5, -1))(x)
out = fxfuser.execute(gm, x)
torch.testing.assert_close(out, gm(x))
stats = fxfuser.stats()
assert stats["launches"]["host"] == 1
print(stats["compiles"], stats["kernel_disk_hits"])
"""


def start(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "FXFUSER_CACHE_DIR": str(folder)})


def finish(process: subprocess.Popen[str]) -> tuple[int, int]:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err[-2000:]
    compiles, hits = out.split()
    return int(compiles), int(hits)


def test_second_process_compiles_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    assert finish(start(folder)) == (1, 0)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert finish(start(folder)) == (0, 1)


def test_processes_that_start_together_compile_once(tmp_path: Path) -> None:
    processes = [start(tmp_path / "cache") for _ in range(8)]
    results = [finish(process) for process in processes]
    assert sum(compiles for compiles, _ in results) == 1, results


def test_damaged_entries_are_compiled_again(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    finish(start(folder))
    entries = list(folder.glob("*.bin"))
    assert entries
    for entry in entries:
        data = bytearray(entry.read_bytes())
        data[-100] ^= 0xFF
        entry.write_bytes(bytes(data))
    assert finish(start(folder)) == (1, 0)
    for entry in folder.glob("*.bin"):
        entry.write_bytes(entry.read_bytes()[:200])
    assert finish(start(folder)) == (1, 0)


def test_links_and_entries_that_others_may_write_are_not_loaded(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    finish(start(folder))
    for entry in folder.glob("*.bin"):
        entry.chmod(0o666)
    assert finish(start(folder))[0] == 1
    for entry in folder.glob("*.bin"):
        kept = tmp_path / "elsewhere.bin"
        entry.rename(kept)
        entry.symlink_to(kept)
    assert finish(start(folder))[0] == 1


def test_a_folder_that_others_may_write_is_not_used(tmp_path: Path) -> None:
    parent = tmp_path / "open"
    parent.mkdir()
    parent.chmod(0o777)
    assert finish(start(parent / "cache")) == (1, 0)
    assert finish(start(parent / "cache")) == (1, 0), "nothing may be kept under a folder that others can write"
