"""Loop IR as text."""

from __future__ import annotations

import pytest

from farbench_compiler.ir.dtypes import dtype
from farbench_compiler.ir.expr import (
    Broadcast,
    Buffer,
    Call,
    Cast,
    Expr,
    FloatImm,
    IfThenElse,
    IntImm,
    Load,
    Not,
    Ramp,
    Select,
    Var,
    binary,
    logic,
)
from farbench_compiler.ir.printer import to_text
from farbench_compiler.ir.stmt import Allocate, Evaluate, For, IfThen, Let, LoopFunction, Seq, Store

X, Y, N = Var("x"), Var("y"), Var("n")
F = Var("f", dtype("float32"))
FOUR = dtype("int64").with_lanes(4)
CASES: list[tuple[Expr, str]] = [
    (X + Y * 2, "x + y * 2"),
    ((X + Y) * 2, "(x + y) * 2"),
    (X - (Y - N), "x - (y - n)"),
    (X + (Y + N), "x + y + n"),
    (F + (F + 1.0), "f + (f + 1.0)"),
    (X // 8 % 4, "x // 8 % 4"),
    (binary("min", X, Y), "min(x, y)"),
    (binary("truncdiv", X, Y), "truncdiv(x, y)"),
    (logic("or", X < 1, logic("and", Y >= 2, Not(N == 3))), "x < 1 or y >= 2 and not n == 3"),
    (Select(X < 1, X, Y, X.dtype), "select(x < 1, x, y)"),
    (IfThenElse(X < 1, X, Y, X.dtype) + 1, "(x if x < 1 else y) + 1"),
    (Cast(dtype("int8"), F), "int8(f)"),
    (Call("exp", (F,), F.dtype), "exp(f)"),
    (FloatImm(0.5), "0.5"),
    (IntImm(1, dtype("bool")), "True"),
    (Ramp(X, IntImm(2), 4, FOUR), "ramp(x, 2, 4)"),
    (Broadcast(X, 4, FOUR), "broadcast(x, 4)"),
    (X << 2 | Y & 7, "x << 2 | y & 7"),
]


@pytest.mark.parametrize(("e", "text"), CASES)
def test_expressions(e: Expr, text: str) -> None:
    assert to_text(e) == text


def test_a_function_with_names_that_clash() -> None:
    a = Buffer("A", dtype("float32"), (N,), "arg")
    t = Buffer("A", dtype("float32"), (IntImm(2),), "local")
    other = Var("x")
    read = Load(a, (X,), a.dtype)
    body = For(X, IntImm(0), N, "parallel", Allocate(t, Seq((
        Store(t, (IntImm(0),), read),
        Let(Y, X + 1, IfThen(Y < N, Store(a, (Y,), read), Seq(()))),
        For(other, IntImm(1), IntImm(3), "unrolled", Evaluate(other)),
    ))))  # fmt: skip
    assert to_text(LoopFunction("f", (a, F), (N,), body)).splitlines() == [
        "def f(A: float32[n], f: float32) for n: int64:",
        "  for x in parallel(0, n):",
        "    allocate A_1: float32[2] in local",
        "    A_1[0] = A[x]",
        "    y = x + 1",
        "    if y < n:",
        "      A[y] = A[x]",
        "    else:",
        "      pass",
        "    for x_1 in unrolled(1, 3):",
        "      x_1",
    ]
