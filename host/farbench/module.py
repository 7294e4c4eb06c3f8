"""A library on the host: built here or read from a file, called in this process, or exported."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from farbench import arguments, nd, resident
from farbench.arguments import CallArgument, Number, Numpy
from farbench.assembly import assemble
from farbench.callables import LoadedModule, OnSample
from farbench.counts import Counts, thread_count
from farbench.devices import Device, cpu
from farbench.errors import UsageError
from farbench.nd import HostArray, NDArray
from farbench.result import Sample, Spent, TimingResult
from farbench_rpc.manifest import Entry, Manifest, bind, read_manifest
from farbench_rpc.manifest import signature as signature_of

if TYPE_CHECKING:
    from farbench_compiler.artifact import Artifact
    from farbench_device_runtime.library import Call, Library

HERE = "this process"


@dataclass(frozen=True)
class _File:
    """A library as a file held it when it was read; the file may be another one by now."""

    path: Path
    data: bytes

    def copy_to(self, target: Path) -> None:
        """Write it beside its new place and move it there, readable by all."""
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        part = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(self.data)
            part.chmod(0o644)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)


class Module(LoadedModule):
    """A compiled library; calls run in the caller's process, without isolation or deadline."""

    def __init__(self, manifest: Manifest, origin: Artifact | _File) -> None:
        super().__init__(manifest)
        self._origin = origin
        self._library: Library | None = None

    @classmethod
    def of(cls, artifact: Artifact) -> Module:
        """Wrap what the compiler made."""
        return cls(artifact.manifest, artifact)

    @property
    def device(self) -> Device:
        """The memory of this process."""
        return cpu()

    @property
    def signature(self) -> str:
        """The first entry with its arguments, on one line."""
        return signature_of(self.manifest.entries[0])

    def export_library(
        self, path: str | Path, progress: Callable[[str], None] | None = None
    ) -> None:
        """Write the shared library, its objects beside it; a reader never sees half of it.

        `progress` hears of work that takes long the first time for a target.
        """
        target = _path(path)
        if not target.absolute().parent.is_dir():
            raise UsageError(f"no folder {target.parent} to write {target.name} into")
        if isinstance(self._origin, _File):
            self._origin.copy_to(target)
        else:
            self._origin.export_library(target, progress)

    def get_source(self, kind: str = "ll") -> str:
        """Give the code as text, `ll` (LLVM) or `asm`; a library read from a file has none."""
        if isinstance(self._origin, _File):
            raise UsageError(f"{self._origin.path} was read from a file; its source is not in it")
        return self._origin.get_source(kind)

    def save(self, file_name: str | Path, fmt: str = "") -> None:
        """Write one file as its ending or `fmt` says: `o`, `ll`, `s` or `asm`, `so`.

        An object has no entry for a loader: to load it later, write a library.
        """
        target = _path(file_name)
        kind = fmt or target.suffix.removeprefix(".")
        if kind == "so":
            self.export_library(target)
        elif kind in ("ll", "s", "asm"):
            target.write_text(self.get_source("ll" if kind == "ll" else "asm"))
        elif kind == "o" and not isinstance(self._origin, _File):
            first, *data = self._origin.objects
            if data:
                raise UsageError("it holds constants, each an object of its own: write a .so")
            target.write_bytes(first)
        else:
            raise UsageError(f"{target.name} cannot be written; give a name in .so, .o, .ll or .s")

    def load(self) -> Module:
        """Load the library into this process now, not at its first call; gives the module."""
        self._load()
        return self

    def call(
        self, entry: Entry, args: tuple[CallArgument, ...], timeout_s: float, threads: int
    ) -> None:
        """Run an entry once, here; `timeout_s` is not kept, since nothing can stop it."""
        placed = _Placed(entry, args)
        self._prepare(entry, placed, threads).run()
        placed.bring_back()

    def measure(
        self, entry: Entry, args: tuple[CallArgument, ...], counts: Counts, on_sample: OnSample
    ) -> TimingResult:
        """Time an entry in this process, by the same loop as on a device."""
        from farbench_device_runtime import measure

        placed = _Placed(entry, args)
        prepared = self._prepare(entry, placed, thread_count(counts.threads))
        samples: list[Sample] = []

        def take(message: Sequence[Any]) -> None:
            if message[0] == "samples":
                for total_ns in np.frombuffer(message[3], dtype="<i8").tolist():
                    samples.append(Sample(total_ns, message[2]))
                    if on_sample is not None:
                        on_sample(samples[-1])

        job = measure.Job(counts.stop_rule(), cache=counts.cache, timeout_s=counts.timeout_s)
        began = time.perf_counter()
        context = prepared.context
        facts, flags = measure.run(job, [prepared], context, take, measure.Place())
        facts.update(context.facts())
        took_s = time.perf_counter() - began
        placed.bring_back()
        spent = Spent(sum(sample.total_ns for sample in samples) / 1e9, took_s)
        flags = (*flags, "in_process")
        return assemble(entry, HERE, placed.given, counts.cache, samples, facts, flags, spent)

    def _prepare(self, entry: Entry, placed: _Placed, threads: int) -> Call:
        from farbench_device_runtime.library import Call

        library = self._load()
        # Asked each time: the pool may have been chosen anew.
        context = resident.pool(library, threads)
        return Call(context, library.entry(entry.name), placed.addresses, placed.scalars)

    def _load(self) -> Library:
        if self._library is None:
            origin = self._origin
            if isinstance(origin, _File):
                self._library = resident.load(origin.data)
            else:
                self._library = resident.load_built(origin)
        return self._library

    def __repr__(self) -> str:
        target = self.manifest.target
        return f"<Module {', '.join(self.entries)} for {target.arch} ({target.cpu})>"


