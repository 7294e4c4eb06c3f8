"""What te expressions compute and which dtypes they have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import farbench as fb
from farbench_compiler import te
from farbench_compiler.ir.interp import run
from farbench_compiler.lower import lower

Array = npt.NDArray[Any]

X = np.array([0.25, 0.5, 1.0, 1.75, 2.5, 3.25], np.float32)


def evaluate(output: te.Tensor, inputs: dict[te.Tensor, Array]) -> Array:
    """Run the program of an output with the default schedule."""
    fn = lower(te.create_schedule(output.op), [*inputs, output])
    shape = [n.value for n in output.shape if isinstance(n, te.IntImm)]
    got = np.zeros(shape, str(output.dtype))
    run(fn, [*inputs.values(), got])
    return got


UNARY: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "log10": np.log10,
    "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "tanh": np.tanh, "sinh": np.sinh,
    "cosh": np.cosh, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "floor": np.floor, "ceil": np.ceil,
    "round": np.rint, "trunc": np.trunc, "abs": np.abs, "isnan": np.isnan, "isinf": np.isinf,
    "isfinite": np.isfinite,
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_an_intrinsic_gives_what_numpy_gives(name: str, dtype: str) -> None:
    x = X.astype(dtype)
    a = te.placeholder((len(x),), dtype, name="A")
    c = te.compute((len(x),), lambda i: getattr(te, name)(a[i]), name="C")
    expected = UNARY[name](x)
    assert str(c.dtype) == str(expected.dtype)
    rtol = 2e-3 if dtype == "float16" else 1e-6
    np.testing.assert_allclose(evaluate(c, {a: x}), expected, rtol=rtol)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("float32", "float32", "float32"),
        ("float16", "float32", "float32"),
        ("int8", "int32", "int32"),
        ("uint8", "int8", "int16"),
        ("bool", "int8", "int8"),
        ("int64", "float32", "float64"),
        ("uint32", "int8", "int64"),
        ("uint64", "int64", "float64"),
        ("uint64", "float16", "float64"),
        ("uint16", "uint32", "uint32"),
        ("bfloat16", "float32", "float32"),
        ("bfloat16", "float16", "float32"),
        ("bfloat16", "uint8", "bfloat16"),
    ],
)
def test_operands_are_promoted_as_numpy_promotes(left: str, right: str, expected: str) -> None:
    a, b = te.placeholder((1,), left, name="A"), te.placeholder((1,), right, name="B")
    c = te.compute((1,), lambda i: a[i] + b[i])
    assert str(c.dtype) == expected


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64", "uint8"])
def test_a_python_number_takes_the_dtype_of_the_tensor(dtype: str) -> None:
    a = te.placeholder((4,), dtype, name="A")
    assert str(te.compute((4,), lambda i: a[i] * 2 + 1).dtype) == dtype


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_an_index_or_size_beside_a_float_takes_its_dtype(dtype: str) -> None:
    n = te.var("n")
    a = te.placeholder((n,), dtype, name="A")
    assert str(te.compute((n,), lambda i: a[i] * i / n + (i * 2 + n)).dtype) == dtype


def test_an_index_beside_a_narrow_integer_widens_it() -> None:
    a = te.placeholder((4,), "int8", name="A")
    assert str(te.compute((4,), lambda i: a[i] + i).dtype) == "int64"


def test_constants_have_the_dtypes_of_te() -> None:
    assert [str(te.const(v).dtype) for v in (1, 1.0, True)] == ["int32", "float32", "bool"]
    assert str(te.compute((2,), lambda i: 0).dtype) == "int32"
    assert str(te.compute((2,), lambda i: te.const(1, "int8")).dtype) == "int8"


def test_integer_divisions_round_as_they_say() -> None:
    a = te.placeholder((4,), "int32", name="A")
    b = te.placeholder((4,), "int32", name="B")
    x, y = np.array([7, -7, 7, -7], np.int32), np.array([2, 2, -2, -2], np.int32)
    cases = {
        te.floordiv: x // y,
        te.floormod: x % y,
        te.truncdiv: np.trunc(x / y).astype(np.int32),
        te.truncmod: np.fmod(x, y),
        te.div: np.trunc(x / y).astype(np.int32),
    }
    for function, expected in cases.items():
        c = te.compute((4,), lambda i, f=function: f(a[i], b[i]))
        np.testing.assert_array_equal(evaluate(c, {a: x, b: y}), expected)


def test_casts_saturate_and_turn_nan_into_zero() -> None:
    x = np.array([1.9, -1.9, 300.0, -300.0, np.nan, np.inf], np.float32)
    a = te.placeholder((6,), name="A")
    c = te.compute((6,), lambda i: a[i].astype("int8"))
    np.testing.assert_array_equal(evaluate(c, {a: x}), [1, -1, 127, -128, 0, 127])


def test_if_then_else_does_not_evaluate_the_other_side() -> None:
    a = te.placeholder((4,), name="A")
    x = np.arange(4, dtype=np.float32)
    c = te.compute((6,), lambda i: te.if_then_else(te.all(i >= 1, i < 5), a[i - 1], -1.0))
    np.testing.assert_array_equal(evaluate(c, {a: x}), [-1, 0, 1, 2, 3, -1])


def test_comparisons_and_logic() -> None:
    a = te.placeholder((6,), name="A")
    c = te.compute((6,), lambda i: te.any(a[i] < 0.5, a[i] >= 2.5, a[i] == 1.0))
    assert str(c.dtype) == "bool"
    np.testing.assert_array_equal(evaluate(c, {a: X}), (X < 0.5) | (X >= 2.5) | (X == 1.0))
    d = te.compute((6,), lambda i: te.select((a[i] > 1.0) & ~(a[i] > 3.0), 1, 0))
    np.testing.assert_array_equal(evaluate(d, {a: X}), (X > 1) & ~(X > 3))


def test_indexing_by_call_by_brackets_and_in_steps_is_the_same() -> None:
    a = te.placeholder((2, 3), "int32", name="A")
    x = np.arange(6, dtype=np.int32).reshape(2, 3)
    c = te.compute((2, 3), lambda i, j: a[i, j] + a(i, j) + a[i][j])
    np.testing.assert_array_equal(evaluate(c, {a: x}), 3 * x)


def test_an_index_may_come_from_a_tensor() -> None:
    a, at = te.placeholder((5,), "int32", name="A"), te.placeholder((3,), "int8", name="I")
    x, i = np.arange(5, dtype=np.int32) * 7, np.array([4, 0, 2], np.int8)
    c = te.compute((3,), lambda k: a[at[k]], name="C")
    np.testing.assert_array_equal(evaluate(c, {a: x, at: i}), x[i])


def test_a_tensor_without_dimensions() -> None:
    a = te.placeholder((), name="A")
    c = te.compute((), lambda: a() + 1.0, name="C")
    assert evaluate(c, {a: np.array(2.0, np.float32)}) == 3.0
    k = te.reduce_axis((0, 6), name="k")
    b = te.placeholder((6,), name="B")
    s = te.compute((), lambda: te.sum(b[k], axis=k), name="S")
    assert evaluate(s, {b: X}) == X.sum()


def test_axes_are_named_after_the_parameters() -> None:
    c = te.compute((2, 3, 4), lambda row, *rest: rest[1], varargs_names=["y", "z"])
    assert [iv.name for iv in c.op.axis] == ["row", "y", "z"]
    assert c.ndim == 3
    assert [n.value for n in c.shape if isinstance(n, te.IntImm)] == [2, 3, 4]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda a: a[0, 0, 0], "tensor A has 2 dimensions, got 3 indices"),
        (lambda a: a[0, 1.5], "must be an integer"),
        (lambda a: te.compute((2,), lambda i, j: 0), "takes 2 indices, the shape has 1"),
        (lambda a: te.compute((2,), lambda i: []), "the function gives no value"),
        (lambda a: te.placeholder((2,), "float31"), "unknown dtype 'float31'"),
        (lambda a: te.placeholder((-2,)), "negative size -2"),
        (lambda a: te.exp(te.const(1)), "exp needs a float, got int32"),
        (lambda a: te.create_schedule(a.op), "computed tensors"),
    ],
)
def test_what_makes_no_sense_is_refused(make: Callable[[te.Tensor], object], words: str) -> None:
    a = te.placeholder((2, 3), name="A")
    with pytest.raises(te.ScheduleError, match=words):
        make(a)


def test_a_tensor_is_not_iterable() -> None:
    with pytest.raises(TypeError, match="not iterable"):
        list(te.placeholder((2,), name="A"))


@pytest.mark.parametrize("debug", [False, True], ids=["plain", "debug"])
@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize("name", ["all", "any"])
def test_a_condition_reads_nothing_once_it_is_decided(name: str, lanes: int, debug: bool) -> None:
    a = te.placeholder((64,), "int32", name="A")
    join = getattr(te, name)

    def body(i: te.Var) -> te.Expr:
        decided = i > 0 if name == "all" else i < 1
        return te.select(join(decided, a[i - 1] > 3), 1, 0)

    c = te.compute((64,), body, name="C")
    sch = te.create_schedule(c.op)
    _, lane = sch[c].split(c.op.axis[0], factor=lanes)
    sch[c].vectorize(lane)
    x = np.random.default_rng(3).integers(0, 9, 64, dtype=np.int32)
    got = np.full(64, 7, np.int32)
    fb.build(sch, [a, c], debug=debug)(x, got)
    np.testing.assert_array_equal(got, [x[i - 1] > 3 if i else name == "any" for i in range(64)])
