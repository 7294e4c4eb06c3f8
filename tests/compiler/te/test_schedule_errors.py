"""Schedules that are not legal say which primitive, which axis, why and what to try."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from farbench_compiler import te
from farbench_compiler.errors import LoweringError
from farbench_compiler.lower import lower


@dataclass(frozen=True)
class Case:
    """B = A + 1, C = sum of B over k, scheduled."""

    a: te.Tensor
    b: te.Tensor
    c: te.Tensor
    k: te.IterVar
    sch: te.Schedule

    @property
    def i(self) -> te.IterVar:
        return self.c.op.axis[0]

    @property
    def j(self) -> te.IterVar:
        return self.c.op.axis[1]

    def lower(self) -> None:
        lower(self.sch, [self.a, self.c])


@pytest.fixture
def case() -> Case:
    n = te.var("n")
    a = te.placeholder((8, n), name="A")
    b = te.compute((8, n), lambda i, j: a[i, j] + 1.0, name="B")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((8, n), lambda i, j: te.sum(b[i, k], axis=k), name="C")
    return Case(a, b, c, k, te.create_schedule(c.op))


def _twice(case: Case) -> None:
    case.sch[case.c].split(case.i, factor=2)
    case.sch[case.c].split(case.i, factor=2)


def _two_kinds(case: Case) -> None:
    case.sch[case.c].parallel(case.i)
    case.sch[case.c].unroll(case.i)


def _fused(case: Case) -> None:
    case.sch[case.c].fuse(case.i, case.j)
    case.sch[case.c].vectorize(case.j)


def _inlined_with_loops(case: Case) -> None:
    case.sch[case.b].split(case.b.op.axis[0], factor=2)
    case.sch[case.b].compute_inline()


def _into_inlined(case: Case) -> None:
    case.sch[case.b].compute_inline()
    case.sch[case.b].compute_at(case.sch[case.b], case.b.op.axis[0])


def _late_cache(case: Case) -> None:
    case.sch[case.c].split(case.i, factor=2)
    case.sch.cache_write(case.c, "local")


def _symbolic_unroll(case: Case) -> None:
    case.sch[case.c].unroll(case.j)
    case.lower()


def _stale_attachment(case: Case) -> None:
    case.sch[case.b].compute_at(case.sch[case.c], case.i)
    case.sch[case.c].fuse(case.i, case.j)
    case.lower()


def _vectorized_attachment(case: Case) -> None:
    case.sch[case.b].compute_at(case.sch[case.c], case.i)
    case.sch[case.c].vectorize(case.i)
    case.lower()


def _local_of_symbolic_size(case: Case) -> None:
    cached = case.sch.cache_write(case.c, "local")
    case.sch[cached].compute_at(case.sch[case.c], case.i)
    case.lower()


ILLEGAL: dict[str, tuple[Callable[[Case], object], str]] = {
    "foreign axis": (
        lambda c: c.sch[c.c].split(c.b.op.axis[0], factor=2),
        "split: axis i of stage C is no loop of this stage; its loops are i, j, k",
    ),
    "split twice": (_twice, "split: axis i of stage C was split into i.outer and i.inner; use"),
    "fused": (_fused, "vectorize: axis j of stage C was fused into i.j.fused; use that"),
    "factor and nparts": (
        lambda c: c.sch[c.c].split(c.i, factor=2, nparts=2),
        "split: axis i of stage C needs factor or nparts",
    ),
    "factor 0": (lambda c: c.sch[c.c].split(c.i, factor=0), "cannot have 0 steps"),
    "fuse apart": (
        lambda c: c.sch[c.c].fuse(c.j, c.i),
        "fuse: axis i of stage C does not follow j directly; reorder the loops first",
    ),
    "fuse kinds": (lambda c: c.sch[c.c].fuse(c.j, c.k), "not both data or both reduce axes"),
    "reorder twice": (lambda c: c.sch[c.c].reorder(c.i, c.i), "axis i of stage C is given twice"),
    "parallel reduction": (
        lambda c: c.sch[c.c].parallel(c.k),
        "parallel: axis k of stage C is a reduce axis",
    ),
    "two kinds": (
        _two_kinds,
        "unroll: axis i of stage C is parallel already",
    ),
    "output placed": (
        lambda c: c.sch[c.c].compute_at(c.sch[c.b], c.b.op.axis[0]),
        "compute_at: stage C is an output",
    ),
    "placeholder placed": (
        lambda c: c.sch[c.a].compute_at(c.sch[c.c], c.i),
        "compute_at: A is a placeholder",
    ),
    "placeholder split": (lambda c: c.sch[c.a].split(c.i, factor=2), "split: A is not computed"),
    "output inlined": (lambda c: c.sch[c.c].compute_inline(), "compute_inline: stage C is an out"),
    "inlined with loops": (_inlined_with_loops, "stage B has scheduled loops"),
    "attached to itself": (_into_inlined, "compute_at: stage B can be attached to another stage"),
    "scope of an output": (
        lambda c: c.sch[c.c].set_scope("local"),
        "set_scope: stage C cannot be local; outputs are the caller's",
    ),
    "scope of a GPU": (
        lambda c: c.sch[c.b].set_scope("shared"),
        "set_scope: stage B cannot be shared: shared memory is a GPU's; a CPU's caches need no",
    ),
    "scope with a tag": (
        lambda c: c.sch.cache_read(c.a, "global.vtcm", c.b),
        "cache_read: stage A cannot be global.vtcm: the tag 'vtcm' names memory that a CPU has not",
    ),
    "unknown scope": (
        lambda c: c.sch.cache_write(c.b, "fast"),
        "cache_write: stage B cannot be fast: no such memory is known; use local",
    ),
    "late cache": (_late_cache, "cache_write: the loops of stage C were changed already"),
    "cache of a placeholder": (
        lambda c: c.sch.cache_write(c.a, "local"),
        "cache_write: A is not computed",
    ),
    "cache nobody reads": (
        lambda c: c.sch.cache_read(c.a, "global", [c.c]),
        "cache_read: stage C does not read A",
    ),
    "foreign tensor": (
        lambda c: c.sch[te.placeholder((1,), name="X")],
        "X is not part of this schedule",
    ),
    "symbolic unroll": (
        _symbolic_unroll,
        "unroll: axis j of stage C has no constant extent; split it by a constant factor",
    ),
    "stale attachment": (
        _stale_attachment,
        "compute_at: stage B is attached to axis i of stage C, which was fused into i.j.fused",
    ),
    "vectorized attachment": (_vectorized_attachment, "which is vectorized; attach to a loop"),
    "symbolic local": (_local_of_symbolic_size, "set_scope: stage C.local cannot be local: its"),
}


@pytest.mark.parametrize("name", ILLEGAL)
def test_an_illegal_schedule_says_why(case: Case, name: str) -> None:
    act, words = ILLEGAL[name]
    with pytest.raises(te.ScheduleError) as caught:
        act(case)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_reader_outside_the_loop_is_named() -> None:
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((8,), lambda i: b[i] * 2.0, name="C")
    d = te.compute((8,), lambda i: c[i] + b[i], name="D")
    sch = te.create_schedule(d.op)
    sch[b].compute_at(sch[d], d.op.axis[0])
    with pytest.raises(te.ScheduleError, match="stage C reads it outside; attach further out"):
        lower(sch, [a, d])


def test_a_reduction_cannot_be_inlined() -> None:
    a = te.placeholder((8, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    b = te.compute((8,), lambda i: te.sum(a[i, k], axis=k), name="B")
    c = te.compute((8,), lambda i: b[i] * 2.0, name="C")
    sch = te.create_schedule(c.op)
    with pytest.raises(te.ScheduleError, match="stage B reduces over k; use compute_at"):
        sch[b].compute_inline()


def test_arguments_that_do_not_fit_are_named(case: Case) -> None:
    with pytest.raises(LoweringError, match="A is read by B but is not among the arguments"):
        lower(case.sch, [case.c])
    with pytest.raises(LoweringError, match="output C is not among the arguments"):
        lower(case.sch, [case.a])
    with pytest.raises(LoweringError, match="argument 2, C, is given twice"):
        lower(case.sch, [case.a, case.c, case.c])
    m = te.var("m")
    d = te.compute((8,), lambda i: case.a[i, 0] * m, name="D")
    with pytest.raises(LoweringError, match="m is neither a dimension of an argument nor"):
        lower(te.create_schedule(d.op), [case.a, d])
    fn = lower(te.create_schedule(d.op), [case.a, d, m])
    assert [v.name for v in fn.scalars] == ["n", "m"]


@pytest.mark.parametrize("wrong", [None, "i", 3], ids=repr)
@pytest.mark.parametrize(
    "primitive", ["split", "vectorize", "unroll", "parallel", "fuse", "reorder", "pragma"]
)
def test_what_is_no_axis_is_named(primitive: str, wrong: Any, case: Case) -> None:
    more: dict[str, dict[str, Any]] = {
        "split": {"factor": 2},
        "pragma": {"pragma_type": "unroll_explicit"},
    }
    with pytest.raises(te.ScheduleError, match=f"{primitive}: {wrong!r} is no axis; those of"):
        getattr(case.sch[case.c], primitive)(wrong, **more.get(primitive, {}))


@pytest.mark.parametrize("wrong", [None, "C", 3], ids=repr)
def test_what_is_no_tensor_or_stage_is_named(wrong: Any, case: Case) -> None:
    with pytest.raises(te.ScheduleError, match=f"{wrong!r} is no tensor of this schedule"):
        case.sch[wrong]
    with pytest.raises(te.ScheduleError, match=f"{wrong!r} is no tensor of this schedule"):
        case.sch.cache_read(case.a, "local", wrong)
    with pytest.raises(te.ScheduleError, match="give local or global|no such memory"):
        case.sch.cache_write(case.c, wrong)
    with pytest.raises(te.ScheduleError, match="transform_layout: stage C needs a function"):
        case.sch[case.c].transform_layout(wrong)
    with pytest.raises(te.ScheduleError, match="unknown dtype|dtype is"):
        te.placeholder((3,), wrong)


def test_misspelt_primitives_name_what_was_meant(case: Case) -> None:
    with pytest.raises(te.ScheduleError, match="stage C has no vectorise; did you mean vectorize"):
        case.sch[case.c].vectorise(case.c.op.axis[0])  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="a schedule has no cache_reed; did you mean cache_r"):
        case.sch.cache_reed(case.a, "local", [])  # type: ignore[attr-defined]
    assert not hasattr(case.sch, "nothing_like_it")


@pytest.mark.parametrize("wrong", ["x", None, object()], ids=repr)
def test_what_is_no_value_is_named(wrong: Any, case: Case) -> None:
    with pytest.raises(te.ScheduleError, match="is not an expression; give an Expr"):
        te.exp(wrong)


WRONG = [None, "x", 1.5, [], [None], np.array([4, 4]), lambda: 1]


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_arguments_of_other_kinds_are_refused_by_primitives(wrong: Any, case: Case) -> None:
    sch, stage, axis = case.sch, case.sch[case.c], case.c.op.axis[0]
    tries: list[Callable[[], object]] = [
        lambda: stage.bind(axis, wrong),
        lambda: stage.env_threads(wrong),
        lambda: stage.pragma(axis, wrong),
        lambda: stage.prefetch(wrong, axis),
        lambda: stage.storage_align(wrong, 4),
        lambda: stage.split(axis, factor=wrong),
        lambda: sch.create_group([wrong], [case.a]),
        lambda: sch.cache_write(wrong, "local"),
        lambda: sch.cache_read(wrong, "local", [case.c]),
        lambda: sch.rfactor(case.c, wrong),
    ]
    for attempt in tries:
        with pytest.raises(te.ScheduleError) as caught:
            attempt()
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_numbers_of_other_kinds_are_refused_by_primitives(wrong: Any, case: Case) -> None:
    stage = case.sch[case.b]
    with pytest.raises(te.ScheduleError, match="storage_align: .* give whole numbers"):
        stage.storage_align(case.b.op.axis[0], wrong)


def test_a_layout_is_a_list_of_indices() -> None:
    a = te.placeholder((8, 8), name="A")
    b = te.compute((8, 8), lambda i, j: a[i, j] + 1.0, name="B")
    stage: Any = te.create_schedule(b.op)[b]
    for wrong in (lambda i, j: None, lambda i: [i], lambda i, j: 3):
        with pytest.raises(te.ScheduleError, match="transform_layout: .* a list of indices"):
            stage.transform_layout(wrong)


def test_a_split_by_data_is_refused(case: Case) -> None:
    with pytest.raises(te.ScheduleError, match="cannot have a number of steps that is data"):
        case.sch[case.c].split(case.c.op.axis[0], factor=case.a[0, 0].astype("int64"))
