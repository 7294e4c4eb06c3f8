"""Indices of many dimensions become one."""

from __future__ import annotations

from farbench_compiler.ir.expr import Buffer, IntImm, Var
from farbench_compiler.ir.printer import to_text
from farbench_compiler.passes.flatten import flatten

from .programs import F32, function, loop, read, write

AT, J, N = Var("i"), Var("j"), Var("n")


def test_rows_lie_behind_each_other() -> None:
    a = Buffer("A", F32, (IntImm(4), N), "arg")
    c = Buffer("C", F32, (N, IntImm(4)), "arg")
    body = loop(AT, 4, loop(J, N, write(c, J, AT, value=read(a, AT, J))))
    assert to_text(flatten(function(body, a, c, symbols=(N,)))).splitlines() == [
        "def f(A: float32[n * 4], C: float32[n * 4]) for n: int64:",
        "  for i in serial(0, 4):",
        "    for j in serial(0, n):",
        "      C[j * 4 + i] = A[i * n + j]",
    ]


def test_a_fused_index_is_one_again() -> None:
    a, c = (Buffer(name, F32, (IntImm(4), IntImm(6)), "arg") for name in "AC")
    body = loop(AT, 24, write(c, AT // 6, AT % 6, value=read(a, AT // 6, AT % 6)))
    assert to_text(flatten(function(body, a, c))).splitlines()[-1] == "    C[i] = A[i]"


def test_no_dimension_is_one_element() -> None:
    a = Buffer("A", F32, (), "arg")
    assert to_text(flatten(function(write(a, value=read(a)), a))).splitlines() == [
        "def f(A: float32[1]):",
        "  A[0] = A[0]",
    ]
