"""Random legal schedules of small programs give what numpy gives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from farbench_compiler import te
from farbench_compiler.ir.interp import run
from farbench_compiler.ir.verify import verify
from farbench_compiler.lower import lower
from farbench_compiler.te.attach import Inline, Root
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

FACTORS = st.sampled_from((1, 2, 3, 4, 7, 16))


def _shape_loops(draw: st.DrawFn, stage: te.Stage) -> None:
    """Split, fuse, reorder and mark the loops of a stage at random."""
    constant: set[te.IterVar] = set()
    for _ in range(draw(st.integers(0, 3))):
        loops = stage.leaf_iter_vars
        action = draw(st.sampled_from(("split", "nparts", "fuse", "reorder")))
        at = draw(st.integers(0, len(loops) - 1))
        if action == "split":
            constant.add(stage.split(loops[at], factor=draw(FACTORS))[1])
        elif action == "nparts":
            constant.add(stage.split(loops[at], nparts=draw(FACTORS))[0])
        elif action == "fuse" and at + 1 < len(loops) and loops[at].kind == loops[at + 1].kind:
            stage.fuse(loops[at], loops[at + 1])
        elif action == "reorder" and not isinstance(stage.op, te.ScanOp):
            stage.reorder(*draw(st.permutations(loops)))
    for axis in stage.leaf_iter_vars:
        kinds = ["serial"] if axis.kind == "scan" else ["serial", "vectorize"]
        if axis.kind == "data":
            kinds.append("parallel")
        if axis in constant:
            kinds.append("unroll")
        kind = draw(st.sampled_from(kinds))
        if kind != "serial":
            getattr(stage, kind)(axis)
        elif draw(st.integers(0, 5)) == 0:
            stage.pragma(axis, "auto_unroll_max_step", draw(st.integers(0, 40)))
        given = [t for t in stage.op.input_tensors if not t.op.input_tensors]
        if given and kind != "vectorize" and draw(st.integers(0, 5)) == 0:
            stage.prefetch(draw(st.sampled_from(given)), axis, draw(st.integers(1, 3)))


def _readers(sch: te.Schedule, stage: te.Stage) -> list[te.Stage]:
    """List who reads a stage, through inlined ones."""
    found: dict[te.Stage, None] = {}
    for reader in sch.readers(stage.op.output(0)):
        inlined = isinstance(reader.attach, Inline)
        found |= dict.fromkeys(_readers(sch, reader) if inlined else [reader])
    return list(found)


def _place(draw: st.DrawFn, sch: te.Schedule, stage: te.Stage) -> None:
    """Inline a producer or attach it to a loop of its reader, at random; pad its rows."""
    if not isinstance(stage.home, Root):  # in a scan, which places it
        return
    if len(stage.op.axis) > 1 and draw(st.integers(0, 3)) == 0:
        axis = draw(st.sampled_from(stage.op.axis[:-1]))
        stage.storage_align(axis, draw(st.sampled_from((4, 16))), 0)
    readers = _readers(sch, stage)
    choices = ["root"]
    if not stage.op.ordered_axis and not stage.is_scheduled:
        choices.append("inline")
    loops = [iv for iv in readers[0].leaf_iter_vars if readers[0].kinds.get(iv) != "vectorized"]
    if len(readers) == 1 and loops:
        choices += ["at", "at"]
    choice = draw(st.sampled_from(choices))
    if choice == "inline":
        stage.compute_inline()
    elif choice == "at":
        stage.compute_at(readers[0], draw(st.sampled_from(loops)))


def _schedule(draw: st.DrawFn, program: Program) -> te.Schedule:
    sch = te.create_schedule(program.output.op)
    if draw(st.booleans()):
        sch.cache_write(program.output, "global")
    if draw(st.integers(0, 3)) == 0:
        tensor = program.inputs[0]
        sch.cache_read(tensor, "global", list(sch.readers(tensor))[0].op)
    computed = [s for s in sch.stages if isinstance(s.op, te.ComputeOp)]
    for stage in reversed(computed):
        if draw(st.booleans()):
            _shape_loops(draw, stage)
        if not stage.is_output:
            _place(draw, sch, stage)
    return sch


@st.composite
def cases(
    draw: st.DrawFn,
    makes: Sequence[Make] = PROGRAMS,
    sizes: st.SearchStrategy[int] = st.integers(1, 9),  # noqa: B008
) -> tuple[Program, te.Schedule, int]:
    make = draw(st.sampled_from(makes))
    n, m = draw(sizes), draw(sizes)
    program = make(n, m, draw(st.booleans()))
    return program, _schedule(draw, program), draw(st.integers(0, 1000))


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cases())
def test_a_random_schedule_gives_what_numpy_gives(case: tuple[Program, te.Schedule, int]) -> None:
    _check(*case)


@settings(max_examples=40, deadline=None)
@given(cases(makes=(chain, stencil, matmul, packed, recurrence), sizes=st.sampled_from((0, 3))))
def test_arrays_without_elements(case: tuple[Program, te.Schedule, int]) -> None:
    _check(*case)


def _check(program: Program, sch: te.Schedule, seed: int) -> None:
    """Run a scheduled program and compare it with numpy."""
    fn = lower(sch, [*program.inputs, program.output])
    verify(fn, "lowered")
    rng = np.random.default_rng(seed)
    inputs = [rng.integers(-9, 9, shape, dtype=np.int32) for shape in program.shapes]
    expected = program.reference(*inputs)
    got = np.full(expected.shape, -77, np.int32)
    run(fn, [*inputs, got])
    np.testing.assert_array_equal(got, expected)
