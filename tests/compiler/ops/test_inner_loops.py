"""The inner loops of matmul and conv2d, read from the assembly of each class of target."""

from __future__ import annotations

import pytest

from farbench_compiler import ops
from farbench_compiler.build import build
from farbench_compiler.ir.dtypes import FLOAT32
from farbench_compiler.ops.tiles import register_tile
from farbench_compiler.target import Target

from .assembly import Loop, inner_loops
from .programs import Program

TARGETS = (
    "x86-64-v4", "x86-64-v3", "x86-64", "aarch64", "pi4", "graviton3", "armv7", "pi2", "pi4-32",
    "visionfive2", "bananapi-f3",
)  # fmt: skip


def main_loops(program: Program, target: str) -> list[Loop]:
    schedule, args = program
    artifact = build(schedule, args, target=target)
    loops = inner_loops(artifact.get_source("asm"), Target.parse(target).arch)
    return [loop for loop in loops if len(loop.sums) >= 4]


@pytest.mark.parametrize("target", TARGETS)
def test_matmul_keeps_all_sums_of_its_tile_in_registers(target: str) -> None:
    size = 960  # a multiple of every tile's rows and columns
    tile = register_tile(Target.parse(target), FLOAT32, size, size)
    loops = main_loops(ops.matmul(size, size, size, target=target), target)
    sums = loops[0].sums
    assert len(sums) % (tile.rows * tile.vectors) == 0
    if tile.lanes > 1:  # a fused scalar multiply-add writes another register than it reads
        assert len(set(sums)) == tile.rows * tile.vectors
    assert not loops[0].spills
    # Moves, loads and the loop itself: no scalar work beside the tile.
    assert len(loops[0].instructions) <= 4.5 * len(sums)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("m", "n"), [(241, 251), (37, 1000)])
def test_no_part_of_an_odd_matmul_spills(target: str, m: int, n: int) -> None:
    loops = main_loops(ops.matmul(m, n, 240, target=target), target)
    assert loops
    assert [loop.spills for loop in loops if loop.spills] == []


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("kernel", "stride"), [(1, 1), (3, 1), (3, 2)])
def test_conv2d_keeps_its_sums_in_registers(target: str, kernel: int, stride: int) -> None:
    program = ops.conv2d(1, 28, 28, 32, 64, kernel, stride, kernel // 2, target=target)
    loops = main_loops(program, target)
    assert loops
    assert [loop.spills for loop in loops if loop.spills] == []
