"""Expressions of random programs: one description, evaluated as te and as numpy.

Integers wrap as their dtype says. Floats hold whole numbers small enough to be exact in their
dtype (`magnitude` bounds them), whatever is contracted or reordered, so that all ways of computing
them agree to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from farbench_compiler import te
from farbench_compiler.ir.dtypes import dtype, int_range
from farbench_compiler.ir.expr import Expr, binary, cast, compare, const

Value = Any
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64", "bfloat16")
EXACT = {"bfloat16": 1 << 8, "float16": 1 << 11, "float32": 1 << 24, "float64": 1 << 50}
BINARY = (
    "add", "sub", "mul", "min", "max", "bitand", "bitor", "bitxor",
    "floordiv", "floormod", "truncdiv", "truncmod",
)  # fmt: skip
FLOAT_BINARY = ("add", "sub", "mul", "min", "max", "div")
# Functions that give whole numbers of whole numbers, without rounding.
FLOAT_UNARY = ("abs", "floor", "ceil", "round", "trunc", "nearbyint", "root")
INTEGER_UNARY = ("abs", "popcount", "clz")
CLASSES = ("isnan", "isinf", "isfinite")
COMPARE = ("eq", "ne", "lt", "le", "gt", "ge")


def is_float(of: str) -> bool:
    return of in EXACT


class Te:
    """Evaluates as expressions of te."""

    def const(self, value: int, of: str) -> Value:
        return const(float(value) if is_float(of) else value, of)

    def cast(self, x: Value, to: str) -> Value:
        return cast(to, x)

    def binary(self, op: str, a: Value, b: Value) -> Value:
        return binary(op, a, b)  # type: ignore[arg-type]

    def shift(self, op: str, a: Value, by: int) -> Value:
        return binary(op, a, const(by, a.dtype))  # type: ignore[arg-type]

    def unary(self, op: str, x: Value) -> Value:
        return te.sqrt(x * x) if op == "root" else getattr(te, op)(x)

    def compare(self, op: str, a: Value, b: Value) -> Value:
        return compare(op, a, b)  # type: ignore[arg-type]

    def choose(self, cond: Value, a: Value, b: Value, *, lazy: bool) -> Value:
        return te.if_then_else(cond, a, b) if lazy else te.select(cond, a, b)

    def read(self, source: te.Tensor, at: Sequence[Value], cond: Value | None) -> Value:
        element = source[tuple(at)]
        if cond is None:
            return element
        return te.if_then_else(cond, element, const(0, element.dtype))


class Numpy:
    """Evaluates on whole arrays; floats are float64 until they are stored."""

    def const(self, value: int, of: str) -> Value:
        return np.asarray(value, np.float64 if is_float(of) else of)

    def cast(self, x: Value, to: str) -> Value:
        if is_float(to):
            return np.asarray(x, np.float64)
        if x.dtype.kind == "f" and to != "bool":
            low, high = int_range(dtype(to))
            return np.array([min(max(int(v), low), high) for v in x.flat], to).reshape(x.shape)
        return x.astype(to)

    def binary(self, op: str, a: Value, b: Value) -> Value:
        plain: dict[str, Callable[[Value, Value], Value]] = {
            "add": np.add, "sub": np.subtract, "mul": np.multiply, "min": np.minimum,
            "max": np.maximum, "bitand": np.bitwise_and, "bitor": np.bitwise_or,
            "bitxor": np.bitwise_xor, "floordiv": np.floor_divide, "floormod": np.remainder,
            "truncmod": np.fmod, "div": np.true_divide,
        }  # fmt: skip
        if op != "truncdiv":
            return plain[op](a, b)
        floor = a // b
        inexact = (floor * b != a) & ((a < 0) != (b < 0))
        return floor + inexact.astype(floor.dtype)

    def shift(self, op: str, a: Value, by: int) -> Value:
        amount = np.asarray(by, a.dtype)
        return np.left_shift(a, amount) if op == "shl" else np.right_shift(a, amount)

    def unary(self, op: str, x: Value) -> Value:
        if op == "clz":
            return np.array([(8 * x.itemsize - (int(v) & _ones(x)).bit_length()) for v in x.flat],
                            np.int32).reshape(x.shape)  # fmt: skip
        if op == "popcount":
            return np.array([(int(v) & _ones(x)).bit_count() for v in x.flat],
                            np.int32).reshape(x.shape)  # fmt: skip
        named = {"root": "abs", "nearbyint": "rint", "round": "rint"}.get(op, op)
        return getattr(np, named)(x)

    def compare(self, op: str, a: Value, b: Value) -> Value:
        signs = {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal",
                 "gt": "greater", "ge": "greater_equal"}  # fmt: skip
        return getattr(np, signs[op])(a, b)

    def choose(self, cond: Value, a: Value, b: Value, *, lazy: bool) -> Value:
        return np.where(cond, a, b)

    def read(self, source: Value, at: Sequence[Value], cond: Value | None) -> Value:
        inside = [np.clip(i, 0, max(n - 1, 0)) for i, n in zip(at, source.shape, strict=True)]
        element = source[tuple(inside)]
        if element.dtype.kind not in "iub":
            element = element.astype(np.float64)
        return element if cond is None else np.where(cond, element, np.zeros((), element.dtype))


def _ones(x: Value) -> int:
    return (1 << 8 * int(x.itemsize)) - 1


Ops = Te | Numpy


@dataclass(frozen=True)
class Env:
    """Where an expression is evaluated: operations, tensors by number, loop variables, sizes."""

    ops: Ops
    tensors: Sequence[Value]
    loops: Sequence[Value]
    sizes: Sequence[Expr | int]


Evaluate = Callable[[Env], Value]


@dataclass(frozen=True)
class Node:
    """An expression: its dtype, what bounds its absolute value, and how it is evaluated."""

    dtype: str
    magnitude: int
    evaluate: Evaluate


def number(value: int, of: str) -> Node:
    return Node(of, abs(value), lambda env: env.ops.const(value, of))


def clamped(x: Node, most: int) -> Node:
    """Keep a float within -most ... most."""
    if not is_float(x.dtype) or x.magnitude <= most:
        return x
    low, high = number(-most, x.dtype), number(most, x.dtype)
    inner = two("max", x, low)
    return Node(x.dtype, most, two("min", inner, high).evaluate)


def two(op: str, a: Node, b: Node) -> Node:
    """Apply an operation; the operands of one that would grow too large are clamped before."""
    if is_float(a.dtype) and op in ("min", "max"):
        most = max(a.magnitude, b.magnitude)
    elif is_float(a.dtype):
        room = EXACT[a.dtype]
        side = int(room**0.5) // 2 if op == "mul" else room // 4
        a, b = clamped(a, side), clamped(b, side)
        most = a.magnitude * b.magnitude if op == "mul" else a.magnitude + b.magnitude
    else:
        most = 0
    return Node(a.dtype, most, lambda env: env.ops.binary(op, a.evaluate(env), b.evaluate(env)))


def one(op: str, x: Node) -> Node:
    """Apply a function; a float whose square is taken is clamped before."""
    if op == "root":
        x = clamped(x, int(EXACT[x.dtype] ** 0.5) // 2)
    of = "int32" if op in ("popcount", "clz") else "bool" if op in CLASSES else x.dtype
    return Node(of, x.magnitude, lambda env: env.ops.unary(op, x.evaluate(env)))


def quotient(x: Node, by: int) -> Node:
    """Divide a float by a number that divides it."""
    product, divisor = two("mul", x, number(by, x.dtype)), number(by, x.dtype)
    return Node(x.dtype, product.magnitude, lambda env: env.ops.binary(
        "div", product.evaluate(env), divisor.evaluate(env)))  # fmt: skip


def odd(x: Node) -> Node:
    """Make an integer that is not zero."""
    return two("bitor", x, number(1, x.dtype))


def converted(x: Node, to: str) -> Node:
    """Cast, an integer to a float by its remainder, so that it stays exact."""
    if x.dtype == to:
        return x
    if is_float(to) and is_float(x.dtype):
        x = clamped(x, EXACT[to] // 4)
        magnitude = x.magnitude
    elif is_float(to):
        if x.dtype != "bool":
            x = two("floormod", x, number(7, x.dtype))
        magnitude = 7
    else:
        magnitude = 0
    inner = x
    return Node(to, magnitude, lambda env: env.ops.cast(inner.evaluate(env), to))
