"""Where allocations go, and how many levels of parallel loops are left."""

from __future__ import annotations

from farbench_compiler import passes
from farbench_compiler.ir.expr import Buffer, IntImm, Var
from farbench_compiler.ir.printer import to_text
from farbench_compiler.ir.stmt import Allocate, LoopFunction, LoopKind, Stmt

from .programs import F32, Unit, array, function, loop, read, write

AT, J, N = Var("i"), Var("j"), Var("n")
A, C = array("A", 64), array("C", 64)


def lines_of(fn: LoopFunction) -> list[str]:
    return [line[2:] for line in to_text(passes.run(fn, Unit())).splitlines()[1:]]


def around(kind: LoopKind, size: IntImm | Var) -> Stmt:
    """A loop that allocates; its buffer has the given size."""
    buffer = Buffer("t", F32, (size,), "global")
    return loop(AT, 4, Allocate(buffer, write(C, AT, value=read(A, AT))), kind)


def test_allocations_leave_serial_loops() -> None:
    assert lines_of(function(around("serial", IntImm(9)), A, C))[0].startswith("allocate t")


def test_allocations_stay_in_parallel_loops() -> None:
    assert lines_of(function(around("parallel", IntImm(9)), A, C))[0].startswith("for i")


def test_allocations_stay_where_their_size_changes() -> None:
    assert lines_of(function(around("serial", AT), A, C))[0].startswith("for i")


def test_one_level_of_parallel_loops_is_left() -> None:
    inner = loop(J, 4, write(C, AT * 4 + J, value=read(A, J)), "parallel")
    assert lines_of(function(loop(AT, 4, inner, "parallel"), A, C))[:2] == [
        "for i in parallel(0, 4):",
        "  for j in serial(0, 4):",
    ]
