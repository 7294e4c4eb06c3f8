"""Bound inference: what part of each tensor its readers need, and the loops that compute it.

Goes from the outputs to the inputs: when a stage's turn comes, the loops of all its readers are
known, and so is what one step of the loop it is attached to reads.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Literal

from farbench_compiler.ir.expr import Var, const
from farbench_compiler.ir.visit import substitute
from farbench_compiler.lower.nest import Nest, build_nest
from farbench_compiler.lower.placement import Placement
from farbench_compiler.lower.region import Part, Span, clamp, constant, span_of, union
from farbench_compiler.lower.scan import check_row, check_states, rows_read
from farbench_compiler.lower.variables import Variables
from farbench_compiler.te.axis import IterVar
from farbench_compiler.te.extern import ExternOp
from farbench_compiler.te.scan import ScanOp
from farbench_compiler.te.stage import Stage
from farbench_compiler.te.tensor import Tensor, reads

MOST_LANES = 64  # of the shortest elements in the longest vectors


def infer_bounds(
    placement: Placement, given: Container[Tensor], variables: Variables
) -> dict[Stage, Nest]:
    """Make the loops of all stages; tensors that are `given` by the caller are computed whole."""
    nests: dict[Stage, Nest] = {}
    for stage in reversed(placement.stages):
        op = placement.ops[stage]
        whole = not placement.path(stage) and any(t in given for t in op.outputs)
        if whole or not placement.readers(stage):
            region = tuple(Part(iv.domain.begin, iv.domain.extent) for iv in op.axis)
        else:
            region = _needed(stage, placement, nests, variables)
        nests[stage] = build_nest(stage, op, region, variables)
        check_states(nests[stage], placement, nests, variables)
    return nests


def _needed(
    stage: Stage, placement: Placement, nests: dict[Stage, Nest], variables: Variables
) -> tuple[Part, ...]:
    """Join what all readers read while the loops inside the stage's place run."""
    op = placement.ops[stage]
    if not op.axis:
        return ()
    fixed = _fixed_variables(stage, placement, nests)
    spans: list[list[Span | None]] = [[] for _ in op.axis]
    for reader in placement.readers(stage):
        nest = nests[reader]
        if isinstance(nest.op, ExternOp):  # whatever it reads, it reads whole
            for found in spans:
                found.append(None)
        if isinstance(nest.op, ScanOp):
            for found, span in zip(spans, rows_read(nest, op), strict=True):
                found.append(span)
        for load in reads(*nest.op.body):
            if load.buffer in op.outputs:
                for found, index in zip(spans, load.indices, strict=True):
                    found.append(span_of(substitute(index, nest.values), fixed, variables))
    parts = []
    for found, axis in zip(spans, op.axis, strict=True):
        known = [span for span in found if span is not None]
        joined = union(known, variables) if known and len(known) == len(found) else None
        part = clamp(joined, axis.domain.extent, variables)
        parts.append(_whole_vector(stage, axis, part))
    check_row(stage, parts)
    return tuple(parts)


def _whole_vector(stage: Stage, axis: IterVar, part: Part) -> Part:
    """Widen a part to all lanes of an axis that is one vector: 11 lanes would be 8 + 2 + 1."""
    inside = _in_intrinsic(stage, axis)
    if inside == "whole" or (inside == "part" and constant(part.begin) == 0):
        return Part(axis.domain.begin, axis.domain.extent)
    size, needed = constant(axis.domain.extent), constant(part.extent)
    if stage.kinds.get(axis) != "vectorized" or size is None or needed is None:
        return part
    if size > MOST_LANES or _power_of_two(needed) or not _power_of_two(size):
        return part
    return Part(axis.domain.begin, const(size))


def _in_intrinsic(stage: Stage, axis: IterVar) -> Literal["", "part", "whole"]:
    """Tell how much of an axis a declared intrinsic computes at once, whatever of it is read."""
    first = None if stage.tensorized is None else stage.leaf_index(stage.tensorized[0])
    if first is None:
        return ""
    inner = stage.leaf_iter_vars[first:]
    if any(leaf is axis for leaf in inner):
        return "whole"
    return "part" if any(axis in stage.roots_of(leaf) for leaf in inner) else ""


def _power_of_two(n: int) -> bool:
    return n > 0 and n & (n - 1) == 0


def _fixed_variables(
    stage: Stage, placement: Placement, nests: dict[Stage, Nest]
) -> frozenset[Var]:
    """Collect the variables of the loops around a stage."""
    fixed: set[Var] = set()
    for around, axis in placement.path(stage):
        place = around.leaf_index(axis)
        if place is not None:
            fixed.update(nests[around].variables(place))
    return frozenset(fixed)
