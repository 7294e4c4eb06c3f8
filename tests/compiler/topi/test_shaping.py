"""Shapes of the same elements, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farbench_compiler import te, topi
from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir import interp
from farbench_compiler.ir.visit import walk
from farbench_compiler.lower import lower
from farbench_compiler.te.tensor import reads

FACTORS = st.permutations([1, 2, 2, 3])


def grouped(factors: list[int], cuts: list[bool]) -> list[int]:
    """Multiply neighbours where there is no cut between them."""
    shape = [1]
    for factor, cut in zip(factors, cuts, strict=True):
        shape = [*shape, factor] if cut else [*shape[:-1], shape[-1] * factor]
    return shape


@settings(max_examples=60, deadline=None)
@given(FACTORS, FACTORS, *[st.lists(st.booleans(), min_size=4, max_size=4)] * 2, st.booleans())
def test_any_two_shapes(
    old: list[int], new: list[int], cuts: list[bool], others: list[bool], symbolic: bool
) -> None:
    shape, wanted = grouped(old, cuts), grouped(new, others)
    x = np.arange(12, dtype="int32").reshape(shape)
    sizes = [te.var("n") if symbolic and d == 0 else size for d, size in enumerate(shape)]
    a = te.placeholder(sizes, "int32", name="A")
    out = topi.reshape(a, wanted)
    got = np.full(wanted, -1, "int32")
    interp.run(lower(te.create_schedule(out.op), [a, out]), [x, got])
    np.testing.assert_array_equal(got, x.reshape(wanted))


def test_a_dimension_that_stays_is_read_by_its_own_index() -> None:
    a = te.placeholder((4, 6, te.var("m"), 5), name="A")
    out = topi.reshape(a, (24, a.shape[2], 5))
    assert isinstance(out.op, te.ComputeOp)
    (load,) = reads(*out.op.body)
    assert load.indices[2:] == out.op.axis[1:]
    back = topi.reshape(out, a.shape)
    assert isinstance(back.op, te.ComputeOp)
    assert sum(1 for value in back.op.body for _ in walk(value)) < 12


def test_an_open_dimension_beside_an_empty_one_is_refused() -> None:
    with pytest.raises(ScheduleError, match=r"topi\.reshape: a dimension is -1 beside one of"):
        topi.reshape(te.placeholder((3, 0), name="A"), (-1, 0))
    assert topi.reshape(te.placeholder((3, 0), name="A"), (0, 7)).ndim == 2
