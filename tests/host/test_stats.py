"""Statistics: known values, properties, and the edges that shipped tools got wrong."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farbench import stats

finite = st.floats(min_value=1e-9, max_value=1e3, allow_nan=False)
series = st.lists(finite, min_size=1, max_size=60)


@given(series)
def test_location_agrees_with_the_standard_library(values: list[float]) -> None:
    assert stats.median(values) == pytest.approx(statistics.median(values))
    deviations = [abs(v - statistics.median(values)) for v in values]
    assert stats.mad(values) == pytest.approx(statistics.median(deviations))
    assert stats.quantile(values, 0.0) == min(values)
    assert stats.quantile(values, 1.0) == max(values)
    assert stats.geometric_mean(values) == pytest.approx(statistics.geometric_mean(values))


@given(series)
def test_order_does_not_matter_to_location_and_spread(values: list[float]) -> None:
    forwards, backwards = stats.summarise(values), stats.summarise(values[::-1])
    assert forwards.median == backwards.median
    assert forwards.mad == backwards.mad
    assert forwards.outliers == backwards.outliers
    assert forwards.bootstrap == backwards.bootstrap


@given(series)
def test_every_interval_holds_within_the_range(values: list[float]) -> None:
    middle = stats.median(values)
    for interval in (stats.median_interval(values), stats.bootstrap_interval(values)):
        assert min(values) <= interval.low <= interval.high <= max(values)
    order = stats.median_interval(values)
    assert order.low <= middle <= order.high


@pytest.mark.parametrize(
    ("count", "rank", "covered"),
    # Tables of the sign test at 95 %: n = 6 -> extremes, n = 10 -> 2nd and 9th, ...
    [(6, 1, 0.96875), (9, 2, 0.9609), (10, 2, 0.9785), (20, 6, 0.9586), (30, 10, 0.9572)],
)
def test_interval_of_the_median_uses_the_tabled_ranks(
    count: int, rank: int, covered: float
) -> None:
    values = [float(i) for i in range(1, count + 1)]
    found = stats.median_interval(values)
    assert (found.low, found.high) == (float(rank), float(count + 1 - rank))
    assert found.confidence == pytest.approx(covered, abs=1e-4)
    assert found.method == "order"


@pytest.mark.parametrize("count", [1, 2, 5])
def test_fewer_than_six_samples_show_their_range(count: int) -> None:
    values = [float(i) for i in range(count)]
    found = stats.median_interval(values)
    assert (found.low, found.high, found.confidence) == (0.0, float(count - 1), 0.0)
    assert found.method == "range"


def test_bootstrap_agrees_with_plain_resampling() -> None:
    draw = np.random.default_rng(3)
    for count in (15, 16):
        values = draw.normal(10, 1, count)
        plain = np.median(draw.choice(values, (20_000, count)), axis=1)
        found = stats.bootstrap_interval(values)
        # The medians are discrete, so a limit is a quantile when it splits them at 2.5 %.
        assert np.mean(plain < found.low) <= 0.03
        assert np.mean(plain <= found.low) >= 0.02
        assert np.mean(plain > found.high) <= 0.03
        assert np.mean(plain >= found.high) >= 0.02


def test_bootstrap_gives_the_same_interval_each_time() -> None:
    values = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]
    assert stats.bootstrap_interval(values) == stats.bootstrap_interval(values)


def test_interval_covers_the_median_despite_spikes() -> None:
    draw = np.random.default_rng(1)
    covered = 0
    for _ in range(400):
        values = draw.normal(1.0, 0.01, 30)
        values[draw.random(30) < 0.03] *= 3
        interval = stats.median_interval(values)
        covered += interval.low <= 1.0 <= interval.high
    assert covered / 400 >= 0.92


def test_zero_spread_has_no_outlier_and_a_closed_interval() -> None:
    found = stats.summarise([5.0] * 20)
    assert (found.mad, found.std, found.iqr) == (0.0, 0.0, 0.0)
    assert found.outliers == stats.Outliers(0, 0, 0, 20)
    assert (found.interval.low, found.interval.high) == (5.0, 5.0)
    assert found.serial_correlation == 0.0


def test_one_tick_beside_equal_values_is_no_outlier() -> None:
    values = [1e-6] * 19 + [1.0005e-6]
    assert stats.outliers(values) == stats.Outliers(0, 0, 0, 20)
    assert stats.outliers([1e-6] * 19 + [1.02e-6], resolution=1e-8).severe == 0


def test_one_sample_is_its_own_summary() -> None:
    found = stats.summarise([2.5])
    assert (found.count, found.median, found.std, found.min, found.max) == (1, 2.5, 0.0, 2.5, 2.5)
    assert found.interval.method == "range"
    assert (found.bootstrap.low, found.bootstrap.high) == (2.5, 2.5)


def test_ties_keep_the_interval_inside_the_data() -> None:
    found = stats.summarise([1.0] * 10 + [2.0] * 10)
    assert found.median == 1.5
    assert (found.interval.low, found.interval.high) == (1.0, 2.0)


def test_outliers_are_counted_by_both_rules() -> None:
    values = [1.0 + 0.01 * (i % 10) for i in range(40)] + [1.15, 9.0]
    found = stats.outliers(values)
    assert (found.mild, found.severe, found.by_z) == (1, 1, 1)
    assert not found.many
    assert stats.outliers(values + [9.0] * 3).many


def test_correlated_samples_get_the_interval_of_batches() -> None:
    drift = [1.0 + 0.01 * i for i in range(64)]
    found = stats.summarise(drift)
    assert found.serial_correlation > stats.SERIAL_LIMIT
    assert found.interval.method == "batch"
    plain = stats.median_interval(drift)
    assert found.interval.half_width > plain.half_width


def test_a_million_samples_are_summarised() -> None:
    values = np.random.default_rng(0).normal(10.0, 1.0, 1_000_000)
    found = stats.summarise(values)
    assert found.interval.confidence == pytest.approx(0.95, abs=2e-3)
    # The median's standard error is sqrt(pi / 2n); the interval is 1.96 of them to each side.
    assert found.interval.half_width == pytest.approx(1.96 * math.sqrt(math.pi / 2e6), rel=0.1)


@pytest.mark.parametrize("values", [[], [1.0, math.nan], [math.inf]])
def test_what_is_not_a_sample_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="sample"):
        stats.summarise(values)


def test_geometric_mean_refuses_zero() -> None:
    with pytest.raises(ValueError, match="over 0"):
        stats.geometric_mean([1.0, 0.0])
