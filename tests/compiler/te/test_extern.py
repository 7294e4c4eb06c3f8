"""te.extern: statements built by hand, beside stages that are scheduled."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from farbench_compiler import te, tir
from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir import interp
from farbench_compiler.ir.printer import to_text
from farbench_compiler.lower import lower
from tests.compiler.llvm.jit import Machine, aligned, run

NATIVE = Machine(partial(run, target="native"))


def running_sum(n: int | te.Var, name: str = "sums") -> tuple[te.Tensor, te.Tensor]:
    """Sum up what stands before each element: no te.compute says this."""
    a = te.placeholder((n,), name="A")

    def body(ins: te.Buffers, outs: te.Buffers) -> tir.Stmt:
        ib = tir.ir_builder.create()
        x, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        total = ib.allocate("float32", (1,), name="total")
        total[0] = 0.0
        with ib.for_range(0, n, name="i") as i:
            total[0] = total[0] + x[i]
            out[i] = total[0]
        return ib.get()

    made = te.extern((n,), [a], body, name=name)
    assert isinstance(made, te.Tensor)
    return a, made


def test_golden(golden: Callable[[str, str], None]) -> None:
    a, out = running_sum(8)
    schedule = te.create_schedule(out.op)
    golden("extern", to_text(lower(schedule, [a, out])) + "\n")


@pytest.mark.parametrize("symbolic", [False, True])
def test_between_scheduled_stages(symbolic: bool) -> None:
    n = te.var("n") if symbolic else 12
    given = te.placeholder((n,), name="given")
    doubled = te.compute((n,), lambda i: given[i] * 2.0, name="doubled")

    def body(ins: te.Buffers, outs: te.Buffers) -> tir.Stmt:
        ib = tir.ir_builder.create()
        x, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, n) as i, ib.if_scope(i == 0):
            out[i] = x[i]
        with ib.for_range(1, n) as i:
            out[i] = out[i - 1] + x[i]
        return ib.get()

    sums = te.extern((n,), [doubled], body, name="sums")
    assert isinstance(sums, te.Tensor)
    c = te.compute((n,), lambda i: sums[i] + 1.0, name="C")
    schedule = te.create_schedule(c.op)
    schedule[c].split(c.op.axis[0], factor=4)
    fn = lower(schedule, [given, c])
    x = aligned(np.arange(12, dtype="f4"))
    wanted = np.cumsum(x * 2) + 1
    scalars = (12,) if symbolic else ()
    for machine in (interp.run, NATIVE.run):
        got = aligned(np.zeros(12, "f4"))
        if machine is interp.run:
            interp.run(fn, [x, got])
        else:
            assert NATIVE.run(fn, [x, got], scalars) == 0
        np.testing.assert_array_equal(got, wanted)


def test_several_outputs_of_several_shapes() -> None:
    a = te.placeholder((3, 4), "int32", name="A")

    def body(ins: te.Buffers, outs: te.Buffers) -> tir.Stmt:
        ib = tir.ir_builder.create()
        x, rows, total = (ib.buffer_ptr(b) for b in (ins[0], *outs))
        total[0] = 0
        with ib.for_range(0, 3, name="i") as i:
            rows[i] = 0
            with ib.for_range(0, 4, name="j") as j:
                rows[i] = rows[i] + x[i, j]
                total[0] = total[0] + x[i * 4 + j].astype("int64")  # counted in memory order
        return ib.get()

    made = te.extern([(3,), (1,)], [a], body, name="sums", dtype=["int32", "int64"])
    assert isinstance(made, tuple)
    fn = lower(te.create_schedule(made[0].op), [a, *made])
    x = np.arange(12, dtype="i4").reshape(3, 4)
    rows, total = np.zeros(3, "i4"), np.zeros(1, "i8")
    interp.run(fn, [x, rows, total])
    assert rows.tolist() == x.sum(axis=1).tolist()
    assert total.tolist() == [x.sum()]


def test_vectors_lets_and_choices() -> None:
    a = te.placeholder((8,), name="A")

    def body(ins: te.Buffers, outs: te.Buffers) -> tir.Stmt:
        ib = tir.ir_builder.create()
        with ib.for_range(0, 2, name="i") as i:
            at = ib.let("at", i * 4)
            value = ins[0].vload(at, "float32x4")
            with ib.if_scope(i == 0):
                ib.emit(outs[0].vstore(at, value + tir.broadcast(te.const(1.0), 4)))
            with ib.else_scope():
                root = tir.call_llvm_pure_intrin("float32x4", "llvm.sqrt.v4f32", 1, value)
                ib.emit(outs[0].vstore(at, root))
        return ib.get()

    out = te.extern((8,), [a], body)
    assert isinstance(out, te.Tensor)
    fn = lower(te.create_schedule(out.op), [a, out])
    x = aligned(np.arange(8, dtype="f4") ** 2)
    wanted = np.concatenate([x[:4] + 1, np.sqrt(x[4:])])
    expected, got = np.zeros(8, "f4"), aligned(np.zeros(8, "f4"))
    interp.run(fn, [x, expected])
    assert NATIVE.run(fn, [x, got]) == 0
    np.testing.assert_array_equal(expected, wanted)
    np.testing.assert_array_equal(got, wanted)


def test_what_has_no_loops_is_not_scheduled() -> None:
    a, out = running_sum(8)
    c = te.compute((8,), lambda i: out[i] + a[i], name="C")
    schedule = te.create_schedule(c.op)
    with pytest.raises(ScheduleError, match=r"compute_inline: stage sums is extern"):
        schedule[out].compute_inline()
    with pytest.raises(ScheduleError, match=r"cache_write: stage sums is extern"):
        schedule.cache_write(out, "global")
    with pytest.raises(ScheduleError, match=r"vectorize: axis i of stage sums is no loop"):
        schedule[out].vectorize(c.op.axis[0])


def test_an_inlined_input_is_refused() -> None:
    given = te.placeholder((8,), name="given")
    twice = te.compute((8,), lambda i: given[i] * 2.0, name="twice")
    out = te.extern((8,), [twice], lambda ins, outs: outs[0].vstore(0, ins[0].vload(0)))
    assert isinstance(out, te.Tensor)
    schedule = te.create_schedule(out.op)
    schedule[twice].compute_inline()
    with pytest.raises(ScheduleError, match=r"extern stage extern reads an inlined stage"):
        lower(schedule, [given, out])


def test_declarations_are_checked() -> None:
    a = te.placeholder((8,), "int8", name="A")
    b = te.placeholder((8,), name="B")
    with pytest.raises(ScheduleError, match=r"no one dtype"):
        te.extern((8,), [a, b], lambda ins, outs: tir.ir_builder.create().get())
    with pytest.raises(ScheduleError, match=r"must give a statement"):
        te.extern((8,), [a], lambda ins, outs: None)  # type: ignore[arg-type, return-value]
    with pytest.raises(ScheduleError, match=r"cannot stand for A"):
        te.extern((8,), [a], lambda ins, outs: outs[0].vstore(0, 0), in_buffers=te.decl_buffer(8))
    wrong = te.decl_buffer((8,), "int8", strides=[2])
    out = te.extern((8,), [a], lambda i, o: o[0].vstore(0, i[0].vload(0)), in_buffers=wrong)
    assert isinstance(out, te.Tensor)
    with pytest.raises(ScheduleError, match=r"not declared as its tensor lies in memory"):
        lower(te.create_schedule(out.op), [a, out])
