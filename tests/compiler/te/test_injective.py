"""Automatic inlining by how a stage reads."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from farbench_compiler import te
from farbench_compiler.ir.stmt import Stmt
from farbench_compiler.te import schedule as schedules
from farbench_compiler.te.attach import Inline
from farbench_compiler.tir import ir_builder


def chain() -> tuple[te.Tensor, ...]:
    """An elementwise, a broadcasting, a transposing and a reducing stage, and an output."""
    a = te.placeholder((4, 4), name="A")
    r = te.placeholder((4,), name="R")
    k = te.reduce_axis((0, 4), name="k")
    element = te.compute((4, 4), lambda i, j: a[i, j] + 1.0, name="element")
    spread = te.compute((4, 4), lambda i, j: element[i, j] * r[j], name="spread")
    turned = te.compute((4, 4), lambda i, j: spread[j, i], name="turned")
    total = te.compute((4,), lambda i: te.sum(turned[i, k], axis=k), name="total")
    out = te.compute((4,), lambda i: total[i] * 2.0, name="out")
    return element, spread, turned, total, out


@pytest.mark.parametrize(
    ("inline", "wanted"),
    [
        (schedules.AutoInlineElemWise, ["element"]),
        (schedules.AutoInlineBroadcast, ["element", "spread"]),
        (schedules.AutoInlineInjective, ["element", "spread", "turned"]),
    ],
)
def test_stages_by_their_reads(inline: Callable[[te.Schedule], None], wanted: list[str]) -> None:
    stages = chain()
    sch = te.create_schedule(stages[-1].op)
    inline(sch)
    assert [s.name for s in sch.stages if isinstance(s.attach, Inline)] == wanted


def test_what_is_needed_in_memory_stays() -> None:
    a = te.placeholder((4,), name="A")
    plain = te.compute((4,), lambda i: a[i] + 1.0, name="plain")

    def copied(ins: te.Buffers, outs: te.Buffers) -> Stmt:
        ib = ir_builder.create()
        source, target = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, 4) as i:
            target[i] = source[i]
        return ib.get()

    given = te.extern((4,), [plain], copied, name="given")
    assert isinstance(given, te.Tensor)
    state = te.placeholder((4,), name="S")
    init = te.compute((1,), lambda i: plain[0], name="init")
    update = te.compute((4,), lambda t: state[t - 1] + given[t], name="update")
    out = te.scan(init, update, state)
    after = te.compute((4,), lambda i: out[i] * 2.0, name="after")
    sch = te.create_schedule(after.op)
    te.inline_injective(sch)
    assert not any(isinstance(s.attach, Inline) for s in sch.stages)
