"""What the builder refuses; what it builds is tested with te.extern."""

from __future__ import annotations

import pytest

from farbench_compiler import te, tir
from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir.printer import to_text


def test_memory_and_values_hold_what_follows() -> None:
    ib = tir.ir_builder.create()
    first = ib.allocate("int32", (2,), name="first")
    first[0] = 1
    value = ib.let("value", first[0] + 1)
    first[1] = value
    assert to_text(ib.get()).splitlines() == [
        "allocate first: int32[2] in local",
        "first[0] = 1",
        "value = first[0] + 1",
        "first[1] = value",
    ]


def test_pointers_count_elements_in_the_order_of_memory() -> None:
    ib = tir.ir_builder.create()
    buffer = te.decl_buffer((4, 6), name="x")
    row = ib.buffer_ptr(buffer.access_ptr("w", offset=7))
    row[0] = 1.0
    row[5] = row[-7]
    assert to_text(ib.get()).splitlines() == ["x[1, 1] = 1.0", "x[2, 0] = x[0, 0]"]


def test_mistakes_are_named() -> None:
    ib = tir.ir_builder.create()
    with (
        pytest.raises(ScheduleError, match=r"else_scope: it must follow an if_scope"),
        ib.else_scope(),
    ):
        pass
    with (
        pytest.raises(ScheduleError, match=r"no loop is sideways"),
        ib.for_range(0, 4, kind="sideways"),
    ):
        pass
    with pytest.raises(ScheduleError, match=r"get stands inside"), ib.for_range(0, 4):
        ib.get()
    with pytest.raises(ScheduleError, match=r"x cannot be shared"):
        ib.allocate("float32", 4, name="x", scope="shared")
    with pytest.raises(ScheduleError, match=r"allocate: unknown dtype"):
        ib.allocate("float8", 4)
    with pytest.raises(ScheduleError, match=r"has 2 dimensions, got 3 indices"):
        ib.buffer_ptr(te.decl_buffer((2, 2)))[0, 0, 0]
    with pytest.raises(ScheduleError, match=r"an index is an integer, not float32"):
        ib.buffer_ptr(te.decl_buffer((2,)))[0.5]
