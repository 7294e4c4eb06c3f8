"""Programs that the fuzzer found and that were compiled wrongly once, by their seeds' shapes."""

from __future__ import annotations

import numpy as np

from farbench_compiler.ir.dtypes import INT64, dtype
from farbench_compiler.ir.expr import Buffer, IntImm, Load, Var, compare
from farbench_compiler.ir.stmt import Allocate, For, IfThen, LoopFunction, Seq, Store
from tests.compiler.llvm.jit import aligned, run

INT8 = dtype("int8")


def test_a_local_buffer_of_less_than_nothing() -> None:
    """Seed 577440: the extent of what only a guarded step that never runs would read."""
    out = Buffer("C", INT8, (IntImm(2),), "arg", 64, writable=True)
    none = Buffer("T", INT8, (IntImm(-2),), "local", 64, writable=True)
    i = Var("i", INT64)
    read = IfThen(compare("lt", i, -1), Store(out, (i,), Load(none, (IntImm(0),), INT8)))
    body = For(i, IntImm(0), IntImm(2), "serial", Seq((Store(out, (i,), IntImm(5, INT8)), read)))
    fn = LoopFunction("kernel", (out,), (), Allocate(none, body))
    array = aligned(np.zeros(2, np.int8))
    assert run(fn, [array]) == 0
    assert array.tolist() == [5, 5]


def test_workspace_of_less_than_nothing() -> None:
    """Seed 2125: a stage that nobody reads, whose extents follow from sizes and are negative."""
    n = Var("n", INT64)
    out = Buffer("C", INT8, (n,), "arg", 64, writable=True)
    none = Buffer("T", INT8, (n - 5,), "global", 64, writable=True)
    i = Var("i", INT64)
    body = For(i, IntImm(0), n, "serial", Store(out, (i,), IntImm(5, INT8)))
    fn = LoopFunction("kernel", (out,), (n,), Allocate(none, body))
    array = aligned(np.zeros(2, np.int8))
    assert run(fn, [array], [2]) == 0
    assert array.tolist() == [5, 5]


def test_a_choice_inside_of_a_mask_leaves_the_other_lanes_alone() -> None:
    """Seed 10509: the lanes that an outer condition left out ran the inner one's loop."""
    n = Var("n", INT64)
    out = Buffer("C", INT8, (n,), "arg", 64, writable=True)
    i = Var("i", INT64)
    stores = [Store(out, (i,), IntImm(v, INT8)) for v in (1, 2)]
    inner = IfThen(compare("lt", i, n - 1), stores[0], stores[1])
    body = For(i, IntImm(0), IntImm(16), "vectorized", IfThen(compare("lt", i, n), inner))
    fn = LoopFunction("kernel", (out,), (n,), body)
    whole = aligned(np.full(64, 77, np.int8))
    assert run(fn, [whole], [7]) == 0
    assert whole.tolist() == [1] * 6 + [2] + [77] * 57
