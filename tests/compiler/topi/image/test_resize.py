"""Resizing against numpy, one element of the output after the other."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from farbench_compiler import te
from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir.expr import ExprLike
from farbench_compiler.lower import lower
from farbench_compiler.topi import image
from tests.compiler.llvm.jit import aligned, run
from tests.compiler.topi.evaluate import Array, check, numbers
from tests.compiler.topi.nn.reference import moved

Box = tuple[float, float]


def place(mode: str, x: int, size: int, out: int, box: Box) -> float:
    """Give where an element of the output lies in the input."""
    half = (x + 0.5) * size / out
    single = out == 1
    return {
        "half_pixel": half - 0.5,
        "pytorch_half_pixel": 0.0 if single else half - 0.5,
        "tf_half_pixel_for_nn": half,
        "align_corners": 0.0 if single else x * (size - 1) / (out - 1),
        "asymmetric": x * size / out,
        "tf_crop_and_resize": (box[0] + box[1]) / 2 * (size - 1)
        if single
        else (box[0] + x * (box[1] - box[0]) / (out - 1)) * (size - 1),
    }[mode]


ROUND: dict[str, Callable[[float], float]] = {
    "round": lambda x: float(np.round(x)),
    "round_prefer_floor": lambda x: math.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: math.floor(x + 0.5),
    "floor": lambda x: math.floor(x + 1e-5),
    "ceil": lambda x: math.ceil(x - 1e-5),
}


def row(method: str, x: float, size: int, rounding: str, alpha: float, exclude: bool) -> Array:
    """Give the weight of each element of an axis for one place."""
    weights = np.zeros(size)
    first = math.floor(x)

    def cubic(d: float) -> float:
        d = abs(d)
        if d <= 1:
            return (alpha + 2) * d**3 - (alpha + 3) * d**2 + 1
        return alpha * (d**3 - 5 * d**2 + 8 * d - 4)

    if method == "nearest_neighbor":
        taps = [(int(ROUND[rounding](x)), 1.0)]
    elif method == "linear":
        taps = [(first, 1 - (x - first)), (first + 1, x - first)]
    else:
        taps = [(i, cubic(x - i)) for i in range(first - 1, first + 3)]
        if exclude:
            taps = [(i, w) for i, w in taps if 0 <= i < size]
            taps = [(i, w / sum(v for _, v in taps)) for i, w in taps]
    for i, w in taps:
        weights[min(max(i, 0), size - 1)] += w
    return weights


def resized(
    x: Array,
    out: Sequence[int],
    method: str,
    mode: str,
    rounding: str = "",
    alpha: float = -0.5,
    exclude: bool = False,
    boxes: Sequence[Box] = (),
    outside: float = 0.0,
) -> Array:
    """Resize [N, C, *sizes]."""
    rounding = rounding or ("round" if mode == "align_corners" else "floor")
    wide = x.astype("f8")
    for d, n in enumerate(out):
        size = x.shape[d + 2]
        places = [place(mode, i, size, n, boxes[d] if boxes else (0, 1)) for i in range(n)]
        rows = [row(method, p, size, rounding, alpha, exclude) for p in places]
        wide = np.moveaxis(np.moveaxis(wide, d + 2, -1) @ np.array(rows).T, -1, d + 2)
    for d, n in enumerate(out):
        size = x.shape[d + 2]
        for i in range(n):
            p = place(mode, i, size, n, boxes[d] if boxes else (0, 1))
            if boxes and not 0 <= p <= size - 1:
                wide[(slice(None),) * (d + 2) + (i,)] = outside
    return wide


MODES = (
    "half_pixel", "pytorch_half_pixel", "tf_half_pixel_for_nn", "align_corners", "asymmetric",
)  # fmt: skip
X = numbers(2, 3, 5, 7)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("method", ["nearest_neighbor", "linear", "cubic"])
def test_images(method: str, mode: str) -> None:
    out = (1, 14) if method == "linear" else (9, 4)
    wanted = resized(X, out, method, mode)
    check(lambda a: image.resize2d(a, (), out, "NCHW", method, mode), [X], wanted, 1e-4, 1e-4)


@pytest.mark.parametrize("rounding", ROUND)
def test_roundings(rounding: str) -> None:
    for mode, out in itertools.product(("half_pixel", "asymmetric"), ((10, 3), (4, 11))):
        wanted = resized(X, out, "nearest_neighbor", mode, rounding)
        check(
            lambda a, o=out, m=mode: image.resize2d(
                a, (), o, "NCHW", "nearest_neighbor", m, rounding
            ),
            [X],
            wanted,
        )


@pytest.mark.parametrize("exclude", [False, True])
def test_cubic_options(exclude: bool) -> None:
    wanted = resized(X, (8, 9), "cubic", "half_pixel", alpha=-0.75, exclude=exclude)
    check(
        lambda a: image.resize2d(
            a, (), (8, 9), method="cubic", bicubic_alpha=-0.75, bicubic_exclude=exclude
        ),
        [X],
        wanted,
        1e-4,
        1e-4,
    )


@pytest.mark.parametrize("method", ["nearest_neighbor", "linear", "cubic"])
def test_lines_and_volumes(method: str) -> None:
    line, volume = numbers(1, 2, 6), numbers(1, 2, 3, 4, 5)
    check(
        lambda a: image.resize1d(a, (), (9,), method=method),
        [line],
        resized(line, (9,), method, "half_pixel"),
    )
    check(
        lambda a: image.resize3d(a, (), (4, 3, 7), "NDHWC", method),
        [moved(volume, "NCDHW", "NDHWC")],
        moved(resized(volume, (4, 3, 7), method, "half_pixel"), "NCDHW", "NDHWC"),
        1e-4,
        1e-4,
    )


@pytest.mark.parametrize("out", [(6, 8), (1, 3)])
def test_a_region(out: tuple[int, int]) -> None:
    roi, boxes = (0.2, -0.3, 0.9, 1.1), ((0.2, 0.9), (-0.3, 1.1))
    wanted = resized(X, out, "linear", "tf_crop_and_resize", boxes=boxes, outside=9.0)
    check(
        lambda a: image.resize2d(
            a, roi, out, "NCHW", "linear", "tf_crop_and_resize", extrapolation_value=9.0
        ),
        [X],
        wanted,
    )


def test_dtypes_and_shapes() -> None:
    x = numbers(1, 2, 4, 4, dtype="int32") * 100
    check(lambda a: image.resize(a, (8, 2), method="nearest_neighbor"), [x],
          resized(x, (8, 2), "nearest_neighbor", "half_pixel").astype("int32"))  # fmt: skip
    check(
        lambda a: image.resize(a, (8, 3), "NCHW", "bilinear", "half_pixel", "float32"),
        [x],
        resized(x, (8, 3), "linear", "half_pixel"),
    )
    wide = numbers(1, 1, 4, 4, dtype="float64")
    check(
        lambda a: image.resize2d(a, (), (0, 0), output_shape=(1, 1, 7, 3)),
        [wide],
        resized(wide, (7, 3), "linear", "half_pixel"),
        1e-12,
        1e-12,
    )
    blocks = np.ascontiguousarray(np.moveaxis(X.reshape(2, 1, 3, 5, 7), 2, -1))
    wanted = resized(X, (3, 4), "linear", "half_pixel").reshape(2, 1, 3, 3, 4)
    check(lambda a: image.resize2d(a, (), (3, 4), "NCHW3c"), [blocks], np.moveaxis(wanted, 2, -1))


@pytest.mark.parametrize("align", [True, False])
def test_the_older_name(align: bool) -> None:
    wanted = resized(X, (8, 3), "linear", "align_corners" if align else "asymmetric")
    check(lambda a: image.resize(a, (8, 3), "NCHW", "bilinear", align), [X], wanted)


def test_one_program_serves_every_size() -> None:
    height = te.var("height")
    a = te.placeholder((1, 2, height, 5))
    out = image.resize2d(a, (), (height * 2, 5))
    function = lower(te.create_schedule(out.op), [a, out])
    for rows in (3, 6):
        x = numbers(1, 2, rows, 5)
        got = aligned(np.zeros((1, 2, rows * 2, 5), "float32"))
        assert run(function, [aligned(x), got], [rows]) == 0
        wanted = resized(x, (rows * 2, 5), "linear", "half_pixel")
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


def _cropped(
    size: tuple[int, int], layout: str, method: str, outside: ExprLike,
    data: te.Tensor, boxes: te.Tensor, which: te.Tensor,
) -> te.Tensor:  # fmt: skip
    return image.crop_and_resize(data, boxes, which, size, layout, method, outside)


@pytest.mark.parametrize("method", ["bilinear", "nearest_neighbor"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_crop_and_resize(layout: str, method: str) -> None:
    boxes = np.array([[0.1, 0.2, 0.8, 0.9], [0.9, 0.0, 0.1, 1.0], [-0.2, 0.3, 1.2, 0.6]], "float32")
    which, out = np.array([1, 0, 1], "int32"), (4, 3)
    wanted = np.concatenate([
        resized(
            X[n : n + 1], out, "linear" if method == "bilinear" else method, "tf_crop_and_resize",
            "round", boxes=((b[0], b[2]), (b[1], b[3])), outside=5.0,
        )
        for n, b in zip(which, boxes, strict=True)
    ])  # fmt: skip
    for outside in (5.0, te.const(5.0, "float32")):
        check(
            partial(_cropped, out, layout, method, outside),
            [moved(X, "NCHW", layout), boxes, which],
            moved(wanted, "NCHW", layout),
            1e-4,
            1e-4,
        )


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"size": (3,)}, "size has 1 numbers"),
        ({"size": (0, 3)}, "must be at least 1"),
        ({"method": "lanczos"}, "method 'lanczos'"),
        ({"coordinate_transformation_mode": "middle"}, "mode 'middle'"),
        ({"rounding_method": "up"}, "rounding method 'up'"),
        ({"layout": "NCH"}, "needs axis W"),
        ({"coordinate_transformation_mode": "tf_crop_and_resize"}, "roi has 0 numbers"),
    ],
)
def test_what_cannot_be(options: dict[str, Any], what: str) -> None:
    given = {"roi": (), "size": (4, 4)} | options
    with pytest.raises(ScheduleError, match=rf"topi\.image\.resize2d: .*{what}"):
        image.resize2d(te.placeholder((1, 3, 8, 8)), **given)
