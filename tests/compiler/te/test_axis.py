"""Whole numbers that primitives take: Python's, numpy's and those of expressions."""

from __future__ import annotations

import numpy as np
import pytest

from farbench_compiler import te
from farbench_compiler.te.axis import whole_number


@pytest.mark.parametrize("value", [-3, np.int64(-3), np.array(-3), te.const(-3, "int8")])
def test_whole_numbers(value: object) -> None:
    assert whole_number(value) == -3


@pytest.mark.parametrize(
    "value", [3.0, np.float32(3), "3", None, np.array([3, 4]), [3], te.const(3.0), te.var("n")]
)
def test_what_is_none(value: object) -> None:
    assert whole_number(value) is None
