"""The device server as one file: complete, small, and clear about what a board lacks."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from farbench.boards import Board
from tests.house._files import ROOT, source_files


@pytest.fixture(scope="module")
def pyz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("pyz") / "farbench-device.pyz"
    script = ROOT / "scripts/build_pyz.py"
    subprocess.run(
        [sys.executable, str(script), str(target)], check=True, capture_output=True, timeout=60
    )
    return target


def run(argv: list[str], env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=100, check=False)


def test_holds_every_module_of_both_wings(pyz: Path) -> None:
    wanted = {
        "/".join(path.parts[1:])
        for path in source_files(".py")
        if path.parts[0] in ("rpc", "device_runtime")
    }
    with zipfile.ZipFile(pyz) as archive:
        held = {name for name in archive.namelist() if not name.endswith("/")}
    assert held == wanted | {"__main__.py"}


def test_says_its_version(pyz: Path) -> None:
    done = run([sys.executable, "-I", str(pyz), "--version"])
    assert done.returncode == 0, done.stderr
    assert "farbench" in done.stdout


def test_names_the_packages_that_are_missing(pyz: Path) -> None:
    # -S leaves site-packages out: a Python with the standard library alone.
    done = run([sys.executable, "-I", "-S", str(pyz), "--version"])
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "apt-get install python3-zmq python3-msgpack" in done.stderr
    assert "pip install pyzmq msgpack" in done.stderr


@pytest.mark.qemu
def test_runs_on_a_board(pyz: Path, board_aarch64: Board) -> None:
    argv, environment = board_aarch64.python_command(str(pyz), "--version")
    # Without our packages beside it: the file alone must do.
    own, _, debian = environment["PYTHONPATH"].partition(":")
    assert own == str(board_aarch64.packages)
    done = run(argv, {**environment, "PYTHONPATH": debian})
    assert done.returncode == 0, done.stderr
    assert "farbench" in done.stdout
