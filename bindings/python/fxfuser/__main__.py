"""``python -m fxfuser``: doctor, explain, warm, ops, cache.

Exit codes: 0; 1 when something is broken or there is nothing to work on; 2 for arguments that can't be used, with one line on stderr.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Callable
from typing import Any


class BadInput(Exception):
    """What the user gave can't be used; the text says what it is and what is wanted."""


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
    width = max(len(name) for name, _, _ in lines)
    for name, state, detail in lines:
        print(f"{name:<{width}}  {state:<6}  {detail}")
    return 1 if any(state == "broken" for _, state, _ in lines) else 0


def _saved_module(path: str) -> Any:
    """The module of a saved program."""
    import torch

    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise BadInput(f"{path} can't be read: {error.strerror}") from None
    try:
        return torch.export.load(path).module()
    except Exception as error:  # whatever the loader meets: the file is not one of its own
        raise BadInput(f"{path} is not a program that torch.export.save wrote ({_first_line(error)})") from None


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


def explain(options: argparse.Namespace) -> int:
    """The report of a saved program (.pt2)."""
    import logging

    import fxfuser

    logging.getLogger("torch.export").setLevel(logging.CRITICAL)  # it logs what it then raises
    gm = _saved_module(options.model)
    try:
        report = fxfuser.explain(gm, target=options.target)
    except (TypeError, ValueError) as error:
        raise BadInput(f"{options.model} can't be explained: {error}") from None
    print(report.to_json() if options.json else report)
    return 0


def warm(options: argparse.Namespace) -> int:
    """Compiles the kernels of a saved program into a folder; a GPU need not be there."""
    import fxfuser

    gm = _saved_module(options.model)
    try:
        count = fxfuser.warm(gm, options.out, arch=options.arch)
    except (TypeError, ValueError) as error:
        raise BadInput(f"{options.model} can't be compiled beforehand: {error}") from None
    except RuntimeError as error:
        print(f"python -m fxfuser warm: {error}", file=sys.stderr)
        return 1
    print(f"{count} kernels for {options.arch} in {options.out}")
    return 0


def ops(options: argparse.Namespace) -> int:
    """The rows of the capability table."""
    from fxfuser import _C

    found = [row for row in json.loads(_C.ops_json()) if options.filter in row["op"] or any(options.filter in target for target in row["targets"])]
    for row in found:
        print(f"{row['op']:<28} {row['kind']:<10} {' '.join(row['targets'])}")
    if not found:
        print(f"no row names {options.filter}", file=sys.stderr)
    return 0 if found else 1


def cache(options: argparse.Namespace) -> int:
    """Lists or clears the kernel cache on disk."""
    from fxfuser import _C

    folder = _C.cache_folder()
    if not folder:
        print(_C.cache_problem(), file=sys.stderr)
        return 1
    if options.action == "clear":
        _C.clear_caches(True)
        print(f"cleared {folder}")
        return 0
    total = 0
    for name in sorted(os.listdir(folder)):
        size = os.path.getsize(os.path.join(folder, name))
        total += size
        print(f"{size:>10}  {name}")
    print(f"{total} bytes in {folder} ({shutil.disk_usage(folder).free // 2**20} MB free)")
    return 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m fxfuser", description="fxfuser's tools")
    commands = parser.add_subparsers(dest="command", required=True)
    run: dict[str, Callable[[Any], int]] = {"doctor": doctor, "explain": explain, "warm": warm, "ops": ops, "cache": cache}
    for name, function in run.items():
        command = commands.add_parser(name, help=function.__doc__)
        if name == "explain":
            command.add_argument("model", help="a .pt2 file")
            command.add_argument("--target", default="", choices=["", "host", "cuda"])
            command.add_argument("--json", action="store_true")
        elif name == "warm":
            command.add_argument("model", help="a .pt2 file")
            command.add_argument("--arch", default="host", help="host, or sm_90 and the like")
            command.add_argument("--out", required=True, help="the folder of the pack")
        elif name == "ops":
            command.add_argument("filter", nargs="?", default="")
        elif name == "cache":
            command.add_argument("action", choices=["list", "clear"])
    options = parser.parse_args(arguments)
    try:
        return run[options.command](options)
    except BadInput as error:
        print(f"python -m fxfuser {options.command}: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader has what it wanted
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


if __name__ == "__main__":
    sys.exit(main())
