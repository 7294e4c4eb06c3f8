"""The cache: made once, whole or not at all, by one of several processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from farbench_compiler.toolchain import LinkError, cache_dir, cached, digest

MAKER = """
import sys
from pathlib import Path
from farbench_compiler.toolchain import cached

def make(part: Path) -> None:
    with open(sys.argv[1], "a") as log:
        log.write("made\\n")
    (part / "file").write_text("whole")

print((cached("shared/thing", make) / "file").read_text())
"""


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.linux
def test_the_folder_is_where_the_environment_says(tmp_path: Path) -> None:
    assert cache_dir() == tmp_path / "cache" / "farbench" / "toolchain"


def test_made_once() -> None:
    calls = []

    def make(part: Path) -> None:
        calls.append(part)
        (part / "file").write_text("x")

    first = cached("a/b", make)
    assert cached("a/b", make) == first
    assert len(calls) == 1
    assert (first / "file").read_text() == "x"


def test_what_fails_leaves_nothing() -> None:
    def make(part: Path) -> None:
        (part / "half").write_text("x")
        raise LinkError("interrupted")

    with pytest.raises(LinkError, match="interrupted"):
        cached("a/b", make)
    names = {path.name for path in (cache_dir() / "a").iterdir()}
    assert names <= {"b.lock"}


def test_a_cache_that_cannot_be_written_says_what_to_set(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file in the way")
    with pytest.raises(LinkError, match="set XDG_CACHE_HOME"):
        cached("a/b", lambda part: None)


def test_a_name_that_cannot_be_looked_up_says_what_to_set() -> None:
    with pytest.raises(LinkError, match="set XDG_CACHE_HOME"):
        cached("a" * 300, lambda part: None)


@pytest.mark.linux
def test_of_several_processes_one_makes_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = [sys.executable, "-c", MAKER, str(log)]
    makers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    said = [maker.communicate(timeout=60)[0].strip() for maker in makers]
    assert said == ["whole"] * 4
    assert log.read_text() == "made\n"


def test_digest_keeps_parts_apart() -> None:
    assert digest("ab", "c") != digest("a", "bc")
    assert digest("ab") == digest(b"ab")
