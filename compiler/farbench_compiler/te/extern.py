"""Operations whose loops are written by hand: `te.extern` and what it makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir.dtypes import DType, dtype
from farbench_compiler.ir.expr import Expr, ExprLike
from farbench_compiler.ir.stmt import Stmt
from farbench_compiler.te.axis import as_index
from farbench_compiler.te.operation import ComputeOp
from farbench_compiler.te.reduction import Reduce
from farbench_compiler.te.tensor import Tensor
from farbench_compiler.tir.buffer import DeclaredBuffer, decl_buffer

Shape = Sequence[ExprLike]
Buffers = Sequence[DeclaredBuffer]


@dataclass(frozen=True, eq=False, repr=False)
class ExternOp(ComputeOp):
    """A statement that reads whole tensors and writes whole ones; it has no axes to schedule."""

    inputs: tuple[Tensor, ...] = ()
    in_buffers: tuple[DeclaredBuffer, ...] = ()
    out_buffers: tuple[DeclaredBuffer, ...] = ()
    statement: Stmt | None = None

    @cached_property
    def outputs(self) -> tuple[Tensor, ...]:
        """One tensor for each buffer that is written."""
        several = len(self.out_buffers) > 1
        return self.given or tuple(
            Tensor(f"{self.name}.v{i}" if several else self.name, b.dtype, b.shape, op=self,
                   value_index=i)
            for i, b in enumerate(self.out_buffers)
        )  # fmt: skip

    @property
    def reduction(self) -> Reduce | None:
        """None: what is summed up, the statement sums up."""
        return None

    @cached_property
    def input_tensors(self) -> tuple[Tensor, ...]:
        """The tensors that the statement reads, each once."""
        return tuple(dict.fromkeys(self.inputs))

    @property
    def buffers(self) -> tuple[tuple[Tensor, DeclaredBuffer], ...]:
        """Each tensor beside the buffer that stands for it in the statement."""
        both = (*self.inputs, *self.outputs), (*self.in_buffers, *self.out_buffers)
        return tuple(zip(*both, strict=True))

    def with_body(self, body: tuple[Expr, ...]) -> ComputeOp:
        """Refuse: there is no expression to be replaced."""
        raise ScheduleError(f"stage {self.name} is extern; its body cannot be rewritten")

    def reading(self, old: Tensor, new: Tensor) -> ExternOp:
        """Make the operation that reads `new` in place of `old` and gives the same tensors."""
        inputs = tuple(new if t is old else t for t in self.inputs)
        return replace(self, inputs=inputs, given=self.outputs)


def extern(
    shape: Shape | Sequence[Shape],
    inputs: Sequence[Tensor],
    fcompute: Callable[[Buffers, Buffers], Stmt],
    name: str = "extern",
    dtype: str | DType | Sequence[str | DType] | None = None,
    in_buffers: Sequence[DeclaredBuffer] | DeclaredBuffer | None = None,
    out_buffers: Sequence[DeclaredBuffer] | DeclaredBuffer | None = None,
    tag: str = "",
    attrs: Mapping[str, object] | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """Make tensors that `fcompute(ins, outs)` computes, as a statement of a `tir.ir_builder`.

    `shape` is one shape or a list of them, of one output each; `dtype` the same, by default that of
    the inputs. Gives the tensor, or all of them.
    """
    shapes = _shapes(name, shape)
    kinds = _dtypes(name, dtype, tuple(inputs), len(shapes))
    given = _buffers(name, in_buffers, [(t.name, t.shape, t.dtype) for t in inputs])
    wanted = [(name, sizes, of) for sizes, of in zip(shapes, kinds, strict=True)]
    made = _buffers(name, out_buffers, wanted)
    statement = fcompute(given, made)
    if not isinstance(statement, Stmt):
        raise ScheduleError(
            f"extern {name}: the function must give a statement, as ib.get() does, not "
            f"{statement!r}"
        )
    op = ExternOp(
        name, (), (), tag, dict(attrs or {}), inputs=tuple(inputs), in_buffers=given,
        out_buffers=made, statement=statement,
    )  # fmt: skip
    return op.outputs[0] if len(op.outputs) == 1 else op.outputs


def _shapes(name: str, shape: Shape | Sequence[Shape]) -> tuple[tuple[Expr, ...], ...]:
    several = len(shape) > 0 and all(isinstance(s, (tuple, list)) for s in shape)
    each = tuple(shape) if several else (shape,)
    made = tuple(tuple(as_index(n) for n in one) for one in each)  # type: ignore[arg-type, union-attr]
    if not made:
        raise ScheduleError(f"extern {name}: give the shape of at least one output")
    return made


def _dtypes(
    name: str,
    given: str | DType | Sequence[str | DType] | None,
    inputs: tuple[Tensor, ...],
    count: int,
) -> tuple[DType, ...]:
    if given is None:
        kinds = {t.dtype for t in inputs}
        if len(kinds) != 1:
            raise ScheduleError(f"extern {name}: the inputs have no one dtype; give dtype=")
        return tuple(kinds) * count
    each = (given,) * count if isinstance(given, (str, DType)) else tuple(given)
    if len(each) != count:
        raise ScheduleError(f"extern {name}: {len(each)} dtypes for {count} outputs")
    try:
        return tuple(dtype(one) for one in each)
    except ValueError as error:
        raise ScheduleError(f"extern {name}: {error}") from error


def _buffers(
    name: str,
    given: Sequence[DeclaredBuffer] | DeclaredBuffer | None,
    wanted: Sequence[tuple[str, tuple[Expr, ...], DType]],
) -> tuple[DeclaredBuffer, ...]:
    if given is None:
        return tuple(decl_buffer(sizes, of, called) for called, sizes, of in wanted)
    buffers = (given,) if isinstance(given, DeclaredBuffer) else tuple(given)
    if len(buffers) != len(wanted):
        raise ScheduleError(f"extern {name}: {len(buffers)} buffers for {len(wanted)} tensors")
    for buffer, (called, sizes, of) in zip(buffers, wanted, strict=True):
        if buffer.dtype != of or len(buffer.shape) != len(sizes):
            raise ScheduleError(
                f"extern {name}: buffer {buffer.name}, {buffer.dtype} of {len(buffer.shape)} "
                f"dimensions, cannot stand for {called}, {of} of {len(sizes)}"
            )
    return buffers
