"""Reductions against numpy: every kind of axis, dimensions kept and dropped."""

from __future__ import annotations

import numpy as np
import pytest

from farbench_compiler import te, topi
from farbench_compiler.errors import ScheduleError
from farbench_compiler.lower import lower
from tests.compiler.llvm.jit import aligned, run


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [0, -1, (0, 2), (-1, 1), None])
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean"])
def test_as_numpy_does(name: str, axis: int | tuple[int, ...] | None, keepdims: bool) -> None:
    x = np.random.default_rng(4).uniform(0.5, 1.5, (3, 4, 5)).astype("float32")
    wanted = np.asarray(getattr(np, name)(x.astype("f8"), axis=axis, keepdims=keepdims))
    a = te.placeholder((te.var("n"), 4, 5), "float32", name="A")
    b = getattr(topi, name)(a, axis, keepdims)
    got = aligned(np.zeros(wanted.shape, "float32"))
    assert run(lower(te.create_schedule(b.op), [a, b]), [aligned(x), got], [len(x)]) == 0
    np.testing.assert_allclose(got, wanted, rtol=2e-5)


@pytest.mark.parametrize("axis", [2, -3, (0, -2)])
def test_axes_that_cannot_be(axis: int | tuple[int, ...]) -> None:
    with pytest.raises(ScheduleError, match="axis"):
        topi.sum(te.placeholder((2, 3), name="A"), axis)
