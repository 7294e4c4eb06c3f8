"""The grammar of requirements: one line a rule."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farbench_tracker.errors import RequirementError
from farbench_tracker.quantity import parse_quantity
from farbench_tracker.requirement import (
    MAX_TERMS,
    FactValue,
    Requirement,
    Term,
    parse,
    quote,
)


@dataclass(frozen=True)
class Board:
    """A device to match."""

    id: str = "d-1"
    name: str = "bob"
    labels: dict[str, str] = field(default_factory=dict)
    facts: dict[str, FactValue] = field(default_factory=dict)


PI4 = Board(
    labels={"board": "pi4", "rack:3": "a,b", "spare": "true", "clock": "1.8GHz", "gpu": ""},
    facts={
        "arch": "aarch64",
        "cores": 4,
        "memory": 4 * 2**30,
        "emulated": False,
        "load": 0.5,
        "features": ("neon", "fp16"),
        "kernel": "6.1.0",
    },
)


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("", True),
        ("  ", True),
        ("arch=aarch64", True),
        ("arch==aarch64", True),
        ("arch = aarch64 , cores = 4", True),
        ("arch=x86_64", False),
        ("arch=aarch64,board=pi5", False),
        ("board!=pi5", True),
        ("board!=pi4", False),
        ("absent!=anything", True),
        ("absent=anything", False),
        ("memory>=2GiB", True),
        ("memory>=4 GiB", True),
        ("memory>4GiB", False),
        ("memory<=4GiB", True),
        ("memory>=4.1GB", True),
        ("memory<4.3 GB", True),
        ("memory<4.2GB", False),
        ("memory>=4294967296", True),
        ("memory=4GiB", True),
        ("clock>=1800MHz", True),
        ("clock>1.8GHz", False),
        ("clock<=1800000kHz", True),
        ("cores=4.0", True),
        ("load<=0.5", True),
        ("kernel>=5", False),
        ("absent>=0", False),
        ("emulated>=0", False),
        ("board in (pi4|pi5)", True),
        ("board in(pi5)", False),
        ("board in ( pi3 | pi4 )", True),
        ("cores in (2|4)", True),
        ("emulated", False),
        ("!emulated", True),
        ("spare", True),
        ("!spare", False),
        ("gpu", True),
        ("board", False),
        ("absent", False),
        ("!absent", True),
        ("emulated=false", True),
        ("emulated=no", True),
        ("features=neon", True),
        ("features=sve", False),
        ("features in (sve|fp16)", True),
        ("rack:3=a,b", False),
        ('rack:3="a,b"', True),
        ('"rack:3"="a,b"', True),
        ("id=d-1", True),
        ("id=d-2", False),
        ("name=bob", True),
        ("name in (al|bob)", True),
        ("name>=1", False),
    ],
)
def test_match(text: str, fits: bool) -> None:
    """Hold each term against one device."""
    if text == "rack:3=a,b":  # two terms: the unquoted comma parts them
        assert parse(text).terms == (Term("rack:3", "=", ("a",)), Term("b", "flag"))
    assert parse(text).matches(PI4) is fits


def test_a_label_overrides_a_fact() -> None:
    """Believe the owner of a device before the probe."""
    board = Board(labels={"soc": "mine"}, facts={"soc": "probed"})
    assert parse("soc=mine").matches(board)
    assert not parse("soc=probed").matches(board)


@pytest.mark.parametrize(
    ("text", "position", "said"),
    [
        (",", 1, "expected a key"),
        ("a,", 3, "drop the comma"),
        ("a>=", 4, "write it"),
        ("a=,b", 3, "write it"),
        ("a,,b", 3, "drop the comma"),
        ("a=", 3, "expected a value after ="),
        ("a=b c", 5, "comma between terms"),
        ("a=b=c", 4, "comma between terms"),
        ("a>=big", 4, "'big' is not a number"),
        ("a>=2Gib", 4, "KiB MiB GiB"),
        ("a>=2 parsec", 6, "comma between terms"),
        ("!a=b", 3, "write KEY!=VALUE"),
        ('a="b', 3, "never closed"),
        ('a="b\\', 3, "never closed"),
        ("a in (", 7, "expected a value"),
        ("a in (b", 8, "write KEY in (A|B)"),
        ("a in (b,c)", 8, "write KEY in (A|B)"),
        ("a (b)", 3, "comma between terms"),
        ("a=\x00", 3, "quote it"),
        ("=b", 1, "expected a key"),
        (",".join("a" * (MAX_TERMS + 1)), 2 * MAX_TERMS + 2, "more than"),
    ],
)
def test_errors_say_where_and_what_to_try(text: str, position: int, said: str) -> None:
    """Refuse with one line that names the character."""
    with pytest.raises(RequirementError) as caught:
        parse(text)
    assert caught.value.position == position
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_huge_text_is_refused_unread() -> None:
    """Refuse what no person writes."""
    with pytest.raises(RequirementError, match="characters"):
        parse("a" * 5000)


words = st.text(min_size=0, max_size=12)
numbers = st.builds(
    lambda n, unit: f"{n}{unit}", st.integers(0, 10**9), st.sampled_from(["", "GiB", "MHz", "kHz"])
)
terms = st.one_of(
    st.builds(Term, words, st.sampled_from(["flag", "!flag"])),
    st.builds(Term, words, st.sampled_from(["=", "!="]), st.tuples(words)),
    st.builds(Term, words, st.sampled_from([">=", "<=", ">", "<"]), st.tuples(numbers)),
    st.builds(Term, words, st.just("in"), st.lists(words, min_size=1, max_size=4).map(tuple)),
)


@given(st.lists(terms, max_size=6).map(tuple).map(Requirement))
def test_what_is_written_reads_back(requirement: Requirement) -> None:
    """Read back every requirement that can be written."""
    assert parse(str(requirement)) == requirement


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Fail on no text but by the one error."""
    try:
        requirement = parse(text)
    except RequirementError:
        return
    assert parse(str(requirement)) == requirement


@given(st.text(min_size=1), st.text())
def test_any_label_can_be_asked_for(key: str, value: str) -> None:
    """Match a label whatever characters it is made of (row S9)."""
    board = Board(id="x", name="y", labels={key: value})
    if key not in ("id", "name"):
        assert parse(f"{quote(key)}={quote(value)}").matches(board)
        assert parse(f"{quote(key)} in ({quote(value)}|other)").matches(board)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4", 4),
        ("2GiB", 2**31),
        ("2 GiB", 2**31),
        ("1.5GiB", 3 * 2**29),
        ("1.1GB", 1_100_000_000),
        ("1.8GHz", 1_800_000_000),
        ("100kHz", 100_000),
        ("-1", -1),
        ("1e3", 1000),
        ("0.25", 0.25),
        ("1KB", 1000),
        ("GiB", None),
        ("2gib", None),
        ("2GiBs", None),
        ("", None),
        ("nan", None),
        ("٣", None),
        ("9" * 40, None),
    ],
)
def test_quantities(text: str, value: float | None) -> None:
    """Read numbers with units exactly."""
    assert parse_quantity(text) == value
