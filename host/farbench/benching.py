"""Time a built library on devices: inputs from one seed, so that every device gets the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from farbench import nd
from farbench.callables import OnSample
from farbench.counts import Counts
from farbench.errors import UsageError
from farbench.result import TimingResult
from farbench.session import Session
from farbench_rpc.manifest import Entry, Manifest, ScalarArg, TensorArg, evaluate, read_manifest

Number = int | float | bool
MAX_BYTES = 1 << 40


@dataclass(frozen=True)
class Input:
    """One argument, laid out: an array of a shape, or a number (`value`)."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    writable: bool
    value: Number | None = None


@dataclass(frozen=True)
class BenchPlan:
    """What is timed, with which inputs and counts; checked before anything is connected."""

    path: Path
    manifest: Manifest
    entry: Entry
    inputs: tuple[Input, ...]
    counts: Counts
    seed: int

    @property
    def requirement(self) -> str:
        """The least that a device must be to run the library."""
        return f"arch={self.manifest.target.arch}"


@dataclass(frozen=True)
class Sizes:
    """Sizes and numbers that the user gave by name, for symbols and scalar arguments."""

    values: Mapping[str, Number] = field(default_factory=dict)

    @classmethod
    def parse(cls, words: Sequence[str]) -> Sizes:
        """Read words like `n=1024` or `n=1024,alpha=0.5`; UsageError quotes one that is not."""
        values: dict[str, Number] = {}
        for word in (part for text in words for part in text.split(",")):
            name, equals, number = word.strip().partition("=")
            if not equals or not name:
                raise UsageError(f"{word!r} is not NAME=NUMBER, such as n=1048576")
            values[name] = _number(word, number)
        return cls(values)


def plan(
    path: Path, sizes: Sizes, counts: Counts, seed: int = 0, entry_name: str | None = None
) -> BenchPlan:
    """Lay a timing out; UsageError names a missing file, entry or size."""
    if not path.is_file():
        raise UsageError(f"no file {path}; `farbench build` makes one")
    manifest = read_manifest(path)
    names = [entry.name for entry in manifest.entries]
    name = names[0] if entry_name is None and names else entry_name
    if name not in names:
        raise UsageError(f"{path} has no entry {name!r}; it has: {', '.join(names) or 'none'}")
    entry = manifest.entry(str(name))
    return BenchPlan(path, manifest, entry, _layout(entry, sizes), counts, seed)


def time_on(session: Session, planned: BenchPlan, on_sample: OnSample = None) -> TimingResult:
    """Upload, fill the inputs on the device, and time; the session stays open."""
    session.upload(planned.path)
    module = session.load_module(planned.path.name)
    arguments = [_make(session, planned, index) for index in range(len(planned.inputs))]
    counts = planned.counts
    evaluator = module.time_evaluator(
        planned.entry.name,
        session.cpu(),
        counts.number,
        counts.repeat,
        counts.min_repeat_ms,
        cache=counts.cache,
        exact=counts.exact,
        threads=counts.threads,
        budget_s=counts.budget_s,
        on_sample=on_sample,
    )
    return evaluator(*arguments)


def _make(session: Session, planned: BenchPlan, index: int) -> nd.NDArray | Number:
    given = planned.inputs[index]
    if given.value is not None:
        return given.value
    # Outputs are filled too: what a kernel accumulates into must not be left to chance.
    return nd.random(given.shape, given.dtype, session.cpu(), planned.seed + index)


def _layout(entry: Entry, sizes: Sizes) -> tuple[Input, ...]:
    known = dict(sizes.values)
    scalars = {arg.name for arg in entry.args if isinstance(arg, ScalarArg)}
    wanted = scalars | set(entry.symbols)
    unknown = sorted(set(known) - wanted)
    if unknown:
        takes = f"it takes {', '.join(sorted(wanted))}" if wanted else "its sizes are fixed"
        raise UsageError(f"{entry.name} has no size {unknown[0]!r}; {takes}")
    missing = sorted(wanted - set(known))
    if missing:
        example = " ".join(f"--shape {name}=1024" for name in missing)
        raise UsageError(f"{entry.name} needs sizes: give {example}")
    return tuple(_input(entry, arg, known) for arg in entry.args)


def _input(entry: Entry, arg: TensorArg | ScalarArg, known: Mapping[str, Number]) -> Input:
    if isinstance(arg, ScalarArg):
        return Input(arg.name, arg.dtype, (), False, known[arg.name])
    symbols: dict[str, int] = {}
    for name in entry.symbols:
        size = known[name]
        if not isinstance(size, int) or size < 0:
            raise UsageError(f"size {name} of {entry.name} must be a whole number, not {size!r}")
        symbols[name] = size
    shape = tuple(dim if isinstance(dim, int) else evaluate(dim, symbols) for dim in arg.shape)
    count = 1
    for extent in shape:
        count *= extent
    if count > MAX_BYTES:
        raise UsageError(f"{arg.name} of {entry.name} would have {count:,} elements")
    return Input(arg.name, arg.dtype, shape, arg.writable)


def _number(word: str, text: str) -> Number:
    parse: tuple[Callable[[str], Number], ...] = (lambda t: int(t, 0), float)
    for read in parse:
        try:
            return read(text.strip())
        except ValueError:
            continue
    raise UsageError(f"{word!r}: {text!r} is not a number")
