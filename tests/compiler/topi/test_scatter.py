"""Updates put at places that are data, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from farbench_compiler import te, topi
from farbench_compiler.errors import ScheduleError

from .evaluate import Array, check, numbers

DATA, UPDATES = numbers(4, 5), numbers(3, 5, seed=1)
PLACES = np.random.default_rng(5).integers(-4, 4, (3, 5)).astype("int32")
JOINS = {
    "add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum,
}  # fmt: skip


def scattered(data: Array, places: Array, updates: Array, axis: int, mode: str) -> Array:
    out = data.copy()
    for at in np.ndindex(*places.shape):
        to = (*at[:axis], places[at], *at[axis + 1 :])
        out[to] = JOINS[mode](out[to], updates[at]) if mode in JOINS else updates[at]
    return out


@pytest.mark.parametrize("mode", ["update", *JOINS])
def test_scatter_elements(mode: str) -> None:
    check(
        lambda x, i, u: topi.scatter_elements(x, i, u, 0, mode), [DATA, PLACES, UPDATES],
        scattered(DATA, PLACES, UPDATES, 0, mode),
    )  # fmt: skip


def test_along_the_last_axis() -> None:
    check(
        lambda x, i, u: topi.scatter_elements(x, i, u, -1), [DATA, PLACES, UPDATES],
        scattered(DATA, PLACES, UPDATES, 1, "update"),
    )  # fmt: skip


def test_what_lies_outside_is_left_out() -> None:
    places = np.array([[-5, 4, 99, 0, -1]], "int64")
    wanted = DATA.copy()
    wanted[0, 3], wanted[3, 4] = UPDATES[0, 3], UPDATES[0, 4]
    check(topi.scatter_elements, [DATA, places, UPDATES[:1]], wanted)


@pytest.mark.parametrize("mode", ["update", "add"])
def test_scatter_nd(mode: str) -> None:
    places = np.array([[0, 3, -1], [4, 1, 0]], "int32")
    elements = numbers(3)
    wanted = DATA.copy()
    for m in range(3):
        to = tuple(places[:, m])
        wanted[to] = elements[m] + (wanted[to] if mode == "add" else 0)
    check(lambda x, i, u: topi.scatter_nd(x, i, u, mode), [DATA, places, elements], wanted)
    rows, news = places[:1, :2], numbers(2, 5)
    wanted = DATA.copy()
    for m in range(2):
        wanted[rows[0, m]] = news[m] + (wanted[rows[0, m]] if mode == "add" else 0)
    check(lambda x, i, u: topi.scatter_nd(x, i, u, mode), [DATA, rows, news], wanted)


def test_wrong_use_names_the_operator() -> None:
    a, i = te.placeholder((3, 4), name="A"), te.placeholder((3, 4), "int32", name="I")
    with pytest.raises(ScheduleError, match=r"topi\.scatter_elements: 'mean' is unknown"):
        topi.scatter_elements(a, i, a, 0, "mean")
    with pytest.raises(ScheduleError, match=r"topi\.scatter_elements: A is float32; indices"):
        topi.scatter_elements(a, a, a)
    with pytest.raises(ScheduleError, match=r"topi\.scatter_nd: the first dimension of I is 3"):
        topi.scatter_nd(a, i, a)
