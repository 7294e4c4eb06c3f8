"""Expressions of the loop IR.

    expr  ::= Var(name, dtype)                      a loop variable, a size, a scalar parameter
            | IntImm(value, dtype) | FloatImm(value, dtype)       bool constants are IntImm
            | Cast(dtype, value)                    numpy's in range; saturates outside, NaN -> 0
            | Binary(op, a, b)                      op of BINARY_OPS; a and b of one dtype
            | Compare(op, a, b) | Logic(op, a, b) | Not(a)        bool
            | Select(cond, a, b)                    both sides are evaluated
            | IfThenElse(cond, a, b)                only the side that is chosen is evaluated
            | Call(name, args, dtype)               a pure intrinsic of INTRINSICS
            | Load(buffer, indices)                 an element (one index a dimension)
            | Ramp(base, stride, lanes) | Broadcast(value, lanes)     only after vectorising

Nodes are immutable; children are expressions or tuples of them. `a == b` builds a comparison whose
truth value is structural equality, so that expressions work as dict keys and in `in`.
`te` adds its own nodes (a read of a tensor, a reduction), which lowering takes away.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Union

from farbench_compiler.errors import ValueTypeError
from farbench_compiler.ir.dtypes import (
    BOOL,
    FLOAT32,
    INT32,
    INT64,
    DType,
    dtype,
    int_range,
    promote,
)
from farbench_compiler.ir.fold import BinaryOp, CompareOp, fold_compare, fold_int

LogicOp = Literal["and", "or"]

Scalar = int | float | bool
ExprLike = Union["Expr", int, float, bool]  # noqa: UP007 - a text has no `|`
Operator = Callable[["Expr", ExprLike], "Expr"]
Scope = Literal["arg", "const", "global", "local"]
_uids = itertools.count()


def fresh_uid() -> int:
    """Give a number that no variable and no buffer has yet."""
    return next(_uids)


def _operator(build: Operator) -> Operator:
    """Leave it to a buffer what an operator with it means: tensors have their own."""
    return lambda self, other: NotImplemented if isinstance(other, Buffer) else build(self, other)


def _left(op: BinaryOp) -> Operator:
    return _operator(lambda self, other: binary(op, self, other))


def _right(op: BinaryOp) -> Operator:
    return _operator(lambda self, other: binary(op, other, self))


def _against(op: CompareOp) -> Operator:
    return _operator(lambda self, other: compare(op, self, other))


class Expr:
    """An expression; arithmetic on it builds larger ones with numpy's promotion rules."""

    # What was found out of the tree below, which never changes: `memo` keeps it.
    __slots__ = ("_memo_key", "_memo_poly", "_memo_size", "_memo_vars")

    dtype: DType
    _memo_key: str
    _memo_poly: Any
    _memo_size: int
    _memo_vars: Any

    __add__ = _left("add")
    __radd__ = _right("add")
    __sub__ = _left("sub")
    __rsub__ = _right("sub")
    __mul__ = _left("mul")
    __rmul__ = _right("mul")
    __truediv__ = _operator(lambda self, other: divide(self, other))
    __rtruediv__ = _operator(lambda self, other: divide(other, self))
    __floordiv__ = _left("floordiv")
    __rfloordiv__ = _right("floordiv")
    __mod__ = _left("floormod")
    __rmod__ = _right("floormod")
    __and__ = _left("bitand")
    __or__ = _left("bitor")
    __xor__ = _left("bitxor")
    __lshift__ = _left("shl")
    __rshift__ = _left("shr")
    __lt__ = _against("lt")
    __le__ = _against("le")
    __gt__ = _against("gt")
    __ge__ = _against("ge")

    def __neg__(self) -> Expr:
        # From -0.0, so that the negative of 0.0 is -0.0.
        return binary("sub", const(-0.0 if self.dtype.is_float else 0, self.dtype), self)

    def __invert__(self) -> Expr:
        if self.dtype.is_bool:
            return Not(self)
        ones = int_range(self.dtype)[1] if self.dtype.kind == "uint" else -1
        return binary("bitxor", self, const(ones, self.dtype))

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        if not isinstance(other, (Expr, int, float)):
            return NotImplemented
        return compare("eq", self, other)

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        if not isinstance(other, (Expr, int, float)):
            return NotImplemented
        return compare("ne", self, other)

    def __hash__(self) -> int:
        return id(self)

    def __bool__(self) -> bool:
        raise ValueTypeError(
            "an expression has no truth value; use te.if_then_else, te.all or te.any, or & and |"
        )

    def astype(self, to: str | DType) -> Expr:
        """Cast to `to` (numpy's result in range; out of range saturates, NaN becomes 0)."""
        return cast(to, self)


@dataclass(frozen=True, slots=True, eq=False)
class Var(Expr):
    """A named value: a loop variable, a symbolic size, a scalar parameter. Unique by `uid`."""

    name: str
    dtype: DType = INT64
    uid: int = field(default_factory=fresh_uid)


@dataclass(frozen=True, slots=True, eq=False)
class IntImm(Expr):
    """An integer or truth-value constant."""

    value: int
    dtype: DType = INT64


