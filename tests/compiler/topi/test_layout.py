"""Layouts: letters in order, and what is none."""

from __future__ import annotations

import pytest

from farbench_compiler import te
from farbench_compiler.errors import ScheduleError
from farbench_compiler.topi.layout import Layout


def test_values_by_letter_and_back() -> None:
    layout = Layout.parse("op", "NCHW16c", "NHW")
    assert layout.letters == "NCHWc"
    assert layout.spatial == "HW"
    assert layout.places("HW") == (2, 3)
    named = layout.named([2, 3, 5, 7, 16])
    assert named == {"N": 2, "C": 3, "H": 5, "W": 7, "c": 16}
    assert layout.ordered(named | {"H": 1}) == (2, 3, 1, 7, 16)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("NHHC", "'NHHC' is none"),
        ("N-HC", "is none"),
        ("NCW", "needs axis H"),
        ("NCHW4h", "needs axis H, in one piece"),
        ("NCHW4c", "3 dimensions, layout 'NCHW4c' 5"),
    ],
)
def test_what_cannot_be(text: str, what: str) -> None:
    with pytest.raises(ScheduleError, match=rf"topi\.op: .*{what}"):
        Layout.parse("op", text, "HW", te.placeholder((2, 3, 4)))
