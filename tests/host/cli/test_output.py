"""What commands show: boxes on a terminal, plain lines elsewhere, JSON for programs."""

from __future__ import annotations

import io
import json
import time
from typing import Any

import numpy as np
import pytest

from farbench.cli.output import Output, Task
from farbench.listing import aligned


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def make(as_json: bool = False, terminal: bool = False) -> tuple[Output, io.StringIO, io.StringIO]:
    kind = Terminal if terminal else io.StringIO
    out, err = kind(), kind()
    return Output(as_json, out, err), out, err


def test_columns_are_aligned_numbers_to_the_right() -> None:
    lines = aligned(("NAME", "TIME"), [("a", "1.5 ms"), ("long", "12 ms")])
    assert lines == ["NAME    TIME", "a     1.5 ms", "long   12 ms"]


def test_a_table_is_plain_text_in_a_pipe_and_boxed_on_a_terminal() -> None:
    shown, out, _ = make()
    shown.table(("A", "B"), [("x[red]", "1")])
    assert out.getvalue() == "A       B\nx[red]  1\n"
    shown, out, _ = make(terminal=True)
    shown.table(("A", "B"), [("x[red]", "1")])
    assert "x[red]" in out.getvalue()
    assert "┃" in out.getvalue()


def test_json_says_one_object_a_line_and_no_table() -> None:
    shown, out, err = make(as_json=True)
    shown.event("sample", value=np.float32(1.5))
    shown.line("text")
    shown.table(("A",), [("x",)])
    with shown.task("work") as task:
        task.say("doing")
    shown.result({"done": True})
    lines: list[Any] = [json.loads(line) for line in out.getvalue().splitlines()]
    assert lines == [{"event": "sample", "value": 1.5}, {"done": True}]
    assert err.getvalue() == ""


def test_progress_is_plain_lines_in_a_pipe() -> None:
    shown, out, err = make()
    with shown.task("work") as task:
        task.say("one")
        task.begin("more")
    assert err.getvalue().splitlines() == ["work", "one", "more"]
    assert out.getvalue() == ""


def test_what_was_done_stays_on_a_terminal() -> None:
    shown, _, err = make(terminal=True)
    with shown.task("work [bold]") as task:
        task.step("half")
        task.say("row [1]")
    assert "row [1]" in err.getvalue()


def test_steps_that_come_too_fast_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    said: list[str] = []
    task = Task("work", said.append, said.append, interval_s=1.0)
    task.step("a")
    now[0] = 1.0
    task.step("b")
    task.step("c")
    assert said == ["work", "work: b"]


def test_words_in_capitals_stand_among_numbers() -> None:
    lines = aligned(("HOP",), [("FAILS",), ("3 ms",), ("-",)])
    assert lines == ["  HOP", "FAILS", " 3 ms", "    -"]


@pytest.mark.parametrize(("columns", "lined"), [(80, True), (30, False)])
def test_a_table_too_wide_for_the_terminal_loses_its_lines(
    monkeypatch: pytest.MonkeyPatch, columns: int, lined: bool
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    output, out, _ = make(terminal=True)
    output.table(("DEVICE", "WORKLOAD"), [("emulated-armv7", "matmul_128")])
    text = out.getvalue()
    assert ("┃" in text) is lined
    assert "emulated-armv7" in text
    assert "matmul_128" in text
