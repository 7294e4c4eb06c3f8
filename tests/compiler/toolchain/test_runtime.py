"""The C runtime on every user land: pool, workspace, timing, fill; the numbers against numpy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from farbench import fill
from farbench_rpc.manifest import DTYPES
from tests.compiler.toolchain.conftest import Remote
from tests.compiler.toolchain.kernels import KERNELS, Kernel

Start = Callable[..., Remote]
LIMITS = [(0.0, 1.0), (-1.0, 1.0), (0.0, 2.0**-20), (-3.5, 100.0), (-(2.0**63), 2.0**63)]
LIMITS += [(0.0, 2.0**40), (-128.0, 128.0), (0.0, 256.0)]


def test_seeded_fill_is_numpys_bit_for_bit(start: Start, each_arch: str) -> None:
    remote = start(each_arch)
    compared = 0
    for code, (dtype, size) in enumerate(DTYPES.items()):
        for low, high in LIMITS:
            got = remote.fill(code, size, 1000, 2**63 + 11, 0, low, high)
            if got == 1002:
                assert "int" in dtype
                continue
            expected = fill.reference(2**63 + 11, "uniform", low, high, dtype, (1000,))
            assert bytes.fromhex(got) == expected.tobytes(), (dtype, low, high)
            compared += 1
        got = remote.fill(code, size, 3, 0, 1, 1.0, 0.0)
        assert bytes.fromhex(got) == np.ones(3, dtype).tobytes()
    assert compared > 40
    assert remote.close() == '"closed"'


@pytest.mark.parametrize(
    ("code", "kind", "low", "high"),
    [(3, 0, 0.0, 129.0), (3, 0, 5.0, 5.0), (3, 1, 0.5, 0.0), (7, 0, -1.0, 5.0), (1, 0, 1.0, 1.0),
     (1, 0, float("nan"), 1.0), (99, 0, 0.0, 1.0), (1, 2, 0.0, 1.0)],
)  # fmt: skip
def test_what_cannot_be_filled_is_an_error(
    start: Start, code: int, kind: int, low: float, high: float
) -> None:
    assert start("native").fill(code, 8, 4, 1, kind, low, high) == 1002


def inputs_of(kernel: Kernel) -> list[np.ndarray[Any, Any]]:
    """Make inputs with the edges of each dtype; results must fit where the result is an integer."""
    found = []
    for position, dtype in enumerate(kernel.inputs):
        bits = fill.bits(position + 7, 0, 4000)
        if dtype == "float16":
            array = np.arange(65536, dtype=np.uint16).view(np.float16)
        elif dtype.startswith("float"):
            kind = np.uint32 if dtype == "float32" else np.uint64
            array = bits.astype(kind).view(dtype)
            scale = 2.0 ** np.arange(-30, 30, dtype=np.float64).repeat(50)
            ties = (np.arange(3000) % 50 * 0.5 + 1) * scale / 1024 * (-1) ** np.arange(3000)
            array = np.concatenate([array, ties.astype(dtype)])
        else:
            small = bits >> (np.arange(4000, dtype=np.uint64) % np.uint64(64))
            edges = np.array(
                [1, 2, 3, 2**31 - 1, 2**31, 2**32 - 1, 2**53 + 1, 2**64 - 1], np.uint64
            )
            array = np.concatenate([small, edges, ~small]).astype(dtype)
        found.append(array)
    if kernel.output in ("int64", "uint64") and found[0].dtype.kind == "f":
        low, high = (-(2.0**63), 2.0**63) if kernel.output == "int64" else (0.0, 2.0**64)
        found = [found[0][np.isfinite(found[0]) & (found[0] >= low) & (found[0] < high)]]
    if len(found) == 2:
        # The least number by -1 overflows; for unsigned numbers this drops the greatest one.
        safe = (found[1] != 0) & (found[1] + np.ones(1, found[1].dtype) != 0)
        found = [array[safe] for array in found]
    return found


def expected_of(kernel: Kernel, inputs: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """Compute what a kernel must give: truncating division and conversion, numpy's rounding."""
    if len(inputs) == 1:
        if inputs[0].dtype.kind == "f" and "int" in kernel.output:
            return np.array([int(value) for value in inputs[0]], kernel.output)
        with np.errstate(all="ignore"):
            return inputs[0].astype(kernel.output)
    pairs = zip((int(a) for a in inputs[0]), (int(b) for b in inputs[1]), strict=True)
    quotients = [(a, b, abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)) for a, b in pairs]
    rest = "rem" in kernel.name
    return np.array([a - b * q if rest else q for a, b, q in quotients], kernel.output)


