"""What generated code computes, against numpy, for every dtype: scalars, vectors, tails."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import erf

from farbench_compiler.ir.dtypes import dtype
from farbench_compiler.ir.expr import Binary, Buffer, Call, Cast, Compare, Expr, IntImm, Load, Var
from farbench_compiler.ir.stmt import For, IfThen, LoopFunction, Seq, Store

from .jit import Array, Machine, aligned

FLOATS = ("float16", "float32", "float64")
INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
SIZE = 203  # whole vectors and a tail
Make = Callable[[Expr, Expr], Expr]


def over_pairs(name: str, made: list[Make], of: str, results: list[str]) -> LoopFunction:
    """Write out[i] = make(a[i], b[i]) for several outputs, in vectors of 16 with a guard."""
    size = IntImm(SIZE)
    a, b = (Buffer(n, dtype(of), (size,), "arg", writable=False) for n in "ab")
    outs = [Buffer(f"o{i}", dtype(r), (size,), "arg") for i, r in enumerate(results)]
    outer, inner = Var("outer"), Var("inner")
    at = outer * 16 + inner
    x, y = Load(a, (at,), dtype(of)), Load(b, (at,), dtype(of))
    stores = [Store(out, (at,), make(x, y)) for out, make in zip(outs, made, strict=True)]
    strip = For(inner, IntImm(0), IntImm(16), "vectorized", IfThen(at < size, Seq(tuple(stores))))
    body = For(outer, IntImm(0), IntImm(-(-SIZE // 16)), "serial", strip)
    return LoopFunction(name, (a, b, *outs), (), body)


def samples(of: str, seed: int) -> Array:
    """Give values that are interesting for a dtype: special ones first, then random ones."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(of)
    if of == "bool":
        return aligned(rng.integers(0, 2, SIZE).astype(bool))
    if kind.kind == "f":
        info = np.finfo(kind)
        special = [0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, info.max, info.tiny,
                   info.smallest_subnormal, 0.5, 2.5, -2.5, 1e4, -300.7]  # fmt: skip
        values = rng.standard_normal(SIZE) * 10.0 ** rng.integers(-3, 4, SIZE)
    else:
        limits = np.iinfo(kind)
        special = [0, 1, limits.max, limits.min, limits.max // 2, 7, 3, limits.max - 1]
        values = rng.integers(limits.min, limits.max, SIZE, endpoint=True, dtype=kind)
    values = values.astype(kind)
    values[: len(special)] = np.array(special, dtype=kind)
    rng.shuffle(values[:40])
    return aligned(values)


def normal(values: Array, machine: Machine) -> Array:
    """Put zeros in place of subnormal numbers where a machine does so."""
    if machine.subnormals or values.dtype != np.float32:
        return values
    small = np.abs(values) < np.finfo(values.dtype).tiny
    return aligned(np.where(small, np.copysign(np.float32(0), values), values))


def compute(
    name: str, made: list[Make], of: str, results: list[str], machine: Machine, seed: int = 1
) -> tuple[Array, Array, list[Array]]:
    a, b = (normal(samples(of, s), machine) for s in (seed, seed + 1))
    outs = [aligned(np.zeros(SIZE, r)) for r in results]
    assert machine.run(over_pairs(name, made, of, results), [a, b, *outs]) == 0
    return a, b, outs


def same(got: Array, wanted: Array) -> None:
    """Compare bit for bit, but for the bits of a NaN."""
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(got, wanted)
    if wanted.dtype.kind == "f":
        real = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(got[real]), np.signbit(wanted[real]))


def make_binary(op: str) -> Make:
    return lambda x, y: Binary(op, x, y, x.dtype)  # type: ignore[arg-type]


def make_by(op: str, constant: Expr) -> Make:
    return lambda x, _: Binary(op, x, constant, x.dtype)  # type: ignore[arg-type]


def make_compare(op: str) -> Make:
    return lambda x, y: Compare(op, x, y, dtype("bool"))  # type: ignore[arg-type]


def make_cast(to: str) -> Make:
    return lambda x, _: Cast(dtype(to), x)


def make_call(name: str, result: str = "") -> Make:
    return lambda x, _: Call(name, (x,), dtype(result) if result else x.dtype)


FLOAT_OPS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
    "floormod": np.mod, "floordiv": np.floor_divide, "truncmod": np.fmod,
}  # fmt: skip


