"""Scans: which memory their stages share, and that each step reads earlier rows alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from farbench_compiler.errors import LoweringError, ScheduleError
from farbench_compiler.ir.visit import substitute
from farbench_compiler.lower.nest import Nest
from farbench_compiler.lower.placement import Placement
from farbench_compiler.lower.region import Part, Span, constant, span_of
from farbench_compiler.lower.variables import Variables
from farbench_compiler.te.attach import InScan
from farbench_compiler.te.operation import ComputeOp
from farbench_compiler.te.scan import ScanOp
from farbench_compiler.te.stage import Stage
from farbench_compiler.te.tensor import Tensor, reads


def held_by(placement: Placement, given: Sequence[Tensor]) -> dict[Tensor, Tensor]:
    """Map starts, updates and states to the scan's tensor whose memory they share.

    LoweringError where one of them is `given` by the caller, who has memory of its own for it.
    """
    held: dict[Tensor, Tensor] = {}
    for op in placement.ops.values():
        if isinstance(op, ScanOp):
            for parts in (op.init, op.update, op.state):
                held.update(zip(parts, op.outputs, strict=True))
    for tensor in given:
        if tensor in held:
            raise LoweringError(
                f"{tensor.name} is part of scan {held[tensor].name}, in whose memory it lies; "
                "leave it out of the arguments"
            )
    return held


def rows_read(nest: Nest, op: ComputeOp) -> tuple[Span | None, ...]:
    """Say what a step of a scan reads of its starts (all) or of its updates (the step's row)."""
    scan = nest.op
    assert isinstance(scan, ScanOp)
    if any(t in scan.init for t in op.outputs):
        return (None,) * len(op.axis)
    row = nest.values[scan.scan_axis]
    return (Span(row, row), *(None for _ in op.axis[1:]))


def check_row(stage: Stage, region: Sequence[Part]) -> None:
    """Raise ScheduleError where an update would have to compute more than the row of its step."""
    if isinstance(stage.home, InScan) and constant(region[0].extent) not in (0, 1):
        raise ScheduleError(
            f"scan {stage.home.scan.name}: update {stage.name} is read at other rows than that of "
            "its step; read the state there"
        )


def check_states(
    nest: Nest, placement: Placement, nests: Mapping[Stage, Nest], variables: Variables
) -> None:
    """Raise ScheduleError where a stage reads a state outside of the loop or at a later row."""
    scans = [s for s, op in placement.ops.items() if isinstance(op, ScanOp)]
    for load in reads(*nest.op.body) if scans else ():
        for stage in scans:
            op = placement.ops[stage]
            if not isinstance(op, ScanOp) or load.buffer not in op.state:
                continue
            what = f"scan {stage.name}: stage {nest.stage.name} reads {load.buffer.name}"
            if not any(of is stage for of, _ in placement.path(nest.stage)):
                raise ScheduleError(f"{what} outside of the scan's loop; attach it inside")
            scan = nests[stage]
            index = substitute(load.indices[0], nest.values)
            span = span_of(index, scan.variables(len(scan.loops)), variables)
            row = scan.values[op.scan_axis]
            if span is None or not variables.proves(row - 1 - span.high):
                raise ScheduleError(
                    f"{what} at a row that may not be computed yet; read rows before its own"
                )
