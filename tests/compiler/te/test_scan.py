"""te.scan: recurrences over the first axis, lowered to a loop over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import farbench as fb
from farbench_compiler import te
from farbench_compiler.errors import LoweringError, ScheduleError
from farbench_compiler.ir import interp
from farbench_compiler.ir.printer import to_text
from farbench_compiler.ir.verify import verify
from farbench_compiler.lower import lower

Array = npt.NDArray[Any]
Size = Any


def sums(m: Size, n: Size, dtype: str = "int32") -> dict[str, te.Tensor]:
    """Running sums of the columns of X."""
    x = te.placeholder((m, n), dtype, name="X")
    state = te.placeholder((m, n), dtype, name="S")
    init = te.compute((1, n), lambda _, i: x[0, i], name="init")
    update = te.compute((m, n), lambda t, i: state[t - 1, i] + x[t, i], name="update")
    out = te.scan(init, update, state, inputs=[x], name="scan")
    return {"x": x, "state": state, "init": init, "update": update, "out": out}


def cell(steps: Size, units: int) -> dict[str, te.Tensor]:
    """A recurrent cell: h[t] = max(X[t] + W h[t - 1], 0), the product a stage of its own."""
    x = te.placeholder((steps, units), name="X")
    w = te.placeholder((units, units), name="W")
    state = te.placeholder((steps, units), name="H")
    k = te.reduce_axis((0, units), name="k")
    init = te.compute((1, units), lambda _, i: x[0, i], name="init")
    product = te.compute(
        (steps, units), lambda t, i: te.sum(w[i, k] * state[t - 1, k], axis=k), name="product"
    )
    update = te.compute(
        (steps, units), lambda t, i: te.max(x[t, i] + product[t, i], 0.0), name="update"
    )
    out = te.scan(init, update, state, inputs=[x, w], name="scan")
    return {"x": x, "w": w, "product": product, "update": update, "out": out}


def cell_of_numpy(x: Array, w: Array) -> Array:
    h = [x[0]]
    for row in x[1:]:
        h.append(np.maximum(row + w @ h[-1], np.float32(0)))
    return np.stack(h)


def time_of(out: te.Tensor) -> te.IterVar:
    """Give the axis of time of a scan's tensor."""
    assert isinstance(out.op, te.ScanOp)
    return out.op.scan_axis


def run(sch: te.Schedule, args: Sequence[te.Tensor], arrays: Sequence[Array]) -> Array:
    """Run a schedule in the interpreter and natively; the last argument is what it writes."""
    slow, fast = np.zeros_like(arrays[-1]), fb.nd.array(np.zeros_like(arrays[-1]))
    interp.run(lower(sch, args), [*arrays[:-1], slow])
    fb.build(sch, list(args))(*map(fb.nd.array, arrays[:-1]), fast)
    np.testing.assert_allclose(slow, fast.numpy(), rtol=1e-5)
    return fast.numpy()


def test_scan(golden: Callable[[str, str], None]) -> None:
    """The text of a cell with a stage inside the loop over time."""
    c = cell(te.var("steps"), 16)
    sch = te.create_schedule(c["out"].op)
    sch[c["update"]].vectorize(c["update"].op.axis[1])
    fn = lower(sch, [c["x"], c["w"], c["out"]], name="scan")
    verify(fn, "lowered")
    golden("scan", to_text(fn) + "\n")


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 7), st.integers(1, 9), st.booleans(), st.sampled_from([None, 1, 2, 3]),
    st.sampled_from(["plain", "vectorize", "parallel", "cache_read", "cache_write", "state"]),
)  # fmt: skip
def test_running_sums_by_any_schedule(
    m: int, n: int, symbolic: bool, factor: int | None, how: str
) -> None:
    c = sums(*((te.var("m"), te.var("n")) if symbolic else (m, n)))
    sch = te.create_schedule(c["out"].op)
    update, scan = sch[c["update"]], sch[c["out"]]
    outer, inner = update.split(c["update"].op.axis[1], factor=4)
    axis = time_of(c["out"])
    if factor is not None:
        _, axis = scan.split(axis, factor=factor)
    match how:
        case "vectorize":
            update.vectorize(inner)
        case "parallel":
            update.parallel(outer)
        case "cache_read":
            sch[sch.cache_read(c["x"], "global", c["update"])].compute_at(scan, axis)
        case "state":
            sch[sch.cache_read(c["state"], "global", c["update"])].compute_at(update, outer)
    if how == "cache_write":
        sch = te.create_schedule(c["out"].op)
        cached = sch.cache_write(c["update"], "global")
        sch[cached].compute_at(sch[c["update"]], c["update"].op.axis[0])
    x = np.random.default_rng(0).integers(-99, 99, (m, n)).astype(np.int32)
    got = np.zeros_like(x)
    interp.run(lower(sch, [c["x"], c["out"]]), [x, got])
    np.testing.assert_array_equal(got, x.cumsum(0))


