"""What an install holds and needs. The build tree is the checkout's; docs/packaging.md has the commands for pip and wheels."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
PACKAGE = BUILD / "python"

needs_cmake = pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not on the PATH")
needs_readelf = pytest.mark.skipif(shutil.which("readelf") is None, reason="readelf is not on the PATH")
needs_build = pytest.mark.skipif(not (BUILD / "cmake_install.cmake").exists(), reason="build/ is not a build tree")


def run(command: list[str | Path], **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs outside the checkout, so that nothing is found by the current folder."""
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd="/", env={**os.environ, **environment})


def checked(command: list[str | Path], **environment: str) -> str:
    done = run(command, **environment)
    assert done.returncode == 0, done.stdout
    return done.stdout


def configure(source: Path, build: Path, *definitions: str, **environment: str) -> tuple[int, str]:
    """CMake's exit status and output, the latter on one line (CMake wraps its messages)."""
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    done = run(["cmake", "-S", source, "-B", build, *generator, f"-DFXFUSER_PYTHON={sys.executable}", *definitions], **environment)
    return done.returncode, " ".join(done.stdout.split())


def configure_fxfuser(build: Path, *definitions: str, **environment: str) -> tuple[int, str]:
    return configure(ROOT, build, "-DFXFUSER_BUILD_TESTS=OFF", *definitions, **environment)


def dynamic(file: Path, tag: str) -> list[str]:
    """The values of one tag of a file's dynamic section."""
    return re.findall(rf"\({tag}\).*\[(.*)\]", checked(["readelf", "-d", file]))


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An install tree of the C++ side."""
    folder = tmp_path_factory.mktemp("prefix")
    checked(["cmake", "--install", BUILD, "--prefix", folder])
    return folder


@pytest.fixture
def other_torch(tmp_path: Path) -> str:
    """A PYTHONPATH folder with a torch package of another series."""
    package = tmp_path / "other" / "torch"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "version.py").write_text("__version__ = '2.10.0'\n")
    return str(package.parent)


@needs_build
@needs_cmake
@needs_readelf
def test_a_cpp_program_against_the_install_tree(prefix: Path, tmp_path: Path) -> None:
    build = tmp_path / "app"
    code, text = configure(ROOT / "examples" / "cpp", build, f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror")
    assert code == 0, text
    checked(["cmake", "--build", build])
    program = build / "app"
    out = checked([program], FXFUSER_CACHE_DIR=str(tmp_path / "cache"))
    assert re.search(r"kernel fxfuser_\w+: 1 launch\n", out) and "equal to ATen: yes" in out
    assert not [name for name in dynamic(program, "NEEDED") if re.search("fxfuser|python", name)]

    library = next(prefix.rglob("libfxfuser_codegen.so"))
    moved = library.rename(tmp_path / library.name)
    try:
        lost = subprocess.run([program], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, "LD_LIBRARY_PATH": ":"})
        assert lost.returncode == 1 and "could not be loaded; tried:" in lost.stdout, "the current folder must not be searched"
        assert "equal to ATen: yes" in checked([program], FXFUSER_LIBRARY=str(moved))
    finally:
        shutil.move(moved, library)


@needs_cmake
def test_a_cpp_program_may_add_the_source_folder(tmp_path: Path) -> None:
    code, text = configure(ROOT / "examples" / "cpp", tmp_path, f"-DFXFUSER_SOURCE={ROOT}")
    assert code == 0, text


@needs_build
@needs_cmake
@needs_readelf
def test_run_paths_of_an_install_are_relative(prefix: Path, tmp_path: Path) -> None:
    checked(["cmake", "--install", BUILD, "--prefix", tmp_path, "--component", "python"])
    libraries = [*tmp_path.rglob("*.so"), *prefix.rglob("*.so")]
    assert len(libraries) == 3
    for library in libraries:
        for path in ":".join(dynamic(library, "RUNPATH") + dynamic(library, "RPATH")).split(":"):
            assert path.startswith("$ORIGIN"), f"{library.name}: {path}"


@needs_build
def test_without_a_compiler_one_warning_and_the_right_answer(tmp_path: Path) -> None:
    program = """
import warnings
import torch
from torch.fx.experimental.proxy_tensor import make_fx
import fxfuser

x = torch.randn(64, 256)
gm = make_fx(lambda x: torch.sigmoid(x) * 2 + 1)(x)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    for _ in range(2):
        torch.testing.assert_close(fxfuser.execute(gm, x, executor="nvfuser"), gm(x))
for warning in told:
    print(warning.category.__name__, warning.message)
"""
    out = checked([sys.executable, "-c", program], PATH="/nonexistent", CXX="", PYTHONPATH=str(PACKAGE), FXFUSER_CACHE_DIR=str(tmp_path))
    assert out.count("FallbackWarning") == 1 and "fallback to aten executor" in out and len(out.strip().splitlines()) == 1, out


@needs_cmake
def test_cmake_names_both_torch_versions(other_torch: str, tmp_path: Path) -> None:
    code, text = configure_fxfuser(tmp_path / "build", PYTHONPATH=other_torch)
    assert code != 0
    assert re.search(r"fxfuser \d\S* is built for torch 2\.11\.x, but \S+ has torch 2\.10\.0\.", text), text


@needs_build
@needs_cmake
def test_the_cmake_package_names_both_torch_versions(prefix: Path, other_torch: str, tmp_path: Path) -> None:
    code, text = configure(ROOT / "examples" / "cpp", tmp_path / "app", f"-DCMAKE_PREFIX_PATH={prefix}", PYTHONPATH=other_torch)
    assert code != 0
    assert re.search(r"fxfuser \d\S* is built for torch 2\.11\.x, but \S+ has torch 2\.10\.0\.", text), text


@needs_build
def test_import_names_both_torch_versions(other_torch: str) -> None:
    done = run([sys.executable, "-c", "import fxfuser"], PYTHONPATH=os.pathsep.join((other_torch, str(PACKAGE))))
    assert done.returncode != 0
    assert re.fullmatch(r"ImportError: fxfuser \d\S* is built for torch 2\.11\.x, but torch 2\.10\.0 is installed", done.stdout.strip().splitlines()[-1])


@needs_cmake
@pytest.mark.parametrize(
    ("choice", "ok", "message"),
    [
        ("off", True, "CUDA headers and NVRTC from off"),
        ("wheel", True, "CUDA headers and NVRTC from the packages that torch depends on"),
        ("auto", True, "CUDA headers and NVRTC from (toolkit|the packages that torch depends on|off)"),
        ("bogus", False, "FXFUSER_CUDA must be auto, toolkit, wheel or off, not 'bogus'"),
    ],
)
def test_where_cuda_headers_come_from(choice: str, ok: bool, message: str, tmp_path: Path) -> None:
    code, text = configure_fxfuser(tmp_path, f"-DFXFUSER_CUDA={choice}")
    if choice == "wheel" and "has no cuda.h and nvrtc.h" in text:
        pytest.skip("this torch came without the CUDA packages")
    assert (code == 0) == ok and re.search(message, text), text


@needs_cmake
def test_cuda_units_compile_with_the_toolkits_hidden(tmp_path: Path) -> None:
    done = run([ROOT / "tests" / "packaging" / "hidden_cuda.sh", sys.executable, tmp_path])
    if done.returncode == 77:
        pytest.skip(done.stdout.strip().splitlines()[-1])
    assert done.returncode == 0, done.stdout
    assert "CUDA headers and NVRTC from the packages that torch depends on" in done.stdout
    for unit in ("driver_api", "nvrtc"):
        assert list(tmp_path.rglob(f"{unit}.cpp.o")), done.stdout
