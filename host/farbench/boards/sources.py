"""Read the package sources of this machine and choose the archive that holds a board's packages.

No address stands in farbench: the archive is the one that the machine itself installs from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from farbench.boards.errors import BoardUnavailable

_POCKETS = ("-updates", "-security", "-backports", "-proposed", "/updates")
_DEBIAN_ALIASES = frozenset({"stable", "testing", "unstable", "sid", "oldstable"})
_ONE_LINE = re.compile(r"^deb\s+(?:\[(?P<options>[^\]]*)\]\s+)?(?P<uri>\S+)\s+(?P<rest>.+)$")
_KEYRINGS = {
    "debian": "/usr/share/keyrings/debian-archive-keyring.gpg",
    "ubuntu": "/usr/share/keyrings/ubuntu-archive-keyring.gpg",
}


@dataclass(frozen=True, slots=True)
class AptSource:
    """One archive that apt installs from; `signed_by` is empty where it names no keyring."""

    uri: str
    suites: tuple[str, ...]
    components: tuple[str, ...]
    signed_by: str = ""


@dataclass(frozen=True, slots=True)
class Archive:
    """Where a board's packages come from: one suite of one archive and the keyring for it."""

    uri: str
    suite: str
    components: tuple[str, ...]
    keyring: str

    @property
    def apt_line(self) -> str:
        """The archive as one line of sources.list."""
        signed = f"[signed-by={self.keyring}] " if self.keyring else ""
        return f"deb {signed}{self.uri} {self.suite} {' '.join(self.components)}"


def parse_one_line(text: str) -> Iterator[AptSource]:
    """Parse the one-line format of sources.list (deb lines only)."""
    for line in text.splitlines():
        match = _ONE_LINE.match(line.split("#", 1)[0].strip())
        if match is None:
            continue
        options = dict(
            option.split("=", 1) for option in (match["options"] or "").split() if "=" in option
        )
        suite, *components = match["rest"].split()
        yield AptSource(match["uri"], (suite,), tuple(components), options.get("signed-by", ""))


def parse_deb822(text: str) -> Iterator[AptSource]:
    """Parse the paragraphs of a .sources file; disabled ones and those without `deb` are left."""
    for paragraph in re.split(r"\n\s*\n", text):
        fields = _fields(paragraph)
        if "deb" not in fields.get("types", "").split():
            continue
        if fields.get("enabled", "yes").lower() in ("no", "false", "0"):
            continue
        signed_by = fields.get("signed-by", "")
        # A key may stand in the file itself; then there is no keyring to point at.
        keyring = signed_by.split()[0] if signed_by.startswith("/") else ""
        suites, components = fields.get("suites", ""), fields.get("components", "")
        for uri in fields.get("uris", "").split():
            yield AptSource(uri, tuple(suites.split()), tuple(components.split()), keyring)


def _fields(paragraph: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    name = ""
    for line in paragraph.splitlines():
        if line.startswith("#"):
            continue
        if line[:1] in (" ", "\t") and name:
            fields[name] += " " + line.strip()
        elif ":" in line:
            name, _, value = line.partition(":")
            name = name.strip().lower()
            fields[name] = value.strip()
    return fields


def read_sources(etc_apt: Path = Path("/etc/apt")) -> list[AptSource]:
    """Read every source of this machine, in apt's order; an unreadable file counts as empty."""
    found: list[AptSource] = []
    lists = [etc_apt / "sources.list", *sorted((etc_apt / "sources.list.d").glob("*.list"))]
    for path in lists:
        found += parse_one_line(_text(path))
    for path in sorted((etc_apt / "sources.list.d").glob("*.sources")):
        found += parse_deb822(_text(path))
    return found


def read_os_release(path: Path = Path("/etc/os-release")) -> dict[str, str]:
    """Read os-release as a mapping; empty where there is none."""
    pairs = (line.split("=", 1) for line in _text(path).splitlines() if "=" in line)
    return {key.strip(): value.strip().strip("\"'") for key, value in pairs}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def choose_archive(os_release: Mapping[str, str], sources: Iterable[AptSource]) -> Archive:
    """Choose the archive of this machine's own release that holds foreign architectures.

    Raises BoardUnavailable on another system than Debian and Ubuntu, or without such a source.
    """
    system = os_release.get("ID", "an unknown system")
    codename = os_release.get("VERSION_CODENAME", "")
    if system == "debian":
        return _debian(codename, sources)
    if system == "ubuntu":
        return _ubuntu(codename, sources)
    raise BoardUnavailable(
        f"emulated boards need the package archive of Debian or Ubuntu; this machine is {system}"
    )


def _debian(codename: str, sources: Iterable[AptSource]) -> Archive:
    for source in sources:
        suite = _release_suite(source, _DEBIAN_ALIASES | {codename})
        foreign = source.signed_by and "debian-archive" not in source.signed_by
        if suite and not foreign:
            keyring = source.signed_by or _existing(_KEYRINGS["debian"])
            return Archive(source.uri, suite, ("main",), keyring)
    raise BoardUnavailable(
        f"no apt source of Debian {codename} with its main component and Debian's own keyring; "
        "add one to /etc/apt/sources.list"
    )


def _ubuntu(codename: str, sources: Iterable[AptSource]) -> Archive:
    """Find the ports archive: named by a source, or the neighbour of the main archive."""
    candidates = [source for source in sources if _release_suite(source, {codename})]
    ports = [source.uri for source in candidates if "ubuntu-ports" in source.uri]
    uris = ports or [uri for source in candidates if (uri := _ports_neighbour(source.uri))]
    if not uris:
        raise BoardUnavailable(
            f"no apt source leads to the ports archive of Ubuntu {codename}; add one for arm64"
        )
    keyring = _existing(_KEYRINGS["ubuntu"])
    return Archive(uris[0], codename, ("main", "universe"), keyring)


def _release_suite(source: AptSource, names: Iterable[str]) -> str:
    """Return the suite of `source` that is a whole release, not its updates; "" without one."""
    if "main" not in source.components:
        return ""
    wanted = set(names)
    whole = (suite for suite in source.suites if not suite.endswith(_POCKETS))
    return next((suite for suite in whole if suite in wanted), "")


def _ports_neighbour(uri: str) -> str:
    """Return `<ports.domain>/ubuntu-ports` for `<country.archive.domain>/ubuntu`, else ""."""
    parts = urlsplit(uri)
    labels = (parts.hostname or "").split(".")
    if "archive" not in labels or parts.path.strip("/") != "ubuntu":
        return ""
    domain = ".".join(["ports", *labels[labels.index("archive") + 1 :]])
    return urlunsplit((parts.scheme, domain, "/ubuntu-ports", "", ""))


def _existing(path: str) -> str:
    return path if Path(path).exists() else ""
