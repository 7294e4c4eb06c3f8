"""Dimensions: the little language of sizes against Python's own arithmetic."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farbench_rpc.manifest import ManifestError, evaluate, resolve, symbols_of

LEAVES = st.one_of(st.integers(0, 1000).map(str), st.sampled_from(["n", "m_1"]))
TEXTS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%"]), inner).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(
            lambda t: f"{t[0]}({t[1]}, {t[2]})"
        ),
        inner.map(lambda text: f"-{text}"),
        st.tuples(inner, inner).map(lambda t: f"{t[0]} - {t[1]} * 2"),
    ),
    max_leaves=8,
)


def outcome(text: str, names: dict[str, int]) -> int | str:
    """Evaluate; an error of one line is an outcome too."""
    try:
        return evaluate(text, names)
    except ManifestError as error:
        message = str(error)
    return "overflow" if "64 bits" in message else message.splitlines(keepends=True)[0]


@given(TEXTS, st.integers(-50, 50), st.integers(-50, 50))
def test_agrees_with_python(text: str, n: int, m: int) -> None:
    names = {"n": n, "m_1": m}
    try:
        expected = eval(text, {"min": min, "max": max}, dict(names))
    except ZeroDivisionError:
        with pytest.raises(ManifestError, match="division by zero"):
            evaluate(text, names)
        return
    if abs(expected) < 2**60:
        assert outcome(text, names) in (expected, "overflow")


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    outcome(text, {"n": 3})


@pytest.mark.parametrize(
    "text", ["", "n +", "n 1", "(n", "n ** 2", "__import__('os')", "1.5", "(" * 99 + "n" + ")" * 99]
)
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ManifestError, match="dimension"):
        evaluate(text, {"n": 3})


def test_overflow_is_refused() -> None:
    with pytest.raises(ManifestError, match="64 bits"):
        evaluate("n * n", {"n": 2**40})


def test_unknown_symbol_is_named() -> None:
    with pytest.raises(ManifestError, match="'k' is not known"):
        evaluate("k + 1", {"n": 1})


def test_symbols_in_order() -> None:
    assert symbols_of("m * n + m") == ("m", "n")


def test_shapes_resolve_and_are_not_negative() -> None:
    assert resolve((2, "n", "n // 2 * 3"), {"n": 5}) == (2, 5, 6)
    with pytest.raises(ManifestError, match="is -1"):
        resolve(("n - 6",), {"n": 5})
