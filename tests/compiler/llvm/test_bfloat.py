"""bfloat16 in generated code: computed in float32, rounded once, on machines without the type."""

from __future__ import annotations

import numpy as np
import pytest

from farbench_compiler.ir import interp
from farbench_compiler.ir.bfloat import BFLOAT16, to_bfloat16
from farbench_compiler.ir.dtypes import dtype
from farbench_compiler.ir.expr import Buffer, Call, FloatImm, IntImm, Var
from farbench_compiler.ir.stmt import For, LoopFunction, Store

from .jit import Array, Machine, aligned
from .test_values import (
    COMPARISONS,
    FLOATS,
    INTS,
    SIZE,
    cast_as_promised,
    make_binary,
    make_call,
    make_cast,
    make_compare,
    over_pairs,
    samples,
)

OPS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "min": np.minimum,
    "max": np.maximum, "truncmod": np.fmod, "floormod": np.mod,
}  # fmt: skip


def values(seed: int) -> Array:
    """Give bfloat16 numbers: special ones, ties of the rounding's, and numbers of every size."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 1 << 16, SIZE).astype(np.uint16)
    bits[(bits & 0x7F80) < 0x1000] |= 0x1000  # a machine may flush subnormals on the way
    bits[::2] = rng.standard_normal(len(bits[::2])).astype(BFLOAT16).view(np.uint16)
    bits[:6] = [0x0000, 0x8000, 0x7F80, 0xFF80, 0x7FC0, 0x3F80]
    return aligned(bits.view(BFLOAT16))


def equal(got: Array, wanted: Array, machine: Machine) -> None:
    """Compare in float32, which holds every bfloat16; subnormals count as 0 where they are lost."""
    x, y = got.astype(np.float32), wanted.astype(np.float32)
    if not machine.subnormals:
        tiny = np.finfo(np.float32).tiny
        x, y = (np.where(np.abs(v) < tiny, np.float32(0), v) for v in (x, y))
    np.testing.assert_array_equal(x, y)


def test_arithmetic_is_that_of_float32_rounded(machine: Machine) -> None:
    made = [make_binary(op) for op in OPS]
    a, b = values(1), values(2)
    outs = [aligned(np.zeros(SIZE, BFLOAT16)) for _ in made]
    fn = over_pairs("arith", made, "bfloat16", ["bfloat16"] * len(made))
    assert machine.run(fn, [a, b, *outs]) == 0
    with np.errstate(all="ignore"):
        for numpys, got in zip(OPS.values(), outs, strict=True):
            wanted = numpys(a.astype(np.float32), b.astype(np.float32)).astype(BFLOAT16)
            equal(got, wanted, machine)
    references = [np.zeros(SIZE, BFLOAT16) for _ in made]
    with np.errstate(all="ignore"):
        interp.run(fn, [a, b, *references])
    for got, wanted in zip(outs[:7], references, strict=False):
        equal(got, wanted, machine)


def test_comparisons(machine: Machine) -> None:
    made = [make_compare(op) for op in COMPARISONS]
    a, b = values(3), values(3)
    b[SIZE // 2 :] = values(4)[SIZE // 2 :]
    outs = [aligned(np.zeros(SIZE, bool)) for _ in made]
    assert machine.run(over_pairs("cmp", made, "bfloat16", ["bool"] * 6), [a, b, *outs]) == 0
    for numpys, got in zip(COMPARISONS.values(), outs, strict=True):
        np.testing.assert_array_equal(got, numpys(a.astype(np.float32), b.astype(np.float32)))


def test_casts_to_every_dtype(machine: Machine) -> None:
    to = (*FLOATS, *INTS, "bool")
    a = values(5)
    outs = [aligned(np.zeros(SIZE, t)) for t in to]
    fn = over_pairs("casts", [make_cast(t) for t in to], "bfloat16", list(to))
    assert machine.run(fn, [a, a, *outs]) == 0
    with np.errstate(all="ignore"):
        for t, got in zip(to, outs, strict=True):
            np.testing.assert_array_equal(got, cast_as_promised(a.astype(np.float32), t), t)


@pytest.mark.parametrize("of", [*FLOATS, *INTS, "bool"])
def test_casts_from_every_dtype_round_once(of: str, machine: Machine) -> None:
    a = samples(of, 6)
    if of == "float64":  # beside the middle by less than float32 can tell
        a[100:104] = [1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-8, 1 + 3 * 2.0**-8, -1e300]
    out = aligned(np.zeros(SIZE, BFLOAT16))
    assert (
        machine.run(over_pairs("from", [make_cast("bfloat16")], of, ["bfloat16"]), [a, a, out]) == 0
    )
    wide = a if a.dtype == np.float64 else a.astype(np.float32)
    equal(out, to_bfloat16(wide), machine)
    if of == "float64":
        assert out[100:104].astype(np.float32).tolist() == [1.0078125, 1.0, 1.015625, -np.inf]


def test_intrinsics_are_computed_in_float32(machine: Machine) -> None:
    names = {"sqrt": np.sqrt, "floor": np.floor, "abs": np.abs, "round": np.rint}
    a = values(7)
    outs = [aligned(np.zeros(SIZE, BFLOAT16)) for _ in names] + [aligned(np.zeros(SIZE, bool))]
    made = [make_call(name) for name in names] + [make_call("isnan", "bool")]
    fn = over_pairs("calls", made, "bfloat16", ["bfloat16"] * len(names) + ["bool"])
    assert machine.run(fn, [a, a, *outs]) == 0
    with np.errstate(all="ignore"):
        for numpys, got in zip(names.values(), outs, strict=False):
            equal(got, numpys(a.astype(np.float32)).astype(BFLOAT16), machine)
    np.testing.assert_array_equal(outs[-1], np.isnan(a.astype(np.float32)))


def test_constants_are_rounded_once(machine: Machine) -> None:
    of, size = dtype("bfloat16"), IntImm(8)
    out, i = Buffer("o", of, (size,), "arg"), Var("i")
    value = FloatImm(1 + 2.0**-8 + 2.0**-40, of)
    body = For(i, IntImm(0), size, "serial", Store(out, (i,), Call("abs", (value,), of)))
    got = aligned(np.zeros(8, BFLOAT16))
    assert machine.run(LoopFunction("constant", (out,), (), body), [got]) == 0
    assert got.astype(np.float32).tolist() == [1.0078125] * 8
