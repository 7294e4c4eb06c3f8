"""Speed of the operator library's code on this machine, against hand-written libraries.

Each figure is a ratio of speeds, greater than 1 where farbench is faster: medians of samples that
were taken in turns with the rival's. The top level holds one thread, `threads_2` the same on two.
matmul against numpy's; conv2d against onnxruntime's after `make peers`, which also brings softmax,
layer norm and gelu; elementwise and reductions as a share of the bandwidth of copy and triad in C;
narrow dot products against our float32; builds in milliseconds.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping

from _common import (
    Peer,
    PeerMissing,
    emit,
    leave_out,
    note,
    parse_arguments,
    start_numpy,
    start_rival,
)
from _kernels import building, conv, dots, layers, matmul, stream, threads
from _kernels.pair import Pair, compare, ratios, summary
from farbench.stats import geometric_mean

Figures = dict[str, object]
BOTH_THREADS = ("matmul", "conv")


def matmul_figures(count: int) -> Figures:
    """Measure matmul against numpy; on one thread also convolutions against its matmul of 1024."""
    with start_numpy(count) as numpy:
        found = compare(matmul.pairs(numpy, count))
        figures: Figures = {"matmul_vs_numpy": summary(ratios(found))}
        if count == 1:
            figures["matmul_1024_vs_numpy"] = found["1024"].ratio
            figures["conv_geomean_vs_numpy_matmul"] = _conv_speed(numpy)
    return figures


def _conv_speed(numpy: Peer) -> float:
    """Compare the convolutions' rates of arithmetic with that of numpy's matmul of 1024."""
    size = 1024
    theirs = matmul.numpys(numpy, size, size, size)
    found = compare(
        Pair(name, conv.kernel(name, layer).seconds, theirs)
        for name, layer in conv.RESNET18.items()
    )
    work = {name: layer.flops / (2 * size**3) for name, layer in conv.RESNET18.items()}
    return geometric_mean([pair.ratio * work[name] for name, pair in found.items()])


def conv_figures(count: int) -> Figures:
    """Measure convolutions against onnxruntime."""
    with start_rival("onnxruntime", "ort_conv.py", threads=count) as rival:
        return {"conv_vs_onnxruntime": summary(ratios(compare(conv.pairs(rival, count))))}


def dot_figures(_: int) -> Figures:
    """Measure int8 and bfloat16 products against float32, where this machine has dot products."""
    found: Figures = {}
    for dtype, key, features in (
        ("int8", "int8_vs_fp32", dots.INT8),
        ("bfloat16", "bf16_vs_fp32", dots.BF16),
    ):
        if dots.has(features):
            found[key] = summary(ratios(compare(dots.pairs(dtype))))
        else:
            note(f"left out: {key}: this machine has none of {', '.join(features)}")
    return found


def layer_figures(count: int) -> Figures:
    """Measure softmax, layer norm and gelu against onnxruntime."""
    with start_rival("onnxruntime", "ort_ops.py", threads=count) as rival:
        return {"layers_vs_onnxruntime": summary(ratios(compare(layers.pairs(rival))))}


def thread_figures(_: int) -> Figures:
    """Measure two threads against one."""
    if len(os.sched_getaffinity(0)) < 2:
        note("left out: two_threads: this process has one core")
        return {}
    return {"two_threads": summary(ratios(compare(threads.pairs())))}


GROUPS: Mapping[str, Callable[[int], Figures]] = {
    "build": lambda _: {**building.figures()},
    "matmul": matmul_figures,
    "conv": conv_figures,
    "dots": dot_figures,
    "layers": layer_figures,
    "stream": lambda _: {"stream_share": summary(stream.shares())},
    "threads": thread_figures,
}


def measure(names: list[str], count: int) -> Figures:
    """Measure groups of figures on so many threads; what cannot be had here is left out, named."""
    found: Figures = {}
    for name in names:
        note(f"{name}, {count} thread(s)")
        try:
            found |= GROUPS[name](count)
        except PeerMissing as missing:
            leave_out(missing)
    return found


def table(found: Mapping[str, object], indent: str = "") -> None:
    """Print the figures for people, groups with their members beneath."""
    emit({f"{indent}{k}": v for k, v in found.items() if not isinstance(v, dict)}, as_json=False)
    for key, value in found.items():
        if isinstance(value, dict):
            print(f"{indent}{key}")
            table(value, indent + "  ")


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", nargs="+", choices=list(GROUPS), help="measure these groups")
    parser.add_argument("--threads", type=int, choices=(1, 2), help="on one or two threads alone")


def main() -> None:
    """Measure and print."""
    arguments = parse_arguments(__doc__ or "", _options)
    names = arguments.only or list(GROUPS)
    found: Figures = {}
    if arguments.threads != 2:
        found = measure(names, 1)
    both = [name for name in names if name in BOTH_THREADS]
    if both and arguments.threads != 1 and len(os.sched_getaffinity(0)) > 1:
        found["threads_2"] = measure(both, 2)
    if arguments.json:
        emit(found, as_json=True)
    else:
        table(found)


if __name__ == "__main__":
    main()
