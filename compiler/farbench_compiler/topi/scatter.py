"""Functions that put updates into a copy of a tensor, at places that are data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from farbench_compiler import te
from farbench_compiler.ir.expr import Expr, ExprLike, binary, const
from farbench_compiler.ir.stmt import Stmt
from farbench_compiler.te import Tensor
from farbench_compiler.tir import ir_builder
from farbench_compiler.tir.buffer import DeclaredBuffer
from farbench_compiler.tir.ir_builder import IRBuilder
from farbench_compiler.topi.arguments import axis_of, check_rank, check_same, known, refusal
from farbench_compiler.topi.indexing import check_indices
from farbench_compiler.topi.shaping import count_of

Place = tuple[Expr, ...]
_JOINS: dict[str, Callable[[Expr, Expr], Expr]] = {
    "update": lambda old, new: new,
    "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new,
    "min": lambda old, new: binary("min", old, new),
    "max": lambda old, new: binary("max", old, new),
}


def scatter_elements(
    data: Tensor, indices: Tensor, updates: Tensor, axis: int = 0, reduction: str = "update"
) -> Tensor:
    """Put each update where its own place leads, the index along `axis` replaced.

    `reduction` is update, add, mul, min or max. Negative indices count from the end; updates
    whose index is outside are left out. Updates of one place go in their order.
    """
    op = "scatter_elements"
    along = axis_of(op, data, axis)
    check_indices(op, indices)
    for x in (indices, updates):
        check_rank(op, x, data.ndim)
    for a, b in zip(indices.shape, updates.shape, strict=True):
        check_same(op, f"sizes of {indices.name} and {updates.name}", a, b)

    def place(read: Callable[[Place], Expr], at: Place) -> Place:
        return (*at[:along], read(at), *at[along + 1 :])

    return _scattered(op, data, indices, updates, place, [along], reduction)


def scatter_nd(data: Tensor, indices: Tensor, updates: Tensor, mode: str = "update") -> Tensor:
    """Put updates [Y..., X...] where indices [M, Y...] lead: places in the first M dimensions.

    `mode` is that of `scatter_elements`, and so are negative indices and those outside.
    """
    op = "scatter_nd"
    check_indices(op, indices)
    count = known(indices.shape[0]) if indices.ndim else None
    if count is None or not 1 <= count <= data.ndim:
        raise refusal(
            op, f"the first dimension of {indices.name} is {count}; give the number of leading"
            f" dimensions of {data.name}, 1 to {data.ndim}",
        )  # fmt: skip
    wanted = [*indices.shape[1:], *data.shape[count:]]
    check_rank(op, updates, len(wanted))
    for a, b in zip(updates.shape, wanted, strict=True):
        check_same(op, f"sizes of {updates.name} and of what it is put into", a, b)
    inner = indices.ndim - 1

    def place(read: Callable[[Place], Expr], at: Place) -> Place:
        return (*(read((const(m), *at[:inner])) for m in range(count)), *at[inner:])

    return _scattered(op, data, indices, updates, place, range(count), mode)


def _scattered(
    op: str,
    data: Tensor,
    indices: Tensor,
    updates: Tensor,
    place: Callable[[Callable[[Place], Expr], Place], Place],
    led: Sequence[int],
    mode: str,
) -> Tensor:
    """Copy `data`, then put each update at its `place`, whose dimensions `led` are data."""
    join = _JOINS.get(mode)
    if join is None:
        raise refusal(op, f"{mode!r} is unknown; there are {', '.join(_JOINS)}")

    def body(ins: Sequence[DeclaredBuffer], outs: Sequence[DeclaredBuffer]) -> Stmt:
        ib = ir_builder.create()
        source, places, news, out = (ib.buffer_ptr(b) for b in (*ins, *outs))
        with ib.for_range(0, count_of(data.shape), "k") as k:
            out[k] = source[k]
        with ExitStack() as loops:
            at = _loops(ib, loops, updates.shape)
            to = list(place(lambda p: places[p].astype("int64"), at))
            for d in led:
                to[d] = ib.let("place", te.select(to[d] < 0, to[d] + data.shape[d], to[d]))
            inside = te.all(*(te.all(to[d] >= 0, to[d] < data.shape[d]) for d in led))
            with ib.if_scope(inside):
                out[tuple(to)] = join(out[tuple(to)], news[at].astype(data.dtype))
        return ib.get()

    made = te.extern(
        tuple(data.shape), [data, indices, updates], body, name=op, dtype=str(data.dtype)
    )
    assert isinstance(made, Tensor)
    return made


def _loops(ib: IRBuilder, stack: ExitStack, shape: Sequence[ExprLike]) -> Place:
    """Open one loop for each dimension."""
    return tuple(stack.enter_context(ib.for_range(0, n, f"i{d}")) for d, n in enumerate(shape))
