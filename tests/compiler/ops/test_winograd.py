"""Winograd's convolution: exact where numbers are small integers, and chosen where it is faster."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farbench_compiler import ops
from farbench_compiler.ir.dtypes import FLOAT32, dtype
from farbench_compiler.ops.window import Window, windows
from farbench_compiler.ops.winograd import is_faster, tiling, transformed, winograd_conv2d
from farbench_compiler.target import Target
from farbench_compiler.te import placeholder
from tests.compiler.llvm.jit import run

from .programs import Layer, Place

NATIVE = Place("native", partial(run, target="native"))
LAYER = Layer(1, 7, 7, 32, 32, 3, 1, 1, held=True)


def chosen(
    layer: Layer, of: str = "float32", target: str = "native", parallel: bool = False
) -> bool:
    tall, wide = windows(layer.height, layer.width, layer.kernel, layer.stride, layer.padding,
                         layer.dilation)  # fmt: skip
    shape = (layer.cout, layer.cin, tall.kernel, wide.kernel)
    return is_faster(shape, tall, wide, dtype(of), Target.parse(target), parallel=parallel)


@pytest.mark.parametrize(
    "layer",
    [
        LAYER,
        replace(LAYER, images=2, height=9, width=6, padding=(0, 1, 2, 1)),
        replace(LAYER, height=8, width=21, cin=40, cout=56, padding=0),
    ],
    ids=str,
)
def test_any_size_on_any_machine(layer: Layer, place: Place) -> None:
    assert Target.parse(place.target).vector_bits <= 64 or chosen(layer, target=place.target)
    layer.check(place)


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("of", ["float32", "float64"])
def test_blocks_of_tile_rows(of: str, parallel: bool) -> None:
    layer = replace(LAYER, height=64, width=18, cin=48)
    assert chosen(layer, of, parallel=parallel)
    layer.check(NATIVE, of, parallel=parallel)


@settings(max_examples=15, deadline=None)
@given(
    size=st.tuples(st.integers(1, 12), st.integers(1, 20)),
    channels=st.tuples(st.integers(1, 20), st.integers(1, 40)),
    padding=st.tuples(*[st.integers(0, 2)] * 4),
)
def test_small_integers_come_out_exactly(
    size: tuple[int, int], channels: tuple[int, int], padding: tuple[int, int, int, int]
) -> None:
    """The transforms only add and halve: what is far from 2**24 is not rounded."""
    size = (max(size[0], 3 - padding[0] - padding[2]), max(size[1], 3 - padding[1] - padding[3]))
    layer = Layer(1, *size, *channels, 3, 1, padding, held=True)
    source = np.random.default_rng(5)
    data = source.integers(-9, 10, (1, layer.cin, *size)).astype("float32")
    weight = source.integers(-9, 10, (layer.cout, layer.cin, 3, 3)).astype("float32")
    tall, wide = windows(*size, 3, 1, padding, 1)
    image = placeholder(data.shape, name="data")
    program = winograd_conv2d(image, weight, tall, wide, Target.parse("native"), parallel=False)
    wanted = layer.reference(data, weight)
    np.testing.assert_array_equal(NATIVE.compute(program, [data], wanted.shape), wanted)


def test_weights_are_transformed_once() -> None:
    weight = np.arange(5 * 2 * 9, dtype=np.float32).reshape(5, 2, 3, 3)
    made = transformed(weight, 4, "float32")
    assert made.shape == (4, 4, 2, 2, 4)
    first = weight[0, 1]
    assert made[0, 0, 0, 1, 0] == first[0, 0]
    assert made[1, 3, 0, 1, 0] == first[:, 2].sum() / 2
    assert made[2, 0, 0, 1, 0] == (first[0, 0] - first[1, 0] + first[2, 0]) / 2
    assert not made[:, :, 1, :, 1:].any()  # lanes beyond the last channel


@pytest.mark.parametrize(
    "layer",
    [
        replace(LAYER, kernel=(3, 1)),
        replace(LAYER, stride=2),
        replace(LAYER, dilation=2),
        replace(LAYER, cin=16, cout=64),  # the transforms cost what the products save
        replace(LAYER, height=3, width=3),  # most of the tiles lies outside
    ],
    ids=str,
)
def test_other_layers_are_left_to_direct_sums(layer: Layer) -> None:
    assert not chosen(layer)


def test_other_dtypes_and_targets_are_left_to_direct_sums() -> None:
    assert not chosen(LAYER, "float16")
    assert not chosen(LAYER, target="llvm -mtriple=riscv64-linux-gnu -mattr=+m,+a,+f,+d,+c")


def test_it_can_be_left_out() -> None:
    weight = np.zeros((32, 32, 3, 3), np.float32)
    names = []
    for wanted in (True, False):
        schedule, _ = ops.conv2d(1, 7, 7, 32, 32, 3, 1, 1, weight=weight, winograd=wanted)
        names.append({stage.name for stage in schedule.stages})
    assert ["tiles" in found for found in names] == [True, False]


@given(
    rows=st.integers(1, 300), columns=st.integers(1, 300), size=st.integers(64, 1 << 20),
    parallel=st.booleans(),
)  # fmt: skip
def test_blocks_hold_every_tile_row(rows: int, columns: int, size: int, parallel: bool) -> None:
    made = tiling(Window(rows + 2, 3), Window(columns + 2, 3), size, parallel=parallel)
    assert made.rows == -(-rows // 2)
    assert made.columns == -(-columns // 2)
    assert (made.blocks - 1) * made.high < made.rows <= made.blocks * made.high


def test_threads_share_enough_blocks() -> None:
    sides = Window(56, 3, before=1, after=1), Window(56, 3, before=1, after=1)
    assert tiling(*sides, 16 * 128 * FLOAT32.nbytes, parallel=True).blocks >= 8
