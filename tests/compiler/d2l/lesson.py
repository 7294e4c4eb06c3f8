"""A lesson: a program that a course on tensor compilers teaches, and the same in numpy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from farbench import te

Array = NDArray[Any]
Made = tuple[te.Schedule, list[te.Tensor | te.Var]]


@dataclass(frozen=True)
class Lesson:
    """A program: its schedule and arguments, the shapes of its inputs, and the same in numpy.

    `sizes` are the values of symbolic sizes and parameters, in the order of the call's slots.
    """

    name: str
    build: Callable[[], Made]
    shapes: Sequence[tuple[int, ...]]
    reference: Callable[..., Array]
    sizes: Sequence[int] = ()
    dtype: str = "float32"

    def __str__(self) -> str:
        return self.name
