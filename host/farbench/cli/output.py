"""What a command shows: tables and progress for people, one JSON object a line for programs."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

from farbench.extras import load
from farbench.listing import aligned, is_numeric_column, printable

Show = Callable[[str], None]

_WIDEST = 10_000  # of any table, in characters
QUIET_S = 0.5  # plain progress lines of one task come no closer together than this


class Output:
    """Where a command speaks: results on stdout, progress and notes on stderr."""

    def __init__(
        self, as_json: bool, stdout: TextIO | None = None, stderr: TextIO | None = None
    ) -> None:
        self.as_json = as_json
        self._stdout = stdout if stdout is not None else sys.stdout
        self._stderr = stderr if stderr is not None else sys.stderr

    def line(self, text: str) -> None:
        """Say a line of the result to a person (nothing with --json)."""
        if not self.as_json:
            print(text, file=self._stdout, flush=True)

    def note(self, text: str) -> None:
        """Say what goes on, beside the result."""
        print(printable(text), file=self._stderr, flush=True)

    def event(self, kind: str, **fields: object) -> None:
        """Say one event to a program (nothing without --json)."""
        if self.as_json:
            self._json({"event": kind, **fields})

    def result(self, value: object) -> None:
        """Give the result to a program, as the last line (nothing without --json)."""
        if self.as_json:
            self._json(value)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Show rows to a person: boxed on a terminal, aligned plain text elsewhere."""
        if self.as_json:
            return
        cells = [["" if cell is None else printable(str(cell)) for cell in row] for row in rows]
        if self._stdout.isatty():
            self._boxed(columns, cells)
            return
        for text in aligned(columns, cells):
            print(text, file=self._stdout)
        self._stdout.flush()

    @contextmanager
    def task(self, title: str) -> Iterator[Task]:
        """Show one piece of long work: a spinner on a terminal, plain lines elsewhere."""
        if not self._stderr.isatty() or self.as_json:
            say = _silent if self.as_json else self.note
            yield Task(title, say, say)
            return
        console = load("rich.console").Console(file=self._stderr)
        # Text of a user's making must not be read as markup.
        as_text = load("rich.text").Text

        def plain(text: str) -> object:
            return as_text(printable(text))

        with console.status(plain(title)) as status:
            yield Task(
                title,
                lambda text: status.update(plain(text)),
                lambda text: console.print(plain(text)),
                interval_s=0.0,
            )

    def _json(self, value: object) -> None:
        print(json.dumps(value, default=_plain), file=self._stdout, flush=True)

    def _boxed(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        table = load("rich.table").Table()
        for index, column in enumerate(columns):
            numeric = is_numeric_column([row[index] for row in rows])
            table.add_column(column, justify="right" if numeric else "left", overflow="fold")
        for row in rows:
            table.add_row(*(load("rich.text").Text(cell) for cell in row))
        console = load("rich.console").Console(file=self._stdout)
        whole = console.measure(table, options=console.options.update(width=_WIDEST)).maximum
        if whole > console.width:
            # Without its lines a table is a quarter narrower, and fewer words are cut.
            table.box = load("rich.box").SIMPLE_HEAD
            table.show_edge, table.pad_edge, table.padding = False, False, (0, 1, 0, 0)
        console.print(table)


class Task:
    """Progress of one piece of work: `update` shows what is done now, `keep` what was done."""

    def __init__(self, title: str, update: Show, keep: Show, interval_s: float = QUIET_S) -> None:
        self._update = update
        self._keep = keep
        self._interval_s = interval_s
        self._said_at = float("-inf")
        self._title = ""
        self.begin(title)

    def begin(self, title: str) -> None:
        """Go on to another part of the work, and say so."""
        self._title = title
        self._said_at = time.monotonic()
        self._update(title)

    def step(self, text: str) -> None:
        """Say how far it is; lines that come too fast for plain text are left out."""
        now = time.monotonic()
        if now - self._said_at >= self._interval_s:
            self._said_at = now
            self._update(f"{self._title}: {text}")

    def say(self, text: str) -> None:
        """Say a line that stays."""
        self._said_at = time.monotonic()
        self._keep(text)


def _silent(text: str) -> None:
    """Say nothing: a program reads the events."""


def _plain(value: object) -> object:
    """Let JSON carry numpy scalars, paths and tuples of ours."""
    item = getattr(value, "item", None)
    return item() if callable(item) else str(value)
