"""The code-generation library is no dependency: Python takes the road of a C++ program (tests/cpp/interface), and without the
library ``"aten"`` still works and everything else says what was tried."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "build" / "python" / "fxfuser"
LIBRARY = PACKAGE / "libfxfuser_codegen.so"
pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="build/ is not a build tree")

PROGRAM = """
import torch
from torch.fx.experimental.proxy_tensor import make_fx
import fxfuser
gm, x = make_fx(lambda x: x.sigmoid() * 2)(torch.rand(8)), torch.rand(8)
"""
MISSING = """
for run in (lambda: fxfuser.execute(gm, x, executor="aten"), lambda: fxfuser.execute(gm, x, executor="aten", executor_parameters={"rounding": "eager"}), lambda: fxfuser.prepare(gm, executor="aten")(x)):
    torch.testing.assert_close(run(), gm(x))
print("ATen runs")
for run in (lambda: fxfuser.execute(gm, x), lambda: fxfuser.execute(gm, x, executor="strictly_nvfuser"), fxfuser.stats):
    try:
        run()
    except RuntimeError as error:
        print(error)
"""
PRESENT = """
torch.testing.assert_close(fxfuser.execute(gm, x), gm(x))
print(fxfuser.stats()["launches"]["host"], "launch")
"""


def python(program: str, path: Path, cwd: Path, **environment: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=cwd, env={**os.environ, "PYTHONPATH": str(path), **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package without its library."""
    folder = tmp_path_factory.mktemp("alone")
    shutil.copytree(PACKAGE, folder / "fxfuser", ignore=shutil.ignore_patterns(LIBRARY.name, "__pycache__"))
    return folder


def test_without_the_library_aten_works_and_the_rest_says_what_was_tried(alone: Path, tmp_path: Path) -> None:
    (tmp_path / LIBRARY.name).symlink_to(LIBRARY)
    out = python(PROGRAM + MISSING, alone, cwd=tmp_path)  # the current folder is not searched
    assert out.startswith("ATen runs\n"), out
    assert out.count("the code-generation library could not be loaded; tried:") == 3, out
    assert f"\n  {alone}/fxfuser/{LIBRARY.name}: cannot open shared object file" in out


def test_a_foreign_library_beside_the_package_is_refused_at_the_call(alone: Path, tmp_path: Path) -> None:
    shutil.copytree(alone / "fxfuser", tmp_path / "fxfuser")
    shutil.copy(ROOT / "build" / "tests" / "libfxf_other_torch.so", tmp_path / "fxfuser" / LIBRARY.name)
    out = python(PROGRAM + MISSING, tmp_path, cwd=tmp_path)
    assert out.startswith("ATen runs\n") and out.count("was built for torch 2.10.0, this program for 2.11") == 3, out


def test_the_variable_names_the_library(alone: Path, tmp_path: Path) -> None:
    assert python(PROGRAM + PRESENT, alone, cwd=tmp_path, FXFUSER_LIBRARY=str(LIBRARY)).strip() == "1 launch"


@pytest.mark.skipif(shutil.which("readelf") is None, reason="readelf is not on the PATH")
@pytest.mark.parametrize("name", ["_C", "program"])
def test_nothing_links_the_library(name: str) -> None:
    file = ROOT / "build" / "tests" / "fxfuser_interface_tests" if name == "program" else next(PACKAGE.glob("_C*.so"))
    text = subprocess.run(["readelf", "-d", file], capture_output=True, text=True, check=True).stdout
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", text)
    assert any("torch" in item for item in needed) and not [item for item in needed if "fxfuser" in item], needed
    assert name == "_C" or not [item for item in needed if "python" in item]
