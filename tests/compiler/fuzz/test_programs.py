"""Random programs under random schedules: numpy, the interpreter and every machine agree.

CI takes a few hundred of them, the long run 20,000 (`make soak`; `--fuzz-programs N`). A failure
prints its seed, the program and its loops.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from farbench.boards import Board, BoardUnavailable, find_emulator
from tests.compiler.llvm.jit import run
from tests.compiler.llvm.machine import BoardMachine

from .case import Case, random_case

_QUIET = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much]
SEEDS = st.integers(0, 2**32 - 1)
CPUS = {"sse2": ("Nehalem", "x86-64"), "avx2": ("Haswell", "x86-64-v3")}
BOARDS = {"aarch64": "pi3", "armv7": "beaglebone"}
SHARE = 25  # of the programs of the long run, one in so many runs on each emulated machine


@dataclass(frozen=True)
class EmulatedCpu:
    """This machine's own Python under an emulated CPU that has less than this one."""

    emulator: str
    cpu: str

    def python_command(self, *args: str) -> tuple[list[str], dict[str, str]]:
        """Return (argv, environment) that run Python with `args` on that CPU."""
        return [self.emulator, "-cpu", self.cpu, sys.executable, *args], dict(os.environ)


def _machine(request: pytest.FixtureRequest, name: str, folder: Path) -> BoardMachine:
    if name in BOARDS:
        board: Board = request.getfixturevalue(f"board_{name}")
        return BoardMachine(board, BOARDS[name], folder)
    cpu, level = CPUS[name]
    if os.uname().machine != "x86_64":
        pytest.skip("the host's own Python runs on an emulated x86-64 CPU, and this is no x86-64")
    try:
        emulator = find_emulator("x86_64")
    except BoardUnavailable as error:
        pytest.skip(str(error))
    target = f"llvm -mtriple=x86_64-linux-gnu -mcpu={level}"
    return BoardMachine(EmulatedCpu(emulator, cpu), target, folder)


@pytest.fixture(params=[*CPUS, *BOARDS])
def emulated(request: pytest.FixtureRequest) -> Iterator[BoardMachine]:
    """An emulated machine: x86-64 without AVX or without AVX-512, AArch64, 32-bit ARM."""
    with tempfile.TemporaryDirectory() as folder:
        machine = _machine(request, request.param, Path(folder))
        yield machine
        machine.close()


def _drawn(seed: int) -> Case:
    case = random_case(Random(seed))
    assume(case is not None)
    assert case is not None
    return case


@settings(max_examples=120, deadline=None, suppress_health_check=_QUIET, print_blob=True)
@given(seed=SEEDS)
def test_the_interpreter_gives_what_numpy_gives(seed: int) -> None:
    _drawn(seed).interpret(debug=seed % 4 == 0)


@settings(max_examples=120, deadline=None, suppress_health_check=_QUIET, print_blob=True)
@given(seed=SEEDS)
def test_compiled_code_gives_what_numpy_gives(seed: int) -> None:
    _drawn(seed).compile(run)


@pytest.mark.qemu
@settings(max_examples=15, deadline=None, suppress_health_check=_QUIET, print_blob=True)
@given(seed=SEEDS)
def test_emulated_machines_give_what_numpy_gives(emulated: BoardMachine, seed: int) -> None:
    _drawn(seed).compile(emulated.run)


def _trial(seed: int) -> Case | None:
    print(f"seed {seed}")
    return random_case(Random(seed))


@pytest.mark.slow
def test_the_long_run(fuzz_programs: int) -> None:
    for seed in range(fuzz_programs):
        case = _trial(seed)
        if case is not None:
            case.interpret(debug=seed % 4 == 0)
            case.compile(run)


@pytest.mark.slow
@pytest.mark.qemu
def test_the_long_run_on_emulated_machines(emulated: BoardMachine, fuzz_programs: int) -> None:
    for seed in range(0, fuzz_programs, SHARE):
        case = _trial(seed)
        if case is not None:
            case.compile(emulated.run)
