"""What the device's tests share: the library of bad kernels, and a session in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from farbench_device_runtime import facts
from tests.support import hostile
from tests.support.direct import LocalSession


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library of bad kernels for this machine."""
    return hostile.build(facts.arch(), tmp_path_factory.mktemp("hostile"))


@pytest.fixture
def session() -> Iterator[LocalSession]:
    """A session with little memory: 192 MiB."""
    with LocalSession(192 << 20) as opened:
        yield opened
