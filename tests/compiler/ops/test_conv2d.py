"""Convolutions of any geometry and dtype, against numpy."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from farbench_compiler import ops
from farbench_compiler.errors import ScheduleError
from farbench_compiler.ops.conv_flat import Geometry
from farbench_compiler.ops.window import windows
from tests.compiler.llvm.jit import run

from .programs import Layer, Place

NATIVE = Place("native", partial(run, target="native"))
LAYERS = (
    Layer(1, 8, 8, 3, 7, 3, 1, 1),
    Layer(2, 9, 6, 5, 13, 3, 2, 1),
    Layer(1, 8, 8, 16, 16, 1, 1, 0),
    Layer(2, 7, 5, 3, 9, 1, 2, 0),
    Layer(1, 15, 15, 3, 8, 7, 2, 3),
    Layer(1, 10, 11, 2, 5, 5, 3, 0),
    # Rectangular, unevenly padded, dilated; in groups; depthwise, with a multiplier; held weights.
    Layer(1, 9, 12, 3, 5, (3, 2), (1, 2), (0, 1, 2, 0), (2, 1)),
    Layer(1, 8, 9, 6, 12, 3, 1, 1, groups=3),
    Layer(1, 8, 9, 6, 9, 3, 2, 1, groups=3, held=True),
    Layer(2, 9, 13, 5, 5, 3, 1, 1, groups=5),
    Layer(1, 12, 7, 3, 6, 3, 2, 1, groups=3, held=True),
    Layer(1, 9, 10, 4, 4, (5, 3), (2, 1), 2, (1, 2), groups=4, held=True),
    Layer(1, 7, 7, 32, 32, 3, 1, 1, held=True),
    Layer(2, 6, 17, 40, 16, 3, 2, 1, held=True),
    Layer(1, 5, 5, 3, 7, 3, 1, 0, held=True),
)


@pytest.mark.parametrize("layer", LAYERS, ids=str)
def test_any_geometry_on_any_machine(layer: Layer, place: Place) -> None:
    layer.check(place)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32"])
def test_any_dtype_on_any_machine(dtype: str, place: Place) -> None:
    Layer(1, 7, 9, 4, 6, 3, 2, 1).check(place, dtype)


@st.composite
def layers(draw: st.DrawFn) -> Layer:
    sizes = st.tuples(st.integers(1, 5), st.integers(1, 5))
    steps = st.tuples(st.integers(1, 3), st.integers(1, 3))
    kernel, dilation = draw(sizes), draw(steps)
    padding = draw(st.tuples(*[st.integers(0, 3)] * 4))
    height, width = draw(st.integers(1, 20)), draw(st.integers(1, 20))
    assume(height + padding[0] + padding[2] > (kernel[0] - 1) * dilation[0])
    assume(width + padding[1] + padding[3] > (kernel[1] - 1) * dilation[1])
    groups = draw(st.sampled_from([1, 1, 2, 5]))
    return Layer(
        images=draw(st.integers(1, 2)),
        height=height,
        width=width,
        cin=groups * draw(st.integers(1, 9)),
        cout=groups * draw(st.sampled_from([1, 2, 3, 7, 16])),
        kernel=kernel,
        stride=draw(steps),
        padding=padding,
        dilation=dilation,
        groups=groups,
        held=draw(st.booleans()),
    )


@given(layers(), st.sampled_from(["float32", "float64", "float16"]), st.booleans())
@settings(max_examples=25, deadline=None)
def test_any_geometry_here(layer: Layer, dtype: str, parallel: bool) -> None:
    layer.check(NATIVE, dtype, parallel=parallel)


@given(layers(), st.sampled_from([1, 4, 8, 16, 32]))
def test_windows_of_the_last_vector_lie_in_the_phase(layer: Layer, lanes: int) -> None:
    tall, wide = windows(
        layer.height, layer.width, layer.kernel, layer.stride, layer.padding, layer.dilation
    )
    g = Geometry(layer.images, layer.cin, layer.cout, layer.groups, tall, wide)
    last = g.vectors(lanes) * lanes - 1
    shift = tall.reach * g.row + wide.reach
    assert last >= g.positions - 1
    assert last + shift < g.length(lanes)
    assert g.length(lanes) % g.row == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"groups": 3}, "3 groups divide neither 4 nor 8 channels"),
        ({"kernel": 9}, "a kernel that spans 9 does not fit height 5 with padding 0 and 0"),
        ({"stride": 0}, "stride 0"),
        ({"padding": -1}, "padding -1 and -1"),
        ({"weight": np.zeros((8, 4, 3, 2), np.float32)}, r"weight is float32\[8, 4, 3, 2\]"),
        ({"weight": np.zeros((8, 4, 3, 3))}, r"weight is float64\[8, 4, 3, 3\], expected float32"),
    ],
)
def test_what_cannot_be_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        ops.conv2d(**{**SMALL, **change})


SMALL: dict[str, Any] = {
    "images": 1, "height": 5, "width": 5, "cin": 4, "cout": 8, "kernel": 3
}  # fmt: skip
