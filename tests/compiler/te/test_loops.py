"""Primitives on loops: what they make of unusual loops, and what they compute."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import farbench as fb
from farbench_compiler import te
from farbench_compiler.build import build
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


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 70), st.sampled_from(["sum", "max", "where", "argmax"]), st.booleans(),
    st.sampled_from(["whole", "split", "outside of data"]),
)  # fmt: skip
def test_reduce_loops_are_vectorised(m: int, what: str, symbolic: bool, how: str) -> None:
    size = te.var("m") if symbolic else m
    a = te.placeholder((3, size), "int32", name="A")
    k = te.reduce_axis((0, size), name="k")
    biggest = te.comm_reducer(
        lambda x, y: (te.if_then_else(x[1] >= y[1], x[0], y[0]), te.max(x[1], y[1])),
        lambda t, u: (te.const(-1, t), te.min_value(u)),
    )
    values: dict[str, Callable[[te.IterVar], te.Expr | tuple[te.Expr, ...]]] = {
        "sum": lambda i: te.sum(a[i, k], axis=k),
        "max": lambda i: te.max(a[i, k], axis=k),
        "where": lambda i: te.sum(a[i, k], axis=k, where=a[i, k] > 0),
        "argmax": lambda i: biggest((k.astype("int32"), a[i, k]), axis=k),
    }
    made = te.compute_all((3,), values[what], name="B")
    sch = te.create_schedule(made[0].op)
    stage = sch[made[0]]
    loop = stage.split(k, factor=8)[1] if how == "split" else k
    if how == "outside of data":
        stage.reorder(k, made[0].op.axis[0])
    stage.vectorize(loop)
    x = np.random.default_rng(0).integers(-99, 99, (3, m)).astype(np.int32)
    got = [np.zeros(3, np.int32) for _ in made]
    outs = [fb.nd.array(out) for out in got]
    interp.run(lower(sch, [a, *made]), [x, *got])
    fb.build(sch, [a, *made])(fb.nd.array(x), *outs)
    wanted = {
        "sum": x.sum(1), "max": x.max(1), "where": np.where(x > 0, x, 0).sum(1),
        "argmax": x.argmax(1),
    }  # fmt: skip
    np.testing.assert_array_equal(got[0], wanted[what])
    np.testing.assert_array_equal(outs[0].numpy(), wanted[what])


def test_a_vectorised_sum_says_that_its_order_changed() -> None:
    a = te.placeholder((4, 1000), name="A")
    k = te.reduce_axis((0, 1000), name="k")
    b = te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="B")
    sch = te.create_schedule(b.op)
    plain = build(sch, [a, b])
    sch[b].vectorize(k)
    vectors = build(sch, [a, b])
    assert [m.manifest.entries[0].reassociated for m in (plain, vectors)] == [False, True]
    x = np.random.default_rng(0).random((4, 1000), dtype=np.float32)
    out = fb.nd.array(np.zeros(4, np.float32))
    fb.build(sch, [a, b])(fb.nd.array(x), out)
    np.testing.assert_allclose(out.numpy(), x.sum(1), rtol=1e-5)


def test_loops_that_llvm_leaves_alone_say_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    a = te.placeholder((64, 64), name="A")
    k = te.reduce_axis((0, 64), name="k")
    c = te.compute((64,), lambda i: te.sum(te.sin(a[i, k]), axis=k), name="C")
    sch = te.create_schedule(c.op)
    sch[c].vectorize(k)
    fb.build(sch, [a, c], cache=False)
    assert capfd.readouterr() == ("", "")
