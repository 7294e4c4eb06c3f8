"""What nests deeper than Python's stack is built, or refused with a typed error."""

from __future__ import annotations

import sys
import threading

import pytest

from farbench_compiler import depth, te
from farbench_compiler.build import build, lower_text
from farbench_compiler.depth import of_any_depth
from farbench_compiler.errors import LoweringError
from farbench_compiler.te import Schedule, Tensor


def sums(levels: int) -> tuple[Schedule, list[Tensor]]:
    def body(i: te.IterVar) -> te.Expr:
        value: te.Expr = a[i]
        for _ in range(levels):
            value = value * a[i] + 1
        return value

    a = te.placeholder((4,), name="A")
    c = te.compute((4,), body, name="C")
    return te.create_schedule(c.op), [a, c]


def chain(stages: int) -> tuple[Schedule, list[Tensor]]:
    first = last = te.placeholder((4,), name="A")
    for k in range(stages):
        last = te.compute((4,), lambda i, t=last: t[i] + 1, name=f"T{k}")
    return te.create_schedule(last.op), [first, last]


@pytest.mark.parametrize("cache", [True, False])
def test_deep_expressions_are_built(cache: bool) -> None:
    assert build(*sums(1500), cache=cache).manifest.entries[0].name == "main"
    assert lower_text(*sums(1500)).count("+") == 1500


def test_long_chains_of_stages_are_built() -> None:
    assert build(*chain(200), cache=False).objects


def levels_of(n: int) -> int:
    return 1 + levels_of(n - 1) if n else 0


def test_limits_are_those_of_before_afterwards() -> None:
    before = sys.getrecursionlimit(), threading.stack_size()
    assert of_any_depth(levels_of)(before[0] * 2) == before[0] * 2
    assert (sys.getrecursionlimit(), threading.stack_size()) == before


def test_errors_come_through() -> None:
    def fails(n: int) -> int:
        if n:
            return fails(n - 1)
        raise KeyError("bottom")

    with pytest.raises(KeyError, match="bottom"):
        of_any_depth(fails)(sys.getrecursionlimit() * 2)


def test_what_is_too_deep_even_so_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(depth, "CALLS", 3000)
    with pytest.raises(LoweringError, match="nests too deep for the stack; give it less at a time"):
        of_any_depth(levels_of)(4000)
    monkeypatch.setattr(depth, "STACK_BYTES", 1 << 60)
    with pytest.raises(LoweringError, match="nests too deep for the stack, which takes"):
        of_any_depth(levels_of)(4000)