@pytest.mark.parametrize("symbolic", [False, True])
def test_a_cell_natively(symbolic: bool) -> None:
    c = cell(te.var("steps") if symbolic else 5, 16)
    sch = te.create_schedule(c["out"].op)
    sch[c["product"]].compute_at(sch[c["update"]], c["update"].op.axis[0])
    sch[c["update"]].vectorize(c["update"].op.axis[1])
    rng = np.random.default_rng(1)
    x = rng.random((5, 16), dtype=np.float32)
    w = rng.random((16, 16), dtype=np.float32) / 16
    got = run(sch, [c["x"], c["w"], c["out"]], [x, w, x])
    np.testing.assert_allclose(got, cell_of_numpy(x, w), rtol=1e-5)


def test_no_rows_and_fewer_rows_than_the_start_has() -> None:
    c = sums(te.var("m"), te.var("n"))
    fn = lower(te.create_schedule(c["out"].op), [c["x"], c["out"]])
    empty = np.zeros((0, 3), np.int32)
    interp.run(fn, [empty, empty.copy()])
    n = te.var("n")
    state = te.placeholder((n,), "int64", name="S")
    init = te.compute((2,), lambda i: i, name="init")
    update = te.compute((n,), lambda t: state[t - 1] + state[t - 2], name="update")
    fibonacci = te.scan(init, update, state)
    fn = lower(te.create_schedule(fibonacci.op), [fibonacci])
    for size in (0, 1, 2, 10):
        got = np.zeros(size, np.int64)
        interp.run(fn, [got])
        assert got.tolist() == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34][:size]


def two_states(m: int, n: int) -> tuple[te.Tensor, ...]:
    """a[t] = b[t - 1] + X[t], b[t] = a[t] * 2, through a stage that both updates read."""
    x = te.placeholder((m, n), "int32", name="X")
    a = te.placeholder((m, n), "int32", name="A")
    b = te.placeholder((m, n), "int32", name="B")
    zero = te.compute((1, n), lambda _, i: te.const(0, "int32"), name="zero")
    one = te.compute((1, n), lambda _, i: te.const(1, "int32"), name="one")
    next_a = te.compute((m, n), lambda t, i: b[t - 1, i] + x[t, i], name="next_a")
    made_a = te.compute((m, n), lambda t, i: next_a[t, i] + a[t - 1, i], name="made_a")
    made_b = te.compute((m, n), lambda t, i: made_a[t, i] * 2, name="made_b")
    out = te.scan([zero, one], [made_a, made_b], [a, b], inputs=[x])
    return x, next_a, *out


@pytest.mark.parametrize("inlined", [False, True])
def test_several_states_go_on_together(inlined: bool) -> None:
    x, next_a, a, b = two_states(6, 5)
    total = te.compute((6, 5), lambda t, i: a[t, i] * 1000 + b[t, i], name="total")
    sch = te.create_schedule(total.op)
    if inlined:
        sch[next_a].compute_inline()
    given = np.random.default_rng(2).integers(-9, 9, (6, 5)).astype(np.int32)
    p, q = np.zeros_like(given), np.ones_like(given)
    for t in range(1, 6):
        p[t] = q[t - 1] + given[t] + p[t - 1]
        q[t] = p[t] * 2
    np.testing.assert_array_equal(run(sch, [x, total], [given, given]), p * 1000 + q)


