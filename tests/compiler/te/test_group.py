"""create_group: stages that are placed together."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import farbench as fb
from farbench_compiler import te
from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir.printer import to_text
from farbench_compiler.ir.verify import verify
from farbench_compiler.lower import lower


def chain(n: int = 8, m: int = 6) -> tuple[te.Tensor, ...]:
    """A -> B -> C -> D, elementwise."""
    a = te.placeholder((n, m), name="A")
    b = te.compute((n, m), lambda i, j: a[i, j] + 1.0, name="B")
    c = te.compute((n, m), lambda i, j: b[i, j] * 2.0, name="C")
    d = te.compute((n, m), lambda i, j: c[i, j] - 3.0, name="D")
    return a, b, c, d


def test_create_group(golden: Callable[[str, str], None]) -> None:
    """The text of a group at a loop of its reader."""
    a, b, c, d = chain()
    sch = te.create_schedule(d.op)
    group = sch.create_group(outputs=c, inputs=a)
    assert [s.name for s in group.stages] == ["B", "C"]
    group.compute_at(sch[d], d.op.axis[0])
    fn = lower(sch, [a, d], name="create_group")
    verify(fn, "lowered")
    golden("create_group", to_text(fn) + "\n")


@pytest.mark.parametrize("where", ["root", "group", "part of it elsewhere"])
def test_a_group_computes_the_same_anywhere(where: str) -> None:
    a, b, c, d = chain()
    sch = te.create_schedule(d.op)
    group = sch.create_group([c], [b], include_inputs=True)
    outer, inner = sch[d].split(d.op.axis[1], factor=4)
    if where != "root":
        group.compute_at(sch[d], outer)
    if where == "part of it elsewhere":
        sch[b].compute_at(sch[c], c.op.axis[0])
    x = np.random.default_rng(0).random((8, 6), dtype=np.float32)
    out = fb.nd.array(np.zeros_like(x))
    fb.build(sch, [a, d])(fb.nd.array(x), out)
    np.testing.assert_allclose(out.numpy(), (x + 1) * 2 - 3, rtol=1e-6)


def test_groups_within_groups() -> None:
    a, b, c, d = chain()
    sch = te.create_schedule(d.op)
    inner = sch.create_group(b, a)
    outer = sch.create_group(c, a)
    assert inner.group is outer
    assert repr(outer) == "Group(B, C; Root())"
    outer.compute_at(sch[d], d.op.axis[0])
    inner.compute_at(sch[c], c.op.axis[1])
    assert "allocate B: float32[1, 1]" in to_text(lower(sch, [a, d]))
    outer.compute_root()
    inner.compute_root()
    assert "allocate B: float32[8, 6]" in to_text(lower(sch, [a, d]))


def test_copies_stay_in_the_group_of_what_they_copy() -> None:
    _, b, c, d = chain()
    sch = te.create_schedule(d.op)
    group = sch.create_group(c, b, include_inputs=True)
    cached = sch.cache_write(c, "local")
    copied = sch.cache_read(b, "global", [cached])
    assert [s.name for s in group.stages] == ["B", "B.global", "C.local", "C"]
    assert sch[copied].group is group


def test_what_is_refused() -> None:
    a, b, c, d = chain()
    sch = te.create_schedule(d.op)
    with pytest.raises(ScheduleError, match="nothing lies between the inputs and the outputs"):
        sch.create_group(a, d)
    with pytest.raises(ScheduleError, match="holds stage D, an output of the schedule"):
        sch.create_group(d, c).compute_at(sch[d], d.op.axis[0])
    sch = te.create_schedule(d.op)
    sch.create_group(c, a)
    with pytest.raises(ScheduleError, match=r"group\(B, C\) is partly inside and partly outside"):
        sch.create_group(d, b)
    sch[b].compute_at(sch[d], d.op.axis[0])
    with pytest.raises(ScheduleError, match="but stage C reads it outside"):
        lower(sch, [a, d])
