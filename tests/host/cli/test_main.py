"""The door: exit statuses, one-line errors, and what is told to programs."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from farbench.cli.group import COMMANDS
from farbench.cli.output import Output

if TYPE_CHECKING:
    from tests.host.cli.conftest import Run


def test_without_a_command_the_help_is_shown(run: Run) -> None:
    said = run()
    assert said.status == 2
    assert "Commands" in said.err


def test_version(run: Run) -> None:
    said = run("--version")
    assert (said.status, said.err) == (0, "")
    assert "farbench" in said.out


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_has_help_and_json(run: Run, command: str) -> None:
    said = run(command, "--help")
    assert said.status == 0
    assert "--json" in said.out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("benhc",), "did you mean bench"),
        (("bench",), "FILE.so"),
        (("bench", "none.so"), "no file none.so"),
        (("bench", "x.so", "--repeat", "0"), "repeat"),
        (("devices", "--tracker", "host:port"), "port 'port'"),
        (("tracker", "--port", "70000"), "70000"),
        (("demo", "--report", "/none/at/all.html"), "no folder"),
        (("clean", "everything"), "no cache 'everything'"),
        (("bench", "x.so", "--wait", "3", "--no-wait"), "no file"),
    ],
)
def test_bad_use_ends_with_2_and_one_line(run: Run, words: tuple[str, ...], says: str) -> None:
    said = run(*words)
    assert said.status == 2
    assert says in said.err
    assert len(said.err.splitlines()) == 1
    assert "Traceback" not in said.err


@pytest.mark.linux
def test_n4_a_taken_port_is_one_line_and_1(run: Run, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        listen = ("--listen", f"127.0.0.1:{port}", "--state", str(tmp_path))
        for words in (("tracker", "--port", port), ("device", "--tracker", "[::1]:9", *listen)):
            said = run(*words)
            assert said.status == 1
            assert f"port {port} is in use" in said.err
            assert len(said.err.splitlines()) == 1


def test_n5_an_unreachable_tracker_is_one_line_and_1(run: Run) -> None:
    said = run("devices", "--tracker", "127.0.0.1:1", "--json")
    assert said.status == 1
    assert "refused" in said.err
    assert said.last["error"]["code"] == "connect"


@pytest.mark.linux
@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["ctrl-c", "term"]
)
def test_a_tracker_ends_on_signals(number: signal.Signals, status: int) -> None:
    command = [sys.executable, "-m", "farbench.cli.main", "tracker", "--port", "0", "--json"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        # As a shell without job control starts what is put into the background.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    ) as server:
        assert server.stdout is not None
        assert '"listening"' in server.stdout.readline()
        server.send_signal(number)
        assert server.wait(20) == status


def test_what_others_wrote_is_shown_and_not_obeyed(capsys: pytest.CaptureFixture[str]) -> None:
    out = Output(as_json=False)
    out.table(("NAME",), [("\x1b[31mred\a\n\u202eleft",)])
    out.note("\x1b[2J gone")
    shown = capsys.readouterr()
    assert shown.out == "NAME\n\\x1b[31mred\\x07\\n\\u202eleft\n"
    assert shown.err == "\\x1b[2J gone\n"
