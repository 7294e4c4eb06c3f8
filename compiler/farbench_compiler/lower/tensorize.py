"""Put a declared intrinsic in place of a stage's inner loops, where it computes the same.

The loops inside the tensorised one must cover what the intrinsic's axes do, and the expressions
must be alike; then each of its tensors is a block of one of the stage's, and the declared body is
written over the memory of those blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir.expr import (
    Binary,
    Buffer,
    Expr,
    FloatImm,
    IntImm,
    Load,
    Ramp,
    Var,
)
from farbench_compiler.ir.interval import Interval
from farbench_compiler.ir.printer import to_text
from farbench_compiler.ir.simplify import simplify
from farbench_compiler.ir.stmt import Seq, Stmt, Store
from farbench_compiler.ir.structural import same
from farbench_compiler.ir.visit import expr_children, free_vars, map_children, substitute
from farbench_compiler.lower.memory import Memory
from farbench_compiler.lower.nest import Nest
from farbench_compiler.lower.region import constant, span_of
from farbench_compiler.lower.variables import Variables
from farbench_compiler.te.axis import IterVar
from farbench_compiler.te.reduction import Reduce
from farbench_compiler.te.tensor import Tensor
from farbench_compiler.te.tensorize import TensorIntrin
from farbench_compiler.tir.buffer import DeclaredBuffer


@dataclass(frozen=True, slots=True)
class Piece:
    """What stands in place of the loops from `level` on: each step, and how sums start."""

    level: int
    step: Stmt
    reset: Stmt


def piece_of(nest: Nest, memory: Mapping[Tensor, Memory], variables: Variables) -> Piece | None:
    """Match the intrinsic that a stage asks for; ScheduleError says what differs."""
    asked = nest.stage.tensorized
    return None if asked is None else _Match(nest, asked[0], asked[1], variables).piece(memory)


@dataclass(frozen=True, slots=True)
class _Block:
    """A tensor of the stage that one of the intrinsic's is a block of, from `begin` on."""

    tensor: Tensor
    begin: tuple[Expr, ...]


