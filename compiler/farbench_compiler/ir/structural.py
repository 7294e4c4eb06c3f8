"""Structural equality of loop IR, and a key to look structures up by."""

from __future__ import annotations

import struct

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
from farbench_compiler.ir.visit import Extension, Node, children, expr_children


def same(a: Node, b: Node) -> bool:
    """Tell whether two trees are alike: variables and buffers are compared by identity (`uid`)."""
    if a is b:
        return True
    if type(a) is not type(b) or _label(a) != _label(b):
        return False
    below_a, below_b = children(a), children(b)
    return len(below_a) == len(below_b) and all(
        same(x, y) for x, y in zip(below_a, below_b, strict=True)
    )


def key(node: Expr) -> str:
    """Give a text that two expressions share exactly when they are the same."""
    try:
        known: str = node._memo_key
    except AttributeError:
        known = _key(node)
        # Nodes are frozen, and this is no part of what they say.
        object.__setattr__(node, "_memo_key", known)
    return known


def _key(node: Expr) -> str:
    match node:
        case Var(_, _, uid):
            return f"v{uid:07d}"
        case IntImm(value, dtype) if dtype.bits == 64:
            return str(value)
    inner = ",".join([key(child) for child in expr_children(node)])
    return f"{type(node).__name__}{_label(node)}({inner})"


def _label(node: Node) -> tuple[object, ...]:
    return _expr_label(node) if isinstance(node, Expr) else _stmt_label(node)


def _expr_label(node: Expr) -> tuple[object, ...]:
    """Give what tells a node from others of its class, apart from its children."""
    match node:
        case Var(_, _, uid):
            return (uid,)
        case IntImm(value, dtype):
            return (value, str(dtype))
        case FloatImm(value, dtype):
            return (struct.pack("<d", value), str(dtype))
        case Binary(op, _, _, dtype):
            return (op, str(dtype))
        case Compare(compare, _, _, _):
            return (compare,)
        case Logic(logic, _, _, _):
            return (logic,)
        case Call(name, _, dtype):
            return (name, str(dtype))
        case Load(buffer, _, dtype):
            return (f"{buffer.uid:07d}", str(dtype))  # keys sort by it: as the number does
        case Ramp(_, _, lanes, _) | Broadcast(_, lanes, _):
            return (lanes,)
        case Cast() | Not() | Select() | IfThenElse():
            return (str(node.dtype),)
        case Extension():
            return (repr(node),)
    raise TypeError(f"{type(node).__name__} is no expression of the loop IR")


def _stmt_label(node: Stmt) -> tuple[object, ...]:
    match node:
        case For(var, _, _, kind, _):
            return (var.uid, kind)
        case Store(buffer, _, _) | Allocate(buffer, _) | Prefetch(buffer, _):
            return (buffer.uid,)
        case Let(var, _, _):
            return (var.uid,)
        case Require(_, message):
            return tuple(part for part in message if isinstance(part, str))
        case IfThen() | Seq() | Evaluate():
            return ()
    raise TypeError(f"{type(node).__name__} is no statement of the loop IR")
