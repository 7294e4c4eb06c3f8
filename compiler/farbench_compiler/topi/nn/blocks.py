"""Blocks: elements moved between space, channels and batch."""

from __future__ import annotations

from collections.abc import Sequence

from farbench_compiler import te
from farbench_compiler.ir.expr import Expr, ExprLike, as_expr
from farbench_compiler.te import Tensor
from farbench_compiler.topi.arguments import check_divides, known, per_axis, refusal
from farbench_compiler.topi.layout import Layout
from farbench_compiler.topi.nn.padding import spread
from farbench_compiler.topi.shaping import apart, count_of
from farbench_compiler.topi.tag import INJECTIVE


def flatten(data: Tensor) -> Tensor:
    """Join all dimensions but the first."""
    if data.ndim < 1:
        raise refusal("nn.flatten", f"{data.name} has no dimensions")
    rest = data.shape[1:]
    return te.compute(
        (data.shape[0], count_of(rest)),
        lambda i, j: data(i, *apart(j, rest)),
        name="tensor",
        tag=INJECTIVE,
    )


def space_to_depth(data: Tensor, block_size: int, layout: str = "NCHW") -> Tensor:
    """Put the elements of each square block of H and W side by side in the channels."""
    op = "nn.space_to_depth"
    axes, sizes = _image(op, data, layout)
    for a in "HW":
        check_divides(op, f"elements of axis {a}", sizes[a], block_size)
    shape = axes.ordered(
        sizes
        | {a: sizes[a] // block_size for a in "HW"}
        | {"C": sizes["C"] * block_size * block_size}
    )

    def element(*i: Expr) -> Expr:
        at = axes.named(i)
        block, c = at["C"] // sizes["C"], at["C"] % sizes["C"]
        place = {
            "C": c,
            "H": at["H"] * block_size + block // block_size,
            "W": at["W"] * block_size + block % block_size,
        }
        return axes.read(data, at | place)

    return te.compute(shape, element, name="space_to_depth", tag=INJECTIVE)


def depth_to_space(
    data: Tensor, block_size: int, layout: str = "NCHW", mode: str = "DCR"
) -> Tensor:
    """Spread channels over square blocks of H and W.

    The block is the outer part of the channels in mode DCR and the inner one in mode CDR.
    """
    op = "nn.depth_to_space"
    axes, sizes = _image(op, data, layout)
    if mode not in ("DCR", "CDR"):
        raise refusal(op, f"mode {mode!r} is unknown; give DCR or CDR")
    check_divides(op, "channels", sizes["C"], block_size * block_size)
    channels = sizes["C"] // (block_size * block_size)
    shape = axes.ordered(sizes | {a: sizes[a] * block_size for a in "HW"} | {"C": channels})

    def element(*i: Expr) -> Expr:
        at = axes.named(i)
        block = at["H"] % block_size * block_size + at["W"] % block_size
        outer = block * channels + at["C"]
        inner = at["C"] * (block_size * block_size) + block
        place = {"C": outer if mode == "DCR" else inner}
        return axes.read(data, at | place | {a: at[a] // block_size for a in "HW"})

    return te.compute(shape, element, name="depth_to_space", tag=INJECTIVE)


def _image(op: str, data: Tensor, layout: str) -> tuple[Layout, dict[str, Expr]]:
    axes = Layout.parse(op, layout, "NCHW", data)
    return axes, axes.named(data.shape)


def space_to_batch_nd(
    data: Tensor,
    block_shape: Sequence[int],
    pad_before: Sequence[ExprLike],
    pad_after: Sequence[ExprLike],
    pad_value: ExprLike = 0.0,
) -> Tensor:
    """Pad the dimensions after the first, then move each place in a block to the batch."""
    op, count = "nn.space_to_batch_nd", len(block_shape)
    blocks = _blocks(op, data, block_shape, pad_before, pad_after)
    sides = [
        [as_expr(0), *map(as_expr, side), *[as_expr(0)] * (data.ndim - count - 1)]
        for side in (pad_before, pad_after)
    ]
    near = spread(data, sides[0], sides[1], [1] * data.ndim, pad_value, "padded")
    for d, block in enumerate(blocks):
        check_divides(op, f"padded elements of axis {d + 1}", near.shape[d + 1], block)
    batch, area = data.shape[0], 1
    for block in blocks:
        area *= block
    inner = [n // b for n, b in zip(near.shape[1:], blocks, strict=False)]
    shape = [batch * area, *inner, *data.shape[count + 1 :]]

    def element(*i: Expr) -> Expr:
        offsets = apart(i[0] // batch, [as_expr(block) for block in blocks])
        at = [x * b + o for x, b, o in zip(i[1:], blocks, offsets, strict=False)]
        return near(i[0] % batch, *at, *i[count + 1 :])

    return te.compute(shape, element, name="space_to_batch_nd", tag=INJECTIVE)


def batch_to_space_nd(
    data: Tensor,
    block_shape: Sequence[int],
    crop_begin_list: Sequence[ExprLike],
    crop_end_list: Sequence[ExprLike],
) -> Tensor:
    """Move batches back to their places in blocks, then cut elements off both ends."""
    op, count = "nn.batch_to_space_nd", len(block_shape)
    blocks = _blocks(op, data, block_shape, crop_begin_list, crop_end_list)
    area = 1
    for block in blocks:
        area *= block
    check_divides(op, "batches", data.shape[0], area)
    batch = data.shape[0] // area
    first, last = (tuple(map(as_expr, side)) for side in (crop_begin_list, crop_end_list))
    inner = [n * b - f - e for n, b, f, e in zip(data.shape[1:], blocks, first, last, strict=False)]
    if any((known(n) or 0) < 0 for n in inner):
        raise refusal(op, f"crops leave {[known(n) for n in inner]} elements")
    shape = [batch, *inner, *data.shape[count + 1 :]]

    def element(*i: Expr) -> Expr:
        at = [x + f for x, f in zip(i[1:], first, strict=False)]
        number: Expr = as_expr(0)
        for x, block in zip(at, blocks, strict=False):
            number = number * block + x % block
        places = [x // b for x, b in zip(at, blocks, strict=False)]
        return data(number * batch + i[0], *places, *i[count + 1 :])

    return te.compute(shape, element, name="batch_to_space_nd", tag=INJECTIVE)


def _blocks(
    op: str,
    data: Tensor,
    block_shape: Sequence[int],
    before: Sequence[ExprLike],
    after: Sequence[ExprLike],
) -> tuple[int, ...]:
    count = len(block_shape)
    if not len(before) == len(after) == count or count >= data.ndim:
        raise refusal(
            op,
            f"{count} blocks, {len(before)} and {len(after)} edges for the {data.ndim} dimensions"
            f" of {data.name}; give one of each for dimensions from 1 on",
        )
    return per_axis(op, "block_shape", block_shape, count)
