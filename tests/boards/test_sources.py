"""The archive of a board is the one that this machine installs from."""

from __future__ import annotations

from pathlib import Path

import pytest

from farbench.boards.errors import BoardUnavailable
from farbench.boards.sources import (
    AptSource,
    choose_archive,
    parse_deb822,
    parse_one_line,
    read_os_release,
    read_sources,
)

DEBIAN = {"ID": "debian", "VERSION_CODENAME": "bookworm"}
UBUNTU = {"ID": "ubuntu", "VERSION_CODENAME": "noble"}
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"

DEB822 = f"""\
# what the image was made from
Types: deb deb-src
URIs: http://first.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: {KEYRING}

Types: deb
URIs: http://first.example/security
Suites: bookworm-security
Components: main
Signed-By: {KEYRING}

Enabled: no
Types: deb
URIs: http://off.example/debian
Suites: bookworm
Components: main
"""


def test_deb822_paragraphs() -> None:
    first, second = parse_deb822(DEB822)
    assert first == AptSource(
        "http://first.example/debian",
        ("bookworm", "bookworm-updates"),
        ("main", "contrib"),
        KEYRING,
    )
    assert second.suites == ("bookworm-security",)


def test_deb822_folded_fields_and_inline_key() -> None:
    text = "Types: deb\nURIs: http://a.example/debian\n http://b.example/debian\n"
    text += "Suites: sid\nComponents: main\nSigned-By:\n -----BEGIN PGP-----\n .\n abc\n"
    assert [source.uri for source in parse_deb822(text)] == [
        "http://a.example/debian",
        "http://b.example/debian",
    ]
    assert {source.signed_by for source in parse_deb822(text)} == {""}


def test_one_line_format() -> None:
    text = f"""
# deb http://commented.example/debian bookworm main
deb-src http://sources.example/debian bookworm main
deb [arch=amd64 signed-by={KEYRING}] http://one.example/debian bookworm main contrib # note
deb http://two.example/debian bookworm-updates main
"""
    one, two = parse_one_line(text)
    assert one == AptSource(
        "http://one.example/debian", ("bookworm",), ("main", "contrib"), KEYRING
    )
    assert (two.suites, two.signed_by) == (("bookworm-updates",), "")


def test_choice_skips_foreign_keyrings_pockets_and_other_suites() -> None:
    sources = [
        AptSource("http://tool.example/apt", ("bookworm",), ("main",), "/usr/share/tool.gpg"),
        AptSource("http://sec.example/debian", ("bookworm-security",), ("main",), KEYRING),
        AptSource("http://node.example", ("nodistro",), ("main",), KEYRING),
        AptSource("http://right.example/debian", ("bookworm-updates", "bookworm"), ("main",)),
    ]
    archive = choose_archive(DEBIAN, sources)
    assert (archive.uri, archive.suite, archive.components) == (
        "http://right.example/debian",
        "bookworm",
        ("main",),
    )


def test_apt_line_names_keyring() -> None:
    source = AptSource("http://right.example/debian", ("bookworm",), ("main",), KEYRING)
    line = choose_archive(DEBIAN, [source]).apt_line
    assert line == f"deb [signed-by={KEYRING}] http://right.example/debian bookworm main"


def test_ubuntu_derives_ports_from_its_archive() -> None:
    source = AptSource(
        "http://xx.archive.example.org/ubuntu/", ("noble", "noble-updates"), ("main",)
    )
    archive = choose_archive(UBUNTU, [source])
    assert archive.uri == "http://ports.example.org/ubuntu-ports"
    assert (archive.suite, archive.components) == ("noble", ("main", "universe"))


def test_ubuntu_prefers_a_ports_source() -> None:
    sources = [
        AptSource("http://archive.example.org/ubuntu", ("noble",), ("main",)),
        AptSource("http://mirror.example.net/ubuntu-ports", ("noble",), ("main",)),
    ]
    assert choose_archive(UBUNTU, sources).uri == "http://mirror.example.net/ubuntu-ports"


@pytest.mark.parametrize(
    ("os_release", "sources", "words"),
    [
        (DEBIAN, [], "no apt source of Debian bookworm"),
        (UBUNTU, [AptSource("http://m.example/u", ("noble",), ("main",))], "ports archive"),
        ({"ID": "fedora"}, [], "this machine is fedora"),
        ({}, [], "an unknown system"),
    ],
)
def test_no_archive_says_why(
    os_release: dict[str, str], sources: list[AptSource], words: str
) -> None:
    with pytest.raises(BoardUnavailable, match=words):
        choose_archive(os_release, sources)


def test_reads_both_formats_from_a_folder(tmp_path: Path) -> None:
    parts = tmp_path / "sources.list.d"
    parts.mkdir()
    (tmp_path / "sources.list").write_text("deb http://a.example/debian bookworm main\n")
    (parts / "b.list").write_text("deb http://b.example/debian bookworm main\n")
    (parts / "c.sources").write_text(DEB822)
    (parts / "ignored.save").write_text("deb http://z.example/debian bookworm main\n")
    uris = [source.uri for source in read_sources(tmp_path)]
    assert uris == [
        "http://a.example/debian",
        "http://b.example/debian",
        "http://first.example/debian",
        "http://first.example/security",
    ]


def test_os_release(tmp_path: Path) -> None:
    file = tmp_path / "os-release"
    file.write_text('ID=debian\nVERSION_CODENAME="bookworm"\n# note\n')
    assert read_os_release(file) == {"ID": "debian", "VERSION_CODENAME": "bookworm"}
    assert read_os_release(tmp_path / "absent") == {}
