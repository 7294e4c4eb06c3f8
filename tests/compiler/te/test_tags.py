"""Tags by scope and decorator, automatic inlining, several outputs of one compute, GPU threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from farbench_compiler import te
from farbench_compiler.errors import ScheduleError
from farbench_compiler.ir import interp
from farbench_compiler.lower import lower
from farbench_compiler.te import schedule as schedules
from farbench_compiler.te.attach import Inline
from farbench_compiler.te.operation import ComputeOp


def made(name: str = "C", tag: str = "") -> ComputeOp:
    op = te.compute((4,), lambda i: i * 2, name=name, tag=tag).op
    assert isinstance(op, ComputeOp)
    return op


def test_a_scope_tags_what_is_made_inside() -> None:
    with te.tag_scope("outer"):
        first = made()
        with te.tag_scope(tag="inner"):
            second = made()
        third = made(tag="own")
    assert [op.tag for op in (first, second, third, made())] == ["outer", "inner", "own", ""]


def test_a_decorated_function_tags_what_it_makes() -> None:
    @te.tag_scope("conv")
    def build() -> ComputeOp:
        return made()

    assert (build().tag, made().tag) == ("conv", "")


def test_injective_stages_are_inlined() -> None:
    a = te.placeholder((4, 8), name="A")
    b = te.compute((4, 8), lambda i, j: a[i, j] + 1, name="B")
    k = te.reduce_axis((0, 8), name="k")
    c = te.compute((4,), lambda i: te.sum(b[i, k], axis=k), name="C")
    d = te.compute((4,), lambda i: c[i] * 2, name="D")
    e = te.compute((4,), lambda i: d[i] + 1, name="E")
    s = te.create_schedule(e.op)
    schedules.AutoInlineInjective(s)
    assert [isinstance(s[t].attach, Inline) for t in (b, c, d, e)] == [True, False, True, False]
    x, got = np.arange(32, dtype=np.float32).reshape(4, 8), np.zeros(4, np.float32)
    interp.run(lower(s, [a, e]), [x, got])
    np.testing.assert_array_equal(got, (x + 1).sum(1) * 2 + 1)


def test_scheduled_stages_are_left_alone() -> None:
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] + 1, name="B")
    c = te.compute((8,), lambda i: b[i] * 2, name="C")
    s = te.create_schedule(c.op)
    s[b].split(b.op.axis[0], factor=4)
    te.inline_injective(s)
    assert not isinstance(s[b].attach, Inline)


def test_a_compute_of_several_values_gives_several_tensors() -> None:
    a = te.placeholder((3,), name="A")
    several: Any = te.compute((3,), lambda i: (a[i] + 1, a[i] * 2), name="T")
    s = te.create_schedule(several[0].op)
    x, one, two = np.arange(3, dtype=np.float32), np.zeros(3, "f4"), np.zeros(3, "f4")
    interp.run(lower(s, [a, *several]), [x, one, two])
    np.testing.assert_array_equal(one, x + 1)
    np.testing.assert_array_equal(two, x * 2)


def test_threads_of_a_gpu_are_refused() -> None:
    op = made()
    s = te.create_schedule(op)
    thread = te.thread_axis((0, 4), "threadIdx.x")
    with pytest.raises(
        ScheduleError, match=r"bind: axis i of stage C cannot be bound to threadIdx\.x"
    ):
        s[op].bind(op.axis[0], thread)
    with pytest.raises(ScheduleError, match=r"env_threads: stage C .* blockIdx\.y"):
        s[op].env_threads([te.thread_axis("blockIdx.y")])
