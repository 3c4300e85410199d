"""The emulator finds the faults that it is there for: hand-written kernels with one fault each."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from conftest import FLAGS
from machine import machine_text

MAIN = """
int main() {
  static float in[64], out[CLUSTER * 64];
  Params p{in, out};
  const unsigned grid[3] = {CLUSTER, 1, 1}, block[3] = {64, 1, 1};
  run_kernel(&p, grid, block, CLUSTER);
  return out[63] == 0.0f ? 0 : 1;
}
"""
HEAD = "struct Params { float* in; float* out; };\n"
CLUSTER_HEAD = "FXF_SHARED(float, s, 64); FXF_EXCHANGE(e); fxf_open_exchange<2>(e); float* out = p.out + 64 * fxf_block() + fxf_thread(); "
POST = "FXF_POST(s, fxf_thread(), 0.0f, 1 - fxf_block(), e, 0);"
CASES = {
    "sound": ("FXF_SHARED(float, s, 64); FXF_PLACE(s, fxf_thread(), p.in[fxf_thread()]); fxf_barrier(); fxf_write(p.out + fxf_thread(), FXF_TAKE(s, 63 - fxf_thread()));", ""),
    "no barrier": ("FXF_SHARED(float, s, 64); FXF_PLACE(s, fxf_thread(), 1.0f); fxf_write(p.out + fxf_thread(), FXF_TAKE(s, 63 - fxf_thread()));", "EMULATOR: "),
    "race of writers": ("FXF_SHARED(float, s, 64); FXF_PLACE(s, fxf_thread() / 2, 1.0f); fxf_barrier();", "race: written by two"),
    "overwritten too early": ("FXF_SHARED(float, s, 64); FXF_PLACE(s, fxf_thread(), 1.0f); fxf_barrier(); float v = FXF_TAKE(s, 63 - fxf_thread()); FXF_PLACE(s, fxf_thread(), v);", "race: "),
    "unwritten": ("FXF_SHARED(float, s, 64); fxf_barrier(); fxf_write(p.out + fxf_thread(), FXF_TAKE(s, fxf_thread()));", "before it is written"),
    "shared bounds": ("FXF_SHARED(float, s, 32); FXF_PLACE(s, fxf_thread(), 1.0f);", "out of bounds"),
    "written twice": ("fxf_write(p.out + fxf_thread() / 2, 0.0f);", "written twice"),
    "global bounds": ("fxf_write(p.out + fxf_thread() + 1, 0.0f);", "AddressSanitizer"),
    "misaligned": ("if (fxf_thread() == 0) fxf_load<4>(p.in + 1);", "not aligned"),
    "divergent barrier": ("if (fxf_thread() < 7) fxf_barrier();", "never reach"),
    "divergent shuffle": ("if (fxf_thread() < 7) fxf_shuffle(1.0f, 1);", "lanes that are elsewhere"),
    "sound cluster": (CLUSTER_HEAD + POST + "if (fxf_thread() == 0) fxf_expect_posts<2>(e, 0, 256); fxf_await_posts<2>(e, 0, 0); fxf_write(out, FXF_TAKE(s, 63 - fxf_thread())); fxf_close_exchange<2>();", ""),
    "a post taken too early": (CLUSTER_HEAD + POST + "float v = FXF_TAKE(s, 63 - fxf_thread()); fxf_await_posts<2>(e, 0, 0); fxf_write(out, v);", "EMULATOR: "),
    "a post overwritten": (CLUSTER_HEAD + "fxf_expect_posts<2>(e, 0, 4);" + POST + "fxf_await_posts<2>(e, 0, 0); float v = FXF_TAKE(s, 63 - fxf_thread()); FXF_POST(s, fxf_thread(), v, 1 - fxf_block(), e, 1);", "race: "),
    "more posts than expected": (CLUSTER_HEAD + POST + "if (fxf_thread() == 0) fxf_expect_posts<2>(e, 0, 128); fxf_await_posts<2>(e, 0, 0);", "not what the block expects"),
    "the wrong round": (CLUSTER_HEAD + POST + "if (fxf_thread() == 0) fxf_expect_posts<2>(e, 0, 256); fxf_await_posts<2>(e, 0, 1);", "wrong parity"),
    "a block leaves its peer": (CLUSTER_HEAD + "if (fxf_block() == 0) fxf_close_exchange<2>();", "never reach"),
    "division": ("fxf_write(p.out + fxf_thread(), (float)(fxf_thread() / (int)p.in[0]));", "division by zero"),
}


@pytest.mark.parametrize("name", CASES)
def test_fault_is_found(name: str, tmp_path: Path) -> None:
    body, message = CASES[name]
    library = "".join(file.read_text() for file in sorted((Path(__file__).resolve().parents[2] / "codegen" / "cuda" / "device").glob("*.cuh")) if "machine" not in file.name)
    source = tmp_path / "kernel.cpp"
    source.write_text(machine_text() + library + HEAD + f"#define CLUSTER {2 if CLUSTER_HEAD in body else 1}\n" + "FXF_KERNEL(64) kernel(const FXF_PARAM Params p) {" + body + "}\nFXF_EMULATED(kernel)\n" + MAIN)
    binary = tmp_path / "kernel"
    flags = [flag for flag in FLAGS if flag not in ("-shared", "-fPIC")]
    subprocess.run(["g++", *flags, "-o", str(binary), str(source)], check=True)
    done = subprocess.run([str(binary)], stderr=subprocess.PIPE, text=True)
    if message:
        assert done.returncode != 0 and message in done.stderr, done.stderr[-2000:]
    else:
        assert done.returncode == 0, done.stderr[-2000:]
