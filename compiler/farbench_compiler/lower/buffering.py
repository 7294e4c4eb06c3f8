"""Memory that outlives the steps of a loop: two halves in turn, or a ring of rows.

A stage that is attached to a loop fills its memory anew in each step. With two halves the next
step's is filled before this one's is read; in a ring what the last step left stays, and only what
is new is computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir.expr import (
    Buffer,
    Expr,
    Load,
    Var,
    binary,
    compare,
    const,
    fresh_uid,
    logic,
)
from farbench_compiler.ir.stmt import For, IfThen, Let, Seq, Stmt, Store
from farbench_compiler.ir.visit import free_vars, map_children, renamed, substitute, walk
from farbench_compiler.lower.nest import Guard, Nest
from farbench_compiler.lower.placement import Placement
from farbench_compiler.lower.region import constant
from farbench_compiler.lower.variables import Variables
from farbench_compiler.te.axis import IterVar
from farbench_compiler.te.stage import Stage


@dataclass(frozen=True, slots=True)
class Ring:
    """Dimension `dim` of a stage's memory holds `rows` rows, of which each step needs `new`."""

    dim: int
    rows: int
    new: int


def rings_of(
    placement: Placement, nests: Mapping[Stage, Nest], variables: Variables
) -> dict[Stage, tuple[Ring, Var]]:
    """Find the rings that a schedule asks for, each with the loop in which it moves."""
    found = {}
    for stage in placement.stages:
        if stage.buffering != "each step":
            parent, axis = _loop_of(stage, placement)
            step = next(loop.var for loop in nests[parent].loops if loop.axis is axis)
            if stage.buffering == "ring" and step is not None:
                found[stage] = _ring(nests[stage], step, variables), step
    return found


def _loop_of(stage: Stage, placement: Placement) -> tuple[Stage, IterVar]:
    """Give the loop that a stage is attached to, whose steps must follow each other."""
    primitive = "rolling_buffer" if stage.buffering == "ring" else "double_buffer"
    around = placement.path(stage)
    if not around:
        raise _error(primitive, stage, "is attached to no loop; use compute_at")
    parent, axis = around[-1]
    if parent.kinds.get(axis) == "parallel":
        raise _error(
            primitive, stage, f"is attached to axis {axis.name} of {parent.name}, which is "
            "parallel: its steps do not follow each other",
        )  # fmt: skip
    for other in placement.attached(parent, axis):
        if any(tensor in stage.op.input_tensors for tensor in other.op.outputs):
            raise _error(
                primitive, stage, f"reads {other.name}, which is computed in the same loop"
            )
    return parent, axis


def _ring(nest: Nest, step: Var, variables: Variables) -> Ring:
    """Find the dimension along which a stage's region moves; ScheduleError where none can roll."""
    moving = [dim for dim, part in enumerate(nest.region) if step in free_vars(part.begin)]
    if len(moving) != 1:
        raise _error("rolling_buffer", nest.stage, "moves along no one dimension with that loop")
    part = nest.region[moving[0]]
    ahead = substitute(part.begin, {step: step + 1}) - part.begin
    new, rows = constant(variables.simplify(ahead)), constant(part.extent)
    if new is None or rows is None or not 0 < new < rows:
        raise _error(
            "rolling_buffer", nest.stage, "shares no constant number of rows with the step before"
        )
    return Ring(moving[0], rows, new)


def only_new(nest: Nest, ring: Ring, step: Var) -> Nest:
    """Give the loops with a guard: behind the first step, only the rows that are new."""
    at = nest.values[nest.op.axis[ring.dim]]
    first_new = nest.region[ring.dim].begin + (ring.rows - ring.new)
    cond = logic("or", compare("eq", step, const(0)), compare("ge", at, first_new))
    used = free_vars(at)
    levels = [level for level, loop in enumerate(nest.loops) if loop.var in used]
    levels += [bound.level for bound in nest.bindings if bound.var in used]
    return replace(nest, guards=(*nest.guards, Guard(cond, max(levels, default=-1))))


def doubled(
    loop: For, fill: Stmt, olds: Sequence[Buffer], variables: Variables
) -> tuple[list[Buffer], Stmt, For]:
    """Give two halves for each of some buffers, what fills the first ones, and the loop on them.

    `fill` is what fills the buffers for the loop's variable.
    """
    pairs = {
        old: replace(old, shape=(const(2), *old.shape), name=f"{old.name}.2", uid=fresh_uid())
        for old in olds
    }
    half = binary("floormod", loop.var - loop.begin, 2)
    filled = _halved(fill, pairs, half)
    first = _copied(filled, {loop.var: loop.begin}, variables)
    following = loop.var + 1
    ahead = _copied(filled, {loop.var: following}, variables)
    more = compare("lt", following, loop.begin + loop.extent)
    body = Seq((IfThen(more, ahead), _halved(loop.body, pairs, half)))
    return list(pairs.values()), first, replace(loop, body=body)


def _halved(s: Stmt, pairs: Mapping[Buffer, Buffer], half: Expr) -> Stmt:
    """Let a statement use one half instead of each buffer."""

    def on_expr(e: Expr) -> Expr:
        e = map_children(e, on_expr)
        if isinstance(e, Load) and isinstance(e.buffer, Buffer) and e.buffer in pairs:
            return Load(pairs[e.buffer], (half, *e.indices), e.dtype)
        return e

    def on_stmt(s: Stmt) -> Stmt:
        s = map_children(s, on_expr, on_stmt)
        if isinstance(s, Store) and s.buffer in pairs:
            return replace(s, buffer=pairs[s.buffer], indices=(half, *s.indices))
        return s

    return on_stmt(s)


def _copied(s: Stmt, to: dict[Var, Expr], variables: Variables) -> Stmt:
    """Copy a statement with variables of its own, others replaced."""
    bound = {n.var for n in walk(s) if isinstance(n, (For, Let))}
    fresh = {v: variables.add_loop(v.name, variables.extent(v)) for v in bound}
    return substitute(renamed(s, fresh), to)


def _error(primitive: str, stage: Stage, why: str) -> ScheduleError:
    return ScheduleError(f"{primitive}: stage {stage.name} {why}")
