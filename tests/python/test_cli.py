"""``python -m fxfuser``: what each subcommand says, and one clear line for input that it can't use."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch


class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x) * 2 + 1


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "fxfuser", *arguments], capture_output=True, text=True, timeout=120, env={**os.environ, **environment})


def refuses(result: subprocess.CompletedProcess[str], *words: str) -> None:
    """Exit code 2, nothing on stdout, one line that names what was seen."""
    assert result.returncode == 2, result
    assert result.stdout == "" and "Traceback" not in result.stderr, result
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, lines
    for word in words:
        assert word in lines[0], lines[0]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "net.pt2"
    torch.export.save(torch.export.export(Net(), (torch.randn(3, 4),)), path)
    return path


def test_explain(model: Path) -> None:
    result = run("explain", str(model))
    assert result.returncode == 0 and "fused share 100.0 %" in result.stdout, result
    data = json.loads(run("explain", str(model), "--json", "--target", "cuda").stdout)
    assert data["kernels"][0]["target"] == "cuda"


def test_explain_a_program_without_example_inputs(tmp_path: Path) -> None:
    program = torch.export.export(Net(), (torch.randn(3, 4),))
    program._example_inputs = None
    path = tmp_path / "bare.pt2"
    torch.export.save(program, path)
    result = run("explain", str(path))
    assert result.returncode == 0 and "fused share 100.0 %" in result.stdout, result


def test_explain_what_is_no_program(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.pt2")
    refuses(run("explain", missing), missing, "No such file")
    refuses(run("explain", str(tmp_path)), str(tmp_path), "directory")
    for name, content in (("empty.pt2", b""), ("text.pt2", b"hello"), ("zip.pt2", b"PK\x03\x04 broken")):
        path = tmp_path / name
        path.write_bytes(content)
        refuses(run("explain", str(path)), str(path), "torch.export.save")
    pickled = tmp_path / "tensor.pt2"
    torch.save(torch.ones(3), pickled)
    refuses(run("explain", str(pickled)), str(pickled), "torch.export.save")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_explain_an_unreadable_file(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "closed.pt2"
    path.write_bytes(model.read_bytes())
    path.chmod(0)
    refuses(run("explain", str(path)), str(path), "Permission denied")


@pytest.mark.parametrize("arguments", [(), ("nothing",), ("explain",), ("explain", "x.pt2", "--target", "tpu"), ("cache",), ("cache", "burn"), ("doctor", "now")], ids=" ".join)
def test_arguments_that_do_not_parse(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.returncode == 2 and "usage:" in result.stderr and "Traceback" not in result.stderr, result


def test_ops() -> None:
    assert "aten.relu.default" in run("ops", "relu").stdout
    result = run("ops", "no_such_op")
    assert result.returncode == 1 and result.stdout == "" and "no_such_op" in result.stderr, result


def test_cache(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    assert run("doctor", FXFUSER_CACHE_DIR=str(folder)).returncode == 0  # compiles a kernel
    assert any(folder.glob("*.bin"))
    listed = run("cache", "list", FXFUSER_CACHE_DIR=str(folder))
    assert listed.returncode == 0 and ".bin" in listed.stdout and str(folder) in listed.stdout
    cleared = run("cache", "clear", FXFUSER_CACHE_DIR=str(folder))
    assert cleared.returncode == 0 and not any(folder.glob("*.bin"))


@pytest.mark.parametrize("action", ["list", "clear"])
def test_cache_without_a_folder(action: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    result = run("cache", action, FXFUSER_CACHE_DIR=str(file))
    assert result.returncode == 1 and result.stdout == "" and f"{file} is not a folder" in result.stderr, result
    assert len(result.stderr.strip().splitlines()) == 1
    result = run("cache", action, FXFUSER_DISABLE="disk_cache")
    assert result.returncode == 1 and "switched off" in result.stderr, result


def test_doctor_tells_what_is_not_used(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    result = run("doctor", FXFUSER_CACHE_DIR=str(file), CXX="/nonexistent/c++ -x")
    assert result.returncode == 0, result
    rows = {line.split("  ")[0].strip(): line for line in result.stdout.splitlines()}
    assert "off" in rows["cache"] and f"{file} is not a folder" in rows["cache"]
    assert "/nonexistent/c++ -x" in rows["CXX"] and "does not run" in rows["CXX"]
    assert " ok " in rows["host kernel"]
