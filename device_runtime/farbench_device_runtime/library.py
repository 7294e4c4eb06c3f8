"""A compiled library in this process: what fits is checked before the loader sees the file.

Used by the worker, and by the host for calls in the caller's own process.

    library = Library.load("add.so", machine)
    with library.context(threads=2) as context:
        library.call(context, "add", addresses, scalars)
"""

from __future__ import annotations

import _ctypes
import ctypes
import errno
import os
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from farbench_device_runtime.fill import check_kind, misfit
from farbench_rpc.errors import (
    InvalidArgument,
    KernelError,
    LoadRefused,
    NotFound,
    OutOfMemory,
    QuotaExceeded,
)
from farbench_rpc.manifest import (
    DTYPES,
    ArrayFacts,
    Entry,
    Machine,
    Manifest,
    ManifestError,
    ScalarArg,
    TensorArg,
    check_loadable,
    decode,
    read_elf,
    read_encoded,
    signature,
)

_I32, _I64, _U64 = ctypes.c_int32, ctypes.c_int64, ctypes.c_uint64
_POINTER, _DOUBLE, _TEXT = ctypes.c_void_p, ctypes.c_double, ctypes.c_char_p
_OUT_OF_MEMORY = 1001

# The functions of the runtime in every library: result, then arguments (see farbench_runtime.h).
_RUNTIME: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "fb_ctx_create": (_POINTER, (_I32, _POINTER, _I32)),
    "fb_ctx_destroy": (None, (_POINTER,)),
    "fb_ctx_error": (_TEXT, (_POINTER,)),
    "fb_ctx_clear": (None, (_POINTER,)),
    "fb_ctx_bound": (_I32, (_POINTER,)),
    "fb_timer_probe": (_I32, (_POINTER, _POINTER)),
    "fb_fill": (_I32, (_I32, _POINTER, _I64, _U64, _I32, _DOUBLE, _DOUBLE)),
    "fb_time_sample": (
        _I32,
        (_POINTER, _POINTER, _POINTER, _POINTER, _I64, _I64, _POINTER, _POINTER),
    ),
}


class Code(Protocol):
    """Loaded code; it stays where it is as long as this object lives."""

    def address(self, symbol: str) -> int | None:
        """Give the address of a symbol, None where there is no such symbol."""


@dataclass(frozen=True)
class EntryPoint:
    """An entry of a loaded library, with its address in this process; it keeps the code there."""

    entry: Entry
    address: int
    code: Code = field(repr=False, compare=False)

    def arguments(self, count: int) -> tuple[TensorArg | ScalarArg, ...]:
        """Say what belongs to each of `count` arguments; InvalidArgument where it takes another."""
        if len(self.entry.args) != count:
            raise InvalidArgument(
                f"{signature(self.entry)} takes {len(self.entry.args)} arguments, got {count}"
            )
        return self.entry.args


class Runtime:
    """A shared library of the loader's, and the C runtime in it.

    It is unloaded when nothing refers to it, nor to a context made by it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Load it; LoadRefused with what the loader says."""
        try:
            self._handle = ctypes.CDLL(os.fspath(path), mode=os.RTLD_NOW | os.RTLD_LOCAL)
        except OSError as cause:
            raise LoadRefused(f"the loader refused the library: {cause}") from cause
        # At exit everything stays: threads may run.
        weakref.finalize(self, _ctypes.dlclose, self._handle._handle).atexit = False

    def address(self, symbol: str) -> int | None:
        """Give the address of a symbol, None where the library has no such symbol."""
        try:
            return ctypes.addressof(ctypes.c_byte.in_dll(self._handle, symbol))
        except ValueError:
            return None

    def function(self, name: str) -> Any:
        """Give a function of the runtime, typed; it does not keep the library loaded.

        LoadRefused if the library lacks it.
        """
        result, arguments = _RUNTIME[name]
        address = self.address(name)
        if address is None:
            raise LoadRefused(f"the library lacks {name} of farbench's runtime")
        # By address, since a function that ctypes finds by name refers to itself and is freed late.
        return ctypes.CFUNCTYPE(result, *arguments)(address)

    def context(self, threads: int, cores: Sequence[int] = ()) -> Context:
        """Make a context with a pool of threads, pinned to `cores` if any; close it after use."""
        return Context(self, threads, cores)


class Library:
    """Loaded code that its manifest describes, and the runtime that its entries run on.

    `encoded` is the manifest as the library carries it.
    """

    def __init__(self, manifest: Manifest, encoded: bytes, code: Code, runtime: Runtime) -> None:
        self.encoded = encoded
        self.manifest = manifest
        self.runtime = runtime
        self._code = code
        self._entries: dict[str, EntryPoint] = {}

    @classmethod
    def load(cls, path: str | os.PathLike[str], machine: Machine | None = None) -> Library:
        """Load a library; LoadRefused says why it does not fit `machine` (None: not checked)."""
        where = os.fspath(path)
        try:
            manifest, encoded = _check(Path(where).read_bytes(), machine)
        except ManifestError as cause:
            raise LoadRefused(f"cannot load the library: {cause}") from cause
        except OSError as cause:
            if cause.errno == errno.EMFILE:
                text = "no file can be opened any more: code that ran here left too many open"
                raise QuotaExceeded(f"{text}; open another session") from cause
            raise LoadRefused(f"cannot read the library: {cause.strerror}") from cause
        runtime = Runtime(where)
        return cls(manifest, encoded, runtime, runtime)

    def entry(self, name: str) -> EntryPoint:
        """Find an entry; NotFound lists those that exist."""
        known = self._entries.get(name)
        if known is not None:
            return known
        try:
            entry = self.manifest.entry(name)
        except KeyError as cause:
            raise NotFound(str(cause.args[0])) from cause
        address = self._code.address(entry.symbol)
        if not address:
            raise LoadRefused(f"the library lacks {entry.symbol}, which its manifest names")
        found = self._entries[name] = EntryPoint(entry, address, self._code)
        return found

    def context(self, threads: int, cores: Sequence[int] = ()) -> Context:
        """Make a context with a pool of threads, pinned to `cores` if any; close it after use."""
        return self.runtime.context(threads, cores)

    def call(
        self, context: Context, name: str, addresses: Sequence[int], scalars: Sequence[int]
    ) -> int:
        """Call an entry once with arguments that were checked; gives the time in ns."""
        return Call(context, self.entry(name), addresses, scalars).run()


