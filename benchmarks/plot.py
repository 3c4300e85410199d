"""The cells of result files, sorted: times of eager and torch.compile over ours. Needs matplotlib.

    python benchmarks/plot.py OUT.svg RESULT.json [RESULT.json ...]

A panel a file; above 1 a cell is faster here than with that peer."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

PEERS = {"vs_eager": ("eager", "#4477aa"), "vs_compile": ("torch.compile", "#ee6677")}


def main() -> None:
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    try:
        import matplotlib.pyplot as plot
    except ImportError:
        raise SystemExit("benchmarks/plot.py draws with matplotlib: pip install matplotlib") from None
    plot.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "fxfuser", "font.size": 9})
    out, *files = map(Path, sys.argv[1:])
    figure, panels = plot.subplots(1, len(files), figsize=(4.6 * len(files), 3.2), squeeze=False, layout="constrained")
    for panel, file in zip(panels[0], files, strict=True):
        draw(panel, file.stem, json.loads(file.read_text()))
    figure.savefig(out, metadata={"Date": None})
    print("written:", out)


def draw(panel: Any, name: str, result: dict[str, Any]) -> None:
    for key, (peer, color) in PEERS.items():
        ratios = sorted(row[key] for row in result["rows"] if row.get(key))
        faster = sum(ratio >= 1 for ratio in ratios)
        panel.plot([100 * (at + 0.5) / len(ratios) for at in range(len(ratios))], ratios, ".", markersize=3, color=color, label=f"{peer}: {faster} of {len(ratios)} cells faster")
    panel.axhline(1, color="black", linewidth=0.7)
    panel.set_yscale("log")
    ticks = [0.5, 1, 2, 5, 10, 20]
    panel.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    panel.minorticks_off()
    panel.set_title(f"{name}: {result['device']}")
    panel.set_xlabel("cells, sorted (%)")
    panel.set_ylabel("peer's time / ours")
    panel.legend(loc="upper left", frameon=False)


if __name__ == "__main__":
    main()