class _Match:
    def __init__(
        self, nest: Nest, axis: IterVar, intrin: TensorIntrin, variables: Variables
    ) -> None:
        self.nest, self.intrin, self.variables = nest, intrin, variables
        self.what = f"tensorize: intrinsic {intrin.name} on stage {nest.stage.name}"
        level = nest.stage.leaf_index(axis)
        if level is None:
            raise self.error(f"axis {axis.name} {nest.stage.fate(axis)}")
        self.level = level
        self.blocks: dict[Tensor, _Block] = {}
        self.axes = (*intrin.op.axis, *intrin.op.reduce_axis)
        self.ranges: dict[Var, Interval] = dict(variables.ranges)
        self.ranges.update((axis, Interval(0, _extent(axis) - 1)) for axis in self.axes)

    def error(self, why: str) -> ScheduleError:
        """Make the error that says which intrinsic does not fit, and why."""
        return ScheduleError(f"{self.what}: {why}")

    def piece(self, memory: Mapping[Tensor, Memory]) -> Piece:
        """Check everything and write the statements."""
        self._check_loops()
        values = self._axis_values()
        for (made, wanted), t, u in zip(
            zip(self.nest.op.body, self.intrin.op.body, strict=False),
            self.nest.op.outputs,
            self.intrin.op.outputs,
            strict=True,
        ):
            self._expr(substitute(made, values), wanted)
            origin: dict[Var, Expr] = {axis: IntImm(0) for axis in self.axes}
            begin = tuple(substitute(values[axis], origin) for axis in self.nest.op.axis)
            self.blocks[u] = _Block(t, tuple(self._simple(b) for b in begin))
        writer = _Writer(self, memory)
        outer = self.nest.first_reduce < self.level
        step, reset = self._chosen(outer)
        return Piece(self.level, writer.stmt(step), writer.stmt(reset) if outer else _NOTHING)

    def _chosen(self, outer: bool) -> tuple[Stmt, Stmt]:
        """Choose the statements of a step and of the start."""
        intrin = self.intrin
        if intrin.op.reduction is None or not outer:
            if intrin.body is not None:
                return intrin.body, _NOTHING
            if intrin.reset is not None and intrin.update is not None:
                return Seq((intrin.reset, intrin.update)), _NOTHING
            raise self.error("all reduce loops are inside, so the intrinsic needs a body")
        if intrin.reset is None or intrin.update is None:
            loop = self.nest.loops[self.nest.first_reduce].axis.name
            raise self.error(
                f"the reduce loop {loop} is outside, so the intrinsic needs a reset and an update"
            )
        return intrin.update, intrin.reset

    def _check_loops(self) -> None:
        for loop in self.nest.loops[self.level :]:
            if loop.kind != "serial":
                raise self.error(f"axis {loop.axis.name} inside is {loop.kind}; leave it serial")
        if any(binding.level >= self.level for binding in self.nest.bindings):
            raise self.error("a fused loop is inside whose parts do not divide it; split instead")
        for guard in self.nest.guards:
            if guard.level >= self.level:
                raise self.error(
                    f"the loops reach beyond the end ({to_text(guard.cond)}); choose a factor that "
                    "divides the extent, or pad the tensors"
                )

    def _axis_values(self) -> dict[Var, Expr]:
        """Give the stage's axes as where the block begins plus the intrinsic's axes."""
        inner = {loop.var: loop for loop in self.nest.loops[self.level :] if loop.var is not None}
        values: dict[Var, Expr] = {}
        steps = 1
        op, declared = self.nest.op, self.intrin.op
        for kind, own, theirs in (
            ("data", op.axis, declared.axis),
            ("reduce", op.reduce_axis, declared.reduce_axis),
        ):
            ahead = len(own) - len(theirs)
            if ahead < 0:
                raise self.error(
                    f"{len(theirs)} {kind} axes are declared, the stage has {len(own)}"
                )
            for at, axis in enumerate(own):
                begin, extent = self._span(axis, frozenset(inner))
                match = theirs[at - ahead] if at >= ahead else None
                wanted = 1 if match is None else _extent(match)
                if extent != wanted:
                    name = "no axis" if match is None else f"axis {match.name}"
                    raise self.error(
                        f"the loops inside cover {extent} of {kind} axis {axis.name}, "
                        f"{name} of the intrinsic {wanted}"
                    )
                values[axis] = begin if match is None else begin + match
                steps *= extent
        run = 1
        for loop in inner.values():
            run *= constant(loop.extent) or 0
        if run != steps:
            raise self.error(f"the loops inside take {run} steps, the intrinsic covers {steps}")
        return values

    def _span(self, axis: IterVar, inner: frozenset[Var]) -> tuple[Expr, int]:
        value = self.nest.values[axis]
        origin: dict[Var, Expr] = {var: IntImm(0) for var in inner}
        begin = self.variables.simplify(substitute(value, origin))
        rest = self.variables.simplify(value - begin)
        span = span_of(rest, frozenset(), self.variables)
        low = None if span is None else constant(span.low)
        high = None if span is None else constant(self.variables.simplify(span.high))
        if low != 0 or high is None or not free_vars(rest) <= inner:
            raise self.error(f"what the loops inside cover of axis {axis.name} is not constant")
        return begin, high + 1

    def _simple(self, e: Expr) -> Expr:
        return simplify(e, self.ranges)

    def _differs(self, made: Expr, wanted: Expr) -> ScheduleError:
        return self.error(f"it computes {to_text(wanted)} where the stage has {to_text(made)}")

    def _expr(self, made: Expr, wanted: Expr) -> None:
        """Raise ScheduleError unless two expressions are alike, tensors apart."""
        if isinstance(made, Reduce) and isinstance(wanted, Reduce):
            self._reduce(made, wanted)
        elif isinstance(made, Load) and isinstance(wanted, Load):
            self._load(made, wanted)
        elif isinstance(wanted, (Var, IntImm, FloatImm)) or type(made) is not type(wanted):
            if made.dtype != wanted.dtype or not same(self._simple(made), self._simple(wanted)):
                raise self._differs(made, wanted)
        else:
            self._children(made, wanted)

    def _children(self, made: Expr, wanted: Expr) -> None:
        plain = all(getattr(made, n, None) == getattr(wanted, n, None) for n in ("op", "name"))
        below, theirs = expr_children(made), expr_children(wanted)
        if made.dtype != wanted.dtype or not plain or len(below) != len(theirs):
            raise self._differs(made, wanted)
        before = dict(self.blocks)
        try:
            for x, y in zip(below, theirs, strict=True):
                self._expr(x, y)
        except ScheduleError as first:
            if not isinstance(made, Binary) or made.op not in ("add", "mul"):
                raise
            self.blocks = before
            try:  # the operands may stand the other way round
                self._expr(below[0], theirs[1])
                self._expr(below[1], theirs[0])
            except ScheduleError:
                raise first from None

    def _reduce(self, made: Reduce, wanted: Reduce) -> None:
        ours, theirs = made.combiner, wanted.combiner
        renamed: dict[Var, Expr] = dict(
            zip((*theirs.lhs, *theirs.rhs), (*ours.lhs, *ours.rhs), strict=False)
        )
        alike = len(ours.result) == len(theirs.result) and all(
            a.dtype == b.dtype and same(a, substitute(b, renamed))
            for a, b in zip(
                (*ours.result, *made.init), (*theirs.result, *wanted.init), strict=False
            )
        )
        if not alike:
            raise self.error(
                f"it reduces by {theirs.name} to {wanted.dtype}, the stage by {ours.name} to "
                f"{made.dtype}"
            )
        for x, y in zip(made.sources, wanted.sources, strict=True):
            self._expr(x, y)
        self._expr(made.condition, wanted.condition)

    def _load(self, made: Load, wanted: Load) -> None:
        """Find which block of a tensor is read, and that it is the same at every read."""
        theirs, ahead = wanted.buffer, len(made.indices) - len(wanted.indices)
        if not isinstance(made.buffer, Tensor) or not isinstance(theirs, Tensor):
            raise self._differs(made, wanted)
        if made.dtype != wanted.dtype or ahead < 0:
            raise self._differs(made, wanted)
        begin = []
        for at, index in enumerate(made.indices):
            offset = index if at < ahead else index - wanted.indices[at - ahead]
            begin.append(self._simple(offset))
            if free_vars(begin[-1]) & set(self.axes):
                raise self._differs(made, wanted)
        block = _Block(made.buffer, tuple(begin))
        known = self.blocks.setdefault(theirs, block)
        again = zip(known.begin, block.begin, strict=False)
        if known.tensor is not block.tensor or not all(same(a, b) for a, b in again):
            raise self.error(f"its tensor {theirs.name} would be two parts of the stage's at once")


