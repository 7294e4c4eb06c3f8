"""Constant tensors: held by the library, read like any tensor, no argument."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import farbench as fb
from farbench_compiler import te
from farbench_compiler.errors import LoweringError
from farbench_compiler.ir import interp
from farbench_compiler.ir.printer import to_text
from farbench_compiler.lower import lower
from farbench_compiler.te.schedule import Schedule
from farbench_compiler.te.tensor import Tensor

DTYPES = ("float32", "float64", "float16", "int8", "uint8", "int32", "int64")


def scaled(table: np.ndarray, rows: int = 3) -> tuple[Schedule, list[Tensor]]:
    """Add a table to each row of A, in parallel over rows."""
    a = te.placeholder((rows, *table.shape), str(table.dtype), name="A")
    held = te.constant(table, name="table")
    c = te.compute(a.shape, lambda i, *at: a[(i, *at)] + held[at], name="C")
    schedule = te.create_schedule(c.op)
    schedule[c].parallel(c.op.axis[0])
    return schedule, [a, c]


@settings(max_examples=12, deadline=None)
@given(st.sampled_from(DTYPES), st.lists(st.integers(1, 5), min_size=1, max_size=3))
def test_a_constant_is_read_as_it_was_given(dtype: str, shape: list[int]) -> None:
    table = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    schedule, args = scaled(table)
    a = np.ones((3, *shape), dtype)
    expected = a + table
    got = np.zeros_like(a)
    interp.run(lower(schedule, args), [a, got])
    np.testing.assert_array_equal(got, expected)
    got = np.zeros_like(a)
    fb.build(schedule, args)(a, got)
    np.testing.assert_array_equal(got, expected)


def test_an_exported_library_holds_it(tmp_path: Path) -> None:
    table = np.linspace(0, 1, 1000, dtype=np.float32)
    fb.build(*scaled(table)).export_library(tmp_path / "t.so")
    module = fb.load_module(tmp_path / "t.so")
    assert [arg.name for arg in module.manifest.entries[0].args] == ["A", "C"]
    got = np.zeros((3, 1000), np.float32)
    module(np.zeros((3, 1000), np.float32), got)
    np.testing.assert_array_equal(got, np.broadcast_to(table, (3, 1000)))


def test_views_and_foreign_byte_orders_are_read_by_value() -> None:
    table = np.arange(12, dtype=">f4").reshape(3, 4).T
    schedule, args = scaled(table.astype(np.float32))
    held = te.constant(table)
    assert held.op.data == args[1].op.input_tensors[1].op.data  # type: ignore[attr-defined]
    assert [n.value for n in held.shape] == [4, 3]  # type: ignore[attr-defined]


def test_other_elements_are_another_library() -> None:
    first, second = (fb.build(*scaled(np.full(4, x, np.float32))) for x in (1, 2))
    assert first.manifest.digest != second.manifest.digest


def test_the_loops_name_it() -> None:
    text = to_text(lower(*scaled(np.zeros(4, np.float32))))
    assert "  constant table: float32[4]" in text.splitlines()


def test_a_constant_is_no_argument() -> None:
    held = te.constant(np.zeros(4, np.float32), name="table")
    c = te.compute((4,), lambda i: held[i], name="C")
    with pytest.raises(LoweringError, match="table, is a constant; leave it out"):
        lower(te.create_schedule(c.op), [held, c])
