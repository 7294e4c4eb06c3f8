"""Expressions of the loop IR as LLVM values.

Index arithmetic (what indexes a buffer, bounds a loop or compares such) is done in the machine's
word and does not overflow; every other value in its own dtype, wrapping.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from farbench_compiler.ir import dots
from farbench_compiler.ir.dtypes import BOOL, DType, int_range
from farbench_compiler.ir.expr import (
    Binary,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Compare,
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
from farbench_compiler.ir.interval import ANY, Interval, bounds
from farbench_compiler.ir.visit import free_vars, walk
from farbench_compiler.llvm import dots as native_dots
from farbench_compiler.llvm import intrinsics
from farbench_compiler.llvm.arithmetic import Arithmetic
from farbench_compiler.llvm.code import Code
from farbench_compiler.llvm.convert import convert
from farbench_compiler.llvm.memory import Memory, Place, alignment, constant_step
from farbench_compiler.llvm.types import constant, value_type

_NO_OVERFLOW = {"add": "add nsw", "sub": "sub nsw", "mul": "mul nsw"}
_UNSIGNED_DIVISION = {
    "floordiv": "udiv", "truncdiv": "udiv", "floormod": "urem", "truncmod": "urem",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rules:
    """What of a target matters for values.

    `wide_halves`: it rounds double to half at once. `fuse_vectors`: it has fused multiply-adds of
    float32 vectors, but LLVM does not contract to them by itself.
    """

    word_bits: int = 64
    wide_halves: bool = False
    fuse_vectors: bool = False
    fast_math: bool = False
    features: frozenset[str] = frozenset()


class Exprs:
    """Writes expressions of one function; knows the values of its variables and buffers."""

    def __init__(self, code: Code, rules: Rules) -> None:
        self.code = code
        self.word = DType("int", rules.word_bits)
        self.ops = Arithmetic(code, rules.fast_math)
        self.memory = Memory(code, value_type(self.word))
        self.pointers: dict[int, str] = {}
        self._vars: dict[int, tuple[str, DType]] = {}
        self._ranges: dict[Var, Interval] = {}
        self._written: list[dict[tuple[str, int], tuple[Expr, str]]] = [{}]
        self._wide_halves = rules.wide_halves
        self._fuse_vectors = rules.fuse_vectors
        self._features = rules.features
        self.mask: tuple[str, int] | None = None

    def bind(self, var: Var, value: str, of: DType | None = None, known: Interval = ANY) -> None:
        """Give a variable its value, held in dtype `of` (its own by default), and its range."""
        self._vars[var.uid] = (value, of or var.dtype)
        self._ranges[var] = known

    def rebind(self, var: Var, value: str, known: Interval) -> None:
        """Bind a variable that may have had another value: copies of a body bind one again."""
        if var.uid in self._vars:
            for written in self._written:
                for key in [k for k, (e, _) in written.items() if var in free_vars(e)]:
                    del written[key]
        self.bind(var, value, known=known)

    def held(self, var: Var) -> tuple[str, DType, Interval]:
        """Give what `bind` was told: the value, the dtype it is held in and its range."""
        return (*self._vars[var.uid], self._ranges[var])

    def bounds(self, e: Expr) -> tuple[int | None, int | None]:
        """Bound an integer expression by what is known of the variables."""
        return bounds(e, self._ranges).numbers

    def value(self, e: Expr) -> str:
        """Write an expression in its own dtype."""
        return _WRITERS[type(e)](self, e)

    def index(self, e: Expr) -> str:
        """Write an integer expression in the machine's word (a vector of words for lanes)."""
        if isinstance(e, IntImm):
            return str(e.value)
        if _is_index(e):
            return self._remember(("index", id(e)), e, lambda: self._in_word(e))
        to = self.word.with_lanes(e.dtype.lanes)
        if isinstance(e, Ramp):
            return self._ramp(self.index(e.base), self.index(e.stride), self.word, e.lanes)
        return convert(self.code, self.value(e), e.dtype, to, self._wide_halves)

    @contextmanager
    def region(self) -> Iterator[None]:
        """Write a part that does not always run: its values are not known behind it."""
        self._written.append({})
        yield
        self._written.pop()

    def _remember(self, key: tuple[str, int], e: Expr, write: Callable[[], str]) -> str:
        """Write a value that never changes, unless it is at hand already.

        Expressions that unrolling copied are one object; kept here, its id stays its own.
        """
        for known in self._written:
            if key in known:
                return known[key][1]
        value = write()
        self._written[-1][key] = (e, value)
        return value

    def address(self, buffer: Buffer, index: Expr) -> str:
        """Write the address of an element."""
        pointer = self.pointers[buffer.uid]

        def write() -> str:
            return self.memory.element(buffer, pointer, self.index(index))

        return self._remember((pointer, id(index)), index, write)

    def _in_word(self, e: Expr) -> str:
        to = self.word.with_lanes(e.dtype.lanes)
        match e:
            case IntImm(value, _):
                return str(value)
            case Var(_, _, uid):
                held, of = self._vars[uid]
                return convert(self.code, held, of, to, self._wide_halves)
            case Binary(op, a, b, _):
                x, y = self._in_word(a), self._in_word(b)
                plain = _NO_OVERFLOW.get(op) or self._unsigned(op, a, b)
                if plain is None:
                    return self.ops.binary(op, x, y, to)
                return self.code.value(f"{plain} {value_type(to)} {x}, {y}")
            case Ramp(base, stride, lanes, _):
                return self._ramp(self._in_word(base), self._in_word(stride), self.word, lanes)
            case Broadcast(value, _, _):
                return self._splat(self._in_word(value), to)
        return convert(self.code, self.value(e), e.dtype, to, self._wide_halves)

    def _unsigned(self, op: str, a: Expr, b: Expr) -> str | None:
        """Give the unsigned division that is the same where neither operand can be negative."""
        if op not in _UNSIGNED_DIVISION or a.dtype.lanes > 1:
            return None
        low, least = self.bounds(a)[0], self.bounds(b)[0]
        positive = low is not None and low >= 0 and least is not None and least > 0
        return _UNSIGNED_DIVISION[op] if positive else None

    def _fits_word(self, e: Expr) -> bool:
        """Tell whether index arithmetic gives the same in the machine's word."""
        if self.word.bits == 64:
            return True
        low, high = int_range(self.word)
        for node in walk(e):
            if isinstance(node, Expr) and node.dtype.is_int:
                least, most = self.bounds(node)
                if least is None or most is None or least < low or most > high:
                    return False
        return True

    def inside(self, buffer: Buffer, index: Expr) -> bool:
        """Prove that an access stays inside of its buffer, whatever lanes a mask leaves out."""
        (size,) = buffer.shape
        low, high = self.bounds(index)
        if not isinstance(size, IntImm) or low is None or high is None:
            return False
        return low >= 0 and high < size.value

    def place(self, buffer: Buffer, index: Expr, masked: bool) -> Place:
        """Find where the lanes of a vector access lie."""
        pointer, step = self.pointers[buffer.uid], constant_step(index)
        if isinstance(index, Ramp) and step is not None:
            lanes = self.index(index) if masked and step != 1 else ""
            first = self.address(buffer, index.base)
            return Place(buffer, first, pointer, step, lanes, alignment(buffer, index.base))
        return Place(buffer, "", pointer, None, self.index(index), buffer.dtype.nbytes)

    def masked(self, cond: str, lanes: int, write: Callable[[], str]) -> str:
        """Write a value of which only the lanes of `cond` count."""
        outer = self.mask
        bits = BOOL.with_lanes(lanes)
        joined = cond if outer is None else self.ops.binary("bitand", outer[0], cond, bits)
        self.mask = (joined, lanes)
        result = write()
        self.mask = outer
        return result

    def opposite(self, cond: str, lanes: int) -> str:
        """Write the negation of a truth value."""
        bits = BOOL.with_lanes(lanes)
        return self.ops.binary("bitxor", cond, constant(1, bits), bits)

    def _variable(self, e: Var) -> str:
        held, of = self._vars[e.uid]
        return convert(self.code, held, of, e.dtype, self._wide_halves)

    def _constant(self, e: IntImm | FloatImm) -> str:
        return constant(e.value, e.dtype)

    def _cast(self, e: Cast) -> str:
        return convert(self.code, self.value(e.value), e.value.dtype, e.dtype, self._wide_halves)

    def binary(self, e: Binary, reassociate: bool = False) -> str:
        """Write arithmetic; `reassociate` lets LLVM reorder this operation with its like."""
        if self._fuse_vectors and e.op in ("add", "sub") and e.dtype.lanes > 1:
            fused = self._fused(e)
            if fused is not None:
                return fused
        return self.ops.binary(e.op, self.value(e.a), self.value(e.b), e.dtype, reassociate)

    def _fused(self, e: Binary) -> str | None:
        """Write a product and its sum as one operation, where it is one."""
        of = e.dtype
        if not of.is_float or of.bits != 32:
            return None
        for product, other, first in ((e.a, e.b, True), (e.b, e.a, False)):
            if isinstance(product, Binary) and product.op == "mul":
                a, b, c = self.value(product.a), self.value(product.b), self.value(other)
                if e.op == "sub" and first:
                    c = self.code.value(f"fneg {value_type(of)} {c}")
                elif e.op == "sub":
                    a = self.code.value(f"fneg {value_type(of)} {a}")
                return self.code.intrinsic("llvm.fma", of, a, b, c)
        return None

    def _compare(self, e: Compare) -> str:
        of = e.a.dtype
        index = of.is_int and of.bits == 64 and _is_index(e.a) and _is_index(e.b)
        if index and self._fits_word(e.a) and self._fits_word(e.b):
            to = self.word.with_lanes(of.lanes)
            return self.ops.compare(e.op, self.index(e.a), self.index(e.b), to)
        return self.ops.compare(e.op, self.value(e.a), self.value(e.b), of)

    def _logic(self, e: Logic) -> str:
        op = "bitand" if e.op == "and" else "bitor"
        a, lanes = self.value(e.a), e.dtype.lanes
        if not any(isinstance(n, Load) for n in walk(e.b)):
            return self.ops.binary(op, a, self.value(e.b), e.dtype)
        # What the second condition reads may not be there where the first has decided.
        asks = a if e.op == "and" else self.opposite(a, lanes)
        if lanes > 1:
            b = self.masked(asks, lanes, lambda: self.value(e.b))
            return self.ops.binary(op, a, b, e.dtype)
        decided = constant(e.op == "or", e.dtype)
        return self._either(asks, lambda: self.value(e.b), lambda: decided, e.dtype)

    def _not(self, e: Not) -> str:
        return self.opposite(self.value(e.a), e.dtype.lanes)

    def _select(self, e: Select) -> str:
        cond, a, b = self.value(e.cond), self.value(e.a), self.value(e.b)
        return self.ops.select(cond, a, b, e.dtype, e.cond.dtype.lanes)

    def _if_then_else(self, e: IfThenElse) -> str:
        cond, lanes = self.value(e.cond), e.cond.dtype.lanes
        if lanes == 1:
            return self._either(cond, lambda: self.value(e.a), lambda: self.value(e.b), e.dtype)
        a = self.masked(cond, lanes, lambda: self.value(e.a))
        b = self.masked(self.opposite(cond, lanes), lanes, lambda: self.value(e.b))
        return self.ops.select(cond, a, b, e.dtype)

    def _either(
        self, cond: str, then: Callable[[], str], other: Callable[[], str], of: DType
    ) -> str:
        """Compute only the side that is chosen."""
        code = self.code
        yes, no, end = (code.label(hint) for hint in ("then", "else", "end"))
        code.branch(cond, yes, no)
        code.start(yes)
        with self.region():
            a, from_a = then(), code.block
        code.jump(end)
        code.start(no)
        with self.region():
            b, from_b = other(), code.block
        code.jump(end)
        code.start(end)
        return code.value(f"phi {value_type(of)} [{a}, %{from_a}], [{b}, %{from_b}]")

    def _call(self, e: Call) -> str:
        args = [self.value(arg) for arg in e.args]
        if e.name in dots.NAMES:
            return native_dots.call(self.code, e, args, self._features)
        return intrinsics.call(self.ops, e.name, args, e.args[0].dtype, e.dtype)

    def _load(self, e: Load) -> str:
        (index,) = e.indices
        free = self.mask is None or self.inside(e.buffer, index)
        if index.dtype.lanes > 1:
            mask = None if free or self.mask is None else self.mask[0]
            place = self.place(e.buffer, index, masked=mask is not None)
            return self.memory.load_lanes(place, e.dtype, mask)
        if free:
            return self._load_one(e, index)
        any_lane = self.any_lane()
        nothing = constant(0, e.dtype)
        return self._either(any_lane, lambda: self._load_one(e, index), lambda: nothing, e.dtype)

    def _load_one(self, e: Load, index: Expr) -> str:
        return self.memory.load(e.buffer, self.address(e.buffer, index))

    def any_lane(self) -> str:
        """Write whether any lane of the mask is set."""
        assert self.mask is not None
        mask, lanes = self.mask
        bits = value_type(BOOL.with_lanes(lanes))
        name = self.code.module.declare(f"llvm.vector.reduce.or.v{lanes}i1", "i1", (bits,))
        return self.code.value(f"call i1 @{name}({bits} {mask})")

    def _ramp_value(self, e: Ramp) -> str:
        return self._ramp(self.value(e.base), self.value(e.stride), e.dtype.scalar, e.lanes)

    def _ramp(self, base: str, stride: str, of: DType, lanes: int) -> str:
        vector, kind = of.with_lanes(lanes), value_type(of)
        steps = "<" + ", ".join(f"{kind} {lane}" for lane in range(lanes)) + ">"
        if stride != "1":
            splat = self._splat(stride, vector)
            steps = self.code.value(f"mul {value_type(vector)} {splat}, {steps}")
        return self.code.value(f"add {value_type(vector)} {self._splat(base, vector)}, {steps}")

    def _broadcast(self, e: Broadcast) -> str:
        if isinstance(e.value, (IntImm, FloatImm)):
            return constant(e.value.value, e.dtype)
        return self._splat(self.value(e.value), e.dtype)

    def _splat(self, value: str, of: DType) -> str:
        kind, scalar = value_type(of), value_type(of.scalar)
        if not value.startswith("%"):
            return f"splat ({scalar} {value})"
        one = self.code.value(f"insertelement {kind} poison, {scalar} {value}, i64 0")
        return self.code.value(
            f"shufflevector {kind} {one}, {kind} poison, <{of.lanes} x i32> zeroinitializer"
        )


def _is_index(e: Expr) -> bool:
    """Tell whether an expression is arithmetic on sizes and loop variables alone."""
    return all(
        isinstance(n, (Var, IntImm, Binary, Ramp, Broadcast)) and n.dtype.is_int for n in walk(e)
    )


_WRITERS: dict[type[Expr], Callable[..., str]] = {
    Var: Exprs._variable,
    IntImm: Exprs._constant,
    FloatImm: Exprs._constant,
    Cast: Exprs._cast,
    Binary: Exprs.binary,
    Compare: Exprs._compare,
    Logic: Exprs._logic,
    Not: Exprs._not,
    Select: Exprs._select,
    IfThenElse: Exprs._if_then_else,
    Call: Exprs._call,
    Load: Exprs._load,
    Ramp: Exprs._ramp_value,
    Broadcast: Exprs._broadcast,
}
