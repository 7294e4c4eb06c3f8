"""Data types of scalars and vectors: parsing, printing and what numpy would promote to.

A dtype is written as numpy writes it (`float32`, `int8`, `bool`), with `xN` behind it for a
vector of N lanes (`float32x8`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from farbench_compiler.errors import DTypeError

if TYPE_CHECKING:
    import numpy as np

Kind = Literal["float", "bfloat", "int", "uint", "bool"]

SCALARS: dict[str, tuple[Kind, int]] = {
    "float16": ("float", 16),
    "float32": ("float", 32),
    "float64": ("float", 64),
    "int8": ("int", 8),
    "int16": ("int", 16),
    "int32": ("int", 32),
    "int64": ("int", 64),
    "uint8": ("uint", 8),
    "uint16": ("uint", 16),
    "uint32": ("uint", 32),
    "uint64": ("uint", 64),
    "bfloat16": ("bfloat", 16),
    "bool": ("bool", 1),
}

_PATTERN = re.compile(r"([a-z]+\d*)(?:x(\d+))?")


@lru_cache(maxsize=256)
def _text_of(kind: str, bits: int, lanes: int) -> str:
    name = "bool" if kind == "bool" else f"{kind}{bits}"
    return name if lanes == 1 else f"{name}x{lanes}"


@lru_cache(maxsize=256)
def _hash_of(kind: str, bits: int, lanes: int) -> int:
    return hash(_text_of(kind, bits, lanes))  # a text that is equal must hash equally


@dataclass(frozen=True, slots=True)
class DType:
    """A scalar type, or a vector of `lanes` scalars."""

    kind: Kind
    bits: int
    lanes: int = 1

    @property
    def is_float(self) -> bool:
        """Tell whether the scalar is a floating-point number."""
        return self.kind in ("float", "bfloat")

    @property
    def is_bfloat(self) -> bool:
        """Tell whether the scalar is the upper half of a float32."""
        return self.kind == "bfloat"

    @property
    def is_int(self) -> bool:
        """Tell whether the scalar is a signed or unsigned integer (not bool)."""
        return self.kind in ("int", "uint")

    @property
    def is_bool(self) -> bool:
        """Tell whether the scalar is a truth value."""
        return self.kind == "bool"

    @property
    def nbytes(self) -> int:
        """Bytes that one scalar takes in memory (bool takes one, as in numpy)."""
        return max(1, self.bits // 8)

    @property
    def scalar(self) -> DType:
        """The same type with one lane."""
        return self if self.lanes == 1 else DType(self.kind, self.bits)

    @property
    def dtype(self) -> np.dtype[Any]:
        """What numpy takes for it in `np.zeros(3, dtype=C.dtype)`; DTypeError if it has none."""
        import numpy as np  # sizes and types alone need no numpy

        if self.is_bfloat or self.lanes > 1:
            raise DTypeError(f"numpy has no dtype {self}; convert from float32")
        return np.dtype(str(self))

    def __eq__(self, other: object) -> bool:
        """Compare with another dtype, or with how one is written."""
        if self is other:
            return True
        if isinstance(other, DType):
            same = self.bits == other.bits and self.lanes == other.lanes
            return same and self.kind == other.kind
        return str(self) == other if isinstance(other, str) else NotImplemented

    def __hash__(self) -> int:
        return _hash_of(self.kind, self.bits, self.lanes)

    def with_lanes(self, lanes: int) -> DType:
        """Give the vector of `lanes` such scalars."""
        return self if lanes == self.lanes else DType(self.kind, self.bits, lanes)

    def __str__(self) -> str:
        return _text_of(self.kind, self.bits, self.lanes)


def dtype(text: str | DType) -> DType:
    """Parse a dtype, or take numpy's for it; DTypeError names the dtypes that exist."""
    if isinstance(text, DType):
        return text
    if not isinstance(text, str):  # numpy's dtypes have a name, its scalar types are classes
        named = getattr(text, "__name__" if isinstance(text, type) else "name", None)
        if not isinstance(named, str):
            raise DTypeError(f"unknown dtype {text!r}; known: {', '.join(SCALARS)}")
        text = named
    return _parsed(text)


@lru_cache(maxsize=512)
def _parsed(text: str) -> DType:
    match = _PATTERN.fullmatch(text)
    if match is None or match[1] not in SCALARS:
        raise DTypeError(f"unknown dtype {text!r}; known: {', '.join(SCALARS)}")
    kind, bits = SCALARS[match[1]]
    return DType(kind, bits, int(match[2] or 1))


_SINGLE = DType("float", 32)


def promote(a: DType, b: DType) -> DType:
    """Give the dtype that an operation on both has (numpy's rule for arrays).

    bfloat16 beside float16 is float32; beside integers it is what float16 is there, but for 8 bits.
    """
    if a == b:
        return a
    lanes = max(a.lanes, b.lanes)
    a, b = a.scalar, b.scalar
    if a.is_bool or b.is_bool:
        wider = b if a.is_bool else a
    elif a.is_float and b.is_float:
        wider = (a if a.bits > b.bits else b) if a.bits != b.bits else _SINGLE
    elif a.is_float or b.is_float:
        flt, integer = (a, b) if a.is_float else (b, a)
        fits = flt.is_bfloat and integer.bits == 8
        wider = flt if fits else DType("float", max(flt.bits, min(64, integer.bits * 2)))
    elif a.kind == b.kind:
        wider = a if a.bits >= b.bits else b
    else:
        signed, unsigned = (a, b) if a.kind == "int" else (b, a)
        bits = max(signed.bits, unsigned.bits * 2)
        wider = DType("int", bits) if bits <= 64 else DType("float", 64)
    return wider.with_lanes(lanes)


def int_range(of: DType) -> tuple[int, int]:
    """Give the least and greatest value of an integer dtype (bool: 0 and 1)."""
    if of.is_bool:
        return 0, 1
    if of.kind == "uint":
        return 0, (1 << of.bits) - 1
    return -(1 << (of.bits - 1)), (1 << (of.bits - 1)) - 1


BOOL = dtype("bool")
INT32 = dtype("int32")
INT64 = dtype("int64")
FLOAT32 = dtype("float32")


def sum_dtype(of: DType) -> DType:
    """Give the dtype to add up in: float32 for halves, which would lose most of their digits."""
    return FLOAT32 if of.is_float and of.bits == 16 else of
