"""How many calls make a sample, for every clock and every cap."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from farbench_device_runtime.batching import Timer, find_batch

times = st.integers(0, 10**9)


@given(
    per_call=times,
    step=st.sampled_from([1, 20, 1000, 15_000_000]),
    number=st.integers(1, 1000),
    repeat=st.integers(1, 1000),
    shortest=st.integers(1, 10**9),
    max_calls=st.integers(1000, 10**9),
    budget=st.integers(0, 10**10),
)
def test_is_always_finite_and_within_the_caps(
    per_call: int, step: int, number: int, repeat: int, shortest: int, max_calls: int, budget: int
) -> None:
    batches: list[int] = []

    def sample(k: int) -> int:
        batches.append(k)
        return k * per_call // step * step

    found = find_batch(sample, number, repeat, shortest, max_calls, budget)
    assert len(batches) < 120
    assert found.warmup_calls == sum(batches)
    assert found.k >= number
    assert found.k <= max_calls
    assert batches == sorted(batches)
    assert found.last_ns >= shortest or found.short


def test_grows_tenfold_then_once_to_what_is_needed() -> None:
    batches: list[int] = []

    def sample(k: int) -> int:
        batches.append(k)
        return 100 * k

    found = find_batch(sample, 1, 10, 1_000_000, 10**9, 10**12)
    assert batches == [1, 10, 100, 1000, 12_000, 12_000]
    assert found.k == 12_000
    assert not found.short


def test_a_timer_that_reads_zero_ends_at_the_caps() -> None:
    found = find_batch(lambda k: 0, 1, 3, 1000, 1_000_000, 10**9)
    assert found.short
    assert found.k <= 1_000_000


def test_one_long_call_is_a_sample() -> None:
    assert find_batch(lambda k: k * 10**9, 1, 3, 10**6, 10**9, 10**9).k == 1


def test_a_sample_lasts_a_thousand_ticks() -> None:
    assert Timer(20, 20).shortest_ns(0.0) == 20_000
    assert Timer(1_000_000, 20).shortest_ns(0.01) == 1_000_000_000
    assert Timer(1, 1).shortest_ns(0.05) == 50_000_000
    assert Timer(0, 0).shortest_ns(0.0) == 1


def test_an_interrupted_batch_is_not_believed() -> None:
    interrupted = iter([500_000])

    def sample(k: int) -> int:
        return 100 * k + (next(interrupted, 0) if k == 100 else 0)

    found = find_batch(sample, 100, 10, 100_000, 10**9, 10**12)
    assert found.k == 1200
