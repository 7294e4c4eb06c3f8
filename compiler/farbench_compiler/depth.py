"""Programs of any depth: what nests deeper than Python's stack allows runs again on a larger one.

Expressions and chains of stages are read recursively, a few calls a level. Few programs are deep,
so that all run as they are at first, and those that fail for it once more in a thread of their own.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import wraps
from typing import ParamSpec, TypeVar

from farbench_compiler.errors import LoweringError

STACK_BYTES = 1 << 30  # of address space; memory is taken as it is used
CALLS = 400_000  # up to 2 KiB of the stack each, where C code calls Python again

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

_NAME = "farbench-deep"
_DEEP = "the program nests too deep for the stack"

_one_at_a_time = threading.Lock()


def of_any_depth(
    function: Callable[_Parameters, _Result],
) -> Callable[_Parameters, _Result]:
    """Give a function that does the same, for programs that nest deeper than Python's stack, too.

    It may run twice, so that it must change nothing before it fails. LoweringError for what nests
    too deep even so.
    """

    @wraps(function)
    def call(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        try:
            return function(*args, **kwargs)
        except RecursionError:
            if threading.current_thread().name == _NAME:
                raise
        return _on_a_large_stack(lambda: function(*args, **kwargs))

    return call


def _on_a_large_stack(act: Callable[[], _Result]) -> _Result:
    results: list[_Result] = []
    errors: list[BaseException] = []
    context = copy_context()

    def run() -> None:
        try:
            results.append(context.run(act))
        except BaseException as error:
            errors.append(error)

    with _one_at_a_time:  # both limits are those of the whole process
        calls, stack_bytes = sys.getrecursionlimit(), threading.stack_size(STACK_BYTES)
        sys.setrecursionlimit(max(calls, CALLS))
        try:
            thread = threading.Thread(target=run, name=_NAME)
            thread.start()
            thread.join()
        except RuntimeError as cause:
            raise LoweringError(f"{_DEEP}, which takes {STACK_BYTES >> 20} MiB: {cause}") from cause
        finally:
            threading.stack_size(stack_bytes)
            sys.setrecursionlimit(calls)
    if not errors:
        return results[0]
    if isinstance(errors[0], RecursionError):
        raise LoweringError(f"{_DEEP}; give it less at a time") from None
    raise errors[0]
