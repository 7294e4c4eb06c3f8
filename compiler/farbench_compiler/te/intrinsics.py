"""Functions on single values: the intrinsics of the loop IR, choices and integer divisions."""

from __future__ import annotations

from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir import expr as ir
from farbench_compiler.ir.dtypes import BOOL, INT32
from farbench_compiler.ir.expr import Call, Expr, ExprLike, IfThenElse, Select, as_expr
from farbench_compiler.te.broadcast import lifted


def _float(name: str, value: ExprLike) -> Expr:
    """Call a function that floats have; an integer constant counts as float32."""
    x = as_expr(value)
    if not isinstance(value, Expr):
        x = as_expr(float(x.value)) if isinstance(x, ir.IntImm) else x
    if not x.dtype.is_float:
        raise ScheduleError(f"{name} needs a float, got {x.dtype}; use astype")
    return Call(name, (x,), x.dtype)


def _two_floats(name: str, x: ExprLike, y: ExprLike) -> Expr:
    a, b = ir.unify(x, y)
    if not a.dtype.is_float:
        shown = "power" if name == "pow" else name
        raise ScheduleError(f"{shown} needs floats, got {a.dtype}; use astype")
    return Call(name, (a, b), a.dtype)


def _rounding(name: str, value: ExprLike) -> Expr:
    x = as_expr(value)
    return Call(name, (x,), x.dtype) if x.dtype.is_float else x


def _classify(name: str, value: ExprLike, of_integers: bool) -> Expr:
    x = as_expr(value)
    return Call(name, (x,), BOOL) if x.dtype.is_float else ir.const(of_integers, BOOL)


def _bits(name: str, value: ExprLike) -> Expr:
    x = as_expr(value)
    if not x.dtype.is_int:
        raise ScheduleError(f"{name} needs an integer, got {x.dtype}")
    return Call(name, (x,), INT32)


@lifted
def exp(x: ExprLike) -> Expr:
    """Give e to the power of x."""
    return _float("exp", x)


@lifted
def exp2(x: ExprLike) -> Expr:
    """Give 2 to the power of x."""
    return _float("exp2", x)


@lifted
def log(x: ExprLike) -> Expr:
    """Give the natural logarithm."""
    return _float("log", x)


@lifted
def log2(x: ExprLike) -> Expr:
    """Give the logarithm to base 2."""
    return _float("log2", x)


@lifted
def log10(x: ExprLike) -> Expr:
    """Give the logarithm to base 10."""
    return _float("log10", x)


@lifted
def sqrt(x: ExprLike) -> Expr:
    """Give the square root."""
    return _float("sqrt", x)


@lifted
def rsqrt(x: ExprLike) -> Expr:
    """Give one over the square root."""
    return _float("rsqrt", x)


@lifted
def tanh(x: ExprLike) -> Expr:
    """Give the hyperbolic tangent."""
    return _float("tanh", x)


@lifted
def sinh(x: ExprLike) -> Expr:
    """Give the hyperbolic sine."""
    return _float("sinh", x)


@lifted
def cosh(x: ExprLike) -> Expr:
    """Give the hyperbolic cosine."""
    return _float("cosh", x)


@lifted
def sin(x: ExprLike) -> Expr:
    """Give the sine."""
    return _float("sin", x)


@lifted
def cos(x: ExprLike) -> Expr:
    """Give the cosine."""
    return _float("cos", x)


@lifted
def tan(x: ExprLike) -> Expr:
    """Give the tangent."""
    return _float("tan", x)


@lifted
def asin(x: ExprLike) -> Expr:
    """Give the arc sine."""
    return _float("asin", x)


@lifted
def acos(x: ExprLike) -> Expr:
    """Give the arc cosine."""
    return _float("acos", x)


@lifted
def atan(x: ExprLike) -> Expr:
    """Give the arc tangent."""
    return _float("atan", x)


@lifted
def atan2(y: ExprLike, x: ExprLike) -> Expr:
    """Give the angle of the point (x, y), from -pi to pi."""
    return _two_floats("atan2", y, x)


@lifted
def asinh(x: ExprLike) -> Expr:
    """Give the inverse hyperbolic sine."""
    return _float("asinh", x)


@lifted
def acosh(x: ExprLike) -> Expr:
    """Give the inverse hyperbolic cosine."""
    return _float("acosh", x)


@lifted
def atanh(x: ExprLike) -> Expr:
    """Give the inverse hyperbolic tangent."""
    return _float("atanh", x)


@lifted
def log1p(x: ExprLike) -> Expr:
    """Give log(1 + x), exact near 0."""
    return _float("log1p", x)


@lifted
def hypot(x: ExprLike, y: ExprLike) -> Expr:
    """Give sqrt(x * x + y * y), which does not overflow on the way."""
    return _two_floats("hypot", x, y)


@lifted
def fmod(x: ExprLike, y: ExprLike) -> Expr:
    """Give the rest of a division of floats, with the sign of x (as C's)."""
    return _two_floats("fmod", x, y)


@lifted
def copysign(x: ExprLike, y: ExprLike) -> Expr:
    """Give the size of x with the sign of y, both floats."""
    return _two_floats("copysign", x, y)


