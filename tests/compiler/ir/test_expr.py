"""Constants: what their dtypes hold, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from farbench_compiler.errors import ValueTypeError
from farbench_compiler.ir.dtypes import dtype
from farbench_compiler.ir.expr import Binary, IntImm, Var, as_expr, const


@pytest.mark.parametrize(
    ("value", "of"),
    [(300, "int8"), (-1, "uint8"), (2, "bool"), (10**30, "int64"), (1 << 64, "uint64"),
     (10**400, "float32"), (float("nan"), "int32"), (float("inf"), "int64"), ("1", "int32"),
     ("", "float32"), (None, "float32"), (1j, "float64")],
)  # fmt: skip
def test_constants_that_a_dtype_cannot_hold_are_refused(value: Any, of: str) -> None:
    with pytest.raises(ValueTypeError):
        const(value, of)


def test_numbers_beside_an_expression_must_fit_its_dtype() -> None:
    byte = Var("b", dtype("int8"))
    with pytest.raises(ValueTypeError, match="300 does not fit int8, which holds -128 to 127"):
        _ = byte < 300
    with pytest.raises(ValueTypeError, match="1208925819614629174706176 does not fit int64"):
        as_expr(1 << 80)


def test_all_bits_of_an_unsigned_number_turn_round() -> None:
    turned = ~Var("b", dtype("uint8"))
    assert isinstance(turned, Binary)
    assert isinstance(turned.b, IntImm)
    assert (turned.op, turned.b.value) == ("bitxor", 255)
