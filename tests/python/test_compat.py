"""The names of 2022: there between install and uninstall, gone afterwards, never over an installed nvfuser."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fxfuser
import pytest
import torch
import torch._prims.context
import torch._prims.executor
from fxfuser import compat
from torch.fx.experimental.proxy_tensor import make_fx

MODULES = ("torch._prims.nvfuser_executor", "torch._prims.nvfuser_prims", "torch._C._nvfuser", "nvfuser", "nvfuser._C")


@pytest.fixture
def old_names() -> Iterator[None]:
    with compat.installed():
        yield


def snapshot() -> dict[str, Any]:
    owners = {"executor": torch._prims.executor, "context": torch._prims.context, "common": torch._prims_common, "mode": torch._prims.context.TorchRefsMode, "C": torch._C, "prims": torch._prims}
    names = {f"{owner}.{name}": id(value) for owner, module in owners.items() for name, value in vars(module).items() if not name.startswith("__")}
    return names | {name: name in sys.modules for name in MODULES}


def test_uninstall_puts_everything_back() -> None:
    before = snapshot()
    compat.install()
    compat.install()
    assert compat.is_installed() and snapshot() != before
    compat.uninstall()
    compat.uninstall()
    assert not compat.is_installed() and snapshot() == before


def test_installed_leaves_an_outer_install_alone() -> None:
    compat.install()
    try:
        with compat.installed():
            pass
        assert compat.is_installed()
    finally:
        compat.uninstall()
    with pytest.raises(RuntimeError, match="inside"), compat.installed():
        raise RuntimeError("inside")
    assert not compat.is_installed()


def test_execute_defaults_to_aten(old_names: None) -> None:
    from torch._prims.context import TorchRefsMode, TorchRefsNvfuserCapabilityMode
    from torch._prims.executor import execute, make_traced

    x = torch.randn(3, 3)
    with TorchRefsNvfuserCapabilityMode():
        gm = make_fx(torch.sigmoid)(x)
    before = sum(fxfuser.stats()["launches"].values())
    torch.testing.assert_close(execute(gm, x), torch.sigmoid(x))
    assert sum(fxfuser.stats()["launches"].values()) == before
    for executor in ("nvfuser", "strictly_nvfuser"):
        torch.testing.assert_close(execute(gm, x, executor=executor), torch.sigmoid(x))
    torch.testing.assert_close(make_traced(torch.sigmoid)(x, executor="nvfuser"), torch.sigmoid(x))
    assert sum(fxfuser.stats()["launches"].values()) == before + 3
    with pytest.raises(ValueError, match="aten.*nvfuser.*strictly_nvfuser"):
        execute(gm, x, executor="other")
    with TorchRefsMode.push():
        prims = make_fx(lambda t, d: ({"c": t + d["b"]}, t * d["b"]))(x, {"b": x})
    torch.testing.assert_close(execute(prims, x, {"b": x}, executor="nvfuser")[0]["c"], x + x)


def test_nvfuser_executor(old_names: None) -> None:
    from torch._prims import nvfuser_executor as old
    from torch._prims.context import TorchRefsNvfuserCapabilityMode, _is_func_unsupported_nvfuser, _is_node_supported_nvfuser

    x = torch.rand(4, 6) + 1
    with TorchRefsNvfuserCapabilityMode():
        mixed = make_fx(lambda t: torch.digamma(t.sin().cos()).exp().log())(x)
        whole = make_fx(lambda t: t.sin().cos())(x)
    before = sum(fxfuser.stats()["launches"].values())
    torch.testing.assert_close(old.nvfuser_execute(whole, x), x.sin().cos())
    torch.testing.assert_close(old.nvfuser_execute_partitioned(mixed, x, executor_parameters={"allow_single_op_fusion": False}), mixed(x))
    assert sum(fxfuser.stats()["launches"].values()) == before + 3
    assert old.maybe_partition_graph(whole, True, True) == (whole, False)
    split, unsupported = old.maybe_partition_graph(mixed, False, True)
    assert unsupported and sum(node.op == "call_module" for node in split.graph.nodes) == 2
    torch.testing.assert_close(split(x), mixed(x))
    assert sum(fxfuser.stats()["launches"].values()) == before + 5
    assert not any(node.op == "call_module" for node in mixed.graph.nodes)
    with TorchRefsNvfuserCapabilityMode():
        nothing = make_fx(torch.digamma)(x)
    with pytest.warns(RuntimeWarning, match="is not supported by nvFuser"):
        assert old.maybe_partition_graph(nothing, True, True) == (nothing, True)
    nodes = {str(node.target): node for node in mixed.graph.nodes if node.op == "call_function"}
    assert _is_node_supported_nvfuser(nodes["nvprims.sin.default"]) and not _is_node_supported_nvfuser(nodes["aten.digamma.default"])
    mode = TorchRefsNvfuserCapabilityMode()
    assert _is_func_unsupported_nvfuser(mode, torch.digamma, torch.digamma, (x,), {})
    assert not _is_func_unsupported_nvfuser(mode, torch.sin, torch.sin, (x,), {})
    assert old.DEFAULT_NVFUSER_PYTHON_CONFIG["use_python_fusion_cache"] is True
    with pytest.raises(TypeError):
        old.DEFAULT_NVFUSER_PYTHON_CONFIG["use_python_fusion_cache"] = False  # type: ignore[index]


def test_templates(old_names: None) -> None:
    from torch._prims.nvfuser_executor import compute_contiguity, compute_symbolic_shape, to_nvfuser_template_args

    assert compute_contiguity((2, 3, 4), (12, 4, 1)) == (True, True, True)
    assert compute_contiguity((2, 3, 4), (12, 4, 2)) == (True, False, False)
    assert compute_contiguity((), ()) == ()
    with pytest.raises(RuntimeError, match="2 sizes and 1 strides"):
        compute_contiguity((2, 3), (1,))
    assert compute_symbolic_shape((1, 5)) == (1, -1)
    a, b = to_nvfuser_template_args((torch.randn(4, 1), torch.randn(9, 1)))
    assert a == b and hash(a) == hash(b)
    assert to_nvfuser_template_args((2, None, "x"))[1:] == (None, "x")


def test_nvprims_attributes(old_names: None) -> None:
    from torch._prims import RETURN_TYPE
    from torch._prims.nvfuser_prims import nvprims

    assert nvprims is torch.ops.nvprims
    assert nvprims.transpose.return_type is RETURN_TYPE.VIEW and nvprims.sin.default.return_type is RETURN_TYPE.NEW
    assert nvprims.sin.is_recomputable and not nvprims.var_mean.main.is_recomputable
    torch.testing.assert_close(nvprims.sin.impl_aten(torch.ones(2)), torch.ones(2).sin())


@pytest.mark.parametrize("name", ["nvfuser", "nvfuser._C", "torch._C._nvfuser"])
def test_definition_names_are_the_frontends(old_names: None, name: str) -> None:
    module = sys.modules[name]
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = module.Nothing
    try:
        import fxfuser.frontend as frontend
    except ImportError:
        with pytest.raises(ImportError, match="Fusion needs fxfuser.frontend"):
            _ = module.Fusion
    else:
        assert module.Fusion is frontend.Fusion and module.FusionDefinition is frontend.FusionDefinition


def test_dtypes_of_definitions(old_names: None) -> None:
    from torch._prims_common import _torch_dtype_to_nvfuser_dtype_map as table
    from torch._prims_common import getnvFuserDtype

    assert {torch.float, torch.long, torch.bool, int, complex} <= set(table) and len(table) == 13
    assert getnvFuserDtype(torch.uint8) is None and torch.uint8 not in table
    try:
        import fxfuser.frontend as frontend
    except ImportError:
        with pytest.raises(ImportError, match="DataType needs fxfuser.frontend"):
            getnvFuserDtype(torch.float)
    else:
        assert getnvFuserDtype(torch.long) == table[int] == frontend.DataType.Int


def run_script(folder: Path, text: str, *arguments: str, files: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    for name, content in {"script.py": text, **(files or {})}.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(content))
    return subprocess.run([sys.executable, "-m", "fxfuser.compat", "script.py", *arguments], cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=250, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, check=False)


def test_a_script_runs_unchanged(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        import sys
        import torch
        import beside
        from torch._prims.context import TorchRefsNvfuserCapabilityMode
        from torch._prims.executor import execute
        from torch.fx.experimental.proxy_tensor import make_fx

        if __name__ == "__main__":
            s, d = torch.sigmoid, torch.digamma
            x = torch.rand(3, 2)
            with TorchRefsNvfuserCapabilityMode():
                gm = make_fx(lambda t: s(d(s(d(s(t))))))(x)
                norm = make_fx(lambda t: torch.native_layer_norm(t, (2,), None, None, 1e-6))(x)
            torch.testing.assert_close(execute(gm, x, executor="nvfuser"), gm(x))
            y, mean, rstd = execute(norm, x, executor="strictly_nvfuser")
            torch.testing.assert_close(y, torch.nn.functional.layer_norm(x, (2,), eps=1e-6))
            import fxfuser
            print(sys.argv, beside.VALUE, fxfuser.stats()["launches"])
        """,
        "one", "--two",
        files={"beside.py": "VALUE = 7\n"},
    )
    assert done.returncode == 0, done.stdout
    assert "['script.py', 'one', '--two'] 7 {'cuda': 0, 'host': 4}" in done.stdout


def test_an_installed_nvfuser_is_not_shadowed(tmp_path: Path) -> None:
    done = run_script(
        tmp_path,
        """
        import nvfuser, nvfuser._C, torch
        from torch._prims.context import TorchRefsNvfuserCapabilityMode
        print(nvfuser.WHOSE, nvfuser._C.WHOSE)
        """,
        files={"nvfuser/__init__.py": "WHOSE = 'theirs'\n", "nvfuser/_C.py": "WHOSE = 'theirs too'\n"},
    )
    assert done.returncode == 0 and "theirs theirs too" in done.stdout, done.stdout


def test_usage(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert compat.main([]) == 2 and "usage" in capsys.readouterr().out
    assert compat.main([str(tmp_path / "missing.py")]) == 2 and "no file" in capsys.readouterr().err
    assert not compat.is_installed()
