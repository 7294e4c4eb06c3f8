"""Functions of two tensors or values, element by element, by numpy's broadcasting rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from farbench_compiler import te
from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir import expr as ir
from farbench_compiler.ir.expr import Expr, ExprLike
from farbench_compiler.ir.fold import BinaryOp, CompareOp
from farbench_compiler.te import Tensor
from farbench_compiler.te.broadcast import binary, combine, comparison

Operand = Tensor | ExprLike


def _apply(name: str, function: Callable[[Any, Any], Expr], a: Operand, b: Operand) -> Tensor:
    if not isinstance(a, Tensor) and not isinstance(b, Tensor):
        raise ScheduleError(f"topi.{name}: give a tensor; te has the functions of values")
    return combine(function, a, b, name=name)


def _arithmetic(name: str, op: BinaryOp, a: Operand, b: Operand) -> Tensor:
    return _apply(name, binary(op), a, b)


def _comparison(name: str, op: CompareOp, a: Operand, b: Operand) -> Tensor:
    return _apply(name, comparison(op), a, b)


def add(a: Operand, b: Operand) -> Tensor:
    """Add."""
    return _arithmetic("add", "add", a, b)


def subtract(a: Operand, b: Operand) -> Tensor:
    """Subtract b from a."""
    return _arithmetic("subtract", "sub", a, b)


def multiply(a: Operand, b: Operand) -> Tensor:
    """Multiply."""
    return _arithmetic("multiply", "mul", a, b)


def divide(a: Operand, b: Operand) -> Tensor:
    """Divide as `/` does: floats exactly, integers rounding towards zero."""
    return _apply("divide", ir.divide, a, b)


def floor_divide(a: Operand, b: Operand) -> Tensor:
    """Divide integers, rounding towards minus infinity."""
    return _arithmetic("floor_divide", "floordiv", a, b)


def mod(a: Operand, b: Operand) -> Tensor:
    """Give the rest of `floor_divide`."""
    return _arithmetic("mod", "floormod", a, b)


def maximum(a: Operand, b: Operand) -> Tensor:
    """Take the greater; NaN where either is NaN."""
    return _arithmetic("maximum", "max", a, b)


def minimum(a: Operand, b: Operand) -> Tensor:
    """Take the lesser; NaN where either is NaN."""
    return _arithmetic("minimum", "min", a, b)


def power(a: Operand, b: Operand) -> Tensor:
    """Raise a to the power of b, both floats."""
    return _apply("power", te.power, a, b)


def left_shift(a: Operand, b: Operand) -> Tensor:
    """Shift the bits of a up by b."""
    return _arithmetic("left_shift", "shl", a, b)


def right_shift(a: Operand, b: Operand) -> Tensor:
    """Shift the bits of a down by b."""
    return _arithmetic("right_shift", "shr", a, b)


def bitwise_and(a: Operand, b: Operand) -> Tensor:
    """Keep the bits that both have."""
    return _arithmetic("bitwise_and", "bitand", a, b)


def bitwise_or(a: Operand, b: Operand) -> Tensor:
    """Take the bits that either has."""
    return _arithmetic("bitwise_or", "bitor", a, b)


def bitwise_xor(a: Operand, b: Operand) -> Tensor:
    """Take the bits that one alone has."""
    return _arithmetic("bitwise_xor", "bitxor", a, b)


def equal(a: Operand, b: Operand) -> Tensor:
    """Tell whether elements are equal."""
    return _comparison("equal", "eq", a, b)


def not_equal(a: Operand, b: Operand) -> Tensor:
    """Tell whether elements differ."""
    return _comparison("not_equal", "ne", a, b)


def less(a: Operand, b: Operand) -> Tensor:
    """Tell whether a is less than b."""
    return _comparison("less", "lt", a, b)


def less_equal(a: Operand, b: Operand) -> Tensor:
    """Tell whether a is at most b."""
    return _comparison("less_equal", "le", a, b)


def greater(a: Operand, b: Operand) -> Tensor:
    """Tell whether a is greater than b."""
    return _comparison("greater", "gt", a, b)


def greater_equal(a: Operand, b: Operand) -> Tensor:
    """Tell whether a is at least b."""
    return _comparison("greater_equal", "ge", a, b)


def logical_and(a: Operand, b: Operand) -> Tensor:
    """Tell whether both are true (nonzero)."""
    return _apply("logical_and", lambda x, y: ir.logic("and", x, y), a, b)


def logical_or(a: Operand, b: Operand) -> Tensor:
    """Tell whether one is true (nonzero)."""
    return _apply("logical_or", lambda x, y: ir.logic("or", x, y), a, b)
