"""Exponentials and logarithms: at most 4 units in the last place, and no calls in vector loops."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from farbench_compiler import te
from farbench_compiler.build import build
from farbench_compiler.lower import lower
from farbench_compiler.te.schedule import Schedule
from farbench_compiler.te.tensor import Tensor

from .jit import Machine, aligned, run

Array = NDArray[Any]
LIMIT = 4.0
LANES = 8
REFERENCE: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}
EDGES = (0.0, -0.0, 1.0, -1.0, 8.0, 1000.0, 0.5, np.inf, -np.inf, np.nan, 88.7, 88.73, -87.3, 1e-30)
HERE = Machine(partial(run, target="native"))
TARGETS = ("x86-64-v4", "x86-64-v3", "x86-64", "pi4", "pi2", "bananapi-f3")


def program(name: str, n: int, dtype: str) -> tuple[Schedule, list[Tensor]]:
    """Apply a function to n elements, in vectors."""
    a = te.placeholder((n,), dtype, name="A")
    c = te.compute((n,), lambda i: getattr(te, name)(a[i]), name="C")
    schedule = te.create_schedule(c.op)
    _, lane = schedule[c].split(c.op.axis[0], factor=LANES)
    schedule[c].vectorize(lane)
    return schedule, [a, c]


def apply(machine: Machine, name: str, x: Array) -> Array:
    """Run it over numbers; gives the results."""
    out = aligned(np.full_like(x, 7))
    assert machine.run(lower(*program(name, len(x), str(x.dtype))), [aligned(x), out]) == 0
    return out


def errors(got: Array, wanted: Array) -> Array:
    """Give distances in units in the last place of the results; equal values have none."""
    with np.errstate(all="ignore"):
        nearest = wanted.astype(got.dtype)
        normal = np.maximum(np.abs(nearest), np.finfo(got.dtype).tiny)
        away = np.abs(got.astype(wanted.dtype) - wanted) / np.spacing(normal).astype(wanted.dtype)
    alike = (got == nearest) | (np.isnan(got) & np.isnan(nearest))
    found: Array = np.where(alike, 0, np.nan_to_num(away, nan=np.inf)).astype(np.float64)
    return found


def check(machine: Machine, name: str, x: Array) -> None:
    with np.errstate(all="ignore"):
        wanted = REFERENCE[name](x.astype(np.longdouble))
    found = errors(apply(machine, name, x), wanted)
    worst = int(found.argmax())
    assert found[worst] <= LIMIT, f"{name}({x[worst]!r}) is {found[worst]:.1f} ulp off"


def numbers(dtype: str, count: int, seed: int = 0) -> Array:
    """Give numbers of every size, numbers near 0 and 1, and the edges; a whole count of vectors."""
    source = np.random.default_rng(seed)
    bits = source.integers(0, 2**64, count, dtype=np.uint64)
    spread = (
        bits.astype(np.uint32).view(np.float32) if dtype == "float32" else bits.view(np.float64)
    )
    near = source.uniform(-4, 4, count)
    far = (
        source.uniform(-750, 720, count) if dtype == "float64" else source.uniform(-105, 90, count)
    )
    every = np.concatenate([spread, *(np.asarray(x, dtype) for x in (near, far, EDGES))])
    return every[: len(every) // LANES * LANES]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", REFERENCE)
def test_errors_are_few_units_in_the_last_place(name: str, dtype: str) -> None:
    check(HERE, name, numbers(dtype, 300_000))


@pytest.mark.parametrize("name", REFERENCE)
def test_any_machine_computes_alike(name: str, machine: Machine) -> None:
    x = numbers("float32", 2000, 1)
    if not machine.subnormals:  # what a target flushes is its own fact
        with np.errstate(all="ignore"):
            y = REFERENCE[name](x.astype(np.float64)).astype(np.float32)
        tiny = np.finfo(np.float32).tiny
        x = x[~((np.abs(x) < tiny) & (x != 0)) & ~((np.abs(y) < tiny) & (y != 0))]
        x = x[: len(x) // LANES * LANES]
    check(machine, name, x)


@pytest.mark.parametrize("target", TARGETS)
def test_vector_loops_call_nothing(target: str) -> None:
    names = re.compile(r"\b(callq?|bl|jal|call)\s+\w*(" + "|".join(REFERENCE) + r")f?\b")
    for name in REFERENCE:
        text = build(*program(name, 64, "float32"), target=target).get_source("asm")
        assert not names.search(text), f"{name} on {target}"
        assert "@plt" not in text.lower(), f"{name} on {target}"


def test_powers_of_two_are_exact() -> None:
    x = np.arange(-16, 16, dtype=np.float32)
    np.testing.assert_array_equal(apply(HERE, "exp2", x), np.exp2(x))
    np.testing.assert_array_equal(apply(HERE, "log2", np.exp2(x)), x)
