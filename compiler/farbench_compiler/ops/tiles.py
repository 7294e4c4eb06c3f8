"""Register tiles: how many rows and vectors of an output one pass keeps in registers.

A tile of `rows` x `vectors` does their product in multiply-adds for their sum in loads in each step
of the reduction, so it wants to be large and square; but every register it takes is one that the
operands lack, and a tile that divides the output badly leaves small ones at its edges. Few rows
are better than few vectors: each row is a stream of its own through the weights.
"""

from __future__ import annotations

from dataclasses import dataclass

from farbench_compiler.ir.dtypes import FLOAT32, INT32, DType, dtype
from farbench_compiler.target import Target

# Two pipes that take four cycles: fewer sums than this under way leave the multipliers idle.
_SUMS_UNDER_WAY = 8
_MOST_VECTORS = 4
_GROUP = 4  # registers of RISC-V that one instruction works on
# What a load costs beside the multiply-adds that hide it, in multiply-adds. Measured on Zen 4:
# 8 x 3 and 6 x 4 vectors are 5 % faster than 14 x 2 and 27 x 1.
_LOAD = 0.1
# An edge is code of its own, which takes time to build; worth it where it saves more than this.
_EDGE = 0.003


@dataclass(frozen=True, slots=True)
class Tile:
    """A register tile: `rows` by `vectors` of `lanes` elements each."""

    rows: int
    vectors: int
    lanes: int

    @property
    def columns(self) -> int:
        """Elements in one row of the tile."""
        return self.vectors * self.lanes


def lanes_of(target: Target, of: DType) -> int:
    """Count the elements of a dtype in one vector; 1 where the target has no vectors for it."""
    if target.vector_bits <= 64 or (target.arch == "armv7" and of == dtype("float64")):
        return 1
    return max(1, target.vector_bits // (8 * of.nbytes))


def reaches_far(target: Target) -> bool:
    """Tell whether one instruction can address what lies kilobytes behind a pointer.

    Elsewhere each row of a tile takes an address register, and there are not enough.
    """
    return target.arch in ("x86_64", "aarch64")


def result_dtype(of: DType) -> DType:
    """Give the dtype of a matrix product: int32 of bytes, float32 of bfloat16, else the same."""
    if of.is_bfloat:
        return FLOAT32
    return INT32 if of.is_int and of.bits == 8 else of


def register_tile(target: Target, of: DType, rows: int, columns: int) -> Tile:
    """Choose the tile that computes an output of `rows` x `columns` in the fewest cycles."""
    fitting = [
        tile
        for tile in _candidates(target, of)
        if tile.rows <= max(1, rows) and (tile.vectors - 1) * tile.lanes < max(1, columns)
    ]
    return min(
        fitting,
        key=lambda tile: (_cycles(tile, rows, columns), -tile.rows * tile.vectors, tile.rows),
    )


def _candidates(target: Target, of: DType) -> list[Tile]:
    """List the tiles whose sums, vectors and weights the registers hold."""
    lanes = lanes_of(target, of)
    if target.arch == "riscv64" and lanes > 1:
        # One instruction works on a group of registers, of which two hold operands.
        groups = target.vector_registers // _GROUP
        return [Tile(rows, 1, lanes * _GROUP) for rows in range(1, groups - 1)]
    free = target.vector_registers - _operands(target)
    if lanes == 1 and not of.is_float:
        free //= 2  # addresses and counters live in the same registers
    return [
        Tile(rows, vectors, lanes)
        for vectors in range(1, _MOST_VECTORS + 1)
        for rows in range(1, max(1, (free - vectors) // vectors) + 1)
    ]


def _operands(target: Target) -> int:
    """Count the registers beside sums and vectors: a weight, its product, what LLVM loads early.

    Found by reading the inner loops: with fewer, some sums are spilled.
    """
    if target.arch == "x86_64":
        return 1 if target.has("fma") or target.has("avx512f") else 5
    if target.vector_bits <= 64:
        return 6
    return 2 if target.arch == "armv7" else 3


def _cycles(tile: Tile, rows: int, columns: int) -> float:
    """Estimate the cycles of one step of the reduction over the whole output."""
    vectors = -(-columns // tile.lanes)
    down, bottom = divmod(rows, tile.rows)
    across, edge = divmod(vectors, tile.vectors)
    cycles = sum(
        count * wide * _step(height, width)
        for count, height in ((down, tile.rows), (1, bottom))
        for wide, width in ((across, tile.vectors), (1, edge))
        if height and width
    )
    return cycles * (1 + _EDGE * ((down and bottom > 0) + (across and edge > 0)))


def _step(rows: int, vectors: int) -> float:
    loads = rows + vectors
    return max(rows * vectors, loads, _SUMS_UNDER_WAY) + _LOAD * loads
