"""Give every buffer one dimension: rows behind each other, the last index moving fastest."""

from __future__ import annotations

from dataclasses import replace

from farbench_compiler.ir.dtypes import INT64
from farbench_compiler.ir.expr import (
    Buffer,
    ConstBuffer,
    Expr,
    IntImm,
    Load,
    Ramp,
    Var,
    binary,
    cast,
)
from farbench_compiler.ir.interval import Interval
from farbench_compiler.ir.simplify import Simplifier
from farbench_compiler.ir.stmt import Allocate, For, Let, LoopFunction, Prefetch, Stmt, Store
from farbench_compiler.ir.visit import map_children


def flatten(fn: LoopFunction) -> LoopFunction:
    """Rewrite all loads and stores to one int64 index, and shapes to one extent."""
    ranges = {symbol: Interval(0, None) for symbol in fn.symbols}
    flattener = _Flattener(Simplifier(ranges))
    args = tuple(flattener.buffer(arg) if isinstance(arg, Buffer) else arg for arg in fn.args)
    constants = tuple(flattener.constant(c) for c in fn.constants)
    return replace(fn, args=args, constants=constants, body=flattener.stmt(fn.body))


class _Flattener:
    def __init__(self, simplifier: Simplifier) -> None:
        self._simplifier = simplifier
        self._made: dict[int, Buffer] = {}

    def buffer(self, buffer: Buffer) -> Buffer:
        made = self._made.get(buffer.uid)
        if made is None:
            size = self._simplifier.expr(_product(buffer.shape))
            made = self._made[buffer.uid] = replace(buffer, shape=(size,))
        return made

    def constant(self, buffer: ConstBuffer) -> ConstBuffer:
        made = self.buffer(buffer)
        assert isinstance(made, ConstBuffer)
        return made

    def _index(self, buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[Expr]:
        total: Expr = IntImm(0)
        step: Expr = IntImm(0)
        lanes = 1
        for index, extent in zip(indices, buffer.shape, strict=True):
            size = cast(INT64, extent)
            if isinstance(index, Ramp):  # of a declared intrinsic: lanes along one dimension
                lanes, step, index = index.lanes, cast(INT64, index.stride), index.base
            elif lanes > 1:
                step = binary("mul", step, size)
            total = binary("add", binary("mul", total, size), cast(INT64, index))
        total = self._simplifier.expr(total)
        if lanes == 1:
            return (total,)
        return (Ramp(total, self._simplifier.expr(step), lanes, INT64.with_lanes(lanes)),)

    def expr(self, e: Expr) -> Expr:
        e = map_children(e, self.expr)
        if isinstance(e, Load):
            return Load(self.buffer(e.buffer), self._index(e.buffer, e.indices), e.dtype)
        return e

    def stmt(self, s: Stmt) -> Stmt:
        match s:
            case Store(buffer, indices, value):
                where = tuple(self.expr(index) for index in indices)
                return Store(self.buffer(buffer), self._index(buffer, where), self.expr(value))
            case Prefetch(buffer, indices):
                where = tuple(self.expr(index) for index in indices)
                return Prefetch(self.buffer(buffer), self._index(buffer, where))
            case Allocate(buffer, body):
                return Allocate(self.buffer(buffer), self.stmt(body))
            case For(var, begin, extent, _, _):
                last = binary("sub", binary("add", begin, extent), 1)
                return self._below(s, {var: Interval(begin, last)})
            case Let(var, _, _):
                return self._below(s, {var: Interval()})
        return map_children(s, self.expr, self.stmt)

    def _below(self, s: Stmt, ranges: dict[Var, Interval]) -> Stmt:
        outer, self._simplifier = self._simplifier, self._simplifier.under(ranges)
        s = map_children(s, self.expr, self.stmt)
        self._simplifier = outer
        return s


def _product(shape: tuple[Expr, ...]) -> Expr:
    size: Expr = IntImm(1)
    for extent in shape:
        size = binary("mul", size, cast(INT64, extent))
    return size
