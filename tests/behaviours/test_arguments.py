"""Rows N9 and N10: what a kernel takes, and that it takes the same everywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import farbench as fb
from farbench import errors, fill, te
from farbench.callables import LoadedModule
from farbench.session import Session
from farbench_compiler.build import build_functions
from farbench_compiler.ir.stmt import LoopFunction
from farbench_rpc.manifest import ManifestError
from tests.behaviours.yard import TARGETS, Place, Yard

pytestmark = pytest.mark.linux

Numpy = npt.NDArray[Any]
MOST = 12  # arrays of the entry that takes the most
COUNT = 37  # elements: no multiple of any vector


def elementwise(dtype: str) -> list[LoopFunction]:
    """Give `add_<dtype>` of two arrays and `scale_<dtype>` of an array and a number."""
    n, s = te.var("n"), te.var("s", dtype)
    a = te.placeholder((n,), dtype, "A")
    b = te.placeholder((n,), dtype, "B")
    if dtype == "bool":
        added = te.compute((n,), lambda i: te.any(a[i], b[i]), "C")
        scaled = te.compute((n,), lambda i: te.all(a[i], s), "C")
    else:
        added = te.compute((n,), lambda i: a[i] + b[i], "C")
        scaled = te.compute((n,), lambda i: a[i] * s, "C")
    return [
        lowered([a, b, added], f"add_{dtype}"),
        lowered([a, s, scaled], f"scale_{dtype}"),
    ]


def summing(arity: int) -> LoopFunction:
    """Give `take_<arity>`: its last array is the sum of all others, and one."""
    inputs = [te.placeholder((COUNT,), "int32", f"A{k}") for k in range(arity - 1)]

    def body(i: te.IterVar) -> te.Expr:
        total = te.const(1, "int32")
        for one in inputs:
            total = total + one[i]
        return total

    return lowered([*inputs, te.compute((COUNT,), body, "S")], f"take_{arity}")


def ranked(rank: int) -> LoopFunction:
    """Give `rank_<rank>`: doubles an array of that many dimensions."""
    shape = tuple(range(2, 2 + rank))
    a = te.placeholder(shape, "float32", "A")
    return lowered([a, te.compute(shape, lambda *at: a[at] * 2.0, "B")], f"rank_{rank}")


def lowered(args: list[Any], name: str) -> LoopFunction:
    found = fb.lower(te.create_schedule(args[-1].op), args, name=name)
    assert isinstance(found, LoopFunction)
    return found


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Give a function arch -> the library with an entry of every dtype, arity and rank."""
    folder = tmp_path_factory.mktemp("arguments")
    functions = [one for dtype in fill.DTYPES for one in elementwise(dtype)]
    functions += [summing(arity) for arity in range(1, MOST + 1)]
    functions += [ranked(rank) for rank in range(1, 5)]
    made: dict[str, Path] = {}

    def build(arch: str) -> Path:
        if arch not in made:
            made[arch] = folder / f"arguments-{arch}.so"
            module = fb.Module.of(build_functions(functions, TARGETS[arch]))
            module.export_library(made[arch])
        return made[arch]

    return build


class Sides:
    """The same library in three places: this process, a local session, a device."""

    def __init__(self, here: LoadedModule, near: Session, far: Session) -> None:
        self.sessions = {"here": None, "near": near, "far": far}
        self.modules: dict[str, LoadedModule] = {
            "here": here,
            "near": near.load_module("arguments.so"),
            "far": far.load_module("arguments.so"),
        }

    def outcomes(self, entry: str, give: Callable[[Session | None], list[Any]]) -> list[Any]:
        """Call an entry on each side: the bytes of its last argument, or type and text of why not.

        `give` makes the arguments for a session, None for this process.
        """
        found: list[Any] = []
        for side, module in self.modules.items():
            args = give(self.sessions[side])
            try:
                module[entry](*args)
            except (errors.HostError, ManifestError) as error:
                found.append((type(error), str(error)))
                continue
            out = args[-1]
            found.append((out.numpy() if isinstance(out, fb.nd.NDArray) else out).tobytes())
        return found


@pytest.fixture(scope="module")
def sides_of(yard: Yard, built: Callable[[str], Path]) -> Iterator[Callable[[str], Sides]]:
    """Give a function arch -> the three places, opened once."""
    with ExitStack() as stack:
        near = stack.enter_context(fb.local())
        near.upload(built("native"), "arguments.so")
        opened: dict[str, Sides] = {}

        def open_(arch: str) -> Sides:
            if arch not in opened:
                yard.device(arch)
                far = stack.enter_context(yard.tracker.request(f"name={arch}", timeout=30))
                far.upload(built(arch), "arguments.so")
                opened[arch] = Sides(fb.load_module(built("native")), near, far)
            return opened[arch]

        yield open_


@pytest.fixture
def sides(each_arch: str, sides_of: Callable[[str], Sides]) -> Sides:
    return sides_of(each_arch)


def some(dtype: str, seed: int) -> Numpy:
    low, high = fill.default_range(dtype)
    return fill.reference(seed, "uniform", low, high, dtype, (COUNT,))


def placed(values: Numpy, session: Session | None) -> fb.nd.NDArray:
    return fb.nd.array(values, session.cpu() if session is not None else None)


