"""Exponentials and logarithms as polynomials, alike for one value and for every lane of a vector.

Each is a function of the module, written once for each type. All reduce their argument to a short
range first: exp by x = n ln 2 + r with |r| <= ln 2 / 2, log by x = 2^e m with m near 1. On these
ranges exp is a polynomial of degree 6 (float32) and 11 (float64) of least error, log the Taylor
series in odd powers of s = (m - 1) / (m + 1), where |s| <= 0.172, to the 9th and 21st.
Errors stay within 4 units in the last place; see tests/compiler/llvm/test_vector_math.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from farbench_compiler.ir.dtypes import DType
from farbench_compiler.llvm.code import Code, Module
from farbench_compiler.llvm.types import constant, mangled, value_type
from farbench_compiler.llvm.vector_math.formats import FORMATS, Format


@dataclass(frozen=True, slots=True)
class _Limits:
    """How far the functions of a format go."""

    log_power: int  # the last odd power of the series of log
    least: float  # exp of less is 0
    most: float  # exp of more is infinite
    one: float  # tanh of this and more is 1


_LIMITS = {
    32: _Limits(9, -105.0, 89.0, 10.0),
    64: _Limits(21, -747.0, 710.0, 20.0),
}


class _Writer:
    """Writes arithmetic on values of one float dtype."""

    def __init__(self, module: Module, of: DType) -> None:
        self.code = Code(module)
        self.of = of
        self.format = FORMATS[of.bits]
        self.limits = _LIMITS[of.bits]
        self.kind = value_type(of)
        self.int_dtype = DType("int", of.bits, of.lanes)
        self.int_kind = value_type(self.int_dtype)
        self._truth = value_type(DType("bool", 1, of.lanes))

    def number(self, value: float) -> str:
        """Give a constant."""
        return constant(value, self.of)

    def integer(self, value: int) -> str:
        """Give a constant of as many bits."""
        return constant(value, self.int_dtype)

    def op(self, name: str, a: str, b: str) -> str:
        """Write fadd, fsub, fmul or fdiv."""
        return self.code.value(f"{name} {self.kind} {a}, {b}")

    def int_op(self, name: str, a: str, b: str) -> str:
        """Write an operation on integers of as many bits."""
        return self.code.value(f"{name} {self.int_kind} {a}, {b}")

    def fma(self, a: str, b: str, c: str) -> str:
        """Write a * b + c, fused where the target can."""
        return self.code.intrinsic("llvm.fmuladd", self.of, a, b, c)

    def bits(self, a: str) -> str:
        """Take the bits of a float."""
        return self.code.value(f"bitcast {self.kind} {a} to {self.int_kind}")

    def from_bits(self, a: str) -> str:
        """Make a float of its bits."""
        return self.code.value(f"bitcast {self.int_kind} {a} to {self.kind}")

    def test(self, op: str, a: str, b: str) -> str:
        """Compare two floats."""
        return self.code.value(f"fcmp {op} {self.kind} {a}, {b}")

    def choose(self, cond: str, a: str, b: str) -> str:
        """Give a where the condition holds, else b."""
        return self.code.value(f"select {self._truth} {cond}, {self.kind} {a}, {self.kind} {b}")

    def polynomial(self, x: str, coefficients: list[float]) -> str:
        """Write a polynomial, lowest coefficient first, by Horner's rule."""
        *rest, last = coefficients
        value = self.number(last)
        for coefficient in reversed(rest):
            value = self.fma(value, x, self.number(coefficient))
        return value

    def finish(self, name: str, args: str, result: str) -> None:
        """End the function."""
        self.code.emit(f"ret {self.kind} {result}")
        self.code.finish(f"define internal {self.kind} @{name}({args}) nounwind")


def _split(value: float, format_: Format, spare: int) -> tuple[float, float]:
    """Part a constant into one whose last `spare` bits are 0, and the rest."""
    keep = 2.0 ** (format_.fraction - spare - math.frexp(value)[1])
    high = round(value * keep) / keep
    return high, value - high


# What the constants are beyond their doubles.
_LN2_LOW = 2.3190468138462996e-17
_LOG10_2_LOW = -2.8037281277851704e-18


def _ln2(w: _Writer) -> tuple[float, float]:
    high, low = _split(math.log(2), w.format, 12 if w.of.bits == 64 else 9)
    return high, low + _LN2_LOW


def _reduced(w: _Writer, x: str) -> tuple[str, str, str]:
    """Give (n, n as an integer, r) with x = n ln 2 + r."""
    magic = w.number(w.format.magic)
    shifted = w.fma(x, w.number(1 / math.log(2)), magic)
    n = w.op("fsub", shifted, magic)
    high, low = _ln2(w)
    r = w.fma(n, w.number(-high), x)
    r = w.fma(n, w.number(-low), r)
    return n, w.int_op("sub", w.bits(shifted), w.bits(magic)), r


