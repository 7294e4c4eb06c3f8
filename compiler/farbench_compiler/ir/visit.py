"""Walk and rebuild loop IR: children, map over children, substitution.

A package that adds expression nodes of its own derives them from `Extension`, with `children()`
and `rebuild(children)`, and everything here works on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, overload

from farbench_compiler.ir.expr import (
    Binary,
    Broadcast,
    Call,
    Cast,
    Compare,
    Expr,
    FloatImm,
    IfThenElse,
    IntImm,
    Load,
    Logic,
    Not,
    Ramp,
    Select,
    Var,
)
from farbench_compiler.ir.stmt import (
    Allocate,
    Evaluate,
    For,
    IfThen,
    Let,
    Prefetch,
    Require,
    Seq,
    Stmt,
    Store,
)

Node = Expr | Stmt
ExprMap = Callable[[Expr], Expr]
StmtMap = Callable[[Stmt], Stmt]


class Extension(Expr):
    """An expression node that this package does not know: its class derives from this one."""

    __slots__ = ()

    def children(self) -> tuple[Expr, ...]:
        """Give the expressions below, in a fixed order."""
        raise NotImplementedError

    def rebuild(self, children: tuple[Expr, ...]) -> Expr:
        """Make the same node over other children."""
        raise NotImplementedError


def children(node: Node) -> tuple[Node, ...]:
    """Give the nodes directly below, in order of evaluation."""
    return expr_children(node) if isinstance(node, Expr) else _stmt_children(node)


# By class, since this is asked more often than anything else of the IR.
_BELOW: dict[type[Expr], Callable[[Any], tuple[Expr, ...]]] = {
    **dict.fromkeys((Var, IntImm, FloatImm), lambda e: ()),
    **dict.fromkeys((Binary, Compare, Logic), lambda e: (e.a, e.b)),
    **dict.fromkeys((Cast, Broadcast), lambda e: (e.value,)),
    **dict.fromkeys((Select, IfThenElse), lambda e: (e.cond, e.a, e.b)),
    Load: lambda e: e.indices,
    Not: lambda e: (e.a,),
    Call: lambda e: e.args,
    Ramp: lambda e: (e.base, e.stride),
}


def expr_children(node: Expr) -> tuple[Expr, ...]:
    """Give the expressions directly below an expression."""
    below = _BELOW.get(node.__class__)
    if below is not None:
        return below(node)
    if isinstance(node, Extension):
        return node.children()
    for known in _BELOW:
        if isinstance(node, known):  # a class derived from a node, as an axis is from a variable
            return _BELOW[known](node)
    raise TypeError(f"{type(node).__name__} is no expression of the loop IR")


def _stmt_children(node: Stmt) -> tuple[Node, ...]:
    match node:
        case For(_, begin, extent, _, body):
            return (begin, extent, body)
        case Store(_, indices, value):
            return (*indices, value)
        case IfThen(cond, then, None):
            return (cond, then)
        case IfThen(cond, then, otherwise) if otherwise is not None:
            return (cond, then, otherwise)
        case Seq(stmts):
            return stmts
        case Allocate(buffer, body):
            return (*buffer.shape, body)
        case Let(_, value, body):
            return (value, body)
        case Evaluate(value):
            return (value,)
        case Prefetch(_, indices):
            return indices
        case Require(cond, _):
            return (cond, *node.values)
    raise TypeError(f"{type(node).__name__} is no statement of the loop IR")


def walk(node: Node) -> Iterator[Node]:
    """Give the node and all below it, parents first."""
    stack: list[Node] = [node]
    while stack:
        top = stack.pop()
        yield top
        below = children(top)
        if below:
            stack.extend(below[::-1])


def node_count(e: Expr) -> int:
    """Count the nodes of an expression; a part that stands in two places counts twice."""
    try:
        known: int = e._memo_size
    except AttributeError:
        known = 1 + sum(map(node_count, expr_children(e)))
        object.__setattr__(e, "_memo_size", known)
    return known


def free_vars(node: Node) -> frozenset[Var]:
    """Collect the variables that are read, bound or not."""
    if isinstance(node, Expr):
        return _vars_below(node)
    return frozenset().union(*map(free_vars, _stmt_children(node)))


def _vars_below(e: Expr) -> frozenset[Var]:
    try:
        known: frozenset[Var] = e._memo_vars
    except AttributeError:
        below = [_vars_below(child) for child in expr_children(e)]
        known = frozenset((e,)) if isinstance(e, Var) else frozenset().union(*below)
        object.__setattr__(e, "_memo_vars", known)
    return known


@overload
def map_children(node: Expr, on_expr: ExprMap, on_stmt: StmtMap | None = None) -> Expr: ...
@overload
def map_children(node: Stmt, on_expr: ExprMap, on_stmt: StmtMap | None = None) -> Stmt: ...


def map_children(node: Node, on_expr: ExprMap, on_stmt: StmtMap | None = None) -> Node:
    """Rebuild a node over mapped children; the node itself where none changed.

    Statements below a statement are left alone unless `on_stmt` is given.
    """
    if isinstance(node, Expr):
        return _map_expr(node, on_expr)
    return _map_stmt(node, on_expr, on_stmt or (lambda s: s))


_REBUILD: dict[type[Expr], Callable[[Any, tuple[Expr, ...]], Expr]] = {
    Binary: lambda e, c: Binary(e.op, c[0], c[1], e.dtype),
    Compare: lambda e, c: Compare(e.op, c[0], c[1], e.dtype),
    Logic: lambda e, c: Logic(e.op, c[0], c[1], e.dtype),
    Load: lambda e, c: Load(e.buffer, c, e.dtype),
    Cast: lambda e, c: Cast(e.dtype, c[0]),
    Not: lambda e, c: Not(c[0], e.dtype),
    Select: lambda e, c: Select(c[0], c[1], c[2], e.dtype),
    IfThenElse: lambda e, c: IfThenElse(c[0], c[1], c[2], e.dtype),
    Call: lambda e, c: Call(e.name, c, e.dtype),
    Ramp: lambda e, c: Ramp(c[0], c[1], e.lanes, e.dtype),
    Broadcast: lambda e, c: Broadcast(c[0], e.lanes, e.dtype),
}


def _map_expr(node: Expr, f: ExprMap) -> Expr:
    old = expr_children(node)
    if not old:
        return node
    new = tuple([f(child) for child in old])
    for x, y in zip(old, new, strict=True):
        if x is not y:
            break
    else:
        return node
    rebuild = _REBUILD.get(type(node))
    if rebuild is not None:
        return rebuild(node, new)
    if isinstance(node, Extension):
        return node.rebuild(new)
    raise TypeError(f"{type(node).__name__} is no expression of the loop IR")


def _map_stmt(node: Stmt, f: ExprMap, g: StmtMap) -> Stmt:
    match node:
        case For(var, begin, extent, kind, body):
            new: Stmt = For(var, f(begin), f(extent), kind, g(body))
        case Store(buffer, indices, value):
            new = Store(buffer, tuple(f(i) for i in indices), f(value))
        case IfThen(cond, then, otherwise):
            new = IfThen(f(cond), g(then), None if otherwise is None else g(otherwise))
        case Seq(stmts):
            new = Seq(tuple(g(s) for s in stmts))
        case Allocate(buffer, body):
            shape = tuple(f(s) for s in buffer.shape)
            if any(x is not y for x, y in zip(shape, buffer.shape, strict=True)):
                buffer = replace(buffer, shape=shape)
            new = Allocate(buffer, g(body))
        case Let(var, value, body):
            new = Let(var, f(value), g(body))
        case Evaluate(value):
            new = Evaluate(f(value))
        case Prefetch(buffer, indices):
            new = Prefetch(buffer, tuple(f(i) for i in indices))
        case Require(cond, message):
            parts = tuple(f(part) if isinstance(part, Expr) else part for part in message)
            new = Require(f(cond), parts)
        case _:
            raise TypeError(f"{type(node).__name__} is no statement of the loop IR")
    unchanged = all(x is y for x, y in zip(_stmt_children(node), _stmt_children(new), strict=True))
    return node if unchanged else new


@overload
def substitute(node: Expr, values: Mapping[Var, Expr]) -> Expr: ...
@overload
def substitute(node: Stmt, values: Mapping[Var, Expr]) -> Stmt: ...


def substitute(node: Node, values: Mapping[Var, Expr]) -> Node:
    """Replace variables by expressions, everywhere below."""
    by_uid = {var.uid: value for var, value in values.items()}

    def on_expr(e: Expr) -> Expr:
        if isinstance(e, Var):
            return by_uid.get(e.uid, e)
        if not any(var.uid in by_uid for var in _vars_below(e)):
            return e
        return _map_expr(e, on_expr)

    def on_stmt(s: Stmt) -> Stmt:
        return _map_stmt(s, on_expr, on_stmt)

    return on_expr(node) if isinstance(node, Expr) else on_stmt(node)


def renamed(s: Stmt, fresh: Mapping[Var, Var]) -> Stmt:
    """Give a statement with variables replaced, where it binds them and where it reads them."""

    def on_stmt(s: Stmt) -> Stmt:
        s = map_children(s, lambda e: e, on_stmt)
        if isinstance(s, (For, Let)) and s.var in fresh:
            return replace(s, var=fresh[s.var])
        return s

    return substitute(on_stmt(s), dict(fresh))
