"""Turn vectorised loops into vector operations, or into loops where that would not be right."""

from __future__ import annotations

from dataclasses import dataclass, replace

from farbench_compiler.ir.dtypes import INT64
from farbench_compiler.ir.expr import (
    Binary,
    Buffer,
    Expr,
    IfThenElse,
    IntImm,
    Load,
    Logic,
    Ramp,
    Select,
    Var,
    binary,
    cast,
)
from farbench_compiler.ir.interval import Interval
from farbench_compiler.ir.simplify import TRUE, Simplifier, sequence
from farbench_compiler.ir.stmt import (
    Allocate,
    Evaluate,
    For,
    IfThen,
    Let,
    LoopFunction,
    LoopKind,
    Prefetch,
    Seq,
    Stmt,
    Store,
)
from farbench_compiler.ir.structural import key, same
from farbench_compiler.ir.visit import (
    children,
    expr_children,
    free_vars,
    map_children,
    substitute,
    walk,
)
from farbench_compiler.passes.lanes import Lanes, NotLanes, assume

REGISTERS_A_VALUE = 8  # a longer vector is split: LLVM takes long to break up huge ones


@dataclass(frozen=True)
class Vectorize:
    """The pass and its options: bits of a vector register (0: none) and masked loads and stores."""

    vector_bits: int
    masks: bool

    def __call__(self, fn: LoopFunction) -> LoopFunction:
        """Vectorise all loops of a function that ask for it."""
        ranges = {symbol: Interval(0, None) for symbol in fn.symbols}
        return replace(fn, body=_Walk(self, Simplifier(ranges)).stmt(fn.body))


