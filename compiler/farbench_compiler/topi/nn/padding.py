"""Padding: elements put around a tensor, or between its elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from farbench_compiler import te
from farbench_compiler.ir.expr import Expr, ExprLike, as_expr, cast
from farbench_compiler.te import Tensor
from farbench_compiler.topi.arguments import known, per_axis, refusal

TAG = "injective,pad"
Edges = Sequence[ExprLike]


def pad(
    data: Tensor,
    pad_before: Edges,
    pad_after: Edges | None = None,
    pad_value: ExprLike = 0.0,
    name: str = "PadInput",
    attrs: Mapping[str, object] | None = None,
) -> Tensor:
    """Put `pad_value` around a tensor: numbers of elements before and after each dimension.

    `pad_after` is like `pad_before` where it is not given; negative numbers cut elements off.
    """
    before, after = _edges("nn.pad", data, pad_before, pad_after)
    return spread(data, before, after, [1] * data.ndim, pad_value, name, attrs)


def dilate(
    data: Tensor,
    strides: Sequence[int],
    dilation_value: ExprLike = 0.0,
    name: str = "DilatedInput",
) -> Tensor:
    """Put `strides[d] - 1` times `dilation_value` between the elements along dimension d."""
    steps = per_axis("nn.dilate", "strides", strides, data.ndim)
    none = [as_expr(0)] * data.ndim
    return spread(data, none, none, steps, dilation_value, name)


def spread(
    data: Tensor,
    before: Sequence[Expr],
    after: Sequence[Expr],
    strides: Sequence[int],
    value: ExprLike,
    name: str,
    attrs: Mapping[str, object] | None = None,
) -> Tensor:
    """Place the elements `strides` apart and put `value` between and around them."""
    spans = [(n - 1) * s + 1 for n, s in zip(data.shape, strides, strict=True)]
    shape = [b + n + a for b, n, a in zip(before, spans, after, strict=True)]
    filler = cast(data.dtype, value)

    def element(*position: Expr) -> Expr:
        inside: list[Expr] = []
        at: list[Expr] = []
        for d, i in enumerate(position):
            x = i - before[d]
            if known(before[d]) != 0:
                inside.append(x >= 0)
            if known(before[d]) != 0 or known(after[d]) != 0:
                inside.append(x < spans[d])
            if strides[d] > 1:
                inside.append(te.floormod(x, strides[d]) == 0)
            at.append(te.floordiv(x, strides[d]))
        return te.if_then_else(te.all(*inside), data(*at), filler) if inside else data(*at)

    return te.compute(shape, element, name=name, tag=TAG, attrs=attrs)


def mirror_pad(
    data: Tensor,
    pad_before: Edges,
    pad_after: Edges | None = None,
    mode: str = "SYMMETRIC",
    name: str = "MirrorPadInput",
) -> Tensor:
    """Continue a tensor by its mirror image, with the edge itself (SYMMETRIC) or not (REFLECT)."""
    if mode not in ("SYMMETRIC", "REFLECT"):
        raise refusal("nn.mirror_pad", f"mode {mode!r} is unknown; give SYMMETRIC or REFLECT")
    before, after = _edges("nn.mirror_pad", data, pad_before, pad_after)
    edge = int(mode == "SYMMETRIC")
    for d, n in enumerate(data.shape):
        most, size = max(known(before[d]) or 0, known(after[d]) or 0), known(n)
        if size is not None and most > size - 1 + edge:
            raise refusal("nn.mirror_pad", f"axis {d} of size {size} cannot mirror {most} elements")

    def source(d: int, i: Expr) -> Expr:
        if known(before[d]) == 0 and known(after[d]) == 0:
            return i
        x, n = i - before[d], data.shape[d]
        mirrored = te.select(x >= n, 2 * n - 2 + edge - x, x)
        return te.select(x < 0, -x - edge, mirrored)

    shape = [b + n + a for b, n, a in zip(before, data.shape, after, strict=True)]
    return te.compute(
        shape, lambda *i: data(*(source(d, x) for d, x in enumerate(i))), name=name, tag=TAG
    )


def _edges(
    op: str, data: Tensor, before: Edges, after: Edges | None
) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    """Give the numbers of elements on both sides of each dimension."""
    sides = tuple(before), tuple(before if after is None else after)
    if any(len(side) != data.ndim for side in sides):
        raise refusal(
            op,
            f"pad_before and pad_after have {len(sides[0])} and {len(sides[1])} numbers for the"
            f" {data.ndim} dimensions of {data.name}",
        )
    first, last = (tuple(as_expr(n) for n in side) for side in sides)
    return first, last
