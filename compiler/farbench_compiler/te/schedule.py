"""Schedules: the stages of a program in order, found by tensor or operation."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

from farbench_compiler.errors import ScheduleError, UnknownNameError
from farbench_compiler.te import cache, injective, layout, normal, rfactor
from farbench_compiler.te.attach import Beside, Inline, InScan, Root
from farbench_compiler.te.axis import IterVar
from farbench_compiler.te.group import Group, between, group_of
from farbench_compiler.te.names import unknown
from farbench_compiler.te.operation import ComputeOp, ConstantOp, Operation, PlaceholderOp
from farbench_compiler.te.scan import ScanOp
from farbench_compiler.te.scope import scope_of
from farbench_compiler.te.stage import Stage
from farbench_compiler.te.tensor import Tensor

Source = Tensor | Operation


class Schedule:
    """How a program is computed: one stage an operation, producers before readers."""

    def __init__(self, outputs: Sequence[Operation]) -> None:
        self.outputs = tuple(outputs)
        self.stages: list[Stage] = []
        self._by_tensor: dict[Tensor, Stage] = {}
        self._lying: dict[Tensor, Tensor] = {}
        for op in _post_order(outputs):
            self._add(Stage(self, op, op in self.outputs), len(self.stages))
        for stage in self.stages:
            if isinstance(stage.op, ScanOp):
                self._hold(stage, stage.op)

    if not TYPE_CHECKING:  # it would hide misspelt names from the types

        def __getattr__(self, name: str) -> None:
            raise unknown("a schedule", Schedule, name)

    def _hold(self, stage: Stage, scan: ScanOp) -> None:
        """Put the stages that depend on a scan's state into its loop, its start before it."""
        self.create_group(scan.update, scan.state).attach = InScan(stage)
        for tensors, home in ((scan.init, Beside(stage)), (scan.update, InScan(stage))):
            for part in {self[tensor] for tensor in tensors}:
                if not isinstance(part.home, Root):
                    raise ScheduleError(
                        f"scan {scan.name}: stage {part.name} belongs to another scan already; "
                        "copy it by a te.compute of its own"
                    )
                part.home = part.attach = home

    def _add(self, stage: Stage, at: int, group: Group | None = None) -> None:
        stage.group = group
        self.stages.insert(at, stage)
        for tensor in stage.op.outputs:
            self._by_tensor[tensor] = stage

    def __getitem__(self, source: Source) -> Stage:
        """Give the stage that computes a tensor or stands for an operation."""
        if not isinstance(source, (Tensor, Operation)):
            raise ScheduleError(f"{source!r} is no tensor of this schedule")
        tensor = source if isinstance(source, Tensor) else source.output(0)
        stage = self._by_tensor.get(tensor)
        if stage is None:
            raise ScheduleError(f"{tensor.name} is not part of this schedule")
        return stage

    def __contains__(self, source: object) -> bool:
        tensor = source.output(0) if isinstance(source, Operation) else source
        return tensor in self._by_tensor

    def readers(self, tensor: Tensor) -> tuple[Stage, ...]:
        """List the stages that read a tensor."""
        return tuple(s for s in self.stages if tensor in s.op.input_tensors)

    def create_group(
        self,
        outputs: Tensor | Sequence[Tensor],
        inputs: Tensor | Sequence[Tensor],
        include_inputs: bool = False,
    ) -> Group:
        """Group the stages on the way from the inputs to the outputs, to place them together.

        The inputs' own stages are left out unless `include_inputs`.
        """
        ends = [_tensors("create_group", given) for given in (outputs, inputs)]
        return group_of(self, between(self, ends[0], ends[1], include_inputs))

    @overload
    def cache_write(self, tensor: Tensor, scope: str = "local") -> Tensor: ...
    @overload
    def cache_write(self, tensor: Sequence[Tensor], scope: str = "local") -> list[Tensor]: ...
    def cache_write(
        self, tensor: Tensor | Sequence[Tensor], scope: str = "local"
    ) -> Tensor | list[Tensor]:
        """Compute a tensor in memory of its own and copy it out; the new stage's tensor.

        The new stage takes over the computation with its reduction: attach it to a loop of the
        copying stage to have a tile. To be called before the stage's loops are changed. Of an
        operation with several outputs give all of them; the new ones come as a list.
        """
        given = _tensors("cache_write", tensor)
        if not given:
            raise ScheduleError("cache_write: give the outputs of an operation")
        stage = self[given[0]]
        op = stage.compute_op("cache_write")
        if not op.body:
            raise ScheduleError(f"cache_write: stage {stage.name} is extern and writes as it does")
        if stage.is_scheduled:
            raise ScheduleError(
                f"cache_write: the loops of stage {stage.name} were changed already; "
                "call cache_write first"
            )
        if isinstance(stage.attach, Inline):
            raise ScheduleError(f"cache_write: stage {stage.name} is inlined; it has no memory")
        if set(given) != set(op.outputs):
            names = ", ".join(output.name for output in op.outputs)
            raise ScheduleError(f"cache_write: give all outputs of stage {stage.name}: {names}")
        chosen = scope_of("cache_write", stage.name, scope)
        cached, copying = cache.write(op, chosen)
        new = Stage(self, cached, False)
        new.scope = chosen
        self._add(new, self.stages.index(stage), stage.group)
        stage.op = copying
        stage.leaf_iter_vars = list(copying.axis)
        made = [cached.output(op.outputs.index(t)) for t in given]
        return made[0] if isinstance(tensor, Tensor) else made

    def cache_read(self, tensor: Tensor, scope: str, readers: Sequence[Source] | Source) -> Tensor:
        """Copy a tensor to memory of its own, from which `readers` read; the new stage's tensor."""
        if not isinstance(tensor, Tensor):
            raise ScheduleError(f"cache_read: {tensor!r} is no tensor")
        stages = [self[r] for r in _several(readers)]
        for stage in stages:
            if tensor not in stage.op.input_tensors:
                raise ScheduleError(f"cache_read: stage {stage.name} does not read {tensor.name}")
        chosen = scope_of("cache_read", tensor.name, scope)
        copied = cache.read(tensor, chosen)
        new = Stage(self, copied, False)
        new.scope = chosen
        # A copy of a state belongs in the loop whose steps change the state.
        scans = [s.op for s in self.stages if isinstance(s.op, ScanOp) and tensor in s.op.state]
        group = self[scans[0].update[0] if scans else tensor].group
        self._add(new, self.stages.index(self[tensor]) + 1, group)
        for stage in stages:
            op = stage.compute_op("cache_read")
            stage.op = cache.redirect(op, tensor, copied.output(0))
        return copied.output(0)

    def rfactor(
        self, tensor: Tensor, axis: IterVar, factor_axis: int = 0
    ) -> Tensor | tuple[Tensor, ...]:
        """Part a reduction at one of its loops, which becomes dimension `factor_axis`.

        Gives the tensor of the new stage, or one for each output. The stage itself then reduces
        over that dimension alone; loops over data stay as they are.
        """
        stage = self[tensor]
        op = stage.compute_op("rfactor")
        made = rfactor.factor(stage, op, axis, factor_axis)
        self._add(Stage(self, made.partial, False), self.stages.index(stage), stage.group)
        data = [iv for iv in stage.leaf_iter_vars if iv.kind != "reduce"]
        gone = {iv for iv in stage.leaf_iter_vars if iv.kind == "reduce"}
        stage.op = made.final
        stage.leaf_iter_vars = [*data, made.kept]
        stage.relations = [r for r in stage.relations if not stage.reduces(r)]
        stage.kinds = {iv: kind for iv, kind in stage.kinds.items() if iv not in gone}
        outputs = made.partial.outputs
        return outputs[0] if len(outputs) == 1 else outputs

    def transform_layout(self, stage: Stage, index_map: layout.Map) -> list[IterVar] | None:
        """Change how a stage's tensor lies; see `Stage.transform_layout`."""
        op = stage.op
        plain = isinstance(op, PlaceholderOp) and not isinstance(op, ConstantOp)
        if not plain and not (isinstance(op, ComputeOp) and op.body and op.num_outputs == 1):
            raise ScheduleError(
                f"transform_layout: {stage.name} is no placeholder and no computation of one tensor"
            )
        if stage.is_scheduled or not isinstance(stage.home, Root):
            raise ScheduleError(
                f"transform_layout: the loops of stage {stage.name} were changed already; "
                "call transform_layout first"
            )
        assert isinstance(op, (ComputeOp, PlaceholderOp))
        old = op.output(0)
        names = [iv.name for iv in op.axis] or [f"i{d}" for d in range(old.ndim)]
        found = layout.layout_of(stage.name, names, old.shape, index_map)
        made = layout.transformed(op, found)
        for reader in self.readers(old):
            reading = reader.compute_op("transform_layout")
            if not reading.body:
                raise ScheduleError(
                    f"transform_layout: stage {reader.name} reads {stage.name} as it lies in memory"
                )
            reader.op = cache.redirect(reading, old, made.output(0), found.at)
        stage.op = made
        stage.leaf_iter_vars = [*made.axis, *made.ordered_axis]
        self._by_tensor[made.output(0)] = stage
        self.outputs = tuple(made if old in output.outputs else output for output in self.outputs)
        self._lying = {of: made.output(0) if t is old else t for of, t in self._lying.items()}
        self._lying[old] = made.output(0)
        return None if isinstance(made, PlaceholderOp) else list(made.axis)

    def as_it_lies(self, tensor: Tensor) -> Tensor:
        """Give the tensor that stands for one whose layout was changed, or the tensor itself."""
        return self._lying.get(tensor, tensor)

    def copy(self) -> Schedule:
        """Make a schedule with the same stages, which change apart from these from then on."""
        made = copy.copy(self)
        twins = normal.twins(self)
        made.stages = list(twins.values())
        made._by_tensor = {tensor: twins[stage] for tensor, stage in self._by_tensor.items()}
        normal.settle(made, twins)
        return made

    def normalize(self) -> Schedule:
        """Make a copy in which every stage is attached to a loop that its parent still has.

        Lowering does the same by itself; loops start from 0 without it, and inlined stages are
        substituted there.
        """
        made = self.copy()
        normal.repair_places(made)
        return made

    def __repr__(self) -> str:
        return f"Schedule({', '.join(repr(s) for s in self.stages)})"


