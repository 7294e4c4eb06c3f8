"""Indices that surely leave their tensor are refused; all that is guarded or unknown is not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from farbench_compiler import te
from farbench_compiler.errors import LoweringError
from farbench_compiler.ir.expr import Expr
from farbench_compiler.lower import lower

Element = Callable[[te.Tensor, te.IterVar], Expr]


def lowered(value: Element, extent: int = 8, factor: int = 0) -> str:
    a = te.placeholder((10,), "int32", name="A")
    c = te.compute((extent,), lambda i: value(a, i), name="C")
    sch = te.create_schedule(c.op)
    if factor:
        sch[c].split(c.op.axis[0], factor=factor)
    return str(lower(sch, [a, c]))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (lambda a, i: a[i + 3], "index .* runs from 3 to 10, the extent is 10"),
        (lambda a, i: a[i - 1] + 1, "runs from -1 to 6"),
        (lambda a, i: a[9 - i * 2], "runs from -5 to 9"),
        (lambda a, i: te.if_then_else(a[i + 3] > 0, 1, 0), "A is read outside of dimension 0"),
        (lambda a, i: a[10], "runs from 10 to 10"),
    ],
)
@pytest.mark.parametrize("factor", [0, 4])
def test_an_index_that_leaves_its_tensor(value: Element, said: str, factor: int) -> None:
    with pytest.raises(LoweringError, match=said):
        lowered(value, factor=factor)


@pytest.mark.parametrize(
    "value",
    [
        lambda a, i: a[i + 2],
        lambda a, i: te.if_then_else(i < 7, a[i + 3], 0),
        lambda a, i: te.select(i < 7, a[i + 3], 0),
        lambda a, i: a[te.floormod(i + 3, 10)],
        lambda a, i: a[a[i]],
    ],
)
@pytest.mark.parametrize("factor", [0, 3])
def test_what_is_inside_guarded_or_unknown(value: Element, factor: int) -> None:
    assert "C[" in lowered(value, factor=factor)


def test_a_loop_that_never_runs() -> None:
    assert lowered(lambda a, i: a[i + 30], extent=0)


def test_a_sum_that_reads_past_the_end() -> None:
    a = te.placeholder((4, 5), name="A")
    k = te.reduce_axis((0, 6), name="k")
    c = te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="C")
    with pytest.raises(LoweringError, match="dimension 1: index k runs from 0 to 5"):
        lower(te.create_schedule(c.op), [a, c])
