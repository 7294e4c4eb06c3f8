"""Loops, workspace, parallel parts, masks and uneven vector accesses, run here and on boards."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from farbench_compiler.errors import LoweringError
from farbench_compiler.ir.dtypes import dtype
from farbench_compiler.ir.expr import Buffer, Expr, IfThenElse, IntImm, Var, binary, const
from farbench_compiler.ir.stmt import Allocate, IfThen, LoopFunction, Seq, Stmt
from tests.compiler.passes.programs import F32, array, function, loop, read, write

from .jit import Array, Machine, Runtime, aligned, run

AT, K, N = Var("i"), Var("k"), Var("n")


def numbers(count: int, of: str = "float32") -> Array:
    return aligned(np.random.default_rng(5).integers(-50, 50, count).astype(of))


@pytest.mark.parametrize("step", [-2, -1, 2, 3, 4, 5])
@pytest.mark.parametrize("of", ["float32", "int8", "bool"])
def test_strided_loads_and_stores(step: int, of: str, machine: Machine) -> None:
    size = 16 * abs(step)
    a, c, d = array("A", size, of=of), array("C", 16, of=of), array("D", size, of=of)
    first = 0 if step > 0 else size - 1
    index = AT * step + first
    body = Seq((write(c, AT, value=read(a, index)), write(d, index, value=read(a, AT))))
    fn = function(loop(AT, 16, body, "vectorized"), a, c, d)
    data, picked, spread = numbers(size, of), numbers(16, of), aligned(np.zeros(size, of))
    assert machine.run(fn, [data, picked, spread]) == 0
    np.testing.assert_array_equal(picked, data[first::step][:16])
    np.testing.assert_array_equal(spread[first::step][:16], data[:16])


def test_gather_and_scatter(machine: Machine) -> None:
    a, index, c = array("A", 64), array("I", 32, of="int32"), array("C", 64)
    at = read(index, AT).astype("int64")
    fn = function(loop(AT, 32, write(c, at, value=read(a, at)), "vectorized"), a, index, c)
    data, out = numbers(64), aligned(np.zeros(64, "f4"))
    order = aligned(np.random.default_rng(1).permutation(64)[:32].astype("i4"))
    assert machine.run(fn, [data, order, out]) == 0
    wanted = np.zeros(64, "f4")
    wanted[order] = data[order]
    np.testing.assert_array_equal(out, wanted)


def masked(value: Expr, *args: Buffer) -> LoopFunction:
    """Write the first n of 40 elements, in vectors of 16."""
    at = K * 16 + AT
    body = IfThen(at < N, write(args[-1], at, value=value))
    return function(loop(K, 3, loop(AT, 16, body, "vectorized")), *args, N)


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 40])
def test_masked_ends_leave_the_rest_alone(n: int, machine: Machine) -> None:
    at = K * 16 + AT
    a, c = array("A", 40), array("C", 40)
    data, out = numbers(40), aligned(np.full(40, 7, "f4"))
    assert machine.run(masked(read(a, at) * 2.0, a, c), [data, out], [n]) == 0
    np.testing.assert_array_equal(out, np.where(np.arange(40) < n, data * 2, 7))


def test_guarded_values_never_read_outside(machine: Machine) -> None:
    """The array ends where its memory does: what lies before it must not be touched."""
    at = K * 16 + AT
    a, c, one = array("A", 30), array("C", 48), array("B", 1)
    inside = binary("add", read(a, at - 5), read(one, K - K))
    cond = IfThenElse(at >= 5, IfThenElse(at < 35, inside, const(-1.0, F32), F32),
                      const(-2.0, F32), F32)  # fmt: skip
    fn = function(loop(K, 3, loop(AT, 16, write(c, at, value=cond), "vectorized")), a, one, c)
    data, out = numbers(30), aligned(np.zeros(48, "f4"))
    assert machine.run(fn, [data, aligned(np.ones(1, "f4")), out]) == 0
    wanted = np.concatenate([np.full(5, -2), data + 1, np.full(13, -1)])
    np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("of", ["float32", "float64", "int32"])
@pytest.mark.parametrize("op", ["add", "min", "max"])
def test_vectorised_reductions(op: str, of: str, machine: Machine) -> None:
    a, c = array("A", 1000, of=of), array("C", 1, of=of)
    zero = IntImm(0)
    old = read(c, zero)
    update = write(c, zero, value=binary(op, old, read(a, K)))  # type: ignore[arg-type]
    fn = function(loop(K, 1000, update, "vectorized"), a, c)
    data, out = numbers(1000, of), aligned(np.zeros(1, of))
    assert machine.run(fn, [data, out]) == 0
    total = {"add": data.sum(), "min": min(data.min(), 0), "max": max(data.max(), 0)}[op]
    assert out[0] == total  # small integers: any order gives the same


def test_a_parallel_loop_sees_what_is_around_it(machine: Machine) -> None:
    """Sizes, parameters, outer variables, workspace and arrays all reach the pool's threads."""
    scale = Var("scale", dtype("float32"))
    a, c = array("A", N), array("C", N)
    space = Buffer("t", F32, (N,), "global")
    fill = loop(AT, N, write(space, AT, value=read(a, AT) * scale), "parallel")
    again = write(c, AT, value=read(space, N - 1 - AT) + K.astype("float32"))
    body = Allocate(space, Seq((fill, loop(K, 3, loop(AT, N, again, "parallel")))))
    fn = function(body, a, c, scale, symbols=(N,))
    data, out = numbers(101), aligned(np.zeros(101, "f4"))
    bits = struct.unpack("<q", struct.pack("<f4x", 0.5))[0]
    assert machine.run(fn, [data, out], [101, bits]) == 0
    np.testing.assert_array_equal(out, data[::-1] * np.float32(0.5) + 2)


