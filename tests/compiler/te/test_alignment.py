"""storage_align: rows of intermediate tensors padded to strides of a schedule's choice."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import farbench as fb
from farbench_compiler import te
from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir import interp
from farbench_compiler.ir.expr import IntImm
from farbench_compiler.ir.printer import to_text
from farbench_compiler.ir.stmt import Allocate
from farbench_compiler.ir.verify import verify
from farbench_compiler.ir.visit import walk
from farbench_compiler.lower import lower

Program = tuple[te.Tensor, te.Tensor, te.Tensor, te.Schedule]


def turned(*shape: int | te.Var) -> Program:
    """B = A + 1, C[i, j, k] = B[i, j, k] * 2, B in memory of its own."""
    a = te.placeholder(shape, name="A")
    b = te.compute(shape, lambda *at: a(*at) + 1.0, name="B")
    c = te.compute(shape, lambda *at: b(*at) * 2.0, name="C")
    return a, b, c, te.create_schedule(c.op)


def test_storage_align(golden: Callable[[str, str], None]) -> None:
    """The text of rows that are one element longer than a multiple of 8."""
    a, b, c, sch = turned(6, 10)
    sch[b].storage_align(b.op.axis[0], 8, 1)
    fn = lower(sch, [a, c], name="storage_align")
    verify(fn, "lowered")
    golden("storage_align", to_text(fn) + "\n")


@settings(max_examples=30, deadline=None)
@given(
    st.tuples(st.integers(1, 5), st.integers(1, 9), st.integers(1, 9)), st.integers(1, 16),
    st.integers(0, 16), st.integers(0, 1), st.booleans(), st.booleans(),
)  # fmt: skip
def test_strides_are_as_asked_and_values_the_same(
    shape: tuple[int, int, int], factor: int, offset: int, dim: int, symbolic: bool, local: bool
) -> None:
    sizes = tuple(te.var(name) for name in "nmk") if symbolic else shape
    a, b, c, sch = turned(*sizes)
    if dim == 0:  # of rows that are padded too: only multiples of the factor are always there
        sch[b].storage_align(b.op.axis[1], factor, 1 % factor)
        offset = 0
    sch[b].storage_align(b.op.axis[dim], factor, offset)
    if local and not symbolic:
        sch[b].compute_at(sch[c], c.op.axis[0])
        sch[b].set_scope("local")
    x = np.random.default_rng(0).random(shape, dtype=np.float32)
    got = np.zeros_like(x)
    fn = lower(sch, [a, c])
    interp.run(fn, [x, got])
    np.testing.assert_allclose(got, (x + 1) * 2, rtol=1e-6)
    (buffer,) = [n.buffer for n in walk(fn.body) if isinstance(n, Allocate)]
    inner = [n.value for n in buffer.shape[dim + 1 :] if isinstance(n, IntImm)]
    assert symbolic or math.prod(inner) % factor == offset % factor


@pytest.mark.parametrize(("shape", "dim", "factor", "offset", "padded"), [
    ((4, 5), 0, 8, 0, "[4, 8]"),
    ((4, 5), 0, 8, 3, "[4, 11]"),
    ((4, 8), 0, 8, 0, "[4, 8]"),
    ((4, 5, 6), 0, 64, 0, "[4, 32, 6]"),
    ((4, 5, 6), 1, 16, 1, "[4, 5, 17]"),
])  # fmt: skip
def test_shapes(shape: tuple[int, ...], dim: int, factor: int, offset: int, padded: str) -> None:
    a, b, c, sch = turned(*shape)
    sch[b].storage_align(b.op.axis[dim], factor, offset)
    assert f"allocate B: float32{padded} in global" in to_text(lower(sch, [a, c]))


def test_natively_with_a_symbolic_row() -> None:
    a, b, c, sch = turned(7, te.var("m"))
    sch[b].storage_align(b.op.axis[0], 16, 1)
    sch[b].vectorize(b.op.axis[1])
    x = np.random.default_rng(0).random((7, 33), dtype=np.float32)
    out = fb.nd.array(np.zeros_like(x))
    fb.build(sch, [a, c])(fb.nd.array(x), out)
    np.testing.assert_allclose(out.numpy(), (x + 1) * 2, rtol=1e-6)


def _lowered(p: Program) -> None:
    a, b, c, sch = p
    sch[b].storage_align(b.op.axis[0], 4, 1)
    lower(sch, [a, b, c])


def _odd(p: Program) -> None:
    a, b, c, sch = p
    sch[b].storage_align(b.op.axis[0], 4, 1)
    lower(sch, [a, c])


ILLEGAL: dict[str, tuple[Callable[[Program], object], str]] = {
    "innermost": (
        lambda p: p[3][p[1]].storage_align(p[1].op.axis[2], 8, 0),
        "storage_align: axis i2 of stage B is the innermost dimension, whose elements lie side by",
    ),
    "a loop": (
        lambda p: p[3][p[1]].storage_align(p[3][p[1]].split(p[1].op.axis[0], 2)[0], 8, 0),
        "storage_align: axis i0.outer of stage B is no dimension of its tensor; those are i0, i1",
    ),
    "output": (
        lambda p: p[3][p[2]].storage_align(p[2].op.axis[0], 8, 0),
        "storage_align: axis i0 of stage C is of memory that is the caller's; align a stage of its",
    ),
    "factor": (
        lambda p: p[3][p[1]].storage_align(p[1].op.axis[0], 0, 0),
        "axis i0 of stage B cannot have factor 0 and offset 0",
    ),
    "argument": (_lowered, "axis i0 of stage B is of an argument, which lies as the caller has it"),
    "rows of 6": (
        _odd,
        "axis i0 of stage B cannot be 1 past a multiple of 4: it holds rows of 6 elements",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ILLEGAL)
def test_what_is_refused(name: str) -> None:
    act, message = ILLEGAL[name]
    with pytest.raises(ScheduleError) as caught:
        act(turned(4, 5, 6))
    assert message in str(caught.value)