@pytest.mark.parametrize("of", FLOATS)
def test_float_arithmetic_is_numpys(of: str, machine: Machine) -> None:
    made = [make_binary(op) for op in FLOAT_OPS]
    a, b, outs = compute("arith", made, of, [of] * len(made), machine)
    with np.errstate(all="ignore"):
        for (op, numpys), got in zip(FLOAT_OPS.items(), outs, strict=True):
            wanted = numpys(a, b)
            if op in ("floormod", "floordiv", "truncmod") and of == "float16":
                wanted = numpys(a.astype("f4"), b.astype("f4")).astype("f2")
            if op == "floordiv":  # numpy treats what is infinite and zero by cases of its own
                usual = np.isfinite(a) & np.isfinite(b) & (b != 0) & np.isfinite(a / b)
                np.testing.assert_array_equal(got[usual], wanted[usual])
            else:
                same(normal(got, machine), normal(wanted, machine))


@pytest.mark.parametrize("of", FLOATS)
def test_float_extremes_propagate_nan(of: str, machine: Machine) -> None:
    made = [make_binary("min"), make_binary("max")]
    a, b, outs = compute("extreme", made, of, [of] * 2, machine)
    np.testing.assert_array_equal(outs[0], np.minimum(a, b))
    np.testing.assert_array_equal(outs[1], np.maximum(a, b))


INT_OPS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "min": np.minimum, "max": np.maximum,
    "bitand": np.bitwise_and, "bitor": np.bitwise_or, "bitxor": np.bitwise_xor,
    "floordiv": np.floor_divide, "floormod": np.mod, "truncmod": np.fmod,
}  # fmt: skip


@pytest.mark.parametrize("of", INTS)
def test_integer_arithmetic_is_numpys(of: str, machine: Machine) -> None:
    made = [make_binary(op) for op in INT_OPS]
    a, b, outs = compute("arith", made, of, [of] * len(made), machine)
    with np.errstate(all="ignore"):
        for (op, numpys), got in zip(INT_OPS.items(), outs, strict=True):
            np.testing.assert_array_equal(got, numpys(a, b), err_msg=op)


@pytest.mark.parametrize("of", INTS)
def test_division_by_constants(of: str, machine: Machine) -> None:
    divisors = [d for d in (1, 2, 3, 7, 8, -1, -2, -5) if d > 0 or of[0] != "u"]
    constants = [IntImm(d, dtype(of)) for d in divisors]
    made = [make_by(op, c) for op in ("floordiv", "floormod") for c in constants]
    a, _, outs = compute("constants", made, of, [of] * len(made), machine)
    with np.errstate(all="ignore"):
        for i, d in enumerate(divisors):
            divisor = np.array(d, of)
            np.testing.assert_array_equal(outs[i], np.floor_divide(a, divisor))
            np.testing.assert_array_equal(outs[i + len(divisors)], np.mod(a, divisor))


@pytest.mark.parametrize("of", INTS)
def test_shifts_by_the_width_or_more(of: str, machine: Machine) -> None:
    made = [make_binary("shl"), make_binary("shr")]
    fn = over_pairs("shift", made, of, [of] * 2)
    a = samples(of, 3)
    by = aligned((np.arange(SIZE) % 12).astype(of))
    by[:4] = 64
    outs = [aligned(np.zeros(SIZE, of)) for _ in made]
    assert machine.run(fn, [a, by, *outs]) == 0
    np.testing.assert_array_equal(outs[0], np.left_shift(a, by))
    np.testing.assert_array_equal(outs[1], np.right_shift(a, by))


COMPARISONS = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal,
}  # fmt: skip


@pytest.mark.parametrize("of", [*FLOATS, *INTS, "bool"])
def test_comparisons_are_numpys(of: str, machine: Machine) -> None:
    made = [make_compare(op) for op in COMPARISONS]
    a, b, outs = compute("compare", made, of, ["bool"] * len(made), machine)
    for (op, numpys), got in zip(COMPARISONS.items(), outs, strict=True):
        np.testing.assert_array_equal(got, numpys(a, b), err_msg=op)
        assert set(np.unique(got.view(np.uint8))) <= {0, 1}


