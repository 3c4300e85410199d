"""What the ``dump`` option and its variables print, on which device, and that a call without them prints nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import fxfuser
import pytest
import torch
from fxfuser import FusionDefinition, execute
from numerics import check_close
from torch.fx.experimental.proxy_tensor import make_fx

ROOT = Path(__file__).resolve().parents[2]
Launches = Callable[[], int]
Capture = pytest.CaptureFixture[str]
LINE = re.compile(r"kernel(\d+) run in (\d+\.\d+) ms, achieved: (\d[\d.e+-]*) GB/s")


def two_groups(x: torch.Tensor) -> torch.Tensor:
    return torch.digamma(torch.sigmoid(x) * 2 + 0.5).exp().sum(1)


def printed(fn: Callable[..., torch.Tensor], *args: torch.Tensor, words: str | list[str], capfd: Capture) -> str:
    """What one call prints; its result is eager's."""
    gm = make_fx(fn)(*args)
    capfd.readouterr()
    result = execute(gm, *args, executor_parameters={"dump": words, "on_error": "raise"})
    text = capfd.readouterr().out
    check_close(result, gm(*args), str(words))
    return text


# word: what stands in its text for two_groups, and how often
PRINTED = {
    "partition": (r"^partition \d+: ", 2),
    "fusion_ir": r"^graph ",
    "segmented_fusion": r"^fusion on cpu",
    "scheduler_params": r"^(pointwise|reduction): ",
    "host_kernel": r'^extern "C" void fxfuser_\w+\(const Params\* p',
    "launch_param": r"^Launch Parameters: kernel\d+ fxfuser_\w+: work items = \d+, grain = \d+$",
    "plan": (r"^  \d+ (launch fxfuser_\w+ \[[\w, ]+\]|aten aten\.digamma\.default)\(%\d+\) -> %\d+$", 3),
    "dump_eff_bandwidth": LINE.pattern,
}


@pytest.mark.parametrize("word", PRINTED)
def test_a_word_prints_its_text(word: str, capfd: Capture, launches: Launches) -> None:
    pattern, count = PRINTED[word] if isinstance(PRINTED[word], tuple) else (PRINTED[word], 2)
    text = printed(two_groups, torch.rand(5, 7), words=[word], capfd=capfd)
    assert len(re.findall(pattern, text, re.M)) == count, text
    others = [other for other, row in PRINTED.items() if other != word and re.search(row[0] if isinstance(row, tuple) else row, text, re.M)]
    assert others == (["fusion_ir"] if word == "partition" else []), text  # the whole graph is in the text of a group's form
    assert launches() == 2


def test_nothing_is_printed_unasked_or_again(capfd: Capture, launches: Launches) -> None:
    gm, x = make_fx(two_groups)(torch.rand(5, 7)), torch.rand(5, 7)
    capfd.readouterr()
    execute(gm, x)
    assert capfd.readouterr().out == ""
    everything = {"dump": [word for word in PRINTED if word not in ("launch_param", "dump_eff_bandwidth")]}
    execute(gm, x, executor_parameters=everything)
    assert capfd.readouterr().out != ""
    execute(gm, x, executor_parameters=everything)
    fxfuser.explain(gm, x, executor_parameters=everything)
    assert capfd.readouterr().out == "", "a plan is printed once, a report has its own text"
    assert launches() == 6


def test_bandwidth_is_a_line_a_launch_with_the_bytes_of_its_tensors(capfd: Capture, launches: Launches) -> None:
    x, row = torch.rand(1 << 11, 1 << 9), torch.rand(1 << 9).expand(1 << 11, 1 << 9)
    gm = make_fx(lambda x, row: (x * 2 + row).half())(x, row)
    options = {"dump": "dump_eff_bandwidth", "on_error": "raise"}
    capfd.readouterr()
    for _ in range(3):
        check_close(execute(gm, x, row, executor_parameters=options), gm(x, row), "timed")
    lines = LINE.findall(capfd.readouterr().out)
    assert len(lines) == launches() == 3
    assert len({number for number, _, _ in lines}) == 1, "one kernel has one number"
    bytes_moved = x.numel() * (4 + 4 + 2)  # an expanded input counts all its elements
    for _, milliseconds, achieved in lines:
        assert float(achieved) == pytest.approx(bytes_moved / float(milliseconds) / 1e6, rel=1e-4 / float(milliseconds) + 1e-3)


