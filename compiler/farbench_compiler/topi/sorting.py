"""Sorting along one axis, stable, and searching in what is sorted.

NaN counts as the greatest value. A row is merged from runs of 1, 2, 4, ... elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from farbench_compiler import te
from farbench_compiler.ir.expr import Expr, binary, const
from farbench_compiler.ir.stmt import Stmt
from farbench_compiler.te import Tensor
from farbench_compiler.tir import ir_builder
from farbench_compiler.tir.buffer import DeclaredBuffer
from farbench_compiler.tir.ir_builder import BufferVar, IRBuilder
from farbench_compiler.topi.arguments import axis_of, check_same, known, refusal
from farbench_compiler.topi.shaping import count_of
from farbench_compiler.topi.tag import ELEMWISE, INJECTIVE

Before = Callable[[Expr, Expr], Expr]
_MOST_LEVELS = 62  # of runs that an int64 counts


def sort(data: Tensor, axis: int = -1, is_ascend: bool | int = True) -> Tensor:
    """Sort the elements along an axis."""
    values = _sorted("sort", data, axis, bool(is_ascend))[0]
    return te.compute(data.shape, lambda *i: values(*i), name="sort_values", tag=ELEMWISE)


def argsort(
    data: Tensor,
    valid_count: Tensor | None = None,
    axis: int = -1,
    is_ascend: bool | int = True,
    dtype: str = "float32",
) -> Tensor:
    """Give the places that elements have along an axis, in the order that sorts them."""
    if valid_count is not None:
        raise refusal("argsort", "valid_count is not here; slice what is valid")
    places = _sorted("argsort", data, axis, bool(is_ascend))[1]
    return te.compute(data.shape, lambda *i: places(*i).astype(dtype), name="argsort", tag=ELEMWISE)


def topk(
    data: Tensor,
    k: int = 1,
    axis: int = -1,
    ret_type: Literal["both", "values", "indices"] = "both",
    is_ascend: bool = False,
    dtype: str = "int64",
) -> Tensor | list[Tensor]:
    """Give the `k` greatest elements along an axis in their order, and the places they have.

    `is_ascend` takes the least ones; `k` below 1 takes all.
    """
    at = axis_of("topk", data, axis)
    size = known(data.shape[at])
    if size is not None and k > size:
        raise refusal("topk", f"k is {k}, {data.name} has {size} elements along axis {at}")
    values, places = _sorted("topk", data, axis, is_ascend)
    shape = [const(k) if d == at and k > 0 else n for d, n in enumerate(data.shape)]
    first = te.compute(shape, lambda *i: values(*i), name="topk_values", tag=INJECTIVE)
    where = te.compute(
        shape, lambda *i: places(*i).astype(dtype), name="topk_indices", tag=INJECTIVE
    )
    if ret_type == "both":
        return [first, where]
    return first if ret_type == "values" else where


def _sorted(op: str, x: Tensor, axis: int, ascending: bool) -> tuple[Tensor, ...]:
    """Give the elements in order along an axis, and their places (int64)."""
    at = axis_of(op, x, axis)
    size, inner = x.shape[at], count_of(x.shape[at + 1 :])
    before = _is_less if ascending else _is_greater

    def body(ins: Sequence[DeclaredBuffer], outs: Sequence[DeclaredBuffer]) -> Stmt:
        ib = ir_builder.create()
        data, values, order = (ib.buffer_ptr(b) for b in (ins[0], *outs))
        rows = [ib.allocate(x.dtype, (size,), n, "global") for n in ("keys", "spare_keys")]
        places = [ib.allocate("int64", (size,), n, "global") for n in ("places", "spare_places")]
        ends = ib.allocate("int64", (2,), "ends")
        with (
            ib.for_range(0, count_of(x.shape[:at]), "o") as o,
            ib.for_range(0, inner, "c") as c,
        ):
            begin = ib.let("begin", o * size * inner + c)
            with ib.for_range(0, size, "k") as k:
                rows[0][k] = data[begin + k * inner]
                places[0][k] = k
            _merge_all(ib, rows, places, ends, size, before)
            with ib.for_range(0, size, "k") as k:
                values[begin + k * inner] = rows[0][k]
                order[begin + k * inner] = places[0][k]
        return ib.get()

    made = te.extern([tuple(x.shape)] * 2, [x], body, name=op, dtype=[x.dtype, "int64"])
    assert isinstance(made, tuple)
    return made


def _merge_all(
    ib: IRBuilder,
    rows: list[BufferVar],
    places: list[BufferVar],
    ends: BufferVar,
    size: Expr,
    before: Before,
) -> None:
    """Merge runs until one is left; the second of `rows` and of `places` is spare."""
    length = known(size)
    levels = _MOST_LEVELS if length is None else max(0, length - 1).bit_length()
    with ib.for_range(0, levels, "level") as level:
        width = ib.let("width", const(1) << level)
        with ib.if_scope(width < size):
            with ib.for_range(0, (size + width * 2 - 1) // (width * 2), "run") as run:
                low = ib.let("low", run * width * 2)
                middle = ib.let("middle", binary("min", low + width, size))
                high = ib.let("high", binary("min", low + width * 2, size))
                _merge(ib, rows, places, ends, (low, middle, high), before)
            with ib.for_range(0, size, "k") as k:
                rows[0][k] = rows[1][k]
                places[0][k] = places[1][k]


def _merge(
    ib: IRBuilder,
    rows: list[BufferVar],
    places: list[BufferVar],
    ends: BufferVar,
    run: tuple[Expr, Expr, Expr],
    before: Before,
) -> None:
    """Merge two runs side by side into the spare row: of equal elements the left one first."""
    low, middle, high = run
    ends[0], ends[1] = low, middle
    with ib.for_range(low, high, "k") as k:
        i, j = ib.let("i", ends[0]), ib.let("j", ends[1])
        right_first = te.if_then_else(j < high, before(rows[0][j], rows[0][i]), te.const(False))
        from_left = ib.let("from_left", te.if_then_else(i < middle, ~right_first, te.const(False)))
        taken = ib.let("taken", te.select(from_left, i, j))
        rows[1][k] = rows[0][taken]
        places[1][k] = places[0][taken]
        ends[0] = i + from_left.astype("int64")
        ends[1] = j + (~from_left).astype("int64")


def _is_less(a: Expr, b: Expr) -> Expr:
    if not a.dtype.is_float:
        return a < b
    return te.any(a < b, te.all(te.isnan(b), ~te.isnan(a)))


def _is_greater(a: Expr, b: Expr) -> Expr:
    return _is_less(b, a)


def searchsorted(
    sorted_sequence: Tensor, values: Tensor, right: bool = False, out_dtype: str = "int64"
) -> Tensor:
    """Give the places where values go into sorted rows, before equal elements or (right) behind.

    The sequence has one dimension, or those of `values` but for the last one.
    """
    rows, size = sorted_sequence.ndim > 1, sorted_sequence.shape[-1]
    if rows:
        if sorted_sequence.ndim != values.ndim:
            raise refusal("searchsorted", f"{sorted_sequence.name} has {sorted_sequence.ndim}"
                          f" dimensions, {values.name} {values.ndim}")  # fmt: skip
        for a, b in zip(sorted_sequence.shape[:-1], values.shape[:-1], strict=True):
            check_same("searchsorted", "sizes of the sequence and of the values", a, b)
    length = known(size)
    steps = _MOST_LEVELS if length is None else length.bit_length()
    count = values.shape[-1] if rows else const(1)

    def body(ins: Sequence[DeclaredBuffer], outs: Sequence[DeclaredBuffer]) -> Stmt:
        ib = ir_builder.create()
        row, wanted, found = (ib.buffer_ptr(b) for b in (*ins, *outs))
        ends = ib.allocate("int64", (2,), "ends")
        with ib.for_range(0, count_of(values.shape), "v") as v:
            begin = v // count * size if rows else const(0)
            value = ib.let("value", wanted[v])
            ends[0], ends[1] = const(0), size
            with ib.for_range(0, steps, "step"), ib.if_scope(ends[0] < ends[1]):
                middle = ib.let("middle", (ends[0] + ends[1]) // 2)
                here = row[begin + middle]
                behind = ib.let("behind", here <= value if right else here < value)
                ends[0] = te.select(behind, middle + 1, ends[0])
                ends[1] = te.select(behind, ends[1], middle)
            found[v] = ends[0].astype(out_dtype)
        return ib.get()

    made = te.extern(
        tuple(values.shape), [sorted_sequence, values], body, name="searchsorted", dtype=out_dtype
    )
    assert isinstance(made, Tensor)
    return made
