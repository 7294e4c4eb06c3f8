"""ELF reading: real libraries are read, damaged ones are refused, never worse."""

from __future__ import annotations

import _ctypes
import contextlib
import struct
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from farbench_rpc.manifest import ManifestError, read_elf, read_manifest, symbol_bytes

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs ELF files of the system")


def a_library() -> Path:
    """Find a shared library that every Linux Python has, or the interpreter itself."""
    return Path(getattr(_ctypes, "__file__", None) or sys.executable)


@linux
def test_a_real_library() -> None:
    facts = read_elf(a_library())
    assert facts.type in ("shared", "executable")
    assert facts.endian == "little"
    assert any(name.startswith("libc.") for name in facts.needed)
    assert any("malloc" in name or "free" in name for name in facts.imports)
    assert facts.rpath == () or all(isinstance(path, str) for path in facts.rpath)


@linux
def test_no_manifest_is_said() -> None:
    with pytest.raises(ManifestError, match="carries no manifest"):
        read_manifest(a_library())
    assert symbol_bytes(a_library(), "no_such_symbol") is None


@linux
@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damaged_headers_are_refused_or_read(data: st.DataObject) -> None:
    raw = bytearray(a_library().read_bytes()[: 1 << 18])
    for _ in range(data.draw(st.integers(1, 6))):
        raw[data.draw(st.integers(4, 2048))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ManifestError):
        read_elf(bytes(raw[: data.draw(st.integers(0, len(raw)))]))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "empty"),
        (b"MZ" + bytes(100), "Windows PE"),
        (b"\xcf\xfa\xed\xfe" + bytes(100), "Mach-O"),
        (b"\x7fELF", "header is damaged"),
        (b"\x7fELF\x02\x02" + bytes(100), "big-endian"),
        (b"\x7fELF\x02\x01" + bytes(58) + b"\xff" * 40, ""),
    ],
)
def test_what_is_not_sound(data: bytes, said: str) -> None:
    if not said:
        assert read_elf(data).type == "unknown"
        return
    with pytest.raises(ManifestError, match=said):
        read_elf(data)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="cannot be read"):
        read_elf(tmp_path / "none.so")


def elf64(segments: list[tuple[int, int, int, int]], body: bytes) -> bytes:
    """Make a file with the given (type, offset, address, size) segments and a body at 0x200."""
    head = b"\x7fELF\x02\x01\x01" + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, len(segments), 0, 0, 0)
    for kind, offset, address, size in segments:
        head += struct.pack("<IIQQQQQQ", kind, 4, offset, address, address, size, size, 8)
    return head.ljust(0x200, b"\0") + body


def test_a_name_beyond_its_table_is_refused() -> None:
    dynamic = [(1, 999), (5, 0x280), (10, 8), (0, 0)]
    body = (
        b"".join(struct.pack("<QQ", *pair) for pair in dynamic).ljust(0x80, b"\0")
        + b"\0abc\0\0\0\0"
    )
    data = elf64([(1, 0, 0, 0x200 + len(body)), (2, 0x200, 0x200, 64)], body)
    with pytest.raises(ManifestError, match="outside of its table"):
        read_elf(data)


def test_a_segment_without_end_is_refused() -> None:
    data = elf64([(2, 0x200, 0x200, 1 << 60)], struct.pack("<QQ", 1, 1) * 4)
    with pytest.raises(ManifestError, match="cut short"):
        read_elf(data)


def test_an_offset_beyond_any_address_is_refused() -> None:
    data = bytearray(elf64([(1, 0, 0, 64)], b""))
    data[32:40] = b"\xff" * 8
    with pytest.raises(ManifestError, match="cut short"):
        read_elf(bytes(data))
