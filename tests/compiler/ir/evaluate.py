"""A reference evaluation of integer and truth-value expressions, for tests of the IR."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from farbench_compiler.ir.expr import (
    Binary,
    Compare,
    Expr,
    IfThenElse,
    IntImm,
    Logic,
    Not,
    Select,
    Var,
)

_BINARY: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "floormod": lambda a, b: a % b,
    "truncdiv": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
    "truncmod": lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1),
    "min": min,
    "max": max,
    "shl": lambda a, b: a << b,
    "shr": lambda a, b: a >> b,
    "bitand": lambda a, b: a & b,
}
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def evaluate(e: Expr, values: Mapping[int, int]) -> int:
    """Compute an expression where variables (by uid) have values; 64 bits never overflow here."""
    match e:
        case Var(_, _, uid):
            return values[uid]
        case IntImm(value, _):
            return value
        case Binary(op, a, b, _):
            return _BINARY[op](evaluate(a, values), evaluate(b, values))
        case Compare(op, a, b, _):
            return int(_COMPARE[op](evaluate(a, values), evaluate(b, values)))
        case Logic(op, a, b, _):
            x, y = evaluate(a, values), evaluate(b, values)
            return int(bool(x and y) if op == "and" else bool(x or y))
        case Not(a, _):
            return 1 - evaluate(a, values)
        case Select(cond, a, b, _) | IfThenElse(cond, a, b, _):
            return evaluate(a if evaluate(cond, values) else b, values)
    raise TypeError(type(e).__name__)
