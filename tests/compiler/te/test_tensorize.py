"""Declared intrinsics in place of loops: what they become, compute, and refuse."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from farbench_compiler import te, tir
from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir import interp
from farbench_compiler.ir.printer import to_text
from farbench_compiler.ir.verify import verify
from farbench_compiler.lower import lower

LANES = 8


def dot_product(lanes: int = LANES, *, whole: bool = True, reset: bool = True) -> te.TensorIntrin:
    """Declare sums[lanes] += a[4] * b[lanes, 4] by one dot product."""
    a = te.placeholder((4,), "uint8", name="a")
    b = te.placeholder((lanes, 4), "int8", name="b")
    k = te.reduce_axis((0, 4), name="k")
    c = te.compute(
        (lanes,),
        lambda i: te.sum(a[k].astype("int32") * b[i, k].astype("int32"), axis=k),
        name="c",
    )

    def body(ins: te.Buffers, outs: te.Buffers) -> tuple[tir.Stmt | None, ...]:
        zero = tir.broadcast(te.const(0, "int32"), lanes)
        left, right = ins[0].vload(0, "uint8x4"), ins[1].vload((0, 0), f"int8x{4 * lanes}")
        sums = outs[0].vload(0, f"int32x{lanes}")
        return (
            outs[0].vstore(0, tir.dot4(zero, left, right)) if whole else None,
            outs[0].vstore(0, zero) if reset else None,
            outs[0].vstore(0, tir.dot4(sums, left, right)) if reset else None,
        )

    return te.decl_tensor_intrin(c.op, body, name="dot_product")


def packed_matmul(
    m: int | te.Var, n: int, k: int
) -> tuple[te.Schedule, list[te.Tensor], te.Tensor]:
    """Multiply A [m, k] by B [n / lanes, k / 4, lanes, 4], both 8-bit, into int32."""
    a = te.placeholder((m, k), "uint8", name="A")
    b = te.placeholder((n // LANES, k // 4, LANES, 4), "int8", name="B")
    outer, inner = te.reduce_axis((0, k // 4), name="ko"), te.reduce_axis((0, 4), name="ki")
    c = te.compute(
        (m, n // LANES, LANES),
        lambda i, v, lane: te.sum(
            a[i, outer * 4 + inner].astype("int32") * b[v, outer, lane, inner].astype("int32"),
            axis=[outer, inner],
        ),
        name="C",
    )
    return te.create_schedule(c.op), [a, b, c], c


def tensorized(m: int | te.Var = 3) -> tuple[te.Schedule, list[te.Tensor], te.Tensor]:
    schedule, args, c = packed_matmul(m, 16, 12)
    i, v, lane = c.op.axis
    outer, inner = c.op.reduce_axis
    schedule[c].reorder(i, v, outer, lane, inner)
    schedule[c].tensorize(lane, dot_product())
    return schedule, args, c


def check_values(schedule: te.Schedule, args: list[te.Tensor], m: int = 3) -> None:
    fn = lower(schedule, args)
    verify(fn, "lowered")
    rng = np.random.default_rng(1)
    a = rng.integers(0, 256, (m, 12)).astype(np.uint8)
    b = rng.integers(-128, 128, (2, 3, 8, 4)).astype(np.int8)
    c = np.zeros((m, 2, 8), np.int32)
    interp.run(fn, [a, b, c])
    wanted = np.einsum("mkj,vklj->mvl", a.reshape(m, 3, 4).astype(int), b.astype(int))
    np.testing.assert_array_equal(c, wanted)


def test_golden(golden: Callable[[str, str], None]) -> None:
    schedule, args, _ = tensorized()
    golden("tensorize", to_text(lower(schedule, args)) + "\n")


def test_values_with_the_reduction_split_between_loop_and_intrinsic() -> None:
    schedule, args, _ = tensorized()
    check_values(schedule, args)


def test_symbolic_outer_loops() -> None:
    schedule, args, _ = tensorized(te.var("m"))
    check_values(schedule, args, m=5)


def test_a_cache_attached_to_a_tile() -> None:
    schedule, args, c = packed_matmul(4, 16, 12)
    tile = schedule.cache_write(c, "local")
    stage, inner = schedule[c], schedule[tile]
    outer, _ = stage.split(c.op.axis[0], factor=2)
    inner.compute_at(stage, outer)
    i, v, lane = inner.op.axis
    ko, ki = inner.op.reduce_axis
    inner.reorder(ko, i, v, lane, ki)
    inner.unroll(i)
    inner.unroll(v)
    inner.tensorize(lane, dot_product())
    check_values(schedule, args, m=4)


def test_a_whole_reduction_takes_the_body() -> None:
    a = te.placeholder((2, 4), "uint8", name="A")
    b = te.placeholder((LANES, 4), "int8", name="B")
    k = te.reduce_axis((0, 4), name="k")
    c = te.compute(
        (2, LANES),
        lambda i, j: te.sum(b[j, k].astype("int32") * a[i, k].astype("int32"), axis=k),
        name="C",
    )
    schedule = te.create_schedule(c.op)
    schedule[c].tensorize(c.op.axis[1], dot_product(reset=False))
    x, y = np.arange(8).reshape(2, 4).astype("u1"), np.arange(32).reshape(LANES, 4).astype("i1")
    got = np.zeros((2, LANES), "i4")
    interp.run(lower(schedule, [a, b, c]), [x, y, got])
    np.testing.assert_array_equal(got, x.astype(int) @ y.astype(int).T)


def scaled(factor: float = 2.0, size: int = 4) -> te.TensorIntrin:
    """Declare c[size] = a[size] * factor, with the stride of `a` left open."""
    a = te.placeholder((size,), name="a")
    c = te.compute((size,), lambda i: a[i] * factor, name="c")
    buffer = te.decl_buffer((size,), name="a", strides=[te.var("s")])

    def body(ins: te.Buffers, outs: te.Buffers) -> tir.Stmt:
        value = ins[0].vload(0, f"float32x{size}") * tir.broadcast(te.const(factor), size)
        return outs[0].vstore(0, value)

    return te.decl_tensor_intrin(c.op, body, name="scaled", binds={a: buffer})


def elementwise(
    m: int = 3, n: int = 8, factor: float = 2.0
) -> tuple[te.Schedule, list[te.Tensor], te.Tensor]:
    a = te.placeholder((m, n), name="A")
    c = te.compute((m, n), lambda i, j: a[i, j] * factor, name="C")
    return te.create_schedule(c.op), [a, c], c


def test_blocks_of_larger_tensors() -> None:
    schedule, args, c = elementwise()
    _, inner = schedule[c].split(c.op.axis[1], factor=4)
    schedule[c].tensorize(inner, scaled())
    x, got = np.arange(24, dtype="f4").reshape(3, 8), np.zeros((3, 8), "f4")
    interp.run(lower(schedule, args), [x, got])
    np.testing.assert_array_equal(got, x * 2)


def refused(schedule: te.Schedule, args: list[te.Tensor], message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        lower(schedule, args)


def test_a_tail_is_refused() -> None:
    schedule, args, c = elementwise(n=10)
    _, inner = schedule[c].split(c.op.axis[1], factor=4)
    schedule[c].tensorize(inner, scaled())
    refused(schedule, args, r"reach beyond the end .*divides the extent, or pad")


def test_other_extents_are_refused() -> None:
    schedule, args, c = elementwise()
    schedule[c].tensorize(c.op.axis[1], scaled())
    refused(schedule, args, r"cover 8 of data axis j, axis i of the intrinsic 4")


def test_other_expressions_are_refused() -> None:
    schedule, args, c = elementwise(factor=3.0)
    _, inner = schedule[c].split(c.op.axis[1], factor=4)
    schedule[c].tensorize(inner, scaled())
    refused(schedule, args, r"computes .*2.* where the stage has .*3")


def test_other_axes_are_refused() -> None:
    schedule, args, c = elementwise(4, 4)
    schedule[c].reorder(c.op.axis[1], c.op.axis[0])
    schedule[c].tensorize(c.op.axis[0], scaled())
    refused(schedule, args, r"cover 4 of data axis i, no axis of the intrinsic 1")


def test_loops_inside_stay_serial() -> None:
    schedule, args, c = elementwise()
    _, inner = schedule[c].split(c.op.axis[1], factor=4)
    schedule[c].vectorize(inner)
    schedule[c].tensorize(inner, scaled())
    refused(schedule, args, r"j.inner inside is vectorized")


def test_a_reduction_outside_needs_reset_and_update() -> None:
    schedule, args, c = packed_matmul(2, 16, 12)
    outer, _ = c.op.reduce_axis
    schedule[c].reorder(*c.op.axis[:2], outer, c.op.axis[2])
    schedule[c].tensorize(c.op.axis[2], dot_product(reset=False))
    refused(schedule, args, r"reduce loop ko is outside.*reset and an update")


def test_what_is_no_intrinsic_is_refused() -> None:
    schedule, _, c = elementwise()
    with pytest.raises(ScheduleError, match=r"axis j .*decl_tensor_intrin"):
        schedule[c].tensorize(c.op.axis[1], "dot")  # type: ignore[arg-type]


def test_a_stride_that_the_memory_lacks_is_refused() -> None:
    a = te.placeholder((4,), name="a")
    c = te.compute((4,), lambda i: a[i] * 2.0, name="c")
    column = te.decl_buffer((4,), name="a", strides=[2])
    intrin = te.decl_tensor_intrin(
        c.op, lambda ins, outs: outs[0].vstore(0, ins[0].vload(0)), binds={a: column}
    )
    schedule, args, c = elementwise(3, 4)
    schedule[c].tensorize(c.op.axis[1], intrin)
    refused(schedule, args, r"demands a stride of 2, the memory of A has 1")


def product_by_rows(lanes: int, depth: int) -> te.TensorIntrin:
    """Declare sums[lanes] += a[depth] * b[lanes, depth], b by one index and its stride."""
    a = te.placeholder((depth,), name="a")
    b = te.placeholder((lanes, depth), name="b")
    k = te.reduce_axis((0, depth), name="k")
    c = te.compute((lanes,), lambda i: te.sum(a[k] * b[i, k], axis=k), name="c")
    rows = te.decl_buffer(b.shape, name="b", strides=[te.var("row"), 1])

    def part(ins: te.Buffers, outs: te.Buffers, *, first: bool, adds: bool) -> tir.Stmt:
        ib = tir.ir_builder.create()
        left, right, sums = (ib.buffer_ptr(buffer) for buffer in (*ins, *outs))
        with ib.for_range(0, lanes, name="i") as i:
            if first:
                sums[i] = 0.0
            if adds:
                with ib.for_range(0, depth, name="j") as j:
                    sums[i] = sums[i] + left[j] * right[i * ins[1].strides[0] + j]
        return ib.get()

    def body(ins: te.Buffers, outs: te.Buffers) -> tuple[tir.Stmt, ...]:
        return (
            part(ins, outs, first=True, adds=True), part(ins, outs, first=True, adds=False),
            part(ins, outs, first=False, adds=True),
        )  # fmt: skip

    return te.decl_tensor_intrin(c.op, body, binds={b: rows})


@pytest.mark.parametrize("spare", [0, 12])
@pytest.mark.parametrize("depth", [4, 16])
def test_one_index_goes_by_the_strides_of_the_memory(depth: int, spare: int) -> None:
    """A part of rows of 16, whose buffer has rows of `depth`: the stride is 16 all the same."""
    a = te.placeholder((16,), name="A")
    b = te.placeholder((8 + spare, 16), name="B")
    k = te.reduce_axis((0, 16), name="k")
    c = te.compute((8,), lambda j: te.sum(a[k] * b[j, k], axis=k), name="C")
    schedule = te.create_schedule(c.op)
    outer, inner = schedule[c].split(c.op.axis[0], factor=4)
    if depth < 16:
        k_outer, k_inner = schedule[c].split(k, factor=depth)
        schedule[c].reorder(outer, k_outer, inner, k_inner)
    schedule[c].tensorize(inner, product_by_rows(4, depth))
    source = np.random.default_rng(7)
    left = source.integers(-3, 4, 16).astype(np.float32)
    right = source.integers(-3, 4, (8 + spare, 16)).astype(np.float32)
    got = np.zeros(8, np.float32)
    interp.run(lower(schedule, [a, b, c]), [left, right, got])
    np.testing.assert_array_equal(got, right[:8] @ left)


def test_one_index_needs_strides_that_fall() -> None:
    buffer = te.decl_buffer((4, 8), name="b", strides=[1, 4])
    with pytest.raises(ScheduleError, match=r"strides \[1, 4\], by which no single index"):
        tir.ir_builder.create().buffer_ptr(buffer)[3]


def test_declarations_are_checked() -> None:
    a = te.placeholder((4,), name="a")
    c = te.compute((4,), lambda i: a[i] * 2.0, name="c")
    with pytest.raises(ScheduleError, match=r"binds tensor a, float32\[4\], to buffer"):
        te.decl_tensor_intrin(c.op, lambda i, o: o[0].vstore(0, 0.0), binds={a: te.decl_buffer(5)})
    with pytest.raises(ScheduleError, match=r"must be a statement"):
        te.decl_tensor_intrin(c.op, lambda i, o: (None, None))
    with pytest.raises(ScheduleError, match=r"needs the operation of a te.compute"):
        te.decl_tensor_intrin(a.op, lambda i, o: o[0].vstore(0, 0.0))
    with pytest.raises(ScheduleError, match=r"holds float32, not int8x4"):
        te.decl_buffer(4).vload(0, "int8x4")
    with pytest.raises(ScheduleError, match=r"has 1 dimensions, got 2 indices"):
        te.decl_buffer(4).vload((0, 0))
