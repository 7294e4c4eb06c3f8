"""What no file of the project may hold."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.house._files import ROOT, project_files, source_files

# Written in parts, so that this file passes its own test.
REGISTRIES = tuple(
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("debian", "org"),
        ("archive", "ubuntu", "com"),
        ("ports", "ubuntu", "com"),
        ("docker", "io"),
        ("ghcr", "io"),
        ("quay", "io"),
        ("anaconda", "org"),
    )
)
HOME_PATH = re.compile(r"(?<![\w.])/(?:home|root|Users|work|mnt)/[\w.]")
LINES_AT_MOST = 400
# The two vocabularies, of which design asks that each stands in one place.
VOCABULARIES = {
    "rpc/farbench_rpc/messages.py": 600,
    "compiler/farbench_compiler/ir/expr.py": 500,
}
BINARY = frozenset({".png", ".gz", ".zip", ".so", ".o", ".pyz", ".onnx"})


def text_of(path: Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def texts() -> list[Path]:
    return [path for path in project_files() if path.suffix not in BINARY]


def test_every_file_is_utf8_with_unix_line_ends() -> None:
    assert [str(path) for path in texts() if b"\r" in (ROOT / path).read_bytes()] == []
    assert all(text_of(path) is not None for path in texts())


@pytest.mark.parametrize("host", REGISTRIES)
def test_no_file_names_a_registry(host: str) -> None:
    assert [str(path) for path in texts() if host in text_of(path)] == []


def test_no_file_names_a_path_of_one_machine() -> None:
    found = {str(p): m[0] for p in texts() if (m := HOME_PATH.search(text_of(p)))}
    assert found == {}


def test_no_source_file_is_too_long_to_be_read() -> None:
    lengths = {str(p): text_of(p).count("\n") for p in source_files(".py", ".c", ".h")}
    long = {p: n for p, n in lengths.items() if n > VOCABULARIES.get(p, LINES_AT_MOST)}
    assert long == {}


def test_pins_are_names_and_versions_only() -> None:
    pin = re.compile(r"[A-Za-z0-9._-]+==[A-Za-z0-9.*+!_-]+( ; python_version (<|>=) \"3\.\d+\")?")
    for name in ("constraints.txt", "benchmarks/peers/requirements.txt"):
        lines = [line for line in text_of(Path(name)).splitlines() if not line.startswith("#")]
        assert [line for line in lines if not pin.fullmatch(line)] == []


def test_every_dependency_is_pinned() -> None:
    pinned = {
        line.partition("==")[0].lower().replace("_", "-")
        for line in text_of(Path("constraints.txt")).splitlines()
    }
    project = text_of(Path("pyproject.toml")).partition("[project.scripts]")[0]
    wanted = re.findall(r'"([A-Za-z0-9-]+)(?:>=|==)[^"]*"', project)
    assert wanted
    assert sorted({name.lower() for name in wanted} - pinned - {"requires-python"}) == []
