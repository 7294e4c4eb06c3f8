"""Tags: words on operations, by which whoever schedules a program recognises them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])
_current: ContextVar[str] = ContextVar("tag", default="")


class _TagScope:
    """What `tag_scope` gives: a context manager and a decorator."""

    def __init__(self, tag: str) -> None:
        self._tag = tag
        self._open: list[Any] = []

    def __enter__(self) -> _TagScope:
        scope = _tagged(self._tag)
        scope.__enter__()
        self._open.append(scope)
        return self

    def __exit__(self, *error: Any) -> None:
        self._open.pop().__exit__(*error)

    def __call__(self, function: Function) -> Function:
        @wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            with _tagged(self._tag):
                return function(*args, **options)

        return call  # type: ignore[return-value]


@contextmanager
def _tagged(tag: str) -> Iterator[None]:
    before = _current.set(tag)
    try:
        yield
    finally:
        _current.reset(before)


def tag_scope(tag: str) -> _TagScope:
    """Tag the computations made inside `with te.tag_scope(tag)`, or inside a decorated function."""
    return _TagScope(tag)


def current_tag() -> str:
    """Give the tag of the innermost scope; empty outside of any."""
    return _current.get()
