"""Copies of schedules, and attachments to loops that were split or fused since."""

from __future__ import annotations

import pytest

from farbench_compiler import te
from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir.printer import to_text
from farbench_compiler.lower import lower
from farbench_compiler.te.attach import At

Program = tuple[te.Tensor, te.Tensor, te.Tensor, te.Schedule]


def two_stages() -> Program:
    """B = A + 1, C = 2 B."""
    a = te.placeholder((8, 6), name="A")
    b = te.compute((8, 6), lambda i, j: a[i, j] + 1.0, name="B")
    c = te.compute((8, 6), lambda i, j: b[i, j] * 2.0, name="C")
    return a, b, c, te.create_schedule(c.op)


def text(sch: te.Schedule, *args: te.Tensor) -> str:
    return to_text(lower(sch, args))


def test_copies_change_apart() -> None:
    a, b, c, sch = two_stages()
    group = sch.create_group(b, a)
    group.compute_at(sch[c], c.op.axis[0])
    before = text(sch, a, c)
    twin = sch.copy()
    assert twin[b].group is not group
    assert text(twin, a, c) == before
    twin[c].unroll(c.op.axis[1])
    twin[b].compute_at(twin[c], c.op.axis[1])
    twin[b].pragma(b.op.axis[0], "unroll_explicit", False)
    assert text(sch, a, c) == before
    assert text(twin, a, c) != before
    sch[c].split(c.op.axis[0], factor=2)
    assert twin[c].leaf_iter_vars == list(c.op.axis)


def test_scans_are_copied_whole() -> None:
    state = te.placeholder((5, 3), name="S")
    init = te.compute((1, 3), lambda _, i: te.const(0.0), name="init")
    update = te.compute((5, 3), lambda t, i: state[t - 1, i] + 1.0, name="update")
    out = te.scan(init, update, state)
    sch = te.create_schedule(out.op)
    assert text(sch.normalize(), out) == text(sch, out)
    with pytest.raises(ScheduleError, match="update is an update of scan scan"):
        sch.copy()[update].compute_inline()


@pytest.mark.parametrize("how", ["split", "fused", "both"])
def test_an_attachment_follows_its_loop(how: str) -> None:
    a, b, c, sch = two_stages()
    i, j = c.op.axis
    sch[b].compute_at(sch[c], j if how == "fused" else i)
    if how == "fused":
        loop = sch[c].fuse(i, j)
    else:
        outer, loop = sch[c].split(i, factor=2)
        loop = sch[c].fuse(outer, loop) if how == "both" else loop
    normal = sch.normalize()
    attach = normal[b].attach
    assert isinstance(attach, At)
    assert (attach.stage, attach.axis) == (normal[c], loop)
    assert text(normal, a, c) == text(sch, a, c)
    kept = sch[b].attach
    assert isinstance(kept, At)
    assert kept.axis is (j if how == "fused" else i)
