"""Turn nests into statements: loops, guards, the start and the steps of reductions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir.expr import Buffer, Expr, IntImm, Load, Var, const, logic
from farbench_compiler.ir.stmt import Allocate, For, IfThen, Let, Seq, Stmt, Store
from farbench_compiler.ir.visit import free_vars, map_children, renamed, substitute
from farbench_compiler.lower import pragmas
from farbench_compiler.lower.buffering import doubled
from farbench_compiler.lower.extern import extern_statement
from farbench_compiler.lower.lookahead import Lookaheads
from farbench_compiler.lower.memory import Memory
from farbench_compiler.lower.nest import Guard, Nest
from farbench_compiler.lower.placement import Placement
from farbench_compiler.lower.tensorize import Piece, piece_of
from farbench_compiler.lower.variables import Variables
from farbench_compiler.te.attach import InScan
from farbench_compiler.te.axis import IterVar
from farbench_compiler.te.extern import ExternOp
from farbench_compiler.te.reduction import Reduce
from farbench_compiler.te.scan import ScanOp
from farbench_compiler.te.stage import Stage
from farbench_compiler.te.tensor import Tensor


@dataclass(frozen=True)
class Emitter:
    """Writes the statements of all stages."""

    placement: Placement
    nests: Mapping[Stage, Nest]
    memory: Mapping[Tensor, Memory]
    variables: Variables

    def root(self) -> Stmt:
        """Write the whole function."""
        return self._produce(self.placement.roots(), Seq(()))

    def _produce(self, stages: Sequence[Stage], then: Stmt, *, one_step: bool = False) -> Stmt:
        """Compute stages, producers first, and then run what reads them.

        In a loop of more than one step its owner allocates what outlives a step.
        """
        body = then
        for stage in reversed(stages):
            if stage.buffering != "halves" or one_step:
                body = Seq((self._stage(self.nests[stage]), body))
            if stage.buffering == "each step":
                body = self._allocated(stage, body)
        return body

    def _allocated(self, stage: Stage, body: Stmt) -> Stmt:
        for tensor in self.nests[stage].op.outputs:
            if self.memory[tensor].buffer.scope != "arg" and not _is_held(stage, tensor):
                body = Allocate(self.memory[tensor].buffer, body)
        return body

    def _lasting(self, nest: Nest, level: int, loop: Stmt) -> Stmt:
        """Give a loop the memory that outlives its steps, and fill it ahead where that is asked."""
        stages = [
            stage
            for stage in self.placement.attached(nest.stage, nest.loops[level].axis)
            if stage.buffering != "each step"
        ]
        if not stages:
            return loop
        if not isinstance(loop, For):  # one step, which fills what it reads
            for stage in stages:
                loop = self._allocated(stage, loop)
            return loop
        before: list[Stmt] = []
        doubles: list[Buffer] = []
        rings = [stage for stage in stages if stage.buffering == "ring"]
        for stage in stages:
            if stage.buffering == "halves":
                fill = _bound(nest, level, self._stage(self.nests[stage]))
                own = [self.memory[tensor].buffer for tensor in stage.op.outputs]
                made, first, loop = doubled(loop, fill, own, self.variables)
                before.append(first)
                doubles += made
        whole: Stmt = Seq((*before, loop))
        for buffer in doubles:
            whole = Allocate(buffer, whole)
        for stage in rings:
            whole = self._allocated(stage, whole)
        return whole

    def _stage(self, nest: Nest) -> Stmt:
        piece = piece_of(nest, self.memory, self.variables)
        body = self._step(nest) if piece is None else piece.step
        body = self._where_stored(nest, piece, body)
        self._check_inside(nest, piece)
        levels = len(nest.loops) if piece is None else piece.level
        pragmas.check_axes(nest.stage, levels)
        ahead = Lookaheads(self.placement, self.nests, self.memory, self.variables)
        for level in reversed(range(levels)):
            loop = nest.loops[level]
            attached = self.placement.attached(nest.stage, loop.axis)
            body = self._produce(attached, body, one_step=loop.var is None)
            body = Seq((*ahead.at(nest, level), body))
            body = _guarded(nest.guards, level, body)
            body = _bound(nest, level, body)
            if loop.var is not None:
                body = For(loop.var, IntImm(0), loop.extent, loop.kind, body)
            body = self._lasting(nest, level, body)
            wishes = [p for p in nest.stage.pragmas if p.axis is loop.axis]
            body = pragmas.apply(nest.stage, wishes, body)
            if level == nest.first_reduce:
                body = Seq((self._start(nest, piece), body))
        return _guarded(nest.guards, -1, body)

    def _where_stored(self, nest: Nest, piece: Piece | None, body: Stmt) -> Stmt:
        """Store only where the schedule's predicate holds."""
        cond = nest.stage.store_predicate
        if cond is None:
            return body
        loops: dict[Var, Expr] = {
            loop.axis: const(0) if loop.var is None else loop.var for loop in nest.loops
        }
        found = self._resolve(substitute(cond, loops), nest)
        unknown = [v.name for v in free_vars(found) if isinstance(v, IterVar)]
        ordered = any(axis.kind != "data" for axis in free_vars(cond) if isinstance(axis, IterVar))
        if unknown or ordered or piece is not None:
            why = (
                f"uses axis {unknown[0]}, which is none of its axes and loops" if unknown
                else "uses a reduce axis; use data axes alone" if ordered
                else "is computed by an intrinsic, which stores as it does"
            )  # fmt: skip
            raise ScheduleError(f"set_store_predicate: stage {nest.stage.name} {why}")
        return IfThen(found, body)

    def _step(self, nest: Nest) -> Stmt:
        """Compute one element: a store, or one step of a reduction."""
        op = nest.op
        if isinstance(op, ExternOp):
            return extern_statement(op, self.memory)
        if isinstance(op, ScanOp):  # its updates are attached to its loop
            return Seq(())
        reduction = op.reduction
        if reduction is None:
            values = [self._resolve(e, nest) for e in op.body]
            return Seq(tuple(self._store(nest, i, v) for i, v in enumerate(values)))
        combiner = reduction.combiner
        inputs: dict[Var, Expr] = {}
        for i, (lhs, rhs) in enumerate(zip(combiner.lhs, combiner.rhs, strict=True)):
            memory, indices = self._element(nest, i)
            inputs[lhs] = memory.load(indices)
            inputs[rhs] = self._resolve(reduction.sources[i], nest)
        new = [substitute(e, inputs) for e in combiner.result]
        stores = self._together(nest, new)
        cond = self._resolve(reduction.condition, nest)
        return stores if isinstance(cond, IntImm) and cond.value else IfThen(cond, stores)

    def _together(self, nest: Nest, values: Sequence[Expr]) -> Stmt:
        """Store all values after the last of them is computed, since each may read the others."""
        if len(values) == 1:
            return self._store(nest, 0, values[0])
        held = [Var(f"new{i}", v.dtype) for i, v in enumerate(values)]
        body: Stmt = Seq(tuple(self._store(nest, i, v) for i, v in enumerate(held)))
        for var, value in zip(reversed(held), reversed(values), strict=True):
            body = Let(var, value, body)
        return body

    def _check_inside(self, nest: Nest, piece: Piece | None) -> None:
        if piece is None:
            return
        for loop in nest.loops[piece.level :]:
            for stage in self.placement.attached(nest.stage, loop.axis):
                raise ScheduleError(
                    f"tensorize: stage {stage.name} is computed at axis {loop.axis.name} of stage "
                    f"{nest.stage.name}, which is inside of the intrinsic; attach it further out"
                )

    def _start(self, nest: Nest, piece: Piece | None = None) -> Stmt:
        """Write the initial values, over copies of the data loops inside the first reduce loop."""
        reduction = nest.op.reduction
        if not isinstance(reduction, Reduce):
            return Seq(())
        first = nest.first_reduce
        last = len(nest.loops) if piece is None else piece.level
        inner = [p for p in range(first, last) if nest.loops[p].axis.kind == "data"]
        fresh = self._fresh(nest, inner)
        stores = [self._store(nest, i, self._resolve(e, nest))
                  for i, e in enumerate(reduction.init)]  # fmt: skip
        body: Stmt = Seq(tuple(stores)) if piece is None else piece.reset
        body = self._where_stored(nest, piece, body)
        for level in reversed(range(first, last)):
            guards = [g for g in nest.guards if self._only_data(g, nest, fresh)]
            body = _bound(nest, level, _guarded(guards, level, body), fresh)
            loop = nest.loops[level]
            if level in inner and loop.var is not None:
                body = For(loop.var, IntImm(0), loop.extent, loop.kind, body)
        return renamed(body, fresh)

    def _fresh(self, nest: Nest, inner: Sequence[int]) -> dict[Var, Var]:
        """Make copies of the variables that the initial values run over."""
        fresh: dict[Var, Var] = {}
        for level in inner:
            var = nest.loops[level].var
            if var is not None:
                fresh[var] = self.variables.add_loop(var.name, self.variables.extent(var))
        outer = set(nest.variables(nest.first_reduce - 1))
        for b in nest.bindings:
            moving = {v for v in free_vars(b.value) if self.variables.is_loop(v)} - outer
            if moving and moving <= fresh.keys():
                fresh[b.var] = self.variables.add_loop(b.var.name, self.variables.extent(b.var))
        return fresh

    def _only_data(self, guard: Guard, nest: Nest, fresh: Mapping[Var, Var]) -> bool:
        inner = set(nest.variables(len(nest.loops))) - set(nest.variables(nest.first_reduce - 1))
        return all(v in fresh for v in free_vars(guard.cond) if v in inner)

    def _element(self, nest: Nest, output: int) -> tuple[Memory, tuple[Expr, ...]]:
        memory = self.memory[nest.op.outputs[output]]
        return memory, tuple(nest.values[axis] for axis in nest.op.axis)

    def _store(self, nest: Nest, output: int, value: Expr) -> Stmt:
        memory, indices = self._element(nest, output)
        return Store(memory.buffer, memory.place(indices), value)

    def _resolve(self, value: Expr, nest: Nest) -> Expr:
        """Put the axes' values and the tensors' memory into an expression of the program."""

        def on_expr(e: Expr) -> Expr:
            e = map_children(e, on_expr)
            if isinstance(e, Load) and isinstance(e.buffer, Tensor):
                return self.memory[e.buffer].load(e.indices)
            return e

        return on_expr(substitute(value, nest.values))


def _is_held(stage: Stage, tensor: Tensor) -> bool:
    """Tell whether a tensor lies in memory of a scan that begins where the scan's start does."""
    if isinstance(stage.home, InScan):
        scan = stage.home.scan.op
        return isinstance(scan, ScanOp) and tensor in scan.update
    return isinstance(stage.op, ScanOp)


def _guarded(guards: Sequence[Guard], level: int, body: Stmt) -> Stmt:
    """Run a body where the guards of one level hold."""
    cond: Expr | None = None
    for guard in guards:
        if guard.level == level:
            cond = guard.cond if cond is None else logic("and", cond, guard.cond)
    return body if cond is None else IfThen(cond, body)


def _bound(nest: Nest, level: int, body: Stmt, only: Mapping[Var, Var] | None = None) -> Stmt:
    for b in reversed(nest.bindings):  # later ones are made from earlier ones
        if b.level == level and (only is None or b.var in only):
            body = Let(b.var, b.value, body)
    return body
