"""Values of a function being written, with operators: formulas read as in a book.

Additions and products may be contracted to fused multiply-adds. Steps that must be rounded one by
one say so with `exact`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from farbench_compiler.ir.dtypes import DType
from farbench_compiler.llvm.code import Code
from farbench_compiler.llvm.types import constant, value_type

Number = float | int


@dataclass(frozen=True, slots=True)
class Value:
    """A value in a register: its text, its dtype, the function it is written into."""

    code: Code
    text: str
    dtype: DType
    contract: bool = True

    def _of(self, other: Value | Number) -> str:
        return other.text if isinstance(other, Value) else constant(other, self.dtype)

    def _op(self, word: str, a: str, b: str) -> Value:
        if self.dtype.is_float:
            flags = "contract " if self.contract and word != "div" else ""
            text = f"f{word} {flags}{value_type(self.dtype)} {a}, {b}"
        else:
            text = f"{word} {value_type(self.dtype)} {a}, {b}"
        return replace(self, text=self.code.value(text), contract=True)

    def like(self, text: str) -> Value:
        """Write an instruction whose result has this dtype."""
        return replace(self, text=self.code.value(text))

    def exact(self) -> Value:
        """Give the same value; the next operation on it is not contracted."""
        return replace(self, contract=False)

    def like_text(self, text: str) -> Value:
        """Give a value of this dtype that is written already."""
        return replace(self, text=text)

    def constant(self, value: Number) -> Value:
        """Give a constant of this dtype."""
        return replace(self, text=constant(value, self.dtype))

    def __add__(self, other: Value | Number) -> Value:
        return self._op("add", self.text, self._of(other))

    def __radd__(self, other: Number) -> Value:
        return self._op("add", self._of(other), self.text)

    def __sub__(self, other: Value | Number) -> Value:
        return self._op("sub", self.text, self._of(other))

    def __rsub__(self, other: Number) -> Value:
        return self._op("sub", self._of(other), self.text)

    def __mul__(self, other: Value | Number) -> Value:
        return self._op("mul", self.text, self._of(other))

    def __rmul__(self, other: Number) -> Value:
        return self._op("mul", self._of(other), self.text)

    def __truediv__(self, other: Value | Number) -> Value:
        return self._op("div", self.text, self._of(other))

    def __rtruediv__(self, other: Number) -> Value:
        return self._op("div", self._of(other), self.text)

    def __neg__(self) -> Value:
        return self.like(f"fneg {value_type(self.dtype)} {self.text}")

    def __and__(self, other: Value | int) -> Value:
        return self._op("and", self.text, self._of(other))

    def __or__(self, other: Value | int) -> Value:
        return self._op("or", self.text, self._of(other))

    def __lshift__(self, count: int) -> Value:
        return self._op("shl", self.text, self._of(count))

    def __rshift__(self, count: int) -> Value:
        return self._op("lshr", self.text, self._of(count))

    def _compare(self, op: str, other: Value | Number) -> Value:
        word = f"fcmp {op}" if self.dtype.is_float else f"icmp {op}"
        text = f"{word} {value_type(self.dtype)} {self.text}, {self._of(other)}"
        return Value(self.code, self.code.value(text), DType("bool", 1, self.dtype.lanes))

    def less(self, other: Value | Number) -> Value:
        """Tell where this float is less (false for NaN)."""
        return self._compare("olt", other)

    def greater(self, other: Value | Number) -> Value:
        """Tell where this float is greater (false for NaN)."""
        return self._compare("ogt", other)

    def equal(self, other: Value | Number) -> Value:
        """Tell where the values are equal (false for NaN)."""
        return self._compare("oeq" if self.dtype.is_float else "eq", other)

    def unordered(self, other: Value) -> Value:
        """Tell where either float is NaN."""
        return self._compare("uno", other)

    def both(self, other: Value) -> Value:
        """Tell where this truth value and another hold."""
        return self.like(f"and {value_type(self.dtype)} {self.text}, {other.text}")

    def either(self, other: Value) -> Value:
        """Tell where this truth value or another holds."""
        return self.like(f"or {value_type(self.dtype)} {self.text}, {other.text}")

    def otherwise(self) -> Value:
        """Tell where this truth value does not hold."""
        return self.like(f"xor {value_type(self.dtype)} {self.text}, {constant(1, self.dtype)}")

    def same(self, other: Value) -> Value:
        """Tell where two truth values are alike."""
        return self.like(f"xor {value_type(self.dtype)} {self.text}, {other.text}").otherwise()

    def choose(self, a: Value | Number, b: Value) -> Value:
        """Give `a` where this truth value holds, else `b`."""
        kind = value_type(b.dtype)
        text = f"{value_type(self.dtype)} {self.text}, {kind} {b._of(a)}, {kind} {b.text}"
        return b.like(f"select {text}")

    def _intrinsic(self, name: str, *args: str) -> Value:
        return replace(self, text=self.code.intrinsic(name, self.dtype, self.text, *args))

    def magnitude(self) -> Value:
        """Give the absolute value."""
        return self._intrinsic("llvm.fabs")

    def fused(self, factor: Value, term: Value) -> Value:
        """Give this times a factor plus a term, rounded once."""
        return self._intrinsic("llvm.fma", factor.text, term.text)

    def root(self) -> Value:
        """Give the square root."""
        return self._intrinsic("llvm.sqrt")

    def with_sign(self, sign: Value) -> Value:
        """Give this size with the sign of another value."""
        return self._intrinsic("llvm.copysign", sign.text)

    def at_least(self, low: Number) -> Value:
        """Raise what is below to `low`; NaN stays."""
        return self.less(low).choose(low, self)

    def at_most(self, high: Number) -> Value:
        """Lower what is above to `high`; NaN stays."""
        return self.greater(high).choose(high, self)

    def at_least_zero(self) -> Value:
        """Raise negative integers to 0."""
        return self._intrinsic("llvm.smax", constant(0, self.dtype))

    def halved(self) -> Value:
        """Give half of an integer, rounded down."""
        return self._op("ashr", self.text, self._of(1))

    def anywhere(self) -> str:
        """Tell whether this truth value holds in any lane."""
        if self.dtype.lanes == 1:
            return self.text
        kind = value_type(self.dtype)
        name = f"llvm.vector.reduce.or.v{self.dtype.lanes}i1"
        return self.code.value(
            f"call i1 @{self.code.module.declare(name, 'i1', (kind,))}({kind} {self.text})"
        )

    def phi(self, *sources: tuple[Value, str]) -> str:
        """Write this value as what comes from each of some blocks."""
        each = ", ".join(f"[ {value.text}, %{block} ]" for value, block in sources)
        return f"{self.text} = phi {value_type(self.dtype)} {each}"

    def cast(self, word: str, to: DType) -> Value:
        """Write a conversion instruction (`bitcast`, `fpext`, ...) to a scalar dtype's lanes."""
        full = replace(to, lanes=self.dtype.lanes)
        text = f"{word} {value_type(self.dtype)} {self.text} to {value_type(full)}"
        return Value(self.code, self.code.value(text), full, self.contract)

    def widened(self) -> Value:
        """Give this float in double precision."""
        return self if self.dtype.bits == 64 else self.cast("fpext", DType("float", 64))

    def bits(self) -> Value:
        """Give the bits of a float as an integer."""
        return self.cast("bitcast", DType("int", self.dtype.bits))

    def as_float(self) -> Value:
        """Give the float that has these bits."""
        return self.cast("bitcast", DType("float", self.dtype.bits))


def polynomial(x: Value, coefficients: tuple[float, ...]) -> Value:
    """Evaluate by Horner's rule, the coefficients from the lowest power."""
    result = x.constant(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        result = result * x + c
    return result
