"""The arrows of the house: who may include whom, and no op names outside the table and its decompositions."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# A folder may include itself and what is listed.
ALLOWED = {
    "partitioner/ir": {"partitioner/ir"},
    "partitioner": {"partitioner/ir", "partitioner"},
    "codegen": {"partitioner/ir", "partitioner", "codegen"},
    "executor": {"partitioner/ir", "partitioner", "codegen", "executor"},
    "executor/frontend": {"partitioner/ir", "partitioner", "executor/frontend", "executor"},
    "bindings": {"partitioner/ir", "partitioner", "executor", "executor/frontend", "bindings"},
}
CODEGEN_SEES_OF_PARTITIONER = {"partitioner/partition.h", "partitioner/reason.h"}
BINDINGS_SEE_OF_EXECUTOR = {"executor/interface/fxfuser.h", "executor/options.h"}
# Definitions are written against the interface as well; only these units of theirs know torch.
FRONTEND_SEES_OF_PARTITIONER = {"partitioner/functionalize.h"}
FRONTEND_WITH_TORCH = {"overloads.cpp", "run_fusion.h", "run_fusion.cpp"}


def room(path: str) -> str:
    if path.startswith("partitioner/ir/"):
        return "partitioner/ir"
    if path.startswith("executor/frontend/"):
        return "executor/frontend"
    return path.split("/")[0]


def sources() -> list[Path]:
    files = []
    for folder in ("partitioner", "codegen", "executor", "bindings"):
        files += [path for ending in ("*.h", "*.cpp") for path in (ROOT / folder).rglob(ending)]
    return sorted(files)


def includes(path: Path) -> list[str]:
    return re.findall(r'^#include [<"]([^>"]+)[>"]', path.read_text(), re.M)


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_arrows_point_one_way(path: Path) -> None:
    here = room(str(path.relative_to(ROOT)))
    for name in includes(path):
        there = room(name)
        if there in ALLOWED:
            assert there in ALLOWED[here], f"{here} must not include {name}"
            if here == "codegen" and there == "partitioner":
                assert name in CODEGEN_SEES_OF_PARTITIONER, f"codegen sees only partition.h and reason.h of partitioner, not {name}"
            if here == "executor/frontend" and there == "partitioner":
                assert name in FRONTEND_SEES_OF_PARTITIONER, f"definitions see only how a graph says what it writes, not {name}"
            if here == "executor/frontend" and there == "executor":
                assert name == "executor/interface/fxfuser.h" and path.name in FRONTEND_WITH_TORCH, f"definitions reach the executor through its interface, not {name}"
            if here == "bindings" and there == "executor":
                assert name in BINDINGS_SEE_OF_EXECUTOR, f"bindings reach the executor through its interface, not {name}"
        torch = re.match(r"(ATen|c10|torch)/", name)
        knows_torch = here in ("executor", "bindings") or (here == "executor/frontend" and path.name in FRONTEND_WITH_TORCH)
        assert not torch or knows_torch, f"{path.name} must not know torch: {name}"
        assert not (name == "Python.h" or name.startswith("pybind11")) or here == "bindings", f"only bindings know Python: {name}"
        assert not (name.startswith("nlohmann") and path.suffix == ".h"), "the JSON header is heavy: keep it out of headers"


def test_op_names_live_in_the_table() -> None:
    """A new pointwise or reduction op is one row: no C++ file outside the table's readers may name one as an ATen target."""
    rows = json.loads((ROOT / "configs" / "ops.json").read_text())["rows"]
    plain = {target for row in rows if row["kind"] in ("pointwise", "reduction") for target in row.get("targets", {}) if target.startswith("aten.")}
    for path in sources():
        relative = str(path.relative_to(ROOT))
        if relative.startswith(("partitioner/decompose", "partitioner/functionalize")):
            continue
        text = re.sub(r"//.*", "", path.read_text())
        named = sorted(target for target in re.findall(r'"(aten\.[a-z0-9_.A-Z]+)"', text) if target in plain)
        assert not named, f"{relative} names {named}"
