"""What is known of variables while a function is lowered: loops, their extents, sizes."""

from __future__ import annotations

from collections.abc import Iterable

from farbench_compiler.ir import poly
from farbench_compiler.ir.expr import Expr, Var, binary
from farbench_compiler.ir.interval import Interval
from farbench_compiler.ir.prove import Prover
from farbench_compiler.ir.simplify import simplify
from farbench_compiler.ir.visit import walk


class Variables:
    """The ranges of all variables: a size may be 0, a loop runs from 0 to its extent."""

    def __init__(self, sizes: Iterable[Var]) -> None:
        self.ranges: dict[Var, Interval] = {size: Interval(0, None) for size in sizes}
        self._extents: dict[Var, Expr] = {}

    def add_loop(self, name: str, extent: Expr) -> Var:
        """Make a loop variable."""
        var = Var(name)
        self._extents[var] = extent
        self.ranges[var] = Interval(0, self.simplify(extent - 1))
        return var

    def is_loop(self, var: Var) -> bool:
        """Tell whether a variable belongs to a loop."""
        return var in self._extents

    def extent(self, var: Var) -> Expr:
        """Give the extent of a loop."""
        return self._extents[var]

    def varies(self, e: Expr) -> bool:
        """Tell whether an expression holds a loop variable."""
        return any(isinstance(n, Var) and n in self._extents for n in walk(e))

    def simplify(self, e: Expr) -> Expr:
        """Simplify under all that is known."""
        return simplify(e, self.ranges)

    def proves(self, e: Expr) -> bool:
        """Prove that an integer expression is not negative; False says nothing."""
        return Prover(self.ranges).non_negative(poly.of(self.simplify(e)))

    def least(self, a: Expr, b: Expr) -> Expr:
        """Give the lesser of two values, as an operand where that is provable."""
        if self.proves(b - a):
            return a
        return b if self.proves(a - b) else self.simplify(binary("min", a, b))

    def greatest(self, a: Expr, b: Expr) -> Expr:
        """Give the greater of two values, as an operand where that is provable."""
        if self.proves(a - b):
            return a
        return b if self.proves(b - a) else self.simplify(binary("max", a, b))
