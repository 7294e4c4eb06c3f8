"""The choice of register tiles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farbench_compiler.ir.dtypes import dtype, sum_dtype
from farbench_compiler.ops.tiles import lanes_of, register_tile
from farbench_compiler.target import Target, presets

SIZES = st.integers(1, 5000)
DTYPES = st.sampled_from(["float32", "float64", "int8", "int32", "int64"])


@given(st.sampled_from(sorted(presets())), DTYPES, SIZES, SIZES)
def test_a_tile_fits_the_registers(name: str, of: str, rows: int, columns: int) -> None:
    target = Target.parse(name)
    tile = register_tile(target, dtype(of), rows, columns)
    registers = max(1, tile.lanes // lanes_of(target, dtype(of)))
    needed = (tile.rows + 1) * tile.vectors * registers + 1
    assert tile.rows >= 1
    assert tile.vectors >= 1
    assert needed <= target.vector_registers


@given(st.sampled_from(sorted(presets())), SIZES, SIZES)
def test_a_tile_is_no_larger_than_the_output(name: str, rows: int, columns: int) -> None:
    tile = register_tile(Target.parse(name), dtype("float32"), rows, columns)
    assert tile.rows <= rows
    assert (tile.vectors - 1) * tile.lanes < columns


@pytest.mark.parametrize(
    ("target", "of", "lanes"),
    [
        ("x86-64-v4", "float32", 16),
        ("x86-64-v3", "float64", 4),
        ("pi4", "float32", 4),
        ("pi2", "float32", 4),
        ("pi2", "float64", 1),
        ("visionfive2", "float32", 1),
        ("bananapi-f3", "float32", 8),
    ],
)
def test_lanes(target: str, of: str, lanes: int) -> None:
    assert lanes_of(Target.parse(target), dtype(of)) == lanes


@pytest.mark.parametrize(
    ("target", "rows", "columns", "tile"),
    [
        ("x86-64-v4", 1024, 1024, (6, 4)),  # the last rows are 4
        ("x86-64-v4", 64, 48, (8, 3)),  # both divide evenly
        ("x86-64-v4", 1, 4096, (1, 4)),
        ("x86-64-v3", 1024, 1024, (4, 3)),
        ("pi4", 960, 960, (6, 4)),
        ("pi2", 960, 960, (6, 2)),
    ],
)
def test_choices(target: str, rows: int, columns: int, tile: tuple[int, int]) -> None:
    chosen = register_tile(Target.parse(target), dtype("float32"), rows, columns)
    assert (chosen.rows, chosen.vectors) == tile


def test_halves_are_summed_in_single_precision() -> None:
    assert sum_dtype(dtype("float16")) == dtype("float32")
    assert sum_dtype(dtype("float64")) == dtype("float64")
