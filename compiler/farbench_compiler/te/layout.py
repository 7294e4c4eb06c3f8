"""Layouts: a tensor's dimensions parted and joined anew by a map that can be turned round.

    lambda i, j: [i // 4, j, i % 4]        i in tiles of 4, the tile's elements innermost

Every index of the new layout is made of digits of the old ones: `i // 4` and `i % 4` are the digits
of i, `i * 8 + j` joins two. Where an extent does not divide, the last tile is padded with zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir.expr import (
    Binary,
    Cast,
    Expr,
    IntImm,
    Var,
    binary,
    compare,
    const,
    logic,
)
from farbench_compiler.ir.simplify import simplify
from farbench_compiler.ir.visit import substitute
from farbench_compiler.te.axis import IterVar, Range, as_index
from farbench_compiler.te.intrinsics import if_then_else
from farbench_compiler.te.operation import ComputeOp, PlaceholderOp
from farbench_compiler.te.reduction import Reduce

Map = Callable[..., Sequence[object]]
# In TVM it parts the dimensions of memory with several; memory here has one.
AXIS_SEPARATOR = "axis_separator"


@dataclass(frozen=True, slots=True)
class _Digit:
    """(axis // lower) % extent."""

    axis: Var
    lower: int
    extent: int


@dataclass(frozen=True)
class Layout:
    """A map of indices, its old variables, the new extents, and the way back."""

    old: tuple[Var, ...]
    new: tuple[Expr, ...]
    axes: tuple[IterVar, ...]
    back: dict[Var, Expr]
    inside: Expr | None

    def at(self, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Give the new indices of an element."""
        to: dict[Var, Expr] = dict(zip(self.old, indices, strict=True))
        return tuple(simplify(substitute(e, to)) for e in self.new)


def layout_of(stage: str, names: Sequence[str], shape: Sequence[Expr], given: Map) -> Layout:
    """Read a map over constant sizes; ScheduleError where it cannot be turned round."""
    sizes = [size.value for size in shape if isinstance(size, IntImm)]
    if len(sizes) < len(shape):
        raise _error(stage, "has a size that is no number, which a layout needs")
    old = tuple(Var(name) for name in names)
    try:
        found = list(given(*old))
    except TypeError as error:
        raise _error(stage, f"needs a function that gives a list of indices: {error}") from error
    if any(e is AXIS_SEPARATOR for e in found):
        raise _error(stage, "cannot have an axis separator: memory here has one dimension")
    new = tuple(as_index(e) for e in found)  # type: ignore[arg-type]
    extents = dict(zip(old, sizes, strict=True))
    parts = [_digits(stage, e, extents) for e in new]
    axes = tuple(
        IterVar(f"{names[0] if names else 'i'}{n}", dom=Range(const(0), const(_extent(digits))))
        for n, digits in enumerate(parts)
    )
    values: dict[_Digit, Expr] = {}
    for axis, digits in zip(axes, parts, strict=True):
        for digit, value in _taken_apart(stage, axis, digits).items():
            if digit.extent > 1 and digit in values:
                raise _error(stage, f"is mapped with a part of {digit.axis.name} twice")
            values[digit] = value
    back, inside = {}, None
    for var, size in extents.items():
        back[var], whole = _joined(stage, var, size, values)
        if whole > size:
            cond = compare("lt", back[var], const(size))
            inside = cond if inside is None else logic("and", inside, cond)
    return Layout(old, new, axes, back, inside)


def _digits(stage: str, e: Expr, extents: dict[Var, int]) -> list[tuple[int, _Digit]]:
    """Read an index as digits, each with what it is multiplied by."""
    match e:
        case Cast():
            return _digits(stage, e.value, extents)
        case Var() if e in extents:
            return [(1, _Digit(e, 1, extents[e]))]
        case IntImm(0, _):
            return []
        case Binary("floordiv" | "truncdiv", a, IntImm(n, _), _) if n > 0:
            of = _one(stage, a, extents)
            return [(1, _Digit(of.axis, of.lower * n, -(-of.extent // n)))]
        case Binary("floormod" | "truncmod", a, IntImm(n, _), _) if n > 0:
            of = _one(stage, a, extents)
            return [(1, _Digit(of.axis, of.lower, min(n, of.extent)))]
        case Binary("mul", a, IntImm(n, _), _) | Binary("mul", IntImm(n, _), a, _) if n > 0:
            return [(n * factor, digit) for factor, digit in _digits(stage, a, extents)]
        case Binary("add", a, b, _):
            return _digits(stage, a, extents) + _digits(stage, b, extents)
    raise _error(stage, "is mapped by more than //, % and * by numbers and sums of these")


def _one(stage: str, e: Expr, extents: dict[Var, int]) -> _Digit:
    found = _digits(stage, e, extents)
    if len(found) != 1 or found[0][0] != 1:
        raise _error(stage, "is mapped by a division of a sum; divide each dimension by itself")
    return found[0][1]


def _extent(digits: Sequence[tuple[int, _Digit]]) -> int:
    return 1 + sum(factor * (digit.extent - 1) for factor, digit in digits)


def _taken_apart(
    stage: str, axis: IterVar, digits: Sequence[tuple[int, _Digit]]
) -> dict[_Digit, Expr]:
    """Give the digits of a new index: it must hold them side by side, none over another."""
    below, found = 1, {}
    for factor, digit in sorted(digits, key=lambda part: part[0]):
        if digit.extent == 1:
            found[digit] = const(0)
            continue
        if factor != below:
            raise _error(stage, "is mapped to sums that do not tell which parts they are of")
        below = factor * digit.extent
        found[digit] = binary("floormod", binary("floordiv", axis, factor), digit.extent)
    return found


def _joined(stage: str, var: Var, size: int, values: dict[_Digit, Expr]) -> tuple[Expr, int]:
    """Put an old index together, and give how many values its digits have."""
    total: Expr = const(0)
    below = 1
    for digit in sorted((d for d in values if d.axis is var), key=lambda d: d.lower):
        if digit.extent == 1:
            continue
        if digit.lower != below:
            raise _error(stage, f"is mapped without a part of {var.name}, or with one twice")
        total = total + values[digit] * below
        below *= digit.extent
    if below < size:
        raise _error(stage, f"is mapped without a part of {var.name}")
    return simplify(total), below


def transformed(op: ComputeOp | PlaceholderOp, layout: Layout) -> ComputeOp | PlaceholderOp:
    """Make the operation whose tensor has the new layout."""
    if isinstance(op, PlaceholderOp):
        shape = tuple(axis.domain.extent for axis in layout.axes)
        return PlaceholderOp(op.name, shape, op.dtype)
    pairs = zip(op.axis, layout.old, strict=True)
    to: dict[Var, Expr] = {axis: layout.back[var] for axis, var in pairs}
    body = tuple(_inside(substitute(e, to), layout.inside) for e in op.body)
    return ComputeOp(op.name, layout.axes, body, op.tag, op.attrs)


def _inside(value: Expr, cond: Expr | None) -> Expr:
    """Compute a value only for elements that are none of the padding."""
    if cond is None:
        return value
    if isinstance(value, Reduce):
        return replace(value, condition=logic("and", cond, value.condition))
    return if_then_else(cond, value, const(0, value.dtype))


def _error(stage: str, why: str) -> ScheduleError:
    return ScheduleError(f"transform_layout: stage {stage} {why}")
