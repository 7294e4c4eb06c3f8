"""What the behaviours share: one fleet of real processes, and one user land at a time of it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from farbench.cli.main import main
from tests.behaviours.yard import Place, Yard


@pytest.fixture(scope="session")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    """The shared fleet; a test that ends or disturbs a device starts one of its own."""
    with contextlib.ExitStack() as stack:
        yield Yard(tmp_path_factory.mktemp("yard"), stack)


@pytest.fixture
def place(each_arch: str, yard: Yard) -> Place:
    """Each user land in turn, its device up."""
    found = Place(each_arch, yard)
    assert found.device.poll() is None
    return found


@pytest.fixture
def native(yard: Yard) -> Place:
    """This machine's own user land, for rows that do not depend on it."""
    found = Place("native", yard)
    assert found.device.poll() is None
    return found


@dataclass(frozen=True)
class Said:
    """What a command wrote, and its exit status."""

    status: int
    out: str
    err: str

    @property
    def last(self) -> Any:
        """The last line of stdout as JSON."""
        return json.loads(self.out.splitlines()[-1])


Run = Callable[..., Said]


@pytest.fixture
def farbench(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command line in this process."""

    def run(*words: object) -> Said:
        capsys.readouterr()
        status = main([str(word) for word in words])
        said = capsys.readouterr()
        return Said(status, said.out, said.err)

    return run
