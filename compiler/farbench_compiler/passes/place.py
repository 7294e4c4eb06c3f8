"""Put allocations where they run least often, and leave one level of parallel loops."""

from __future__ import annotations

from dataclasses import replace

from farbench_compiler.ir.expr import Buffer, Expr, IntImm, Load, Var, fresh_uid
from farbench_compiler.ir.stmt import Allocate, For, LoopFunction, Prefetch, Seq, Stmt, Store
from farbench_compiler.ir.visit import free_vars, map_children


def serialize_nested(fn: LoopFunction) -> LoopFunction:
    """Make parallel loops inside of parallel loops serial: the pool runs one loop at a time."""
    return replace(fn, body=_serialize(fn.body, inside=False))


def _serialize(s: Stmt, inside: bool) -> Stmt:
    if isinstance(s, For) and s.kind == "parallel":
        if inside:
            s = replace(s, kind="serial")
        inside = True
    return map_children(s, lambda e: e, lambda below: _serialize(below, inside))


def hoist_allocations(fn: LoopFunction) -> LoopFunction:
    """Move allocations out of serial and unrolled loops that their size does not depend on.

    What a buffer holds at its allocation is undefined, so one memory can serve all iterations.
    Parallel loops keep theirs: each thread needs its own. Local buffers stay: they cost nothing.
    """
    body, buffers = _hoist(_distinct(fn.body, set()))
    return replace(fn, body=_wrapped(body, buffers))


def _distinct(s: Stmt, seen: set[int]) -> Stmt:
    """Give a buffer that is allocated in several places (parts of one loop) a twin in each.

    Parts access it with vectors of different lengths; memory of their own goes to registers.
    """
    if not isinstance(s, Allocate):
        return map_children(s, lambda e: e, lambda below: _distinct(below, seen))
    if s.buffer.uid in seen:
        twin = replace(s.buffer, uid=fresh_uid())
        s = Allocate(twin, _renamed(s.body, s.buffer, twin))
    seen.add(s.buffer.uid)
    return Allocate(s.buffer, _distinct(s.body, seen))


def _renamed(s: Stmt, old: Buffer, new: Buffer) -> Stmt:
    def on_expr(e: Expr) -> Expr:
        e = map_children(e, on_expr)
        return replace(e, buffer=new) if isinstance(e, Load) and e.buffer.uid == old.uid else e

    def on_stmt(below: Stmt) -> Stmt:
        below = map_children(below, on_expr, on_stmt)
        if isinstance(below, (Store, Prefetch)) and below.buffer.uid == old.uid:
            return replace(below, buffer=new)
        return below

    return on_stmt(s)


def _hoist(s: Stmt) -> tuple[Stmt, list[Buffer]]:
    """Give the statement without the allocations that may move up, and those."""
    match s:
        case Allocate(buffer, body):
            inner, moving = _hoist(body)
            if buffer.scope == "local":
                return Allocate(buffer, inner), moving
            return inner, [buffer, *moving]
        case For(var, _, _, kind, body):
            inner, moving = _hoist(body)
            free = kind in ("serial", "unrolled")
            stay = [b for b in moving if not free or _depends(b, var)]
            out = [b for b in moving if b not in stay]
            return replace(s, body=_wrapped(inner, stay)), out
        case Seq(stmts):
            # Siblings may allocate one after the other what together would not fit the stack or
            # the cache: large buffers stay with the statement that needs them.
            parts = [_hoist(part) for part in stmts]
            kept = [_wrapped(part, [b for b in moving if not _small(b)]) for part, moving in parts]
            out = [b for _, moving in parts for b in moving if _small(b)]
            return Seq(tuple(kept)), _once(out)
    return map_children(s, lambda e: e, _settle), []


def _settle(s: Stmt) -> Stmt:
    return _wrapped(*_hoist(s))


def _once(buffers: list[Buffer]) -> list[Buffer]:
    return list({buffer.uid: buffer for buffer in buffers}.values())


def _small(buffer: Buffer) -> bool:
    (size,) = buffer.shape
    return isinstance(size, IntImm) and size.value * buffer.dtype.nbytes <= 1 << 12


def _depends(buffer: Buffer, var: Var) -> bool:
    return any(used.uid == var.uid for extent in buffer.shape for used in free_vars(extent))


def _wrapped(s: Stmt, buffers: list[Buffer]) -> Stmt:
    for buffer in reversed(buffers):
        s = Allocate(buffer, s)
    return s
