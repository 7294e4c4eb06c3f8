"""From a schedule to loops one can read, and to a library one can call or send."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from farbench.errors import UsageError
from farbench.extras import load

if TYPE_CHECKING:
    from farbench.module import Module
    from farbench_compiler.ir.expr import Var
    from farbench_compiler.ir.stmt import LoopFunction
    from farbench_compiler.target import Target
    from farbench_compiler.te import Schedule, Tensor

    Argument = Tensor | Var


def lower(
    schedule: Schedule, args: Sequence[Argument], simple_mode: bool = False, name: str = "main"
) -> LoopFunction | str:
    """Turn a schedule into loops; their text with `simple_mode`, else the function itself.

    The text also shows the outputs that are left out of `args`.
    """
    if simple_mode:
        load("farbench_compiler.lower").check_types(schedule, args, name)
        shown = [*args, *(t for op in schedule.outputs for t in op.outputs if t not in args)]
        text: str = load("farbench_compiler.build").lower_text(schedule, shown, name)
        return text
    function: LoopFunction = load("farbench_compiler.lower").lower(schedule, args, name=name)
    return function


def _parsed(target: str | Target) -> Target:
    parsed: Target = load("farbench_compiler.target").Target.parse(target)
    return parsed


def build(
    schedule: Schedule | LoopFunction | Sequence[LoopFunction],
    args: Sequence[Argument] | None = None,
    target: str | Target | None = None,
    target_host: str | Target | None = None,
    name: str = "main",
    *,
    cache: bool = True,
    debug: bool = False,
) -> Module:
    """Compile a schedule for a target (a preset's name or `llvm -mtriple= -mcpu= -mattr=`).

    What `lower` gave has its arguments and its name already, and needs neither.
    Without a target it is that of the `with target:` around the call, or else this machine.
    The arguments stand in TVM's order; `target_host` can only say the same as `target`, since the
    CPU that runs the code is its own host.
    A `debug` build is slow and checks what it does: the first index outside of its array, division
    by zero or shift past the width stops the call with an error that says where.
    An equal program that was built before comes from the cache, unless `cache` is False.
    TargetError lists near matches of what is unknown; ScheduleError says what is not legal.
    """
    if target is None:
        target = load("farbench_compiler.target").Target.current() or "native"
    if target_host is not None and _parsed(target_host) != _parsed(target):
        raise UsageError(
            f"target_host {target_host} is not the target {target}; farbench builds for one CPU"
        )
    artifact = load("farbench_compiler.build").build(
        schedule, args, target=target, name=name, cache=cache, debug=debug
    )
    module: Module = load("farbench.module").Module.of(artifact)
    return module
