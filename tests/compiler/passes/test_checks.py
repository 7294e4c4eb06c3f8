"""Debug builds: what is asked before a statement, and what needs no question."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from farbench_compiler import te
from farbench_compiler.ir.expr import Expr
from farbench_compiler.ir.interp import InterpError, run
from farbench_compiler.ir.stmt import For, LoopFunction, Require
from farbench_compiler.ir.verify import verify
from farbench_compiler.ir.visit import walk
from farbench_compiler.lower import lower
from farbench_compiler.passes.checks import add_checks

Element = Callable[[te.Tensor, te.Tensor, te.IterVar], Expr]


def checked(value: Element, extent: int = 8) -> LoopFunction:
    a = te.placeholder((10,), "int32", name="A")
    at = te.placeholder((8,), "int32", name="I")
    c = te.compute((extent,), lambda i: value(a, at, i), name="C")
    sch = te.create_schedule(c.op)
    outer, inner = sch[c].split(c.op.axis[0], factor=4)
    sch[c].parallel(outer)
    sch[c].vectorize(inner)
    fn = add_checks(lower(sch, [a, at, c], "f"))
    verify(fn, "lowered")
    return fn


def requirements(fn: LoopFunction) -> int:
    return sum(isinstance(n, Require) for n in walk(fn.body))


def called(fn: LoopFunction, indices: list[int]) -> list[int]:
    out = np.zeros(8, np.int32)
    run(fn, [np.arange(10, dtype=np.int32), np.array(indices, np.int32), out])
    return [int(x) for x in out]


GOOD = [0, 1, 2, 3, 4, 5, 6, 9]


@pytest.mark.parametrize(
    ("value", "bad", "said"),
    [
        (lambda a, at, i: a[at[i]], 10, r"f: load from A, dimension 0: index 10 is .* \[0, 10\)"),
        (lambda a, at, i: a[at[i]], -1, "index -1 is outside"),
        (lambda a, at, i: a[a[at[i]]] + 1, 77, "index 77 is outside"),
        (lambda a, at, i: te.floordiv(a[i], 9 - at[i]), 9, "f: floordiv by zero"),
        (lambda a, at, i: a[i] << at[i], 32, r"f: shl by 32 is outside of \[0, 32\)"),
        (lambda a, at, i: te.if_then_else(a[at[i]] > 1, 1, 2), 12, "index 12"),
    ],
)
def test_what_goes_wrong_stops_the_call(value: Element, bad: int, said: str) -> None:
    fn = checked(value)
    called(fn, [8 if x == 9 else x for x in GOOD])
    with pytest.raises(InterpError, match=said):
        called(fn, [*GOOD[:3], bad, *GOOD[4:]])


def test_a_side_that_is_not_chosen_is_not_asked() -> None:
    fn = checked(lambda a, at, i: te.if_then_else(at[i] < 10, a[at[i]], -1))
    assert called(fn, [*GOOD[:7], 10]) == [0, 1, 2, 3, 4, 5, 6, -1]


def test_loops_run_one_after_the_other() -> None:
    fn = checked(lambda a, at, i: a[at[i]])
    assert {n.kind for n in walk(fn.body) if isinstance(n, For)} == {"serial"}


def test_what_is_proven_is_not_asked() -> None:
    assert requirements(checked(lambda a, at, i: a[i + 2] // 3 + at[7 - i])) == 0
    assert requirements(checked(lambda a, at, i: a[at[i]])) == 1
