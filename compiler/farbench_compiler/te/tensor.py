"""Tensors: what an operation gives, to be read by index.

A tensor is a `Buffer` whose place in memory is not decided yet, and a read of it is an ordinary
`Load`; lowering replaces it by the memory that the schedule asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from farbench_compiler.errors import ScheduleError, ValueTypeError
from farbench_compiler.ir.dtypes import DType
from farbench_compiler.ir.expr import Buffer, Expr, ExprLike, Load, const
from farbench_compiler.ir.visit import walk
from farbench_compiler.te.axis import as_index

if TYPE_CHECKING:
    from farbench_compiler.te.operation import Operation

Indices = ExprLike | tuple[ExprLike, ...]


Operator = Callable[["Tensor", Any], "Tensor"]


def _operator(op: str, *, swapped: bool = False) -> Operator:
    def apply(self: Tensor, other: Any) -> Tensor:
        # Here and not above: what makes tensors of operators is built upon this file.
        from farbench_compiler.te import broadcast

        return broadcast.operator(op, *((other, self) if swapped else (self, other)))

    return apply


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Tensor(Buffer):
    """The value `value_index` of `op`; read as `A[i, j]`, `A(i, j)` or `A[i][j]`.

    Operators on whole tensors work element by element and broadcast as numpy's do; `==` and `!=`
    compare identity, so that tensors are found in lists and dicts.
    """

    op: Operation
    value_index: int = 0

    __add__ = _operator("add")
    __radd__ = _operator("add", swapped=True)
    __sub__ = _operator("sub")
    __rsub__ = _operator("sub", swapped=True)
    __mul__ = _operator("mul")
    __rmul__ = _operator("mul", swapped=True)
    __truediv__ = _operator("div")
    __rtruediv__ = _operator("div", swapped=True)
    __floordiv__ = _operator("floordiv")
    __rfloordiv__ = _operator("floordiv", swapped=True)
    __mod__ = _operator("floormod")
    __rmod__ = _operator("floormod", swapped=True)
    __and__ = _operator("bitand")
    __or__ = _operator("bitor")
    __xor__ = _operator("bitxor")
    __lshift__ = _operator("shl")
    __rshift__ = _operator("shr")
    __lt__ = _operator("lt")
    __le__ = _operator("le")
    __gt__ = _operator("gt")
    __ge__ = _operator("ge")

    def __neg__(self) -> Tensor:
        # From -0.0, so that the negative of 0.0 is -0.0.
        return const(-0.0 if self.dtype.is_float else 0, self.dtype) - self

    def astype(self, to: str | DType) -> Tensor:
        """Cast each element to `to`."""
        from farbench_compiler.te import broadcast

        return broadcast.combine(lambda x: x.astype(to), self, name="cast")

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def __call__(self, *indices: ExprLike) -> Expr:
        """Read the element at the given indices."""
        if len(indices) != self.ndim:
            raise ScheduleError(
                f"tensor {self.name} has {self.ndim} dimensions, got {len(indices)} indices"
            )
        return Load(self, tuple(as_index(i) for i in indices), self.dtype)

    # Any: whether it is an Expr or a TensorSlice depends on the rank, which no type here holds.
    def __getitem__(self, indices: Indices) -> Any:
        """Read an element, or fix the first indices and get a slice to index further."""
        return TensorSlice(self, ())[indices]

    def __iter__(self) -> Iterator[Expr]:
        # Without this Python would count indices up for ever.
        raise ValueTypeError(f"tensor {self.name} is not iterable; index it inside te.compute")

    def __repr__(self) -> str:
        return f"Tensor({self.name}, {self.dtype}, {self.ndim} dimensions)"


@dataclass(frozen=True, slots=True)
class TensorSlice:
    """A tensor with its first indices fixed."""

    tensor: Tensor
    indices: tuple[ExprLike, ...]

    def __getitem__(self, indices: Indices) -> Any:
        """Fix further indices; the element once all are given."""
        more = indices if isinstance(indices, tuple) else (indices,)
        got = (*self.indices, *more)
        if len(got) < self.tensor.ndim:
            return TensorSlice(self.tensor, got)
        return self.tensor(*got)

    @property
    def dtype(self) -> str:
        """The name of the element type."""
        return str(self.tensor.dtype)


def reads(*nodes: Expr) -> tuple[Load, ...]:
    """List the reads of tensors in expressions, in order, with repeats."""
    return tuple(
        n for node in nodes for n in walk(node) if isinstance(n, Load) and type(n.buffer) is Tensor
    )


def tensors_read(*nodes: Expr) -> tuple[Tensor, ...]:
    """List the tensors that expressions read, each once, in order of their first read."""
    return tuple(
        dict.fromkeys(load.buffer for load in reads(*nodes) if isinstance(load.buffer, Tensor))
    )
