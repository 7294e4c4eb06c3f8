"""What the host's tests share: a library of odd kernels for each architecture, and connections."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import farbench as fb
from farbench.session import Session
from farbench.tracker import Tracker
from tests.support import hostile

HOSTILE_ARCH = {"native": "x86_64", "aarch64": "aarch64", "armv7": "armv7"}
LibraryOf = Callable[[str], Path]


@pytest.fixture(scope="session")
def library_of(tmp_path_factory: pytest.TempPathFactory) -> LibraryOf:
    """Give a function arch -> library of the kernels in tests/support/hostile.py."""
    folder = tmp_path_factory.mktemp("hostile")
    built: dict[str, Path] = {}

    def build(arch: str) -> Path:
        name = HOSTILE_ARCH.get(arch, arch)
        if name not in built:
            built[name] = hostile.build(name, folder)
        return built[name]

    return build


@pytest.fixture
def tracker_of(shared_fleet: Callable[[str], str]) -> Iterator[Callable[[str], Tracker]]:
    """Give a function arch -> tracker whose device of that name is up."""
    opened: list[Tracker] = []

    def connect(arch: str) -> Tracker:
        opened.append(fb.connect_tracker(shared_fleet(arch)))
        return opened[-1]

    yield connect
    for tracker in opened:
        tracker.close()


@pytest.fixture
def session(
    each_arch: str, tracker_of: Callable[[str], Tracker], library_of: LibraryOf
) -> Iterator[Session]:
    """A session on each user land, the library already uploaded as `hostile.so`."""
    tracker = tracker_of(each_arch)
    with tracker.request(f"name={each_arch}", timeout=60) as opened:
        opened.upload(library_of(each_arch), "hostile.so")
        yield opened
