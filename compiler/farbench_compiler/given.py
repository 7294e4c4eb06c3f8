"""What callers give to public functions, checked against the types that these declare.

Functions of the package call each other without it: what they pass on was looked at already.
"""

from __future__ import annotations

import inspect
from collections import abc
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, wraps
from itertools import chain
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from farbench_compiler.errors import ValueTypeError
from farbench_compiler.ir.expr import IntImm

_WORDS = {
    "Tensor": "a tensor", "Expr": "an expression", "int": "an integer", "float": "a number",
    "bool": "True or False", "str": "a text", "NoneType": "None", "Callable": "a function",
}  # fmt: skip
_Function = TypeVar("_Function", bound=Callable[..., Any])


def check_what_is_given(names: dict[str, Any], public: Iterable[str], room: str) -> None:
    """Put the checked function in the place of each public one of a module's `names`."""
    for name in public:
        if inspect.isfunction(names[name]):
            names[name] = checked(names[name], f"{room}.{name}")


def checked(function: _Function, name: str) -> _Function:
    """Give a function that refuses arguments of other types than its own, by ValueTypeError."""
    signature = inspect.signature(function)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        kinds = _kinds(function)
        for parameter, value in signature.bind(*args, **kwargs).arguments.items():
            if parameter in kinds and not _fits(value, kinds[parameter]):
                wanted = " or ".join(dict.fromkeys(_described(kinds[parameter])))
                raise ValueTypeError(f"{name}: {parameter} is {_shown(value)}; give {wanted}")
        return function(*args, **kwargs)

    return call  # type: ignore[return-value]


@cache
def _kinds(function: Callable[..., Any]) -> Mapping[str, Any]:
    """Read the types of a function's parameters, once; `*args` and `**kwargs` have none here."""
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    skipped = {n for n, p in inspect.signature(function).parameters.items() if p.kind in several}
    hints = get_type_hints(function)
    return {name: kind for name, kind in hints.items() if name not in {*skipped, "return"}}


def _fits(value: Any, kind: Any) -> bool:
    """Tell whether a value is of a declared type; numpy's scalars are numbers."""
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return any(_fits(value, option) for option in get_args(kind))
    if origin is Literal:
        return any(value == option for option in get_args(kind) if isinstance(value, str))
    if origin is abc.Callable:
        return callable(value)
    if origin is not None and issubclass(origin, Sequence):
        return _is_sequence(value) and all(
            any(_fits(part, option) for option in get_args(kind) if option is not ...)
            for part in value
        )
    if kind is float:
        return hasattr(value, "__float__") and not _is_sequence(value)
    if kind is int:
        return hasattr(value, "__index__") or isinstance(value, IntImm)
    if kind is bool:
        return isinstance(value, int) or type(value).__name__ in ("bool", "bool_")
    plain = kind if origin is None else origin
    return isinstance(value, plain) if isinstance(plain, type) else True


def _is_sequence(value: Any) -> bool:
    """Tell whether a value has parts in an order; a text is one value, and so is a tensor."""
    return hasattr(value, "__len__") and hasattr(value, "__iter__") and not isinstance(value, str)


def _described(kind: Any) -> Iterable[str]:
    """Say in words what a type admits."""
    origin = get_origin(kind)
    inner = [option for option in get_args(kind) if option is not ...]
    if origin in (Union, UnionType):
        yield from chain.from_iterable(map(_described, inner))
    elif origin is Literal:
        yield from map(repr, inner)
    elif origin is not None and issubclass(origin, Sequence):
        words = dict.fromkeys(chain.from_iterable(map(_described, inner)))
        yield f"a list, each of it {' or '.join(words)}"
    else:
        name = getattr(origin or kind, "__name__", str(kind))
        yield _WORDS.get(name, f"a {name}")


def _shown(value: Any) -> str:
    """Write a value in few letters, on one line."""
    line = " ".join(repr(value).split())
    return line if len(line) <= 60 else f"{line[:57]}..."