def test_kernels_are_numbered_by_first_use(capfd: Capture) -> None:
    options = {"dump": ["dump_eff_bandwidth"], "on_error": "raise"}
    x = torch.rand(3, 4)
    a, b = (make_fx(fn)(x) for fn in (lambda x: (x + 1.0625).sin(), lambda x: (x + 2.0625).cos()))
    capfd.readouterr()
    for gm in (a, b, a):
        execute(gm, x, executor_parameters=options)
    first, second, again = (int(line[0]) for line in LINE.findall(capfd.readouterr().out))
    assert second == first + 1 and again == first


def test_python_definition_is_runnable(capfd: Capture, launches: Launches) -> None:
    with FusionDefinition() as fd:
        x, s = fd.define_tensor(2), fd.define_scalar()
        fd.add_output(fd.ops.sum(fd.ops.sin(x) * s + 0.1, [1]))
    inputs = [torch.rand(3, 4), 2.5]
    capfd.readouterr()
    (expected,) = fd.execute(inputs, dump=["python_definition"])
    text = capfd.readouterr().out
    scope: dict[str, object] = {"FusionDefinition": FusionDefinition, "DataType": fxfuser.DataType}
    exec(text, scope)  # noqa: S102
    with FusionDefinition() as again:
        scope[f"nvfuser_fusion_id{fd.id()}"](again)  # type: ignore[operator]
    assert again.id() == fd.id()
    (result,) = again.execute(inputs)
    torch.testing.assert_close(result, expected, rtol=0, atol=0)
    assert launches() == 2


@pytest.mark.parametrize("words", [["cubin"], "kernel_args(a,b),halo"])
def test_words_of_2022_without_a_meaning_are_told_in_a_line(words: str | list[str], launches: Launches) -> None:
    gm = make_fx(torch.sigmoid)(torch.rand(3))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        execute(gm, torch.rand(3), executor_parameters={"dump": words})
    texts = [str(warning.message) for warning in told]
    assert len(texts) == (1 if words == ["cubin"] else 2) and all("means nothing here" in text and "\n" not in text for text in texts), texts
    assert launches() == 1


@pytest.mark.parametrize(("words", "message"), [(["nothing"], "holds 'nothing'; there are .*cuda_kernel.*plan.*ptx"), ("ptx(a", "not closed"), ("ptx(a)plan", "comma must follow")])
def test_lists_that_make_no_sense(words: str | list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        execute(make_fx(torch.sigmoid)(torch.rand(3)), torch.rand(3), executor_parameters={"dump": words})


def child(program: str, folder: Path, *prelude: str, **environment: str) -> subprocess.CompletedProcess[str]:
    lines = ["import torch, fxfuser", "from torch.fx.experimental.proxy_tensor import make_fx", *prelude, program]
    variables = {key: value for key, value in os.environ.items() if not key.startswith(("PYTORCH_NVFUSER_", "FXFUSER_DUMP", "FXFUSER_DISABLE"))}
    return subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, cwd=folder, env={**variables, **environment})


SIGMOID = """
gm, x = make_fx(lambda x: x.sigmoid() * 2)(torch.rand(64)), torch.rand(64)
for _ in range(2):
    torch.testing.assert_close(fxfuser.execute(gm, x, executor="nvfuser"), gm(x))
assert sum(fxfuser.stats()["launches"].values()) == 2
"""


def test_the_variable_of_2022(tmp_path: Path) -> None:
    done = child(SIGMOID, tmp_path, PYTORCH_NVFUSER_DUMP="dump_eff_bandwidth, halo(1)")
    assert done.returncode == 0, done.stderr
    assert [line[0] for line in LINE.findall(done.stdout)] == ["1", "1"]
    assert done.stderr.count("'halo' means nothing here") == 1, done.stderr


def test_an_unknown_word_in_a_variable(tmp_path: Path) -> None:
    aten = SIGMOID.replace('"nvfuser"', '"aten"').replace("== 2", "== 0") + "print('ATen runs')"
    done = child(aten + SIGMOID, tmp_path, PYTORCH_NVFUSER_DUMP="bandwidth")
    assert re.search(r"RuntimeError: Parsing PYTORCH_NVFUSER_DUMP failed. Invalid option: .*'bandwidth'; there are .*dump_eff_bandwidth", done.stderr), done.stderr
    assert "ATen runs" in done.stdout