def _power_of_two(w: _Writer, n: str) -> str:
    """Give 2^n for an n whose power is a normal number."""
    biased = w.int_op("add", n, w.integer(w.format.bias))
    return w.from_bits(w.int_op("shl", biased, w.integer(w.format.fraction)))


def _scaled(w: _Writer, value: str, n: str, whole: str) -> str:
    """Give value * 2^n in two steps, so that subnormal results and the largest come out."""
    if "avx512f" in w.code.module.features and w.of.lanes * w.of.bits % 512 == 0:
        return _scaled_at_once(w, value, n)
    half = w.int_op("ashr", whole, w.integer(1))
    rest = w.int_op("sub", whole, half)
    once = w.op("fmul", value, _power_of_two(w, half))
    return w.op("fmul", once, _power_of_two(w, rest))


def _scaled_at_once(w: _Writer, value: str, n: str) -> str:
    """Give value * 2^n by AVX-512's instruction, one register of 512 bits after the other."""
    lanes = 512 // w.of.bits
    kind, mask = value_type(DType("float", w.of.bits, lanes)), f"i{lanes}"
    name = f"llvm.x86.avx512.mask.scalef.{'ps' if w.of.bits == 32 else 'pd'}.512"
    w.code.module.declare(name, kind, (kind, kind, kind, mask, "i32"))

    def picked(vector: str, lane: int, count: int, total: int) -> str:
        wanted = ", ".join(f"i32 {i}" for i in range(lane, lane + count))
        of = value_type(DType("float", w.of.bits, total))
        return w.code.value(f"shufflevector {of} {vector}, {of} poison, <{count} x i32> <{wanted}>")

    result = ""
    for lane in range(0, w.of.lanes, lanes):
        a, b = (picked(vector, lane, lanes, w.of.lanes) for vector in (value, n))
        given = f"{kind} {a}, {kind} {b}, {kind} zeroinitializer, {mask} -1, i32 4"
        part = w.code.value(f"call {kind} @{name}({given})")
        result = _joined(w, result, part, lane, lanes)
    return result


def _joined(w: _Writer, whole: str, part: str, lane: int, lanes: int) -> str:
    """Put a register behind the `lane` elements that stand already."""
    if not whole:
        return part
    # A shuffle takes two vectors of one length: lengthen the part first.
    count = lane + lanes
    kinds = [value_type(DType("float", w.of.bits, n)) for n in (lane, lanes)]
    wide = ", ".join(f"i32 {min(i, lanes - 1)}" for i in range(lane))
    longer = part
    if lane != lanes:
        longer = w.code.value(
            f"shufflevector {kinds[1]} {part}, {kinds[1]} poison, <{lane} x i32> <{wide}>"
        )
    order = ", ".join(f"i32 {i}" for i in range(count))
    return w.code.value(
        f"shufflevector {kinds[0]} {whole}, {kinds[0]} {longer}, <{count} x i32> <{order}>"
    )


def _clamped(w: _Writer, x: str, low: float, high: float) -> str:
    """Bring x between two numbers; NaN stays."""
    x = w.choose(w.test("olt", x, w.number(low)), w.number(low), x)
    return w.choose(w.test("ogt", x, w.number(high)), w.number(high), x)


def _expm1_series(w: _Writer, r: str) -> str:
    """Give exp(r) - 1 = r + r^2 (1/2 + r/6 + ...) for a reduced r."""
    terms = list(w.format.table("EXP"))
    square = w.op("fmul", r, r)
    return w.fma(square, w.polynomial(r, terms), r)


def _exp(w: _Writer, x: str) -> str:
    n, whole, r = _reduced(w, _clamped(w, x, w.limits.least, w.limits.most))
    return _scaled(w, w.op("fadd", _expm1_series(w, r), w.number(1.0)), n, whole)


def _half_exp(w: _Writer, x: str) -> str:
    """Give exp(x) / 2, which is finite a little further than exp."""
    n, whole, r = _reduced(w, _clamped(w, x, w.limits.least, w.limits.most + 1.0))
    half = w.number(0.5)
    return _scaled(w, w.fma(_expm1_series(w, r), half, half), n, whole)


def _expm1_near(w: _Writer, x: str) -> str:
    """Give exp(x) - 1 as 2^n (exp(r) - 1) + (2^n - 1), for an x whose 2^n is a normal number."""
    _, n, r = _reduced(w, x)
    scale = _power_of_two(w, n)
    return w.fma(scale, _expm1_series(w, r), w.op("fsub", scale, w.number(1.0)))


def _exp2(w: _Writer, x: str) -> str:
    log2e = 1 / math.log(2)
    x = _clamped(w, x, w.limits.least * log2e, w.limits.most * log2e)
    magic = w.number(w.format.magic)
    shifted = w.op("fadd", x, magic)
    n = w.op("fsub", shifted, magic)
    r = w.op("fsub", x, n)
    series = _expm1_series(w, w.op("fmul", r, w.number(math.log(2))))
    whole = w.int_op("sub", w.bits(shifted), w.bits(magic))
    return _scaled(w, w.op("fadd", series, w.number(1.0)), n, whole)


