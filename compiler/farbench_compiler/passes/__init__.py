"""From the loops that lowering leaves to what machine code is emitted from, pass by pass.

flatten -> serialize nested -> hoist allocations -> vectorize -> unswitch -> unroll; in debug builds
`add checks` comes first. The verifier checks what goes in and
what comes out, and where that is illegal names the pass that broke it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from farbench_compiler.ir.stmt import LoopFunction
from farbench_compiler.ir.verify import Stage, verify
from farbench_compiler.passes.checks import add_checks
from farbench_compiler.passes.flatten import flatten
from farbench_compiler.passes.place import hoist_allocations, serialize_nested
from farbench_compiler.passes.unroll import unroll
from farbench_compiler.passes.unswitch import unswitch
from farbench_compiler.passes.vectorize import Vectorize


class VectorUnit(Protocol):
    """What passes ask of a target."""

    @property
    def vector_bits(self) -> int:
        """Bits of a vector register; 64 where there is none."""

    @property
    def features(self) -> tuple[str, ...]:
        """Features that are enabled."""


@dataclass(frozen=True, slots=True)
class Pass:
    """A named step from one legal program to another, and the stage that it leaves."""

    name: str
    run: Callable[[LoopFunction], LoopFunction]
    leaves: Stage


_MASKING = frozenset(("avx2", "avx512f", "v", "sve"))


def pipeline(target: VectorUnit, *, debug: bool = False) -> tuple[Pass, ...]:
    """List the passes for a target, in order; `debug` puts the checks before them."""
    vector_bits = target.vector_bits if target.vector_bits > 64 else 0
    masks = not _MASKING.isdisjoint(target.features)
    checks = (Pass("add checks", add_checks, "lowered"),) if debug else ()
    return (
        *checks,
        Pass("flatten", flatten, "linear"),
        Pass("serialize nested", serialize_nested, "linear"),
        Pass("hoist allocations", hoist_allocations, "linear"),
        Pass("vectorize", Vectorize(vector_bits, masks), "linear"),
        Pass("unswitch", unswitch, "linear"),
        Pass("unroll", unroll, "flat"),
    )


def run(fn: LoopFunction, target: VectorUnit, *, debug: bool = False) -> LoopFunction:
    """Run all passes; VerifyError names the one that left something illegal."""
    verify(fn, "lowered")
    steps = pipeline(target, debug=debug)
    try:
        return _through(fn, steps, check_each=False)
    except Exception:
        # Once more and slowly: a pass may stumble over what one before it broke.
        return _through(fn, steps, check_each=True)


def _through(fn: LoopFunction, steps: tuple[Pass, ...], *, check_each: bool) -> LoopFunction:
    """Run the passes; the verifier runs behind the last of them, or behind each."""
    for step in steps:
        fn = step.run(fn)
        if check_each or step is steps[-1]:
            verify(fn, step.leaves, after=step.name)
    return fn
