"""Conditions leave the loops that they do not depend on."""

from __future__ import annotations

from farbench_compiler.ir.expr import Buffer, Expr, IntImm, Var, const
from farbench_compiler.ir.printer import to_text
from farbench_compiler.ir.stmt import Allocate, IfThen, Let, Seq, Stmt
from farbench_compiler.passes.unswitch import unswitch

from .programs import F32, array, function, loop, read, write

AT, K, N = Var("i"), Var("k"), Var("n")
A, C = array("A", 64), array("C", 64)
FAST = write(C, K, value=const(1.0, F32))
SLOW = write(C, K, value=const(2.0, F32))


def lines_of(body: Stmt) -> list[str]:
    return to_text(unswitch(function(body, A, C, N)).body).splitlines()


def test_an_invariant_condition_leaves_its_loop() -> None:
    assert lines_of(loop(AT, 4, loop(K, 8, IfThen(AT < N, FAST, SLOW)))) == [
        "for i in serial(0, 4):",
        "  if i < n:",
        "    for k in serial(0, 8):",
        "      C[k] = 1.0",
        "  else:",
        "    for k in serial(0, 8):",
        "      C[k] = 2.0",
    ]


def test_neighbours_of_one_condition_are_joined_around_their_memory() -> None:
    tile = Buffer("t", F32, (IntImm(8),), "local")

    def guarded(value: Expr) -> Stmt:
        return loop(K, 8, IfThen(AT < N, write(tile, K, value=value)))

    body = Allocate(tile, Seq((guarded(const(0.0, F32)), guarded(read(A, K)))))
    assert lines_of(loop(AT, 4, body)) == [
        "for i in serial(0, 4):",
        "  if i < n:",
        "    allocate t: float32[8] in local",
        "    for k in serial(0, 8):",
        "      t[k] = 0.0",
        "    for k in serial(0, 8):",
        "      t[k] = A[k]",
    ]


def test_what_may_change_stays() -> None:
    depends = IfThen(K < N, FAST)
    data = IfThen(read(A, AT) < 1.0, FAST)
    bound = Let(N2 := Var("m"), K + 1, IfThen(N2 < N, FAST))
    for branch in (depends, data, bound):
        assert lines_of(loop(K, 8, branch))[0] == "for k in serial(0, 8):"