def test_helpers_give_numpys_results(start: Start, each_arch: str) -> None:
    remote = start(each_arch)
    for kernel in KERNELS:
        inputs = inputs_of(kernel)
        expected = expected_of(kernel, inputs)
        raw = [array.tobytes().hex() for array in inputs]
        answer = remote.call(kernel.name, raw, len(expected), expected.itemsize)
        got = np.frombuffer(bytes.fromhex(answer), kernel.output)
        if expected.dtype.kind == "f":
            nan = np.isnan(expected)
            assert (np.isnan(got) == nan).all(), kernel.name
            got, expected = got[~nan], expected[~nan]
        assert got.tobytes() == expected.tobytes(), kernel.name


def test_parallel_loops(start: Start, each_arch: str) -> None:
    remote = start(each_arch, 3)
    assert remote.parallel(0, 1000, -99, False)["seen"] == [1]
    assert remote.parallel(-5, 2, -99, False)["seen"] == [1]
    assert remote.parallel(4, 4, -99, False) == {"code": 0, "seen": [], "threads": 0}
    assert remote.parallel(0, 100, 50, False)["code"] == 7
    assert remote.parallel(0, 64, -99, True)["code"] == 0
    assert remote.parallel(0, 64, -100, False)["threads"] >= 2
    for _ in range(50):
        assert remote.parallel(0, 7, -99, False)["seen"] == [1]
    assert remote.close() == '"closed"'


def test_one_thread_stays_on_the_caller(start: Start) -> None:
    assert start("native", 1).parallel(0, 1000, -99, False) == {
        "code": 0,
        "seen": [1],
        "threads": 1,
    }


@pytest.mark.linux
def test_threads_are_bound_to_cores(start: Start) -> None:
    remote = start("native", 2, "0")
    assert remote.bound() == 2
    assert remote.parallel(0, 100, -99, False)["seen"] == [1]


def test_workspace_is_aligned_and_kept(start: Start, each_arch: str) -> None:
    remote = start(each_arch)
    found = remote.workspace([100, 100, 5000, 5000, 0, 8 << 20, 8 << 20])
    assert all(rest == 0 for rest, _ in found)
    addresses = [address for _, address in found]
    assert addresses[0] == addresses[1]
    assert addresses[2] == addresses[3]
    assert addresses[5] == addresses[6]


def test_workspace_that_cannot_be_is_an_error_with_text(start: Start, each_arch: str) -> None:
    remote = start(each_arch)
    assert remote.workspace([2**61]) == [[1, 0]]
    assert remote.error() == f"out of memory: a workspace of {2**61} bytes"
    assert remote.error() == ""


def test_memory(start: Start, each_arch: str) -> None:
    remote = start(each_arch)
    assert remote.alloc(100, 64) == 0
    assert remote.alloc(16 << 20, 4096) == 0
    assert remote.alloc(0, 1) == 0
    assert remote.alloc(-1, 64) == -1
    assert remote.alloc(64, 48) == -1
    assert remote.alloc(2**62, 64) == -1


def test_samples_and_clock(start: Start, each_arch: str) -> None:
    remote = start(each_arch)
    code, total, begin = remote.sample(1000, 0)
    assert code == 0
    assert total > 0
    later = remote.sample(1, 0)[2]
    assert later > begin
    assert remote.sample(2, 1 << 20)[0] == 0
    assert remote.sample(1, 2**61)[0] == 1001
    assert "to flush the caches with" in remote.error()
    code, resolution, overhead, end, chain, copy = remote.clock()
    assert code == 0
    assert resolution > 0
    assert overhead >= 0
    assert chain >= 0
    assert copy >= 0
    expected = 1
    for _ in range(1000):
        expected = (expected * 6364136223846793005 + 1442695040888963407) % 2**64
    assert end == expected


def test_rotation_takes_the_sets_in_turn(start: Start, each_arch: str) -> None:
    remote = start(each_arch)
    # exp(0) = 1, exp(1) = 2.718...: the first set is called twice.
    assert remote.rotate(3, 4) == [0, 2718, 1000, 1000]
    assert remote.rotate(0, 4)[0] == 1002
