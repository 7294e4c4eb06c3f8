"""Loop functions written by hand, for tests of passes."""

from __future__ import annotations

from dataclasses import dataclass

from farbench_compiler.ir.dtypes import dtype
from farbench_compiler.ir.expr import Buffer, Expr, IntImm, Load, Var
from farbench_compiler.ir.stmt import For, LoopFunction, LoopKind, Stmt, Store

F32 = dtype("float32")


@dataclass(frozen=True)
class Unit:
    """Vectors as the passes are told of them."""

    vector_bits: int = 256
    features: tuple[str, ...] = ("avx2",)


def array(name: str, *shape: int | Expr, of: str = "float32") -> Buffer:
    """Make an argument."""
    extents = tuple(IntImm(n) if isinstance(n, int) else n for n in shape)
    return Buffer(name, dtype(of), extents, "arg")


def read(buffer: Buffer, *indices: Expr) -> Load:
    """Read an element."""
    return Load(buffer, indices, buffer.dtype)


def write(buffer: Buffer, *indices: Expr, value: Expr) -> Store:
    """Write an element."""
    return Store(buffer, indices, value)


def loop(var: Var, extent: int | Expr, body: Stmt, kind: LoopKind = "serial") -> For:
    """Run from 0 on."""
    return For(var, IntImm(0), IntImm(extent) if isinstance(extent, int) else extent, kind, body)


def function(body: Stmt, *args: Buffer | Var, symbols: tuple[Var, ...] = ()) -> LoopFunction:
    """Make a function of a body."""
    return LoopFunction("f", args, symbols, body)