@dataclass(frozen=True, slots=True, eq=False)
class FloatImm(Expr):
    """A floating-point constant (value held in double precision)."""

    value: float
    dtype: DType = FLOAT32


@dataclass(frozen=True, slots=True, eq=False)
class Cast(Expr):
    """`value` converted to `dtype`."""

    dtype: DType
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Binary(Expr):
    """Arithmetic on two values of one dtype; `div` is for floats only."""

    op: BinaryOp
    a: Expr
    b: Expr
    dtype: DType


@dataclass(frozen=True, slots=True, eq=False)
class Compare(Expr):
    """A comparison of two values of one dtype."""

    op: CompareOp
    a: Expr
    b: Expr
    dtype: DType = BOOL

    def __bool__(self) -> bool:
        from farbench_compiler.ir.structural import same

        if self.op == "eq":
            return same(self.a, self.b)
        if self.op == "ne":
            return not same(self.a, self.b)
        raise ValueTypeError("a comparison of expressions has no truth value; use te.if_then_else")


@dataclass(frozen=True, slots=True, eq=False)
class Logic(Expr):
    """Conjunction or disjunction of two truth values."""

    op: LogicOp
    a: Expr
    b: Expr
    dtype: DType = BOOL


@dataclass(frozen=True, slots=True, eq=False)
class Not(Expr):
    """Negation of a truth value."""

    a: Expr
    dtype: DType = BOOL


@dataclass(frozen=True, slots=True, eq=False)
class Select(Expr):
    """`a` where `cond`, else `b`; both sides are evaluated."""

    cond: Expr
    a: Expr
    b: Expr
    dtype: DType


@dataclass(frozen=True, slots=True, eq=False)
class IfThenElse(Expr):
    """`a` where `cond`, else `b`; the other side is not evaluated (guards loads)."""

    cond: Expr
    a: Expr
    b: Expr
    dtype: DType


@dataclass(frozen=True, slots=True, eq=False)
class Call(Expr):
    """A pure intrinsic, by a name of `INTRINSICS`."""

    name: str
    args: tuple[Expr, ...]
    dtype: DType


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """Memory of one dtype and a row-major shape.

    Scope `arg` comes from the caller, `const` from the library, `global` from the workspace,
    `local` from the stack (small and of constant size; it becomes registers where its indices are
    constant). What is `nontemporal` is written past the caches where the target can.
    """

    name: str
    dtype: DType
    shape: tuple[Expr, ...]
    scope: Scope = "global"
    alignment: int = 64
    writable: bool = True
    nontemporal: bool = False
    uid: int = field(default_factory=fresh_uid)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ConstBuffer(Buffer):
    """Memory of the library itself, whose elements are known when it is built (`data`, raw)."""

    data: bytes

    @property
    def symbol(self) -> str:
        """The name of the data in an object: equal data has one name."""
        return f"fbc_{hashlib.sha256(self.data).hexdigest()[:32]}"


@dataclass(frozen=True, slots=True, eq=False)
class Load(Expr):
    """An element of a buffer (a vector of them where an index is a vector)."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    dtype: DType


@dataclass(frozen=True, slots=True, eq=False)
class Ramp(Expr):
    """The vector base, base + stride, ... of `lanes` integers."""

    base: Expr
    stride: Expr
    lanes: int
    dtype: DType


@dataclass(frozen=True, slots=True, eq=False)
class Broadcast(Expr):
    """A vector of `lanes` copies of a scalar."""

    value: Expr
    lanes: int
    dtype: DType


def const(value: Scalar, to: str | DType = INT64) -> Expr:
    """Make a constant of a scalar dtype; ValueTypeError for what that cannot hold."""
    of = dtype(to)
    if not hasattr(value, "__float__"):  # a text, which Python's float and int would read
        raise ValueTypeError(f"{value!r} is no number")
    try:
        if of.is_float:
            return FloatImm(float(value), of)
        whole = int(value)
    except (TypeError, ValueError, OverflowError) as cause:
        raise ValueTypeError(f"no constant of {of} can be made of it: {cause}") from cause
    if not 0 <= whole <= 1:  # which nearly all are
        low, high = int_range(of)
        if not low <= whole <= high:
            raise ValueTypeError(f"{whole} does not fit {of}, which holds {low} to {high}")
    return IntImm(whole, of)


def as_expr(value: ExprLike, like: DType | None = None) -> Expr:
    """Turn a Python number into a constant, of dtype `like` where that can hold it."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, bool):
        return IntImm(int(value), like if like is not None else BOOL)
    if isinstance(value, int):
        return const(value, like if like is not None else INT64)
    if isinstance(value, float):
        fits = like is not None and like.is_float
        return FloatImm(value, like if fits and like is not None else FLOAT32)
    if getattr(value, "shape", None) == ():  # a numpy scalar, without importing numpy here
        return as_expr(value.item(), like)
    raise ValueTypeError(f"{value!r} is not an expression; give an Expr, an int, a float or a bool")


