"""Products of bytes and bfloat16: exact or within the rounding of float32, on every machine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farbench_compiler import ops
from farbench_compiler.build import build
from farbench_compiler.ir import dtypes
from farbench_compiler.ir.bfloat import BFLOAT16
from farbench_compiler.lower import lower
from farbench_compiler.ops.dots import dot_for, plain_dot
from farbench_compiler.ops.matmul_dots import dot_batch_matmul, dot_dense
from farbench_compiler.target import Target
from tests.compiler.llvm.jit import aligned, run
from tests.compiler.llvm.machine import BoardMachine

from .programs import Array, Place

NATIVE = Place("native", partial(run, target="native"))
DTYPES = ("int8", "uint8", "bfloat16")
ALDERLAKE = "llvm -mtriple=x86_64-linux-gnu -mcpu=alderlake"
ARM_DOTS = {
    "dotprod": "llvm -mtriple=aarch64-linux-gnu -mcpu=generic -mattr=+dotprod",
    "all": "llvm -mtriple=aarch64-linux-gnu -mcpu=generic -mattr=+dotprod,+i8mm,+bf16",
}


@pytest.fixture(scope="module", params=[pytest.param(n, marks=pytest.mark.qemu) for n in ARM_DOTS])
def arm(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    """An AArch64 board that has dot products."""
    target, board = ARM_DOTS[request.param], request.getfixturevalue("board_aarch64")
    remote = BoardMachine(board, target, tmp_path_factory.mktemp(f"dots-{request.param}"))
    yield Place(target, remote.run)
    remote.close()


def operands(dtype: str, m: int, n: int, k: int) -> tuple[Array, Array]:
    """Give operands of every value that a byte has, or of numbers around 0."""
    rng = np.random.default_rng(m + n + k)
    if dtype == "bfloat16":
        a, b = (rng.standard_normal(shape).astype(BFLOAT16) for shape in ((m, k), (k, n)))
        return a, b
    limits = np.iinfo(dtype)
    a = rng.integers(limits.min, limits.max, (m, k), endpoint=True, dtype=dtype)
    return a, rng.integers(-128, 127, (k, n), endpoint=True, dtype="int8")


def check(place: Place, dtype: str, m: int, n: int, k: int, *, parallel: bool = False) -> None:
    a, b = operands(dtype, m, n, k)
    schedule, args = ops.matmul(m, n, k, dtype, place.target, parallel=parallel)
    of = "float32" if dtype == "bfloat16" else "int32"
    got = aligned(np.full((m, n), 77, of))
    assert place.run(lower(schedule, args), [aligned(a), aligned(b), got]) == 0
    x, y = a.astype(np.float64), b.astype(np.float64)
    if of == "int32":
        np.testing.assert_array_equal(got, x @ y)
        return
    limit = (k + 2) * 2.0**-24 * (np.abs(x) @ np.abs(y)).max(initial=0.0)
    np.testing.assert_allclose(got, x @ y, rtol=0, atol=limit)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (1, 33, 5), (37, 53, 29), (40, 64, 20)])
def test_any_shape_on_any_machine(dtype: str, m: int, n: int, k: int, place: Place) -> None:
    check(place, dtype, m, n, k)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "n", "k"), [(3, 5, 7), (21, 40, 32)])
def test_values_by_the_instructions_of_arm(dtype: str, m: int, n: int, k: int, arm: Place) -> None:
    check(arm, dtype, m, n, k)


@given(
    st.integers(1, 70), st.integers(1, 100), st.integers(1, 70), st.sampled_from(DTYPES),
    st.booleans(),
)  # fmt: skip
@settings(max_examples=15, deadline=None)
def test_any_shape_here(m: int, n: int, k: int, dtype: str, parallel: bool) -> None:
    check(NATIVE, dtype, m, n, k, parallel=parallel)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_beyond_one_block_of_the_cache(dtype: str) -> None:
    check(NATIVE, dtype, 150, 17, 16000)


@given(
    st.integers(1, 3), st.integers(1, 30), st.integers(1, 70), st.integers(1, 40),
    st.sampled_from(DTYPES), st.booleans(), st.booleans(),
)  # fmt: skip
@settings(max_examples=15, deadline=None)
def test_batches_and_weights_by_rows(
    batch: int, m: int, n: int, k: int, dtype: str, transposed: bool, parallel: bool
) -> None:
    target, left = Target.parse("native"), dtypes.dtype(dtype)
    dot = dot_for(target, left) or plain_dot(target, left)
    a, b = operands(dtype, batch * m, batch * n, k)
    x = a.reshape(batch, m, k)
    y = b.T.reshape(batch, n, k) if transposed else b.T.reshape(batch, n, k).transpose(0, 2, 1)
    got = aligned(np.full((batch, m, n), 77, str(dot.sums)))
    program = dot_batch_matmul(
        batch, m, n, k, left, dot, target, transposed=transposed, parallel=parallel
    )
    if batch == 1 and transposed:
        program = dot_dense(m, n, k, left, dot, target, parallel=parallel)
    assert NATIVE.run(lower(*program), [aligned(x), aligned(y), got]) == 0
    whole = y.transpose(0, 2, 1) if transposed else y
    wanted = np.matmul(x.astype("f8"), whole.astype("f8"))
    if dtype != "bfloat16":
        np.testing.assert_array_equal(got, wanted)
    else:
        most = np.matmul(np.abs(x).astype("f8"), np.abs(whole).astype("f8")).max()
        np.testing.assert_allclose(got, wanted, rtol=0, atol=(k + 2) * 2.0**-24 * most)


@pytest.mark.parametrize(("m", "n", "k"), [(0, 5, 3), (5, 0, 3), (5, 4, 0)])
def test_sizes_of_0(m: int, n: int, k: int) -> None:
    check(NATIVE, "int8", m, n, k)


@pytest.mark.parametrize(
    ("target", "dtype", "instruction"),
    [
        ("llvm -mtriple=x86_64-linux-gnu -mcpu=icelake-server", "int8", "vpdpbusd"),
        (ALDERLAKE, "int8", "vpdpbusd"),
        ("llvm -mtriple=x86_64-linux-gnu -mcpu=znver4", "bfloat16", "vdpbf16ps"),
        ("graviton2", "int8", "sdot"),
        ("graviton2", "uint8", "sdot"),
        ("graviton3", "uint8", "usdot"),
        ("graviton3", "bfloat16", "bfdot"),
        ("rk3588", "int8", "sdot"),
    ],
)
def test_the_inner_loop_is_dot_products_on_registers(
    target: str, dtype: str, instruction: str
) -> None:
    schedule, args = ops.matmul(256, 256, 256, dtype, target)
    lines = build(schedule, args, target).get_source("asm").splitlines()
    found = [i for i, line in enumerate(lines) if instruction in line.split()[:2]]
    assert len(found) >= 12
    # Between one product and the next stand loads of operands, but no store: nothing is spilled.
    loop = "\n".join(lines[found[0] : found[11]])
    assert re.search(r"\s(str|stp|st1)\s|\(%rsp\)", loop) is None
