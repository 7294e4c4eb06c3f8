"""What the README tells people to type exists, and its program runs."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.house._files import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.S)


def commands() -> list[list[str]]:
    """List the commands of the shell blocks as words."""
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    return [words for line in lines if (words := shlex.split(line, comments=True))]


FARBENCH = [words for words in commands() if words[0] == "farbench"]


def help_of(*command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "farbench.cli.main", *command, "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_make_targets_exist() -> None:
    named = set(re.findall(r"(?m)(?:^|`)make ([a-z-]+)", README))
    assert {"demo", "test", "bench", "peers", "device-pyz"} <= named
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.M))
    assert named - targets == set()


@pytest.mark.parametrize("words", FARBENCH, ids=" ".join)
def test_commands_and_their_flags_exist(words: list[str]) -> None:
    text = help_of(words[1])
    flags = [word for word in words if re.match(r"-\w|--\w", word)]
    assert [flag for flag in flags if not re.search(rf"(^|\s){flag}\b", text)] == []


def test_device_flags_exist() -> None:
    text = help_of("device")
    flags = set(re.findall(r"(?<![\w-])--(?:tracker|insecure|label|cores|state)\b", README))
    assert len(flags) == 5
    assert [flag for flag in flags if flag not in text] == []


def test_requirements_can_be_read() -> None:
    from farbench_tracker.requirement import parse

    shown = [words[words.index("--on") + 1] for words in FARBENCH if "--on" in words]
    shown += ["arch=aarch64,memory>=2GiB", "arch=aarch64,board=pi4", "cores>=4", "!emulated"]
    assert len(shown) == 6
    for text in shown:
        parse(text)


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


@pytest.mark.qemu
def test_the_program_runs_as_it_stands(shared_fleet: Callable[[str], str], tmp_path: Path) -> None:
    (program,) = blocks("python")
    port = shared_fleet("aarch64").rpartition(":")[2]
    assert '"127.0.0.1", 9190' in program
    script = tmp_path / "program.py"
    script.write_text(program.replace('"127.0.0.1", 9190', f'"127.0.0.1", {port}'))
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
