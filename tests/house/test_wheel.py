"""The wheel holds every file of the wings, asks boards for little, and hosts for the rest."""

from __future__ import annotations

import email
import subprocess
import sys
import zipfile
from email.message import Message
from pathlib import Path

import pytest

from tests.house._files import ROOT, WINGS, project_files


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    return next(folder.glob("farbench-*.whl"))


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
        return email.message_from_string(archive.read(name).decode())


def test_holds_every_file_of_the_wings(wheel: Path) -> None:
    wanted = {"/".join(p.parts[1:]) for p in project_files() if p.parts[0] in WINGS}
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert held == wanted
    kinds = {Path(name).suffix for name in held}
    assert {".py", ".c", ".h", ".json", ".typed", ".j2"} <= kinds


def test_asks_boards_for_two_packages(metadata: Message) -> None:
    needs = [line for line in metadata.get_all("Requires-Dist", []) if "extra" not in line]
    assert sorted(line.partition(">")[0] for line in needs) == ["msgpack", "pyzmq"]
    assert metadata["Requires-Python"] == ">=3.10"
    assert set(metadata.get_all("Provides-Extra", [])) == {"host", "dev"}


def test_brings_both_commands(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [n for n in archive.namelist() if n.endswith(".dist-info/entry_points.txt")]
        text = archive.read(name).decode()
    assert "farbench = farbench.cli.main:main" in text
    assert "farbench-device = farbench_device_runtime.cli:main" in text
