"""Functions of one tensor against numpy, with a symbolic size."""

from __future__ import annotations

from collections.abc import Callable
from math import erf
from typing import Any

import numpy as np
import pytest

from farbench_compiler import te, topi
from farbench_compiler.lower import lower
from tests.compiler.llvm.jit import aligned, run

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "abs": np.abs,
    "ceil": np.ceil,
    "erf": np.vectorize(erf),
    "exp": np.exp,
    "floor": np.floor,
    "log": lambda x: np.log(np.abs(x)),
    "relu": lambda x: np.maximum(x, 0),
    "round": np.round,
    "rsqrt": lambda x: 1 / np.sqrt(np.abs(x)),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "sqrt": lambda x: np.sqrt(np.abs(x)),
    "tanh": np.tanh,
    "trunc": np.trunc,
}
POSITIVE = frozenset({"log", "rsqrt", "sqrt"})


@pytest.mark.parametrize("name", FUNCTIONS)
def test_as_numpy_does(name: str) -> None:
    x = np.random.default_rng(3).uniform(-3, 3, (5, 7)).astype("float32")
    x = np.abs(x) if name in POSITIVE else x
    a = te.placeholder((te.var("n"), 7), "float32", name="A")
    b = getattr(topi, name)(a)
    got = aligned(np.zeros_like(x))
    assert run(lower(te.create_schedule(b.op), [a, b]), [aligned(x), got], [len(x)]) == 0
    np.testing.assert_allclose(got, FUNCTIONS[name](x.astype("f8")), rtol=1e-5, atol=1e-6)
