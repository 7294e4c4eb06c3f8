"""Declared intrinsics: what a piece of computation is, and the body that computes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir.expr import IntImm
from farbench_compiler.ir.stmt import Stmt
from farbench_compiler.te.operation import ComputeOp, Operation
from farbench_compiler.te.tensor import Tensor
from farbench_compiler.tir.buffer import DeclaredBuffer, decl_buffer

Buffers = Sequence[DeclaredBuffer]
Bodies = Stmt | tuple[Stmt | None, ...]


@dataclass(frozen=True, eq=False)
class TensorIntrin:
    """An intrinsic: `op` says what it computes, the statements how, on `buffers` of its tensors.

    `body` computes all; `reset` gives the initial value and `update` adds to it.
    """

    name: str
    op: ComputeOp
    buffers: tuple[tuple[Tensor, DeclaredBuffer], ...]
    body: Stmt | None
    reset: Stmt | None
    update: Stmt | None


def decl_tensor_intrin(
    op: Operation,
    fcompute: Callable[[Buffers, Buffers], Bodies],
    name: str = "tensor_intrin",
    binds: Mapping[Tensor, DeclaredBuffer] | None = None,
    scalar_params: object = None,
    default_buffer_params: Mapping[str, object] | None = None,
) -> TensorIntrin:
    """Declare an intrinsic that computes what `op` computes.

    `fcompute(ins, outs)` gets a buffer for each tensor and gives its body, or (body, reset,
    update), of which reset or update may be None where a reduction always fits inside.
    """
    if not isinstance(op, ComputeOp):
        raise ScheduleError(f"decl_tensor_intrin: {name} needs the operation of a te.compute")
    if scalar_params is not None:
        raise ScheduleError(f"decl_tensor_intrin: {name} cannot have scalar parameters")
    for axis in (*op.axis, *op.reduce_axis):
        if not isinstance(axis.domain.extent, IntImm):
            raise ScheduleError(
                f"decl_tensor_intrin: axis {axis.name} of {name} has no constant extent"
            )
    given, options = dict(binds or {}), dict(default_buffer_params or {})
    tensors = (*op.input_tensors, *op.outputs)
    buffers = tuple((t, given.get(t) or _buffer(t, options)) for t in tensors)
    for tensor, buffer in buffers:
        _check_bound(name, tensor, buffer)
    inputs = [buffer for _, buffer in buffers[: len(op.input_tensors)]]
    outputs = [buffer for _, buffer in buffers[len(op.input_tensors) :]]
    body, reset, update = _statements(name, fcompute(inputs, outputs))
    return TensorIntrin(name, op, buffers, body, reset, update)


def _buffer(tensor: Tensor, options: Mapping[str, object]) -> DeclaredBuffer:
    known = {"data_alignment", "offset_factor", "scope", "elem_offset", "buffer_type"}
    unknown = sorted(set(options) - known)
    if unknown:
        raise ScheduleError(f"decl_tensor_intrin: no buffer parameter {unknown[0]}")
    return decl_buffer(tensor.shape, tensor.dtype, tensor.name)


def _check_bound(name: str, tensor: Tensor, buffer: DeclaredBuffer) -> None:
    sizes = [
        [n.value if isinstance(n, IntImm) else None for n in b.shape] for b in (tensor, buffer)
    ]
    if tensor.dtype != buffer.dtype or sizes[0] != sizes[1]:
        raise ScheduleError(
            f"decl_tensor_intrin: {name} binds tensor {tensor.name}, {tensor.dtype}{sizes[0]}, to "
            f"buffer {buffer.name}, {buffer.dtype}{sizes[1]}"
        )


def _statements(name: str, made: Bodies) -> tuple[Stmt | None, Stmt | None, Stmt | None]:
    if isinstance(made, Stmt):
        return made, None, None
    parts = tuple(made) if isinstance(made, (tuple, list)) else ()
    fits = 1 <= len(parts) <= 3 and all(p is None or isinstance(p, Stmt) for p in parts)
    if not fits or all(p is None for p in parts):
        raise ScheduleError(
            f"decl_tensor_intrin: the body of {name} must be a statement, or (body, reset, update)"
        )
    body, reset, update = (*parts, None, None)[:3]
    return body, reset, update
