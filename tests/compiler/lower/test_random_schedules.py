"""Random legal schedules of small programs give what numpy gives."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from farbench_compiler import te
from farbench_compiler.ir.interp import run
from farbench_compiler.ir.stmt import LoopFunction
from tests.compiler.fuzz.schedules import lowered, random_schedule
from tests.compiler.lower.programs import (
    PROGRAMS,
    Make,
    Program,
    chain,
    matmul,
    packed,
    recurrence,
    stencil,
)


@st.composite
def cases(
    draw: st.DrawFn,
    makes: Sequence[Make] = PROGRAMS,
    sizes: st.SearchStrategy[int] = st.integers(1, 9),  # noqa: B008
) -> tuple[Program, LoopFunction, int]:
    """Draw a program, lowered under a random schedule, and a seed for its inputs."""
    make = draw(st.sampled_from(makes))
    n, m = draw(sizes), draw(sizes)
    program = make(n, m, draw(st.booleans()))
    seed = draw(st.integers(0, 2**32 - 1))
    sch = random_schedule(Random(seed), [program.output], program.inputs)
    fn = lowered(sch, [*program.inputs, program.output])
    assume(fn is not None)
    assert fn is not None
    return program, fn, seed


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cases())
def test_a_random_schedule_gives_what_numpy_gives(case: tuple[Program, LoopFunction, int]) -> None:
    _check(*case)


@settings(max_examples=40, deadline=None)
@given(cases(makes=(chain, stencil, matmul, packed, recurrence), sizes=st.sampled_from((0, 3))))
def test_arrays_without_elements(case: tuple[Program, LoopFunction, int]) -> None:
    _check(*case)


def _check(program: Program, fn: LoopFunction, seed: int) -> None:
    """Run a scheduled program and compare it with numpy."""
    rng = np.random.default_rng(seed)
    inputs = [rng.integers(-9, 9, shape, dtype=np.int32) for shape in program.shapes]
    expected = program.reference(*inputs)
    got = np.full(expected.shape, -77, np.int32)
    run(fn, [*inputs, got])
    np.testing.assert_array_equal(got, expected)


def test_fused_loops_of_no_step_in_a_scan() -> None:
    program = recurrence(0, 0, False)
    sch = te.create_schedule(program.output.op)
    (inside,) = (stage for stage in sch.stages if stage.name == "T")
    inside.fuse(*inside.op.axis)
    fn = lowered(sch, [*program.inputs, program.output])
    assert fn is not None
    _check(program, fn, 0)
