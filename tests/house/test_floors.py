"""Imports only look down, and the contracts that say so catch what they should."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.house._files import ROOT

PACKAGES = (
    "farbench",
    "farbench_tracker",
    "farbench_device_runtime",
    "farbench_compiler",
    "farbench_rpc",
)


def lint(folder: Path, paths: list[Path]) -> subprocess.CompletedProcess[str]:
    """Run import-linter with the contracts of pyproject.toml on the packages under `paths`."""
    program = "import sys; from importlinter.cli import lint_imports_command as c; c(sys.argv[1:])"
    arguments = ["--config", str(ROOT / "pyproject.toml"), "--no-cache"]
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=folder,
        env={"PYTHONPATH": ":".join(map(str, paths)), "PATH": "/usr/bin:/bin", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def house(tmp_path: Path, **lines: str) -> list[Path]:
    """Make a small house of the five packages; `lines` are the contents of each one's module."""
    for package in PACKAGES:
        folder = tmp_path / package
        folder.mkdir()
        (folder / "__init__.py").touch()
        (folder / "part.py").write_text(lines.get(package, ""))
    for name in ("manifest", "client"):
        (tmp_path / "farbench_rpc" / name).mkdir()
        (tmp_path / "farbench_rpc" / name / "__init__.py").touch()
    (tmp_path / "farbench_rpc/manifest/check.py").touch()
    return [tmp_path]


def test_the_house_keeps_its_contracts() -> None:
    wings = [ROOT / name for name in ("host", "tracker", "device_runtime", "rpc", "compiler")]
    done = lint(ROOT, wings)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_good_house_passes(tmp_path: Path) -> None:
    paths = house(
        tmp_path,
        farbench="import farbench_compiler.part, farbench_rpc.client",
        farbench_tracker="import farbench_rpc.client",
        farbench_compiler="from farbench_rpc.manifest import check\nimport farbench_rpc.manifest",
    )
    done = lint(tmp_path, paths)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("package", "line"),
    [
        ("farbench_rpc", "import farbench_tracker.part"),
        ("farbench_tracker", "import farbench.part"),
        ("farbench_tracker", "import farbench_device_runtime.part"),
        ("farbench_device_runtime", "import farbench_compiler.part"),
        ("farbench_compiler", "import farbench_rpc.client"),
        ("farbench_compiler", "from farbench_rpc import part"),
    ],
)
def test_an_import_that_looks_up_or_sideways_is_caught(
    tmp_path: Path, package: str, line: str
) -> None:
    done = lint(tmp_path, house(tmp_path, **{package: line}))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "BROKEN" in done.stdout


def test_boards_need_pyzmq_and_msgpack_alone() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    assert '\ndependencies = ["pyzmq>=22", "msgpack>=1.0.3"]\n' in text
    assert 'requires-python = ">=3.10"' in text
