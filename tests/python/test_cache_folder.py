"""Which folder the kernel cache trusts, and what is said of a folder or compiler that is not used. Nothing that exists is changed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = """
import sys, warnings, torch, fxfuser
from torch.fx.experimental.proxy_tensor import make_fx
told = []
warnings.showwarning = lambda message, category, *rest: told.append((category, str(message)))
warnings.simplefilter("always")
x = torch.randn(64, 96)
for width in (0, 1):
    gm = make_fx(lambda x: torch.tanh(x * 2.5) + width)(x)
    for _ in range(2):
        torch.testing.assert_close(fxfuser.execute(gm, x), gm(x))
assert fxfuser.stats()["launches"]["host"] == int(sys.argv[1])
assert all(category is fxfuser.FallbackWarning for category, _ in told), told
for _, text in told:
    print(text)
"""


def warnings_of(launched: int = 4, **environment: str) -> list[str]:
    """The warnings of two graphs, called twice each, in a process of its own; `launched` kernels must run."""
    process = subprocess.run([sys.executable, "-c", SCRIPT, str(launched)], capture_output=True, text=True, timeout=120, env={**os.environ, **environment})
    assert process.returncode == 0, process.stderr[-2000:]
    return process.stdout.splitlines()


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def open_folder(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)


def sticky_folder(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o1777)


def link(folder: Path) -> None:
    target = folder.with_name("target")
    target.mkdir(mode=0o700)
    folder.symlink_to(target)


def file(folder: Path) -> None:
    folder.write_text("")


def below_a_file(folder: Path) -> None:
    pass


def foreign(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    os.chown(folder, 12345, -1)


UNUSABLE: dict[str, tuple[Callable[[Path], None], str]] = {
    "open to all": (open_folder, "can be written by other users (chmod 700"),
    "sticky and open": (sticky_folder, "can be written by other users"),
    "a link": (link, "is a link"),
    "a link with a slash": (link, "is a link"),
    "a file": (file, "is not a folder"),
    "of another user": (foreign, "belongs to another user"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_folders_that_are_not_used(name: str, tmp_path: Path) -> None:
    if name == "of another user" and os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    make, words = UNUSABLE[name]
    folder = tmp_path / "cache"
    make(folder)
    before = (mode(folder), folder.is_symlink(), folder.stat().st_uid)
    told = warnings_of(FXFUSER_CACHE_DIR=str(folder) + ("/" if "slash" in name else ""))
    assert len(told) == 1 and words in told[0] and str(folder) in told[0] and "set FXFUSER_CACHE_DIR to a folder of your own" in told[0], told
    assert before == (mode(folder), folder.is_symlink(), folder.stat().st_uid), "what exists is not changed"
    assert not folder.is_dir() or not any(folder.iterdir())


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    told = warnings_of(FXFUSER_CACHE_DIR=str(tmp_path / "file" / "cache"))
    assert len(told) == 1 and "can't be made: Not a directory" in told[0], told


def test_a_parent_that_others_may_write(tmp_path: Path) -> None:
    parent = tmp_path / "open"
    open_folder(parent)
    told = warnings_of(FXFUSER_CACHE_DIR=str(parent / "cache"))
    assert len(told) == 1 and f"{parent} can be written by other users" in told[0], told
    assert mode(parent) == 0o777


def test_folders_that_are_used(tmp_path: Path) -> None:
    readable = tmp_path / "readable"
    readable.mkdir()
    readable.chmod(0o755)
    (tmp_path / "short").symlink_to(tmp_path)  # a link on the way is resolved once
    for folder in (readable, tmp_path / "new" / "deep", tmp_path / "short" / "other"):
        assert warnings_of(FXFUSER_CACHE_DIR=str(folder)) == []
        assert any(folder.glob("*.bin"))
    assert mode(readable) == 0o755, "what exists is not changed"
    assert mode(tmp_path / "new") == mode(tmp_path / "new" / "deep") == 0o700, "what is made is closed"


def test_no_home_and_a_cache_that_is_switched_off(tmp_path: Path) -> None:
    told = warnings_of(FXFUSER_CACHE_DIR="", XDG_CACHE_HOME="", HOME="")
    assert len(told) == 1 and "no home folder" in told[0], told
    assert warnings_of(FXFUSER_DISABLE="disk_cache", FXFUSER_CACHE_DIR=str(tmp_path / "unused")) == []
    assert not (tmp_path / "unused").exists()


def test_a_compiler_that_does_not_run_is_told(tmp_path: Path) -> None:
    silent = tmp_path / "broken"
    silent.write_text("#!/bin/sh\nexit 3\n")
    silent.chmod(0o700)
    for command in ("/nonexistent", str(silent), "/nonexistent -O2"):
        told = warnings_of(CXX=command, FXFUSER_CACHE_DIR=str(tmp_path / "cache"))
        assert len(told) == 1 and f"CXX is '{command}', which does not run: " in told[0] and "is used instead" in told[0], told
    assert warnings_of(CXX="g++", FXFUSER_CACHE_DIR=str(tmp_path / "cache")) == []


def test_no_compiler_at_all() -> None:
    told = warnings_of(launched=0, CXX="/nonexistent", PATH="/nonexistent")
    assert len(told) == 1, told
    assert "fallback to aten executor" in told[0] and "tried /nonexistent, g++" in told[0], told
