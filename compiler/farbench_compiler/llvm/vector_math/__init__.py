"""Mathematical functions as polynomials, at most 4 ulp off, on scalars and vectors alike.

Each is an internal function of the module, one for a dtype and a number of lanes, so that a
schedule that unrolls compiles it once; LLVM inlines what is called once.
"""

from __future__ import annotations

from collections.abc import Callable

from farbench_compiler.ir.dtypes import DType
from farbench_compiler.llvm.code import Code
from farbench_compiler.llvm.types import mangled, value_type
from farbench_compiler.llvm.vector_math import (
    exponential,
    hyperbolic,
    inverse,
    inverse_hyperbolic,
    rounding,
    trigonometric,
)
from farbench_compiler.llvm.vector_math.hypotenuse import hypot
from farbench_compiler.llvm.vector_math.power import power
from farbench_compiler.llvm.vector_math.remainder import fmod
from farbench_compiler.llvm.vector_math.value import Value

_UNARY: dict[str, Callable[[Value], Value]] = {
    "expm1": hyperbolic.expm1,
    "sinh": hyperbolic.sinh,
    "cosh": hyperbolic.cosh,
    "erf": hyperbolic.erf,
    "atan": inverse.atan,
    "asin": inverse.asin,
    "acos": inverse.acos,
    "log1p": inverse_hyperbolic.log1p,
    "asinh": inverse_hyperbolic.asinh,
    "acosh": inverse_hyperbolic.acosh,
    "atanh": inverse_hyperbolic.atanh,
}
_TRIGONOMETRIC: dict[str, Callable[[Value], Value]] = {
    "sin": trigonometric.sin,
    "cos": trigonometric.cos,
    "tan": trigonometric.tan,
}
_BINARY: dict[str, Callable[[Value, Value], Value]] = {
    "pow": power,
    "atan2": inverse.atan2,
    "fmod": fmod,
    "hypot": hypot,
}
_NAMES = exponential.NAMES | _UNARY.keys() | _TRIGONOMETRIC.keys() | _BINARY.keys()


def writes(name: str, features: frozenset[str]) -> bool:
    """Tell whether a function on float32 and float64 is written here for a target."""
    return name in _NAMES or (name in rounding.ROUNDINGS and rounding.lacks(features))


def call(code: Code, name: str, args: list[str], of: DType) -> str:
    """Write a call of a function, which is defined when it is first called."""
    if name in exponential.NAMES:
        return exponential.call(code, name, args[0], of)
    symbol, kind = f"fbm.{name}.{mangled(of)}", value_type(of)
    if code.module.first_use(symbol):
        _define(Code(code.module), symbol, name, of)
    given = ", ".join(f"{kind} {arg}" for arg in args)
    return code.value(f"call fastcc {kind} @{symbol}({given})")


def _define(code: Code, symbol: str, name: str, of: DType) -> None:
    x, y = Value(code, "%x", of), Value(code, "%y", of)
    kind = value_type(of)
    given = f"{kind} %x"
    if name in _UNARY:
        result = _UNARY[name](x)
    elif name in rounding.ROUNDINGS:
        result = rounding.ROUNDINGS[name](x)
    elif name in _TRIGONOMETRIC:
        result = trigonometric.with_huge(name, _TRIGONOMETRIC[name], x)
    else:
        given += f", {kind} %y"
        result = _BINARY[name](x, y)
    code.emit(f"ret {kind} {result.text}")
    code.finish(f"define internal fastcc {kind} @{symbol}({given}) nounwind memory(none)")


__all__ = ["call", "writes"]
