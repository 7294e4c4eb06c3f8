"""Random programs of one to four stages, with what numpy says of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from farbench_compiler import te
from farbench_compiler.ir.bfloat import to_bfloat16
from farbench_compiler.ir.dtypes import dtype
from farbench_compiler.ir.expr import Expr, Var, cast, compare, const
from farbench_compiler.ir.interp_ops import numpy_dtype
from farbench_compiler.ir.printer import to_text

from .values import (
    BINARY,
    CLASSES,
    COMPARE,
    EXACT,
    FLOAT_BINARY,
    FLOAT_UNARY,
    FLOATS,
    INTEGER_UNARY,
    INTEGERS,
    Env,
    Node,
    Numpy,
    Te,
    Value,
    clamped,
    converted,
    is_float,
    number,
    odd,
    one,
    quotient,
    two,
)

Array = NDArray[Any]
REDUCTIONS = ("sum", "max", "min", "prod", "argmax")


@dataclass(frozen=True)
class Source:
    """A tensor that may be read: its number, its dtype and which size each dimension has."""

    at: int
    dtype: str
    dims: tuple[int, ...]


@dataclass(frozen=True)
class StagePlan:
    """A stage: sizes of its axes and reduce axes, what it computes, how that is reduced."""

    dims: tuple[int, ...]
    reduced: tuple[int, ...]
    body: Node
    reduction: str | None
    where: Node | None


@dataclass(frozen=True)
class Program:
    """A program and its inputs; `expected` are the arrays of its outputs."""

    inputs: tuple[te.Tensor, ...]
    outputs: tuple[te.Tensor, ...]
    arrays: tuple[Array, ...]
    expected: tuple[Array, ...]
    sizes: dict[Var, int]

    @property
    def args(self) -> list[te.Tensor | Var]:
        """The arguments: sizes, inputs, outputs."""
        return [*self.sizes, *self.inputs, *self.outputs]

    def __repr__(self) -> str:
        lines = [f"{t.name} = placeholder({a.shape}, {a.dtype})"
                 for t, a in zip(self.inputs, self.arrays, strict=True)]  # fmt: skip
        ops: dict[te.ComputeOp, None] = {}
        todo = [t.op for t in self.outputs]
        while todo:
            op = todo.pop()
            if isinstance(op, te.ComputeOp):
                ops.setdefault(op)
                todo += [t.op for t in op.input_tensors]
        for op in reversed(ops):
            shape = ", ".join(to_text(n) for n in op.output(0).shape)
            lines += [f"{op.name}({shape}) = {e!r}" for e in op.body]
        return "\n".join(lines)


class _Maker:
    """Draws the parts of a program."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        symbolic = rng.random() < 0.4
        self.numbers = (rng.randint(1, 7), rng.randint(1, 7), rng.choice((2, 3)))
        names = (te.var("n"), te.var("m"))
        self.sizes: tuple[Expr | int, ...] = (*names, self.numbers[2]) if symbolic else self.numbers
        self.dtypes = [rng.choice((*INTEGERS, *FLOATS)) for _ in range(2)] + ["int32"]
        self.sources: list[Source] = []

    def index(self, size: int, loops: Sequence[int], depth: int) -> tuple[Node, Node | None]:
        """Draw an index that is inside of a dimension, and the condition that keeps it there."""
        rng = self.rng
        at = rng.randrange(len(loops))
        alike = [i for i, loop in enumerate(loops) if loop == size]
        by = rng.randint(1, 3)
        if alike and rng.random() < 0.8:
            at = rng.choice(alike)
            kind = rng.choice(("same", "same", "same", "reversed", "turned", "shifted", "clipped"))
        else:
            kind = rng.choice(("turned", "clipped", "first", "gathered", "halved"))
        if kind == "gathered" and (depth < 1 or not self.sources):
            kind = "first"

        def position(env: Env) -> Value:
            i, n = env.loops[at], env.sizes[size]
            match kind:
                case "same":
                    return i
                case "reversed":
                    return n - 1 - i
                case "turned":
                    return (i + by) % n
                case "shifted":
                    return i - by
                case "clipped":
                    return env.ops.binary("min", i + by, n - 1)
                case "halved":
                    return (i // 2) % n
            return i * 0

        node = Node("int64", 0, position)
        if kind == "gathered":
            drawn = converted(self.integer(loops, depth - 1), "int64")
            mod = Node("int64", 0, lambda env: env.ops.cast(drawn.evaluate(env), "int64")
                       % env.sizes[size])  # fmt: skip
            return mod, None
        cond = Node("bool", 0, lambda env: position(env) >= 0)
        return node, cond if kind == "shifted" else None

    def integer(self, loops: Sequence[int], depth: int) -> Node:
        return self.expr(self.rng.choice(("int32", "int8", "uint16", "int64")), loops, depth)

    def read(self, loops: Sequence[int], depth: int) -> Node:
        source = self.rng.choice(self.sources[-3:] if self.rng.random() < 0.7 else self.sources)
        places = [self.index(size, loops, depth) for size in source.dims]

        def value(env: Env) -> Value:
            at = [where.evaluate(env) for where, _ in places]
            cond = None
            for _, inside in places:
                if inside is not None:
                    this = inside.evaluate(env)
                    cond = this if cond is None else (
                        te.all(cond, this) if isinstance(env.ops, Te) else cond & this
                    )  # fmt: skip
            return env.ops.read(env.tensors[source.at], at, cond)

        return Node(source.dtype, EXACT.get(source.dtype, 0) // 16, value)

    def leaf(self, of: str, loops: Sequence[int], depth: int) -> Node:
        kind = self.rng.random()
        if kind < 0.75:
            return converted(self.read(loops, depth), of)
        if kind < 0.9:
            return number(self.rng.randint(0, 7), of)
        at = self.rng.randrange(len(loops))
        var = Node("int64", 0, lambda env: env.loops[at] + (
            0 if isinstance(env.ops, Te) else np.int64(0)))  # fmt: skip
        return converted(var, of)

    def condition(self, loops: Sequence[int], depth: int) -> Node:
        of = self.rng.choice(self.dtypes)
        if is_float(of) and self.rng.random() < 0.1:
            return one(self.rng.choice(CLASSES), self.expr(of, loops, depth - 1))
        op = self.rng.choice(COMPARE)
        a, b = self.expr(of, loops, depth - 1), self.expr(of, loops, depth - 1)
        return Node("bool", 1, lambda env: env.ops.compare(op, a.evaluate(env), b.evaluate(env)))

    def expr(self, of: str, loops: Sequence[int], depth: int) -> Node:
        rng = self.rng
        if of == "bool":
            return self.condition(loops, depth)
        if depth <= 0 or rng.random() < 0.2:
            return self.leaf(of, loops, depth)
        kind = rng.random()
        if kind < 0.08:
            op = rng.choice(FLOAT_UNARY if is_float(of) else INTEGER_UNARY)
            return converted(one(op, self.expr(of, loops, depth - 1)), of)
        if kind < 0.55:
            op = rng.choice(FLOAT_BINARY if is_float(of) else BINARY)
            if op == "div":
                return quotient(self.expr(of, loops, depth - 1), rng.randint(1, 7))
            a, b = self.expr(of, loops, depth - 1), self.expr(of, loops, depth - 1)
            return two(op, a, odd(b) if "div" in op or "mod" in op else b)
        if kind < 0.7:
            other = rng.choice(self.dtypes)
            return converted(self.expr(other, loops, depth - 1), of)
        if kind < 0.78 and not is_float(of):
            op, by = rng.choice(("shl", "shr")), rng.randrange(int(dtype(of).bits))
            shifted = self.expr(of, loops, depth - 1)
            return Node(of, 0, lambda env: env.ops.shift(op, shifted.evaluate(env), by))
        if kind < 0.83:
            return converted(self.condition(loops, depth - 1), of)
        cond = self.condition(loops, depth - 1)
        x, y = self.expr(of, loops, depth - 1), self.expr(of, loops, depth - 1)
        lazy = rng.random() < 0.5
        return Node(of, max(x.magnitude, y.magnitude), lambda env: env.ops.choose(
            cond.evaluate(env), x.evaluate(env), y.evaluate(env), lazy=lazy))  # fmt: skip

    def stage(self) -> StagePlan:
        rng = self.rng
        dims = tuple(rng.randrange(3) for _ in range(rng.choice((1, 2, 2, 3))))
        reduced: tuple[int, ...] = ()
        reduction = None
        if rng.random() < 0.4:
            reduced = tuple(rng.randrange(3) for _ in range(rng.choice((1, 1, 2))))
            reduction = rng.choice(REDUCTIONS if len(reduced) == 1 else REDUCTIONS[:4])
        of = rng.choice(self.dtypes)
        if reduction in ("prod", "argmax") and is_float(of):
            of = "int32"
        if reduction is None and rng.random() < 0.1:
            of = "bool"
        body = self.expr(of, (*dims, *reduced), rng.randint(1, 3))
        if is_float(of):
            count = 1
            for size in reduced:
                count *= self.numbers[size]
            body = clamped(body, max(1, EXACT[of] // 16 // count))
        where = None
        fits = reduction in ("max", "min") and is_float(of)  # would begin with infinity
        if reduction not in (None, "argmax") and not fits and rng.random() < 0.2:
            where = self.condition((*dims, *reduced), 1)
        return StagePlan(dims, reduced, body, reduction, where)


def _greatest(lhs: Any, rhs: Any) -> Any:
    """Keep the greater value and its place; of equal ones the first."""
    tie = te.all(compare("eq", lhs[1], rhs[1]), lhs[0] <= rhs[0])
    better = te.any(lhs[1] > rhs[1], tie)
    return te.select(better, lhs[0], rhs[0]), te.select(better, lhs[1], rhs[1])


argmax = te.comm_reducer(
    _greatest, lambda _, value: (const(2**31 - 1, "int32"), te.min_value(value)), name="argmax"
)


def _as_te(plan: StagePlan, name: str, env: Env) -> tuple[te.Tensor, ...]:
    sizes = env.sizes
    axes = [te.reduce_axis((0, sizes[s]), name=f"r{i}") for i, s in enumerate(plan.reduced)]

    def element(*loops: te.IterVar) -> Any:
        here = Env(env.ops, env.tensors, (*loops, *axes), sizes)
        value = plan.body.evaluate(here)
        if plan.reduction is None:
            return value
        if plan.reduction == "argmax":
            return argmax((cast("int32", axes[0]), value), axis=axes)
        where = None if plan.where is None else plan.where.evaluate(here)
        return getattr(te, plan.reduction)(value, axis=axes, where=where)

    made = te.compute(tuple(sizes[s] for s in plan.dims), element, name=name)
    return made if isinstance(made, tuple) else (made,)


def _as_numpy(plan: StagePlan, env: Env) -> tuple[Array, ...]:
    shape = [int(env.sizes[s]) for s in (*plan.dims, *plan.reduced)]  # type: ignore[arg-type]
    grid = np.indices(shape, np.int64)
    here = Env(env.ops, env.tensors, tuple(grid), env.sizes)
    value = np.broadcast_to(plan.body.evaluate(here), shape)
    rank = len(plan.dims)
    if plan.reduction is None:
        return (value,)
    rows = value.reshape(*shape[:rank], -1)
    if plan.reduction == "argmax":
        at = rows.argmax(axis=-1)
        return at.astype(np.int32), rows.max(axis=-1)
    identity: Any = 0 if plan.reduction == "sum" else 1
    if plan.reduction in ("max", "min") and rows.dtype.kind != "f":
        limits = np.iinfo(rows.dtype)
        identity = limits.min if plan.reduction == "max" else limits.max
    if plan.where is not None:
        kept = np.broadcast_to(plan.where.evaluate(here), shape).reshape(rows.shape)
        rows = np.where(kept, rows, np.asarray(identity, rows.dtype))
    function: Any = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}[plan.reduction]
    kwargs = {"dtype": rows.dtype} if plan.reduction in ("sum", "prod") else {}
    return (np.asarray(function(rows, axis=-1, **kwargs)),)


def stored(value: Array, of: str) -> Array:
    """Round to the dtype that a tensor holds."""
    if of == "bfloat16":
        return to_bfloat16(np.asarray(value, np.float32))
    return np.asarray(value).astype(numpy_dtype(dtype(of)))


def _array(rng: Random, of: str, shape: tuple[int, ...]) -> Array:
    draw = np.random.default_rng(rng.getrandbits(32))
    if is_float(of):
        return stored(draw.integers(-7, 8, shape), of)
    info = np.iinfo(of)
    if rng.random() < 0.5:
        return draw.integers(max(info.min, -9), 10, shape).astype(of)
    return draw.integers(info.min, info.max, shape, dtype=of, endpoint=True)


def random_program(rng: Random) -> Program:
    """Draw a program: inputs, one to four stages, the last of which are its outputs."""
    maker = _Maker(rng)
    tensors: list[te.Tensor] = []
    arrays: list[Array] = []
    for i in range(rng.randint(1, 2)):
        dims = tuple(rng.randrange(3) for _ in range(rng.choice((1, 2, 2))))
        of = rng.choice(maker.dtypes)
        shape = tuple(maker.numbers[s] for s in dims)
        tensors.append(te.placeholder([maker.sizes[s] for s in dims], of, name=f"X{i}"))
        arrays.append(_array(rng, of, shape))
        maker.sources.append(Source(i, of, dims))
    inputs, given = tuple(tensors), tuple(arrays)
    made: list[tuple[te.Tensor, ...]] = []
    for i in range(rng.randint(1, 4)):
        plan = maker.stage()
        made.append(_as_te(plan, f"S{i}", Env(Te(), tensors, (), maker.sizes)))
        values = _as_numpy(plan, Env(Numpy(), arrays, (), maker.numbers))
        for tensor, value in zip(made[-1], values, strict=True):
            maker.sources.append(Source(len(tensors), str(tensor.dtype), plan.dims))
            tensors.append(tensor)
            arrays.append(stored(value, str(tensor.dtype)))
    outputs = made[-1]
    expected = tuple(arrays[-len(outputs) :])
    used = _read_by(outputs)
    kept = [i for i, t in enumerate(inputs) if t in used]
    sizes = {n: value for n, value in zip(maker.sizes, maker.numbers, strict=True)
             if isinstance(n, Var)}  # fmt: skip
    return Program(
        tuple(inputs[i] for i in kept), outputs, tuple(given[i] for i in kept), expected, sizes
    )


def _read_by(outputs: Sequence[te.Tensor]) -> list[te.Tensor]:
    found: list[te.Tensor] = []
    todo = [t.op for t in outputs]
    while todo:
        for tensor in todo.pop().input_tensors:
            if tensor not in found:
                found.append(tensor)
                todo.append(tensor.op)
    return found
