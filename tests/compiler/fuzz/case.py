"""One trial of the fuzzer: a program, a schedule, and the same results whoever computes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farbench_compiler.ir import interp
from farbench_compiler.ir.stmt import LoopFunction
from farbench_compiler.passes.checks import add_checks
from tests.compiler.llvm.jit import Run, fenced

from .programs import Program, random_program
from .schedules import lowered, random_schedule

Array = NDArray[Any]


@dataclass(frozen=True)
class Case:
    """A scheduled program, lowered."""

    program: Program
    fn: LoopFunction

    def __repr__(self) -> str:
        return f"{self.program!r}\n\n{self.fn}"

    def outputs(self) -> list[Array]:
        """Give arrays to be written, full of what no program leaves there by chance."""
        return [np.full(e.shape, 77).astype(e.dtype) for e in self.program.expected]

    def check(self, outputs: Sequence[Array]) -> None:
        """Compare with numpy, to the bit but for the sign of zero."""
        for got, expected in zip(outputs, self.program.expected, strict=True):
            np.testing.assert_array_equal(_plain(got), _plain(expected), err_msg=repr(self))

    def interpret(self, *, debug: bool) -> None:
        """Run the loops by the interpreter, also with the questions of a debug build in them."""
        outputs = self.outputs()
        sizes = self.program.sizes.values()
        fn = add_checks(self.fn) if debug else self.fn
        interp.run(fn, [*sizes, *self.program.arrays, *outputs])
        self.check(outputs)

    def compile(self, run: Run) -> None:
        """Compile the loops and run them on a machine."""
        given = (*self.program.arrays, *self.outputs())
        fences = [fenced(a.nbytes) for a in given]
        arrays = [
            block[start : start + a.nbytes].view(a.dtype).reshape(a.shape)
            for a, (block, start) in zip(given, fences, strict=True)
        ]
        for array, a in zip(arrays, given, strict=True):
            array[...] = a
        slots = [self.program.sizes[v] for v in self.fn.scalars]
        assert run(self.fn, arrays, slots) == 0
        for a, (block, start) in zip(given, fences, strict=True):
            outside = np.concatenate([block[:start], block[start + a.nbytes :]])
            assert (outside == block[0]).all(), f"written beyond its end: {self!r}"
        self.check(arrays[len(self.program.arrays) :])


def random_case(rng: Random) -> Case | None:
    """Draw a trial; None where the program has no use for what was drawn."""
    with np.errstate(all="ignore"):
        program = random_program(rng)
    fn = lowered(random_schedule(rng, program.outputs, program.inputs), program.args)
    return None if fn is None else Case(program, fn)


def _plain(array: Array) -> Array:
    return array if array.dtype.kind in "iub" else array.astype(np.float64)
