"""Binding arguments: what fits gives slots, what does not is named before anything runs."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farbench_rpc.manifest import (
    DTYPES,
    ArgumentError,
    ArrayFacts,
    Entry,
    ScalarArg,
    TensorArg,
    bind,
    from_wire,
    to_slot,
    to_wire,
)

ADD = Entry(
    "add",
    "add",
    (
        TensorArg("A", "float32", ("n",), 64, False),
        TensorArg("B", "float32", ("n + 1",), 64, False),
        ScalarArg("alpha", "float32"),
        TensorArg("C", "float32", (4, "m", "n // 2 * m"), 64, True),
    ),
    ("n", "m"),
)
A = ArrayFacts("float32", (6,), 128)
B = ArrayFacts("float32", (7,), 256)
C = ArrayFacts("float32", (4, 5, 15), 4096)


def refused(*args: ArrayFacts | float) -> str:
    with pytest.raises(ArgumentError) as caught:
        bind(ADD, args)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_fits_gives_symbols_then_scalars() -> None:
    bound = bind(ADD, (A, B, 0.5, C))
    assert bound.symbols == {"n": 6, "m": 5}
    assert bound.scalars == (6, 5, struct.unpack("<I", struct.pack("<f", 0.5))[0])


def test_a_computed_size_may_hang_on_an_integer_parameter() -> None:
    every = Entry(
        "every",
        "every",
        (
            TensorArg("A", "float32", ("n",), 64, False),
            TensorArg("B", "float32", ("(n - first) // step",), 64, True),
            ScalarArg("first", "int32"),
            ScalarArg("step", "int32"),
        ),
        ("n",),
    )
    out = ArrayFacts("float32", (2,), 256)
    assert bind(every, (A, out, 1, 2)).scalars == (6, 1, 2)
    with pytest.raises(ArgumentError, match=r"with n = 6, first = 0, step = 2, got float32\[2\]"):
        bind(every, (A, out, 0, 2))
    with pytest.raises(ArgumentError, match="argument 2"):
        bind(every, (A, out, 1, 0))


def test_no_arguments() -> None:
    assert bind(Entry("f", "f", ()), ()).scalars == ()


def test_count() -> None:
    message = refused(A, B)
    assert "add(A: float32[n], B: float32[n + 1], alpha: float32" in message
    assert "takes 4 arguments, got 2" in message


@pytest.mark.parametrize("dtype", sorted(set(DTYPES) - {"float32"}))
def test_dtype(dtype: str) -> None:
    message = refused(replace(A, dtype=dtype), B, 0.5, C)
    assert message == f"add: argument 1 (A): expected float32[n], got {dtype}[6]"


def test_rank() -> None:
    assert "expected float32[n], got float32[6, 1]" in refused(replace(A, shape=(6, 1)), B, 0.5, C)


def test_size_from_another_argument() -> None:
    message = refused(A, replace(B, shape=(6,)), 0.5, C)
    assert "argument 2 (B): expected float32[n + 1] with n = 6, got float32[6]" in message


def test_fixed_size() -> None:
    assert "argument 4 (C)" in refused(A, B, 0.5, replace(C, shape=(3, 5, 15)))


def test_alignment() -> None:
    assert "aligned to 64 bytes, got 4" in refused(A, replace(B, address=260), 0.5, C)


def test_strides_and_read_only() -> None:
    assert "contiguous" in refused(replace(A, contiguous=False), B, 0.5, C)
    assert "writable" in refused(A, B, 0.5, replace(C, writable=False))
    bind(ADD, (replace(A, writable=False), B, 0.5, C))


def test_what_is_written_lies_apart() -> None:
    # C takes 4 * 5 * 15 * 4 = 1200 bytes, from 4096 on.
    message = refused(A, replace(B, address=4096 + 1152), 0.5, C)
    assert message == (
        "add: argument 4 (C): is written and shares memory with argument 2 (B); "
        "give it an array of its own"
    )
    assert "argument 1 (A)" in refused(replace(A, address=4096), B, 0.5, C)
    bind(ADD, (A, replace(B, address=4096 + 1216), 0.5, C))
    bind(ADD, (replace(A, address=1280), replace(B, address=1280), 0.5, C))
    bind(ADD, (A, replace(B, address=4096 - 64), 0.5, C))
    bind(ADD, (replace(A, address=0), B, 0.5, replace(C, address=0)))


def test_kinds_mixed_up() -> None:
    assert "expected float32[n], got float 0.5" in refused(0.5, B, 0.5, C)
    assert "argument 3 (alpha): expected a float32 number" in refused(A, B, B, C)


def test_size_given_as_an_argument() -> None:
    args = (ScalarArg("n", "int32"), TensorArg("A", "int8", ("n",), 1, True))
    entry = Entry("g", "g", args, ("n",))
    assert bind(entry, (3, ArrayFacts("int8", (3,)))).scalars == (3,)
    with pytest.raises(ArgumentError, match=r"expected n = 4 as before, got 3"):
        bind(entry, (4, ArrayFacts("int8", (3,))))


@given(st.integers(-(2**64), 2**64), st.sampled_from([d for d in DTYPES if "int" in d]))
def test_integers_fit_or_are_refused(value: int, dtype: str) -> None:
    bits = 8 * DTYPES[dtype]
    unsigned = dtype.startswith("u")
    low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if low <= value <= high:
        slot = to_slot(value, dtype)
        assert -(2**63) <= slot < 2**63
        assert (slot - value) % 2**64 == 0
    else:
        with pytest.raises(ArgumentError):
            to_slot(value, dtype)


@given(st.floats(), st.sampled_from([("float16", "<e"), ("float32", "<f"), ("float64", "<d")]))
def test_floats_lie_in_the_low_bytes(value: float, kind: tuple[str, str]) -> None:
    dtype, layout = kind
    try:
        expected = struct.pack(layout, value)
    except OverflowError:
        with pytest.raises(ArgumentError, match="beyond the range"):
            to_slot(value, dtype)
        return
    assert struct.pack("<q", to_slot(value, dtype)) == expected.ljust(8, b"\0")


def test_a_float_is_no_integer() -> None:
    with pytest.raises(ArgumentError, match="expected int32, got float"):
        to_slot(1.0, "int32")


@given(st.integers(0, 2**64 - 1))
def test_every_uint64_travels_as_an_int64(value: int) -> None:
    crossing = to_wire(value, "uint64")
    assert -(2**63) <= crossing < 2**63
    assert from_wire(crossing, "uint64") == value


def test_other_numbers_travel_as_they_are() -> None:
    assert [to_wire(x, "int64") for x in (-5, True)] == [-5, 1]
    assert type(to_wire(3, "float32")) is type(to_wire(True, "float64")) is float
    assert [from_wire(x, dtype) for x, dtype in ((-5, "int64"), (-5.0, "uint64"))] == [-5, -5.0]
