"""Resizing of lines, images and volumes: nearest element, linear or cubic interpolation.

Where a place of the output lies in the input is told by `coordinate_transformation_mode`:
half_pixel, pytorch_half_pixel, tf_half_pixel_for_nn, align_corners, asymmetric or
tf_crop_and_resize (into `roi`: all starts, then all ends, from 0 to 1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from farbench_compiler import te
from farbench_compiler.ir.dtypes import DType
from farbench_compiler.ir.expr import Expr, ExprLike, as_expr, cast
from farbench_compiler.te import Tensor
from farbench_compiler.topi.arguments import check_rank, check_same, known, refusal
from farbench_compiler.topi.image.interpolation import (
    Tap,
    clamped,
    cubic,
    interpolated,
    linear,
    ratio,
)
from farbench_compiler.topi.layout import Layout
from farbench_compiler.topi.tag import INJECTIVE

OutDtype = str | DType | None
Sizes = Sequence[ExprLike]
# Where the region along each axis starts and ends, at a place of the output.
Region = Callable[[Mapping[str, Expr]], Sequence[tuple[ExprLike, ExprLike]]]
_METHODS = {
    "nearest_neighbor": "nearest_neighbor", "nearest": "nearest_neighbor", "linear": "linear",
    "bilinear": "linear", "trilinear": "linear", "cubic": "cubic", "bicubic": "cubic",
}  # fmt: skip
_MODES = (
    "half_pixel", "pytorch_half_pixel", "tf_half_pixel_for_nn", "align_corners", "asymmetric",
    "tf_crop_and_resize",
)  # fmt: skip
# Keeps places that lie on an element, but for rounding, on it.
_NEAR = 1e-5
_ROUNDINGS: dict[str, Callable[[Expr], Expr]] = {
    "round": te.round,
    "round_prefer_floor": lambda x: te.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: te.floor(x + 0.5),
    "floor": lambda x: te.floor(x + _NEAR),
    "ceil": lambda x: te.ceil(x - _NEAR),
}


@dataclass(frozen=True, slots=True)
class _Resizing:
    """How elements are found: by method, mode and rounding; all known to exist."""

    method: str
    mode: str
    rounding: str
    alpha: float
    exclude: bool

    @staticmethod
    def of(
        op: str, method: str, mode: str, rounding: str, alpha: float, exclude: bool
    ) -> _Resizing:
        found = _METHODS.get(method.lower())
        if found is None:
            raise refusal(op, f"method {method!r} is unknown; give one of {', '.join(_METHODS)}")
        if mode not in _MODES:
            raise refusal(op, f"mode {mode!r} is unknown; give one of {', '.join(_MODES)}")
        rounding = rounding or ("round" if mode == "align_corners" else "floor")
        if rounding not in _ROUNDINGS:
            names = ", ".join(_ROUNDINGS)
            raise refusal(op, f"rounding method {rounding!r} is unknown; give one of {names}")
        return _Resizing(found, mode, rounding, alpha, exclude)

    def place(
        self, x: Expr, size: Expr, out: Expr, region: tuple[ExprLike, ExprLike], of: str
    ) -> Expr:
        """Give where place x of the output lies along an axis of the input, as a float."""
        i, scale = cast(of, x), ratio(size, out, of)
        steps = ratio(size - 1, te.max(out - 1, 1), of)
        single = known(out) == 1
        match self.mode:
            case "align_corners":
                return i * steps
            case "asymmetric":
                return i * scale
            case "tf_half_pixel_for_nn":
                return (i + 0.5) * scale
            case "tf_crop_and_resize":
                start, end = (cast(of, e) for e in region)
                last = cast(of, size - 1)
                middle = (start + end) * 0.5 * last
                if single:
                    return middle
                spaced = start * last + i * (end - start) * steps
                return spaced if known(out) else te.select(out > 1, spaced, middle)
            case "pytorch_half_pixel" if single:
                return te.const(0.0, of)
        return (i + 0.5) * scale - 0.5

    def taps(self, place: Expr, size: Expr) -> list[Tap]:
        """Give the elements that a place is interpolated from."""
        if self.method == "linear":
            return linear(place)
        found = cubic(place, self.alpha)
        if not self.exclude:
            return found
        none = te.const(0.0, place.dtype)
        kept = [(i, te.select(te.all(i >= 0, i < size), w, none)) for i, w in found]
        total = kept[0][1] + kept[1][1] + kept[2][1] + kept[3][1]
        return [(i, w / total) for i, w in kept]

    def nearest(self, x: Expr, place: Expr, size: Expr, out: Expr) -> Expr:
        """Give the one element that place x of the output takes."""
        if self.mode == "asymmetric" and self.rounding == "floor":
            return x * size // out  # exact, and without floats
        return cast("int32", _ROUNDINGS[self.rounding](place))


def _resized(
    op: str,
    data: Tensor,
    layout: Layout,
    letters: str,
    size: Sizes,
    how: _Resizing,
    region: Region,
    extrapolation: ExprLike,
    out_dtype: OutDtype,
    source: Tensor | None = None,
) -> Tensor:
    """Resize along the axes of some letters; `source` tells which image each output is of."""
    if len(size) != len(letters):
        raise refusal(op, f"size has {len(size)} numbers for axes {letters}")
    sizes = layout.named(data.shape)
    outs = dict(zip(letters, map(as_expr, size), strict=True))
    numbers = [known(n) for n in outs.values()]
    if any(n is not None and n < 1 for n in numbers):
        raise refusal(op, f"size is {numbers}, must be at least 1")
    of = "float64" if str(data.dtype) == "float64" else "float32"
    shape = sizes | outs | ({} if source is None else {"N": source.shape[0]})

    def element(*position: Expr) -> Expr:
        at = layout.named(position)
        regions = region(at)
        place = dict(at) if source is None else at | {"N": source(at["N"])}
        places = [
            how.place(at[a], sizes[a], outs[a], r, of)
            for a, r in zip(letters, regions, strict=True)
        ]

        def read(indices: Sequence[Expr]) -> Expr:
            near = {a: clamped(i, sizes[a]) for a, i in zip(letters, indices, strict=True)}
            return layout.read(data, place | near)

        pairs = list(zip(letters, places, strict=True))
        if how.method == "nearest_neighbor":
            value = read([how.nearest(at[a], p, sizes[a], outs[a]) for a, p in pairs])
        else:
            axes = [how.taps(p, sizes[a]) for a, p in pairs]
            value = interpolated(lambda i: cast(of, read(i)), axes)
        if how.mode == "tf_crop_and_resize":
            inside = [te.all(p >= 0, p <= cast(of, sizes[a] - 1)) for a, p in pairs]
            value = te.if_then_else(te.all(*inside), value, cast(value.dtype, extrapolation))
        return value.astype(out_dtype or data.dtype)

    return te.compute(layout.ordered(shape), element, name="resize", tag=INJECTIVE)


def _resize(
    op: str, letters: str, data: Tensor, roi: Sequence[ExprLike], size: Sizes, layout: str,
    method: str, mode: str, rounding: str, alpha: float, exclude: bool | int,
    extrapolation: ExprLike, out_dtype: OutDtype, output_shape: Sizes | None,
) -> Tensor:  # fmt: skip
    axes = Layout.parse(op, layout, f"N{letters}", data)
    if output_shape is not None:
        size = [output_shape[i] for i in axes.places(letters)]
    count = len(letters)
    if mode == "tf_crop_and_resize" and len(roi) != 2 * count:
        raise refusal(op, f"roi has {len(roi)} numbers, expected {count} starts and {count} ends")
    whole = roi if len(roi) == 2 * count else [0.0] * count + [1.0] * count
    regions = [(whole[d], whole[d + count]) for d in range(count)]
    how = _Resizing.of(op, method, mode, rounding, alpha, bool(exclude))
    return _resized(op, data, axes, letters, size, how, lambda _: regions, extrapolation, out_dtype)


def resize1d(
    data: Tensor, roi: Sequence[ExprLike], size: Sizes, layout: str = "NCW",
    method: str = "linear", coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "", bicubic_alpha: float = -0.5, bicubic_exclude: bool | int = 0,
    extrapolation_value: ExprLike = 0.0, out_dtype: OutDtype = None,
    output_shape: Sizes | None = None,
) -> Tensor:  # fmt: skip
    """Resize along W to `size[0]`; see `resize2d`."""
    return _resize(
        "image.resize1d", "W", data, roi, size, layout, method, coordinate_transformation_mode,
        rounding_method, bicubic_alpha, bicubic_exclude, extrapolation_value, out_dtype,
        output_shape,
    )  # fmt: skip


def resize2d(
    data: Tensor, roi: Sequence[ExprLike], size: Sizes, layout: str = "NCHW",
    method: str = "linear", coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "", bicubic_alpha: float = -0.5, bicubic_exclude: bool | int = 0,
    extrapolation_value: ExprLike = 0.0, out_dtype: OutDtype = None,
    output_shape: Sizes | None = None,
) -> Tensor:  # fmt: skip
    """Resize along H and W to `size` by method nearest_neighbor, linear or cubic.

    `rounding_method` (round, round_prefer_floor, round_prefer_ceil, floor, ceil) chooses the
    nearest element; `bicubic_exclude` gives no weight to elements outside, which are otherwise
    those at the edge. Outside of the data a `roi` gives `extrapolation_value`.
    """
    return _resize(
        "image.resize2d", "HW", data, roi, size, layout, method, coordinate_transformation_mode,
        rounding_method, bicubic_alpha, bicubic_exclude, extrapolation_value, out_dtype,
        output_shape,
    )  # fmt: skip


def resize3d(
    data: Tensor, roi: Sequence[ExprLike], size: Sizes, layout: str = "NCDHW",
    method: str = "linear", coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "", bicubic_alpha: float = -0.5, bicubic_exclude: bool | int = 0,
    extrapolation_value: ExprLike = 0.0, out_dtype: OutDtype = None,
    output_shape: Sizes | None = None,
) -> Tensor:  # fmt: skip
    """Resize along D, H and W to `size`; see `resize2d`."""
    return _resize(
        "image.resize3d", "DHW", data, roi, size, layout, method, coordinate_transformation_mode,
        rounding_method, bicubic_alpha, bicubic_exclude, extrapolation_value, out_dtype,
        output_shape,
    )  # fmt: skip


def resize(
    data: Tensor, size: Sizes, layout: str = "NCHW", method: str = "bilinear",
    coordinate_transformation_mode: str | bool = "half_pixel", out_dtype: OutDtype = None,
    output_shape: Sizes | None = None,
) -> Tensor:  # fmt: skip
    """Do as `resize2d` does, under the name until 2021.

    Until 2019 the mode was a truth value: whether the corners are aligned.
    """
    mode = coordinate_transformation_mode
    if isinstance(mode, bool):
        mode = "align_corners" if mode else "asymmetric"
    return _resize(
        "image.resize", "HW", data, (), size, layout, method, mode, "", -0.5, False, 0.0, out_dtype,
        output_shape,
    )  # fmt: skip


def crop_and_resize(
    data: Tensor,
    boxes: Tensor,
    box_indices: Tensor,
    crop_size: Sizes,
    layout: str = "NCHW",
    method: str = "bilinear",
    extrapolation_value: ExprLike | None = None,
    out_dtype: OutDtype = None,
) -> Tensor:
    """Cut boxes [n, (y1, x1, y2, x2)] out of the images that `box_indices` [n] names; resize each.

    Coordinates are from 0 to 1; outside of an image stands `extrapolation_value` (0 if None).
    """
    op = "image.crop_and_resize"
    axes = Layout.parse(op, layout, "NHW", data)
    check_rank(op, boxes, 2)
    check_rank(op, box_indices, 1)
    check_same(op, "coordinates of a box and 4", boxes.shape[1], 4)
    check_same(op, "boxes and indices", boxes.shape[0], box_indices.shape[0])
    # Nearest is to the nearest here, not the one before.
    how = _Resizing.of(op, method, "tf_crop_and_resize", "round", -0.5, False)

    def region(at: Mapping[str, Expr]) -> list[tuple[ExprLike, ExprLike]]:
        n = at["N"]
        return [(boxes(n, d), boxes(n, d + 2)) for d in range(2)]

    outside = 0.0 if extrapolation_value is None else extrapolation_value
    return _resized(
        op, data, axes, "HW", crop_size, how, region, outside, out_dtype, box_indices,
    )  # fmt: skip
