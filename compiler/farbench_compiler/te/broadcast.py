"""Operators and functions on whole tensors: element by element, by numpy's broadcasting rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir import expr as ir
from farbench_compiler.ir.expr import Expr, IntImm
from farbench_compiler.ir.fold import BinaryOp, CompareOp
from farbench_compiler.ir.structural import same
from farbench_compiler.te.compute import compute
from farbench_compiler.te.tensor import Tensor

Function = TypeVar("Function", bound=Callable[..., Any])
TAG = "broadcast"


def combine(
    function: Callable[..., Any], *operands: Any, name: str = "elementwise", tag: str = TAG
) -> Tensor:
    """Apply a function of values to tensors and values, broadcast to one shape."""
    shape = broadcast_shapes(name, [x.shape for x in operands if isinstance(x, Tensor)])

    def element(*axes: Expr) -> Expr:
        given = [read_at(x, axes) if isinstance(x, Tensor) else x for x in operands]
        value: Expr = function(*given)
        return value

    return compute(shape, element, name=name, tag=tag)


def read_at(tensor: Tensor, axes: Sequence[Expr]) -> Expr:
    """Read the element that a tensor gives to a position of a shape that it is broadcast to."""
    own = axes[len(axes) - tensor.ndim :]
    places = [
        ir.const(0) if _is_one(size) else axis for axis, size in zip(own, tensor.shape, strict=True)
    ]
    # A tensor of size 1 gives its only element everywhere, also where the common size is 1.
    return tensor(*places)


def broadcast_shapes(name: str, shapes: Sequence[Sequence[Expr]]) -> tuple[Expr, ...]:
    """Join shapes, aligned at their ends: equal sizes stay, a size of 1 gives way to the other.

    A symbolic size is taken to equal the constant that it meets. ScheduleError names two sizes
    that do not go together.
    """
    joined: list[Expr] = []
    for place in range(1, max(map(len, shapes), default=0) + 1):
        sizes = [shape[-place] for shape in shapes if len(shape) >= place]
        size = sizes[0]
        for other in sizes[1:]:
            size = _joined(name, size, other, place)
        joined.append(size)
    return tuple(reversed(joined))


def _joined(name: str, a: Expr, b: Expr, place: int) -> Expr:
    if _is_one(b) or same(a, b):
        return a
    if _is_one(a):
        return b
    if isinstance(a, IntImm) == isinstance(b, IntImm):
        raise ScheduleError(
            f"{name}: dimension -{place} is {_text(a)} and {_text(b)}, which do not broadcast; "
            "make them equal or one of them 1"
        )
    return a if isinstance(a, IntImm) else b


def _is_one(size: Expr) -> bool:
    return isinstance(size, IntImm) and size.value == 1


def _text(size: Expr) -> str:
    return str(size.value) if isinstance(size, IntImm) else getattr(size, "name", "symbolic")


def lifted(function: Function) -> Function:
    """Let a function of values also take whole tensors, and give a tensor then."""

    @wraps(function)
    def call(*args: Any) -> Any:
        if any(isinstance(arg, Tensor) for arg in args):
            return combine(function, *args, name=function.__name__)
        return function(*args)

    return cast("Function", call)


def operator(op: str, a: Any, b: Any) -> Tensor:
    """Write an operator of Python between tensors and values."""
    return combine(_OPERATORS[op], a, b, name=op)


def binary(op: BinaryOp) -> Callable[[Any, Any], Expr]:
    """Give arithmetic as a function of two values."""
    return lambda a, b: ir.binary(op, a, b)


def comparison(op: CompareOp) -> Callable[[Any, Any], Expr]:
    """Give a comparison as a function of two values."""
    return lambda a, b: ir.compare(op, a, b)


_OPERATORS: dict[str, Callable[[Any, Any], Expr]] = {
    "div": ir.divide,
    "add": binary("add"),
    "sub": binary("sub"),
    "mul": binary("mul"),
    "floordiv": binary("floordiv"),
    "floormod": binary("floormod"),
    "bitand": binary("bitand"),
    "bitor": binary("bitor"),
    "bitxor": binary("bitxor"),
    "shl": binary("shl"),
    "shr": binary("shr"),
    "lt": comparison("lt"),
    "le": comparison("le"),
    "gt": comparison("gt"),
    "ge": comparison("ge"),
}