def lstm(units: int) -> dict[str, te.Tensor]:
    """A cell of four gates and two states over batches of 3, for any number of steps."""
    steps = te.var("steps")
    x, w = (
        te.placeholder((steps, 3, 4, units), name="X"),
        te.placeholder((4, units, units), name="W"),
    )
    shape = (steps, 3, units)
    c, h = te.placeholder(shape, name="c"), te.placeholder(shape, name="h")
    zeros = [te.compute((1, 3, units), lambda *at: 0.0, name=name) for name in ("c0", "h0")]
    k = te.reduce_axis((0, units), name="k")
    product = te.compute(
        x.shape, lambda t, i, g, j: te.sum(h[t - 1, i, k] * w[g, j, k], axis=k), name="product"
    )
    gates = te.compute(x.shape, lambda *at: x(*at) + product(*at), name="gates")
    next_c = te.compute(
        shape,
        lambda t, i, j: (
            te.sigmoid(gates[t, i, 2, j]) * c[t - 1, i, j]
            + te.sigmoid(gates[t, i, 0, j]) * te.tanh(gates[t, i, 1, j])
        ),
        name="next_c",
    )
    next_h = te.compute(
        shape,
        lambda t, i, j: te.sigmoid(gates[t, i, 3, j]) * te.tanh(next_c[t, i, j]),
        name="next_h",
    )
    made = [
        te.compute(shape, lambda *at, of=of: of(*at), name=f"update_{of.name}")
        for of in (next_c, next_h)
    ]
    outs = te.scan(zeros, made, [c, h], inputs=[x], name="lstm")
    names = ("x", "w", "h", "product", "gates", "next_c", "out_c", "out_h")
    return dict(zip(names, (x, w, h, product, gates, next_c, *outs), strict=True))


