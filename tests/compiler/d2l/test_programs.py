"""The course's programs with their schedules, here and on every emulated board."""

from __future__ import annotations

import numpy as np
import pytest

from farbench_compiler.ir import interp
from farbench_compiler.ir.stmt import LoopFunction
from farbench_compiler.lower import lower
from farbench_compiler.te import Tensor, Var
from tests.compiler.llvm.jit import aligned
from tests.compiler.ops.programs import Place

from .expressions import EXPRESSIONS
from .lesson import Array, Lesson
from .programs import LESSONS

ALL = (*EXPRESSIONS, *LESSONS)


def inputs(lesson: Lesson) -> list[Array]:
    source = np.random.default_rng(0)
    if np.dtype(lesson.dtype).kind == "i":
        return [source.integers(-50, 50, s).astype(lesson.dtype) for s in lesson.shapes]
    # Positive, since one of them is a variance.
    return [source.uniform(0.5, 1.5, s).astype(lesson.dtype) for s in lesson.shapes]


def check(got: Array, wanted: Array) -> None:
    rtol = 2e-3 if got.dtype == np.float16 else 2e-5
    np.testing.assert_allclose(got, wanted, rtol=rtol, atol=1e-5)


def prepared(lesson: Lesson) -> tuple[LoopFunction, list[Array], Array]:
    """Give the lowered program, its arrays (the last is written) and what is wanted."""
    given = inputs(lesson)
    wanted = np.asarray(lesson.reference(*given))
    schedule, args = lesson.build()
    *_, out = (arg for arg in args if isinstance(arg, Tensor))
    written = np.full(wanted.shape, 77).astype(str(out.dtype))
    return lower(schedule, args), [aligned(a) for a in (*given, written)], wanted


@pytest.mark.parametrize("lesson", ALL, ids=str)
def test_a_lesson_runs_on_any_machine(lesson: Lesson, place: Place) -> None:
    function, arrays, wanted = prepared(lesson)
    assert place.run(function, arrays, lesson.sizes) == 0
    check(arrays[-1], wanted)


@pytest.mark.parametrize("lesson", ALL, ids=str)
def test_a_lesson_means_the_same_to_the_interpreter(lesson: Lesson) -> None:
    function, arrays, wanted = prepared(lesson)
    numbers, rest = dict(zip(function.scalars, lesson.sizes, strict=True)), iter(arrays)
    interp.run(function, [numbers[a] if isinstance(a, Var) else next(rest) for a in function.args])
    check(arrays[-1], wanted)
