"""What pragmas make of the loop that they are on."""

from __future__ import annotations

from dataclasses import dataclass, replace

from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir.expr import IntImm, Var, binary, const
from farbench_compiler.ir.simplify import simplify
from farbench_compiler.ir.stmt import Evaluate, For, Seq, Stmt, Store
from farbench_compiler.ir.visit import map_children, substitute, walk
from farbench_compiler.lower.region import constant
from farbench_compiler.te.pragma import Pragma
from farbench_compiler.te.stage import Stage

# Enough parts for the threads of any pool to balance, few enough to cost nothing.
STRIDES = 64
MAX_DEPTH = 8  # loops within each other that one pragma unrolls


def apply(stage: Stage, pragmas: list[Pragma], body: Stmt) -> Stmt:
    """Give the loop as its pragmas want it; ScheduleError where one has nothing to work on."""
    for pragma in pragmas:
        match pragma.kind:
            case "auto_unroll_max_step":
                body = _unrolled(body, pragma.value).stmt
            case "debug_skip_region":
                body = Seq(()) if pragma.value else body
            case "nontemporal":
                check_nontemporal(stage, pragma)
            case "parallel_stride_pattern":
                _check_parallel(stage, pragma)
                body = _strided(body) if isinstance(body, For) else body
            case "parallel_barrier_when_finish":
                _check_parallel(stage, pragma)  # it waits anyhow: the pool ends every loop so
            case "parallel_launch_point":
                _check_launch(stage, pragma, body)  # threads stay: where they start costs nothing
    if any(p.kind == "unroll_explicit" and not p.value for p in pragmas):
        body = _rolled(body)
    return body


def check_axes(stage: Stage, levels: int) -> None:
    """Raise ScheduleError where the loop of a pragma or a prefetch is not written.

    It may have been split or fused since, or an intrinsic stands for all loops from `levels` on.
    """
    asked = [("pragma", p.axis) for p in stage.pragmas]
    asked += [("prefetch", a.axis) for a in stage.lookaheads]
    for primitive, axis in asked:
        stage.check_loop(primitive, axis)
        if axis in stage.leaf_iter_vars[levels:]:
            raise ScheduleError(
                f"{primitive}: axis {axis.name} of stage {stage.name} is inside of the intrinsic "
                "that computes it; use a loop further out"
            )


def check_nontemporal(stage: Stage, pragma: Pragma) -> None:
    """Raise ScheduleError where a stage reads again what it writes, or writes what others read."""
    op = stage.op
    if not stage.is_output or op.reduce_axis or stage.tensorized:
        raise ScheduleError(
            f"pragma: {pragma.kind!r} on axis {pragma.axis.name} of stage {stage.name} needs an "
            "output that is written once, without a reduction; use cache_write first"
        )


def _check_parallel(stage: Stage, pragma: Pragma) -> None:
    if stage.kinds.get(pragma.axis) != "parallel":
        raise ScheduleError(
            f"pragma: {pragma.kind!r} on axis {pragma.axis.name} of stage {stage.name} needs a "
            "parallel loop; call parallel on that axis"
        )


def _check_launch(stage: Stage, pragma: Pragma, body: Stmt) -> None:
    of_stage = "parallel" in stage.kinds.values()  # a loop of one step is none in the body
    if not of_stage and not any(isinstance(n, For) and n.kind == "parallel" for n in walk(body)):
        raise ScheduleError(
            f"pragma: {pragma.kind!r} on axis {pragma.axis.name} of stage {stage.name} has no "
            "parallel loop inside; call parallel on a loop there"
        )


def _strided(loop: For) -> Stmt:
    """Let part p of the loop take the steps p, p + STRIDES, p + 2 STRIDES, ..."""
    extent = constant(loop.extent)
    parts = STRIDES if extent is None else min(extent, STRIDES)
    if parts < 1:
        return loop
    part, turn = Var(f"{loop.var.name}.part"), Var(f"{loop.var.name}.turn")
    turns = simplify(binary("floordiv", loop.extent - part + parts - 1, parts))
    body = substitute(loop.body, {loop.var: turn * parts + part})
    inner = For(turn, const(0), turns, "serial", body)
    return For(part, const(0), const(parts), "parallel", inner)


@dataclass(frozen=True, slots=True)
class _Unrolled:
    """A statement, the stores that it runs, and how deep the loops in it are."""

    stmt: Stmt
    steps: int = 0
    depth: int = 0
    rolled: bool = False


def _unrolled(s: Stmt, most: int) -> _Unrolled:
    """Unroll loops from the inside out, while all that is inside is unrolled too."""
    below: list[_Unrolled] = []

    def on_stmt(part: Stmt) -> Stmt:
        below.append(_unrolled(part, most))
        return below[-1].stmt

    s = map_children(s, lambda e: e, on_stmt)
    steps = sum(part.steps for part in below) + isinstance(s, (Store, Evaluate))
    depth = max((part.depth for part in below), default=0)
    rolled = any(part.rolled for part in below)
    if not isinstance(s, For) or s.kind == "vectorized":
        return _Unrolled(s, steps, depth, rolled)
    extent = s.extent.value if isinstance(s.extent, IntImm) else None
    fits = extent is not None and not rolled and depth <= MAX_DEPTH and extent * steps <= most
    if extent is not None and (s.kind == "unrolled" or (s.kind == "serial" and fits)):
        return _Unrolled(replace(s, kind="unrolled"), steps * extent, depth + 1, rolled)
    return _Unrolled(s, steps, depth, rolled=True)


def _rolled(s: Stmt) -> Stmt:
    s = map_children(s, lambda e: e, _rolled)
    return replace(s, kind="serial") if isinstance(s, For) and s.kind == "unrolled" else s