def test_an_lstm_with_its_stages_placed() -> None:
    p = lstm(16)
    sch = te.create_schedule(p["out_h"].op)
    sch[p["gates"]].compute_inline()
    copied = sch.cache_read(p["h"], "global", [p["product"]])
    sch[copied].compute_at(sch[p["product"]], p["product"].op.axis[1])
    sch[p["next_c"]].vectorize(p["next_c"].op.axis[2])
    rng = np.random.default_rng(3)
    x = rng.standard_normal((5, 3, 4, 16), dtype=np.float32)
    w = rng.standard_normal((4, 16, 16), dtype=np.float32) / 4
    outs = [fb.nd.array(np.zeros((5, 3, 16), np.float32)) for _ in range(2)]
    args = [p["x"], p["w"], p["out_c"], p["out_h"]]
    fb.build(sch, args)(fb.nd.array(x), fb.nd.array(w), *outs)
    c = h = np.zeros((3, 16))
    for t in range(1, 5):
        gates = x[t] + np.einsum("bk,gjk->bgj", h, w)
        inside, new, forget, out = (gates[:, g] for g in range(4))
        c = c / (1 + np.exp(-forget)) + np.tanh(new) / (1 + np.exp(-inside))
        h = np.tanh(c) / (1 + np.exp(-out))
        np.testing.assert_allclose(outs[0].numpy()[t], c, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(outs[1].numpy()[t], h, rtol=1e-4, atol=1e-5)


def test_a_scan_in_the_loop_of_a_reader_and_on_the_stack() -> None:
    c = sums(4, 8)
    read = te.compute((3, 8), lambda t, i: c["out"][t + 1, i] * 2, name="read")
    sch = te.create_schedule(read.op)
    sch[c["out"]].compute_at(sch[read], read.op.axis[0])
    sch[c["out"]].set_scope("local")
    x = np.arange(32, dtype=np.int32).reshape(4, 8)
    got = run(sch, [c["x"], read], [x, x[:3]])
    np.testing.assert_array_equal(got, x.cumsum(0)[1:] * 2)


def test_a_scan_within_a_scan() -> None:
    x = te.placeholder((4, 6), "int64", name="X")
    state = te.placeholder((4, 6), "int64", name="R")
    # Each row: running sums along it by a scan of its own, added to the row before.
    along = te.placeholder((6, 4), "int64", name="along")
    start = te.compute((1, 4), lambda _, t: x[t, 0], name="start")
    step = te.compute((6, 4), lambda i, t: along[i - 1, t] + x[t, i], name="step")
    running = te.scan(start, step, along, name="running")
    init = te.compute((1, 6), lambda _, i: running[i, 0], name="init")
    update = te.compute((4, 6), lambda t, i: state[t - 1, i] + running[i, t], name="update")
    out = te.scan(init, update, state, name="outer")
    given = np.arange(24, dtype=np.int64).reshape(4, 6)
    got = run(te.create_schedule(out.op), [x, out], [given, given])
    np.testing.assert_array_equal(got, given.cumsum(1).cumsum(0))


def test_a_placeholder_may_be_the_start() -> None:
    first = te.placeholder((1, 4), name="first")
    state = te.placeholder((5, 4), name="S")
    update = te.compute((5, 4), lambda t, i: state[t - 1, i] * 2.0, name="update")
    out = te.scan(first, update, state)
    x = np.ones((1, 4), np.float32)
    got = run(te.create_schedule(out.op), [first, out], [x, np.zeros((5, 4), np.float32)])
    np.testing.assert_array_equal(got, 2.0 ** np.arange(5)[:, None] * np.ones(4))


def test_what_a_scan_says_of_itself() -> None:
    c = sums(9, te.var("n"))
    op = c["out"].op
    assert isinstance(op, te.ScanOp)
    assert (op.scan_axis.name, len(op.spatial_axis_), op.num_outputs) == ("scan.idx", 1, 1)
    assert [to_text(e) for e in (op.scan_axis.domain.min, op.scan_axis.domain.extent)] == ["1", "8"]
    stage = te.create_schedule(op)[c["out"]]
    assert stage.leaf_iter_vars == [op.scan_axis]


def _later_row(c: dict[str, te.Tensor]) -> None:
    state = c["state"]
    update = te.compute(state.shape, lambda t, i: state[t, i] + 1, name="update")
    out = te.scan(c["init"], update, state)
    lower(te.create_schedule(out.op), [c["x"], out])


def _time_backwards(c: dict[str, te.Tensor]) -> None:
    stage = te.create_schedule(c["out"].op)[c["out"]]
    outer, inner = stage.split(time_of(c["out"]), factor=2)
    stage.reorder(inner, outer)


def _given_init(c: dict[str, te.Tensor]) -> None:
    lower(te.create_schedule(c["out"].op), [c["x"], c["init"], c["out"]])


def _shared_start(c: dict[str, te.Tensor]) -> None:
    second = te.placeholder(c["state"].shape, "int32", name="S2")
    update = te.compute(second.shape, lambda t, i: second[t - 1, i], name="update2")
    out = te.scan(c["init"], update, second, name="scan2")
    both = te.compute(second.shape, lambda t, i: out[t, i] + c["out"][t, i])
    te.create_schedule(both.op)


ILLEGAL: dict[str, tuple[Callable[[dict[str, te.Tensor]], object], str]] = {
    "vectorize": (
        lambda c: te.create_schedule(c["out"].op)[c["out"]].vectorize(time_of(c["out"])),
        "vectorize: axis scan.idx of stage scan is a scan axis, whose steps depend on each other",
    ),
    "reorder": (
        _time_backwards,
        "reorder: axis scan.idx.outer of stage scan is part of a scan's time, which runs in order",
    ),
    "update away": (
        lambda c: te.create_schedule(c["out"].op)[c["update"]].compute_inline(),
        "compute_inline: stage update is an update of scan scan and stays in its loop",
    ),
    "start away": (
        lambda c: te.create_schedule(c["out"].op)[c["init"]].compute_inline(),
        "compute_inline: stage init is the start of scan scan and stays before it",
    ),
    "row of its own": (_later_row, "reads S at a row that may not be computed yet"),
    "start given": (_given_init, "init is part of scan scan, in whose memory it lies"),
    "start of two": (_shared_start, "stage init belongs to another scan already"),
    "counts": (
        lambda c: te.scan([c["init"]], [c["update"]], []),
        "scan scan: 1 init, 1 update and 0 state tensors; give one of each for every state",
    ),
    "dtypes": (
        lambda c: te.scan(c["init"], c["update"], te.placeholder(c["state"].shape, name="F")),
        "init is int32, state F float32",
    ),
    "shapes": (
        lambda c: te.scan(c["x"], c["update"], te.placeholder((8, 4), "int32", name="G")),
        "X of 2 dimensions has not the sizes of state G",
    ),
    "state": (
        lambda c: te.scan(c["init"], c["update"], c["update"]),
        "state update must be a te.placeholder",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ILLEGAL)
def test_what_is_refused(name: str) -> None:
    act, message = ILLEGAL[name]
    with pytest.raises((ScheduleError, LoweringError)) as caught:
        act(sums(8, 6))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
