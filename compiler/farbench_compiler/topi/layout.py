"""Layouts: which letter each dimension of a tensor stands for, such as NCHW, NHWC or NCHW16c.

A lower case letter is the inner part of a dimension that is split in blocks; the number before it
is the block's size.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from farbench_compiler.ir.expr import Expr
from farbench_compiler.te import Tensor
from farbench_compiler.topi.arguments import refusal

Value = TypeVar("Value")
_AXIS = re.compile(r"(\d*)([A-Za-z])")


@dataclass(frozen=True, slots=True)
class Layout:
    """The letters of the dimensions in their order."""

    letters: str

    @staticmethod
    def parse(op: str, text: str, needed: str, x: Tensor | None = None) -> Layout:
        """Read a layout that has the letters `needed`, unsplit, and fits the rank of `x`."""
        letters = "".join(letter for _, letter in _AXIS.findall(text))
        if _AXIS.sub("", text) or len(set(letters)) < len(letters):
            raise refusal(op, f"layout {text!r} is none; write one such as NCHW or NCHW16c")
        missing = [a for a in needed if a not in letters or a.lower() in letters]
        if missing:
            raise refusal(op, f"layout {text!r} needs axis {missing[0]}, in one piece")
        if x is not None and x.ndim != len(letters):
            raise refusal(op, f"{x.name} has {x.ndim} dimensions, layout {text!r} {len(letters)}")
        return Layout(letters)

    @staticmethod
    def blocks(op: str, text: str) -> dict[str, int]:
        """Read the block sizes of a layout, by the upper case letters of what they part."""
        found: dict[str, int] = {}
        for size, letter in _AXIS.findall(text):
            if letter.islower() != bool(size) or size == "0":
                raise refusal(op, f"layout {text!r}: a block has a size and a small letter, as 16c")
            if size and letter.upper() not in text:
                raise refusal(op, f"layout {text!r}: {size}{letter} is a block of no dimension")
            if size:
                found[letter.upper()] = int(size)
        return found

    @property
    def spatial(self) -> str:
        """The letters beside batch and channels: those that windows move along."""
        return "".join(a for a in self.letters if a not in "NCnc")

    def places(self, letters: str) -> tuple[int, ...]:
        """Give the dimensions that letters stand for."""
        return tuple(self.letters.index(a) for a in letters)

    def named(self, values: Sequence[Value]) -> dict[str, Value]:
        """Give values, one a dimension, by their letters."""
        return dict(zip(self.letters, values, strict=True))

    def ordered(self, values: Mapping[str, Value]) -> tuple[Value, ...]:
        """Put values in the order of the dimensions."""
        return tuple(values[a] for a in self.letters)

    def read(self, x: Tensor, at: Mapping[str, Expr]) -> Expr:
        """Read the element of a tensor at places given by letter."""
        return x(*self.ordered(at))
