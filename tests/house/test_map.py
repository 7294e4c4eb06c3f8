"""docs/map.md names every file of the house, and nothing that is not there."""

from __future__ import annotations

import re
from pathlib import Path

from tests.house._files import ROOT, WINGS, project_files

MAP = (ROOT / "docs/map.md").read_text(encoding="utf-8")
# Folders whose files are named one by one; tests are named by folder.
NAMED = (*WINGS, "benchmarks", "configs", "docker", "scripts")
NEEDS_NO_WORDS = frozenset({"py.typed", "__init__.py", "__main__.py"})


def named() -> set[str]:
    """Collect the paths of the map: `### folder/` sets the folder, `- `file`: ...` names one."""
    folder, found = "", set()
    for line in MAP.splitlines():
        if line.startswith("#"):
            head = re.match(r"#+ `([^`]+/)`", line)
            folder = head[1] if head else ""
        elif entry := re.match(r"- `([^`]+)`: \S.*\.$", line):
            found.add(folder + entry[1])
    return found


def words_needed(path: Path) -> bool:
    """Tell whether a file must be named; an empty __init__ or a marker need not."""
    if path.parts[0] not in NAMED:
        return False
    return path.name not in NEEDS_NO_WORDS


def test_every_file_is_named() -> None:
    wanted = {path.as_posix() for path in project_files() if words_needed(path)}
    assert sorted(wanted - named()) == []


def test_every_name_exists() -> None:
    assert [name for name in sorted(named()) if not (ROOT / name).exists()] == []


def test_every_test_folder_is_named() -> None:
    folders = {
        path.parent.as_posix() + "/"
        for path in project_files()
        if path.parts[0] == "tests" and path.name.startswith("test_")
    }
    assert sorted(folder for folder in folders if f"`{folder}`" not in MAP) == []


def test_each_file_is_one_line() -> None:
    lines = [line for line in MAP.splitlines() if line.startswith("- `")]
    assert [line for line in lines if not line.endswith(".")] == []
    assert len(lines) == len(set(lines))