CUDA = f"""
import pathlib
fxfuser._C.emulate_cuda("".join(part.read_text() for part in sorted(pathlib.Path({str(ROOT / "tests" / "emulator" / "machine")!r}).glob("*.h"))), "-x c++ -std=c++17 -O1 -fPIC -shared -w".split(), "toy")
"""


def test_words_of_cuda_kernels(tmp_path: Path) -> None:
    """The text that NVRTC gets runs in the emulator; no GPU takes part. nvdisasm is a stand-in that shows what it was given."""
    tool = tmp_path / "bin" / "nvdisasm"
    tool.parent.mkdir()
    tool.write_text('#!/bin/sh\nhead -c 4 "$1" | tail -c 3\necho " from a toolkit"\n')
    tool.chmod(0o755)
    done = child(SIGMOID, tmp_path, CUDA, FXFUSER_DUMP="cuda_kernel,cuda_to_file,ptx,sass,launch_param", CUDA_HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    name = re.search(r"^FXF_KERNEL\(\d+\) (fxfuser_pointwise_\w+)\(", done.stdout, re.M)
    assert name is not None, done.stdout
    assert f"PRINTING: {name[1]}.cu" in done.stdout
    assert "FXF_KERNEL" in (tmp_path / f"{name[1]}.cu").read_text()
    if "// ptx of" in done.stdout:
        assert "NVRTC was not found" in done.stdout or "no CUDA" in done.stdout
    else:
        assert re.search(rf"^\.visible \.entry {name[1]}\(", done.stdout, re.M) and "ELF from a toolkit" in done.stdout, done.stdout
    assert len(re.findall(rf"^Launch Parameters: kernel1 {name[1]}: BlockDim.x = \d+, .*GridDim.x = \d+, .*Smem Size = \d+$", done.stdout, re.M)) == 2


ROUNDING = """
x, y, z = (torch.rand(4096, generator=torch.Generator().manual_seed(0)) for _ in range(3))
for dtype in (torch.float32, torch.float16):
    args = [t.to(dtype) for t in (x, y, z)]
    gm = make_fx(lambda x, y, z: x * y + z)(*args)
    print(dtype, "equal to eager:", torch.equal(fxfuser.execute(gm, *args), gm(*args)))
assert fxfuser.stats()["launches"]["host"] == 2
"""


def test_fma_is_switched_off(tmp_path: Path) -> None:
    done = child(ROUNDING, tmp_path, PYTORCH_NVFUSER_DISABLE="fma,nvtx")
    assert done.returncode == 0, done.stderr
    assert "float32 equal to eager: True" in done.stdout
    assert "float16 equal to eager: False" in done.stdout, "16-bit intermediates stay in float32"
    assert "FMA is switched off" in done.stderr and "'nvtx' means nothing here" in done.stderr


def test_products_and_sums_are_contracted_otherwise(launches: Launches) -> None:
    args = [torch.rand(4096) for _ in range(3)]
    gm = make_fx(lambda x, y, z: x * y + z)(*args)
    assert not torch.equal(execute(gm, *args), gm(*args))
    assert launches() == 1


@pytest.mark.parametrize("environment", [{"PYTORCH_NVFUSER_DISABLE": "fallback"}, {"PYTORCH_NVFUSER_DISABLE_FALLBACK": "1"}, {"PYTORCH_NVFUSER_DISABLE_FALLBACK": "0"}], ids=str)
def test_a_fusion_that_fails_is_raised_where_fallback_is_disabled(environment: dict[str, str], tmp_path: Path) -> None:
    compiler = tmp_path / "cxx"
    compiler.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "a compiler 1.0" && exit 0\necho "out of registers"\nexit 1\n')
    compiler.chmod(0o755)
    program = "gm, x = make_fx(lambda x: x.sigmoid() * 2)(torch.rand(64)), torch.rand(64)\ntorch.testing.assert_close(fxfuser.execute(gm, x), gm(x))"
    done = child(program, tmp_path, CXX=str(compiler), FXFUSER_CACHE_DIR=str(tmp_path / "cache"), **environment)
    raises = "0" not in environment.values()
    assert (done.returncode != 0) == raises, done.stderr
    assert ("RuntimeError" if raises else "FallbackWarning") in done.stderr and str(compiler) in done.stderr
