"""Dot products of neighbours: intrinsics that one instruction computes where a machine has it.

    dot4(sums, a, b)    int32 x N plus four products each of 8-bit integers
    dot2(sums, a, b)    float32 x N plus two products each of bfloat16
    interleave(x, y, ...)    vectors of one dtype, lane by lane: x0 y0 ... x1 y1 ...

`b` has 4N (2N) lanes, of which the first four (two) go to the first sum; `a` has as many, or four
(two) that all sums share. dot4 wraps as int32 does. How dot2 rounds on the way to its sum, and
whether it flushes subnormals, is the machine's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from farbench_compiler.ir.dtypes import FLOAT32, INT32, DType
from farbench_compiler.ir.expr import Call, Expr


@dataclass(frozen=True, slots=True)
class Dot:
    """A dot product: how many neighbours it joins, of which kinds, into sums of which dtype."""

    width: int
    kinds: tuple[str, ...]
    bits: int
    sums: DType


DOTS = {
    "dot4": Dot(4, ("int", "uint"), 8, INT32),
    "dot2": Dot(2, ("bfloat",), 16, FLOAT32),
}
NAMES = frozenset((*DOTS, "interleave"))


def dot4(sums: Expr, a: Expr, b: Expr) -> Expr:
    """Add to each sum four products of 8-bit integers, signed or not; TypeError on other dtypes."""
    return _made("dot4", sums, a, b)


def dot2(sums: Expr, a: Expr, b: Expr) -> Expr:
    """Add to each sum two products of bfloat16; TypeError on other dtypes."""
    return _made("dot2", sums, a, b)


def interleave(*rows: Expr) -> Expr:
    """Take vectors apart lane by lane: all first lanes, then all second ones."""
    of = rows[0].dtype
    e = Call("interleave", rows, of.with_lanes(of.lanes * len(rows)))
    problem = misfit(e)
    if problem is not None:
        raise TypeError(problem)
    return e


def _made(name: str, sums: Expr, a: Expr, b: Expr) -> Expr:
    e = Call(name, (sums, a, b), sums.dtype)
    problem = misfit(e)
    if problem is not None:
        raise TypeError(problem)
    return e


def misfit(e: Call) -> str | None:
    """Say what is wrong with the dtypes of a call of `NAMES`, if anything is."""
    given = [arg.dtype for arg in e.args]
    if e.name == "interleave":
        alike = len(given) > 0 and all(of == given[0] for of in given)
        lanes = sum(of.lanes for of in given)
        return None if alike and e.dtype == given[0].with_lanes(lanes) else "interleave of unlike"
    dot = DOTS[e.name]
    if len(given) != 3:
        return f"{e.name} needs sums and two operands"
    sums, a, b = given
    lanes = sums.lanes * dot.width
    fits = all(of.kind in dot.kinds and of.bits == dot.bits for of in (a, b))
    if sums.scalar != dot.sums or e.dtype != sums or not fits:
        return f"{e.name} of {a} and {b} to {sums}"
    if b.lanes != lanes or a.lanes not in (dot.width, lanes):
        return f"{e.name} to {sums} needs {lanes} lanes, got {a} and {b}"
    return None


def reference(name: str) -> Callable[..., Any]:
    """Give what an intrinsic of `NAMES` does to numpy arrays."""
    if name == "interleave":
        return lambda *rows: np.stack(rows, axis=-1).reshape(-1)
    dot = DOTS[name]
    wide: Any = np.int64 if dot.sums.is_int else np.float32

    def apply(sums: Any, a: Any, b: Any) -> Any:
        count = np.size(sums)
        few = np.asarray(a).astype(wide).reshape(-1, dot.width)
        left = np.broadcast_to(few, (count, dot.width))
        products = left * np.asarray(b).astype(wide).reshape(count, dot.width)
        total = np.asarray(sums).astype(wide).reshape(-1)
        for step in range(dot.width):
            total = total + products[:, step]
        if not dot.sums.is_int:
            return total if np.ndim(sums) else total[0]
        wrapped = total.astype(np.int32)
        return wrapped if np.ndim(sums) else int(wrapped[0])

    return apply
