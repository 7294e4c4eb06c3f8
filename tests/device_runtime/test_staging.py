"""The window: slots, bounds, and a size that no worker can change."""

from __future__ import annotations

import os

import pytest

from farbench_device_runtime.staging import Window

pytestmark = pytest.mark.linux


def test_slots_are_shared_and_apart() -> None:
    with Window.create(3, 4096) as ours:
        theirs = Window(os.dup(ours.fd), 3, 4096)
        ours.slot(1, 4)[:] = b"abcd"
        assert bytes(theirs.slot(1, 4)) == b"abcd"
        assert bytes(theirs.slot(0, 4)) == bytes(4)
        theirs.close()


def test_slots_are_handed_out_once() -> None:
    with Window.create(2, 4096) as window:
        taken = {window.take(), window.take()}
        assert taken == {0, 1}
        assert window.take() is None
        window.give(1)
        assert window.free == 1
        assert window.take() == 1


@pytest.mark.parametrize(("slot", "nbytes"), [(2, 1), (-1, 1), (0, 4097), (0, -1)])
def test_nothing_outside_the_window(slot: int, nbytes: int) -> None:
    with Window.create(2, 4096) as window, pytest.raises(IndexError):
        window.slot(slot, nbytes)


def test_the_size_is_sealed() -> None:
    with Window.create(2, 4096) as window:
        for size in (0, 1 << 20):
            with pytest.raises(PermissionError):
                os.ftruncate(window.fd, size)


def test_close_gives_the_descriptor_back() -> None:
    before = set(os.listdir("/proc/self/fd"))
    for _ in range(50):
        Window.create(2, 4096).close()
    assert set(os.listdir("/proc/self/fd")) == before


def test_a_lent_slot_comes_back_when_its_view_is_let_go() -> None:
    with Window.create(2, 4096) as window:
        slot = window.take()
        assert slot is not None
        view = window.lend(slot, 4096)
        assert window.free == 1
        held = [view]
        del view
        assert window.free == 1
        held.clear()
        assert window.free == 2


def test_a_view_may_be_let_go_after_its_window() -> None:
    window = Window.create(1, 4096)
    slot = window.take()
    assert slot is not None
    view = window.lend(slot, 4096)
    window.close()
    del view
    assert window.free == 1
