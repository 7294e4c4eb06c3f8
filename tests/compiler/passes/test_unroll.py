"""Unrolled loops are written out; copies of one expression are shared."""

from __future__ import annotations

from farbench_compiler.ir.expr import IntImm, Load, Var
from farbench_compiler.ir.printer import to_text
from farbench_compiler.ir.stmt import For, Seq, Store
from farbench_compiler.passes.unroll import MAX_NODES, unroll

from .programs import array, function, loop, read, write

AT, J, N = Var("i"), Var("j"), Var("n")
A, C = array("A", 64), array("C", 64)


def test_indices_fold() -> None:
    inner = loop(J, 2, write(C, AT * 2 + J, value=read(A, J)), "unrolled")
    fn = unroll(function(loop(AT, 2, inner, "unrolled"), A, C))
    assert to_text(fn.body).splitlines() == [
        "C[0] = A[0]", "C[1] = A[1]", "C[2] = A[0]", "C[3] = A[1]",
    ]  # fmt: skip


def test_copies_share_what_does_not_change() -> None:
    value = read(A, N + J)
    inner = loop(J, 2, write(C, AT, value=value), "unrolled")
    body = unroll(function(loop(AT, 2, inner, "unrolled"), A, C, N)).body
    assert isinstance(body, Seq)
    loads = [s.value for s in body.stmts if isinstance(s, Store)]
    assert isinstance(loads[0], Load)
    assert loads[0] is loads[2]
    assert loads[1] is loads[3]


def test_a_symbolic_loop_becomes_serial() -> None:
    body = unroll(function(loop(AT, N, write(C, AT, value=read(A, AT)), "unrolled"), A, C, N)).body
    assert isinstance(body, For)
    assert body.kind == "serial"


def test_a_loop_that_would_be_too_long_becomes_serial() -> None:
    long = For(AT, IntImm(0), IntImm(MAX_NODES), "unrolled", write(C, AT, value=read(A, AT)))
    body = unroll(function(long, A, C)).body
    assert isinstance(body, For)
    assert body.kind == "serial"
