"""Uploads: chunks in any order, digests, caps, names that stay inside, leftovers."""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from farbench_device_runtime.store import Store
from farbench_rpc.errors import InvalidArgument, NotFound, QuotaExceeded

CHUNK = 1024
Open = Callable[..., Store]


@pytest.fixture
def open_store(tmp_path: Path) -> Iterator[Open]:
    opened: list[Store] = []

    def make(limit: int = 10_000, floor: int = 0) -> Store:
        opened.append(Store(tmp_path / "store", CHUNK, 5000, limit, floor))
        return opened[-1]

    yield make
    for store in opened:
        store.close()


def content(nbytes: int, seed: int = 0) -> tuple[bytes, str]:
    data = random.Random(seed).randbytes(nbytes)
    return data, hashlib.sha256(data).hexdigest()


def send(store: Store, data: bytes, digest: str, order: Callable[[list[int]], None]) -> None:
    missing = [i for a, b in store.announce(digest, len(data)) for i in range(a, b)]
    order(missing)
    for index in missing:
        store.write(digest, index, data[index * CHUNK : (index + 1) * CHUNK])
    assert store.finish(digest) == ()


@pytest.mark.parametrize("nbytes", [1, CHUNK - 1, CHUNK, CHUNK + 1, 4 * CHUNK + 7])
@pytest.mark.parametrize("order", [list.sort, list.reverse, random.Random(3).shuffle])
def test_chunks_come_in_any_order(
    open_store: Open, nbytes: int, order: Callable[[list[int]], None]
) -> None:
    store = open_store()
    data, digest = content(nbytes)
    send(store, data, digest, order)
    assert Path(store.path(digest)).read_bytes() == data
    assert os.stat(store.path(digest)).st_mode & 0o777 == 0o400
    assert store.announce(digest, nbytes) == ()


def test_a_cut_upload_goes_on_where_it_stopped(open_store: Open) -> None:
    store = open_store()
    data, digest = content(4 * CHUNK)
    assert store.announce(digest, len(data)) == ((0, 4),)
    store.write(digest, 1, data[CHUNK : 2 * CHUNK])
    assert store.announce(digest, len(data)) == ((0, 1), (2, 4))
    assert store.finish(digest) == ((0, 1), (2, 4))
    store.write(digest, 1, data[CHUNK : 2 * CHUNK])
    send(store, data, digest, list.sort)


def test_a_wrong_digest_is_refused_and_forgotten(open_store: Open) -> None:
    store = open_store()
    data, digest = content(100)
    store.announce(digest, 100)
    store.write(digest, 0, bytes(100))
    with pytest.raises(InvalidArgument, match="digest"):
        store.finish(digest)
    assert list(store.folder.iterdir()) == []
    send(store, data, digest, list.sort)


def test_chunks_that_do_not_fit_are_refused(open_store: Open) -> None:
    store = open_store()
    _, digest = content(CHUNK + 5)
    store.announce(digest, CHUNK + 5)
    for index, nbytes in ((0, 5), (1, CHUNK), (2, 5), (-1, CHUNK), (0, CHUNK + 1), (1 << 70, 1)):
        with pytest.raises(InvalidArgument):
            store.write(digest, index, bytes(nbytes))
    with pytest.raises(NotFound):
        store.write("f" * 64, 0, b"x")
    with pytest.raises(NotFound):
        store.finish("f" * 64)
    with pytest.raises(InvalidArgument, match="before"):
        store.announce(digest, CHUNK)


@pytest.mark.parametrize("digest", ["", "x", "../" + "0" * 61, "0" * 63 + "/", "A" * 64, "0" * 65])
def test_n12_only_digests_become_names(open_store: Open, digest: str) -> None:
    with pytest.raises(InvalidArgument):
        open_store().announce(digest, 1)


def test_n12_a_link_in_the_way_is_not_followed(open_store: Open, tmp_path: Path) -> None:
    store = open_store()
    _, digest = content(10)
    (store.folder / f"{digest}.part").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="exists"):
        store.announce(digest, 10)
    assert not (tmp_path / "elsewhere").exists()


def test_sizes_are_capped(open_store: Open) -> None:
    store = open_store()
    for nbytes in (0, -1, 5001, 1 << 80):
        with pytest.raises(QuotaExceeded):
            store.announce("0" * 64, nbytes)
    with pytest.raises(QuotaExceeded, match="no room"):
        open_store(floor=1 << 60).announce("0" * 64, 10)


