"""Equal programs share a fingerprint; whatever changes the code changes it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farbench_compiler import te
from farbench_compiler.fingerprint import NoFingerprintError, fingerprint
from farbench_compiler.te.schedule import Schedule
from farbench_compiler.te.tensor import Tensor

Change = Callable[[Schedule, Tensor], object]


def program(
    change: Change | None = None, n: int = 64, dtype: str = "float32", name: str = "C"
) -> str:
    a = te.placeholder((n, n), dtype, name="A")
    b = te.compute((n, n), lambda i, j: a[i, j] * 2, name="B")
    c = te.compute((n, n), lambda i, j: b[i, j] + b[j, i], name=name)
    schedule = te.create_schedule(c.op)
    if change is not None:
        change(schedule, c)
    return fingerprint(schedule, [a, c])


CHANGES: dict[str, Change] = {
    "split": lambda s, c: s[c].split(c.op.axis[0], factor=4),
    "split otherwise": lambda s, c: s[c].split(c.op.axis[0], factor=8),
    "parts": lambda s, c: s[c].split(c.op.axis[0], nparts=4),
    "the other axis": lambda s, c: s[c].split(c.op.axis[1], factor=4),
    "vectorize": lambda s, c: s[c].vectorize(c.op.axis[1]),
    "unroll": lambda s, c: s[c].unroll(c.op.axis[1]),
    "parallel": lambda s, c: s[c].parallel(c.op.axis[0]),
    "reorder": lambda s, c: s[c].reorder(c.op.axis[1], c.op.axis[0]),
    "fuse": lambda s, c: s[c].fuse(*c.op.axis),
    "inline": lambda s, c: s[c.op.input_tensors[0]].compute_inline(),
    "attach": lambda s, c: s[c.op.input_tensors[0]].compute_at(s[c], c.op.axis[0]),
    "scope": lambda s, c: s[c.op.input_tensors[0]].set_scope("local"),
    "cache": lambda s, c: s.cache_write(c, "local"),
}


def test_the_same_program_written_again_has_the_same_fingerprint() -> None:
    assert program() == program()
    for change in CHANGES.values():
        assert program(change) == program(change)


def test_every_primitive_changes_it() -> None:
    found = [program(), *(program(change) for change in CHANGES.values())]
    assert len(set(found)) == len(found)


def test_shape_dtype_and_name_change_it() -> None:
    found = [program(), program(n=65), program(dtype="float64"), program(name="D")]
    assert len(set(found)) == len(found)


@given(st.integers(1, 9), st.integers(1, 9))
def test_other_factors_are_other_programs(first: int, second: int) -> None:
    def split(by: int) -> Change:
        return lambda s, c: s[c].split(c.op.axis[0], factor=by)

    assert (program(split(first)) == program(split(second))) == (first == second)


def test_a_mark_that_is_added_to_a_stage_later_counts() -> None:
    def mark(schedule: Schedule, c: Tensor) -> None:
        schedule[c].nobody_knows_of_this = "yet"  # type: ignore[attr-defined]

    assert program(mark) != program()


@given(st.lists(st.floats(width=32), min_size=1, max_size=4), st.integers(0, 3))
def test_arrays_count_by_their_bytes(values: list[float], at: int) -> None:
    array = np.array(values, np.float32)
    assert fingerprint(array) == fingerprint(array.copy())
    other = array.copy()
    other.view(np.uint32)[at % len(values)] ^= 1
    assert fingerprint(array) != fingerprint(other)


def test_neighbours_do_not_run_together() -> None:
    assert fingerprint("a", "b") != fingerprint("a\x1fstr'b'")
    assert fingerprint([1, 2], 3) != fingerprint([1], 2, 3)
    assert fingerprint(0.0) != fingerprint(-0.0)


def test_what_is_known_by_identity_alone_has_none() -> None:
    with pytest.raises(NoFingerprintError, match="function"):
        fingerprint(lambda: 0)
