"""Sums of products of tensors: of matrices, along any dimensions, and as Einstein wrote them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from farbench_compiler import te
from farbench_compiler.ir.expr import Expr, ExprLike, const
from farbench_compiler.te import Tensor
from farbench_compiler.topi import nn
from farbench_compiler.topi.arguments import axis_of, check_rank, check_same, known, refusal

Axes = int | Sequence[int | Sequence[int]]
_EINSUM = re.compile(r"([A-Za-z]*(?:,[A-Za-z]*)*)(?:->([A-Za-z]*))?")


def matmul(a: Tensor, b: Tensor, transp_a: bool = False, transp_b: bool = False) -> Tensor:
    """Multiply matrices [m, k] and [k, n]; either may be given transposed."""
    for x in (a, b):
        check_rank("matmul", x, 2)
    return nn.matmul(a, b, transpose_a=transp_a, transpose_b=transp_b)


def tensordot(a: Tensor, b: Tensor, axes: Axes) -> Tensor:
    """Add up products along dimensions of both tensors, as numpy does.

    `axes` counts the last dimensions of `a` and the first ones of `b`, or names those of each.
    """
    op = "tensordot"
    if isinstance(axes, int):
        if not 0 <= axes <= min(a.ndim, b.ndim):
            raise refusal(
                op, f"axes is {axes}; {a.name} has {a.ndim} dimensions, {b.name} {b.ndim}"
            )
        pair = [list(range(a.ndim - axes, a.ndim)), list(range(axes))]
    else:
        pair = [
            [axis_of(op, x, d) for d in ([given] if isinstance(given, int) else given)]
            for x, given in zip((a, b), axes, strict=False)
        ]
    if len(pair) != 2 or len(pair[0]) != len(pair[1]) or any(len(set(p)) < len(p) for p in pair):
        raise refusal(op, f"axes {axes} do not pair dimensions; name as many of each, each once")
    letters = iter(range(a.ndim + b.ndim))
    left = [next(letters) for _ in range(a.ndim)]
    right = [next(letters) for _ in range(b.ndim)]
    for x, y in zip(*pair, strict=True):
        right[y] = left[x]
    out = [n for n in (*left, *right) if (n in left) != (n in right)]
    return _contracted(op, [(a, left), (b, right)], out)


def einsum(subscripts: str, *operand: Tensor) -> Tensor:
    """Add up products as a text such as `ij,jk->ik` says: one letter a dimension.

    Without `->` the letters that occur once are kept, in their alphabetical order.
    """
    match = _EINSUM.fullmatch(subscripts.replace(" ", ""))
    if match is None:
        raise refusal("einsum", f"{subscripts!r} is none; write letters, such as ij,jk->ik")
    terms = match[1].split(",")
    if len(terms) != len(operand):
        raise refusal("einsum", f"{subscripts!r} is about {len(terms)} tensors, not {len(operand)}")
    every = "".join(terms)
    out = match[2]
    if out is None:
        out = "".join(sorted(c for c in set(every) if every.count(c) == 1))
    if not set(out) <= set(every) or len(set(out)) < len(out):
        raise refusal("einsum", f"{out!r} must name dimensions of the tensors, each once")
    for x, term in zip(operand, terms, strict=True):
        check_rank("einsum", x, len(term))
    pairs = [(x, [ord(c) for c in term]) for x, term in zip(operand, terms, strict=True)]
    return _contracted("einsum", pairs, [ord(c) for c in out])


def _contracted(
    op: str, operands: Sequence[tuple[Tensor, Sequence[int]]], out: Sequence[int]
) -> Tensor:
    """Multiply elements; dimensions have numbers, and those that `out` has not are added up."""
    sizes: dict[int, Expr] = {}
    for x, numbers in operands:
        for d, n in enumerate(numbers):
            # As in numpy a size of 1 gives way to another.
            if known(x.shape[d]) != 1 and known(sizes.get(n, const(1))) != 1:
                check_same(
                    op, f"sizes that meet in dimension {d} of {x.name}", sizes[n], x.shape[d]
                )
            elif n not in sizes or known(sizes[n]) == 1:
                sizes[n] = x.shape[d]
    steps = {n: te.reduce_axis((0, size), name=f"k{n}") for n, size in sizes.items()
             if n not in out}  # fmt: skip

    def element(*i: Expr) -> ExprLike:
        at = dict(zip(out, i, strict=True)) | steps
        factors = [
            x(*(const(0) if known(x.shape[d]) == 1 else at[n] for d, n in enumerate(numbers)))
            for x, numbers in operands
        ]
        product = factors[0]
        for factor in factors[1:]:
            product = product * factor
        return te.sum(product, axis=tuple(steps.values())) if steps else product

    return te.compute([sizes[n] for n in out], element, name=op, tag=op)
