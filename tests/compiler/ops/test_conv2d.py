"""Convolutions of any geometry and dtype, against numpy."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from farbench_compiler.ops.conv2d import Geometry
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
)


@pytest.mark.parametrize("layer", LAYERS, ids=str)
def test_any_geometry_on_any_machine(layer: Layer, place: Place) -> None:
    layer.check(place)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32"])
def test_any_dtype_on_any_machine(dtype: str, place: Place) -> None:
    Layer(1, 7, 9, 4, 6, 3, 2, 1).check(place, dtype)


@st.composite
def layers(draw: st.DrawFn) -> Layer:
    kernel = draw(st.sampled_from([1, 3, 5, 7]))
    padding = draw(st.integers(0, kernel // 2 + 1))
    height, width = draw(st.integers(1, 20)), draw(st.integers(1, 20))
    assume(min(height, width) + 2 * padding >= kernel)
    return Layer(
        images=draw(st.integers(1, 3)),
        height=height,
        width=width,
        cin=draw(st.integers(1, 9)),
        cout=draw(st.integers(1, 20)),
        kernel=kernel,
        stride=draw(st.integers(1, 3)),
        padding=padding,
    )


@given(layers(), st.sampled_from(["float32", "float64", "float16"]), st.booleans())
@settings(max_examples=20, deadline=None)
def test_any_geometry_here(layer: Layer, dtype: str, parallel: bool) -> None:
    layer.check(NATIVE, dtype, parallel=parallel)


@given(layers(), st.sampled_from([1, 4, 8, 16, 32]))
def test_windows_of_the_last_vector_lie_in_the_phase(layer: Layer, lanes: int) -> None:
    g = Geometry(
        layer.images, layer.height, layer.width, layer.cin, layer.cout, layer.kernel, layer.stride,
        layer.padding,
    )  # fmt: skip
    last = g.vectors(lanes) * lanes - 1
    shift = g.reach * g.row + g.reach
    assert last >= g.positions - 1
    assert last + shift < g.length(lanes)
    assert g.length(lanes) % g.row == 0
