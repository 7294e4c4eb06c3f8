"""The default schedule: loops that are fast with no tuning, for any program of te.

Stages that compute each element from few others are inlined into their readers, unless a reduction
would compute something costly again and again. What is left runs in the order of the program:

    elements     all loops as one where every read is at the element's own place; else the innermost
                 in vectors, in square tiles where a read runs along another dimension
    reductions   over what lies side by side: as a vector loop, in an order of its own; else the
                 innermost data axis in vectors, with the sums in registers
"""

from __future__ import annotations

from collections.abc import Sequence

from farbench_compiler import te
from farbench_compiler.ir.expr import Call, Expr, IfThenElse, IntImm
from farbench_compiler.ir.visit import free_vars, walk
from farbench_compiler.ops.streaming import write_past_caches
from farbench_compiler.ops.tiles import lanes_of
from farbench_compiler.target import Target
from farbench_compiler.te.attach import Root
from farbench_compiler.te.injective import inline_where, is_elementwise, readers_of
from farbench_compiler.te.operation import ComputeOp, Operation
from farbench_compiler.te.schedule import Schedule
from farbench_compiler.te.stage import Stage
from farbench_compiler.te.tensor import Tensor, reads

_UNROLL = 4  # vectors of elements in one step
_SUMS = 4  # vectors of sums in registers
# Sums of a plain reduction lie in the first cache: each step reads a long stretch of memory.
_SUMS_BYTES = 16 << 10
_MOST_ROWS = 14  # of a tile of sums
_SMALL = 16  # a loop of so few steps is written out
_PAIRS = 2  # vectors of them
_PARTS = 64  # of a reduction to one number
_SHARES = 4  # of a row of sums
_TILE = 16  # rows of a transposing tile


def default_schedule(
    outputs: Tensor | Sequence[Tensor], target: str | Target = "native", *, parallel: bool = False
) -> Schedule:
    """Give a schedule for what computes `outputs`; `parallel` shares outer loops among threads.

    Sizes may be symbolic. Externs and scans run as they are.
    """
    given = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    schedule = te.create_schedule([tensor.op for tensor in given])
    _inline(schedule)
    maker = _Maker(schedule, Target.parse(target), parallel)
    for stage in list(schedule.stages):
        if (
            isinstance(stage.op, ComputeOp)
            and stage.op.body
            and isinstance(stage.attach, Root)  # a scan's own stages run as they are
        ):
            maker.make(stage, stage.op)
    return schedule


def _inline(schedule: Schedule) -> None:
    """Inline stages where that computes nothing costly twice."""

    def wanted(op: ComputeOp) -> bool:
        readers = readers_of(schedule, op)
        return not _is_costly(op) or (len(readers) < 2 and not any(map(_repeats, readers)))

    inline_where(schedule, wanted)


def _is_costly(op: ComputeOp) -> bool:
    """Tell whether an element takes a function or a decision."""
    return any(isinstance(node, (Call, IfThenElse)) for value in op.body for node in walk(value))


def _repeats(op: Operation) -> bool:
    """Tell whether a computation reads elements again: a reduction that does not use each once."""
    if not isinstance(op, ComputeOp) or not op.reduce_axis:
        return False
    return len(op.axis) + len(op.reduce_axis) > min(
        (len(load.indices) for load in reads(*op.body)), default=0
    )