@pytest.mark.parametrize("dtype", fill.DTYPES)
def test_n10_every_dtype_is_taken_alike(sides: Sides, dtype: str) -> None:
    a, b = some(dtype, 1), some(dtype, 2)
    wanted = (a | b if dtype == "bool" else a + b).tobytes()
    plain = sides.outcomes(f"add_{dtype}", lambda _: [a, b, np.zeros_like(a)])
    assert plain == [wanted] * 3
    held = sides.outcomes(
        f"add_{dtype}",
        lambda there: [placed(a, there), placed(b, there), placed(np.zeros_like(a), there)],
    )
    assert held == [wanted] * 3
    strided = np.zeros(2 * COUNT, dtype=dtype)
    strided[::2] = a
    mixed = sides.outcomes(
        f"add_{dtype}", lambda there: [strided[::2], placed(b, there), np.zeros_like(a)]
    )
    assert mixed == [wanted] * 3


def scale_args(a: Numpy, number: object, session: Session | None) -> list[Any]:
    return [a, number, np.zeros_like(a)]


@pytest.mark.parametrize("dtype", fill.DTYPES)
def test_n10_numbers_of_every_dtype_are_taken_alike(sides: Sides, dtype: str) -> None:
    a, of = some(dtype, 3), np.dtype(dtype).type
    numbers = [of(1), of(3), of(3).item(), np.asarray(of(3)), 1, True]
    if dtype.startswith("float"):
        numbers += [0.1, float("inf"), -0.0, float(np.finfo(dtype).max)]
    for number in numbers:
        wanted = (a & of(number) if dtype == "bool" else a * of(number)).tobytes()
        found = sides.outcomes(f"scale_{dtype}", partial(scale_args, a, number))
        assert found == [wanted] * 3, number


def test_n10_numbers_beyond_a_dtype_are_refused_alike(sides: Sides) -> None:
    for dtype in fill.DTYPES:
        a = some(dtype, 3)
        for number in (2**64, -(2**63) - 1, 10**400, 1e39, 0.5, "1"):
            found = sides.outcomes(f"scale_{dtype}", partial(scale_args, a, number))
            assert found[0] == found[1] == found[2], (dtype, number)


def test_n10_every_arity_is_taken_alike(sides: Sides, place: Place) -> None:
    for arity in range(1, MOST + 1):
        inputs = [np.full(COUNT, 10**k % 9973, np.int32) for k in range(arity - 1)]
        wanted = (sum(inputs) + np.ones(COUNT, np.int32)).astype(np.int32).tobytes()
        found = sides.outcomes(f"take_{arity}", lambda _, i=inputs: [*i, np.zeros(COUNT, np.int32)])  # type: ignore[misc]
        assert found == [wanted] * 3, arity


def test_n10_no_argument_is_an_arity_too(place: Place, sides_of: Callable[[str], Sides]) -> None:
    # The device may be held by the sides of this module, which is a lease like any other.
    session = sides_of(place.arch).sessions["far"]
    assert session is not None
    session.upload(place.library, "hostile.so")
    session.load_module("hostile.so")()
    fb.load_module(place.yard.library("native"))()


@pytest.mark.parametrize("rank", range(1, 5))
def test_n10_every_rank_is_taken_alike(sides: Sides, rank: int) -> None:
    a = np.arange(np.prod(range(2, 2 + rank)), dtype=np.float32).reshape(range(2, 2 + rank))
    found = sides.outcomes(f"rank_{rank}", lambda _: [a, np.zeros_like(a)])
    assert found == [(a * 2).tobytes()] * 3


WRONG: dict[str, Callable[[Numpy], list[Any]]] = {
    "too few": lambda a: [a, a],
    "too many": lambda a: [a, a, a.copy(), a.copy()],
    "another dtype": lambda a: [a, a.astype(np.float64), a.copy()],
    "another size": lambda a: [a, a[:5], a.copy()],
    "another rank": lambda a: [a, a.reshape(1, -1), a.copy()],
    "a number": lambda a: [a, 3, a.copy()],
    "no array": lambda a: [a, "text", a.copy()],
    "read-only": lambda a: [a, a, np.broadcast_to(np.int32(0), a.shape)],
}


@pytest.mark.parametrize("how", WRONG)
def test_n10_what_does_not_fit_is_refused_alike(sides: Sides, how: str) -> None:
    a = some("int32", 5)
    found = sides.outcomes("add_int32", lambda _: WRONG[how](a))
    assert found[0] == found[1] == found[2]
    assert isinstance(found[0], tuple), "it was taken"
    assert "add_int32" in found[0][1]


@pytest.mark.qemu
def test_n9_64_bit_values_pass_through_a_32_bit_board(
    yard: Yard, sides_of: Callable[[str], Sides]
) -> None:
    sides = sides_of("armv7")
    far = sides.sessions["far"]
    assert far is not None
    assert (far.facts["bits"], far.facts["arch"]) == (32, "armv7")
    assert int(far.facts["memory"]) < 2**32  # type: ignore[arg-type]
    a = np.array([2**62 + 1, -(2**63), 2**33 + 7], np.int64)
    found = sides.outcomes("add_int64", lambda _: [a, np.full(3, 5, np.int64), np.zeros_like(a)])
    assert found == [(a + 5).tobytes()] * 3
    found = sides.outcomes("scale_int64", lambda _: [a[2:], 2**29 + 1, np.zeros(1, np.int64)])
    assert found == [(a[2:] * (2**29 + 1)).tobytes()] * 3
    made = fb.nd.random(9, "int64", far.cpu(), seed=2**63 - 25)
    assert (made.numpy() == fb.nd.random(9, "int64", seed=2**63 - 25).numpy()).all()
    assert int(far.facts["timer_resolution_ns"]) > 0  # type: ignore[arg-type]
