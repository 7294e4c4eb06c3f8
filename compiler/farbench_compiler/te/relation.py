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
