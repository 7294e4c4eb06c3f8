"""Operations: where tensors come from.

    operation ::= PlaceholderOp(name, shape, dtype)         the caller gives it
                | ConstantOp(name, shape, dtype, data)      the library holds it
                | ComputeOp(name, axis, body)               one expression an element and output

Operations never change. A schedule that rewrites one (a cache, later a rfactor) makes another that
gives the same tensors, so that whoever reads them need not be rewritten.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir.dtypes import DType
from farbench_compiler.ir.expr import Expr
from farbench_compiler.ir.visit import walk
from farbench_compiler.te.axis import IterVar
from farbench_compiler.te.reduction import Reduce
from farbench_compiler.te.tensor import Tensor, tensors_read


@dataclass(frozen=True, eq=False, repr=False)
class Operation:
    """A source of tensors."""

    name: str

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """The tensors that the operation gives."""
        raise NotImplementedError

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        """The tensors that the operation reads, each once."""
        return ()

    @property
    def axis(self) -> tuple[IterVar, ...]:
        """One axis a dimension of the output."""
        return ()

    @property
    def reduce_axis(self) -> tuple[IterVar, ...]:
        """The axes that are summed over (or combined otherwise)."""
        return ()

    @property
    def ordered_axis(self) -> tuple[IterVar, ...]:
        """The axes beside those of the output whose steps run in order: those that it reduces."""
        return self.reduce_axis

    @property
    def num_outputs(self) -> int:
        """How many tensors the operation gives."""
        return len(self.outputs)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"

    def output(self, index: int) -> Tensor:
        """Give one of the tensors."""
        return self.outputs[index]


@dataclass(frozen=True, eq=False, repr=False)
class PlaceholderOp(Operation):
    """A tensor that the caller of the function gives."""

    shape: tuple[Expr, ...]
    dtype: DType

    @cached_property
    def outputs(self) -> tuple[Tensor, ...]:
        """The one tensor."""
        return (Tensor(self.name, self.dtype, self.shape, op=self),)


@dataclass(frozen=True, eq=False, repr=False)
class ConstantOp(PlaceholderOp):
    """A tensor whose elements are known when the library is built, and become part of it."""

    data: bytes


@dataclass(frozen=True, eq=False, repr=False)
class ComputeOp(Operation):
    """Every element of every output as an expression of the axes; `given` are tensors to keep."""

    axes: tuple[IterVar, ...]
    body: tuple[Expr, ...]
    tag: str = ""
    attrs: Mapping[str, object] = field(default_factory=dict)
    given: tuple[Tensor, ...] = ()

    def __post_init__(self) -> None:
        reductions = [e for e in self.body if isinstance(e, Reduce)]
        if reductions and len(reductions) != len(self.body):
            raise ScheduleError(f"compute {self.name}: either all outputs reduce or none does")
        for index, e in enumerate(self.body):
            inner = e.children() if isinstance(e, Reduce) else (e,)
            if any(isinstance(n, Reduce) for x in inner for n in walk(x)):
                raise ScheduleError(
                    f"compute {self.name}: a reduction stands alone in its compute; "
                    "give it a te.compute of its own and read that"
                )
            if isinstance(e, Reduce) and (e.index != index or len(e.sources) != len(self.body)):
                raise ScheduleError(
                    f"compute {self.name}: the outputs must be those of one reduction, in order"
                )

    @cached_property
    def outputs(self) -> tuple[Tensor, ...]:
        """One tensor for each expression of the body."""
        if self.given:
            return self.given
        shape = tuple(iv.domain.extent for iv in self.axes)
        several = len(self.body) > 1
        return tuple(
            Tensor(
                f"{self.name}.v{i}" if several else self.name,
                e.dtype,
                shape,
                op=self,
                value_index=i,
            )
            for i, e in enumerate(self.body)
        )

    @property
    def axis(self) -> tuple[IterVar, ...]:
        """One axis a dimension of the output."""
        return self.axes

    @property
    def reduction(self) -> Reduce | None:
        """The reduction that all outputs share, if they do."""
        first = self.body[0]
        return first if isinstance(first, Reduce) else None

    @property
    def reduce_axis(self) -> tuple[IterVar, ...]:
        """The axes that are combined over."""
        return () if self.reduction is None else self.reduction.axis

    @cached_property
    def input_tensors(self) -> tuple[Tensor, ...]:
        """The tensors that the body reads."""
        return tensors_read(*self.body)

    def with_body(self, body: tuple[Expr, ...]) -> ComputeOp:
        """Make the operation that gives the same tensors from another body."""
        return ComputeOp(self.name, self.axes, body, self.tag, self.attrs, self.outputs)
