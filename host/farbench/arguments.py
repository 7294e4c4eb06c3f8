"""Arguments of a call: what they are, as the manifest's check and a result's record want it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from farbench.errors import UsageError
from farbench.nd import ALIGNMENT, DeviceArray, HostArray, NDArray
from farbench.result import InputFact
from farbench_rpc.manifest import ArrayFacts, Entry, TensorArg, shared_memory

Numpy = npt.NDArray[Any]
CallArgument = Union[NDArray, Numpy, "np.generic", int, float, bool]
Number = int | float | bool


def normal(entry: Entry, args: Sequence[CallArgument]) -> list[NDArray | Numpy | Number]:
    """Bring arguments to arrays and plain numbers; UsageError names one that is neither.

    A numpy scalar, or an array without dimensions where the entry takes a number, is a number.
    """
    found: list[NDArray | Numpy | Number] = []
    for index, arg in enumerate(args):
        wants_array = index < len(entry.args) and isinstance(entry.args[index], TensorArg)
        if isinstance(arg, (np.generic, np.ndarray)) and arg.ndim == 0 and not wants_array:
            found.append(arg.item())
        elif isinstance(arg, np.generic):
            found.append(np.asarray(arg))
        elif isinstance(arg, (NDArray, np.ndarray, int, float)):
            found.append(arg)
        else:
            raise UsageError(
                f"{entry.name}: argument {index + 1} is a {type(arg).__name__}; "
                "give an NDArray, a numpy array or a number"
            )
    return found


def facts(arg: NDArray | Numpy | Number) -> ArrayFacts | Number:
    """Say of an argument what the manifest's check wants to know, wherever it lives."""
    if isinstance(arg, HostArray):
        return ArrayFacts(arg.dtype, arg.shape, arg.data.ctypes.data)
    if isinstance(arg, NDArray):
        return ArrayFacts(arg.dtype, arg.shape)
    if isinstance(arg, np.ndarray):
        # A copy is made where memory is not aligned or contiguous, so neither is reported here.
        return ArrayFacts(arg.dtype.name, arg.shape, writable=bool(arg.flags.writeable))
    return arg


def must_lie_apart(entry: Entry, args: Sequence[NDArray | Numpy | Number]) -> None:
    """Check that what is written shares no memory with another argument; ArgumentError names both.

    It looks at the caller's own arrays, so that the answer does not hang on which are copied.
    """
    for written, target in enumerate(args):
        if not is_writable(entry, written):
            continue
        for other, arg in enumerate(args):
            if other != written and _share(target, arg):
                raise shared_memory(entry, written, other)


def _share(one: NDArray | Numpy | Number, other: NDArray | Numpy | Number) -> bool:
    if isinstance(one, DeviceArray) and isinstance(other, DeviceArray):
        return one.session is other.session and one.handle == other.handle
    here, there = _memory(one), _memory(other)
    return here is not None and there is not None and np.shares_memory(here, there)


def _memory(arg: NDArray | Numpy | Number) -> Numpy | None:
    if isinstance(arg, HostArray):
        return arg.data
    return arg if isinstance(arg, np.ndarray) else None


def describe(entry: Entry, args: Sequence[NDArray | Numpy | Number]) -> tuple[InputFact, ...]:
    """Record what each argument held."""
    inputs = []
    for formal, arg in zip(entry.args, args, strict=True):
        if isinstance(arg, NDArray):
            inputs.append(InputFact(formal.name, arg.dtype, arg.shape, arg.source))
        elif isinstance(arg, np.ndarray):
            inputs.append(InputFact(formal.name, arg.dtype.name, arg.shape, "host"))
        else:
            inputs.append(InputFact(formal.name, formal.dtype, (), repr(arg)))
    return tuple(inputs)


def input_flags(entry: Entry, args: Sequence[NDArray | Numpy | Number]) -> tuple[str, ...]:
    """Flag inputs that hold undefined elements (an output may)."""
    for formal, arg in zip(entry.args, args, strict=True):
        reads = isinstance(formal, TensorArg) and not formal.writable
        if reads and isinstance(arg, NDArray) and arg.source == "uninitialised":
            return ("uninitialised_inputs",)
    return ()


def is_writable(entry: Entry, index: int) -> bool:
    """Tell whether the entry writes to its argument of that index."""
    formal = entry.args[index]
    return isinstance(formal, TensorArg) and formal.writable


def is_placed(values: Numpy) -> bool:
    """Tell whether generated code can use this memory as it is."""
    native = values.flags.c_contiguous and values.dtype.isnative
    return bool(native) and values.ctypes.data % ALIGNMENT == 0


def must_live_on(arg: NDArray, session: object) -> DeviceArray:
    """Give an array of that session; UsageError when it lives elsewhere."""
    if isinstance(arg, DeviceArray) and arg.session is session:
        return arg
    raise UsageError(
        f"{arg!r} does not live on this session; copy it with fb.nd.array(x, remote.cpu())"
    )
