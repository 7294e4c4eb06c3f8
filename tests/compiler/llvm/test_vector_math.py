"""Mathematical functions: at most 4 units in the last place, and no calls in vector loops."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import farbench as fb
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
    "expm1": np.expm1,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "log1p": np.log1p,
}
ROUNDING: dict[str, Callable[[Array], Array]] = {
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.rint,
}  # fmt: skip
REFERENCE |= ROUNDING
PERIODIC: dict[str, Callable[[Array], Array]] = {"sin": np.sin, "cos": np.cos, "tan": np.tan}
REFERENCE |= PERIODIC
OF_TWO: dict[str, Callable[[Array, Array], Array]] = {
    "pow": np.power, "atan2": np.arctan2, "fmod": np.fmod, "hypot": np.hypot,
}  # fmt: skip
EDGES = (0.0, -0.0, 1.0, -1.0, 8.0, 1000.0, 0.5, np.inf, -np.inf, np.nan, 88.7, 88.73, -87.3, 1e-30,
         89.3, 2.0, -2.0, 3.0, -3.0, 5999.0, -6001.0, 1e20, 0.25, 1e-10)  # fmt: skip
HERE = Machine(partial(run, target="native"))
TARGETS = ("x86-64-v4", "x86-64-v3", "x86-64", "pi4", "pi2", "bananapi-f3")


def program(name: str, n: int, dtype: str) -> tuple[Schedule, list[Tensor]]:
    """Apply a function to n elements (of each argument), in vectors."""
    args = [te.placeholder((n,), dtype, name=x) for x in ("AB" if name in OF_TWO else "A")]
    c = te.compute((n,), lambda i: getattr(te, name)(*(a[i] for a in args)), name="C")
    schedule = te.create_schedule(c.op)
    _, lane = schedule[c].split(c.op.axis[0], factor=LANES)
    schedule[c].vectorize(lane)
    return schedule, [*args, c]


def apply(machine: Machine, name: str, *args: Array) -> Array:
    """Run it over numbers; gives the results."""
    x = args[0]
    out = aligned(np.full_like(x, 7))
    given = [*(aligned(arg) for arg in args), out]
    assert machine.run(lower(*program(name, len(x), str(x.dtype))), given) == 0
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


def reference(name: str, *args: Array) -> Array:
    """Compute in 64 bits of mantissa."""
    function = OF_TWO[name] if name in OF_TWO else REFERENCE[name]
    with np.errstate(all="ignore"):
        return function(*(x.astype(np.longdouble) for x in args))


def check(machine: Machine, name: str, *args: Array) -> None:
    wanted = reference(name, *args)
    got = apply(machine, name, *args)
    found = errors(got, wanted)
    worst = int(found.argmax())
    at = [x[worst] for x in args]
    assert found[worst] <= LIMIT, f"{name}{at} is {found[worst]:.1f} ulp off"
    zeros = (got == 0) & (wanted == 0)
    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(wanted[zeros]))


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


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", OF_TWO)
def test_functions_of_two_are_as_close(name: str, dtype: str) -> None:
    x, y = numbers(dtype, 200_000, 1), numbers(dtype, 200_000, 2)
    check(HERE, name, x, y)
    special = np.array([*EDGES, 16777217.0, -0.5], dtype)
    every = [np.repeat(special, len(special)), np.tile(special, len(special))]
    check(HERE, name, *(v[: len(v) // LANES * LANES] for v in every))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_error_function_is_as_close(dtype: str) -> None:
    x = numbers(dtype, 5000, 3)
    x = np.concatenate([x, np.linspace(-6, 6, 8 * 400).astype(dtype)])
    wanted = np.array([math.erf(v) for v in x])  # half a unit off itself in double precision
    assert errors(apply(HERE, "erf", x), wanted).max() <= LIMIT - 1


@pytest.mark.parametrize("name", [*REFERENCE, *OF_TWO])
def test_any_machine_computes_alike(name: str, machine: Machine) -> None:
    args = [numbers("float32", 2000, seed) for seed in range(1 + (name in OF_TWO))]
    if not machine.subnormals:  # what a target flushes is its own fact
        tiny, keep = np.finfo(np.float32).tiny, np.ones(len(args[0]), bool)
        with np.errstate(over="ignore"):
            wanted = reference(name, *args).astype(np.float32)
        for v in (*args, wanted):
            keep &= (v == 0) | ~(np.abs(v) < 2 * tiny)
        args = [v[keep] for v in args]
        args = [v[: len(v) // LANES * LANES] for v in args]
    check(machine, name, *args)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", [*OF_TWO, *ROUNDING])
def test_a_target_of_few_instructions_computes_alike(name: str, dtype: str) -> None:
    plain = Machine(partial(run, target="x86-64"))
    args = [numbers(dtype, 50_000, seed) for seed in range(1 + (name in OF_TWO))]
    check(plain, name, *args)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_remainders_of_the_farthest_numbers_are_exact(dtype: str) -> None:
    limits = np.finfo(dtype)
    edges = [limits.max, limits.tiny, limits.smallest_subnormal, 1.0, 3.0, 7 * limits.tiny]
    x = np.repeat(np.array([*edges, 1e30, -limits.max], dtype), 8)
    y = np.tile(np.array([*edges, -0.1, 1e-30], dtype), 8)
    check(HERE, "fmod", x, y)
    check(Machine(partial(run, target="x86-64")), "fmod", x, y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("target", TARGETS)
def test_vector_loops_call_nothing(target: str, dtype: str) -> None:
    plain = [*(name for name in REFERENCE if name not in PERIODIC), *OF_TWO, "erf"]
    names = re.compile(r"\b(callq?|bl|jal|call)\s+\w*(" + "|".join(plain) + r")f?\b")
    for name in plain:
        text = build(*program(name, 64, dtype), target=target).get_source("asm")
        assert not names.search(text), f"{name} on {target}"
        assert "@plt" not in text.lower(), f"{name} on {target}"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", PERIODIC)
def test_only_huge_arguments_go_to_libm(name: str, target: str) -> None:
    text = build(*program(name, 64, "float32"), target=target).get_source("ll")
    bodies = re.findall(r"^define [^\n]*?@([\w.]+)\((.*?)^}", text, re.DOTALL | re.MULTILINE)
    callers = [caller for caller, body in bodies if f"@{name}f(" in body]
    assert len(bodies) > 1
    assert callers == [f"fbm.{name}_huge.v{LANES}f32"]


def test_powers_of_two_are_exact() -> None:
    x = np.arange(-16, 16, dtype=np.float32)
    np.testing.assert_array_equal(apply(HERE, "exp2", x), np.exp2(x))
    np.testing.assert_array_equal(apply(HERE, "log2", np.exp2(x)), x)


@pytest.mark.parametrize("lanes", [16, 32, 64])
def test_vectors_of_several_registers(lanes: int) -> None:
    x = np.linspace(-120, 95, 64 * 20).astype(np.float32)
    a = te.placeholder(x.shape, "float32", name="A")
    c = te.compute(x.shape, lambda i: te.exp(a[i]), name="C")
    schedule = te.create_schedule(c.op)
    schedule[c].vectorize(schedule[c].split(c.op.axis[0], factor=lanes)[1])
    out = aligned(np.full_like(x, 7))
    assert HERE.run(lower(schedule, [a, c]), [aligned(x), out]) == 0
    assert errors(out, reference("exp", x)).max() <= LIMIT


@pytest.mark.slow
@pytest.mark.parametrize("name", REFERENCE)
def test_every_float32(name: str) -> None:
    """All 2^32 numbers; the reference in double precision is half of 2^-29 units off at most."""
    step = 1 << 24
    kernel = loaded_once(name, step)
    for start in range(0, 1 << 32, step):
        x = aligned(np.arange(start, start + step, dtype=np.uint32).view(np.float32))
        out = aligned(np.empty_like(x))
        kernel(x, out)
        with np.errstate(all="ignore"):
            wanted = REFERENCE[name](x.astype(np.float64))
        found = errors(out, wanted)
        worst = int(found.argmax())
        assert found[worst] <= LIMIT, f"{name}({x[worst]!r}) is {found[worst]:.1f} ulp off"


def loaded_once(name: str, n: int) -> Callable[[Array, Array], None]:
    """Build a function for n elements, to be called again and again."""
    module = fb.build(*program(name, n, "float32"))
    return lambda x, out: module(x, out)
