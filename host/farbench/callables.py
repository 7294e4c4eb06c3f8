"""A loaded library as it is used: its entries are called and timed, wherever it runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from farbench.arguments import CallArgument
from farbench.counts import Counts, call_timeout, thread_count
from farbench.devices import Device, place
from farbench.errors import UsageError
from farbench.result import Sample, TimingResult
from farbench_rpc.manifest import Entry, Manifest

CALL_TIMEOUT_S = 60.0

# Options of TVM's time_evaluator that are not ours.
_INSTEAD = {
    "f_preproc": 'cache="cold" flushes the caches before each call',
    "limit_zero_time_iterations": "samples are made long enough for the timer by themselves",
    "cooldown_interval_ms": "sleep between calls of the evaluator",
    "repeats_to_cooldown": "sleep between calls of the evaluator",
    "cache_flush_bytes": 'cache="cold" flushes the caches before each call',
}

OnSample = Callable[[Sample], None] | None


class LoadedModule(ABC):
    """A library that can be called: `mod(a, b)`, `mod["name"](a, b)`, `mod.time_evaluator`."""

    def __init__(self, manifest: Manifest) -> None:
        if not manifest.entries:
            raise UsageError("the library has no entry to call")
        self.manifest = manifest

    @property
    def entry_name(self) -> str:
        """Name of the first entry, which `mod(...)` calls."""
        return self.manifest.entries[0].name

    @property
    def entry_func(self) -> Function:
        """The first entry."""
        return self[self.entry_name]

    @property
    def imported_modules(self) -> list[LoadedModule]:
        """Modules that this one brings along: a library of farbench stands alone."""
        return []

    @property
    def entries(self) -> tuple[str, ...]:
        """Names of all entries."""
        return tuple(entry.name for entry in self.manifest.entries)

    @property
    @abstractmethod
    def device(self) -> Device:
        """Where it runs."""

    @abstractmethod
    def call(
        self, entry: Entry, args: tuple[CallArgument, ...], timeout_s: float, threads: int
    ) -> None:
        """Run an entry once; outputs are among the arguments. 0 threads: as many as usual."""

    @abstractmethod
    def measure(
        self, entry: Entry, args: tuple[CallArgument, ...], counts: Counts, on_sample: OnSample
    ) -> TimingResult:
        """Time an entry; `on_sample` sees each sample as it comes."""

    def __call__(
        self,
        *args: CallArgument,
        timeout_s: float = CALL_TIMEOUT_S,
        threads: int | None = None,
    ) -> None:
        """Run the first entry once; numpy arrays, NDArrays and numbers are taken.

        `threads` run its parallel loops, as many as usual without.
        """
        entry = self.manifest.entries[0]
        self.call(entry, args, call_timeout(timeout_s), thread_count(threads))

    def __getitem__(self, name: str) -> Function:
        return Function(self, self.entry(name))

    def entry(self, name: str) -> Entry:
        """Find an entry; UsageError lists those that exist."""
        for entry in self.manifest.entries:
            if entry.name == name:
                return entry
        raise UsageError(f"no entry {name!r}; the library has: {', '.join(self.entries)}")

    def time_evaluator(
        self,
        name: str,
        device: Device | None = None,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: float = 0.0,
        *,
        ctx: Device | None = None,
        dev: Device | None = None,
        cache: str = "hot",
        exact: bool = False,
        budget_s: float = 60.0,
        threads: int | None = None,
        on_sample: OnSample = None,
        **tvm: object,
    ) -> Evaluator:
        """Prepare a timing of entry `name`; counts are checked here (`farbench.counts.Counts`).

        Options that TVM has beside these are refused, with what does the same here.
        """
        if tvm:
            raise _refused(next(iter(tvm)))
        device = place(device, ctx, dev)
        counts = Counts(number, repeat, min_repeat_ms, cache, exact, budget_s, threads)
        entry = self.entry(name)
        if device is not None and device != self.device:
            raise UsageError(f"the module runs on {self.device!r}, not on {device!r}")
        return Evaluator(self, entry, counts, on_sample)


def _refused(option: str) -> UsageError:
    """Say what to use instead of an option of TVM's time_evaluator."""
    advice = _INSTEAD.get(option)
    if advice is None:
        known = "number, repeat, min_repeat_ms, cache, exact, budget_s, threads, on_sample"
        return UsageError(f"time_evaluator has no option {option!r}; it has {known}")
    return UsageError(f"time_evaluator has no {option}: {advice}")


class Function:
    """One entry of a loaded library."""

    def __init__(self, module: LoadedModule, entry: Entry) -> None:
        self.module = module
        self.entry = entry

    def __call__(
        self,
        *args: CallArgument,
        timeout_s: float = CALL_TIMEOUT_S,
        threads: int | None = None,
    ) -> None:
        """Run it once; outputs are among the arguments. `threads` run its parallel loops."""
        self.module.call(self.entry, args, call_timeout(timeout_s), thread_count(threads))

    def __repr__(self) -> str:
        return f"<Function {self.entry.name} of {self.module!r}>"


class Evaluator:
    """A prepared timing: called with the arguments, it measures."""

    def __init__(
        self, module: LoadedModule, entry: Entry, counts: Counts, on_sample: OnSample
    ) -> None:
        self.module = module
        self.entry = entry
        self.counts = counts
        self._on_sample = on_sample

    def __call__(self, *args: CallArgument) -> TimingResult:
        """Time the entry with these arguments."""
        return self.module.measure(self.entry, args, self.counts, self._on_sample)