class _Walk:
    """Goes down to the vectorised loops, knowing the ranges of the loops around."""

    def __init__(self, options: Vectorize, simplifier: Simplifier) -> None:
        self._options = options
        self._simplifier = simplifier

    def stmt(self, s: Stmt) -> Stmt:
        if not isinstance(s, For):
            return map_children(s, lambda e: e, self.stmt)
        if s.kind == "vectorized":
            return self._vectorized(s)
        joined = self._joined(s)
        if joined is not None:
            return joined
        return replace(s, body=_Walk(self._options, self._inside(s)).stmt(s.body))

    def _inside(self, s: For) -> Simplifier:
        last = binary("sub", binary("add", s.begin, s.extent), 1)
        return self._simplifier.under({s.var: Interval(s.begin, self._simplifier.expr(last))})

    def _joined(self, s: For) -> For | None:
        """Join a split reduction whose inner loop is vectorised: one loop keeps its vector of sums.

        None where there is none, or where the steps of both loops are not one walk through memory.
        """
        inner = s.body
        if not isinstance(inner, For) or s.kind != "serial":
            return None
        inner = self._joined(inner) or inner
        size = inner.extent
        if inner.kind != "vectorized" or not isinstance(size, IntImm) or not _starts_at_0(inner):
            return None
        step = Var(inner.var.name, s.var.dtype)
        begin, extent = (binary("mul", end, size) for end in (s.begin, s.extent))
        known = self._simplifier.under({step: Interval(begin, binary("sub", begin + extent, 1))})
        digits = {
            s.var: binary("floordiv", step, size),
            inner.var: cast(inner.var.dtype, binary("floormod", step, size)),
        }
        body = known.stmt(substitute(inner.body, digits))
        made = For(step, begin, extent, "vectorized", body)
        return made if _is_reduction(made) and not _divides(body, step) else None

    def _vectorized(self, s: For) -> Stmt:
        inner = _Walk(self._options, self._inside(s)).stmt(s.body)
        s = replace(s, body=inner)
        if _holds_vectors(inner):
            return replace(s, kind="serial")
        if _is_reduction(s):  # LLVM may vectorise it as a whole, and reassociate
            return s
        limit = self._longest(s)
        if limit <= 1:
            return replace(s, kind="unrolled" if _is_short(s) else "serial")
        if not isinstance(s.extent, IntImm) or s.extent.value > limit:
            return self._strips(s, limit)
        return self._pieces(s, s.extent.value)

    def _longest(self, s: For) -> int:
        """Give the greatest number of lanes that a vector of this body should have."""
        if not self._options.vector_bits:
            return 1
        return max(2, REGISTERS_A_VALUE * self._options.vector_bits // (8 * _widest(s.body)))

    def _strips(self, s: For, limit: int) -> Stmt:
        """Run a long or symbolic loop in strips of whole vectors, and the rest one by one."""
        lanes = limit // 2
        if isinstance(s.extent, IntImm):
            fitting = (n for n in (limit, lanes, lanes // 2) if n and s.extent.value % n == 0)
            lanes = next(fitting, lanes)
        size = IntImm(lanes, s.var.dtype)
        outer = Var(f"{s.var.name}.strip", s.var.dtype)
        strip = binary("add", s.begin, binary("mul", outer, size))
        count = self._simplifier.expr(binary("floordiv", s.extent, size))
        zero = IntImm(0, s.var.dtype)
        known = self._simplifier.under({outer: Interval(zero, binary("sub", count, 1))})
        one = replace(s, begin=strip, extent=size)
        whole = For(outer, zero, count, "serial", _Walk(self._options, known)._expand(one, lanes))
        left = self._simplifier.expr(binary("floormod", s.extent, size))
        if isinstance(left, IntImm) and left.value == 0:
            return whole
        begin = self._simplifier.expr(binary("add", s.begin, binary("mul", count, size)))
        rest = replace(s, begin=begin, extent=left)
        if isinstance(left, IntImm):
            return sequence((whole, self._pieces(rest, left.value)))
        return sequence((whole, _scalar(rest)))

    def _pieces(self, s: For, extent: int) -> Stmt:
        """Cut a loop into vectors of 2^n lanes: others are taken apart lane by lane in the end."""
        parts: list[Stmt] = []
        done = 0
        while done < extent:
            lanes = 1 << ((extent - done).bit_length() - 1)
            begin = self._simplifier.expr(binary("add", s.begin, done))
            piece = replace(s, begin=begin, extent=IntImm(lanes, s.var.dtype))
            one = substitute(s.body, {s.var: begin})
            parts.append(self._expand(piece, lanes) if lanes > 1 else one)
            done += lanes
        return sequence(parts)

    def _expand(self, s: For, lanes: int) -> Stmt:
        begin = self._simplifier.expr(s.begin)
        s = replace(s, begin=begin)
        inside = self._inside(s)
        try:
            return _Expand(s, lanes, inside, self._options).run()
        except NotLanes:
            return replace(s, kind="serial")


class _Expand:
    """Writes the body of one vectorised loop over all lanes at once."""

    def __init__(self, s: For, lanes: int, simplifier: Simplifier, options: Vectorize) -> None:
        self._loop = s
        self._count = lanes
        self._options = options
        self._lanes = Lanes(s.var, s.begin, lanes, simplifier)
        self._apart = 0  # statements that were taken apart into lanes

    def run(self) -> Stmt:
        return self._stmt(_private(self._loop.body, self._loop, self._count))

    def _stmt(self, s: Stmt) -> Stmt:
        match s:
            case Store():
                return self._store(s)
            case Seq(stmts):
                return sequence(self._stmt(part) for part in stmts)
            case For(_, begin, extent, _, body):
                if self._lanes.depends(begin) or self._lanes.depends(extent):
                    raise NotLanes("an inner loop differs from lane to lane")
                return replace(s, kind=_inner_kind(s), body=self._stmt(body))
            case IfThen(cond, then, otherwise):
                return self._branch(s, cond, then, otherwise)
            case Allocate(_, body):
                return replace(s, body=self._stmt(body))
            case Let(var, value, body):
                if self._lanes.depends(value):
                    return self._stmt(substitute(body, {var: value}))
                return Let(var, value, self._stmt(body))
            case Evaluate():
                return Seq(())
            case Prefetch():  # lanes lie near each other: once for all
                return substitute(s, {self._loop.var: self._loop.begin})
        raise NotLanes(type(s).__name__)

    def _store(self, s: Store) -> Stmt:
        conds = _guards(s.value, self._lanes)
        tests = [self._lanes.everywhere(cond) for cond in conds]
        if not conds or all(test is None for test in tests):
            return self._plain_store(s)
        # Away from the edges every guard holds in all lanes: no masks there.
        truths = {key(c): TRUE for c, test in zip(conds, tests, strict=True) if test is not None}
        free = _choose(assume(s.value, dict(truths)))
        all_hold = _conjunction([test for test in tests if test is not None])
        inside = self._plain_store(replace(s, value=free))
        return IfThen(all_hold, inside, self._edge(s))

    def _edge(self, s: Store) -> Stmt:
        return self._plain_store(s) if self._options.masks else self._one_by_one(s)

    def _plain_store(self, s: Store) -> Stmt:
        (index,) = s.indices
        where = self._lanes.index(index)
        value = self._lanes.expr(s.value)
        if not isinstance(where, Ramp) and _reads(s.value, s.buffer):
            raise NotLanes("lanes may update one element more than once")
        if where.dtype.lanes == 1:
            if value.dtype.lanes > 1:
                raise NotLanes("all lanes write one element")
            return Store(s.buffer, (where,), value)
        if value.dtype.lanes == 1:
            value = self._lanes.spread(value)
        return Store(s.buffer, (where,), value)

    def _branch(self, s: Stmt, cond: Expr, then: Stmt, otherwise: Stmt | None) -> Stmt:
        if not self._lanes.depends(cond):
            other = None if otherwise is None else self._stmt(otherwise)
            return IfThen(cond, self._stmt(then), other)
        test = self._lanes.everywhere(cond)
        if otherwise is None and (self._options.masks or _stays_local(then)):
            slow = self._masked(s, cond, then)
        else:
            slow = self._one_by_one(s)
        return slow if test is None else IfThen(test, self._stmt(then), slow)

    def _masked(self, s: Stmt, cond: Expr, then: Stmt) -> Stmt:
        """Run a branch in the lanes that take it; one by one where part of it runs so anyhow."""
        before = self._apart
        body = self._stmt(then)
        # A loop over the lanes inside of the mask would run in those that it leaves out, too.
        if self._apart > before:
            return self._one_by_one(s)
        return IfThen(self._lanes.vector(cond), body)

    def _one_by_one(self, s: Stmt) -> Stmt:
        """Run a statement lane after lane."""
        self._apart += 1
        lane = Var(self._loop.var.name, self._loop.var.dtype)
        body = substitute(s, {self._loop.var: lane})
        count = IntImm(self._count, lane.dtype)
        return _scalar(For(lane, self._loop.begin, count, "serial", body))


def _scalar(s: For) -> For:
    """Give a loop a variable of its own and make it serial."""
    var = Var(s.var.name, s.var.dtype)
    return For(var, s.begin, s.extent, "serial", substitute(s.body, {s.var: var}))


def _is_short(s: For) -> bool:
    """Tell whether a loop is worth writing out where there are no vectors."""
    few = isinstance(s.extent, IntImm) and s.extent.value <= 16
    return few and not any(isinstance(n, For) for n in walk(s.body))


def _stays_local(s: Stmt) -> bool:
    """Tell whether a statement writes to local buffers alone: masks then cost a choice, no more."""
    return all(n.buffer.scope == "local" for n in walk(s) if isinstance(n, Store))


def _inner_kind(s: For) -> LoopKind:
    return "serial" if s.kind == "parallel" else s.kind


def _holds_vectors(s: Stmt) -> bool:
    return any(isinstance(n, Expr) and n.dtype.lanes > 1 for n in walk(s))


def _reads(e: Expr, buffer: Buffer) -> bool:
    return any(isinstance(n, Load) and n.buffer.uid == buffer.uid for n in walk(e))


def _is_reduction(s: For) -> bool:
    """Tell whether a body is one update `b[i] = b[i] op ...` of an element that stays the same."""
    body = s.body
    if not isinstance(body, Store) or not isinstance(body.value, Binary):
        return False
    lanes = Lanes(s.var, s.begin, 2, Simplifier({}))
    old = Load(body.buffer, body.indices, body.buffer.dtype)
    operands = (body.value.a, body.value.b)
    return not lanes.depends(body.indices[0]) and any(same(old, e) for e in operands)


def _widest(body: Stmt) -> int:
    """Give the bytes of the widest elements that are read, computed or written; not of indices."""
    found = 0
    todo: list[Expr | Stmt] = [body]
    while todo:
        node = todo.pop()
        if isinstance(node, (Load, Store)):
            found = max(found, node.buffer.dtype.nbytes)
        if isinstance(node, Store):
            todo.append(node.value)
        elif isinstance(node, Expr):
            found = max(found, node.dtype.nbytes)
            todo.extend(() if isinstance(node, Load) else expr_children(node))
        else:
            todo.extend(child for child in children(node) if isinstance(child, Stmt))
    return found or 4


def _starts_at_0(s: For) -> bool:
    return isinstance(s.begin, IntImm) and s.begin.value == 0


def _divides(s: Stmt, var: Var) -> bool:
    """Tell whether a quotient or a remainder of a variable is left."""
    return any(
        isinstance(n, Binary) and n.op in ("floordiv", "floormod") and var in free_vars(n)
        for n in walk(s)
    )


def _guards(e: Expr, lanes: Lanes) -> list[Expr]:
    """List the conditions of guarded values that differ from lane to lane."""
    found = {}
    for node in walk(e):
        if isinstance(node, IfThenElse) and lanes.depends(node.cond):
            found[key(node.cond)] = node.cond
    return list(found.values())


def _conjunction(conds: list[Expr]) -> Expr:
    result = conds[0]
    for cond in conds[1:]:
        result = Logic("and", result, cond)
    return result


def _choose(e: Expr) -> Expr:
    """Drop the sides that a constant condition leaves out."""
    if isinstance(e, (IfThenElse, Select)) and isinstance(e.cond, IntImm):
        return _choose(e.a if e.cond.value else e.b)
    return map_children(e, _choose)


def _private(s: Stmt, loop: For, lanes: int) -> Stmt:
    """Give each lane its own copy of what is allocated inside of the loop, interleaved."""
    own: dict[int, Buffer] = {}
    for node in walk(s):
        if isinstance(node, Allocate):
            (size,) = node.buffer.shape
            wider = replace(node.buffer, shape=(binary("mul", size, lanes),))
            own[wider.uid] = wider
    if not own:
        return s

    def place(indices: tuple[Expr, ...]) -> tuple[Expr]:
        lane = cast(INT64, binary("sub", loop.var, loop.begin))
        return (binary("add", binary("mul", indices[0], lanes), lane),)

    def on_expr(e: Expr) -> Expr:
        e = map_children(e, on_expr)
        if isinstance(e, Load) and e.buffer.uid in own:
            return Load(own[e.buffer.uid], place(e.indices), e.dtype)
        return e

    def on_stmt(below: Stmt) -> Stmt:
        below = map_children(below, on_expr, on_stmt)
        if isinstance(below, Store) and below.buffer.uid in own:
            return Store(own[below.buffer.uid], place(below.indices), below.value)
        if isinstance(below, Prefetch) and below.buffer.uid in own:
            return Prefetch(own[below.buffer.uid], place(below.indices))
        if isinstance(below, Allocate):
            return replace(below, buffer=own[below.buffer.uid])
        return below

    return on_stmt(s)