class _Writer:
    """Writes a declared body over the memory of the blocks."""

    def __init__(self, match: _Match, memory: Mapping[Tensor, Memory]) -> None:
        self.match = match
        self.places: dict[int, tuple[Memory, _Block]] = {}
        self.strides: dict[Var, Expr] = {}
        for tensor, buffer in match.intrin.buffers:
            block = match.blocks[tensor]
            self.places[buffer.uid] = (memory[block.tensor], block)
            self._bind_strides(buffer, memory[block.tensor])

    def _bind_strides(self, buffer: DeclaredBuffer, memory: Memory) -> None:
        if not buffer.strides:
            return
        actual: list[Expr] = []
        step: Expr = IntImm(1)
        by_dimension: dict[int, Expr] = {}
        for at in reversed(range(len(memory.order))):
            by_dimension[memory.order[at]] = step
            step = self.match.variables.simplify(step * memory.buffer.shape[at])
        actual = [by_dimension[d] for d in sorted(by_dimension)]
        for wanted, found in zip(reversed(buffer.strides), reversed(actual), strict=False):
            if isinstance(wanted, Var):
                self.strides[wanted] = found
            elif not same(self.match.variables.simplify(wanted), found):
                raise self.match.error(
                    f"buffer {buffer.name} demands a stride of {to_text(wanted)}, the memory of "
                    f"{memory.buffer.name} has {to_text(found)}"
                )

    def stmt(self, s: Stmt) -> Stmt:
        """Give a declared statement over the memory."""
        return self._stmt(substitute(s, self.strides) if self.strides else s)

    def _stmt(self, s: Stmt) -> Stmt:
        s = map_children(s, self._expr, self._stmt)
        if isinstance(s, Store) and s.buffer.uid in self.places:
            buffer, indices = self._place(s.buffer, s.indices)
            return Store(buffer, indices, s.value)
        return s

    def _expr(self, e: Expr) -> Expr:
        e = map_children(e, self._expr)
        if isinstance(e, Load) and e.buffer.uid in self.places:
            buffer, indices = self._place(e.buffer, e.indices)
            return Load(buffer, indices, e.dtype)
        return e

    def _place(
        self, declared: Buffer, indices: tuple[Expr, ...]
    ) -> tuple[Buffer, tuple[Expr, ...]]:
        """Find the memory of an access: the block's begin plus what the body says."""
        memory, block = self.places[declared.uid]
        ramp = indices[-1] if indices and isinstance(indices[-1], Ramp) else None
        plain = indices if ramp is None else (*indices[:-1], ramp.base)
        ahead = len(block.begin) - len(plain)
        whole = [
            begin if at < ahead else begin + plain[at - ahead]
            for at, begin in enumerate(block.begin)
        ]
        where = tuple(self.match.variables.simplify(i) for i in memory.place(whole))
        if ramp is None:
            return memory.buffer, where
        along = memory.order.index(len(block.begin) - 1)
        self._check_contiguous(declared, memory, ramp)
        lanes = replace(ramp, base=where[along])
        return memory.buffer, (*where[:along], lanes, *where[along + 1 :])

    def _check_contiguous(self, declared: Buffer, memory: Memory, ramp: Ramp) -> None:
        """Raise ScheduleError where a vector runs over rows that do not follow each other."""
        size, at = _size(declared, -1), -1
        while size < ramp.lanes and -at < len(declared.shape):
            tidy = memory.order == tuple(range(len(memory.order)))
            if not tidy or constant(memory.buffer.shape[at]) != _size(declared, at):
                raise self.match.error(
                    f"{ramp.lanes} lanes of buffer {declared.name} run over its rows, but those of "
                    f"{memory.buffer.name} do not follow each other"
                )
            at -= 1
            size *= _size(declared, at)


_NOTHING = Seq(())


def _extent(axis: IterVar) -> int:
    return constant(axis.domain.extent) or 0


def _size(buffer: Buffer, at: int) -> int:
    return constant(buffer.shape[at]) or 0
