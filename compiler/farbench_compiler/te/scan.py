"""Scans: tensors whose rows follow from the rows before them, by `te.scan`.

    S[0 : k] = init,    S[t] = update(S[t - 1], ..., t)    for t = k, ..., n - 1

`update` is written over a placeholder that stands for S, the state. Init, update, state and result
are one memory: each step of the loop over t writes one row of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir.expr import Expr
from farbench_compiler.ir.simplify import simplify
from farbench_compiler.ir.structural import same
from farbench_compiler.te.axis import IterVar, Range
from farbench_compiler.te.compute import compute
from farbench_compiler.te.operation import ComputeOp, PlaceholderOp
from farbench_compiler.te.reduction import Reduce
from farbench_compiler.te.tags import current_tag
from farbench_compiler.te.tensor import Tensor


@dataclass(frozen=True, eq=False, repr=False)
class ScanOp(ComputeOp):
    """Runs its updates for each step of `scan_axis`, in order; it has no expression of its own."""

    init: tuple[Tensor, ...] = ()
    update: tuple[Tensor, ...] = ()
    state: tuple[Tensor, ...] = ()
    inputs: tuple[Tensor, ...] = ()

    @cached_property
    def outputs(self) -> tuple[Tensor, ...]:
        """One tensor a state, of its shape."""
        several = len(self.state) > 1
        return tuple(
            Tensor(f"{self.name}.v{i}" if several else self.name, s.dtype, s.shape, op=self,
                   value_index=i)
            for i, s in enumerate(self.state)
        )  # fmt: skip

    @cached_property
    def scan_axis(self) -> IterVar:
        """The loop over time, from the first row that init does not give."""
        first = self.init[0].shape[0]
        steps = simplify(self.state[0].shape[0] - first)
        return IterVar(f"{self.name}.idx", dom=Range(first, steps), kind="scan")

    @cached_property
    def spatial_axis_(self) -> tuple[IterVar, ...]:
        """One axis for each further dimension of each output, as TVM's te lists them."""
        zero = self.scan_axis.domain.begin * 0
        return tuple(
            IterVar(f"{self.name}.out{i}.i{d}", dom=Range(zero, size))
            for i, s in enumerate(self.state)
            for d, size in enumerate(s.shape)
            if d > 0
        )

    @property
    def ordered_axis(self) -> tuple[IterVar, ...]:
        """The axis of time alone."""
        return (self.scan_axis,)

    @property
    def reduction(self) -> Reduce | None:
        """None: the updates may reduce, the scan does not."""
        return None

    @cached_property
    def input_tensors(self) -> tuple[Tensor, ...]:
        """The starts and the updates, each once."""
        return tuple(dict.fromkeys((*self.init, *self.update)))

    def with_body(self, body: tuple[Expr, ...]) -> ComputeOp:
        """Refuse: there is no expression to be replaced."""
        raise ScheduleError(f"stage {self.name} is a scan; its steps are those of its updates")


@overload
def scan(
    init: Tensor,
    update: Tensor,
    state_placeholder: Tensor,
    inputs: Sequence[Tensor] | None = None,
    name: str = "scan",
    tag: str = "",
    attrs: Mapping[str, object] | None = None,
) -> Tensor: ...
@overload
def scan(  # Any: one tensor of a list of one, as TVM's te gives it, else a tuple of them
    init: Sequence[Tensor],
    update: Sequence[Tensor],
    state_placeholder: Sequence[Tensor],
    inputs: Sequence[Tensor] | None = None,
    name: str = "scan",
    tag: str = "",
    attrs: Mapping[str, object] | None = None,
) -> Any: ...


def scan(
    init: Tensor | Sequence[Tensor],
    update: Tensor | Sequence[Tensor],
    state_placeholder: Tensor | Sequence[Tensor],
    inputs: Sequence[Tensor] | None = None,
    name: str = "scan",
    tag: str = "",
    attrs: Mapping[str, object] | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """Make the tensor that starts with the rows of `init` and goes on by `update`, row by row.

    `update` has the shape of the state placeholder, which it reads at rows before its own; `init`
    has as many rows as it gives. Several states go on together, in lists of the same length.
    `inputs` names what else the updates read, which is found anyway.
    """
    starts, steps, states = (
        (t,) if isinstance(t, Tensor) else tuple(t) for t in (init, update, state_placeholder)
    )
    _check(name, starts, steps, states)
    op = ScanOp(
        name, (), (), tag or current_tag(), dict(attrs or {}),
        init=_own(f"{name}.init", starts), update=_own(f"{name}.update", steps), state=states,
        inputs=tuple(inputs or ()),
    )  # fmt: skip
    return op.outputs[0] if len(op.outputs) == 1 else op.outputs


def _own(name: str, tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Copy what cannot be computed into the scan's memory: what is given, and what comes twice."""
    return tuple(
        t if type(t.op) is ComputeOp and t not in tensors[:i]
        else compute(t.shape, lambda *at, of=t: of(*at), name=name)
        for i, t in enumerate(tensors)
    )  # fmt: skip


def _check(
    name: str, init: tuple[Tensor, ...], update: tuple[Tensor, ...], state: tuple[Tensor, ...]
) -> None:
    """Raise ScheduleError where starts, updates and states do not fit each other."""
    if not len(init) == len(update) == len(state) or not state:
        raise ScheduleError(
            f"scan {name}: {len(init)} init, {len(update)} update and {len(state)} state tensors; "
            "give one of each for every state"
        )
    for start, step, held in zip(init, update, state, strict=True):
        if type(held.op) is not PlaceholderOp:
            raise ScheduleError(f"scan {name}: state {held.name} must be a te.placeholder")
        for other in (start, step):
            if other.dtype != held.dtype:
                raise ScheduleError(
                    f"scan {name}: {other.name} is {other.dtype}, state {held.name} {held.dtype}"
                )
            alike = other.ndim == held.ndim > 0 and _alike(other.shape[1:], held.shape[1:])
            if not alike or (other is step and not _alike(other.shape[:1], held.shape[:1])):
                raise ScheduleError(
                    f"scan {name}: {other.name} of {other.ndim} dimensions has not the sizes of "
                    f"state {held.name}; only the first of init may differ"
                )
        if not _alike((start.shape[0], held.shape[0]), (init[0].shape[0], state[0].shape[0])):
            raise ScheduleError(
                f"scan {name}: {start.name} and {held.name} have not as many rows as those of the "
                "first state"
            )


def _alike(a: Sequence[Expr], b: Sequence[Expr]) -> bool:
    return len(a) == len(b) and all(
        same(simplify(x), simplify(y)) for x, y in zip(a, b, strict=True)
    )
