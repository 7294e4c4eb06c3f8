"""Register tiles: how many rows and lanes of an output one pass keeps in vector registers.

A tile of `rows` x `lanes` does rows * vectors multiply-adds for rows + vectors loads in each step
of the reduction, so it wants to be large and square; but every register it takes is one that the
operands lack, and a tile that divides the output badly computes what nobody needs.
"""

from __future__ import annotations

from dataclasses import dataclass

from farbench_compiler.ir.dtypes import dtype
from farbench_compiler.target import Target

# Two pipes that take four cycles: fewer sums than this under way leave the multipliers idle.
_SUMS_UNDER_WAY = 8
_MOST_VECTORS = 4


@dataclass(frozen=True, slots=True)
class Tile:
    """A register tile: `rows` by `lanes` elements, lanes a multiple of the vector's."""

    rows: int
    lanes: int


def lanes_of(target: Target, of: str) -> int:
    """Count the elements of a dtype in one vector; 1 where the target has no vectors for it."""
    if target.vector_bits <= 64:
        return 1
    return max(1, target.vector_bits // (8 * dtype(of).nbytes))


def register_tile(target: Target, of: str, rows: int, columns: int) -> Tile:
    """Choose the tile of an output of `rows` x `columns` that wastes least of the machine."""
    lanes = lanes_of(target, of)
    candidates = [
        Tile(most, vectors * lanes)
        for vectors in range(1, _MOST_VECTORS + 1)
        for most in range(1, _most_rows(target, vectors) + 1)
    ]
    return max(candidates, key=lambda tile: (_speed(tile, lanes, rows, columns), tile.rows))


def _most_rows(target: Target, vectors: int) -> int:
    """Count the rows that fit beside `vectors` registers of one operand and one of the other."""
    return max(1, (target.vector_registers - vectors - 1) // vectors)


def _speed(tile: Tile, lanes: int, rows: int, columns: int) -> float:
    """Estimate useful multiply-adds a cycle of a tile, over the whole output, as a share of 1."""
    vectors = tile.lanes // lanes
    work = tile.rows * vectors
    cycles = max(work, (tile.rows + vectors) * 0.6, _SUMS_UNDER_WAY)
    tiles = -(-rows // tile.rows) * -(-columns // tile.lanes)
    useful = rows * columns / (tiles * tile.rows * tile.lanes)
    # Each step also counts a loop's own instructions.
    return useful * work / (cycles + 1)
