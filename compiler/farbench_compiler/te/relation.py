"""How a stage's loops come from its axes.

relation ::= Split(parent, outer, inner, factor | nparts)
           | Fuse(outer, inner, fused)
           | Singleton(one)
"""

from __future__ import annotations

from dataclasses import dataclass

from farbench_compiler.ir.expr import Expr
from farbench_compiler.te.axis import IterVar


@dataclass(frozen=True, slots=True)
class Split:
    """`parent` = outer * (extent of inner) + inner; `factor` fixes inner, `nparts` outer."""

    parent: IterVar
    outer: IterVar
    inner: IterVar
    factor: Expr | None
    nparts: Expr | None

    @property
    def size(self) -> Expr:
        """The factor or the number of parts, whichever was given."""
        size = self.factor if self.factor is not None else self.nparts
        assert size is not None
        return size


@dataclass(frozen=True, slots=True)
class Fuse:
    """`fused` = outer * (extent of inner) + inner."""

    outer: IterVar
    inner: IterVar
    fused: IterVar


@dataclass(frozen=True, slots=True)
class Singleton:
    """`one` has one step and comes from no axis."""

    one: IterVar


Relation = Split | Fuse | Singleton