@lifted
def expm1(x: ExprLike) -> Expr:
    """Give exp(x) - 1, exact near 0."""
    return _float("expm1", x)


@lifted
def sigmoid(x: ExprLike) -> Expr:
    """Give 1 / (1 + exp(-x))."""
    return _float("sigmoid", x)


@lifted
def erf(x: ExprLike) -> Expr:
    """Give the error function."""
    return _float("erf", x)


@lifted
def floor(x: ExprLike) -> Expr:
    """Round towards minus infinity; an integer stays."""
    return _rounding("floor", x)


@lifted
def ceil(x: ExprLike) -> Expr:
    """Round towards infinity; an integer stays."""
    return _rounding("ceil", x)


@lifted
def round(x: ExprLike) -> Expr:
    """Round to the nearest integer as numpy does (halves to even); an integer stays."""
    return _rounding("round", x)


nearbyint = round


@lifted
def trunc(x: ExprLike) -> Expr:
    """Round towards zero; an integer stays."""
    return _rounding("trunc", x)


@lifted
def abs(x: ExprLike) -> Expr:
    """Give the absolute value."""
    value = as_expr(x)
    unsigned = value.dtype.is_bool or value.dtype.kind == "uint"
    return value if unsigned else Call("abs", (value,), value.dtype)


@lifted
def power(x: ExprLike, y: ExprLike) -> Expr:
    """Give x to the power of y, both floats."""
    return _two_floats("pow", x, y)


pow = power


@lifted
def fma(x: ExprLike, y: ExprLike, z: ExprLike) -> Expr:
    """Give x * y + z, rounded once."""
    a, b = ir.unify(x, y)
    a, c = ir.unify(a, z)
    b = ir.cast(a.dtype, b)
    if not a.dtype.is_float:
        raise ScheduleError(f"fma needs floats, got {a.dtype}; use astype")
    return Call("fma", (a, b, c), a.dtype)


@lifted
def isnan(x: ExprLike) -> Expr:
    """Tell whether a value is not a number."""
    return _classify("isnan", x, False)


@lifted
def isinf(x: ExprLike) -> Expr:
    """Tell whether a value is infinite."""
    return _classify("isinf", x, False)


@lifted
def isfinite(x: ExprLike) -> Expr:
    """Tell whether a value is neither infinite nor NaN."""
    return _classify("isfinite", x, True)


@lifted
def popcount(x: ExprLike) -> Expr:
    """Count the bits that are set (int32)."""
    return _bits("popcount", x)


@lifted
def clz(x: ExprLike) -> Expr:
    """Count the leading bits that are not set (int32)."""
    return _bits("clz", x)


@lifted
def if_then_else(cond: ExprLike, a: ExprLike, b: ExprLike) -> Expr:
    """Give `a` where `cond` holds, else `b`; the other side is not evaluated."""
    x, y = _sides(a, b)
    return IfThenElse(ir.as_truth(cond), x, y, x.dtype)


@lifted
def select(cond: ExprLike, a: ExprLike, b: ExprLike) -> Expr:
    """Give `a` where `cond` holds, else `b`; both sides are evaluated."""
    x, y = _sides(a, b)
    return Select(ir.as_truth(cond), x, y, x.dtype)


def _sides(a: ExprLike, b: ExprLike) -> tuple[Expr, Expr]:
    if not isinstance(a, Expr) and not isinstance(b, Expr):
        # Both plain numbers: a float on one side makes both floats.
        if isinstance(a, float) or isinstance(b, float):
            a, b = float(a), float(b)
        else:
            return ir.unify(ir.const(a, INT32), b) if not isinstance(a, bool) else ir.unify(a, b)
    return ir.unify(a, b)


@lifted
def floordiv(a: ExprLike, b: ExprLike) -> Expr:
    """Divide, rounding towards minus infinity."""
    return ir.binary("floordiv", a, b)


@lifted
def floormod(a: ExprLike, b: ExprLike) -> Expr:
    """Give the rest of `floordiv` (the sign of b)."""
    return ir.binary("floormod", a, b)


@lifted
def truncdiv(a: ExprLike, b: ExprLike) -> Expr:
    """Divide, rounding towards zero (as C does)."""
    return ir.binary("truncdiv", a, b)


@lifted
def truncmod(a: ExprLike, b: ExprLike) -> Expr:
    """Give the rest of `truncdiv` (the sign of a)."""
    return ir.binary("truncmod", a, b)


@lifted
def add(a: ExprLike, b: ExprLike) -> Expr:
    """Give a + b."""
    return ir.binary("add", a, b)


@lifted
def subtract(a: ExprLike, b: ExprLike) -> Expr:
    """Give a - b."""
    return ir.binary("sub", a, b)


@lifted
def multiply(a: ExprLike, b: ExprLike) -> Expr:
    """Give a * b."""
    return ir.binary("mul", a, b)


@lifted
def div(a: ExprLike, b: ExprLike) -> Expr:
    """Divide as `/` does: floats exactly, integers rounding towards zero."""
    return ir.divide(a, b)


indexdiv = floordiv
indexmod = floormod
