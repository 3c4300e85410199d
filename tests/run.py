"""Runs the test groups, each in a process of its own, and holds the counts against the checked-in floors.

    python tests/run.py [--quick | --gpu] [--only NAME]

A group is a C++ test binary or one Python test file. A test that measures coverage (rows that ran in generated code, kernels
that ran in the emulator) writes `build/measured/<name>.json`; tests/floors.json holds the least that each may be.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
MEASURED = BUILD / "measured"
# Files whose cases take minutes: one process a case of these names.
SPLIT = {"test_gpu_rows": ("float32", "bfloat16", "float16", "float64", "int64", "int32", "bool")}
# What takes longest comes first, so that no core waits for it at the end.
SLOW = ("test_emulated_rows", "test_emulated_schedules", "test_ops_table", "test_nvrtc")
QUICK = ("null", "test_execute", "test_errors", "test_layers")


@dataclass
class Group:
    name: str
    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    reasons: list[str] = field(default_factory=list)


def groups(gpu: bool) -> list[Group]:
    found: list[Group] = []
    if not gpu:
        for name, binary in (("null", "fxfuser_null_tests"), ("torch", "fxfuser_tests"), ("interface", "fxfuser_interface_tests")):
            path = BUILD / "tests" / binary
            if path.exists():
                found.append(Group(name, [str(path)]))
    for folder in ("gpu",) if gpu else ("python", "emulator"):
        environment = sanitizers() if folder == "emulator" else {}
        for file in sorted((ROOT / "tests" / folder).glob("test_*.py")):
            command = [sys.executable, "-m", "pytest", "-q", "-rfs", "-p", "no:cacheprovider", "-p", "no:logging", str(file)]
            if file.stem in SPLIT:
                found += [Group(f"{file.stem}[{case}]", [*command, "-k", f"torch.{case}"], environment) for case in SPLIT[file.stem]]
            else:
                found.append(Group(file.stem, command, environment))
    return sorted(found, key=lambda group: SLOW.index(group.name) if group.name in SLOW else len(SLOW))


def sanitizers() -> dict[str, str]:
    """The emulator's kernels are compiled with sanitizers, whose runtimes must come first in the process."""
    compiler = shlex.split(os.environ.get("CXX", "")) or ["g++"]
    paths = [subprocess.run([*compiler, f"-print-file-name={name}"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip() for name in ("libasan.so", "libubsan.so")]
    return {"LD_PRELOAD": " ".join(paths), "ASAN_OPTIONS": "detect_leaks=0"}


def count(group: Group, text: str, code: int) -> None:
    catch = re.search(r"All tests passed \(\d+ assertions? in (\d+) test cases?\)", text)
    if catch:
        group.passed = int(catch.group(1))
        return
    cases = re.search(r"test cases:\s*(\d+)\s*\|(.*)", text)
    if cases:
        for number, word in re.findall(r"(\d+) (passed|failed|skipped)", cases.group(2)):
            setattr(group, word, int(number))
        return
    for number, word in re.findall(r"(\d+) (passed|failed|skipped|error)", text.strip().splitlines()[-1] if text.strip() else ""):
        if word == "error":
            group.failed += int(number)
        else:
            setattr(group, word, getattr(group, word) + int(number))
    group.reasons = re.findall(r"^SKIPPED \[\d+\] [^:]+:?\d*: (.*)$", text, re.M)
    if (code != 0 or group.passed == 0) and group.failed == 0:
        group.failed = 1


def run(group: Group) -> None:
    start = time.monotonic()
    done = subprocess.run(group.command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env={**os.environ, **group.environment})
    group.seconds = time.monotonic() - start
    count(group, done.stdout, done.returncode)
    state = "ok" if group.failed == 0 else "FAILED"
    lines = [f"{group.name:<24} {group.passed:>5} passed {group.skipped:>4} skipped {group.seconds:7.1f} s  {state}"]
    lines += [f"    skipped: {reason}" for reason in sorted(set(group.reasons))]
    if state == "FAILED":
        lines.append(done.stdout[-8000:])
    print("\n".join(lines), flush=True)


def check_floors(kind: str) -> list[str]:
    """The floors that this run fell below."""
    floors = json.loads((ROOT / "tests" / "floors.json").read_text())[kind]
    below = []
    print("coverage against its floors:")
    for name, floor in floors.items():
        file = MEASURED / f"{name}.json"
        value = json.loads(file.read_text())["value"] if file.exists() else None
        print(f"  {name:<36} {value} (floor {floor})")
        if value is None or value < floor:
            below.append(f"{name}: {value} is below its floor of {floor}")
    return below


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    chosen = [group for group in groups(options.gpu) if not options.quick or group.name in QUICK]
    if options.only:
        chosen = [group for group in chosen if options.only in group.name]
    MEASURED.mkdir(parents=True, exist_ok=True)
    for file in MEASURED.glob("*.json"):
        file.unlink()
    os.environ["FXF_MEASURED"] = str(MEASURED)
    os.environ.setdefault("FXFUSER_CACHE_DIR", str(BUILD / "test_cache"))
    workers = max(1, min(8 if options.gpu else 2, (os.cpu_count() or 1) // (2 if options.gpu else 1)))  # most of the time goes to compilers and to one Python thread
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(run, chosen))
    print("slowest groups:")
    for group in sorted(chosen, key=lambda item: -item.seconds)[:10]:
        print(f"  {group.seconds:7.1f} s  {group.name}")
    below = [] if options.quick or options.only else check_floors("gpu" if options.gpu else "cpu")
    for line in below:
        print("BELOW THE FLOOR:", line)
    passed, skipped = sum(group.passed for group in chosen), sum(group.skipped for group in chosen)
    failed = sum(group.failed for group in chosen) + len(below)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
