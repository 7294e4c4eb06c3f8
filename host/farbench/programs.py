"""A user's tensor program in a Python file, named as FILE.py:FUNCTION.

The function takes nothing, or the parameter `target`, and returns `(schedule, args)`.
"""

from __future__ import annotations

import difflib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from farbench.errors import HostError, Terminated, UsageError
from farbench.extras import load


class ProgramError(HostError):
    """The user's own file or function raised an error; the message gives its line."""


def build_program(spec: str, target: Any) -> tuple[Any, Sequence[Any], str]:
    """Run FILE.py:FUNCTION; gives (schedule, args, the function's name)."""
    path, name = split(spec)
    function = find(_import(path), path, name)
    takes = inspect.signature(function).parameters
    needed = [p.name for p in takes.values() if p.default is p.empty and p.name != "target"]
    if needed:
        raise UsageError(f"{spec} takes {', '.join(needed)}; a program takes nothing, or `target`")
    try:
        made = function(target=target) if "target" in takes else function()
    except (KeyboardInterrupt, Terminated):
        raise
    except BaseException as error:  # sys.exit() and the like are the file's own errors
        raise _located(error, path) from error
    schedule, args = _checked(spec, made)
    return schedule, args, name


def split(spec: str) -> tuple[Path, str]:
    """Take FILE.py:FUNCTION apart; UsageError says which part is missing."""
    file, colon, name = spec.rpartition(":")
    if not colon or not file or not name.isidentifier():
        raise UsageError(f"{spec!r} does not name a program; write FILE.py:FUNCTION")
    path = Path(file)
    if not path.is_file():
        raise UsageError(f"no file {file}; write FILE.py:FUNCTION with a path from here")
    return path, name


def find(module: ModuleType, path: Path, name: str) -> Callable[..., Any]:
    """Find the function in its module; UsageError lists near matches."""
    found = getattr(module, name, None)
    if callable(found):
        return found  # type: ignore[no-any-return]
    own = [n for n, v in vars(module).items() if inspect.isfunction(v) and not n.startswith("_")]
    near = difflib.get_close_matches(name, own, n=3) or own
    hint = f"; it has: {', '.join(near)}" if near else "; it defines no function"
    raise UsageError(f"{path} has no function {name!r}{hint}")


def _import(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"farbench_program_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    # The file may import its neighbours, as when Python runs it.
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except (KeyboardInterrupt, Terminated):
        raise
    except BaseException as error:  # sys.exit() and the like are the file's own errors
        raise _located(error, path) from error
    finally:
        sys.path.remove(str(path.resolve().parent))
    return module


def _located(error: BaseException, path: Path) -> ProgramError:
    """Say at which line of the user's file it happened."""
    here = str(path.resolve())
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if str(Path(frame.filename).resolve()) == here]
    line = getattr(error, "lineno", None) if isinstance(error, SyntaxError) else None
    where = line if line is not None else (lines[-1] if lines else None)
    place = f"{path}:{where}" if where is not None else str(path)
    said = error.msg if isinstance(error, SyntaxError) else error  # its text repeats the place
    return ProgramError(f"{place}: {type(error).__name__}: {said}")


def _checked(spec: str, made: object) -> tuple[Any, Sequence[Any]]:
    schedule_class = load("farbench_compiler.te").Schedule
    pair = isinstance(made, (tuple, list)) and len(made) == 2
    if pair and isinstance(made[0], schedule_class) and isinstance(made[1], (tuple, list)):  # type: ignore[index]
        return made[0], made[1]  # type: ignore[index]
    shape = (
        f"{type(made).__name__} of {len(made)}"
        if isinstance(made, (tuple, list))
        else type(made).__name__
    )
    raise UsageError(f"{spec} returned {shape}; return (schedule, args), args a list of tensors")
