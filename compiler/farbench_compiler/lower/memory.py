"""Memory of tensors: arguments, workspace, or the stack where it is small and constant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir.expr import Buffer, ConstBuffer, Expr, Load, Scope, binary, const
from farbench_compiler.lower.alignment import padded
from farbench_compiler.lower.buffering import Ring
from farbench_compiler.lower.nest import Nest
from farbench_compiler.lower.region import Part, constant
from farbench_compiler.te.attach import At
from farbench_compiler.te.tensor import Tensor

# What one step of a loop needs lives on the stack up to this size, which any thread has left.
STACK_BYTES = 4096
LOCAL_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Memory:
    """A buffer that holds a tensor from the element at `begin` on, its dimensions in `order`.

    Rows of the dimension of `ring` take the places of those that are needed no more.
    """

    buffer: Buffer
    begin: tuple[Expr, ...]
    order: tuple[int, ...]
    ring: Ring | None = None

    def place(self, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        """Turn indices of the tensor into indices of the buffer."""
        return tuple(self._within(d, indices[d]) for d in self.order)

    def _within(self, dim: int, index: Expr) -> Expr:
        if self.ring is not None and self.ring.dim == dim:
            return binary("floormod", index, self.ring.rows)
        return index - self.begin[dim]

    def load(self, indices: Sequence[Expr]) -> Load:
        """Read an element of the tensor."""
        return Load(self.buffer, self.place(indices), self.buffer.dtype)


def argument(tensor: Tensor, writable: bool, nontemporal: bool) -> Memory:
    """Make the memory of a tensor that the caller gives."""
    buffer = Buffer(
        tensor.name, tensor.dtype, tensor.shape, "arg", writable=writable, nontemporal=nontemporal
    )
    return Memory(buffer, tuple(const(0) for _ in tensor.shape), tuple(range(tensor.ndim)))


def embedded(tensor: Tensor, data: bytes) -> Memory:
    """Make the memory of a tensor that the library holds."""
    buffer = ConstBuffer(
        tensor.name, tensor.dtype, tensor.shape, "const", writable=False, data=data
    )
    return Memory(buffer, tuple(const(0) for _ in tensor.shape), tuple(range(tensor.ndim)))


def temporary(tensor: Tensor, nest: Nest, ring: Ring | None = None) -> Memory:
    """Make the memory of a tensor that is needed for a while, a ring of rows where one is given."""
    # An extern stage has no axes and gives its tensors whole.
    region = nest.region or tuple(Part(const(0), size) for size in tensor.shape)
    scope = _scope(tensor, nest, region)
    order = tuple(range(tensor.ndim))
    if scope == "local":
        # Vectors lie side by side in a tile that nobody outside sees, so that it fits registers.
        lanes = nest.vectorized_axis()
        order = tuple(sorted(order, key=lambda d: (d == lanes, d)))
    shape = padded(nest, order, [region[d].extent for d in order])
    begin = tuple(part.begin for part in region)
    return Memory(Buffer(tensor.name, tensor.dtype, shape, scope), begin, order, ring)


def _scope(tensor: Tensor, nest: Nest, region: Sequence[Part]) -> Scope:
    size = tensor.dtype.nbytes
    for part in region:
        extent = constant(part.extent)
        if extent is None:
            return _refuse(nest, "its size is not constant")
        size *= extent
    if nest.stage.scope == "local" and size > LOCAL_BYTES:
        return _refuse(nest, f"{size} bytes are more than the {LOCAL_BYTES} of the stack's share")
    small = isinstance(nest.stage.place(), At) and size <= STACK_BYTES
    return "local" if small or nest.stage.scope == "local" else "global"


def _refuse(nest: Nest, why: str) -> Scope:
    """Give the workspace, unless the schedule asks for the stack."""
    if nest.stage.scope == "local":
        raise ScheduleError(
            f"set_scope: stage {nest.stage.name} cannot be local: {why}; attach it with "
            "compute_at to an inner loop of a tile of constant size, or use the scope global"
        )
    return "global"
