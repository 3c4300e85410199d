"""NVRTC takes the CUDA text of every row, and of every form on every architecture. Needs no GPU."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import fxfuser
import pytest
import torch
from direct_samples import direct_samples
from golden_graphs import GRAPHS, kernels_of
from measured import measured
from samples import combine, samples
from table_check import table_targets
from torch.fx.experimental.proxy_tensor import make_fx


def compile_all(texts: dict[str, str], sm: int) -> None:
    def problem(item: tuple[str, str]) -> str:
        try:
            assert fxfuser._C.compile_cuda(item[0], item[1], sm) > 0
            return ""
        except RuntimeError as error:
            return f"{item[0]} for sm_{sm}: {str(error)[:1500]}"

    with ThreadPoolExecutor(2) as pool:
        problems = [text for text in pool.map(problem, texts.items()) if text]
    assert not problems, f"{len(problems)} kernels don't compile:\n" + "\n".join(problems[:10])


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("dtype", "sm"), [(torch.float32, 90), (torch.bfloat16, 80), (torch.int64, 100), (torch.bool, 90)], ids=str)
def test_every_row_compiles(dtype: torch.dtype, sm: int) -> None:
    targets = table_targets()
    chosen = [sample for sample in (*samples((dtype,), 1), *direct_samples(dtype)) if sample.target in targets]
    texts: dict[str, str] = {}
    for start in range(0, len(chosen), 64):
        gm, args, _ = combine(chosen[start : start + 64])
        texts |= {kernel["name"]: kernel["source"] for kernel in fxfuser.explain(gm, *args, target="cuda").data["kernels"]}
    compile_all(texts, sm)
    measured(f"nvrtc_kernels_{str(dtype).removeprefix('torch.')}", len(texts))


@pytest.mark.parametrize("sm", [75, 80, 86, 89, 90, 100, 120])
def test_every_form_compiles(sm: int) -> None:
    compile_all({kernel["name"]: kernel["source"] for name in GRAPHS for kernel in kernels_of(name, "cuda")}, sm)


def test_a_bad_kernel_is_told_with_its_log() -> None:
    with pytest.raises(RuntimeError, match="undefined_thing"):
        fxfuser._C.compile_cuda("bad", "FXF_KERNEL(32) bad(const FXF_PARAM int p) { undefined_thing(); }", 90)


def test_a_kernel_that_would_spill_has_the_registers_it_needs() -> None:
    """A schedule says for how many blocks an SM is to have registers; where that pushes values out to local memory it is given up."""
    x, mask = torch.empty(64, 1024, dtype=torch.bfloat16), torch.empty(64, 1024, dtype=torch.bool)
    gm = make_fx(lambda x, mask: torch.softmax((x * 0.125).masked_fill(mask, float("-inf")), -1))(x, mask)
    (kernel,) = fxfuser.explain(gm, x, mask, target="cuda").data["kernels"]
    bound = re.search(r"FXF_KERNEL\((\d+), \d+\)", kernel["source"])
    assert bound is not None

    def size(blocks: int | None) -> int:
        head = f"FXF_KERNEL({bound[1]}{f', {blocks}' if blocks else ''})"
        return int(fxfuser._C.compile_cuda(kernel["name"], kernel["source"].replace(bound[0], head), 90))

    free = size(None)
    assert abs(size(10) - free) < 256 and abs(size(16) - free) < 256  # an instruction has 16 bytes, a spilled value many of them
