"""Lookaheads: what a loop brings nearer to the processor for its steps to come."""

from __future__ import annotations

from dataclasses import dataclass

from farbench_compiler.te.axis import IterVar
from farbench_compiler.te.tensor import Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Lookahead:
    """In each step of the loop `axis`: what the step `offset` further on reads of `tensor`."""

    tensor: Tensor
    axis: IterVar
    offset: int
