"""Operations of the reference interpreter: what each does to scalars and to vectors.

Scalar integers and truth values are Python's, wrapped to their width; floats are numpy scalars of
their width; vectors are numpy arrays.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from farbench_compiler.ir import dots
from farbench_compiler.ir.bfloat import BFLOAT16, to_bfloat16
from farbench_compiler.ir.dtypes import DType, int_range

Value = Any
Function = Callable[..., Value]


def numpy_dtype(of: DType) -> np.dtype[Any]:
    """Give the numpy dtype of one lane."""
    return BFLOAT16 if of.is_bfloat else np.dtype(str(of.scalar))


def scalar(value: Value, of: DType) -> Value:
    """Make a scalar in the form that the interpreter computes with."""
    if of.is_bool:
        return bool(value)
    if of.is_bfloat:
        return to_bfloat16(float(value))[()]
    return numpy_dtype(of).type(value) if of.is_float else int(value)


def wrapper(of: DType) -> Callable[[int], int]:
    """Give the function that wraps a Python int to an integer dtype."""
    low, high = int_range(of)
    width = 1 << of.bits

    def wrap(value: int) -> int:
        return value if low <= value <= high else (value - low) % width + low

    return wrap


def _or_zero(divide: Function) -> Function:
    """Let a division by zero give 0, as generated code does."""
    return lambda a, b: divide(a, b) if b != 0 else 0


def _shift(op: str, of: DType) -> Function:
    """Give a shift; by the width or more, or by less than 0, everything is shifted out."""
    if op == "shl":
        return lambda a, by: a << by if 0 <= by < of.bits else 0
    return lambda a, by: a >> (by if 0 <= by < of.bits else of.bits)


def _truncdiv(a: int, b: int) -> int:
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def _truncmod(a: int, b: int) -> int:
    return a - b * _truncdiv(a, b)


_SCALAR: dict[str, Function] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": _or_zero(operator.floordiv),
    "floormod": _or_zero(operator.mod),
    "truncdiv": _or_zero(_truncdiv),
    "truncmod": _or_zero(_truncmod),
    "min": min,
    "max": max,
    "bitand": operator.and_,
    "bitor": operator.or_,
    "bitxor": operator.xor,
}

_FLOAT: dict[str, Function] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "floordiv": np.floor_divide,
    "floormod": np.mod,
    "truncdiv": lambda a, b: np.trunc(a / b),
    "truncmod": np.fmod,
    "min": np.minimum,
    "max": np.maximum,
}

_VECTOR: dict[str, Function] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "floormod": operator.mod,
    "truncdiv": lambda a, b: a // b + ((a % b != 0) & ((a < 0) != (b < 0))),
    "truncmod": np.fmod,
    "min": np.minimum,
    "max": np.maximum,
    "bitand": operator.and_,
    "bitor": operator.or_,
    "bitxor": operator.xor,
    "shl": operator.lshift,
    "shr": operator.rshift,
}

COMPARE: dict[str, Function] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


def binary(op: str, of: DType) -> Function:
    """Give the function that does arithmetic on two values of a dtype."""
    if of.is_bfloat:
        return _rounded(_FLOAT[op])
    if of.is_float:
        return _FLOAT[op]
    if of.lanes > 1:
        return _VECTOR[op]
    plain = _shift(op, of) if op in ("shl", "shr") else _SCALAR[op]
    wrap = wrapper(of)
    if of.is_bool or op in ("min", "max", "bitand", "bitor"):
        return plain
    return lambda a, b: wrap(plain(a, b))


def _single(x: Value) -> Value:
    return np.asarray(x).astype(np.float32)[()]


def _rounded(function: Function) -> Function:
    """Compute bfloat16 in float32 and round the result."""
    return lambda *xs: to_bfloat16(function(*map(_single, xs)))[()]


def cast(source: DType, to: DType) -> Function:
    """Give the function that converts; floats beyond an integer's range saturate, NaN gives 0."""
    if source.is_bfloat:
        wide = cast(DType("float", 32, source.lanes), to)
        return lambda x: wide(_single(x))
    if source.lanes > 1:
        return lambda x: _cast_vector(np.asarray(x), to)
    if to.is_bool:
        return lambda x: bool(x != 0)
    if to.is_bfloat and source.is_float:
        return lambda x: to_bfloat16(x)[()]
    if to.is_bfloat:
        return lambda x: to_bfloat16(np.float32(x))[()]
    if to.is_float:
        of = numpy_dtype(to).type
        return lambda x: of(x)
    if source.is_float:
        low, high = int_range(to)
        return lambda x: 0 if math.isnan(x) else _saturated(x, low, high)
    wrap = wrapper(to)
    return lambda x: wrap(int(x))


def _saturated(x: Value, low: int, high: int) -> int:
    if math.isinf(x):
        return high if x > 0 else low
    return max(low, min(high, int(x)))


def _cast_vector(x: Value, to: DType) -> Value:
    of = numpy_dtype(to)
    if to.is_bfloat:
        return to_bfloat16(x if x.dtype.kind == "f" else x.astype(np.float32))
    if x.dtype.kind != "f" or not to.is_int:
        return x.astype(of)
    low, high = int_range(to)
    return np.array([0 if math.isnan(v) else _saturated(v, low, high) for v in x], of)


_FLOAT_CALLS: dict[str, Function] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "pow": np.power,
    "tanh": np.tanh,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "hypot": np.hypot,
    "log1p": np.log1p,
    "expm1": np.expm1,
    "fmod": np.fmod,
    "copysign": np.copysign,
    "sigmoid": lambda x: 1 / (1 + np.exp(-np.asarray(x, np.float64))),
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "trunc": np.trunc,
    "abs": np.abs,
    "fma": lambda a, b, c: np.float64(a) * np.float64(b) + np.float64(c),
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
}


def _each(function: Callable[[int], int]) -> Function:
    def apply(x: Value) -> Value:
        if isinstance(x, int):
            return function(x)
        return np.array([function(int(v)) for v in x], np.int32)

    return apply


def call(name: str, of: DType) -> Function:
    """Give an intrinsic on arguments of a dtype."""
    if name in dots.NAMES:
        return dots.reference(name)
    mask = (1 << of.bits) - 1
    if name == "popcount":
        return _each(lambda x: (x & mask).bit_count())
    if name == "clz":
        return _each(lambda x: of.bits - (x & mask).bit_length())
    if name == "abs" and not of.is_float:
        wrap = wrapper(of)
        return np.abs if of.lanes > 1 else lambda x: wrap(abs(x))
    function = _FLOAT_CALLS[name]
    if of.is_bfloat:
        plain = function
        if name.startswith("is"):
            return lambda x: plain(_single(x))
        return _rounded(plain)
    if name.startswith("is"):
        return function
    # float16 is computed in float32, as everywhere, and every result is rounded to its dtype.
    to = numpy_dtype(of).type
    if of.lanes > 1:
        return lambda *xs: np.asarray(function(*xs)).astype(to)
    return lambda *xs: to(function(*xs))
