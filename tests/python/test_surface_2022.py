"""The examples of docs/surface_2022.md run, one after the other, and print what the page shows."""

from __future__ import annotations

import re
from pathlib import Path

import fxfuser
import pytest

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "surface_2022.md").read_text()
# (heading, code, what it prints)
EXAMPLES = [
    (heading, code, shown)
    for heading, body in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    for code, shown in re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", body, re.S)
]


def plain(text: str) -> str:
    """Without hashes, numbers of kernels, fusions and slots, and times."""
    text = re.sub(r"_[0-9a-f]{8}\b", "_00000000", text)
    text = re.sub(r"kernel\d+ run in [\d.]+ ms, achieved: [\d.e+-]+ GB/s", "kernel run in 0 ms, achieved: 0 GB/s", text)
    text = re.sub(r"fusion_id\d+|%\d+|\d+ slots", "N", text)
    return text.strip()


def test_every_row_has_an_example() -> None:
    headings = [heading for heading, _, _ in EXAMPLES]
    assert [heading.split(".")[0] for heading in headings] == [*map(str, range(1, 12)), "Dumps"]


@pytest.mark.parametrize(("heading", "code", "shown"), EXAMPLES, ids=[heading for heading, _, _ in EXAMPLES])
def test_example(heading: str, code: str, shown: str, capfd: pytest.CaptureFixture[str]) -> None:
    before = sum(fxfuser.stats()["launches"].values())
    capfd.readouterr()
    exec(compile(code, heading, "exec"), {"__name__": "example"})  # noqa: S102
    assert plain(capfd.readouterr().out) == plain(shown)
    assert heading.startswith("1.") or sum(fxfuser.stats()["launches"].values()) > before
