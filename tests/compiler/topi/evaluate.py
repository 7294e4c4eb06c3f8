"""Evaluate functions of tensors on arrays, natively and unscheduled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farbench_compiler import te
from farbench_compiler.ir.expr import IntImm
from farbench_compiler.lower import lower
from farbench_compiler.te import Tensor
from tests.compiler.llvm.jit import aligned, run

Array = NDArray[Any]


def numbers(*shape: int, dtype: str = "float32", seed: int = 0) -> Array:
    """Give numbers from -1 to 1, or small integers."""
    source = np.random.default_rng([seed, *shape])
    if np.dtype(dtype).kind == "f":
        return source.uniform(-1, 1, shape).astype(dtype)
    return source.integers(-5, 6, shape).astype(dtype)


def evaluate(function: Callable[..., Tensor], *arrays: Array) -> Array:
    """Give the tensor that a function makes of placeholders like the arrays, on the arrays.

    Arrays that the tensor does not depend on are left out.
    """
    given = [te.placeholder(a.shape, str(a.dtype), name=f"A{i}") for i, a in enumerate(arrays)]
    out = function(*given)
    shape = [n.value for n in out.shape if isinstance(n, IntImm)]
    assert len(shape) == out.ndim
    got = aligned(np.full(shape, 77).astype(str(out.dtype)))
    schedule = te.create_schedule(out.op)
    needed = [(x, aligned(a)) for x, a in zip(given, arrays, strict=True) if x in schedule]
    lowered = lower(schedule, [*(x for x, _ in needed), out])
    assert run(lowered, [*(a for _, a in needed), got]) == 0
    return got


def check(
    function: Callable[..., Tensor],
    arrays: Sequence[Array],
    wanted: Any,
    rtol: float = 2e-5,
    atol: float = 1e-5,
) -> None:
    """Compare with what is wanted; integers exactly."""
    got, expected = evaluate(function, *arrays), np.asarray(wanted)
    if got.dtype.kind != "f":
        np.testing.assert_array_equal(got, expected)
        return
    np.testing.assert_allclose(got.astype("f8"), expected.astype("f8"), rtol=rtol, atol=atol)
