"""Golden texts of the compiler's tests: `pytest tests/compiler --renew-golden` writes them anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"
RENEW = "--renew-golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the switch; it is known where tests/compiler is named on the command line."""
    parser.addoption(RENEW, action="store_true", help="write the compiler's golden texts anew")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a text with the golden one of a name, or write that."""
    renew = bool(request.config.getoption(RENEW, default=False))

    def check(name: str, text: str) -> None:
        path = GOLDEN / f"{name}.txt"
        if renew:
            path.write_text(text, encoding="utf-8")
        if not path.exists():
            pytest.fail(f"{path.name} does not exist; write it with {RENEW}")
        expected = path.read_text(encoding="utf-8")
        assert text == expected, f"{path.name} differs; if the new text is right, use {RENEW}"

    return check
