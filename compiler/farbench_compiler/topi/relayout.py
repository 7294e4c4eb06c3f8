"""Tensors moved from one layout to another, such as NCHW to NCHW16c."""

from __future__ import annotations

from farbench_compiler import te
from farbench_compiler.ir.expr import Expr, const
from farbench_compiler.ir.simplify import simplify
from farbench_compiler.te import Tensor
from farbench_compiler.topi.arguments import check_divides, refusal
from farbench_compiler.topi.layout import Layout
from farbench_compiler.topi.tag import INJECTIVE


def layout_transform(
    array: Tensor, src_layout: str, dst_layout: str, schedule_rule: str = "None"
) -> Tensor:
    """Move the elements of a tensor in one layout to where they lie in another.

    Blocks fill their dimensions: their sizes divide those. `schedule_rule` changes nothing.
    """
    op = "layout_transform"
    src, dst = Layout.parse(op, src_layout, "", array), Layout.parse(op, dst_layout, "")
    from_blocks, to_blocks = (Layout.blocks(op, text) for text in (src_layout, dst_layout))
    whole = {a for a in src.letters if a.isupper()}
    if whole != {a for a in dst.letters if a.isupper()}:
        raise refusal(op, f"layouts {src_layout!r} and {dst_layout!r} differ in their dimensions")
    stored = src.named(array.shape)
    sizes = {a: simplify(stored[a] * from_blocks.get(a, 1)) for a in sorted(whole)}
    shape: dict[str, Expr] = {}
    for a in sorted(whole):
        block = to_blocks.get(a, 1)
        check_divides(op, f"elements of axis {a}", sizes[a], block)
        shape[a] = simplify(te.floordiv(sizes[a], const(block)))
        shape[a.lower()] = const(block)

    def element(*i: Expr) -> Expr:
        at, read = dst.named(i), {}
        for a in whole:
            place = at[a] * to_blocks[a] + at[a.lower()] if a in to_blocks else at[a]
            block = const(from_blocks.get(a, 1))
            read[a], read[a.lower()] = te.floordiv(place, block), te.floormod(place, block)
        return src.read(array, read)

    return te.compute(dst.ordered(shape), element, name="layout_transform", tag=INJECTIVE)
