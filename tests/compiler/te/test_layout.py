"""transform_layout: tensors that lie otherwise, arguments too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import farbench as fb
from farbench_compiler import te
from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir.printer import to_text
from farbench_compiler.ir.verify import verify
from farbench_compiler.lower import lower

Ints = NDArray[np.int32]
# A map, and the same in numpy: pad to whole tiles, part the dimensions, put them in order.
LAYOUTS: dict[str, tuple[Callable[..., Sequence[Any]], Callable[[Ints], Ints]]] = {
    "transposed": (lambda i, j: [j, i], lambda x: x.T),
    "flat": (lambda i, j: [i * 6 + j], lambda x: x.reshape(-1)),
    "tiles": (lambda i, j: [i // 4, j, i % 4], lambda x: tiles(x, 4).transpose(0, 2, 1)),
    "tiles of both": (
        lambda i, j: [i // 5, j // 3, i % 5, j % 3],
        lambda x: x.reshape(2, 5, 2, 3).transpose(0, 2, 1, 3),
    ),
    "three digits": (
        lambda i, j: [i // 4, j, i % 4 // 2, i % 2],
        lambda x: tiles(x, 4).reshape(3, 2, 2, 6).transpose(0, 3, 1, 2),
    ),
    "joined": (
        lambda i, j: [i // 5, j * 5 + i % 5],
        lambda x: x.reshape(2, 5, 6).transpose(0, 2, 1).reshape(2, 30),
    ),
}


def tiles(x: Ints, rows: int) -> Ints:
    """Pad with zeros to whole tiles of rows."""
    return np.pad(x, ((0, -len(x) % rows), (0, 0))).reshape(-1, rows, x.shape[1])


def program() -> tuple[te.Tensor, te.Tensor, te.Tensor, te.Schedule]:
    """C[i, j] = 2 A[i, j] + the sum over row i, by way of B = 2 A."""
    a = te.placeholder((10, 6), "int32", name="A")
    b = te.compute(a.shape, lambda i, j: a[i, j] * 2, name="B")
    k = te.reduce_axis((0, 6), name="k")
    total = te.compute((10,), lambda i: te.sum(b[i, k], axis=k), name="T")
    c = te.compute(a.shape, lambda i, j: b[i, j] + total[i], name="C")
    return a, b, c, te.create_schedule(c.op)


@pytest.mark.parametrize("at_c", LAYOUTS)
@pytest.mark.parametrize("at_a", LAYOUTS)
def test_arguments_and_stages_lie_as_told(at_a: str, at_c: str) -> None:
    a, b, c, sch = program()
    into, turned = LAYOUTS[at_a]
    assert sch[a].transform_layout(into) is None
    assert sch[b].transform_layout(LAYOUTS[at_c][0]) is not None
    axes = sch[c].transform_layout(LAYOUTS[at_c][0])
    assert axes is not None
    sch[c].vectorize(axes[-1])
    x = np.random.default_rng(0).integers(-9, 9, (10, 6), dtype=np.int32)
    wanted = LAYOUTS[at_c][1](x * 2 + (x * 2).sum(1, keepdims=True).astype(np.int32))
    got = np.full(wanted.shape, 77, np.int32)
    fb.build(sch, [a, c])(np.ascontiguousarray(turned(x)), got)
    np.testing.assert_array_equal(got, wanted)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(n=st.integers(1, 30), m=st.integers(1, 9), tile=st.integers(1, 9))
def test_a_reduction_over_any_tile(n: int, m: int, tile: int) -> None:
    a = te.placeholder((n, m), "int32", name="A")
    k = te.reduce_axis((0, m), name="k")
    c = te.compute((n,), lambda i: te.sum(a[i, k], axis=k), name="C")
    sch = te.create_schedule(c.op)
    sch[c].transform_layout(lambda i: [i % tile, i // tile])
    x = np.random.default_rng(n).integers(-9, 9, (n, m), dtype=np.int32)
    tile = min(tile, n)
    wanted = np.pad(x.sum(1, dtype=np.int32), (0, -n % tile)).reshape(-1, tile).T
    got = np.full(wanted.shape, 77, np.int32)
    fb.build(sch, [a, c])(x, got)
    np.testing.assert_array_equal(got, wanted)


def test_the_text(golden: Callable[[str, str], None]) -> None:
    a, _, c, sch = program()
    sch[a].transform_layout(lambda i, j: [j, i])
    sch[c].transform_layout(lambda i, j: [i // 4, j, i % 4])
    fn = lower(sch, [a, c], name="transform_layout")
    verify(fn, "lowered")
    golden("transform_layout", to_text(fn) + "\n")


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (lambda i, j: [i // 4, j], "without a part of i"),
        (lambda i, j: [i], "without a part of j"),
        (lambda i, j: [i, j, i], "mapped with a part of i twice"),
        (lambda i, j: [i + j], "sums that do not tell which parts"),
        (lambda i, j: [i * i, j], "by more than //, % and"),
        (lambda i, j: [(i + j) // 2, j], "a division of a sum"),
        (lambda i, j: [i, te.AXIS_SEPARATOR, j], "cannot have an axis separator"),
    ],
)
def test_a_map_that_cannot_be_turned_round_is_named(
    bad: Callable[..., Sequence[Any]], why: str
) -> None:
    _, _, c, sch = program()
    with pytest.raises(ScheduleError, match=f"transform_layout: stage C .*{why}"):
        sch[c].transform_layout(bad)


def test_what_has_no_layout_of_its_own_is_named() -> None:
    _, _, c, sch = program()
    sch[c].split(c.op.axis[0], factor=2)
    with pytest.raises(ScheduleError, match="stage C were changed already; call transform_layout"):
        sch[c].transform_layout(lambda i, j: [j, i])
    n = te.var("n")
    a = te.placeholder((n, 4), name="A")
    b = te.compute((n, 4), lambda i, j: a[i, j] + 1.0, name="B")
    with pytest.raises(ScheduleError, match="stage B has a size that is no number"):
        te.create_schedule(b.op)[b].transform_layout(lambda i, j: [j, i])
