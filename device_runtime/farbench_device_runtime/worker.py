"""The worker: a forked child that loads libraries and runs code of users.

It obeys its server over a pipe, one request after the other, each answered in order; array data
passes through the staging window. Requests and answers:

    start {settings} + fd      ok held
    load handle path           ok                      alloc handle dtype shape   ok
    free handles               ok                      fill handle seed kind low high   ok
    put handle offset n slot   ok                      get handle offset n slot   ok
    call module entry args n   ok elapsed_ns           measure {fields}   samples.. phase.. ok ..
    any of them                error code message detail

A request that kills this process is named by the server, which knows what it had not answered.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from farbench_device_runtime import facts, isolation, measure
from farbench_device_runtime.arrays import Arrays
from farbench_device_runtime.fill import fill
from farbench_device_runtime.library import Call, Context, Library
from farbench_device_runtime.output import enter_directory
from farbench_device_runtime.pipe import Pipe, PipeClosed
from farbench_device_runtime.pools import Pools
from farbench_device_runtime.settings import usable_cores
from farbench_device_runtime.staging import Window
from farbench_rpc.errors import InvalidArgument, LoadRefused, NotFound, RpcError
from farbench_rpc.manifest import ArgumentError, ArrayFacts, Machine, TensorArg, bind, from_wire

FAILED = 120
"""Exit status of a worker that could not even begin."""
MAX_MANIFEST = 100 * 1024
"""Bytes of a manifest that the answer to a load can carry."""


@dataclass(frozen=True)
class Start:
    """What a worker is told when it is taken; bytes and seconds."""

    folder: str
    slots: int
    slot_bytes: int
    first_handle: int
    lost: str
    machine: tuple[str, tuple[str, ...], tuple[int, ...]]
    memory_bytes: int = 0
    file_bytes: int = 0
    cpu_s: int = 0
    cores: tuple[int, ...] = ()
    emulated: bool = False


@dataclass
class _Module:
    library: Library
    calls: dict[tuple[str, int, tuple[Any, ...]], Call] = field(default_factory=dict)


class Worker:
    """The state of one worker: its modules, arrays and pools."""

    def __init__(self, pipe: Pipe, start: Start, window: Window) -> None:
        self.pipe = pipe
        self.start = start
        self.window = window
        self.arrays = Arrays(start.memory_bytes, start.first_handle, start.lost)
        self.modules: dict[int, _Module] = {}
        self.pools: Pools | None = None
        self.machine = Machine(*start.machine)
        self._answers: dict[str, Callable[..., list[Any]]] = {
            "call": self.call,
            "put": self.put,
            "get": self.get,
            "load": self.load,
            "alloc": self.alloc,
            "free": self.free,
            "fill": self.fill,
            "measure": self.measure,
        }

    def serve(self) -> None:
        """Answer requests until the server closes the pipe."""
        receive, send = self.pipe.receive, self.pipe.send
        while True:
            message = receive()
            if message is not None:
                send(self._answer(message))

    def _answer(self, message: list[Any]) -> list[Any]:
        try:
            return self._answers[message[0]](*message[1:])
        except ArgumentError as refused:
            return ["error", InvalidArgument.code, str(refused), {}]
        except RpcError as error:
            return ["error", error.code, error.message, error.detail]
        except MemoryError:
            return ["error", "oom", f"no memory left in {message[0]}", {"last_call": message[0]}]
        except Exception as error:  # Whatever it is, the server must hear of it: no request hangs.
            text = f"worker failed in {message[0]}: {type(error).__name__}: {error}"
            return ["error", RpcError.code, text.splitlines()[0], {}]

    def load(self, handle: int, path: str) -> list[Any]:
        """Load a library after checking that it fits; the first one makes the pool."""
        library = Library.load(path, self.machine)
        size = len(library.encoded)
        if size > MAX_MANIFEST:
            raise LoadRefused(f"the manifest has {size} bytes, at most {MAX_MANIFEST}")
        if self.pools is None:
            cores = self.start.cores or usable_cores()
            self.pools = Pools(library.runtime, len(cores), self.start.cores)
        self.modules[handle] = _Module(library)
        return ["ok", library.encoded]

    def alloc(self, handle: int, dtype: str, shape: list[int]) -> list[Any]:
        """Make an array."""
        self.arrays.make(handle, dtype, tuple(shape))
        return ["ok"]

    def free(self, handles: list[int]) -> list[Any]:
        """Drop arrays and every prepared call that uses them."""
        for handle in handles:
            self.arrays.free(handle)
        for module in self.modules.values():
            module.calls.clear()
        return ["ok"]

    def put(self, handle: int, offset: int, nbytes: int, slot: int) -> list[Any]:
        """Copy bytes from a slot of the window into an array."""
        self.arrays.part(handle, offset, nbytes)[:] = self.window.slot(slot, nbytes)
        return ["ok"]

    def get(self, handle: int, offset: int, nbytes: int, slot: int) -> list[Any]:
        """Copy bytes of an array into a slot of the window."""
        self.window.slot(slot, nbytes)[:] = self.arrays.part(handle, offset, nbytes)
        return ["ok"]

    def fill(self, handle: int, seed: int, kind: str, low: float, high: float) -> list[Any]:
        """Fill an array from a seed, by the runtime of the first library loaded if there is one."""
        array = self.arrays.find(handle)
        if self.pools is not None:
            self.pools.usual.fill(array.facts, seed, kind, low, high)
        else:
            fill(array.view, array.facts.dtype, seed, kind, low, high)
        return ["ok"]

    def call(self, module: int, entry: str, args: list[Any], threads: int = 0) -> list[Any]:
        """Call an entry once; the answer holds how long it ran."""
        return ["ok", self.prepared(module, entry, args, threads).run()]

    def prepared(self, module: int, entry: str, args: list[Any], threads: int = 0) -> Call:
        """Check a call against the manifest and lay out its arguments; kept for the next time."""
        holder = self._module(module)
        # True, 1 and 1.0 are equal to a dict, but not to a manifest.
        key = (entry, threads, tuple((type(arg), arg) for arg in args))
        known = holder.calls.get(key)
        if known is not None:
            return known
        found = holder.library.entry(entry)
        actual = [
            self.arrays.find(arg).facts
            if isinstance(formal, TensorArg)
            else from_wire(arg, formal.dtype)
            for arg, formal in zip(args, found.arguments(len(args)), strict=True)
        ]
        bound = bind(found.entry, actual)
        addresses = [one.address for one in actual if isinstance(one, ArrayFacts)]
        if threads:
            self._forget_pools_but(threads)
        made = Call(self._context(threads), found, addresses, bound.scalars)
        if len(holder.calls) >= 256:
            holder.calls.clear()
        holder.calls[key] = made
        return made

    def measure(self, fields: dict[str, Any]) -> list[Any]:
        """Time arms; samples go out as they are taken."""
        job = measure.Job.from_fields(fields)
        threads = fields["threads"]
        calls = [self.prepared(m, entry, args, threads) for m, entry, args in fields["arms"]]
        context = self._context(threads)
        place = measure.Place(self.start.cores, facts.flush_bytes(self.start.emulated))
        known, flags = measure.run(job, calls, context, self.pipe.send, place)
        known.update(context.facts())
        if self.start.emulated:
            flags = (*flags, "emulated")
        return ["ok", known, list(flags)]

    def _context(self, threads: int) -> Context:
        if self.pools is None:
            raise InvalidArgument("no library is loaded in this worker")
        return self.pools.of(threads)

    def _forget_pools_but(self, threads: int) -> None:
        """Drop calls on other pools than the usual one, which would keep those pools."""
        for module in self.modules.values():
            module.calls = {k: call for k, call in module.calls.items() if k[1] in (0, threads)}

    def _module(self, handle: int) -> _Module:
        found = self.modules.get(handle)
        if found is not None:
            return found
        if handle < self.start.first_handle and self.start.lost:
            raise NotFound(
                f"module {handle} was lost when its worker ended ({self.start.lost}); load it again"
            )
        raise NotFound(f"no module {handle} in this session")


def run(pipe: Pipe, name: str, parent: int) -> int:
    """Be a worker from the fork to the end of the pipe; gives the exit status."""
    held = isolation.apply_early(name, parent)
    try:
        got = pipe.receive_fds()
        if got is None or got[0][0] != "start" or len(got[1]) != 1:
            return FAILED
        start = Start(**_tuples(got[0][1]))
        window = Window(got[1][0], start.slots, start.slot_bytes)
        enter_directory(start.folder)
        limits = isolation.Limits(
            start.memory_bytes, start.file_bytes, start.cpu_s, tuple(start.cores)
        )
        held += isolation.apply_limits(limits)
        pipe.send(["ok", list(held)])
        Worker(pipe, start, window).serve()
    except PipeClosed:
        return 0
    except (OSError, TypeError, ValueError) as error:
        sys.stderr.write(f"farbench worker {os.getpid()}: {type(error).__name__}: {error}\n")
        return FAILED
    return 0


def _tuples(value: Any) -> Any:
    """Turn the lists of a message into tuples."""
    if isinstance(value, list):
        return tuple(_tuples(one) for one in value)
    if isinstance(value, dict):
        return {key: _tuples(one) for key, one in value.items()}
    return value
