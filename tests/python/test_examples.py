"""The examples run, and print what the README shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(path.name for path in (ROOT / "examples").glob("0*.py"))


def plain(text: str) -> str:
    """Without what differs from run to run: the hashes of kernels, which stand for their text, and how long a compile took, if there was one."""
    text = re.sub(r"^kernels: (\d+ compiled in .*|\d+ loaded from disk)$", "kernels: ...", text, flags=re.M)
    return re.sub(r"_[0-9a-f]{8}\b", "_00000000", text).strip()


def shown() -> dict[str, str]:
    """README blocks of the form "$ python examples/<name>" with their output."""
    blocks = re.findall(r"```\n\$ python examples/(\S+)\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    return dict(blocks)


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str) -> None:
    done = subprocess.run([sys.executable, str(ROOT / "examples" / name)], capture_output=True, text=True, cwd="/")
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip()
    if name in shown():
        assert plain(done.stdout) == plain(shown()[name])


def test_readme_shows_examples_that_exist() -> None:
    assert {"01_first_call.py", "03_own_op.py"} <= set(shown()) <= set(EXAMPLES)


def test_first_example_is_ten_lines() -> None:
    assert len((ROOT / "examples" / "01_first_call.py").read_text().strip().splitlines()) <= 10
