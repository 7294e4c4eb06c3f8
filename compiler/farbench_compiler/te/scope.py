"""Scopes: the kinds of memory that a schedule may ask for, by the names that te gives them."""

from __future__ import annotations

from typing import Literal

from farbench_compiler.errors import ScheduleError

Place = Literal["global", "local"]
_GPU = ("shared", "warp", "wmma", "texture", "m16n8k8")


def scope_of(primitive: str, stage: str, scope: str) -> Place:
    """Give the memory of a name; ScheduleError for what a CPU has not. An empty name is `global`.

    A tag, as in `global.vtcm`, names memory of other machines, so it is refused too.
    """
    if not isinstance(scope, str):
        raise ScheduleError(f"{primitive}: stage {stage} cannot be {scope!r}; give local or global")
    if scope in ("", "global"):
        return "global"
    if scope == "local":
        return "local"
    base = scope.partition(".")[0]
    if base in _GPU:
        why = f"{base} memory is a GPU's; a CPU's caches need no copies of their own"
    elif base in ("global", "local"):
        why = f"the tag {scope.partition('.')[2]!r} names memory that a CPU has not"
    else:
        why = "no such memory is known"
    raise ScheduleError(
        f"{primitive}: stage {stage} cannot be {scope}: {why}; use local (the stack, registers) "
        "or global (the workspace)"
    )
