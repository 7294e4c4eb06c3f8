"""Bind a call's arguments to an entry: everything is checked before anything runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from farbench_rpc.manifest.dims import evaluate
from farbench_rpc.manifest.errors import ArgumentError, ManifestError
from farbench_rpc.manifest.schema import Dim, Entry, ScalarArg, TensorArg
from farbench_rpc.manifest.slots import to_slot


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
    """A call that fits: 8-byte slots in calling order, and the sizes found from the shapes."""

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
    pairs = [(_where(entry, i), formal, args[i]) for i, formal in enumerate(entry.args)]
    numbers: dict[int, int] = {}
    for index, (where, formal, actual) in enumerate(pairs):
        if isinstance(formal, TensorArg):
            _check_array(where, formal, actual)
            continue
        if isinstance(actual, ArrayFacts):
            raise ArgumentError(f"{where}: expected a {formal.dtype} number, got {_show(actual)}")
        slot = to_slot(actual, formal.dtype, where)
        if formal.name in entry.symbols:
            _settle(where, formal.name, slot, symbols)
        else:
            numbers[index] = slot
    for where, formal, actual in pairs:
        if isinstance(formal, TensorArg) and isinstance(actual, ArrayFacts):
            _find_symbols(entry, where, formal, actual, symbols)
    for where, formal, actual in pairs:
        if isinstance(formal, TensorArg) and isinstance(actual, ArrayFacts):
            _check_shape(where, formal, actual, symbols)
    return Bound((*(symbols[name] for name in entry.symbols), *numbers.values()), symbols)


def _where(entry: Entry, index: int) -> str:
    return f"{entry.name}: argument {index + 1} ({entry.args[index].name})"


def _check_array(where: str, formal: TensorArg, actual: Argument) -> None:
    """Check everything but the sizes."""
    if not isinstance(actual, ArrayFacts):
        kind = type(actual).__name__
        raise ArgumentError(f"{where}: expected {_show_type(formal)}, got {kind} {actual!r}")
    if actual.dtype != formal.dtype or len(actual.shape) != len(formal.shape):
        raise ArgumentError(f"{where}: expected {_show_type(formal)}, got {_show(actual)}")
    if not actual.contiguous:
        raise ArgumentError(
            f"{where}: expected a row-major contiguous array, got one with strides; copy it first"
        )
    if formal.writable and not actual.writable:
        raise ArgumentError(f"{where}: expected a writable array, got a read-only one")
    if actual.address % formal.alignment:
        aligned = actual.address & -actual.address
        raise ArgumentError(
            f"{where}: expected memory aligned to {formal.alignment} bytes, got {aligned}; "
            "make the array with farbench.nd.array or farbench.nd.empty"
        )


def _find_symbols(
    entry: Entry, where: str, formal: TensorArg, actual: ArrayFacts, symbols: dict[str, int]
) -> None:
    for dim, size in zip(formal.shape, actual.shape, strict=True):
        if isinstance(dim, str) and dim in entry.symbols:
            _settle(where, dim, size, symbols, _show(actual))


def _settle(where: str, name: str, size: int, symbols: dict[str, int], shown: str = "") -> None:
    known = symbols.setdefault(name, size)
    if known != size:
        got = f"{size} ({shown})" if shown else str(size)
        raise ArgumentError(f"{where}: expected {name} = {known} as before, got {got}")


def _check_shape(
    where: str, formal: TensorArg, actual: ArrayFacts, symbols: Mapping[str, int]
) -> None:
    for index, (dim, size) in enumerate(zip(formal.shape, actual.shape, strict=True)):
        if _size(where, dim, symbols) != size:
            raise ArgumentError(
                f"{where}: expected {_show_type(formal)}{_given(formal, symbols)}, "
                f"got {_show(actual)} (dimension {index})"
            )


def _size(where: str, dim: Dim, symbols: Mapping[str, int]) -> int:
    if isinstance(dim, int):
        return dim
    try:
        return evaluate(dim, symbols)
    except ManifestError as cause:
        raise ArgumentError(f"{where}: {cause}") from cause


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