def unify(a: ExprLike, b: ExprLike) -> tuple[Expr, Expr]:
    """Bring two operands to one dtype; a Python number takes the other's, a float widens an int."""
    if isinstance(b, Expr):
        x, y = a if isinstance(a, Expr) else _beside(a, b.dtype), b
    else:
        x = as_expr(a)
        y = _beside(b, x.dtype)
    if x.dtype is y.dtype or x.dtype == y.dtype:
        return x, y
    # An index (of sizes and loop variables) beside a float is a number: it takes the float's dtype.
    if x.dtype.is_float and _is_index(y):
        return x, cast(x.dtype, y)
    if y.dtype.is_float and _is_index(x):
        return cast(y.dtype, x), y
    to = promote(x.dtype, y.dtype)
    return cast(to, x), cast(to, y)


def _beside(value: Scalar, of: DType) -> Expr:
    """Turn a Python number into a constant beside an expression of dtype `of`."""
    return as_expr(value, None if isinstance(value, float) and not of.is_float else of)


def _is_index(x: Expr) -> bool:
    if isinstance(x, Binary):
        return _is_index(x.a) and _is_index(x.b)
    return isinstance(x, (Var, IntImm)) and x.dtype == INT64


def cast(to: str | DType, value: ExprLike) -> Expr:
    """Convert to `to`; a constant is converted at once, an equal dtype is left alone."""
    of = dtype(to)
    x = as_expr(value)
    if x.dtype == of:
        return x
    if of.lanes == 1 and isinstance(x, IntImm) and not of.is_bool:
        if of.is_float:
            return FloatImm(float(x.value), of)
        low, high = int_range(of)
        if low <= x.value <= high:
            return IntImm(x.value, of)
    if of.lanes == 1 and isinstance(x, FloatImm) and of.is_float:
        return FloatImm(x.value, of)
    return Cast(of, x)


_RIGHT_NEUTRAL = frozenset(
    [*((op, 0) for op in ("add", "sub", "shl", "shr", "bitor", "bitxor"))]
    + [*((op, 1) for op in ("mul", "floordiv", "truncdiv"))]
)
_LEFT_NEUTRAL = frozenset([("add", 0), ("mul", 1)])


def binary(op: BinaryOp, a: ExprLike, b: ExprLike) -> Expr:
    """Build arithmetic on two operands, folding constants and neutral elements."""
    x, y = unify(a, b)
    if x.dtype.is_bool and op not in ("bitand", "bitor", "bitxor", "min", "max"):
        x, y = cast(INT32.with_lanes(x.dtype.lanes), x), cast(INT32.with_lanes(y.dtype.lanes), y)
    if x.dtype.is_float and op in ("bitand", "bitor", "bitxor", "shl", "shr"):
        raise ValueTypeError(f"{op} needs integers, got {x.dtype}")
    if not x.dtype.is_float and op == "div":
        raise ValueTypeError(f"div needs floats, got {x.dtype}; use // or astype")
    if isinstance(x, IntImm) and isinstance(y, IntImm):
        folded = fold_int(op, x.value, y.value, x.dtype)
        if folded is not None:
            return IntImm(folded, x.dtype)
    kept = _kept(op, x, y)
    return Binary(op, x, y, x.dtype) if kept is None else kept


def _kept(op: BinaryOp, x: Expr, y: Expr) -> Expr | None:
    """Give the operand or constant that an operation with 0 or 1 comes to; None: no such case."""
    if isinstance(y, IntImm):
        if (op, y.value) in _RIGHT_NEUTRAL:
            return x
        if op == "mul" and y.value == 0:
            return y
        if op in ("floormod", "truncmod") and y.value == 1:
            return IntImm(0, y.dtype)
    if isinstance(x, IntImm):
        if (op, x.value) in _LEFT_NEUTRAL:
            return y
        if op == "mul" and x.value == 0:
            return x
    return None


def divide(a: ExprLike, b: ExprLike) -> Expr:
    """Divide as `/` does: floats by true division, integers truncating (TVM's te meaning)."""
    x, y = unify(a, b)
    return binary("div" if x.dtype.is_float else "truncdiv", x, y)


def compare(op: CompareOp, a: ExprLike, b: ExprLike) -> Expr:
    """Build a comparison; two integer constants under an order fold (eq and ne stay nodes)."""
    x, y = unify(a, b)
    if isinstance(x, IntImm) and isinstance(y, IntImm) and op not in ("eq", "ne"):
        return IntImm(int(fold_compare(op, x.value, y.value)), BOOL)
    return Compare(op, x, y, BOOL.with_lanes(x.dtype.lanes))


def logic(op: LogicOp, a: ExprLike, b: ExprLike) -> Expr:
    """Build a conjunction or disjunction of truth values."""
    x, y = as_truth(a), as_truth(b)
    if isinstance(x, IntImm):
        return (y if x.value else x) if op == "and" else (x if x.value else y)
    if isinstance(y, IntImm):
        return (x if y.value else y) if op == "and" else (y if y.value else x)
    return Logic(op, x, y, BOOL.with_lanes(x.dtype.lanes))


def as_truth(value: ExprLike) -> Expr:
    """Turn a value into a truth value (nonzero is true)."""
    x = as_expr(value)
    return x if x.dtype.is_bool else compare("ne", x, const(0, x.dtype.scalar))
