"""The report: one file, everything in it escaped, failures as rows."""

from __future__ import annotations

import re
from pathlib import Path

from farbench.report import Report, Row, write_report
from farbench.report.page import DeviceSection, render
from farbench.report.rows import COLUMNS
from farbench.result import InputFact, Sample, Spent, Timer, TimingResult
from farbench.validation import Comparison


def result(name: str) -> TimingResult:
    totals = [1_000_000 + 1000 * i for i in range(12)]
    return TimingResult(
        name, "pi", tuple(Sample(total, 2) for total in totals), "hot", Timer("wall", 10, 20.0),
        (InputFact("A", "float32", (4,), "seed 1, uniform [-1, 1)"),), Spent(0.01, 0.02),
        ("emulated",),
    )  # fmt: skip


ROWS = (
    Row("pi", "matmul_64", 524_288, result("matmul_64"), Comparison(True, 1e-6, 1e-5), 0.5),
    Row("pi", "conv2d_C1", 10, None, Comparison(False, 2.0, 1e-5, (0, 1)), 0.5, "wrong: by 2"),
    Row("pi", "conv2d_C2", 10, failure="not built: <b>no</b>"),
)
PI = DeviceSection("pi", {"arch": "aarch64", "features": ("neon", "crc")})
REPORT = Report("demo <script>", "now", (PI,), ROWS, ("a note",))


def test_the_page_stands_alone() -> None:
    text = render(REPORT)
    assert text.count("<svg") == 2
    assert not re.search(r"(src|href)\s*=\s*[\"']https?:", text)
    assert "neon crc" in text
    assert "seed 1, uniform [-1, 1)" in text


def test_text_of_others_is_escaped() -> None:
    text = render(REPORT)
    assert "<script>" not in text
    assert "<b>no</b>" not in text
    assert "not built: &lt;b&gt;no" in text


def test_a_device_without_results_has_no_plots() -> None:
    report = Report("t", "now", (DeviceSection("pi", {}),), ROWS[2:])
    assert "<svg" not in render(report)


def test_it_is_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    write_report(REPORT, path)
    assert path.read_text(encoding="utf-8") == render(REPORT)
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_rows_give_cells_and_plain_data() -> None:
    good, wrong, failed = ROWS
    assert len(good.cells()) == len(COLUMNS)
    assert (good.valid, wrong.valid, failed.valid) == (True, False, False)
    assert good.as_dict()["samples"] == 12
    assert abs(good.gflops - 524_288 / (1_005_500 / 2)) < 0.01
    assert wrong.as_dict()["failure"] == "wrong: by 2"
    assert failed.as_dict()["median_s"] is None
    assert failed.cells()[-1].startswith("not built")


def test_it_is_made_for_the_dark_and_for_small_screens() -> None:
    text = render(REPORT)
    assert "prefers-color-scheme: dark" in text
    assert "max-width: 40rem" in text
    assert ">GFLOP/s</th>" in text
