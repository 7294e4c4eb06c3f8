"""Sampling of images where a grid says, and grids from affine transformations."""

from __future__ import annotations

from collections.abc import Sequence

from farbench_compiler import te
from farbench_compiler.ir.expr import Expr, cast
from farbench_compiler.te import Tensor
from farbench_compiler.topi.arguments import check_rank, check_same, per_axis, refusal
from farbench_compiler.topi.image.interpolation import Tap, clamped, cubic, interpolated, linear
from farbench_compiler.topi.layout import Layout

_METHODS = ("nearest", "bilinear", "trilinear", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")
# The slope that frameworks sample grids with.
_ALPHA = -0.75


def affine_grid(data: Tensor, target_shape: Sequence[int], align_corners: bool = True) -> Tensor:
    """Give the grid [N, 2, H, W] of x and y that matrices [N, 2, 3] make of a plain one."""
    op = "image.affine_grid"
    check_rank(op, data, 3)
    check_same(op, "rows of the matrices and 2", data.shape[1], 2)
    check_same(op, "columns of the matrices and 3", data.shape[2], 3)
    height, width = per_axis(op, "target_shape", target_shape, 2, least=2 if align_corners else 1)

    def spaced(i: Expr, count: int) -> Expr:
        x = cast(data.dtype, i)
        if align_corners:
            return x * (2.0 / (count - 1)) - 1.0
        return x * (2.0 / count) + (1.0 / count - 1.0)

    def element(n: Expr, d: Expr, i: Expr, j: Expr) -> Expr:
        x, y = spaced(j, width), spaced(i, height)
        return data(n, d, 0) * x + data(n, d, 1) * y + data(n, d, 2)

    return te.compute(
        (data.shape[0], 2, height, width), element, name="affine_grid", tag="affine_grid"
    )


def grid_sample(
    data: Tensor,
    grid: Tensor,
    method: str = "bilinear",
    layout: str = "NCHW",
    padding_mode: str = "zeros",
    align_corners: bool = True,
) -> Tensor:
    """Sample data [N, C, H, W] at places (x, y) from -1 to 1 of a grid [N, 2, H out, W out].

    Layout NCDHW samples volumes at (x, y, z), without method bicubic. -1 and 1 are the middle of
    the outermost elements, or their outer edges where `align_corners` is False.
    """
    op = "image.grid_sample"
    axes = Layout.parse(op, layout, layout if layout in ("NCHW", "NCDHW") else "NCHW", data)
    count = data.ndim - 2
    check_rank(op, grid, data.ndim)
    check_same(op, "images of data and grid", data.shape[0], grid.shape[0])
    check_same(op, "axes of the data and coordinates of the grid", count, grid.shape[1])
    if axes.letters not in ("NCHW", "NCDHW"):
        raise refusal(op, f"layout {layout!r}; only NCHW and NCDHW fit")
    if method not in _METHODS or (method == "bicubic" and count == 3):
        raise refusal(op, f"method {method!r} does not fit; give one of {', '.join(_METHODS)}")
    if padding_mode not in _PADDINGS:
        raise refusal(op, f"padding_mode {padding_mode!r} is unknown; give {', '.join(_PADDINGS)}")
    sizes = data.shape[2:]

    def element(*position: Expr) -> Expr:
        n, c, *at = position
        taps: list[list[Tap]] = []
        for d, size in enumerate(sizes):
            # The last axis comes first in the grid.
            place = _unnormalised(grid(n, count - 1 - d, *at), size, align_corners)
            taps.append(_taps(method, place, size, padding_mode, align_corners))

        def read(indices: Sequence[Expr]) -> Expr:
            inside = [te.all(i >= 0, i < s) for i, s in zip(indices, sizes, strict=True)]
            zero = te.const(0, data.dtype)
            return te.if_then_else(te.all(*inside), data(n, c, *indices), zero)

        return interpolated(read, taps).astype(data.dtype)

    shape = (*data.shape[:2], *grid.shape[2:])
    return te.compute(shape, element, name="grid_sample", tag="grid_sample")


def _unnormalised(x: Expr, size: Expr, align_corners: bool) -> Expr:
    """Take a coordinate from -1 to 1 to a place among the elements."""
    if align_corners:
        return (x + 1.0) * (cast(x.dtype, size - 1) * 0.5)
    return (x + 1.0) * (cast(x.dtype, size) * 0.5) - 0.5


def _taps(method: str, place: Expr, size: Expr, padding: str, align_corners: bool) -> list[Tap]:
    """Give elements and weights around a place; what lies outside is moved in or left there."""
    if method == "bicubic":
        found = cubic(place, _ALPHA)
        return [
            (cast("int32", _inside(cast(place.dtype, i), size, padding, align_corners)), w)
            for i, w in found
        ]
    place = _inside(place, size, padding, align_corners)
    if method == "nearest":
        return [(cast("int32", te.round(place)), te.const(1, place.dtype))]
    return linear(place)


def _inside(x: Expr, size: Expr, padding: str, align_corners: bool) -> Expr:
    if padding == "zeros":
        return x
    if padding == "border":
        return clamped(x, size)
    # Mirrors stand at both ends: in the middle of the outermost elements, or at their edges.
    low = 0.0 if align_corners else -0.5
    span = te.max(cast(x.dtype, size - 1 if align_corners else size), te.const(1, x.dtype))
    away = te.abs(x - low)
    times = te.floor(away / span)
    rest = away - times * span
    even = te.floor(times * 0.5) * 2.0 >= times
    return clamped(te.select(even, rest, span - rest) + low, size)
