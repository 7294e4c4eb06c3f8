"""Operations that copy: what `cache_write` and `cache_read` put into a schedule."""

from __future__ import annotations

from collections.abc import Callable

from farbench_compiler.ir.expr import Expr, Load, Scope, Var, const
from farbench_compiler.ir.visit import map_children, substitute
from farbench_compiler.te.axis import IterVar, Range
from farbench_compiler.te.extern import ExternOp
from farbench_compiler.te.operation import ComputeOp
from farbench_compiler.te.tensor import Tensor

Indices = tuple[Expr, ...]


def write(op: ComputeOp, scope: Scope) -> tuple[ComputeOp, ComputeOp]:
    """Split an operation into one that computes and one that copies to the same tensors.

    The computing one keeps the reduce axes and gets data axes of its own; the copying one keeps
    the data axes.
    """
    fresh = tuple(IterVar(f"{iv.name}.c", dom=iv.domain) for iv in op.axis)
    to: dict[Var, Expr] = dict(zip(op.axis, fresh, strict=True))
    body = tuple(substitute(e, to) for e in op.body)
    cached = ComputeOp(f"{op.name}.{scope}", fresh, body, op.tag, op.attrs)
    return cached, op.with_body(tuple(tensor(*op.axis) for tensor in cached.outputs))


def read(tensor: Tensor, scope: Scope) -> ComputeOp:
    """Make the operation that copies a tensor."""
    names = [iv.name for iv in tensor.op.axis] or [f"ax{i}" for i in range(tensor.ndim)]
    axes = tuple(
        IterVar(name, dom=Range(const(0), size))
        for name, size in zip(names, tensor.shape, strict=True)
    )
    return ComputeOp(f"{tensor.name}.{scope}", axes, (tensor(*axes),))


def redirect(
    op: ComputeOp, old: Tensor, new: Tensor, at: Callable[[Indices], Indices] | None = None
) -> ComputeOp:
    """Make the operation that reads `new` wherever `op` reads `old`; `at` gives the new indices."""
    if isinstance(op, ExternOp):
        return op.reading(old, new)

    def on_expr(e: Expr) -> Expr:
        e = map_children(e, on_expr)
        if isinstance(e, Load) and e.buffer is old:
            return Load(new, e.indices if at is None else at(e.indices), e.dtype)
        return e

    return op.with_body(tuple(on_expr(e) for e in op.body))
