"""Functions that choose elements by where they lie: lengths of sequences, triangles, diagonals."""

from __future__ import annotations

from farbench_compiler import te
from farbench_compiler.ir.expr import Expr, ExprLike, binary, const
from farbench_compiler.te import Tensor
from farbench_compiler.topi.arguments import (
    axis_of,
    check_rank,
    check_same,
    known,
    per_axis,
    refusal,
)
from farbench_compiler.topi.indexing import check_indices
from farbench_compiler.topi.tag import INJECTIVE


def sequence_mask(
    data: Tensor, valid_length: Tensor, mask_value: float = 0, axis: int = 0
) -> Tensor:
    """Put `mask_value` behind the valid elements of each sequence, which run along axis 0 or 1.

    `valid_length` [batch] belongs to the other one of the first two dimensions.
    """
    op = "sequence_mask"
    if axis not in (0, 1) or data.ndim < 2:
        raise refusal(op, f"axis {axis} of the {data.ndim} dimensions of {data.name}; sequences"
                      " run along axis 0 or 1 of at least 2")  # fmt: skip
    _check_lengths(op, data, valid_length, 1 - axis)
    masked = te.const(mask_value, data.dtype)
    return te.compute(
        data.shape,
        lambda *i: te.select(i[axis] < valid_length(i[1 - axis]).astype("int64"), data(*i), masked),
        name="sequence_mask",
        tag=INJECTIVE,
    )


def reverse_sequence(
    a: Tensor, seq_lengths: Tensor, seq_axis: int = 1, batch_axis: int = 0
) -> Tensor:
    """Turn the first `seq_lengths` [batch] elements of each sequence round; the others stay."""
    op = "reverse_sequence"
    along, batch = axis_of(op, a, seq_axis), axis_of(op, a, batch_axis)
    _check_lengths(op, a, seq_lengths, batch)
    size = a.shape[along]

    def element(*i: Expr) -> Expr:
        length = binary("min", seq_lengths(i[batch]).astype("int64"), size)
        place = te.select(i[along] < length, length - 1 - i[along], i[along])
        return a(*i[:along], place, *i[along + 1 :])

    return te.compute(a.shape, element, name="reverse_sequence", tag=INJECTIVE)


def _check_lengths(op: str, data: Tensor, lengths: Tensor, batch: int) -> None:
    check_indices(op, lengths)
    check_rank(op, lengths, 1)
    check_same(op, f"sequences of {data.name} and of {lengths.name}",
               data.shape[batch], lengths.shape[0])  # fmt: skip


def trilu(data: Tensor, k: ExprLike, upper: bool) -> Tensor:
    """Keep the upper (or lower) triangle of matrices from diagonal `k` on; the rest becomes 0."""
    _check_matrices("trilu", data)
    zero = te.const(0, data.dtype)

    def element(*i: Expr) -> Expr:
        row, column = i[-2:]
        kept = row + k <= column if upper else row + k >= column
        return te.select(kept, data(*i), zero)

    return te.compute(data.shape, element, name="trilu", tag=INJECTIVE)


def matrix_set_diag(
    data: Tensor, diagonal: Tensor, k: int | tuple[int, int] = 0, align: str = "RIGHT_LEFT"
) -> Tensor:
    """Replace diagonals of matrices [..., rows, columns].

    `k` is one diagonal, given by `diagonal` [..., length], or the lowest and the highest of a band
    [..., diagonals, longest], the highest first. `align` says where shorter ones lie: the first
    word is for those from the main one up, the second for those below.
    """
    op = "matrix_set_diag"
    _check_matrices(op, data)
    low, high = per_axis(op, "k", k, 2, least=-(2**31))
    sides = align.split("_")
    if low > high or len(sides) != 2 or not set(sides) <= {"LEFT", "RIGHT"}:
        raise refusal(op, f"k {k} and align {align!r}; give k from the lowest on, and align such"
                      " as RIGHT_LEFT")  # fmt: skip
    band = low != high
    check_rank(op, diagonal, data.ndim if band else data.ndim - 1)
    if band:
        check_same(op, f"diagonals of {diagonal.name} and of k", diagonal.shape[-2], high - low + 1)
    rows, columns, longest = data.shape[-2], data.shape[-1], diagonal.shape[-1]
    check_same(op, f"the length of {diagonal.name} and of the longest diagonal", longest,
               _longest(rows, columns, low, high))  # fmt: skip

    def element(*i: Expr) -> Expr:
        row, column = i[-2:]
        offset = column - row
        place = binary("min", row, column)
        if band:
            length = binary("min", rows + binary("min", offset, const(0)),
                            columns - binary("max", offset, const(0)))  # fmt: skip
            shifted = place + (longest - length)
            up, down = (shifted if side == "RIGHT" else place for side in sides)
            place = te.select(offset >= 0, up, down)
        at = (*i[:-2], high - offset, place) if band else (*i[:-2], place)
        inside = te.all(offset >= low, offset <= high)
        return te.if_then_else(inside, diagonal(*at).astype(data.dtype), data(*i))

    return te.compute(data.shape, element, name="matrix_set_diag", tag=INJECTIVE)


def _longest(rows: Expr, columns: Expr, low: int, high: int) -> ExprLike:
    """Count the elements of the longest diagonal of a band; an unknown size where one is."""
    m, n = known(rows), known(columns)
    if m is None or n is None:
        return rows if m is None else columns
    return min(m + min(high, 0), n - max(low, 0))


def _check_matrices(op: str, data: Tensor) -> None:
    if data.ndim < 2:
        raise refusal(op, f"{data.name} has {data.ndim} dimensions; matrices have at least 2")