class _Placed:
    """Arguments as addresses in this process, and what must be copied back."""

    def __init__(self, entry: Entry, args: Sequence[CallArgument]) -> None:
        self.given = arguments.normal(entry, args)
        self._copies: list[tuple[Numpy, Numpy]] = []
        ready = [self._ready(entry, index, arg) for index, arg in enumerate(self.given)]
        self.scalars = bind(entry, [arguments.facts(arg) for arg in ready]).scalars
        arguments.must_lie_apart(entry, self.given)
        arrays = [arg.data if isinstance(arg, HostArray) else arg for arg in ready]
        self._kept = [arg for arg in arrays if isinstance(arg, np.ndarray)]
        self.addresses = [arg.ctypes.data for arg in self._kept]

    def _ready(
        self, entry: Entry, index: int, arg: NDArray | Numpy | Number
    ) -> HostArray | Numpy | Number:
        if isinstance(arg, NDArray):
            if not isinstance(arg, HostArray):
                raise UsageError(f"{arg!r} lives on a session; copy it: fb.nd.array(x.numpy())")
            return arg
        if not isinstance(arg, np.ndarray) or arguments.is_placed(arg):
            return arg
        if arg.dtype.name not in nd.DTYPES:
            return arg  # which the check refuses, with what is expected
        copy = nd.aligned(arg.shape, arg.dtype.name)
        copy[...] = arg
        if index < len(entry.args) and arguments.is_writable(entry, index):
            if not arg.flags.writeable:
                copy.flags.writeable = False  # so that the check refuses it as it would the other
            self._copies.append((arg, copy))
        return copy

    def bring_back(self) -> None:
        """Copy outputs into arrays that could not be used in place."""
        for target, copy in self._copies:
            target[...] = copy


def _path(given: str | Path) -> Path:
    """Take a path; UsageError for what no file system takes for one."""
    if not isinstance(given, (str, os.PathLike)):
        raise UsageError(f"the path of a library is a text, not {given!r}")
    found = Path(given)
    try:
        os.stat(found)
    except (FileNotFoundError, NotADirectoryError):
        return found
    except (OSError, ValueError) as cause:  # too long, or with a NUL; a folder that is closed to us
        why = cause.strerror if isinstance(cause, OSError) else cause
        raise UsageError(f"{str(found)[:80]!r} is no path here: {why}") from cause
    return found


def load_module(path: str | Path) -> Module:
    """Read a library from a file; ManifestError says what is wrong with it."""
    found = _path(path)
    if not found.is_file():
        raise UsageError(f"no library {found}")
    return Module(read_manifest(found), _File(found, found.read_bytes()))


load = load_module
