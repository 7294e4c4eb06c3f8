"""Take inlined stages away: substitute their expressions into whoever reads them."""

from __future__ import annotations

from collections.abc import Mapping

from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir.expr import Expr, Load
from farbench_compiler.ir.visit import map_children, substitute
from farbench_compiler.te.attach import Inline
from farbench_compiler.te.extern import ExternOp
from farbench_compiler.te.operation import ComputeOp
from farbench_compiler.te.schedule import Schedule
from farbench_compiler.te.stage import Stage
from farbench_compiler.te.tensor import Tensor

Definitions = Mapping[Tensor, tuple[ComputeOp, Expr]]


def inline_stages(schedule: Schedule) -> dict[Stage, ComputeOp]:
    """Give each computed stage that keeps loops its operation, free of reads of inlined ones."""
    kept: dict[Stage, ComputeOp] = {}
    inlined: dict[Tensor, tuple[ComputeOp, Expr]] = {}
    for stage in schedule.stages:
        if not isinstance(stage.op, ComputeOp):
            continue
        op = stage.op
        if any(tensor in inlined for tensor in op.input_tensors):
            if isinstance(op, ExternOp):
                raise ScheduleError(
                    f"compute_inline: extern stage {op.name} reads an inlined stage, which it "
                    "needs in memory; use compute_root"
                )
            op = op.with_body(tuple(_expand(e, inlined) for e in op.body))
        if isinstance(stage.attach, Inline):
            for tensor, value in zip(op.outputs, op.body, strict=True):
                inlined[tensor] = (op, value)
        else:
            kept[stage] = op
    return kept


def _expand(value: Expr, inlined: Definitions) -> Expr:
    """Replace reads of inlined tensors; their definitions hold no such reads any more."""

    def on_expr(e: Expr) -> Expr:
        e = map_children(e, on_expr)
        if isinstance(e, Load) and isinstance(e.buffer, Tensor) and e.buffer in inlined:
            op, body = inlined[e.buffer]
            return substitute(body, dict(zip(op.axis, e.indices, strict=True)))
        return e

    return on_expr(value)
