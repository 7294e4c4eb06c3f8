"""How many programs the long run takes."""

from __future__ import annotations

import pytest

COUNT = "--fuzz-programs"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option; it is known where tests/compiler/fuzz is named on the command line."""
    parser.addoption(COUNT, type=int, default=20_000, help="programs of the fuzzer's long run")


@pytest.fixture
def fuzz_programs(request: pytest.FixtureRequest) -> int:
    """How many programs the long run takes (20,000 unless the option says another number)."""
    return int(request.config.getoption(COUNT, default=20_000))
