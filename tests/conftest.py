"""What every test shares: a deadline, skips that count as failures on demand, and a small fleet.

FARBENCH_REQUIRE_ALL=1 (set by .ci/run) turns every skip into a failure.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from farbench.boards import (
    Board,
    BoardUnavailable,
    DeviceOptions,
    DeviceProcess,
    ensure_board,
    start_device,
)

if TYPE_CHECKING:
    from farbench_tracker.service import TrackerServer

REQUIRE_ALL = os.environ.get("FARBENCH_REQUIRE_ALL", "") not in ("", "0")
DEADLINE_S = 120.0
# Fixtures may build a board or compile the C runtime for a target the first time.
SETUP_DEADLINE_S = 600.0
SLOW_DEADLINE_S = 4 * 3600.0
ARCHES = ("native", "aarch64", "armv7")


# ---------------------------------------------------------------- deadlines


@contextlib.contextmanager
def _deadline(seconds: float, what: str) -> Iterator[None]:
    """Fail the block after `seconds`; where no signal can be had, faulthandler alone watches."""
    if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def expire(_signal: int, _frame: object) -> None:
        pytest.fail(f"{what} took longer than {seconds:.0f} s", pytrace=True)

    before = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """Give the fixtures of a test their deadline."""
    with _deadline(SETUP_DEADLINE_S, f"the setup of {item.name}"):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Give a test its deadline: the marker's, else the default."""
    marker = item.get_closest_marker("deadline")
    default = SLOW_DEADLINE_S if item.get_closest_marker("slow") else DEADLINE_S
    with _deadline(marker.args[0] if marker else default, item.name):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Give the end of the fixtures its deadline."""
    with _deadline(DEADLINE_S, f"the teardown of {item.name}"):
        return (yield)


# ---------------------------------------------------------------- skips


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skip into a failure where every optional part is required."""
    report = yield
    if REQUIRE_ALL and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"required, but skipped: {_skip_reason(report.longrepr)}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Turn a skipped module into a failure where every optional part is required."""
    report = yield
    if REQUIRE_ALL and report.outcome == "skipped":
        report.outcome = "failed"
        report.longrepr = f"required, but skipped: {_skip_reason(report.longrepr)}"
    return report


def _skip_reason(longrepr: object) -> str:
    return str(longrepr[2]) if isinstance(longrepr, tuple) else str(longrepr)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs Linux or root where they are not."""
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    for item in items:
        linux = item.get_closest_marker("linux") or item.get_closest_marker("qemu")
        if linux and not sys.platform.startswith("linux"):
            item.add_marker(pytest.mark.skip(reason=f"needs Linux, this is {sys.platform}"))
        if item.get_closest_marker("root") and not root:
            item.add_marker(pytest.mark.skip(reason="needs the rights of root"))


# ---------------------------------------------------------------- boards and a fleet


def _board(arch: str) -> Board:
    try:
        return ensure_board(arch, progress=lambda line: print(line, file=sys.stderr))
    except BoardUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def board_aarch64() -> Board:
    """The emulated AArch64 board, or a skip that says what to install."""
    return _board("aarch64")


@pytest.fixture(scope="session")
def board_armv7() -> Board:
    """The emulated 32-bit ARM board, or a skip that says what to install."""
    return _board("armv7")


class Fleet:
    """A tracker on loopback and device servers of its own; everything ends with the fixture."""

    def __init__(self, folder: Path, stack: contextlib.ExitStack) -> None:
        from farbench_tracker.service import TrackerServer

        self._folder = folder
        self._stack = stack
        self._count = 0
        self.tracker: TrackerServer = TrackerServer("127.0.0.1", 0)
        self.tracker.start()
        stack.callback(self.tracker.close)

    @property
    def address(self) -> str:
        """The tracker's address as HOST:PORT."""
        return str(self.tracker.address)

    def start(self, arch: str = "native", name: str = "", **options: object) -> DeviceProcess:
        """Start a device server on `arch` ("native", "aarch64" or "armv7") and await it."""
        board = None if arch == "native" else _board(arch)
        self._count += 1
        name = name or f"{arch}-{self._count}"
        state = self._folder / f"{self._count}-{arch}"
        settings: dict[str, object] = {"emulated": board is not None, **options}
        device = start_device(
            board,
            DeviceOptions(self.address, state, name, **settings),  # type: ignore[arg-type]
        )
        self._stack.enter_context(device)
        return device


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """A tracker of this test's own, with no device yet: for tests that end or disturb things."""
    with contextlib.ExitStack() as stack:
        yield Fleet(tmp_path, stack)


@pytest.fixture(scope="session")
def shared_fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], str]]:
    """Give a function arch -> (tracker address); its device, named as its arch, starts once.

    For tests that lease a device and give it back whole.
    """
    with contextlib.ExitStack() as stack:
        fleet = Fleet(tmp_path_factory.mktemp("fleet"), stack)
        started: set[str] = set()

        def with_device(arch: str) -> str:
            if arch not in started:
                fleet.start(arch, name=arch)
                started.add(arch)
            return fleet.address

        yield with_device


@pytest.fixture(
    params=[
        pytest.param("native", marks=pytest.mark.linux),
        pytest.param("aarch64", marks=pytest.mark.qemu),
        pytest.param("armv7", marks=pytest.mark.qemu),
    ]
)
def each_arch(request: pytest.FixtureRequest) -> str:
    """Run a test once for each user land that this machine can have."""
    return str(request.param)
