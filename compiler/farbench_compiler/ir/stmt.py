"""Statements and functions of the loop IR.

    stmt ::= For(var, begin, extent, kind, body)    kind: serial parallel vectorized unrolled
           | Store(buffer, indices, value)          one element (a vector of them once vectorised)
           | IfThen(cond, then, otherwise)
           | Seq(stmts)
           | Allocate(buffer, body)                 the buffer lives while the body runs
           | Let(var, value, body)
           | Evaluate(value)
           | Prefetch(buffer, indices)              bring an element nearer; it need not be there
           | Require(cond, message)                 stop the call unless cond holds (debug builds)

    function ::= LoopFunction(name, args, symbols, body, constants)

`args` holds the caller's arguments in order: a `Buffer` (scope `arg`) or a `Var` (a scalar
parameter); `symbols` holds the size variables that are found from the shapes of the arrays. The
calling convention passes buffers in the order of `args`, then as 8-byte slots the symbols and the
scalar parameters, in that order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from farbench_compiler.ir.expr import Buffer, ConstBuffer, Expr, Var

LoopKind = Literal["serial", "parallel", "vectorized", "unrolled"]


class Stmt:
    """A statement."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class For(Stmt):
    """Run `body` with `var` = begin, ..., begin + extent - 1."""

    var: Var
    begin: Expr
    extent: Expr
    kind: LoopKind
    body: Stmt


@dataclass(frozen=True, slots=True, eq=False)
class Store(Stmt):
    """Write `value` to an element of `buffer`."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class IfThen(Stmt):
    """Run `then` where `cond` holds, else `otherwise`."""

    cond: Expr
    then: Stmt
    otherwise: Stmt | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Seq(Stmt):
    """Run statements one after the other."""

    stmts: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Allocate(Stmt):
    """Give `buffer` memory while `body` runs."""

    buffer: Buffer
    body: Stmt


@dataclass(frozen=True, slots=True, eq=False)
class Let(Stmt):
    """Bind `var` to `value` while `body` runs."""

    var: Var
    value: Expr
    body: Stmt


@dataclass(frozen=True, slots=True, eq=False)
class Evaluate(Stmt):
    """Compute a value and drop it."""

    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Prefetch(Stmt):
    """Bring the cache line of an element nearer; it changes nothing, wherever the element lies."""

    buffer: Buffer
    indices: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Require(Stmt):
    """Stop the call with a message unless `cond` holds; integers in the message are its values."""

    cond: Expr
    message: tuple[str | Expr, ...]

    @property
    def values(self) -> tuple[Expr, ...]:
        """The expressions in the message, in order."""
        return tuple(part for part in self.message if isinstance(part, Expr))


@dataclass(frozen=True, slots=True, eq=False)
class LoopFunction:
    """A function over buffers and scalars, as the calling convention passes them."""

    name: str
    args: tuple[Buffer | Var, ...]
    symbols: tuple[Var, ...]
    body: Stmt
    constants: tuple[ConstBuffer, ...] = ()

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The arguments that are arrays, in calling order."""
        return tuple(a for a in self.args if isinstance(a, Buffer))

    @property
    def scalars(self) -> tuple[Var, ...]:
        """The slots in calling order: size symbols, then scalar parameters that are not symbols."""
        extra = tuple(a for a in self.args if isinstance(a, Var) and a not in self.symbols)
        return self.symbols + extra

    def __str__(self) -> str:
        # Here and not above: what prints statements is built upon this file.
        from farbench_compiler.ir.printer import to_text

        return to_text(self)