def _tanh(w: _Writer, x: str) -> str:
    """Write tanh |x| = m / (m + 2) with m = exp(2 |x|) - 1."""
    size = w.code.intrinsic("llvm.fabs", w.of, x)
    size = w.choose(w.test("ogt", size, w.number(w.limits.one)), w.number(w.limits.one), size)
    m = _expm1_near(w, w.op("fadd", size, size))
    ratio = w.op("fdiv", m, w.op("fadd", m, w.number(2.0)))
    return w.code.intrinsic("llvm.copysign", w.of, ratio, x)


def _sigmoid(w: _Writer, x: str) -> str:
    """1 / (1 + e) or e / (1 + e) with e = exp(-|x|), which never overflows."""
    size = w.code.intrinsic("llvm.fabs", w.of, x)
    e = _exp(w, w.code.value(f"fneg {w.kind} {size}"))
    one = w.number(1.0)
    top = w.choose(w.test("oge", x, w.number(0.0)), one, e)
    return w.op("fdiv", top, w.op("fadd", one, e))


def _parted(w: _Writer, x: str) -> tuple[str, str]:
    """Give (e, log m) with x = 2^e m, m between the roots of 1/2 and 2; x is positive."""
    f = w.format
    tiny = w.test("olt", x, w.number(2.0 ** (1 - f.bias)))
    shift = f.fraction + 1
    grown = w.op("fmul", x, w.number(2.0**shift))
    bits = w.bits(w.choose(tiny, grown, x))
    root = w.bits(w.number(math.sqrt(0.5)))
    exponent = w.int_op("ashr", w.int_op("sub", bits, root), w.integer(f.fraction))
    m = w.from_bits(w.int_op("sub", bits, w.int_op("shl", exponent, w.integer(f.fraction))))
    e = w.code.value(f"sitofp {w.int_kind} {exponent} to {w.kind}")
    e = w.choose(tiny, w.op("fsub", e, w.number(float(shift))), e)
    part = w.op("fsub", m, w.number(1.0))
    s = w.op("fdiv", part, w.op("fadd", m, w.number(1.0)))
    square = w.op("fmul", s, s)
    terms = [float(Fraction(2, k)) for k in range(3, w.limits.log_power + 1, 2)]
    tail = w.op("fmul", square, w.polynomial(square, terms))
    half = w.op("fmul", w.op("fmul", part, part), w.number(0.5))
    # part - (half - s (half + tail)): the leading term is exact.
    inner = w.op("fmul", s, w.op("fadd", half, tail))
    return e, w.op("fsub", part, w.op("fsub", half, inner))


def _log_of(factor: Callable[[_Writer], tuple[float, float, float]]) -> Callable[..., str]:
    """Write a logarithm from e times (high, low) and a factor of log m."""

    def write(w: _Writer, x: str) -> str:
        high, low, scale = factor(w)
        e, log_m = _parted(w, x)
        if scale != 1.0:
            log_m = w.op("fmul", log_m, w.number(scale))
        value = w.fma(e, w.number(low), log_m) if low else log_m
        value = w.fma(e, w.number(high), value)
        zero, infinity = w.number(0.0), w.number(math.inf)
        value = w.choose(w.test("oeq", x, zero), w.number(-math.inf), value)
        value = w.choose(w.test("oeq", x, infinity), infinity, value)
        return w.choose(w.test("ult", x, zero), w.number(math.nan), value)

    return write


def _ln_factors(w: _Writer) -> tuple[float, float, float]:
    return (*_ln2(w), 1.0)


def _log10_factors(w: _Writer) -> tuple[float, float, float]:
    high, low = _split(math.log10(2), w.format, 12 if w.of.bits == 64 else 9)
    return high, low + _LOG10_2_LOW, 1 / math.log(10)


_WRITERS: dict[str, Callable[[_Writer, str], str]] = {
    "exp": _exp,
    "exp2": _exp2,
    "expm1_near": _expm1_near,
    "half_exp": _half_exp,
    "tanh": _tanh,
    "sigmoid": _sigmoid,
    "log": _log_of(_ln_factors),
    "log2": _log_of(lambda w: (1.0, 0.0, 1 / math.log(2))),
    "log10": _log_of(_log10_factors),
}
NAMES = frozenset(_WRITERS)


def call(code: Code, name: str, arg: str, of: DType) -> str:
    """Write a call of a function of `NAMES` on float32 or float64, defining it where needed."""
    symbol, kind = f"fbm.{name}.{mangled(of)}", value_type(of)
    if code.module.first_use(symbol):
        writer = _Writer(code.module, of)
        writer.finish(symbol, f"{kind} %x", _WRITERS[name](writer, "%x"))
    return code.value(f"call {kind} @{symbol}({kind} {arg})")
