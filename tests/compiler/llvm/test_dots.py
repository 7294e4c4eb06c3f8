"""Dot products of neighbours: the target's own instruction, and the same values without it."""

from __future__ import annotations

import numpy as np
import pytest

from farbench_compiler import passes
from farbench_compiler.errors import VerifyError
from farbench_compiler.ir import dots, interp
from farbench_compiler.ir.bfloat import BFLOAT16
from farbench_compiler.ir.dtypes import dtype
from farbench_compiler.ir.expr import Buffer, Call, Expr, IntImm, Load, Ramp
from farbench_compiler.ir.stmt import LoopFunction, Store
from farbench_compiler.ir.verify import verify
from farbench_compiler.llvm import emit
from farbench_compiler.target import Target

from .jit import Array, Machine, aligned


def vector(buffer: Buffer, lanes: int) -> Load:
    """Read the first lanes of a buffer."""
    index: Expr = IntImm(0)
    if lanes > 1:
        index = Ramp(IntImm(0), IntImm(1), lanes, index.dtype.with_lanes(lanes))
    return Load(buffer, (index,), buffer.dtype.with_lanes(lanes))


def program(name: str, left: str, right: str, lanes: int, shared: bool) -> LoopFunction:
    """Write sums = dot(sums, a, b) once, over whole buffers."""
    dot = dots.DOTS[name]
    many, few = lanes * dot.width, dot.width if shared else lanes * dot.width
    sums = Buffer("s", dot.sums, (IntImm(lanes),), "arg")
    a = Buffer("a", dtype(left), (IntImm(few),), "arg", writable=False)
    b = Buffer("b", dtype(right), (IntImm(many),), "arg", writable=False)
    value = Call(
        name, (vector(sums, lanes), vector(a, few), vector(b, many)), dot.sums.with_lanes(lanes)
    )
    return LoopFunction("dot", (sums, a, b), (), Store(sums, vector(sums, lanes).indices, value))


def numbers(of: str, count: int, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    if of == "bfloat16":
        return aligned(rng.standard_normal(count).astype(BFLOAT16))
    limits = np.iinfo(of)
    return aligned(rng.integers(limits.min, limits.max, count, endpoint=True, dtype=of))


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16])
@pytest.mark.parametrize(
    ("left", "right"),
    [("uint8", "int8"), ("int8", "uint8"), ("int8", "int8"), ("uint8", "uint8")],
)
def test_int8_is_exact(machine: Machine, left: str, right: str, lanes: int, shared: bool) -> None:
    fn = program("dot4", left, right, lanes, shared)
    a, b = numbers(left, 4 if shared else 4 * lanes, 1), numbers(right, 4 * lanes, 2)
    sums = aligned(np.arange(lanes).astype(np.int32))
    rows = np.broadcast_to(a.astype(np.int64).reshape(-1, 4), (lanes, 4))
    wanted = sums + (rows * b.astype(np.int64).reshape(lanes, 4)).sum(axis=1)
    expected = sums.copy()
    interp.run(fn, [expected, a, b])
    assert machine.run(fn, [sums, a, b]) == 0
    np.testing.assert_array_equal(sums, wanted)
    np.testing.assert_array_equal(expected, wanted)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16])
def test_bfloat_is_within_the_rounding_of_float32(
    machine: Machine, lanes: int, shared: bool
) -> None:
    fn = program("dot2", "bfloat16", "bfloat16", lanes, shared)
    a, b = numbers("bfloat16", 2 if shared else 2 * lanes, 1), numbers("bfloat16", 2 * lanes, 2)
    sums = aligned(np.linspace(-1, 1, lanes).astype(np.float32))
    rows = np.broadcast_to(a.astype(np.float64).reshape(-1, 2), (lanes, 2))
    products = rows * b.astype(np.float64).reshape(lanes, 2)
    wanted = sums + products.sum(axis=1)
    limit = 4 * 2.0**-24 * (np.abs(sums) + np.abs(products).sum(axis=1)).max()
    expected = sums.copy()
    interp.run(fn, [expected, a, b])
    assert machine.run(fn, [sums, a, b]) == 0
    np.testing.assert_allclose(sums, wanted, rtol=0, atol=limit)
    np.testing.assert_allclose(expected, wanted, rtol=0, atol=limit)


@pytest.mark.parametrize(
    ("target", "name", "left", "lanes", "instruction"),
    [
        ("llvm -mtriple=x86_64-linux-gnu -mcpu=icelake-server", "dot4", "uint8", 16, "vpdpbusd"),
        ("llvm -mtriple=x86_64-linux-gnu -mcpu=alderlake", "dot4", "uint8", 8, "vpdpbusd"),
        ("llvm -mtriple=x86_64-linux-gnu -mcpu=znver4", "dot2", "bfloat16", 16, "vdpbf16ps"),
        ("graviton2", "dot4", "int8", 4, "sdot"),
        ("graviton2", "dot4", "uint8", 4, "udot"),
        ("graviton3", "dot4", "mixed", 4, "usdot"),
        ("graviton3", "dot2", "bfloat16", 4, "bfdot"),
    ],
)
@pytest.mark.parametrize("shared", [False, True])
def test_the_instruction_of_the_target(
    target: str, name: str, left: str, lanes: int, instruction: str, shared: bool
) -> None:
    right = left if left == "bfloat16" else "int8"
    if "graviton" in target and left == "uint8":
        right = "uint8"
    fn = program(name, "uint8" if left == "mixed" else left, right, lanes, shared)
    chosen = Target.parse(target)
    assembly = emit([passes.run(fn, chosen)], chosen).assembly
    assert sum(instruction in line.split()[:2] for line in assembly.splitlines()) == 1


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("of", ["int8", "bfloat16", "float32"])
def test_interleave(machine: Machine, of: str, count: int) -> None:
    lanes = 8
    rows = [
        Buffer(f"r{i}", dtype(of), (IntImm(lanes),), "arg", writable=False) for i in range(count)
    ]
    out = Buffer("o", dtype(of), (IntImm(lanes * count),), "arg")
    value = dots.interleave(*(vector(row, lanes) for row in rows))
    fn = LoopFunction(
        "zip", (*rows, out), (), Store(out, vector(out, lanes * count).indices, value)
    )
    kind = BFLOAT16 if of == "bfloat16" else np.dtype(of)
    given = [aligned(np.arange(i, i + lanes).astype(kind)) for i in range(count)]
    got = aligned(np.zeros(lanes * count, given[0].dtype))
    assert machine.run(fn, [*given, got]) == 0
    np.testing.assert_array_equal(got, np.stack(given, axis=-1).reshape(-1))


def test_operands_that_do_not_fit_are_refused() -> None:
    fn = program("dot4", "int8", "int8", 4, shared=True)
    sums, a, b = fn.buffers
    with pytest.raises(TypeError, match=r"dot4 of int16"):
        dots.dot4(vector(sums, 4), vector(Buffer("c", dtype("int16"), a.shape), 4), vector(b, 16))
    bad = Call("dot4", (vector(sums, 4), vector(a, 4), vector(a, 4)), dtype("int32x4"))
    body = Store(sums, vector(sums, 4).indices, bad)
    with pytest.raises(VerifyError, match=r"needs 16 lanes"):
        verify(LoopFunction("bad", fn.args, (), body), "linear")
