"""Windows: how padding is given, and where taps lie."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir.expr import IntImm, as_expr
from farbench_compiler.topi.arguments import known
from farbench_compiler.topi.nn.window import padding_edges, windows


@pytest.mark.parametrize(
    ("padding", "edges"),
    [
        (2, [(2, 2), (2, 2)]),
        ((2,), [(2, 2), (2, 2)]),
        ((1, 2), [(1, 1), (2, 2)]),
        ((1, 2, 3, 4), [(1, 3), (2, 4)]),
        ((IntImm(1, as_expr(1).dtype), 0), [(1, 1), (0, 0)]),
        ("VALID", [(0, 0), (0, 0)]),
        ("SAME", [(1, 1), (2, 1)]),
    ],
)
def test_padding(padding: Any, edges: list[tuple[int, int]]) -> None:
    found = padding_edges("op", padding, [as_expr(3), as_expr(4)])
    assert [(known(b), known(a)) for b, a in found] == edges


@given(*(st.integers(1, 5) for _ in range(4)), st.integers(0, 3), st.integers(0, 3), st.booleans())
def test_every_position_and_no_more(
    size: int, kernel: int, stride: int, dilation: int, before: int, after: int, ceil: bool
) -> None:
    whole, span = size + before + after, (kernel - 1) * dilation + 1
    room = whole + (stride - 1 if ceil else 0)
    wanted = len(range(0, room - span + 1, stride))
    arguments = ("op", [as_expr(size)], [kernel], stride, (before, after), dilation)
    if not wanted:
        with pytest.raises(ScheduleError, match="does not fit"):
            windows(*arguments, ceil_mode=ceil)
        return
    (window,) = windows(*arguments, ceil_mode=ceil)
    assert known(window.out) == wanted
    last = window.at(window.out - 1, as_expr(kernel - 1))
    assert known(last) == (wanted - 1) * stride + span - 1
