"""rfactor: a reduction in two, of which the first keeps one loop as an axis of its output.

    B[i] = reduce(k, f(i, k)),  k = outer * factor + inner
->  B.rf[inner, i] = reduce(outer, f(i, outer * factor + inner))
    B[i] = reduce(inner, B.rf[inner, i])

So the kept loop may be vectorised or run in parallel, and the order of the sum changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir.expr import Expr, IntImm, Var, binary, compare, const, logic
from farbench_compiler.ir.visit import substitute
from farbench_compiler.te.axis import IterVar, Range, whole_number
from farbench_compiler.te.intrinsics import if_then_else
from farbench_compiler.te.operation import ComputeOp
from farbench_compiler.te.reduction import Reduce
from farbench_compiler.te.relation import Split
from farbench_compiler.te.stage import Stage


@dataclass(frozen=True)
class Factored:
    """The two operations, and the loops of the second that stand where the reduction's stood."""

    partial: ComputeOp
    final: ComputeOp
    kept: IterVar


@dataclass(frozen=True)
class _Parts:
    """A reduce axis as `kept` and, where it was split, the rest; and when both are in range."""

    root: IterVar
    kept: IterVar
    rest: tuple[IterVar, ...]
    value: Expr
    guard: Expr | None


def factor(stage: Stage, op: ComputeOp, axis: IterVar, factor_axis: int) -> Factored:
    """Part the reduction of a stage at one of its loops; ScheduleError says what cannot be."""
    if not isinstance(axis, IterVar):
        raise ScheduleError(f"rfactor: {axis!r} is no axis of stage {stage.name}")
    reduction = op.reduction
    if reduction is None or stage.leaf_index(axis) is None or axis.kind != "reduce":
        raise _error(stage, axis, "is no reduce loop of this stage; split a reduce axis first")
    parts = _parts(stage, axis)
    ndim = len(op.axis)
    given = whole_number(factor_axis)
    if given is None:
        raise _error(stage, axis, f"cannot become dimension {factor_axis!r}; give a whole number")
    place = given + ndim + 1 if given < 0 else given
    if not 0 <= place <= ndim:
        raise _error(stage, axis, f"cannot become dimension {factor_axis} of {ndim + 1}")
    partial = _partial(op, reduction, parts, place)
    kept = IterVar(f"{axis.name}.v", dom=parts.kept.dom, kind="reduce")
    reads = tuple(
        partial.output(i)(*_inserted(op.axis, place, kept)) for i in range(partial.num_outputs)
    )
    always = const(True, "bool")
    body = tuple(
        Reduce(reduction.combiner, reads, (kept,), always, reduction.init, i, e.dtype)
        for i, e in enumerate(op.body)
    )
    return Factored(partial, op.with_body(body), kept)


def _partial(op: ComputeOp, reduction: Reduce, parts: _Parts, place: int) -> ComputeOp:
    """Make the operation that reduces over all but the kept loop."""
    data = {iv: IterVar(iv.name, dom=iv.domain) for iv in op.axis}
    others = tuple(iv for iv in op.reduce_axis if iv is not parts.root)
    fresh = {iv: IterVar(iv.name, dom=iv.dom, kind="reduce") for iv in (*parts.rest, *others)}
    kept = IterVar(parts.kept.name, dom=parts.kept.dom)
    to: dict[Var, Expr] = dict([*data.items(), *fresh.items(), (parts.kept, kept)])
    to[parts.root] = _in(parts.value, to)
    condition = substitute(reduction.condition, to)
    if parts.guard is not None:
        condition = logic("and", _in(parts.guard, to), condition)
    sources = tuple(substitute(source, to) for source in reduction.sources)
    axes = _inserted(tuple(data.values()), place, kept)
    identity = reduction.combiner.identity
    over = tuple(fresh.values())
    if not over:  # nothing is left to reduce: the values themselves
        chosen = tuple(_guarded(condition, s, i) for s, i in zip(sources, identity, strict=True))
        return ComputeOp(f"{op.name}.rf", axes, chosen, op.tag, op.attrs)
    body = tuple(
        Reduce(reduction.combiner, sources, over, condition, identity, i, e.dtype)
        for i, e in enumerate(op.body)
    )
    return ComputeOp(f"{op.name}.rf", axes, body, op.tag, op.attrs)


def _guarded(condition: Expr, value: Expr, otherwise: Expr) -> Expr:
    always = isinstance(condition, IntImm) and bool(condition.value)
    return value if always else if_then_else(condition, value, otherwise)


def _in(e: Expr, to: Mapping[Var, Expr]) -> Expr:
    return substitute(e, dict(to))


def _inserted(axes: tuple[IterVar, ...], place: int, kept: IterVar) -> tuple[IterVar, ...]:
    return (*axes[:place], kept, *axes[place:])


def _parts(stage: Stage, axis: IterVar) -> _Parts:
    """Find the reduce axis that a loop comes from, with its ranges."""
    mine = [r for r in stage.relations if isinstance(r, Split) and axis in (r.outer, r.inner)]
    if axis.dom is not None:
        return _Parts(axis, axis, (), axis, None)
    if len(mine) != 1 or mine[0].parent.dom is None:
        raise _error(stage, axis, "comes from more than one split, or from a fusion; split once")
    split = mine[0]
    root = split.parent.domain
    outer, inner = _extents(split, root.extent)
    zero = const(0)
    ranged = {
        split.outer: IterVar(split.outer.name, dom=Range(zero, outer), kind="reduce"),
        split.inner: IterVar(split.inner.name, dom=Range(zero, inner), kind="reduce"),
    }
    big, small = ranged[split.outer], ranged[split.inner]
    steps = binary("add", binary("mul", big, inner), small)
    both = (outer, inner, root.extent)
    exact = all(isinstance(n, IntImm) for n in both)
    whole = exact and outer.value * inner.value == root.extent.value  # type: ignore[attr-defined]
    guard = None if whole else compare("lt", steps, root.extent)
    rest = small if axis is split.outer else big
    other = split.inner if axis is split.outer else split.outer
    if stage.leaf_index(other) is None:
        raise _error(stage, axis, f"stands beside {other.name}, which was split or fused again")
    value = binary("add", root.begin, steps)
    return _Parts(split.parent, ranged[axis], (rest,), value, guard)


def _extents(split: Split, extent: Expr) -> tuple[Expr, Expr]:
    size = split.size
    other = binary("floordiv", binary("add", extent, binary("sub", size, const(1))), size)
    return (other, size) if split.factor is not None else (size, other)


def _error(stage: Stage, axis: IterVar, why: str) -> ScheduleError:
    return ScheduleError(f"rfactor: axis {axis.name} of stage {stage.name} {why}")
