"""Write the prefetches that a loop asks for: one for each cache line that a later step reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir.expr import Expr, Load, Var, binary, const
from farbench_compiler.ir.simplify import simplify
from farbench_compiler.ir.stmt import For, Prefetch, Stmt
from farbench_compiler.ir.visit import substitute
from farbench_compiler.lower.memory import Memory
from farbench_compiler.lower.nest import Binding, Nest
from farbench_compiler.lower.placement import Placement
from farbench_compiler.lower.region import Part, clamp, span_of, union
from farbench_compiler.lower.variables import Variables
from farbench_compiler.te.lookahead import Lookahead
from farbench_compiler.te.stage import Stage
from farbench_compiler.te.tensor import Tensor, reads

LINE_BYTES = 64  # of the caches of every target class


@dataclass(frozen=True)
class Lookaheads:
    """Knows the loops of all stages, and so what each reads."""

    placement: Placement
    nests: Mapping[Stage, Nest]
    memory: Mapping[Tensor, Memory]
    variables: Variables

    def at(self, nest: Nest, level: int) -> Iterator[Stmt]:
        """Give the prefetches for the loop at a level, to stand at the begin of its body."""
        loop = nest.loops[level]
        for asked in nest.stage.lookaheads:
            if asked.axis is not loop.axis:
                continue
            if loop.kind == "vectorized":
                raise _error(nest.stage, asked, "is vectorized; prefetch at a loop around it")
            self._check_outside(nest, level, asked)
            parts = self._parts(nest, level, asked)
            if loop.var is not None:  # else there is no later step
                ahead = {loop.var: loop.var + asked.offset}
                yield self._lines(asked.tensor, [
                    Part(substitute(p.begin, ahead), p.extent) for p in parts
                ])  # fmt: skip

    def _check_outside(self, nest: Nest, level: int, asked: Lookahead) -> None:
        """Raise ScheduleError where the tensor is made in the loop itself."""
        for stage, op in self.placement.ops.items():
            if asked.tensor in op.outputs:
                inside = nest.stage.leaf_iter_vars[level:]
                for of, axis in self.placement.path(stage):
                    if of is nest.stage and any(axis is iv for iv in inside):
                        raise _error(
                            nest.stage, asked, f"holds stage {stage.name}, which makes "
                            f"{asked.tensor.name} anew in each step; prefetch what that reads",
                        )  # fmt: skip

    def _parts(self, nest: Nest, level: int, asked: Lookahead) -> list[Part]:
        """Give the part of the tensor that one step reads, in variables of the loops around."""
        around = (nests.variables(place) for nests, place in self._around(nest.stage))
        fixed = frozenset((*nest.variables(level), *(v for some in around for v in some)))
        # What is bound inside the loop from its variable moves with it.
        bound = [b for b in reversed(nest.bindings) if b.level == level]
        found = [
            [span_of(self._unbound(substitute(index, of.values), bound), fixed, self.variables)
             for index in load.indices]
            for of, load in self._reads(nest, level, asked.tensor)
        ]  # fmt: skip
        if not found:
            raise _error(nest.stage, asked, f"has no reads of {asked.tensor.name} inside")
        parts = []
        for dim, size in enumerate(asked.tensor.shape):
            spans = [spans[dim] for spans in found]
            known = [span for span in spans if span is not None]
            if len(known) < len(spans):
                raise _error(
                    nest.stage, asked, f"reads {asked.tensor.name} where data says, which is not "
                    "known ahead",
                )  # fmt: skip
            parts.append(clamp(union(known, self.variables), size, self.variables))
        return parts

    @staticmethod
    def _unbound(index: Expr, bound: Iterable[Binding]) -> Expr:
        for b in bound:
            index = substitute(index, {b.var: b.value})
        return index

    def _around(self, stage: Stage) -> Iterator[tuple[Nest, int]]:
        for of, axis in self.placement.path(stage):
            place = of.leaf_index(axis)
            if place is not None:
                yield self.nests[of], place

    def _reads(self, nest: Nest, level: int, tensor: Tensor) -> Iterator[tuple[Nest, Load]]:
        """Find the reads of a tensor in a loop, those of stages attached inside it too."""
        for load in reads(*nest.op.body):
            if load.buffer is tensor:
                yield nest, load
        for loop in nest.loops[level:]:
            for stage in self.placement.attached(nest.stage, loop.axis):
                yield from self._reads(self.nests[stage], 0, tensor)

    def _lines(self, tensor: Tensor, parts: list[Part]) -> Stmt:
        """Run over the cache lines of a part, from row to row."""
        memory = self.memory[tensor]
        line = max(1, LINE_BYTES // tensor.dtype.nbytes)
        last = memory.order[-1] if memory.order else None
        at: list[Expr] = []
        loops: list[tuple[Var, Expr]] = []
        for dim, part in enumerate(parts):
            step = line if dim == last else 1
            count = simplify(binary("floordiv", part.extent + step - 1, step))
            var = Var(f"line{dim}" if dim == last else f"row{dim}")
            loops.append((var, count))
            at.append(part.begin + var * step)
        place = tuple(self.variables.simplify(i) for i in memory.place(at))
        body: Stmt = Prefetch(memory.buffer, place)
        for dim in reversed(memory.order):
            var, count = loops[dim]
            body = For(var, const(0), count, "serial", body)
        return body


def _error(stage: Stage, asked: Lookahead, why: str) -> ScheduleError:
    return ScheduleError(f"prefetch: axis {asked.axis.name} of stage {stage.name} {why}")
