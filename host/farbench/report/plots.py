"""Plots of a report as SVG text: speed of every workload, and every sample of each."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from farbench.extras import load
from farbench.report.rows import Row

WIDTH_IN = 9.0
INK, BAR, MARK, BAD = "#1f2933", "#2f6f9f", "#d9822b", "#b3261e"


def speed_bars(device: str, rows: Sequence[Row]) -> str:
    """Draw GFLOP/s of each workload that ran on a device."""
    ran = [row for row in rows if row.result is not None]
    if not ran:
        return ""
    figure, axes = _figure(1, height_in=0.9 + 0.28 * len(ran))
    axis = axes[0]
    names = [row.workload for row in ran][::-1]
    values = [row.gflops for row in ran][::-1]
    colours = [BAR if row.valid else BAD for row in ran][::-1]
    bars = axis.barh(names, values, color=colours)
    axis.bar_label(bars, [f"{value:.3g}" for value in values], padding=3, fontsize=8)
    axis.set_xlabel("GFLOP/s at the median")
    axis.set_title(f"Speed on {device}", loc="left")
    axis.margins(x=0.12)
    return _svg(figure)


def samples_plot(device: str, rows: Sequence[Row]) -> str:
    """Draw every sample of each workload in the order taken, relative to its median."""
    ran = [row for row in rows if row.result is not None]
    if not ran:
        return ""
    columns = 3
    lines = -(-len(ran) // columns)
    figure, axes = _figure(columns * lines, columns, height_in=0.6 + 1.5 * lines)
    for axis, row in zip(axes, ran, strict=False):
        _draw_samples(axis, row)
    for axis in axes[len(ran) :]:
        axis.set_visible(False)
    figure.suptitle(f"Samples on {device}, each over its median", x=0.02, ha="left", fontsize=11)
    return _svg(figure)


def _draw_samples(axis: Any, row: Row) -> None:
    result = row.result
    if result is None or result.median <= 0:
        return
    relative = [value / result.median for value in result.results]
    interval = result.interval
    axis.axhspan(
        interval.low / result.median, interval.high / result.median, color=MARK, alpha=0.25, lw=0
    )
    axis.plot(range(len(relative)), relative, ".", color=BAR, markersize=3)
    axis.axhline(1.0, color=INK, lw=0.6)
    axis.set_title(row.workload, fontsize=8, loc="left")
    axis.tick_params(labelsize=7)


def _figure(panels: int, columns: int = 1, height_in: float = 3.0) -> tuple[Any, list[Any]]:
    """Make a figure without the state of pyplot, so that threads may draw."""
    figure = load("matplotlib.figure").Figure(figsize=(WIDTH_IN, height_in), layout="constrained")
    grid = figure.subplots(-(-panels // columns), columns, squeeze=False)
    axes = list(grid.flat)
    for axis in axes:
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
    return figure, axes


def _svg(figure: Any) -> str:
    out = io.StringIO()
    # Text stays text, and no date, so that equal data gives an equal file.
    with load("matplotlib").rc_context({"svg.fonttype": "none", "svg.hashsalt": "farbench"}):
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    return text[text.index("<svg") :]
