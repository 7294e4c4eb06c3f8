"""Bind a call's arguments to an entry: everything is checked before anything runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from farbench_rpc.manifest.dims import evaluate
from farbench_rpc.manifest.errors import ArgumentError, ManifestError
from farbench_rpc.manifest.schema import Dim, Entry, ScalarArg, TensorArg
from farbench_rpc.manifest.slots import DTYPES, to_slot


@dataclass(frozen=True)
class ArrayFacts:
    """What is known of an array that is passed; address 0 = not placed yet, so well aligned."""

    dtype: str
    shape: tuple[int, ...]
    address: int = 0
    contiguous: bool = True
    writable: bool = True


Argument = ArrayFacts | int | float | bool


@dataclass(frozen=True)
class Bound:
    """A call that fits: 8-byte slots in calling order, and sizes and integers by name."""

    scalars: tuple[int, ...]
    symbols: Mapping[str, int] = field(default_factory=dict)


def signature(entry: Entry) -> str:
    """Show an entry as a line: `add(A: float32[n], B: float32[n])`."""
    return f"{entry.name}({', '.join(_show_arg(arg) for arg in entry.args)})"


def bind(entry: Entry, args: Sequence[Argument]) -> Bound:
    """Check arguments against an entry; ArgumentError names the one that does not fit."""
    if len(args) != len(entry.args):
        raise ArgumentError(
            f"{signature(entry)} takes {len(entry.args)} arguments, got {len(args)}"
        )
    symbols: dict[str, int] = {}
    numbers: list[int] = []
    for index, formal in enumerate(entry.args):
        try:
            slot = _take(entry, formal, args[index], symbols)
        except _Misfit as cause:
            raise _refusal(entry, index, cause) from None
        if slot is not None:
            numbers.append(slot)
    for index, formal in enumerate(entry.args):
        try:
            _check_shape(formal, args[index], symbols)
        except _Misfit as cause:
            raise _refusal(entry, index, cause) from None
    _check_apart(entry, args)
    return Bound((*(symbols[name] for name in entry.symbols), *numbers), symbols)


def shared_memory(entry: Entry, written: int, other: int) -> ArgumentError:
    """Make the refusal of an argument that is written and shares memory with another one."""
    return ArgumentError(
        f"{_where(entry, written)}: is written and shares memory with argument {other + 1} "
        f"({entry.args[other].name}); give it an array of its own"
    )


class _Misfit(Exception):
    """Why one argument does not fit; `bind` says which one, so that a good call builds no text."""


def _refusal(entry: Entry, index: int, cause: _Misfit) -> ArgumentError:
    return ArgumentError(f"{_where(entry, index)}: {cause}")


def _where(entry: Entry, index: int) -> str:
    return f"{entry.name}: argument {index + 1} ({entry.args[index].name})"


def _take(
    entry: Entry, formal: TensorArg | ScalarArg, actual: Argument, symbols: dict[str, int]
) -> int | None:
    """Check all but computed sizes and settle symbols; give the slot of a number that is none."""
    if isinstance(formal, TensorArg):
        facts = _check_array(formal, actual)
        for dim, size in zip(formal.shape, facts.shape, strict=True):
            if isinstance(dim, str) and dim in entry.symbols:
                _settle(dim, size, symbols, facts)
        return None
    if isinstance(actual, ArrayFacts):
        raise _Misfit(f"expected a {formal.dtype} number, got {_show(actual)}")
    try:
        slot = to_slot(actual, formal.dtype)
    except ArgumentError as cause:
        raise _Misfit(str(cause)) from None
    if formal.name not in entry.symbols:
        if isinstance(actual, int):
            symbols[formal.name] = actual  # computed sizes may hang on it
        return slot
    _settle(formal.name, slot, symbols, None)
    return None


def _check_array(formal: TensorArg, actual: Argument) -> ArrayFacts:
    if not isinstance(actual, ArrayFacts):
        kind = type(actual).__name__
        raise _Misfit(f"expected {_show_type(formal)}, got {kind} {actual!r}")
    if actual.dtype != formal.dtype or len(actual.shape) != len(formal.shape):
        raise _Misfit(f"expected {_show_type(formal)}, got {_show(actual)}")
    if not actual.contiguous:
        raise _Misfit("expected a row-major contiguous array, got one with strides; copy it first")
    if formal.writable and not actual.writable:
        raise _Misfit("expected a writable array, got a read-only one")
    # No element of an empty array is ever read, wherever it lies.
    if actual.address % formal.alignment and all(actual.shape):
        aligned = actual.address & -actual.address
        raise _Misfit(
            f"expected memory aligned to {formal.alignment} bytes, got {aligned}; "
            "make the array with farbench.nd.array or farbench.nd.empty"
        )
    return actual


def _settle(name: str, size: int, symbols: dict[str, int], facts: ArrayFacts | None) -> None:
    known = symbols.setdefault(name, size)
    if known != size:
        got = f"{size} ({_show(facts)})" if facts else str(size)
        raise _Misfit(f"expected {name} = {known} as before, got {got}")


def _check_shape(
    formal: TensorArg | ScalarArg, actual: Argument, symbols: Mapping[str, int]
) -> None:
    if not isinstance(formal, TensorArg) or not isinstance(actual, ArrayFacts):
        return
    for index, (dim, size) in enumerate(zip(formal.shape, actual.shape, strict=True)):
        if _size(dim, symbols) != size:
            raise _Misfit(
                f"expected {_show_type(formal)}{_given(formal, symbols)}, "
                f"got {_show(actual)} (dimension {index})"
            )


def _check_apart(entry: Entry, args: Sequence[Argument]) -> None:
    # Compiled code reads and writes in whatever order is fast: it counts on arrays that lie apart.
    placed = [
        (index, arg.address, arg.address + math.prod(arg.shape) * DTYPES[arg.dtype])
        for index, arg in enumerate(args)
        if isinstance(arg, ArrayFacts) and arg.address
    ]
    for written, begin, end in placed:
        formal = entry.args[written]
        if not isinstance(formal, TensorArg) or not formal.writable:
            continue
        for other, start, stop in placed:
            if other != written and max(begin, start) < min(end, stop):
                raise shared_memory(entry, written, other)


def _size(dim: Dim, symbols: Mapping[str, int]) -> int:
    if isinstance(dim, int):
        return dim
    if dim in symbols:
        return symbols[dim]
    try:
        return evaluate(dim, symbols)
    except ManifestError as cause:
        raise _Misfit(str(cause)) from None


def _given(formal: TensorArg, symbols: Mapping[str, int]) -> str:
    used = [f"{n} = {v}" for n, v in symbols.items() if any(n in str(d) for d in formal.shape)]
    return f" with {', '.join(used)}" if used else ""


def _show_arg(arg: TensorArg | ScalarArg) -> str:
    shown = _show_type(arg) if isinstance(arg, TensorArg) else arg.dtype
    return f"{arg.name}: {shown}"


def _show_type(arg: TensorArg) -> str:
    return f"{arg.dtype}[{', '.join(map(str, arg.shape))}]"


def _show(facts: ArrayFacts) -> str:
    return f"{facts.dtype}[{', '.join(map(str, facts.shape))}]"
