"""The course's programs with their schedules, here and on every emulated board."""

from __future__ import annotations

import numpy as np
import pytest

from farbench_compiler.ir import interp
from farbench_compiler.lower import lower
from tests.compiler.ops.programs import Array, Place

from .programs import LESSONS, Lesson


def inputs(lesson: Lesson) -> list[Array]:
    source = np.random.default_rng(0)
    # Positive, since one of them is a variance.
    return [source.uniform(0.5, 1.5, shape).astype(np.float32) for shape in lesson.shapes]


@pytest.mark.parametrize("lesson", LESSONS, ids=str)
def test_a_lesson_runs_on_any_machine(lesson: Lesson, place: Place) -> None:
    given = inputs(lesson)
    wanted = lesson.reference(*given)
    got = place.compute(lesson.build(), given, wanted.shape)
    np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("lesson", LESSONS, ids=str)
def test_a_lesson_means_the_same_to_the_interpreter(lesson: Lesson) -> None:
    given = inputs(lesson)
    wanted = lesson.reference(*given)
    got = np.zeros(wanted.shape, np.float32)
    interp.run(lower(*lesson.build()), [*given, got])
    np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=1e-5)