@pytest.mark.parametrize("of", ["float16", "float32", "float64", "int8", "uint8", "bool"])
def test_scalar_parameters(of: str, machine: Machine) -> None:
    parameter = Var("p", dtype(of))
    c = array("C", 20, of=of)
    fn = function(loop(AT, 20, write(c, AT, value=parameter), "vectorized"), c, parameter)
    value = np.array([1 if of == "bool" else 200 if of == "uint8" else -3], of)
    slot = int(value[0]) if value.dtype.kind in "iub" else int.from_bytes(value.tobytes(), "little")
    out = aligned(np.zeros(20, of))
    assert machine.run(fn, [out], [slot]) == 0
    np.testing.assert_array_equal(out, np.repeat(value, 20))


def nested_workspace(c: Buffer) -> Stmt:
    """Two buffers, one in a parallel loop inside the other's life."""
    outer, inner = (Buffer(name, F32, (N,), "global") for name in ("outer", "inner"))
    part = Allocate(inner, Seq((
        write(inner, IntImm(0), value=read(outer, AT)),
        write(c, AT, value=read(inner, IntImm(0))),
    )))  # fmt: skip
    first = loop(AT, N, write(outer, AT, value=AT.astype("float32")))
    return Allocate(outer, Seq((first, loop(AT, N, part, "parallel"))))


@pytest.mark.parametrize("allowance", [0, 1, 2])
def test_workspace_is_given_back_on_every_path(allowance: int) -> None:
    c = array("C", N)
    runtime = Runtime(allowance=allowance)
    out = aligned(np.zeros(10, "f4"))
    fn = function(nested_workspace(c), c, symbols=(N,))
    status = run(fn, [out], [10], runtime=runtime)
    assert (status == 0) == (allowance == 2)
    assert not runtime.held


def test_empty_loops_do_nothing(machine: Machine) -> None:
    c = array("C", N)
    body = loop(AT, N, write(c, AT, value=const(1.0, F32)), "parallel")
    assert machine.run(function(body, c, symbols=(N,)), [aligned(np.zeros(0, "f4"))], [0]) == 0


def test_index_arithmetic_rounds_down_below_zero(machine: Machine) -> None:
    c, d = array("C", 20, of="int64"), array("D", 20, of="int64")
    moved = AT - 10
    body = Seq((write(c, AT, value=moved // 3), write(d, AT, value=moved % 3)))
    quotient, rest = (aligned(np.zeros(20, "i8")) for _ in range(2))
    assert machine.run(function(loop(AT, 20, body), c, d), [quotient, rest]) == 0
    np.testing.assert_array_equal(quotient, (np.arange(20) - 10) // 3)
    np.testing.assert_array_equal(rest, (np.arange(20) - 10) % 3)


def test_values_of_64_bits_keep_them_on_32_bit_machines(machine: Machine) -> None:
    c = array("C", 20, of="int64")
    big = AT * 3_000_000_000
    value = IfThenElse(big > 20_000_000_000, big, AT - 5, AT.dtype)
    out = aligned(np.zeros(20, "i8"))
    assert machine.run(function(loop(AT, 20, write(c, AT, value=value)), c), [out]) == 0
    steps = np.arange(20, dtype="i8")
    np.testing.assert_array_equal(out, np.where(steps >= 7, steps * 3_000_000_000, steps - 5))


def test_a_local_buffer_must_fit_the_stack() -> None:
    huge = Buffer("t", F32, (IntImm(1 << 20),), "local")
    c = array("C", 1)
    zero = IntImm(0)
    body = Allocate(huge, Seq((
        write(huge, zero, value=const(1.0, F32)), write(c, zero, value=read(huge, zero)),
    )))  # fmt: skip
    with pytest.raises(LoweringError, match="t does not fit the stack"):
        run(function(body, c), [aligned(np.zeros(1, "f4"))])
