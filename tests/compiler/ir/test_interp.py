"""The reference interpreter: widths, saturation, vectors, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from farbench_compiler.ir.dtypes import BOOL, INT64, dtype
from farbench_compiler.ir.expr import (
    Binary,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Compare,
    Expr,
    FloatImm,
    IntImm,
    Load,
    Ramp,
    Select,
    Var,
    const,
)
from farbench_compiler.ir.interp import InterpError, run
from farbench_compiler.ir.stmt import Allocate, For, Let, LoopFunction, Seq, Stmt, Store


def _evaluate(e: Expr) -> object:
    """Store an expression (a vector: all its lanes) and give what was stored."""
    lanes = e.dtype.lanes
    out = Buffer("out", e.dtype.scalar, (const(lanes),), "arg")
    at: Expr = const(0) if lanes == 1 else Ramp(const(0), const(1), lanes, INT64.with_lanes(lanes))
    got = np.zeros(lanes, str(e.dtype.scalar))
    run(LoopFunction("f", (out,), (), Store(out, (at,), e)), [got])
    return got.tolist()[0] if lanes == 1 else got.tolist()


def _int(value: int, of: str) -> IntImm:
    return IntImm(value, dtype(of))


@pytest.mark.parametrize(
    ("op", "a", "b", "of", "expected"),
    [
        ("add", 127, 1, "int8", -128),
        ("sub", 0, 1, "uint8", 255),
        ("mul", 1 << 62, 4, "int64", 0),
        ("shl", 1, 7, "int8", -128),
        ("shr", -8, 1, "int32", -4),
        ("floordiv", -7, 2, "int32", -4),
        ("truncdiv", -7, 2, "int32", -3),
        ("floormod", -7, 2, "int32", 1),
        ("truncmod", -7, 2, "int32", -1),
        ("truncdiv", -128, -1, "int8", -128),
        ("shl", 1, 8, "int8", 0),
        ("shl", 1, -1, "int32", 0),
        ("shr", -1, 64, "int32", -1),
        ("shr", 200, 8, "uint8", 0),
    ],
)
def test_integers_wrap_to_their_width(op: str, a: int, b: int, of: str, expected: int) -> None:
    e = Binary(op, _int(a, of), _int(b, of), dtype(of))  # type: ignore[arg-type]
    assert _evaluate(e) == expected
    vector = dtype(of).with_lanes(2)
    wide = Binary(op, Broadcast(_int(a, of), 2, vector), Broadcast(_int(b, of), 2, vector), vector)  # type: ignore[arg-type]
    assert _evaluate(wide) == [expected, expected]


@pytest.mark.parametrize("op", ["floordiv", "floormod", "truncdiv", "truncmod"])
def test_a_division_by_zero_gives_zero(op: str) -> None:
    e = Binary(op, _int(-7, "int32"), _int(0, "int32"), dtype("int32"))  # type: ignore[arg-type]
    assert _evaluate(e) == 0


@pytest.mark.parametrize(
    ("op", "a", "b", "expected"),
    [
        ("floordiv", -7.0, 2.0, -4.0),
        ("floordiv", 1e5, 0.1, 999999.0),  # the quotient itself rounds to 1e6
        ("floormod", -7.0, 2.0, 1.0),
        ("floormod", 2.5, float("inf"), 2.5),
        ("floormod", 1e38, 127.5, 33.0),
    ],
)
def test_floats_are_divided_as_numpy_does(op: str, a: float, b: float, expected: float) -> None:
    of = dtype("float64")
    e = Binary(op, FloatImm(a, of), FloatImm(b, of), of)  # type: ignore[arg-type]
    assert _evaluate(e) == expected


@pytest.mark.parametrize(
    ("value", "to", "expected"),
    [
        (3.9, "int8", 3),
        (-3.9, "int8", -3),
        (1e9, "int8", 127),
        (-1.0, "uint8", 0),
        (float("nan"), "int32", 0),
        (float("inf"), "int64", (1 << 63) - 1),
        (0.5, "bool", True),
    ],
)
def test_casts_from_floats(value: float, to: str, expected: int) -> None:
    source = FloatImm(value, dtype("float64"))
    assert _evaluate(Cast(dtype(to), source)) == expected
    wide = Broadcast(source, 2, dtype("float64x2"))
    assert _evaluate(Cast(dtype(to).with_lanes(2), wide)) == [expected, expected]


def test_half_precision_rounds_every_operation() -> None:
    one, small = FloatImm(2048.0, dtype("float16")), FloatImm(1.0, dtype("float16"))
    total = Binary("add", Binary("add", one, small, one.dtype), small, one.dtype)
    assert _evaluate(total) == 2048.0


def test_bits() -> None:
    assert _evaluate(Call("popcount", (_int(-1, "int8"),), dtype("int32"))) == 8
    assert _evaluate(Call("clz", (_int(1, "int16"),), dtype("int32"))) == 15


def test_vectors() -> None:
    ramp = Ramp(const(3), const(2), 4, INT64.with_lanes(4))
    limit = Broadcast(const(6), 4, INT64.with_lanes(4))
    less = Compare("lt", ramp, limit, BOOL.with_lanes(4))
    assert _evaluate(Select(less, ramp, limit, ramp.dtype)) == [3, 5, 6, 6]


def _function(body: Stmt, *args: Buffer) -> LoopFunction:
    return LoopFunction("f", args, (), body)


def test_an_index_outside_is_named() -> None:
    out = Buffer("out", dtype("float32"), (const(2),), "arg")
    i = Var("i")
    body = For(i, const(0), const(3), "serial", Store(out, (i,), FloatImm(1.0)))
    with pytest.raises(InterpError, match=r"index \(2,\) is outside out of shape \(2,\)"):
        run(_function(body, out), [np.zeros(2, np.float32)])


def test_arguments_are_checked() -> None:
    out = Buffer("out", dtype("float32"), (const(2),), "arg")
    fn = _function(Seq(()), out)
    with pytest.raises(InterpError, match="takes 1 arguments, got 0"):
        run(fn, [])
    with pytest.raises(InterpError, match=r"out is float64\[2\], expected float32"):
        run(fn, [np.zeros(2)])


def test_sizes_come_from_shapes_and_memory_begins_as_junk() -> None:
    n, i, v = Var("n"), Var("i"), Var("v", dtype("float32"))
    out = Buffer("out", dtype("float32"), (n,), "arg")
    held = Buffer("held", dtype("float32"), (n,))
    body = Allocate(
        held,
        For(
            i, const(0), n, "serial",
            Let(v, Load(held, (i,), held.dtype), Store(out, (i,), v)),
        ),
    )  # fmt: skip
    got = np.zeros(3, np.float32)
    run(LoopFunction("f", (out,), (n,), body), [got])
    assert (got != 0).all()
