"""Primitives on loops: what they make of unusual loops, and what they compute."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import farbench as fb
from farbench_compiler import te
from farbench_compiler.ir import interp
from farbench_compiler.ir.printer import to_text
from farbench_compiler.ir.verify import verify
from farbench_compiler.lower import lower


def total(n: int | te.Var) -> tuple[te.Tensor, te.Tensor]:
    """The sum of a vector, a tensor without dimensions."""
    a = te.placeholder((n,), "int32", name="A")
    k = te.reduce_axis((0, n), name="k")
    return a, te.compute((), lambda: te.sum(a[k], axis=k), name="S")


def test_fuse_of_nothing(golden: Callable[[str, str], None]) -> None:
    """The text of a sum that another stage is attached to by a loop of one step."""
    a, b = total(12)
    c = te.compute((), lambda: b() * 2, name="C")
    sch = te.create_schedule(c.op)
    one = sch[c].fuse()
    assert sch[c].leaf_iter_vars == [one]
    sch[b].compute_at(sch[c], one)
    fn = lower(sch, [a, c], name="fuse_of_nothing")
    verify(fn, "lowered")
    golden("fuse_of_nothing", to_text(fn) + "\n")


def test_a_loop_of_one_step_takes_every_primitive() -> None:
    a, b = total(te.var("n"))
    sch = te.create_schedule(b.op)
    one = sch[b].fuse()
    outer, inner = sch[b].split(one, factor=4)
    sch[b].parallel(sch[b].fuse([outer, inner]))
    got = np.zeros((), np.int32)
    interp.run(lower(sch, [a, b]), [np.arange(10, dtype=np.int32), got])
    assert got == 45


def test_vectorize_of_a_symbolic_loop(golden: Callable[[str, str], None]) -> None:
    """The text of a vectorised loop over a size."""
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] * 2.0, name="B")
    sch = te.create_schedule(b.op)
    sch[b].vectorize(b.op.axis[0])
    golden("vectorize_symbolic", to_text(lower(sch, [a, b], name="vectorize_symbolic")) + "\n")


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 5), st.integers(0, 70), st.sampled_from(["axis", "nparts", "fused", "outer"]))
def test_symbolic_loops_are_vectorised(n: int, m: int, how: str) -> None:
    rows, columns = te.var("n"), te.var("m")
    a = te.placeholder((rows, columns), name="A")
    k = te.reduce_axis((0, 3), name="k")
    b = te.compute((rows, columns), lambda i, j: te.sum(a[i, j] * k, axis=k), name="B")
    sch = te.create_schedule(b.op)
    i, j = b.op.axis
    match how:
        case "axis":
            sch[b].vectorize(j)
        case "nparts":
            sch[b].vectorize(sch[b].split(j, nparts=3)[1])
        case "fused":
            sch[b].vectorize(sch[b].fuse(i, j))
        case "outer":
            sch[b].vectorize(i)
    x = np.random.default_rng(0).random((n, m), dtype=np.float32)
    got = np.zeros_like(x)
    interp.run(lower(sch, [a, b]), [x, got])
    np.testing.assert_allclose(got, x * 3, rtol=1e-6)
    if x.size:
        out = fb.nd.array(np.zeros_like(x))
        fb.build(sch, [a, b])(fb.nd.array(x), out)
        np.testing.assert_allclose(out.numpy(), x * 3, rtol=1e-6)


@pytest.mark.parametrize("scope", ["", "global", "local"])
def test_scopes_that_a_cpu_has(scope: str) -> None:
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((8,), lambda i: b[i] * b[7 - i], name="C")
    sch = te.create_schedule(c.op)
    sch[b].set_scope(scope)
    assert f"allocate B: float32[8] in {scope or 'global'}" in to_text(lower(sch, [a, c]))


def test_thread_axes_say_what_they_are() -> None:
    thread = te.thread_axis((0, 4), "threadIdx.x")
    assert (thread.name, thread.thread_tag) == ("threadIdx.x", "threadIdx.x")
    assert te.thread_axis("blockIdx.y", name="by").thread_tag == "blockIdx.y"
    assert thread.domain.extent == 4
