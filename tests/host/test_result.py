"""M3, M5, M7: a result keeps raw samples, inputs and timer, and shows robust numbers."""

from __future__ import annotations

import json

import pytest

from farbench.result import InputFact, Sample, Spent, Timer, TimingResult, seconds


def make(totals: list[int], k: int = 10) -> TimingResult:
    return TimingResult(
        entry="add",
        device="pi",
        samples=tuple(Sample(total, k) for total in totals),
        cache="hot",
        timer=Timer("wall", 20, 25.0),
        inputs=(InputFact("A", "float32", (8,), "seed 7, uniform [0, 1)"),),
        spent=Spent(device_s=sum(totals) / 1e9, end_to_end_s=1.0, transfer_s=0.25, queued_s=0.5),
        flags=("emulated",),
    )


def test_m7_raw_samples_are_kept_beside_robust_numbers() -> None:
    found = make([1000, 1010, 1020, 1030, 1040, 1050, 90_000])
    assert [sample.total_ns for sample in found.samples][-1] == 90_000
    assert found.results[0] == pytest.approx(100e-9)
    assert found.median == pytest.approx(103e-9)
    assert found.mad == pytest.approx(2e-9)
    assert (found.min, found.max) == (pytest.approx(100e-9), pytest.approx(9000e-9))
    assert found.mean > 10 * found.median
    assert found.outliers.severe == 1
    assert found.interval.low <= found.median <= found.interval.high
    assert found.bootstrap.method == "bootstrap"


def test_m3_inputs_are_stated() -> None:
    assert make([1000]).inputs[0].source == "seed 7, uniform [0, 1)"


def test_m4_device_transfer_and_queue_time_are_apart() -> None:
    data = make([1000, 1000]).as_dict()
    assert data["device_s"] == pytest.approx(2e-6)
    assert (data["end_to_end_s"], data["transfer_s"], data["queued_s"]) == (1.0, 0.25, 0.5)


def test_one_sample_gives_numbers_and_no_nan() -> None:
    found = make([1000])
    assert (found.median, found.std, found.mad) == (pytest.approx(100e-9), 0.0, 0.0)
    assert "NaN" not in json.dumps(found.as_dict())


def test_no_sample_is_no_result() -> None:
    with pytest.raises(ValueError, match="at least one sample"):
        make([])


def test_as_dict_is_plain_data() -> None:
    data = json.loads(json.dumps(make([1000, 1100, 1200]).as_dict()))
    assert data["samples"] == [[1000, 10, 0], [1100, 10, 0], [1200, 10, 0]]
    assert data["k"] == 10
    assert data["timer"]["resolution_ns"] == 20


@pytest.mark.parametrize(
    ("value", "text"),
    [(2.0, "2 s"), (0.0123, "12.3 ms"), (4.5e-6, "4.5 us"), (7e-9, "7 ns"), (0.0, "0 ns")],
)
def test_durations_are_written_with_their_unit(value: float, text: str) -> None:
    assert seconds(value) == text
