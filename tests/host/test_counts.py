"""M10: counts are checked before anything is connected."""

from __future__ import annotations

import math
from typing import Any

import pytest

from farbench.counts import Counts
from farbench.errors import UsageError


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"repeat": 0}, "repeat must be a whole number"),
        ({"repeat": -1}, "repeat"),
        ({"repeat": 2.5}, "repeat"),
        ({"repeat": True}, "repeat"),
        ({"number": 0}, "number must be a whole number"),
        ({"number": 10**10}, "number"),
        ({"min_repeat_ms": -1}, "min_repeat_ms"),
        ({"min_repeat_ms": math.nan}, "min_repeat_ms"),
        ({"budget_s": 0}, "budget_s"),
        ({"budget_s": math.inf}, "budget_s"),
        ({"cache": "lukewarm"}, "cache must be one of hot, cold"),
        ({"cache": "cold", "number": 7, "exact": True}, "cold sample is one call"),
    ],
)
def test_m10_a_count_that_cannot_be_kept_is_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Counts(**given)


def test_a_cold_sample_is_one_call() -> None:
    rule = Counts(number=10, repeat=3, min_repeat_ms=5, cache="cold").stop_rule()
    assert (rule.number, rule.repeat, rule.min_sample_s, rule.exact) == (1, 3, 0.0, True)


def test_the_rule_carries_the_counts() -> None:
    rule = Counts(number=4, repeat=7, min_repeat_ms=250, budget_s=9).stop_rule()
    assert (rule.number, rule.repeat, rule.min_sample_s, rule.budget_s) == (4, 7, 0.25, 9.0)
    assert not rule.exact
