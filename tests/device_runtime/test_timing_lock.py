"""One timing job at a time on a machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from farbench_device_runtime.timing_lock import TimingLock

pytestmark = pytest.mark.linux


def test_excludes_and_hands_over(tmp_path: Path) -> None:
    one, other = TimingLock(tmp_path / "lock"), TimingLock(tmp_path / "lock")
    assert one.acquire()
    assert one.acquire()
    assert not other.acquire()
    one.release()
    assert other.acquire()
    other.release()
    other.release()


def test_a_link_is_not_followed_and_excludes_nobody(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "target")
    lock = TimingLock(tmp_path / "lock")
    assert lock.acquire()
    lock.release()
    assert not (tmp_path / "target").exists()
