"""prefetch: what a loop brings nearer for its later steps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import farbench as fb
from farbench_compiler import te
from farbench_compiler.build import build
from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir import interp
from farbench_compiler.ir.printer import to_text
from farbench_compiler.ir.stmt import LoopFunction
from farbench_compiler.ir.verify import verify
from farbench_compiler.lower import lower

Program = tuple[te.Tensor, te.Tensor, te.Schedule]


def row_sums(n: int | te.Var = 6, m: int | te.Var = 100) -> Program:
    """B[i] = the sum of A[i, k] over k."""
    a = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), name="k")
    b = te.compute((n,), lambda i: te.sum(a[i, k], axis=k), name="B")
    return a, b, te.create_schedule(b.op)


def prefetches(fn: LoopFunction) -> list[str]:
    lines = [line.strip() for line in to_text(fn).splitlines()]
    return [line.removeprefix("prefetch ") for line in lines if line.startswith("prefetch")]


def test_prefetch(golden: Callable[[str, str], None]) -> None:
    """The text of a loop that looks two rows ahead, each of seven cache lines."""
    a, b, sch = row_sums(te.var("n"))
    sch[b].prefetch(a, b.op.axis[0], 2)
    fn = lower(sch, [a, b], name="prefetch")
    verify(fn, "lowered")
    golden("prefetch", to_text(fn) + "\n")


def test_what_a_step_reads_is_found_through_splits_fusion_and_other_stages() -> None:
    a, b, sch = row_sums(6, 128)
    outer, _ = sch[b].split(b.op.reduce_axis[0], factor=32)
    sch[b].prefetch(a, outer)
    assert prefetches(lower(sch, [a, b])) == ["A[i, k.outer * 32 + line1 * 16 + 32]"]

    a = te.placeholder((4, 32), name="A")
    b = te.compute((4, 32), lambda i, j: a[i, j] + 1.0, name="B")
    c = te.compute((4, 32), lambda i, j: b[i, j] * 2.0, name="C")
    sch = te.create_schedule(c.op)
    tiles = sch[c].fuse(c.op.axis[0], sch[c].split(c.op.axis[1], factor=16)[0])
    sch[b].compute_at(sch[c], tiles)
    sch[c].prefetch(a, tiles, 3)
    x, got = np.ones((4, 32), np.float32), np.zeros((4, 32), np.float32)
    fn = lower(sch, [a, c])
    tile = "(i.j.outer.fused + 1)"  # (fused + 3) // 2 and % 2, as they are simplified
    assert prefetches(fn) == [f"A[{tile} // 2 + 1, {tile} % 2 * 16]"]
    interp.run(fn, [x, got])
    assert (got == 4).all()


@pytest.mark.parametrize("how", ["serial", "parallel", "in a vector", "local"])
def test_values_are_the_same_natively(how: str) -> None:
    a, b, sch = row_sums(te.var("n"), te.var("m"))
    (i,), (k,) = b.op.axis, b.op.reduce_axis
    match how:
        case "parallel":
            sch[b].parallel(i)
        case "in a vector":
            i, lane = sch[b].split(i, factor=4)
            sch[b].vectorize(lane)
            i = k
        case "local":
            cached = sch.cache_read(a, "global", b)
            sch[cached].compute_at(sch[b], i)
            sch[b].prefetch(cached, sch[b].split(k, factor=8)[0], 1)
    if how != "local":
        sch[b].prefetch(a, i, 1)
    x = np.random.default_rng(0).random((5, 70), dtype=np.float32)
    got, out = np.zeros(5, np.float32), fb.nd.array(np.zeros(5, np.float32))
    interp.run(lower(sch, [a, b]), [x, got])
    np.testing.assert_allclose(got, x.sum(1), rtol=1e-5)
    module = fb.build(sch, [a, b])
    module(fb.nd.array(x), out)
    np.testing.assert_allclose(out.numpy(), x.sum(1), rtol=1e-5)
    assert "llvm.prefetch" in module.get_source()


@pytest.mark.parametrize(
    ("preset", "instruction"), [("pi4", "prfm"), ("x86-64-v3", "prefetcht0"), ("pi2", "pld")]
)
def test_every_machine_has_an_instruction(preset: str, instruction: str) -> None:
    a, b, sch = row_sums()
    sch[b].prefetch(a, b.op.axis[0])
    assert instruction in build(sch, [a, b], preset).get_source("asm")


def _gathered() -> None:
    a, at = te.placeholder((9,), name="A"), te.placeholder((5,), "int64", name="at")
    b = te.compute((5,), lambda i: a[at[i]], name="B")
    sch = te.create_schedule(b.op)
    sch[b].prefetch(a, b.op.axis[0])
    lower(sch, [a, at, b])


def _made_inside(p: Program) -> None:
    a, b, sch = p
    cached = sch.cache_read(a, "global", b)
    sch[cached].compute_at(sch[b], b.op.axis[0])
    sch[b].prefetch(cached, b.op.axis[0])
    lower(sch, [a, b])


def _vector(p: Program) -> None:
    p[2][p[1]].vectorize(p[1].op.axis[0])
    p[2][p[1]].prefetch(p[0], p[1].op.axis[0])
    lower(p[2], p[:2])


def _unread(p: Program) -> None:
    p[2][p[1]].prefetch(te.placeholder((3,), name="Z"), p[1].op.axis[0])
    lower(p[2], p[:2])


def _stale(p: Program) -> None:
    p[2][p[1]].prefetch(p[0], p[1].op.axis[0])
    p[2][p[1]].split(p[1].op.axis[0], factor=2)
    lower(p[2], p[:2])


ILLEGAL: dict[str, tuple[Callable[[Program], object], str]] = {
    "behind": (
        lambda p: p[2][p[1]].prefetch(p[0], p[1].op.axis[0], 0),
        "prefetch: axis i of stage B cannot look 0 steps ahead; give 1 or more",
    ),
    "data": (lambda p: _gathered(), "axis i of stage B reads A where data says"),
    "vector": (_vector, "axis i of stage B is vectorized; prefetch at a loop around it"),
    "made inside": (
        _made_inside,
        "axis i of stage B holds stage A.global, which makes A.global anew in each step",
    ),
    "unread": (_unread, "prefetch: axis i of stage B has no reads of Z inside"),
    "stale": (_stale, "prefetch: axis i of stage B was split into i.outer and i.inner"),
}


@pytest.mark.parametrize("name", ILLEGAL)
def test_what_is_refused(name: str) -> None:
    act, message = ILLEGAL[name]
    with pytest.raises(ScheduleError) as caught:
        act(row_sums())
    assert message in str(caught.value)
