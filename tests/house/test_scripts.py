"""The scripts behind `make` and .ci/run say what is missing, and pass failures on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.house._files import ROOT

SCRIPTS = ROOT / "scripts"
pytestmark = pytest.mark.linux


def program(folder: Path, name: str, body: str) -> Path:
    """Put a stand-in for a system's program into a folder of a PATH."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def run(
    *argv: str | Path, path: Path | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **({"PATH": str(path)} if path else {})}
    return subprocess.run(
        [str(word) for word in argv],
        env=environment,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


# ---------------------------------------------------------------- system_packages


def machine(
    tmp_path: Path, *, uid: int, system: str = "Linux", tools: tuple[str, ...] = ()
) -> Path:
    """Make a PATH of a machine: its user, its system, apt-get that writes down its arguments."""
    folder = tmp_path / "bin"
    program(folder, "id", f"echo {uid}")
    program(folder, "uname", f"echo {system}")
    program(folder, "apt-get", f'echo "$@" >> {tmp_path}/apt; exit ${{APT_STATUS:-0}}')
    for tool in tools:
        program(folder, tool, "exit 0")
    return folder


def packages(path: Path) -> subprocess.CompletedProcess[str]:
    return run("/bin/sh", SCRIPTS / "system_packages", path=path)


def test_root_installs_what_is_missing(tmp_path: Path) -> None:
    done = packages(machine(tmp_path, uid=0, tools=("mmdebstrap",)))
    assert done.returncode == 0
    update, install = (tmp_path / "apt").read_text().splitlines()
    assert update.startswith("update")
    assert install.startswith("install")
    assert install.endswith(" qemu-user-static")


def test_others_are_told_what_is_skipped(tmp_path: Path) -> None:
    done = packages(machine(tmp_path, uid=1000))
    assert done.returncode == 0
    assert "emulated boards are skipped: qemu-user-static mmdebstrap not installed" in done.stdout
    assert "sudo apt-get install qemu-user-static mmdebstrap" in done.stdout
    assert not (tmp_path / "apt").exists()


def test_other_systems_are_told(tmp_path: Path) -> None:
    done = packages(machine(tmp_path, uid=0, system="Darwin"))
    assert "this is no Debian or Ubuntu" in done.stdout


def test_a_ready_machine_is_silent(tmp_path: Path) -> None:
    ready = machine(tmp_path, uid=0, tools=("mmdebstrap", "qemu-aarch64"))
    done = packages(ready)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_failing_apt_is_told_and_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("APT_STATUS", "100")
    done = packages(machine(tmp_path, uid=0))
    assert done.returncode == 0
    assert "apt-get failed" in done.stdout


# ---------------------------------------------------------------- make_env


def test_missing_python_is_named(tmp_path: Path) -> None:
    done = run(SCRIPTS / "make_env", tmp_path / "env", "python9")
    assert done.returncode == 1
    assert "python9 is not installed" in done.stderr


def test_old_python_is_named(tmp_path: Path) -> None:
    old = program(
        tmp_path / "bin", "python3", '[ "$1" = --version ] && echo Python 3.8.10 || exit 1'
    )
    done = run(SCRIPTS / "make_env", tmp_path / "env", old)
    assert done.returncode == 1
    assert "Python 3.8.10 is too old" in done.stderr


def test_ready_environment_is_kept(tmp_path: Path) -> None:
    folder = tmp_path / "env"
    folder.mkdir()
    program(folder / "bin", "python", "exit 0")
    (folder / "kept").touch()
    done = run(SCRIPTS / "make_env", folder, sys.executable)
    assert (done.returncode, done.stdout) == (0, "")
    assert (folder / "kept").exists()


# ---------------------------------------------------------------- .ci/run


@pytest.mark.parametrize(
    ("tested", "checked", "status"), [(0, 0, 0), (1, 0, 1), (0, 1, 1), (1, 1, 1)]
)
def test_ci_ends_with_the_closing_line(
    tmp_path: Path, tested: int, checked: int, status: int
) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci/run")
    (tmp_path / "Makefile").write_text(
        "test:\n\t@echo required=$$FARBENCH_REQUIRE_ALL\n"
        f"\t@echo '===== 3 passed in 1.50s ====='; exit {tested}\n"
        f"check:\n\t@echo checking; exit {checked}\n"
    )
    done = run(tmp_path / ".ci/run", cwd=tmp_path)
    assert done.returncode == status
    assert "required=1" in done.stdout
    assert done.stdout.splitlines()[-1] == "===== 3 passed in 1.50s ====="


# ---------------------------------------------------------------- picture


def test_picture_is_well_formed_and_holds_the_last_table(tmp_path: Path) -> None:
    text = "building\nDevice  Old\nx  1\nDevice  Workload  Valid\nboard <a>  matmul & add  yes\n"
    target = tmp_path / "demo.svg"
    done = subprocess.run(
        [sys.executable, str(SCRIPTS / "picture.py"), str(target), "farbench demo"],
        input=text,
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    words = [node.text for node in ET.parse(target).getroot().iter() if (node.text or "").strip()]
    assert words == ["farbench demo", "Device  Workload  Valid", "board <a>  matmul & add  yes"]
