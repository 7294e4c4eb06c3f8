"""The reference interpreter: runs a function of the loop IR on numpy arrays, slowly and plainly.

It says what the loop IR means. Expressions are turned into closures once and then run; scalar
integers are Python ints wrapped to their width, floats numpy scalars, vectors numpy arrays.
An index outside its buffer is an `InterpError`; allocated memory begins as junk, so that a read
before the first write shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from farbench_compiler.errors import CompilerError
from farbench_compiler.ir import interp_ops as ops
from farbench_compiler.ir.dtypes import DType
from farbench_compiler.ir.expr import (
    Binary,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Compare,
    ConstBuffer,
    Expr,
    FloatImm,
    IfThenElse,
    IntImm,
    Load,
    Logic,
    Not,
    Ramp,
    Select,
    Var,
)
from farbench_compiler.ir.stmt import (
    Allocate,
    Evaluate,
    For,
    IfThen,
    Let,
    LoopFunction,
    Prefetch,
    Require,
    Seq,
    Stmt,
    Store,
)

Env = dict[int, Any]
Value = Any
Run = Callable[[Env], None]
Eval = Callable[[Env], Value]


class InterpError(CompilerError):
    """A program that goes outside its buffers or does not fit its arguments."""


def run(fn: LoopFunction, args: Sequence[np.ndarray | int | float]) -> None:
    """Run a function on arguments in calling order; arrays that it writes change in place."""
    if len(args) != len(fn.args):
        raise InterpError(f"{fn.name} takes {len(fn.args)} arguments, got {len(args)}")
    env: Env = {}
    memory: dict[int, np.ndarray] = {}
    for arg, given in zip(fn.args, args, strict=True):
        if isinstance(arg, Var):
            env[arg.uid] = ops.scalar(given, arg.dtype)
        else:
            array = np.asarray(given)
            if array.ndim != len(arg.shape) or array.dtype != ops.numpy_dtype(arg.dtype):
                raise InterpError(
                    f"{fn.name}: argument {arg.name} is {array.dtype}{list(array.shape)}, "
                    f"expected {arg.dtype} with {len(arg.shape)} dimensions"
                )
            memory[arg.uid] = array
            _bind_sizes(arg, array, env)
    for constant in fn.constants:
        memory[constant.uid] = _elements(constant)
    with np.errstate(all="ignore"):
        _Compiler(memory).stmt(fn.body)(env)


def _bind_sizes(arg: Buffer, array: np.ndarray, env: Env) -> None:
    for size, n in zip(arg.shape, array.shape, strict=True):
        symbol = size.value if isinstance(size, Cast) else size
        if isinstance(symbol, Var):
            env.setdefault(symbol.uid, n)


def _elements(constant: ConstBuffer) -> np.ndarray:
    flat = np.frombuffer(constant.data, ops.numpy_dtype(constant.dtype))
    return flat.reshape([n.value for n in constant.shape if isinstance(n, IntImm)])


class _Compiler:
    """Turns nodes into closures over an environment of variables."""

    def __init__(self, memory: dict[int, np.ndarray]) -> None:
        self._memory = memory

    def stmt(self, s: Stmt) -> Run:
        """Compile a statement."""
        match s:
            case For():
                return self._loop(s)
            case Store():
                return self._store(s)
            case IfThen(cond, then, otherwise):
                return self._branch(cond, then, otherwise)
            case Seq(stmts):
                return self._sequence(stmts)
            case Allocate(buffer, body):
                return self._allocate(buffer, body)
            case Let(var, value, body):
                return self._let(var, value, body)
            case Evaluate(value):
                evaluate = self.expr(value)
                return lambda env: void(evaluate(env))
            case Prefetch():
                return void
            case Require():
                return self._require(s)
        raise TypeError(f"{type(s).__name__} is no statement of the loop IR")

    def _loop(self, s: For) -> Run:
        begin, extent, uid = self.expr(s.begin), self.expr(s.extent), s.var.uid
        body = self.stmt(s.body)

        def run(env: Env) -> None:
            first = begin(env)
            for value in range(first, first + extent(env)):
                env[uid] = value
                body(env)

        return run

    def _branch(self, cond: Expr, then: Stmt, otherwise: Stmt | None) -> Run:
        test, yes = self.expr(cond), self.stmt(then)
        no = self.stmt(otherwise) if otherwise is not None else void
        return lambda env: yes(env) if test(env) else no(env)

    def _require(self, s: Require) -> Run:
        test, values = self.expr(s.cond), [self.expr(value) for value in s.values]

        def run(env: Env) -> None:
            if not test(env):
                found = iter([value(env) for value in values])
                raise InterpError("".join(p if isinstance(p, str) else str(next(found))
                                          for p in s.message))  # fmt: skip

        return run

    def _sequence(self, stmts: tuple[Stmt, ...]) -> Run:
        parts = [self.stmt(s) for s in stmts]

        def run(env: Env) -> None:
            for part in parts:
                part(env)

        return run

    def _let(self, var: Var, value: Expr, body: Stmt) -> Run:
        evaluate, inner, uid = self.expr(value), self.stmt(body), var.uid

        def run(env: Env) -> None:
            env[uid] = evaluate(env)
            inner(env)

        return run

    def _allocate(self, buffer: Buffer, body: Stmt) -> Run:
        shape = [self.expr(n) for n in buffer.shape]
        inner, memory, of = self.stmt(body), self._memory, ops.numpy_dtype(buffer.dtype)

        def run(env: Env) -> None:
            # Values that no program computes: a read before the first write shows up.
            # An extent counted from sizes of 0 may come out negative: nothing is read there.
            size = [max(0, n(env)) for n in shape]
            memory[buffer.uid] = (
                np.frombuffer(bytes([0xA5]) * (int(np.prod(size)) * of.itemsize), of)
                .copy()
                .reshape(size)
            )
            inner(env)

        return run

    def _store(self, s: Store) -> Run:
        place, value, memory = self._place(s.buffer, s.indices), self.expr(s.value), self._memory
        uid = s.buffer.uid

        def run(env: Env) -> None:
            at = place(env)
            memory[uid][at] = value(env)

        return run

    def _load(self, e: Load) -> Eval:
        place, memory, uid = self._place(e.buffer, e.indices), self._memory, e.buffer.uid
        if e.dtype.lanes > 1 or e.dtype.is_float:
            return lambda env: memory[uid][place(env)]
        return lambda env: memory[uid][place(env)].item()

    def _place(self, buffer: Buffer, indices: tuple[Expr, ...]) -> Eval:
        """Compile indices, checked against the shape of the array in place."""
        parts, memory, uid = [self.expr(i) for i in indices], self._memory, buffer.uid

        def place(env: Env) -> tuple[Value, ...]:
            at = tuple(part(env) for part in parts)
            if len(at) > 1 and not isinstance(at[-1], int):
                at = _over_rows(at, memory[uid].shape)
            for i, n in zip(at, memory[uid].shape, strict=True):
                inside = 0 <= i < n if isinstance(i, int) else ((i >= 0) & (i < n)).all()
                if not inside:
                    raise InterpError(
                        f"index {at} is outside {buffer.name} of shape {memory[uid].shape}"
                    )
            return at

        return place

    def expr(self, e: Expr) -> Eval:
        """Compile an expression."""
        match e:
            case Var(_, _, uid):
                return lambda env: env[uid]
            case IntImm(value, dtype) | FloatImm(value, dtype):
                made = ops.scalar(value, dtype)
                return lambda env: made
            case Load():
                return self._load(e)
            case Cast(dtype, value):
                return self._cast(dtype, value)
            case Binary(op, a, b, dtype):
                return _apply2(ops.binary(op, dtype), self.expr(a), self.expr(b))
            case Compare(op, a, b, _):
                return _apply2(ops.COMPARE[op], self.expr(a), self.expr(b))
            case Logic(op, a, b, dtype):
                return self._logic(op, a, b, dtype)
            case Not(a, dtype):
                inner = self.expr(a)
                return (lambda env: not inner(env)) if dtype.lanes == 1 else lambda env: ~inner(env)
        return self._other(e)

    def _other(self, e: Expr) -> Eval:
        match e:
            case Select(cond, a, b, dtype) | IfThenElse(cond, a, b, dtype):
                return self._choice(e, cond, a, b)
            case Call(name, args, dtype):
                return self._call(name, args, dtype)
            case Ramp(base, stride, lanes, _):
                steps = np.arange(lanes)
                return _apply2(lambda x, y: x + y * steps, self.expr(base), self.expr(stride))
            case Broadcast(value, lanes, dtype):
                inner, of = self.expr(value), ops.numpy_dtype(dtype)
                return lambda env: np.full(lanes, inner(env), of)
        raise TypeError(f"{type(e).__name__} is no expression of the loop IR")

    def _cast(self, to: DType, value: Expr) -> Eval:
        inner, convert = self.expr(value), ops.cast(value.dtype, to)
        return lambda env: convert(inner(env))

    def _logic(self, op: str, a: Expr, b: Expr, dtype: DType) -> Eval:
        x, y = self.expr(a), self.expr(b)
        if dtype.lanes > 1:
            return _apply2(np.logical_and if op == "and" else np.logical_or, x, y)
        if op == "and":
            return lambda env: x(env) and y(env)
        return lambda env: x(env) or y(env)

    def _choice(self, e: Expr, cond: Expr, a: Expr, b: Expr) -> Eval:
        test, x, y = self.expr(cond), self.expr(a), self.expr(b)
        if cond.dtype.lanes > 1:
            return lambda env: np.where(test(env), x(env), y(env))
        if isinstance(e, Select):
            return lambda env: (x(env), y(env))[0 if test(env) else 1]
        return lambda env: x(env) if test(env) else y(env)

    def _call(self, name: str, args: tuple[Expr, ...], dtype: DType) -> Eval:
        parts, function = [self.expr(a) for a in args], ops.call(name, args[0].dtype)
        return lambda env: function(*(part(env) for part in parts))


def _over_rows(at: tuple[Value, ...], shape: tuple[int, ...]) -> tuple[Value, ...]:
    """Let lanes that leave the last dimension go on in the next row, as they do in memory."""
    rows = [at[-1]]
    for size in shape[:0:-1]:
        over, rows[0] = rows[0] // size, rows[0] % size
        rows.insert(0, over)
    return (*(a + r for a, r in zip(at[:-1], rows, strict=False)), rows[-1])


def _apply2(function: Callable[[Value, Value], Value], x: Eval, y: Eval) -> Eval:
    return lambda env: function(x(env), y(env))


def void(_: object) -> None:
    """Do nothing."""
