"""Memory of stages in loops: two halves, rings of rows, stores under a predicate."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import farbench as fb
from farbench_compiler import te
from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir import interp
from farbench_compiler.ir.printer import to_text
from farbench_compiler.ir.verify import verify
from farbench_compiler.lower import lower

KINDS = ("double_buffer", "rolling_buffer")


def blur(
    n: int = 20, m: int = 24, taps: int = 3
) -> tuple[te.Tensor, te.Tensor, te.Tensor, te.Schedule]:
    """C[i] = B[i] + ... + B[i + taps - 1] with B = 2 A + 1."""
    a = te.placeholder((n + taps - 1, m), "int32", name="A")
    b = te.compute(a.shape, lambda i, j: a[i, j] * 2 + 1, name="B")
    k = te.reduce_axis((0, taps), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(b[i + k, j], axis=k), name="C")
    return a, b, c, te.create_schedule(c.op)


def check(n: int, m: int, taps: int, a: te.Tensor, c: te.Tensor, sch: te.Schedule) -> None:
    """Compare the interpreter and the compiled code with numpy."""
    x = np.random.default_rng(n).integers(-99, 99, (n + taps - 1, m), dtype=np.int32)
    wanted = sum((x * 2 + 1)[k : k + n] for k in range(taps))
    fn = lower(sch, [a, c])
    verify(fn, "lowered")
    for run in (lambda *given: interp.run(fn, given), fb.build(sch, [a, c])):
        got = np.full((n, m), -7, np.int32)
        run(x, got)
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("kind", KINDS)
def test_the_text(kind: str, golden: Callable[[str, str], None]) -> None:
    a, b, c, sch = blur()
    sch[b].compute_at(sch[c], c.op.axis[0])
    getattr(sch[b], kind)()
    fn = lower(sch, [a, c], name=kind)
    verify(fn, "lowered")
    golden(kind, to_text(fn) + "\n")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    kind=st.sampled_from(KINDS),
    n=st.integers(1, 23),
    m=st.integers(1, 9),
    taps=st.integers(2, 5),
    factor=st.integers(1, 5),
    columns=st.booleans(),
)
def test_any_tile_gives_what_numpy_gives(
    kind: str, n: int, m: int, taps: int, factor: int, columns: bool
) -> None:
    a, b, c, sch = blur(n, m, taps)
    i, j = c.op.axis
    outer, inner = sch[c].split(i, factor=factor)
    if columns:  # the loop that rolls is inside of another
        sch[c].reorder(j, outer, inner)
    sch[b].compute_at(sch[c], outer)
    getattr(sch[b], kind)()
    check(n, m, taps, a, c, sch)


def test_a_ring_computes_each_row_once() -> None:
    a, b, c, sch = blur()
    sch[b].compute_at(sch[c], c.op.axis[0])
    sch[b].rolling_buffer()
    fn = lower(sch, [a, c])
    assert "B: int32[3, 24]" in to_text(fn)
    assert "if i == 0 or" in to_text(fn)


@pytest.mark.parametrize("kind", KINDS)
def test_what_cannot_last_is_named(kind: str) -> None:
    a, b, c, sch = blur()
    with pytest.raises(ScheduleError, match=f"{kind}: stage C has no memory of its own; take"):
        getattr(sch[c], kind)()
    getattr(sch[b], kind)()
    with pytest.raises(ScheduleError, match=f"{kind}: stage B is attached to no loop; use comp"):
        lower(sch, [a, c])
    sch[b].compute_at(sch[c], c.op.axis[0])
    sch[c].parallel(c.op.axis[0])
    with pytest.raises(ScheduleError, match=f"{kind}: stage B is attached to axis i of C, which"):
        lower(sch, [a, c])
    other = next(k for k in KINDS if k != kind)
    with pytest.raises(ScheduleError, match=f"{other}: stage B has {kind} already; one"):
        getattr(sch[b], other)()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("factor", [1, 20])
def test_two_stages_in_one_loop(kind: str, factor: int) -> None:
    a = te.placeholder((22, 6), "int32", name="A")
    b, d = te.compute_all(a.shape, lambda i, j: (a[i, j] * 2, a[i, j] + 5), name="B")
    e = te.compute(a.shape, lambda i, j: a[i, j] - 3, name="E")
    c = te.compute((20, 6), lambda i, j: b[i, j] + d[i + 2, j] + e[i + 1, j] * e[i, j], name="C")
    sch = te.create_schedule(c.op)
    outer, _ = sch[c].split(c.op.axis[0], factor=factor)
    for stage in (sch[b], sch[e]):
        stage.compute_at(sch[c], outer)
        getattr(stage, kind)()
    x = np.random.default_rng(1).integers(-99, 99, (22, 6), dtype=np.int32)
    got = np.zeros((20, 6), np.int32)
    fb.build(sch, [a, c])(x, got)
    wanted = x[:20] * 2 + x[2:] + 5 + (x[1:21] - 3) * (x[:20] - 3)
    np.testing.assert_array_equal(got, wanted)


def test_a_ring_needs_rows_in_common() -> None:
    a, b, c, sch = blur()
    sch[b].compute_at(sch[c], sch[c].split(c.op.axis[1], factor=4)[0])
    sch[b].rolling_buffer()
    with pytest.raises(ScheduleError, match="rolling_buffer: stage B shares no constant number"):
        lower(sch, [a, c])


def test_store_predicate(golden: Callable[[str, str], None]) -> None:
    a, b, c, sch = blur()
    i, j = c.op.axis
    _, inner = sch[c].split(j, factor=8)
    sch[c].vectorize(inner)
    sch[b].compute_inline()
    sch[c].set_store_predicate(te.all(i < 5, j > 2))
    fn = lower(sch, [a, c], name="store_predicate")
    verify(fn, "lowered")
    golden("store_predicate", to_text(fn) + "\n")
    x = np.random.default_rng(0).integers(-99, 99, (22, 24), dtype=np.int32)
    wanted = np.full((20, 24), -7, np.int32)
    wanted[:5, 3:] = np.sum([(x * 2 + 1)[k : k + 20] for k in range(3)], 0)[:5, 3:]
    got = np.full((20, 24), -7, np.int32)
    fb.build(sch, [a, c])(x, got)
    np.testing.assert_array_equal(got, wanted)


def test_a_predicate_is_about_data_axes() -> None:
    a, b, c, sch = blur()
    with pytest.raises(ScheduleError, match="set_store_predicate: stage C needs a condition, got"):
        sch[c].set_store_predicate(c.op.axis[0] + 1)
    sch[c].set_store_predicate(c.op.reduce_axis[0] < 1)
    with pytest.raises(ScheduleError, match="stage C uses a reduce axis; use data axes alone"):
        lower(sch, [a, c])
    sch[c].set_store_predicate(b.op.axis[0] < 1)
    with pytest.raises(ScheduleError, match="stage C uses axis i, which is none of its axes"):
        lower(sch, [a, c])


def test_cache_write_of_several_outputs() -> None:
    a = te.placeholder((30,), "int32", name="A")
    lo, hi = te.compute_all((30,), lambda i: (a[i] - 1, a[i] + 1), name="B")
    sch = te.create_schedule(lo.op)
    first, second = sch.cache_write([lo, hi], "local")
    outer, _ = sch[lo].split(lo.op.axis[0], factor=7)
    sch[first].compute_at(sch[lo], outer)
    assert sch[first] is sch[second]
    x = np.arange(30, dtype=np.int32)
    down, up = np.zeros_like(x), np.zeros_like(x)
    fb.build(sch, [a, lo, hi])(x, down, up)
    np.testing.assert_array_equal(down, x - 1)
    np.testing.assert_array_equal(up, x + 1)
    with pytest.raises(ScheduleError, match="cache_write: give all outputs of stage B"):
        te.create_schedule(lo.op).cache_write([lo])
