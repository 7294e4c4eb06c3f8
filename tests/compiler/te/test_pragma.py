"""Pragmas: what each does to the loops it is on, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import farbench as fb
from farbench_compiler import te
from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir import interp
from farbench_compiler.ir.printer import to_text
from farbench_compiler.ir.verify import verify
from farbench_compiler.lower import lower
from farbench_compiler.te.pragma import KINDS


def scaled(n: int | te.Var = 100, m: int | te.Var = 8) -> tuple[te.Tensor, te.Tensor, te.Schedule]:
    """B = 2 A."""
    a = te.placeholder((n, m), name="A")
    b = te.compute((n, m), lambda i, j: a[i, j] * 2.0, name="B")
    return a, b, te.create_schedule(b.op)


def product() -> tuple[te.Tensor, te.Tensor, te.Schedule]:
    """B[i] = the sum of A[i, j, k] over j and k, both of 4 steps."""
    a = te.placeholder((6, 4, 4), name="A")
    j, k = te.reduce_axis((0, 4), name="j"), te.reduce_axis((0, 4), name="k")
    b = te.compute((6,), lambda i: te.sum(a[i, j, k], axis=[j, k]), name="B")
    return a, b, te.create_schedule(b.op)


def loops(sch: te.Schedule, *args: te.Tensor) -> list[str]:
    """List the loops of a lowered schedule, as they are printed."""
    lines = [line.strip() for line in to_text(lower(sch, args)).splitlines()]
    return [line.removeprefix("for ") for line in lines if line.startswith("for ")]


def test_pragma_of_strides(golden: Callable[[str, str], None]) -> None:
    """The text of a parallel loop whose steps the threads take in turn."""
    a, b, sch = scaled()
    i = b.op.axis[0]
    sch[b].parallel(i)
    for kind in ("launch_point", "stride_pattern", "barrier_when_finish"):
        sch[b].pragma(i, f"parallel_{kind}")
    fn = lower(sch, [a, b], name="pragma_stride")
    verify(fn, "lowered")
    golden("pragma_stride", to_text(fn) + "\n")


@pytest.mark.parametrize(
    ("most", "kinds"),
    [
        (0, ["serial", "serial", "serial"]),
        (4, ["serial", "serial", "unrolled"]),
        (15, ["serial", "serial", "unrolled"]),
        (16, ["serial", "unrolled", "unrolled"]),
        (102, ["unrolled", "unrolled", "unrolled"]),
    ],
)
def test_unrolling_goes_as_far_as_the_steps_allow(most: int, kinds: list[str]) -> None:
    a, b, sch = product()
    sch[b].pragma(b.op.axis[0], "auto_unroll_max_step", most)
    found = loops(sch, a, b)
    assert [line.split(" in ")[1].split("(")[0] for line in found] == kinds


def test_unrolling_stays_inside_of_its_loop_and_leaves_what_is_marked() -> None:
    a, b, sch = product()
    i, j, k = *b.op.axis, *b.op.reduce_axis
    sch[b].parallel(i)
    sch[b].pragma(j, "auto_unroll_max_step", 1000)
    assert loops(sch, a, b)[0] == "i in parallel(0, 6):"
    a, b, sch = product()
    i, j, k = *b.op.axis, *b.op.reduce_axis
    sch[b].unroll(k)
    sch[b].pragma(i, "unroll_explicit", False)
    assert all("serial" in line for line in loops(sch, a, b))


def test_a_region_is_skipped() -> None:
    a, b, sch = scaled(5, 4)
    outer, inner = sch[b].split(b.op.axis[0], factor=2)
    sch[b].pragma(inner, "debug_skip_region")
    x, got = np.ones((5, 4), np.float32), np.full((5, 4), 7, np.float32)
    interp.run(lower(sch, [a, b]), [x, got])
    assert (got == 7).all()


@pytest.mark.parametrize("n", [1, 3, 64, 65, 200])
@pytest.mark.parametrize("symbolic", [False, True])
def test_strides_reach_every_step_once(n: int, symbolic: bool) -> None:
    a, b, sch = scaled(te.var("n") if symbolic else n, 8)
    outer, launched = sch[b].split(b.op.axis[0], nparts=1)
    sch[b].parallel(launched)
    sch[b].pragma(outer, "parallel_launch_point")
    sch[b].pragma(launched, "parallel_stride_pattern")
    sch[b].pragma(launched, "parallel_barrier_when_finish")
    sch[b].vectorize(b.op.axis[1])
    x = np.random.default_rng(0).random((n, 8), dtype=np.float32)
    out = fb.nd.array(np.zeros_like(x))
    fb.build(sch, [a, b])(fb.nd.array(x), out)
    np.testing.assert_array_equal(out.numpy(), x * 2)


def _stale(sch: te.Schedule, a: te.Tensor, b: te.Tensor) -> None:
    sch[b].pragma(b.op.axis[0], "debug_skip_region")
    sch[b].split(b.op.axis[0], factor=2)
    lower(sch, [a, b])


def _lowered(kind: str) -> Callable[[te.Schedule, te.Tensor, te.Tensor], None]:
    def act(sch: te.Schedule, a: te.Tensor, b: te.Tensor) -> None:
        sch[b].pragma(b.op.axis[0], kind)
        lower(sch, [a, b])

    return act


ILLEGAL: dict[str, tuple[Callable[[te.Schedule, te.Tensor, te.Tensor], object], str]] = {
    "unknown": (
        lambda s, a, b: s[b].pragma(b.op.axis[0], "fast_please"),
        f"pragma: 'fast_please' on axis i of stage B is unknown; there are {', '.join(KINDS)}",
    ),
    "foreign code": (
        lambda s, a, b: s[b].pragma(b.op.axis[0], "import_llvm", "define void @f()"),
        "pragma: 'import_llvm' on axis i of stage B would link LLVM code of another compiler",
    ),
    "value": (
        lambda s, a, b: s[b].pragma(b.op.axis[0], "auto_unroll_max_step", "many"),
        "'auto_unroll_max_step' on axis i of stage B has the value 'many'; give an integer",
    ),
    "negative": (
        lambda s, a, b: s[b].pragma(b.op.axis[0], "auto_unroll_max_step", -1),
        "has the negative value -1",
    ),
    "no loop": (
        lambda s, a, b: s[a].pragma(b.op.axis[0], "unroll_explicit"),
        "pragma: A is not computed, so it has no loops",
    ),
    "stale": (_stale, "pragma: axis i of stage B was split into i.outer and i.inner; use those"),
    "strides of no parallel loop": (
        _lowered("parallel_stride_pattern"),
        "'parallel_stride_pattern' on axis i of stage B needs a parallel loop; call parallel",
    ),
    "launch of none": (
        _lowered("parallel_launch_point"),
        "'parallel_launch_point' on axis i of stage B has no parallel loop inside",
    ),
}


@pytest.mark.parametrize("name", ILLEGAL)
def test_what_is_refused(name: str) -> None:
    act, message = ILLEGAL[name]
    a, b, sch = scaled()
    with pytest.raises(ScheduleError) as caught:
        act(sch, a, b)
    assert message in str(caught.value)


def test_nontemporal(golden: Callable[[str, str], None]) -> None:
    """The text of an output that is written past the caches, and what the code makes of it."""
    a, b, sch = scaled(1000, 16)
    sch[b].vectorize(b.op.axis[1])
    sch[b].pragma(b.op.axis[0], "nontemporal")
    fn = lower(sch, [a, b], name="nontemporal")
    verify(fn, "lowered")
    golden("nontemporal", to_text(fn) + "\n")
    module = fb.build(sch, [a, b], target="x86-64-v4")
    text = module.get_source("ll")
    assert "store <16 x float>" in text
    assert "!nontemporal" in text
    assert "fence seq_cst" in text
    assert "vmovntps" in module.get_source("asm")


def test_nontemporal_rows_of_any_alignment() -> None:
    for columns in (1, 3, 8, 17, 50):
        a, b, sch = scaled(40, columns)
        i, j = b.op.axis
        _, lane = sch[b].split(j, factor=16)
        sch[b].vectorize(lane)
        sch[b].parallel(i)
        sch[b].pragma(i, "nontemporal")
        x = np.random.default_rng(columns).standard_normal((40, columns), np.float32)
        got = np.zeros_like(x)
        fb.build(sch, [a, b])(x, got)
        np.testing.assert_array_equal(got, x * 2)


def test_nontemporal_is_for_outputs_that_are_written_once() -> None:
    a, b, sch = product()
    sch[b].pragma(b.op.axis[0], "nontemporal")
    with pytest.raises(ScheduleError, match="'nontemporal' on axis .* without a reduction; use"):
        lower(sch, [a, b])
