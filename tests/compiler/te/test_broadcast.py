"""Whole tensors: operators and functions element by element, broadcast as numpy broadcasts."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farbench_compiler import te
from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir import interp
from farbench_compiler.lower import lower
from farbench_compiler.te.broadcast import broadcast_shapes
from farbench_compiler.te.tensor import Tensor

FLOATS = (operator.add, operator.sub, operator.mul, operator.truediv)
INTEGERS = (
    operator.floordiv, operator.mod, operator.and_, operator.or_, operator.xor, operator.lshift,
    operator.rshift,
)  # fmt: skip
f: Any = te  # whose functions are typed for values
ORDERS = (operator.lt, operator.le, operator.gt, operator.ge)


def compute(function: Callable[..., Any], *arrays: np.ndarray[Any, Any]) -> Any:
    """Apply a function of tensors to arrays, by the reference interpreter."""
    args = [te.placeholder(x.shape, str(x.dtype), name=f"A{i}") for i, x in enumerate(arrays)]
    out: Tensor = function(*args)
    shape = [int(n.value) for n in out.shape]  # type: ignore[attr-defined]
    got = np.zeros(shape, str(out.dtype))
    interp.run(lower(te.create_schedule(out.op), [*args, out]), [*arrays, got])
    return got


@pytest.mark.parametrize("op", [*FLOATS, *ORDERS])
@pytest.mark.parametrize(
    "shapes", [((3, 4), (3, 4)), ((3, 1), (4,)), ((1,), (2, 3, 4)), ((), (5,))]
)
def test_floats_broadcast(op: Any, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    source = np.random.default_rng(0)
    a, b = (source.uniform(1, 2, shape).astype(np.float32) for shape in shapes)
    np.testing.assert_allclose(compute(op, a, b), op(a, b), rtol=1e-6)


@pytest.mark.parametrize("op", INTEGERS)
def test_integers_broadcast(op: Any) -> None:
    a, b = np.arange(1, 13, dtype=np.int32).reshape(3, 4), np.array([1, 2, 3, 4], np.int32)
    np.testing.assert_array_equal(compute(op, a, b), op(a, b))


@pytest.mark.parametrize("op", FLOATS)
def test_numbers_stand_on_either_side(op: Any) -> None:
    a = np.array([1.0, 2.0, 4.0], np.float32)
    np.testing.assert_array_equal(compute(lambda x: op(x, 2), a), op(a, np.float32(2)))
    np.testing.assert_array_equal(compute(lambda x: op(2.0, x), a), op(np.float32(2), a))
    half = te.const(0.5, "float32")
    np.testing.assert_array_equal(compute(lambda x: op(half, x), a), op(np.float32(0.5), a))


def test_functions_and_casts_take_tensors() -> None:
    a = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_allclose(compute(f.exp, a), np.exp(a), rtol=1e-6)
    np.testing.assert_array_equal(compute(lambda x: -f.abs(x), a), -np.abs(a))
    row = np.array([1, 2, 3, 4], np.float32)
    got = compute(lambda x, y: f.power(f.abs(x), y), a, row)
    np.testing.assert_allclose(got, np.abs(a) ** row, rtol=1e-6)
    np.testing.assert_array_equal(compute(lambda x: x.astype("int32"), a), a.astype(np.int32))


def test_symbolic_sizes_meet_numbers() -> None:
    n, m = te.var("n"), te.var("m")
    a, b = te.placeholder((n, 3), name="A"), te.placeholder((1, 3), name="B")
    assert (a + b).shape[0] is n
    assert (a + te.placeholder((5, 3))).shape[0].value == 5  # type: ignore[attr-defined]
    with pytest.raises(ScheduleError, match="add: dimension -2 is n and m"):
        a + te.placeholder((m, 3))


@given(st.lists(st.lists(st.sampled_from([1, 1, 2, 3]), max_size=4), min_size=1, max_size=3))
def test_shapes_join_as_numpys_do(shapes: list[list[int]]) -> None:
    given_shapes = [tuple(te.const(n, "int64") for n in shape) for shape in shapes]
    try:
        wanted = np.broadcast_shapes(*map(tuple, shapes))
    except ValueError:
        with pytest.raises(ScheduleError, match="do not broadcast"):
            broadcast_shapes("add", given_shapes)
        return
    found = broadcast_shapes("add", given_shapes)
    assert tuple(n.value for n in found) == wanted  # type: ignore[attr-defined]


def test_tensors_are_still_found_in_lists_and_dicts() -> None:
    a, b = te.placeholder((2,), name="A"), te.placeholder((2,), name="B")
    assert a in [b, a]
    assert {a: 1, b: 2}[b] == 2
    assert a == a  # noqa: PLR0124 - identity is what == compares
    assert a != b


@pytest.mark.parametrize("reduce", [te.sum, te.max, te.min, te.prod])
def test_a_number_is_no_reduce_axis(reduce: Any) -> None:
    a = te.placeholder((2,), name="A")
    with pytest.raises(
        ScheduleError, match=r"axis is 0; give a te\.reduce_axis or several, or topi"
    ):
        reduce(a[0], axis=0)


def test_reducers_of_plain_values_take_numbers() -> None:
    a = np.array([-1.0, 2.0], np.float32)
    got = compute(lambda x: te.compute((2,), lambda i: te.max(x[i], 0)), a)
    np.testing.assert_array_equal(got, np.maximum(a, 0))