def create_schedule(ops: Source | Sequence[Source]) -> Schedule:
    """Make the schedule that computes each operation as a whole, loops in the order of the axes."""
    outputs = [o.op if isinstance(o, Tensor) else o for o in _several(ops)]
    if not outputs or not all(isinstance(o, ComputeOp) for o in outputs):
        raise ScheduleError("create_schedule: give the operations of computed tensors (C.op)")
    return Schedule(outputs)


# As TVM's te names them.
AutoInlineInjective = injective.inline_injective
AutoInlineBroadcast = injective.inline_broadcast
AutoInlineElemWise = injective.inline_elementwise


def _several(sources: Source | Sequence[Source]) -> Sequence[Source]:
    if isinstance(sources, (list, tuple)):
        return sources
    return [sources]  # type: ignore[list-item]  # what is no tensor is refused by its name


def _tensors(primitive: str, given: Tensor | Sequence[Tensor]) -> list[Tensor]:
    """List what is to be one tensor or several; ScheduleError where anything else is given."""
    several = list(given) if isinstance(given, (list, tuple)) else [given]
    for one in several:
        if not isinstance(one, Tensor):
            raise ScheduleError(f"{primitive}: {one!r} is no tensor")
    return several  # type: ignore[return-value]  # each was looked at


def _post_order(outputs: Sequence[Operation]) -> list[Operation]:
    """List all operations that the outputs need, producers first."""
    order: list[Operation] = []
    seen: set[int] = set()
    stack: list[tuple[Operation, bool]] = [(op, False) for op in reversed(outputs)]
    while stack:
        op, done = stack.pop()
        if done:
            order.append(op)
        elif id(op) not in seen:
            seen.add(id(op))
            stack.append((op, True))
            stack.extend((t.op, False) for t in reversed(op.input_tensors))
    return order


def __getattr__(name: str) -> object:
    if name in ("InferBound", "ScheduleOps"):
        raise UnknownNameError(
            f"farbench has no te.schedule.{name}: farbench.lower(schedule, args) does both in one"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
