"""Build a body statement by statement: loops, conditions, memory and values of its own.

ib = tir.ir_builder.create()
with ib.for_range(0, n, name="i") as i:
    out[i] = a[i] + 1.0
return ib.get()
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir.dtypes import DType, dtype
from farbench_compiler.ir.expr import (
    Buffer,
    Expr,
    ExprLike,
    Load,
    Scope,
    Var,
    as_expr,
    as_truth,
)
from farbench_compiler.ir.expr import cast as cast_to
from farbench_compiler.ir.stmt import (
    Allocate,
    Evaluate,
    For,
    IfThen,
    Let,
    LoopKind,
    Seq,
    Stmt,
    Store,
)
from farbench_compiler.tir.buffer import Pointer, as_index

_KINDS: tuple[LoopKind, ...] = ("serial", "parallel", "vectorized", "unrolled")
_OLD_KINDS = {"vectorize": "vectorized", "unroll": "unrolled"}


@dataclass(frozen=True, slots=True)
class BufferVar:
    """Memory to be read and written by index: `b[i]`, `b[i, j] = x`."""

    builder: IRBuilder
    pointer: Pointer

    @property
    def dtype(self) -> str:
        """The name of the element type."""
        return str(self.pointer.buffer.dtype)

    def __getitem__(self, index: ExprLike | tuple[ExprLike, ...]) -> Expr:
        """Read an element; one index of several dimensions counts in memory order."""
        buffer = self.pointer.buffer
        return Load(buffer, self._indices(index), buffer.dtype)

    def __setitem__(self, index: ExprLike | tuple[ExprLike, ...], value: ExprLike) -> None:
        buffer = self.pointer.buffer
        x = cast_to(buffer.dtype, as_expr(value, buffer.dtype))
        self.builder.emit(Store(buffer, self._indices(index), x))

    def _indices(self, index: ExprLike | tuple[ExprLike, ...]) -> tuple[Expr, ...]:
        buffer = self.pointer.buffer
        if not isinstance(index, tuple):
            return self.pointer.indices(index)
        if len(index) != len(buffer.shape):
            raise ScheduleError(
                f"buffer {buffer.name} has {len(buffer.shape)} dimensions, got {len(index)} indices"
            )
        return tuple(as_index(i) for i in index)


@dataclass(frozen=True, slots=True)
class _Scoped:
    """Memory or a value that lives as long as what follows in its sequence."""

    var: Var | None = None
    value: Expr | None = None
    buffer: Buffer | None = None


class IRBuilder:
    """Collects statements in the order in which they are made."""

    def __init__(self) -> None:
        self._open: list[list[Stmt | _Scoped]] = [[]]

    def emit(self, statement: Stmt | Expr) -> None:
        """Append a statement; an expression is computed and dropped."""
        made = Evaluate(statement) if isinstance(statement, Expr) else statement
        self._open[-1].append(made)

    @contextmanager
    def for_range(
        self,
        begin: ExprLike,
        end: ExprLike,
        name: str = "i",
        dtype: str = "int64",
        kind: str = "serial",
        for_type: str | None = None,
    ) -> Iterator[Var]:
        """Loop from `begin` to before `end`; loop variables are int64 whatever `dtype` says."""
        chosen = _OLD_KINDS.get(for_type or kind, for_type or kind)
        if chosen not in _KINDS:
            raise ScheduleError(f"for_range: no loop is {chosen}; there are {', '.join(_KINDS)}")
        var, first = Var(name), as_index(begin)
        self._open.append([])
        yield var
        body = _folded(self._open.pop())
        self.emit(For(var, first, as_index(end) - first, chosen, body))

    @contextmanager
    def if_scope(self, cond: ExprLike) -> Iterator[None]:
        """Run what is inside where the condition holds."""
        self._open.append([])
        yield
        self.emit(IfThen(as_truth(cond), _folded(self._open.pop())))

    @contextmanager
    def else_scope(self) -> Iterator[None]:
        """Run what is inside where the condition of the `if_scope` just before does not hold."""
        before = self._open[-1][-1] if self._open[-1] else None
        if not isinstance(before, IfThen) or before.otherwise is not None:
            raise ScheduleError("else_scope: it must follow an if_scope directly")
        self._open.append([])
        yield
        otherwise = _folded(self._open.pop())
        self._open[-1][-1] = IfThen(before.cond, before.then, otherwise)

    def let(self, name: str, value: ExprLike) -> Var:
        """Name a value for what follows."""
        x = as_expr(value)
        var = Var(name, x.dtype)
        self._open[-1].append(_Scoped(var=var, value=x))
        return var

    def allocate(
        self,
        dtype: str | DType,
        shape: Sequence[ExprLike] | ExprLike,
        name: str = "buf",
        scope: str = "local",
    ) -> BufferVar:
        """Take memory for what follows: `local` (the stack, constant size) or `global`."""
        if scope not in ("local", "global"):
            raise ScheduleError(f"allocate: {name} cannot be {scope}; use local or global")
        sizes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        buffer = Buffer(
            name, _dtype(dtype), tuple(as_index(n) for n in sizes), cast("Scope", scope)
        )
        self._open[-1].append(_Scoped(buffer=buffer))
        return self.buffer_ptr(buffer)

    def buffer_ptr(self, buffer: Buffer | Pointer) -> BufferVar:
        """Give a buffer in the form that is read and written by index."""
        return BufferVar(
            self, buffer if isinstance(buffer, Pointer) else Pointer(buffer, as_index(0))
        )

    def get(self) -> Stmt:
        """Give all that was built."""
        if len(self._open) > 1:
            raise ScheduleError("ir_builder: get stands inside of a loop or condition still open")
        return _folded(self._open[0])


def create() -> IRBuilder:
    """Start an empty body."""
    return IRBuilder()


def _dtype(of: str | DType) -> DType:
    try:
        return dtype(of)
    except ValueError as error:
        raise ScheduleError(f"allocate: {error}") from error


def _folded(parts: Sequence[Stmt | _Scoped]) -> Stmt:
    """Make one statement; what is scoped holds all that follows."""
    body: list[Stmt] = []
    for part in reversed(parts):
        if isinstance(part, Stmt):
            body.insert(0, part)
            continue
        rest = body[0] if len(body) == 1 else Seq(tuple(body))
        if part.buffer is not None:
            body = [Allocate(part.buffer, rest)]
        elif part.var is not None and part.value is not None:
            body = [Let(part.var, part.value, rest)]
    return body[0] if len(body) == 1 else Seq(tuple(body))
