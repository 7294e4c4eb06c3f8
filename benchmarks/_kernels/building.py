"""How long a build takes, from the expression to the loaded library."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import farbench as fb
from _common import median
from _kernels import conv
from farbench_compiler import ops

Program = Callable[[], tuple[Any, Sequence[Any]]]


def programs() -> dict[str, Program]:
    """Give the operators that are built: matmul 1024 and every convolution."""
    found: dict[str, Program] = {
        "matmul_1024": partial(ops.matmul, 1024, 1024, 1024, "float32", "native")
    }
    for name, layer in conv.LAYERS.items():
        found[name] = partial(
            ops.conv2d, 1, layer.size, layer.size, layer.cin, layer.cout, layer.kernel,
            layer.stride, layer.kernel // 2, "float32", "native", groups=layer.groups,
        )  # fmt: skip
    return found


def _build_s(program: Program, *, cache: bool) -> float:
    """Time one build, expression and loading included; seconds."""
    began = time.perf_counter()
    schedule, args = program()
    fb.build(schedule, args, target="native", cache=cache).load()
    return time.perf_counter() - began


def figures() -> dict[str, float]:
    """Measure builds from nothing and builds that the cache answers; milliseconds, medians."""
    every = programs()
    _build_s(next(iter(every.values())), cache=False)  # what a process does once
    fresh = {name: _build_s(program, cache=False) for name, program in every.items()}
    for program in every.values():
        _build_s(program, cache=True)
    cached = [_build_s(program, cache=True) for program in every.values()]
    return {
        "build_ms": median(list(fresh.values())) * 1e3,
        "build_most_ms": max(fresh.values()) * 1e3,
        "build_cached_ms": median(cached) * 1e3,
    }
