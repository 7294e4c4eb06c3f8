"""Tensors: what an operation gives, to be read by index.

A tensor is a `Buffer` whose place in memory is not decided yet, and a read of it is an ordinary
`Load`; lowering replaces it by the memory that the schedule asks for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir.expr import Buffer, Expr, ExprLike, Load
from farbench_compiler.ir.visit import walk
from farbench_compiler.te.axis import as_index

if TYPE_CHECKING:
    from farbench_compiler.te.operation import Operation

Indices = ExprLike | tuple[ExprLike, ...]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Tensor(Buffer):
    """The value `value_index` of `op`; read as `A[i, j]`, `A(i, j)` or `A[i][j]`."""

    op: Operation
    value_index: int = 0

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
        raise TypeError(f"tensor {self.name} is not iterable; index it inside te.compute")

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