def cast_as_promised(a: Array, to: str) -> Array:
    """Cast as numpy does in range; floats saturate outside of it and NaN becomes 0."""
    if a.dtype.kind != "f" or np.dtype(to).kind in "fb":
        return a.astype(to)
    limits = np.iinfo(to)
    exact = [int(x) if np.isfinite(x) else (0 if np.isnan(x) else int(np.sign(x)) << 80)
             for x in a.astype(np.float64)]  # fmt: skip
    return np.array([min(max(x, limits.min), limits.max) for x in exact], to)


ALL = (*FLOATS, *INTS, "bool")


@pytest.mark.parametrize("of", ALL)
def test_casts(of: str, machine: Machine) -> None:
    made = [make_cast(to) for to in ALL if to != of]
    results = [to for to in ALL if to != of]
    a, _, outs = compute("casts", made, of, results, machine)
    with np.errstate(all="ignore"):
        for to, got in zip(results, outs, strict=True):
            same(got, cast_as_promised(a, to))


INTRINSICS = {
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "log10": np.log10,
    "sqrt": np.sqrt, "tanh": np.tanh, "sinh": np.sinh, "cosh": np.cosh, "sin": np.sin,
    "cos": np.cos, "tan": np.tan, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,
    "round": np.rint, "abs": np.abs,
}  # fmt: skip
EXACT = ("sqrt", "floor", "ceil", "trunc", "round", "abs")
ULPS = {"float16": 1, "float32": 4, "float64": 4}


@pytest.mark.parametrize("of", FLOATS)
def test_intrinsics_are_close_to_numpys(of: str, machine: Machine) -> None:
    made = [make_call(name) for name in INTRINSICS]
    a, _, outs = compute("intrinsics", made, of, [of] * len(made), machine)
    wide = {"float16": "f4", "float32": "f8", "float64": "f8"}[of]
    with np.errstate(all="ignore"):
        for (name, numpys), got in zip(INTRINSICS.items(), outs, strict=True):
            wanted = numpys(a.astype(wide)).astype(of)
            if name in EXACT:
                same(got, wanted)
                continue
            np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted), err_msg=name)
            real = np.isfinite(wanted) & np.isfinite(got)
            np.testing.assert_array_max_ulp(got[real], wanted[real], ULPS[of])


@pytest.mark.parametrize("of", FLOATS)
def test_classification_and_composed_intrinsics(of: str, machine: Machine) -> None:
    names = ("isnan", "isinf", "isfinite")
    made = [make_call(name, "bool") for name in names]
    made += [make_call(name) for name in ("sigmoid", "rsqrt", "erf")]
    made.append(lambda x, y: Call("pow", (x, y), x.dtype))
    made.append(lambda x, y: Call("fma", (x, y, x), x.dtype))
    a, b, outs = compute("more", made, of, ["bool"] * 3 + [of] * 5, machine)
    for got, numpys in zip(outs, (np.isnan, np.isinf, np.isfinite), strict=False):
        np.testing.assert_array_equal(got, numpys(a))
    wide = a.astype("f8")
    limit = {"float16": 2e-3, "float32": 1e-6, "float64": 1e-12}[of]
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(outs[3], 1 / (1 + np.exp(-wide)), rtol=limit, atol=1e-7)
        np.testing.assert_allclose(outs[4], (1 / np.sqrt(wide)).astype(of), rtol=limit)
        tiny = float(np.finfo(of).tiny)
        np.testing.assert_allclose(outs[5], erf(wide), rtol=limit, atol=tiny)
        power = np.power(wide, b.astype("f8")).astype(of)
        real = np.isfinite(power) & (np.abs(power) > np.finfo(of).tiny)
        np.testing.assert_allclose(outs[6][real], power[real], rtol=10 * limit)


@pytest.mark.parametrize("of", INTS)
def test_integer_intrinsics(of: str, machine: Machine) -> None:
    made = [make_call(name) for name in ("popcount", "clz", "abs")]
    a, _, outs = compute("bits", made, of, [of] * 3, machine)
    bits = np.dtype(of).itemsize * 8
    patterns = [int(x) & ((1 << bits) - 1) for x in a]
    np.testing.assert_array_equal(outs[0], [p.bit_count() for p in patterns])
    np.testing.assert_array_equal(outs[1], [bits - p.bit_length() for p in patterns])
    np.testing.assert_array_equal(outs[2], np.abs(a))
