"""``python -m fxfuser``: doctor, explain, ops, cache."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Callable
from typing import Any


def doctor(_: argparse.Namespace) -> int:
    """Versions, driver, NVRTC, compiler, cache rights, one kernel compiled and run per target."""
    import torch

    import fxfuser
    from fxfuser import _C

    lines: list[tuple[str, str, str]] = [
        ("fxfuser", "ok", fxfuser.__version__),
        ("python", "ok", sys.version.split()[0]),
        ("torch", "ok", torch.__version__),
    ]
    for row in json.loads(_C.doctor()):
        lines.append((row["name"], row["state"], row["detail"]))
    folder = _C.cache_folder()
    lines.append(("cache", "ok" if folder else "off", folder or "no folder that is safe to use; set FXFUSER_CACHE_DIR to one of your own"))
    width = max(len(name) for name, _, _ in lines)
    for name, state, detail in lines:
        print(f"{name:<{width}}  {state:<6}  {detail}")
    return 1 if any(state == "broken" for _, state, _ in lines) else 0


def explain(options: argparse.Namespace) -> int:
    """The report of a saved program (.pt2)."""
    import torch

    import fxfuser

    gm = torch.export.load(options.model).module()
    report = fxfuser.explain(gm, target=options.target)
    print(report.to_json() if options.json else report)
    return 0


def ops(options: argparse.Namespace) -> int:
    """The rows of the capability table."""
    from fxfuser import _C

    for row in json.loads(_C.ops_json()):
        if options.filter in row["op"] or any(options.filter in target for target in row["targets"]):
            print(f"{row['op']:<28} {row['kind']:<10} {' '.join(row['targets'])}")
    return 0


def cache(options: argparse.Namespace) -> int:
    """Lists or clears the kernel cache on disk."""
    from fxfuser import _C

    folder = _C.cache_folder()
    if options.action == "clear":
        _C.clear_caches(True)
        print(f"cleared {folder}")
        return 0
    total = 0
    for root, _, files in os.walk(folder):
        for name in sorted(files):
            size = os.path.getsize(os.path.join(root, name))
            total += size
            print(f"{size:>10}  {name}")
    print(f"{total} bytes in {folder} ({shutil.disk_usage(folder).free // 2**20} MB free)" if os.path.isdir(folder) else "no cache folder")
    return 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m fxfuser", description="fxfuser's tools")
    commands = parser.add_subparsers(dest="command", required=True)
    run: dict[str, Callable[[Any], int]] = {"doctor": doctor, "explain": explain, "ops": ops, "cache": cache}
    for name, function in run.items():
        command = commands.add_parser(name, help=function.__doc__)
        if name == "explain":
            command.add_argument("model", help="a .pt2 file")
            command.add_argument("--target", default="", choices=["", "host", "cuda"])
            command.add_argument("--json", action="store_true")
        elif name == "ops":
            command.add_argument("filter", nargs="?", default="")
        elif name == "cache":
            command.add_argument("action", choices=["list", "clear"])
    options = parser.parse_args(arguments)
    return run[options.command](options)


if __name__ == "__main__":
    sys.exit(main())
