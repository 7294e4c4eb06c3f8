"""Facts of the two formats, and rounding to integers by addition alone."""

from __future__ import annotations

from dataclasses import dataclass

from farbench_compiler.llvm.vector_math.coefficients import TABLES
from farbench_compiler.llvm.vector_math.value import Value


@dataclass(frozen=True, slots=True)
class Format:
    """A binary float: its size, the bits of its fraction, the tables of its polynomials."""

    bits: int
    fraction: int

    @property
    def bias(self) -> int:
        """What is added to an exponent where it stands in the bits."""
        return (1 << (self.bits - self.fraction - 2)) - 1

    @property
    def magic(self) -> float:
        """1.5 * 2^fraction: what is added to it is rounded to an integer in its low bits."""
        return 1.5 * 2.0**self.fraction

    def table(self, name: str) -> tuple[float, ...]:
        """Give the coefficients of a polynomial."""
        return TABLES[self.bits][name]


FORMATS = {32: Format(32, 23), 64: Format(64, 52)}
# Bits of 1.5 * 2^fraction.
_MAGIC_BITS = {32: 0x4B400000, 64: 0x4338000000000000}


def format_of(x: Value) -> Format:
    """Give the format of a value, or of the float of as many bits as an integer has."""
    return FORMATS[x.dtype.bits]


def power_of_two(k: Value) -> Value:
    """Give 2^k for an integer k of as many bits as the float; it must be a normal number."""
    of = format_of(k)
    return ((k + of.bias) << of.fraction).as_float()


def nearest(x: Value) -> tuple[Value, Value]:
    """Round to the nearest integer, less than 2^(fraction - 2) in size: as float, as integer."""
    of = format_of(x)
    shifted = x + of.magic
    return shifted.exact() - of.magic, shifted.bits() - _MAGIC_BITS[of.bits]
