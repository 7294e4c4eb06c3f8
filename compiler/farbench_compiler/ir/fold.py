"""Arithmetic on integer constants, as a dtype would do it."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Literal

from farbench_compiler.ir.dtypes import DType, int_range

BinaryOp = Literal[
    "add", "sub", "mul", "div", "floordiv", "floormod", "truncdiv", "truncmod",
    "min", "max", "bitand", "bitor", "bitxor", "shl", "shr",
]  # fmt: skip
CompareOp = Literal["eq", "ne", "lt", "le", "gt", "ge"]

DIVISIONS = frozenset(("floordiv", "floormod", "truncdiv", "truncmod"))


def _truncdiv(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _truncmod(a: int, b: int) -> int:
    return abs(a) % abs(b) * (-1 if a < 0 else 1)


_OPERATIONS: dict[BinaryOp, Callable[[int, int], int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "floormod": operator.mod,
    "truncdiv": _truncdiv,
    "truncmod": _truncmod,
    "min": min,
    "max": max,
    "bitand": operator.and_,
    "bitor": operator.or_,
    "bitxor": operator.xor,
    "shl": operator.lshift,
    "shr": operator.rshift,
}


def fold_int(op: BinaryOp, a: int, b: int, of: DType) -> int | None:
    """Compute integer arithmetic as `of` would; None where it would overflow or divide by 0."""
    if op in DIVISIONS and b == 0:
        return None
    if op in ("shl", "shr") and not 0 <= b < of.bits:
        return None
    operation = _OPERATIONS.get(op)
    if operation is None:
        return None
    value = operation(a, b)
    low, high = int_range(of)
    return value if low <= value <= high else None


_COMPARISONS: dict[CompareOp, Callable[[int, int], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


def fold_compare(op: CompareOp, a: int, b: int) -> bool:
    """Compare two integer constants."""
    return _COMPARISONS[op](a, b)
