"""One result file of the parts that a long set was run in.

    python benchmarks/join.py OUT PART [PART ...]

Each part keeps the ceiling that was measured beside it in its rows; the facts are those of the first."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def join(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Raises ValueError where parts are of several devices, commits or torch versions, or hold a row twice."""
    first = parts[0]
    for part in parts:
        for key in ("device", "torch", "commit"):
            if part[key] != first[key]:
                raise ValueError(f"parts of several runs: {key} is {first[key]!r} and {part[key]!r}")
    rows = [row for part in parts for row in part["rows"]]
    names = [row["name"] for row in rows]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"rows in more than one part: {', '.join(twice)}")
    return {**first, "copy_GBps": [part["copy_GBps"] for part in parts], "rows": rows}


def main() -> None:
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    out, *parts = map(Path, sys.argv[1:])
    out.write_text(json.dumps(join([json.loads(path.read_text()) for path in parts]), indent=1) + "\n")
    print("written:", out)


if __name__ == "__main__":
    main()
