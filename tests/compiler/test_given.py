"""Wrong arguments of public functions are typed errors of one line, whatever they are."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, Literal

import numpy as np
import pytest

from farbench_compiler import ops, te, tir, topi
from farbench_compiler.errors import CompilerError, ValueTypeError
from farbench_compiler.given import checked
from farbench_compiler.topi import generic, x86

ROOMS = (te, tir, topi, topi.nn, topi.image, generic, x86, ops)
WRONG: tuple[object, ...] = (
    3, -1, 2**70, 2.5, float("nan"), None, "x", [1], [[]], {}, object(), True,
)  # fmt: skip
BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _public(room: ModuleType) -> Iterator[tuple[str, Callable[..., Any]]]:
    names = getattr(room, "__all__", None) or [n for n in vars(room) if "schedule_" in n]
    for name in names:
        function = getattr(room, name)
        if inspect.isfunction(function):
            yield f"{room.__name__.removeprefix('farbench_compiler.')}.{name}", function


FUNCTIONS = dict(pair for room in ROOMS for pair in _public(room))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_wrong_argument_is_a_typed_error(name: str) -> None:
    function = FUNCTIONS[name]
    parameters = [p for p in inspect.signature(function).parameters.values()
                  if p.kind in BY_POSITION]  # fmt: skip
    needed = sum(p.default is p.empty for p in parameters)
    tensor = te.placeholder((4, 5), name="A")
    for at in range(min(3, len(parameters))):
        for wrong in WRONG:
            args: list[object] = [tensor] * max(needed, at + 1)
            args[at] = wrong
            try:
                function(*args)
            except CompilerError as error:
                assert "\n" not in str(error), f"{name}{tuple(args)}"  # noqa: PT017


def _operator(
    x: te.Tensor, axis: int | list[int], scale: float = 1, mode: Literal["a", "b"] = "a",
    keep: bool = False, of: str | None = None,
) -> str:  # fmt: skip
    return f"{x.name} {axis} {scale} {mode} {keep} {of}"


CHECKED: Callable[..., str] = checked(_operator, "room.operator")


def test_what_fits_is_passed_on() -> None:
    x = te.placeholder((3,), name="X")
    assert CHECKED(x, 1) == "X 1 1 a False None"
    assert CHECKED(x, [1, 2], scale=np.float32(0.5), mode="b") == "X [1, 2] 0.5 b False None"
    assert CHECKED(x, np.int64(2), 3, keep=np.True_, of="C") == "X 2 3 a True C"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((3, 1), "room.operator: x is 3; give a tensor"),
        (("X", 1.5), "room.operator: x is 'X'; give a tensor"),
        ((None, 1.5), "room.operator: x is None; give a tensor"),
        ((te.placeholder((3,)), 1.5),
         "room.operator: axis is 1.5; give an integer or a list, each of it an integer"),
        ((te.placeholder((3,)), [1, "2"]),
         "room.operator: axis is [1, '2']; give an integer or a list, each of it an integer"),
        ((te.placeholder((3,)), 1, "2"), "room.operator: scale is '2'; give a number"),
        ((te.placeholder((3,)), 1, 2, "c"), "room.operator: mode is 'c'; give 'a' or 'b'"),
        ((te.placeholder((3,)), 1, 2, "a", 0.5),
         "room.operator: keep is 0.5; give True or False"),
        ((te.placeholder((3,)), 1, 2, "a", True, 7),
         "room.operator: of is 7; give a text or None"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(args: tuple[Any, ...], said: str) -> None:
    with pytest.raises(ValueTypeError) as caught:
        CHECKED(*args)
    assert str(caught.value) == said


def test_a_long_value_is_shortened() -> None:
    with pytest.raises(ValueTypeError, match=r"x is \[0, 1, 2.*\.\.\.; give a tensor"):
        CHECKED(list(range(100)), 1)