class _Maker:
    """Schedules one stage after the other for a target."""

    def __init__(self, schedule: Schedule, target: Target, parallel: bool) -> None:
        self._schedule = schedule
        self._target = target
        self._parallel = parallel

    def make(self, stage: Stage, op: ComputeOp) -> None:
        """Schedule a stage that is computed as a whole."""
        if op.reduce_axis:
            self._reduction(stage, op)
        elif op.axis:
            self._elements(stage, op)

    def _lanes(self, op: ComputeOp) -> int:
        """Count the lanes of the widest dtype that a computation works on."""
        kinds = [t.dtype for t in (*op.outputs, *op.input_tensors)]
        return lanes_of(self._target, max(kinds, key=lambda of: of.nbytes))

    def _elements(self, stage: Stage, op: ComputeOp) -> None:
        *outer, last = op.axis
        if outer and is_elementwise(op):
            outer, last = [], stage.fuse(*op.axis)
        along = _along(op)
        width = self._lanes(op) * (_UNROLL if along is None else 1)
        rest, lane = stage.split(last, factor=_width(last, width))
        if along is not None:
            outer = [axis for axis in outer if axis is not along]
            tiles, row = stage.split(along, factor=_TILE)
            stage.reorder(*outer, tiles, rest, row, lane)
            outer.append(tiles)
        stage.vectorize(lane)
        self._share(stage, outer or [rest])
        nbytes = _nbytes(op)
        if stage.is_output and nbytes is not None:
            write_past_caches(stage, nbytes)

    def _reduction(self, stage: Stage, op: ComputeOp) -> None:
        if not _side_by_side(op):
            if op.axis:
                self._across(stage, op)
        elif op.num_outputs > 1:
            self._in_lanes(stage, op)
        elif self._parallel and not op.axis:
            self._in_parts(stage, op)
        else:
            run = stage.fuse(*op.reduce_axis) if _in_order(op) else op.reduce_axis[-1]
            stage.vectorize(run)
            self._share(stage, list(op.axis))

    def _in_lanes(self, stage: Stage, op: ComputeOp) -> None:
        """Reduce pairs, as argmax does, in each lane of vectors first."""
        run, lanes = op.reduce_axis[-1], self._lanes(op) * _PAIRS
        if _width(run, lanes) == lanes:
            _, lane = stage.split(run, factor=lanes)
            made = self._schedule.rfactor(op.output(0), lane, factor_axis=len(op.axis))
            partial = self._schedule[made[0] if isinstance(made, tuple) else made]
            assert isinstance(partial.op, ComputeOp)
            own = partial.op.axis[-1]
            partial.reorder(*partial.op.reduce_axis, own)
            partial.vectorize(own)
            if op.axis:
                partial.compute_at(stage, op.axis[-1])
        self._share(stage, list(op.axis))

    def _in_parts(self, stage: Stage, op: ComputeOp) -> None:
        """Reduce to one number in parts, a few for each of the threads."""
        part, _ = stage.split(op.reduce_axis[0], nparts=_PARTS)
        made = self._schedule.rfactor(op.output(0), part)
        assert isinstance(made, Tensor)
        partial = self._schedule[made]
        assert isinstance(partial.op, ComputeOp)
        partial.vectorize(partial.op.reduce_axis[-1])
        self._share(partial, list(partial.op.axis))

    def _across(self, stage: Stage, op: ComputeOp) -> None:
        """Reduce over what does not lie side by side: vectors along the innermost data axis."""
        lanes, plain = self._lanes(op), not _repeats(op)
        most = _SUMS_BYTES // op.output(0).dtype.nbytes if plain else lanes * _SUMS
        width = _width(op.axis[-1], most)
        if self._parallel and len(op.axis) == 1:
            width = max(lanes * _SUMS, width // _SHARES)
        sums = self._schedule.cache_write(op.outputs, "local")[0]
        inner, result = self._schedule[sums], stage.op
        assert isinstance(result, ComputeOp)
        *outer, last = result.axis
        rest, lane = stage.split(last, factor=width)
        stage.vectorize(lane)
        rows: te.IterVar | None = None
        if outer and not plain:
            *outer, down = outer
            groups, row = stage.split(down, factor=self._rows(down, -(-width // lanes)))
            stage.reorder(*outer, groups, rest, row, lane)
            outer.append(groups)
            rows = sums.op.axis[-2]
            inner.unroll(rows)
        inner.compute_at(stage, rest)
        steps, own = sums.op.ordered_axis, sums.op.axis[-1]
        vectors, own_lane = inner.split(own, factor=_width(own, lanes * _SUMS))
        inner.reorder(*steps, *([] if rows is None else [rows]), vectors, own_lane)
        inner.vectorize(own_lane)
        taps = steps[-1].domain.extent
        if isinstance(taps, IntImm) and taps.value <= _SMALL and not plain:
            inner.unroll(steps[-1])
        self._share(stage, outer or [rest])

    def _rows(self, axis: te.IterVar, vectors: int) -> int:
        """Choose how many rows of sums the registers hold; a number that divides the rows best."""
        free = max(1, self._target.vector_registers * 3 // 4 // vectors)
        most = _width(axis, min(free, _MOST_ROWS))
        extent = axis.domain.extent
        if not isinstance(extent, IntImm):
            return most
        return min(range(1, most + 1), key=lambda rows: -(-extent.value // rows) * (rows + 1))

    def _share(self, stage: Stage, loops: list[te.IterVar]) -> None:
        if self._parallel and loops:
            stage.parallel(stage.fuse(*loops) if len(loops) > 1 else loops[0])


def _width(axis: te.IterVar, most: int) -> int:
    """Give the steps of an inner loop: no more than there are."""
    extent = axis.dom.extent if axis.dom is not None else None
    return max(1, min(most, extent.value)) if isinstance(extent, IntImm) else most


def _nbytes(op: ComputeOp) -> int | None:
    """Give the size of the outputs where it is constant."""
    total = 0
    for tensor in op.outputs:
        nbytes = tensor.dtype.nbytes
        for extent in tensor.shape:
            if not isinstance(extent, IntImm):
                return None
            nbytes *= extent.value
        total += nbytes
    return total


def _along(op: ComputeOp) -> te.IterVar | None:
    """Find the axis, not the last, along which a read finds its elements side by side."""
    for load in reads(*op.body):
        for axis in op.axis[:-1]:
            if load.indices and load.indices[-1] is axis:
                return axis
    return None


def _uses(e: Expr, axes: Sequence[te.IterVar]) -> bool:
    return not free_vars(e).isdisjoint(axes)


def _side_by_side(op: ComputeOp) -> bool:
    """Tell whether the last reduce axis, and no data axis, runs through the last dimension."""
    lasts = [load.indices[-1] for load in reads(*op.body) if load.indices]
    along = [e for e in lasts if _uses(e, [op.reduce_axis[-1]])]
    return bool(along) and not any(_uses(e, op.axis) for e in lasts)


def _in_order(op: ComputeOp) -> bool:
    """Tell whether each read runs through memory when the reduce loops run as one."""
    count = len(op.reduce_axis)
    return count > 1 and all(
        len(load.indices) >= count
        and all(i is a for i, a in zip(load.indices[-count:], op.reduce_axis, strict=True))
        for load in reads(*op.body)
    )
