"""topi's functions of two operands, against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from farbench_compiler import te, topi
from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir import interp
from farbench_compiler.lower import lower

ANY = ("add", "subtract", "multiply", "maximum", "minimum")
ORDERS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
FLOATS = (*ANY, *ORDERS, "divide", "power")
INTEGERS = (
    *ANY, *ORDERS, "floor_divide", "mod", "left_shift", "right_shift", "bitwise_and", "bitwise_or",
    "bitwise_xor", "logical_and", "logical_or",
)  # fmt: skip


def apply(name: str, a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> Any:
    x, y = te.placeholder(a.shape, str(a.dtype)), te.placeholder(b.shape, str(b.dtype))
    function: Callable[..., te.Tensor] = getattr(topi, name)
    out = function(x, y)
    got = np.zeros(np.broadcast_shapes(a.shape, b.shape), str(out.dtype))
    interp.run(lower(te.create_schedule(out.op), [x, y, out]), [a, b, got])
    return got


@pytest.mark.parametrize("name", FLOATS)
def test_floats(name: str) -> None:
    a = np.array([[0.5], [1.0], [2.5]], np.float32)
    b = np.array([1.0, 2.5, 3.0, 0.25], np.float32)
    np.testing.assert_allclose(apply(name, a, b), getattr(np, name)(a, b), rtol=1e-6)


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name: str) -> None:
    a, b = np.array([[5], [1], [12]], np.int32), np.array([1, 2, 3, 5], np.int32)
    np.testing.assert_array_equal(apply(name, a, b), getattr(np, name)(a, b))


def test_one_operand_may_be_a_value_and_one_must_be_a_tensor() -> None:
    x = te.placeholder((3,), "float32")
    assert topi.add(x, 1).dtype == x.dtype
    assert topi.subtract(1.0, x).shape[0].value == 3  # type: ignore[attr-defined]
    with pytest.raises(ScheduleError, match=r"topi\.add: give a tensor"):
        topi.add(1, 2)
