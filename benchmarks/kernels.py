"""Speed of the operator library's code on this machine, one thread, against hand-written libraries.

Each figure is a ratio of speeds, greater than 1 where farbench is faster; medians of samples that
were taken in turns with the peer's. matmul: both operands row-major arguments, numpy writes with
`out=`, packing is inside the timing. conv2d: ResNet-18's layers, NCHW, against numpy's matmul of
1024 and, after `make peers`, against onnxruntime (keys `ort_...`, `conv_vs_onnxruntime`).
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import farbench as fb
from _common import (
    Peer,
    PeerMissing,
    emit,
    in_turns,
    leave_out,
    median,
    note,
    parse_arguments,
    start_numpy,
    start_rival,
)
from farbench import workloads
from farbench.stats import geometric_mean
from farbench.workloads import RESNET18, Workload

SIZE = 1024
ROUNDS = 12
# Samples a round: the first ones after another's turn find cold caches, the median does not.
SAMPLES = 5
MATMUL_SAMPLES = 3
SEED = 1
BUSY = 0.1  # a long call is interrupted more often than a short one, so ratios no longer hold


@dataclass(frozen=True)
class Kernel:
    """A workload, built, checked and ready to be timed; seconds from expression to library."""

    workload: Workload
    build_s: float
    run: Callable[[int], list[float]]

    @classmethod
    def of(cls, workload: Workload) -> Kernel:
        """Build a workload for this machine; raise SystemExit where its result is wrong."""
        began = time.perf_counter()
        schedule, args = workload.program("native")
        module = fb.build(schedule, args, target="native")
        build_s = time.perf_counter() - began
        given = [fb.nd.array(spec.values(SEED + i)) for i, spec in enumerate(workload.inputs)]
        output = fb.nd.empty(workload.output.shape, workload.output.dtype)
        module(*given, output)
        checked = workload.check(output.numpy(), SEED)
        if not checked.valid:
            raise SystemExit(f"{workload.name} is wrong: {checked}")

        def run(samples: int) -> list[float]:
            timer = module.time_evaluator("main", number=1, repeat=samples, exact=True)
            return list(timer(*given, output).results)

        return cls(workload, build_s, run)

    def gflops(self, samples: Sequence[float]) -> float:
        """Turn seconds a call into GFLOP/s at the median."""
        return self.workload.flops / median(samples) / 1e9


def kernels() -> dict[str, Kernel]:
    """Build every kernel: `matmul`, then C1 to C12."""
    note("building")
    made = {"matmul": Kernel.of(workloads.matmul(SIZE, SIZE, SIZE))}
    for name, layer in RESNET18.items():
        made[name] = Kernel.of(workloads.conv2d(name, layer))
    return made


def peers(stack: contextlib.ExitStack) -> dict[str, Callable[[], Sequence[float]]]:
    """Start the peers that are there; their measures: `numpy`, and `ort_C1` to `ort_C12`."""
    numpy = stack.enter_context(start_numpy())
    found: dict[str, Callable[[], Sequence[float]]] = {
        "numpy": partial(numpy.seconds, measure="matmul", n=SIZE, samples=MATMUL_SAMPLES)
    }
    try:
        rival = stack.enter_context(start_rival("onnxruntime", "ort_conv.py"))
    except PeerMissing as missing:
        leave_out(missing)
        return found
    for name, layer in RESNET18.items():
        found[f"ort_{name}"] = _ask(rival, layer)
    return found


def _ask(rival: Peer, layer: workloads.Conv) -> Callable[[], Sequence[float]]:
    return partial(
        rival.seconds,
        measure="conv",
        height=layer.size,
        channels=layer.cin,
        filters=layer.cout,
        kernel=layer.kernel,
        stride=layer.stride,
        samples=SAMPLES,
    )


def measure(made: Mapping[str, Kernel]) -> dict[str, list[float]]:
    """Time every kernel and every peer in turns; seconds a call by name."""
    with contextlib.ExitStack() as stack:
        rivals = peers(stack)
        # A peer stands beside what it is compared with.
        every: dict[str, Callable[[], Sequence[float]]] = {}
        for name, kernel in made.items():
            every[name] = partial(kernel.run, MATMUL_SAMPLES if name == "matmul" else SAMPLES)
            rival = "numpy" if name == "matmul" else f"ort_{name}"
            if rival in rivals:
                every[rival] = rivals[rival]
        note("measuring")
        in_turns(every, 1)
        seconds = in_turns(every, ROUNDS)
    spread = _spread(seconds["numpy"])
    if spread > BUSY:
        note(f"this machine is busy: half of numpy's samples differ by {spread:.0%}; run it again")
    return seconds


def _spread(samples: Sequence[float]) -> float:
    """Return the distance between the quartiles as a share of the median."""
    low, middle, high = statistics.quantiles(samples, n=4)
    return (high - low) / middle


def figures(made: Mapping[str, Kernel], seconds: Mapping[str, list[float]]) -> dict[str, object]:
    """Turn seconds into GFLOP/s and ratios."""
    speed = {name: kernel.gflops(seconds[name]) for name, kernel in made.items()}
    numpy = made["matmul"].gflops(seconds["numpy"])
    layers: dict[str, dict[str, float]] = {}
    for name in RESNET18:
        layers[name] = {
            "us": median(seconds[name]) * 1e6,
            "gflops": speed[name],
            "vs_numpy_matmul": speed[name] / numpy,
            "build_ms": made[name].build_s * 1e3,
        }
        if f"ort_{name}" in seconds:
            theirs = made[name].gflops(seconds[f"ort_{name}"])
            layers[name] |= {"ort_gflops": theirs, "vs_onnxruntime": speed[name] / theirs}
    found: dict[str, object] = {
        "matmul_1024_vs_numpy": speed["matmul"] / numpy,
        "conv_geomean_vs_numpy_matmul": geometric_mean(
            [v["vs_numpy_matmul"] for v in layers.values()]
        ),
        "matmul_1024_gflops": speed["matmul"],
        "numpy_matmul_1024_gflops": numpy,
        "build_ms": median([kernel.build_s for kernel in made.values()]) * 1e3,
        "conv": layers,
    }
    ratios = {k: v["vs_onnxruntime"] for k, v in layers.items() if "vs_onnxruntime" in v}
    if ratios:
        least = min(ratios.values())
        shared = {"geomean": geometric_mean(list(ratios.values())), "least": least, "each": ratios}
        found["conv_vs_onnxruntime"] = shared
    return found


def table(found: Mapping[str, object]) -> None:
    """Print the figures for people: one line a key, then one line a layer."""
    emit({k: v for k, v in found.items() if not isinstance(v, dict)}, as_json=False)
    layers = found["conv"]
    assert isinstance(layers, dict)
    columns = list(next(iter(layers.values())))
    print("".join(f"{column:>17}" for column in ("layer", *columns)))
    for name, values in layers.items():
        print(f"{name:>17}" + "".join(f"{values[column]:>17.3g}" for column in columns))


def main() -> None:
    """Measure and print."""
    arguments = parse_arguments(__doc__ or "")
    made = kernels()
    found = figures(made, measure(made))
    if arguments.json:
        emit(found, as_json=True)
    else:
        table(found)


if __name__ == "__main__":
    main()
