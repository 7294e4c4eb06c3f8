"""Buffers that a body declares: read and written by vectors, bound to memory when it is used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir.dtypes import FLOAT32, INT64, DType, dtype
from farbench_compiler.ir.expr import Buffer, Expr, ExprLike, IntImm, Load, Ramp, as_expr, cast
from farbench_compiler.ir.stmt import Store

Shape = Sequence[ExprLike] | ExprLike
Index = Sequence[ExprLike] | ExprLike


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class DeclaredBuffer(Buffer):
    """A buffer of a declared body.

    `strides` count elements from one index of a dimension to the next: a constant is demanded, a
    variable takes the value that the memory has.
    """

    strides: tuple[Expr, ...] = ()

    def vload(self, begin: Index, dtype: str | DType | None = None) -> Load:
        """Read from `begin` on: one element, or a vector where `dtype` has lanes."""
        of = self._checked("vload", self.dtype if dtype is None else dtype)
        return Load(self, vector_index(self, begin, of.lanes), of)

    def vstore(self, begin: Index, value: ExprLike) -> Store:
        """Write an element or a vector from `begin` on."""
        x = as_expr(value, self.dtype)
        of = self._checked("vstore", x.dtype)
        return Store(self, vector_index(self, begin, of.lanes), x)

    def access_ptr(self, access_mask: str | int = "r", offset: ExprLike = 0) -> Pointer:
        """Give the place `offset` elements behind the start, to be read and written by index."""
        return Pointer(self, as_index(offset))

    def _checked(self, what: str, of: str | DType) -> DType:
        try:
            given = dtype(of)
        except ValueError as error:
            raise ScheduleError(f"{what}: {error}") from error
        if given.scalar != self.dtype:
            raise ScheduleError(f"{what}: buffer {self.name} holds {self.dtype}, not {given}")
        return given


@dataclass(frozen=True, slots=True)
class Pointer:
    """A buffer as one row of elements in memory order, from `offset` on."""

    buffer: Buffer
    offset: Expr

    def indices(self, index: ExprLike) -> tuple[Expr, ...]:
        """Give the indices of an element in the buffer's own dimensions."""
        rest: Expr = self.offset + as_index(index)
        if isinstance(self.buffer, DeclaredBuffer) and self.buffer.strides:
            return _by_strides(self.buffer, rest)
        found: list[Expr] = []
        for size in reversed(self.buffer.shape[1:]):
            found.append(rest % size)
            rest = rest // size
        return (rest, *reversed(found)) if self.buffer.shape else ()


def _by_strides(buffer: DeclaredBuffer, rest: Expr) -> tuple[Expr, ...]:
    """Take a place apart by strides, which must fall from one dimension to the next."""
    known = [step.value for step in buffer.strides if isinstance(step, IntImm)]
    if known != sorted(known, reverse=True) or min(known, default=1) < 1:
        raise ScheduleError(
            f"buffer {buffer.name} has strides {known}, by which no single index can be taken "
            f"apart; give {len(buffer.strides)} indices"
        )
    found: list[Expr] = []
    for step in buffer.strides:
        found.append(rest // step)
        rest = rest % step
    return tuple(found)


def as_index(value: ExprLike) -> Expr:
    """Turn an index or size into an int64 expression; ScheduleError where it is no integer."""
    x = as_expr(value)
    if not x.dtype.is_int or x.dtype.lanes > 1:
        raise ScheduleError(f"an index is an integer, not {x.dtype}")
    return cast(INT64, x)


def vector_index(buffer: Buffer, begin: Index, lanes: int) -> tuple[Expr, ...]:
    """Give the indices of `lanes` elements side by side; ScheduleError for a wrong number."""
    given = tuple(begin) if isinstance(begin, (tuple, list)) else (begin,)
    indices = tuple(as_index(i) for i in given)
    if len(indices) != len(buffer.shape):
        raise ScheduleError(
            f"buffer {buffer.name} has {len(buffer.shape)} dimensions, got {len(indices)} indices"
        )
    if lanes == 1:
        return indices
    last = indices[-1]
    return (*indices[:-1], Ramp(last, IntImm(1), lanes, last.dtype.with_lanes(lanes)))


def decl_buffer(
    shape: Shape,
    dtype: str | DType = FLOAT32,
    name: str = "buffer",
    *,
    strides: Sequence[ExprLike] | None = None,
    data_alignment: int = -1,
    offset_factor: int = 0,
    scope: str = "",
    elem_offset: object = None,
    buffer_type: str = "",
    data: object = None,
) -> DeclaredBuffer:
    """Declare a buffer for the body of an intrinsic or of `te.extern`.

    Alignment, offset and scope follow from the memory that the schedule chooses; what is said of
    them here is taken for a hope.
    """
    given = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    sizes = tuple(as_index(n) for n in given)
    steps = () if strides is None else tuple(as_index(n) for n in strides)
    if steps and len(steps) != len(sizes):
        raise ScheduleError(
            f"decl_buffer: {name} has {len(sizes)} dimensions but {len(steps)} strides"
        )
    return DeclaredBuffer(name, _dtype(dtype), sizes, "arg", strides=steps)


def _dtype(of: str | DType) -> DType:
    try:
        return dtype(of)
    except ValueError as error:
        raise ScheduleError(f"decl_buffer: {error}") from error
