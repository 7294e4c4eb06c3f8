"""Runs commands of the command line in this process, and reads what they said."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from farbench.cli.main import main

PROGRAM = """
from farbench import te

def vector_add():
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.placeholder((n,), name="B")
    c = te.compute((n,), lambda i: a[i] + b[i], name="C")
    return te.create_schedule(c.op), [a, b, c]

def for_target(target):
    assert target.arch == "aarch64"
    return vector_add()

def gives_a_number():
    return 3

def takes_a_size(n):
    return vector_add()

def raises():
    return undefined
"""


@dataclass(frozen=True)
class Said:
    """What a command wrote, and its exit status."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[Any]:
        """The lines of stdout as JSON."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def last(self) -> Any:
        """The last line of stdout as JSON."""
        return self.lines[-1]


Run = Callable[..., Said]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command line with a configuration folder of its own."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("FARBENCH_TRACKER", raising=False)

    def one(*words: object) -> Said:
        capsys.readouterr()
        status = main([str(word) for word in words])
        said = capsys.readouterr()
        return Said(status, said.out, said.err)

    return one


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A user's file with programs that are right and wrong."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path