def _check(data: bytes, machine: Machine | None) -> tuple[Manifest, bytes]:
    """Read the manifest and hold file and manifest against the machine; gives both its forms."""
    encoded = read_encoded(data)
    manifest = decode(encoded)
    if machine is not None:
        check_loadable(read_elf(data), manifest, machine)
    return manifest, encoded


class Context:
    """Thread pool, workspace and error text, shared by the kernels of all libraries loaded.

    The pool ends with `close`, or when nothing refers to the context any more.
    """

    def __init__(self, runtime: Runtime, threads: int, cores: Sequence[int]) -> None:
        self.runtime = runtime
        self.threads = threads
        self._functions = {name: runtime.function(name) for name in _RUNTIME}
        listed = (_I32 * len(cores))(*cores)
        made = self._functions["fb_ctx_create"](threads, listed, len(cores))
        if not made:
            raise OutOfMemory(f"no memory for a pool of {threads} threads", {"last_call": "load"})
        self.pointer = int(made)
        # It holds the runtime until then, which is the code that the pool's threads run.
        self._end = weakref.finalize(self, _destroy, runtime, self.pointer, os.getpid())
        self._end.atexit = False
        self.time_sample = self._functions["fb_time_sample"]
        self.reporting = threading.Lock()

    def timer_probe(self) -> tuple[int, int]:
        """Give the timer's resolution and what a reading costs, in ns."""
        resolution, overhead = _I64(0), _I64(0)
        status = self._functions["fb_timer_probe"](ctypes.byref(resolution), ctypes.byref(overhead))
        if status:
            raise KernelError("no clock on this machine", {"status": int(status)})
        return resolution.value, overhead.value

    def fill(self, facts: ArrayFacts, seed: int, kind: str, low: float, high: float) -> None:
        """Fill an array from a seed; InvalidArgument where the range does not fit the dtype."""
        kind_code = check_kind(kind)
        code = list(DTYPES).index(facts.dtype)
        status = self._functions["fb_fill"](
            code, facts.address, prod(facts.shape), seed & (2**64 - 1), kind_code, low, high
        )
        if status:
            raise misfit(kind, facts.dtype, low, high)

    def bound(self) -> int:
        """Count the threads of the pool that are bound to a core."""
        return int(self._functions["fb_ctx_bound"](self.pointer))

    def facts(self) -> dict[str, int]:
        """Tell how parallel loops run here."""
        return {"threads": self.threads, "threads_pinned": self.bound()}

    def failure(self, status: int, name: str) -> KernelError:
        """Make the error of a kernel that returned `status`."""
        said = self._functions["fb_ctx_error"](self.pointer) or b""
        text = said.decode("utf-8", "replace")
        self._functions["fb_ctx_clear"](self.pointer)
        detail: dict[str, str | int | float | bool] = {
            "status": status,
            "last_call": f"call of {name}",
        }
        if status == _OUT_OF_MEMORY:
            return OutOfMemory(f"{name}: {text or 'out of memory'}", detail)
        return KernelError(f"{name} returned {status}: {text or 'no text'}", detail)

    def close(self) -> None:
        """End the pool."""
        self._end()
        self.pointer = 0

    def __enter__(self) -> Context:
        """Give itself, to be closed at the end of the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()


def _destroy(runtime: Runtime, pointer: int, made_in: int) -> None:
    # A forked process has a copy of the pool but none of its threads, for which its end would wait.
    if os.getpid() == made_in:
        runtime.function("fb_ctx_destroy")(pointer)


class Call:
    """An entry with its arguments laid out as the calling convention wants them."""

    def __init__(
        self,
        context: Context,
        point: EntryPoint,
        addresses: Sequence[int],
        scalars: Sequence[int],
    ) -> None:
        self.context = context
        self.name = point.entry.name
        self._point = point  # which keeps the code
        self._buffers = (_POINTER * len(addresses))(*addresses)
        self._scalars = (_I64 * len(scalars))(*scalars)
        self._total, self._start = _I64(0), _I64(0)
        self._time = context.time_sample
        self._arguments = (point.address, context.pointer, self._buffers, self._scalars)
        self._outputs = (ctypes.byref(self._total), ctypes.byref(self._start))

    def run(self) -> int:
        """Call it once; gives the time in ns. KernelError if it returns anything but 0."""
        return self.sample(1)

    def sample(self, k: int, flush_bytes: int = 0) -> int:
        """Call it k times, the caches flushed before each if asked; gives the time in ns."""
        if self._point.entry.debug:
            # One at a time: what it finds is written into the context, which other threads share.
            with self.context.reporting:
                return self._sample(k, flush_bytes)
        return self._sample(k, flush_bytes)

    def _sample(self, k: int, flush_bytes: int) -> int:
        status = self._time(*self._arguments, k, flush_bytes, *self._outputs)
        if status:
            raise self.context.failure(int(status), self.name)
        return int(self._total.value)