def test_s8_the_cache_is_bounded_and_the_oldest_goes(open_store: Open) -> None:
    store = open_store(limit=3000)
    digests: list[str] = []
    for seed in range(5):
        data, digest = content(1000, seed)
        send(store, data, digest, list.sort)
        digests.append(digest)
        store.announce(digests[0], 1000)
        store.trim()
    assert store.used == 3000
    assert store.announce(digests[0], 1000) == ()
    assert store.announce(digests[1], 1000) != ()


def test_a_file_in_use_stays(open_store: Open) -> None:
    store = open_store(limit=0)
    data, digest = content(100)
    store.announce(digest, 100)
    store.write(digest, 0, data)
    store.finish(digest)
    store.hold(digest)
    store.trim()
    assert store.announce(digest, 100) == ()
    store.release([digest])
    assert list(store.folder.iterdir()) == []


def test_a_restart_keeps_whole_files_and_drops_the_rest(open_store: Open) -> None:
    store = open_store()
    data, digest = content(100, 1)
    send(store, data, digest, list.sort)
    damaged, other = content(100, 2)
    send(store, damaged, other, list.sort)
    (store.folder / ("0" * 64 + ".part")).write_bytes(b"half")
    os.chmod(store.path(other), 0o600)
    Path(store.path(other)).write_bytes(bytes(100))
    again = open_store()
    assert sorted(path.name for path in again.folder.iterdir()) == sorted([digest, other])
    assert again.announce(digest, 100) == ()
    assert again.announce(other, 100) == ((0, 1),)


def test_many_begun_uploads_leave_a_bounded_trace(open_store: Open) -> None:
    store = open_store()
    for seed in range(50):
        store.announce(content(10, seed)[1], 10)
    assert len(list(store.folder.iterdir())) <= 16
    store.close()
    assert list(store.folder.iterdir()) == []


PASSING = "ab" * 32


def test_s8_what_was_cut_off_is_bounded_once_its_session_is_over(open_store: Open) -> None:
    store = open_store(limit=8 * CHUNK)
    kept: list[str] = []
    for seed in range(4):
        data, digest = content(2 * CHUNK, seed)
        store.announce(digest, len(data))
        store.write(digest, 0, data[:CHUNK])
        store.release(())
        kept.append(digest)
        parts = [name for name in os.listdir(store.folder) if name.endswith(".part")]
        assert sorted(parts) == sorted(f"{one}.part" for one in kept[-2:])
    # A quarter is for them, and whole files have the rest.
    for seed in range(10, 18):
        data, digest = content(CHUNK, seed)
        send(store, data, digest, list.sort)
        store.trim()
    assert store.used == 6 * CHUNK


def begin_ahead(store: Store, data: bytes, chunks: int) -> None:
    store.announce(PASSING, len(data))
    for index in range(chunks):
        store.write(PASSING, index, data[index * CHUNK : (index + 1) * CHUNK])


@pytest.mark.parametrize("ahead", [0, 2, 4])
def test_chunks_sent_under_a_passing_name_count(open_store: Open, ahead: int) -> None:
    store = open_store()
    data, digest = content(3 * CHUNK + 9)
    begin_ahead(store, data, ahead)
    missing = store.announce(digest, len(data), PASSING)
    assert missing == (((ahead, 4),) if ahead < 4 else ())
    for index in range(ahead, 4):
        store.write(digest, index, data[index * CHUNK : (index + 1) * CHUNK])
    if missing:
        store.finish(digest)
    assert Path(store.path(digest)).read_bytes() == data
    assert os.listdir(store.folder) == [digest]


def test_a_passing_name_is_dropped_where_the_file_is_here(open_store: Open) -> None:
    store = open_store()
    data, digest = content(3 * CHUNK)
    send(store, data, digest, list.sort)
    begin_ahead(store, data, 2)
    assert store.announce(digest, len(data), PASSING) == ()
    assert os.listdir(store.folder) == [digest]


def test_wrong_bytes_under_a_passing_name_are_refused(open_store: Open) -> None:
    store = open_store()
    data, digest = content(3 * CHUNK)
    begin_ahead(store, content(3 * CHUNK, seed=1)[0], 3)
    with pytest.raises(InvalidArgument, match="digest"):
        store.announce(digest, len(data), PASSING)
    assert os.listdir(store.folder) == []
    assert store.announce(digest, len(data), "../" * 8) == ((0, 3),)
