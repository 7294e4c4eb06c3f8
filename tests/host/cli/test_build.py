"""`farbench build`: a user's file becomes a library, or an error that names its fault."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import farbench as fb
from farbench_rpc.manifest import read_elf

if TYPE_CHECKING:
    from tests.host.cli.conftest import Run


@pytest.mark.linux
def test_a_program_is_built_and_runs(run: Run, program: Path, tmp_path: Path) -> None:
    out = tmp_path / "add.so"
    said = run("build", f"{program}:vector_add", "-o", out, "--json")
    assert (said.status, said.last["entry"]) == (0, "vector_add")
    assert said.last["nbytes"] == out.stat().st_size
    values = np.arange(5, dtype=np.float32)
    result = np.zeros(5, dtype=np.float32)
    fb.load_module(out)(values, values, result)
    assert (result == 2 * values).all()


@pytest.mark.parametrize("target", ["pi4", "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72"])
def test_c1_the_format_follows_the_target(
    run: Run, program: Path, tmp_path: Path, target: str
) -> None:
    out = tmp_path / "add.so"
    said = run("build", f"{program}:for_target", "--target", target, "-o", out, "--name", "add")
    assert said.status == 0
    assert "add(A: float32[n]" in said.out
    assert read_elf(out).arch == "aarch64"


@pytest.mark.parametrize(
    ("spec", "words", "status", "says"),
    [
        ("none.py:f", (), 2, "no file none.py"),
        ("program.py", (), 2, "FILE.py:FUNCTION"),
        ("program.py:vector_ad", (), 2, "it has: vector_add"),
        ("program.py:gives_a_number", (), 2, "returned int; return (schedule, args)"),
        ("program.py:takes_a_size", (), 2, "takes n"),
        ("program.py:raises", (), 1, "program.py:22: NameError"),
        ("program.py:vector_add", ("--target", "pi44"), 2, "did you mean pi4"),
        ("program.py:vector_add", ("-o", "none/x.so"), 2, "no folder none"),
    ],
)
def test_what_is_wrong_is_named(
    run: Run,
    program: Path,
    monkeypatch: pytest.MonkeyPatch,
    spec: str,
    words: tuple[str, ...],
    status: int,
    says: str,
) -> None:
    monkeypatch.chdir(program.parent)
    said = run("build", spec, "-o", "x.so", *words)
    assert said.status == status
    assert says in said.err.splitlines()[-1]
    assert "Traceback" not in said.err


def test_a_file_with_a_syntax_error_is_named_with_its_line(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("x = 1\ndef f(:\n")
    said = run("build", f"{path}:f", "-o", tmp_path / "x.so")
    assert said.status == 1
    assert "broken.py:2: SyntaxError" in said.err


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("def f(): raise SystemExit(3)", "odd.py:1: SystemExit: 3"),
        ("import sys; sys.exit(5)", "odd.py:1: SystemExit: 5"),
        ("class E(BaseException): pass\ndef f(): raise E('x')", "odd.py:2: E: x"),
    ],
)
def test_a_file_that_ends_the_program_is_an_error_of_its_own(
    run: Run, tmp_path: Path, body: str, says: str
) -> None:
    path = tmp_path / "odd.py"
    path.write_text(body + "\n")
    said = run("build", f"{path}:f", "-o", tmp_path / "x.so")
    assert said.status == 1
    assert says in said.err
    assert "Traceback" not in said.err
