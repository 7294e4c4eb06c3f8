"""Puts a timing result together from what a measurement gave, wherever it ran."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from farbench import arguments
from farbench.arguments import Number, Numpy
from farbench.nd import NDArray
from farbench.result import Sample, Spent, Timer, TimingResult, Value
from farbench_rpc.errors import RpcError
from farbench_rpc.manifest import Entry


def assemble(
    entry: Entry,
    device: str,
    given: Sequence[NDArray | Numpy | Number],
    cache: str,
    samples: Sequence[Sample],
    facts: Mapping[str, Value],
    flags: Sequence[str],
    spent: Spent,
) -> TimingResult:
    """Make the result; RpcError when a device said it was done and sent no sample."""
    if not samples:
        raise RpcError(f"{device} measured {entry.name} and gave no sample")
    return TimingResult(
        entry=entry.name,
        device=device,
        samples=tuple(samples),
        cache=cache,
        timer=read_timer(facts),
        inputs=arguments.describe(entry, given),
        spent=spent,
        flags=(*flags, *arguments.input_flags(entry, given)),
        facts=dict(facts),
    )


def read_timer(facts: Mapping[str, Value]) -> Timer:
    """Read what a device said of its clock; 0 where it said nothing."""
    return Timer(
        kind=str(facts.get("timer", "wall")),
        resolution_ns=int(facts.get("timer_resolution_ns", 0)),
        overhead_ns=float(facts.get("timer_overhead_ns", 0.0)),
    )
