"""What an ELF file says of itself: machine, needs, versions, symbols. Hostile files are refused.

Reads what the loader reads (program headers and the dynamic section), never section headers, which
a file need not have. Little-endian, 32 and 64 bits. Offsets are checked and tables bounded.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from farbench_rpc.manifest.encode import decode, encoded_in
from farbench_rpc.manifest.errors import ManifestError
from farbench_rpc.manifest.schema import SYMBOL, Manifest

ARCHES = {62: "x86_64", 183: "aarch64", 40: "armv7", 243: "riscv64"}
MACHINES = {arch: number for number, arch in ARCHES.items()}
TYPES = {1: "relocatable", 2: "executable", 3: "shared", 4: "core"}
MAX_FILE_BYTES = 1 << 31
MAX_TABLE = 1 << 16

_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_NEEDED, _HASH, _STRTAB, _SYMTAB, _STRSZ = 1, 4, 5, 6, 10
_RPATH, _RUNPATH, _VERNEED, _VERNEEDNUM = 15, 29, 0x6FFFFFFE, 0x6FFFFFFF
_GNU_HASH = 0x6FFFFEF5


@dataclass(frozen=True)
class ElfFacts:
    """The facts of one ELF file; `arch` is empty for a machine that farbench does not know."""

    class_bits: int
    endian: str
    machine: int
    arch: str
    type: str
    flags: int
    interp: str
    soname: str
    needed: tuple[str, ...]
    rpath: tuple[str, ...]
    versions: tuple[str, ...]
    exports: tuple[str, ...]
    imports: tuple[str, ...]


@dataclass(frozen=True)
class _Symbol:
    name: str
    address: int
    size: int
    section: int
    hidden: bool


class _Elf:
    """A file's bytes with checked access to its parts."""

    def __init__(self, data: bytes, name: str) -> None:
        self.data = data
        self.name = name
        if data[:4] != b"\x7fELF":
            raise self.fail(f"not an ELF file (it is {_guess(data)})")
        if len(data) < 52 or data[4] not in (1, 2) or data[5] not in (1, 2):
            raise self.fail("the ELF header is damaged")
        if data[5] == 2:
            raise self.fail("a big-endian ELF file; farbench builds for little-endian machines")
        self.wide = data[4] == 2
        self.type, self.machine = self.read("<HH", 16)
        self.flags: int = self.read("<I", 48 if self.wide else 36)[0]

    def fail(self, why: str) -> ManifestError:
        return ManifestError(f"{self.name}: {why}")

    def read(self, layout: str, offset: int) -> tuple[int, ...]:
        try:
            return struct.unpack_from(layout, self.data, offset)
        except (struct.error, OverflowError) as cause:  # an offset beyond any address, too
            raise self.fail("the ELF file is cut short or damaged") from cause

    @cached_property
    def segments(self) -> list[tuple[int, int, int, int]]:
        """List (type, file offset, address, bytes in the file) of each program header."""
        offset = self.read("<Q", 32)[0] if self.wide else self.read("<I", 28)[0]
        size, count = self.read("<HH", 54 if self.wide else 42)
        if count and size != (56 if self.wide else 32):
            raise self.fail("the ELF program headers are damaged")
        found = []
        for at in range(offset, offset + size * count, size or 1):
            if self.wide:
                kind, _, start, address, _, nbytes = self.read("<IIQQQQ", at)
            else:
                kind, start, address, _, nbytes = self.read("<IIIII", at)
            found.append((kind, start, address, nbytes))
        return found

    def offset_of(self, address: int, nbytes: int = 1) -> int:
        """Find where loaded bytes lie in the file."""
        for kind, start, base, size in self.segments:
            if kind == _PT_LOAD and base <= address and address + nbytes <= base + size:
                return start + address - base
        raise self.fail("an ELF address points outside of the file")

    @cached_property
    def dynamic(self) -> list[tuple[int, int]]:
        """List the (tag, value) pairs of the dynamic section; empty without one."""
        for kind, start, _, nbytes in self.segments:
            if kind != _PT_DYNAMIC:
                continue
            width = 16 if self.wide else 8
            pairs = []
            for at in range(start, start + min(nbytes, MAX_TABLE * width) - width + 1, width):
                tag, value = self.read("<QQ" if self.wide else "<II", at)
                if tag == 0:
                    break
                pairs.append((tag, value))
            return pairs
        return []

    def tag(self, wanted: int) -> int | None:
        return next((value for tag, value in self.dynamic if tag == wanted), None)

    @cached_property
    def strings(self) -> tuple[int, int]:
        """The file range of the dynamic string table."""
        address, size = self.tag(_STRTAB), self.tag(_STRSZ)
        if address is None or not size:
            return 0, 0
        start = self.offset_of(address, size)
        return start, min(start + size, len(self.data))

    def string(self, index: int) -> str:
        start, end = self.strings
        stop = self.data.find(b"\0", start + index, end)
        if index < 0 or stop < 0 or stop - start - index > MAX_TABLE:
            raise self.fail("an ELF name points outside of its table")
        return self.data[start + index : stop].decode("utf-8", "replace")

    def names(self, tag: int) -> tuple[str, ...]:
        return tuple(self.string(value) for key, value in self.dynamic if key == tag)

    def interp(self) -> str:
        for kind, start, _, nbytes in self.segments:
            if kind == _PT_INTERP and nbytes <= 4096:
                raw = self.data[start : start + nbytes]
                return raw.rstrip(b"\0").decode("utf-8", "replace")
        return ""

    def versions(self) -> Iterator[str]:
        """Walk the names of the symbol versions that the file needs, such as `GLIBC_2.17`."""
        address, count = self.tag(_VERNEED), self.tag(_VERNEEDNUM)
        if address is None or count is None:
            return
        at = self.offset_of(address)
        budget = MAX_TABLE
        for _ in range(min(count, MAX_TABLE)):
            _, parts, _, first, following = self.read("<HHIII", at)
            part = at + first
            for _ in range(parts):
                budget -= 1
                if budget < 0:
                    raise self.fail("the ELF version table is too long")
                _, _, _, name, step = self.read("<IHHII", part)
                yield self.string(name)
                if not step:
                    break
                part += step
            if not following:
                return
            at += following

    def symbol_count(self) -> int:
        """Find how many dynamic symbols there are, from the hash tables."""
        address = self.tag(_HASH)
        if address is not None:
            return min(self.read("<II", self.offset_of(address, 8))[1], MAX_TABLE)
        address = self.tag(_GNU_HASH)
        return 0 if address is None else self._gnu_count(self.offset_of(address, 16))

    def _gnu_count(self, at: int) -> int:
        buckets, first, bloom, _ = self.read("<IIII", at)
        if buckets > MAX_TABLE or bloom > MAX_TABLE:
            raise self.fail("the ELF hash table is too large")
        table = at + 16 + bloom * (8 if self.wide else 4)
        last = max(self.read(f"<{buckets}I", table), default=0)
        if last < first:
            return min(first, MAX_TABLE)
        chain = table + 4 * buckets
        while last < MAX_TABLE and not self.read("<I", chain + 4 * (last - first))[0] & 1:
            last += 1
        return min(last + 1, MAX_TABLE)

    def symbols(self) -> Iterator[_Symbol]:
        """Walk the dynamic symbols."""
        address = self.tag(_SYMTAB)
        if address is None:
            return
        at = self.offset_of(address)
        for index in range(1, self.symbol_count()):
            if self.wide:
                name, _, other, section, value, size = self.read("<IBBHQQ", at + index * 24)
            else:
                name, value, size, _, other, section = self.read("<IIIBBH", at + index * 16)
            yield _Symbol(self.string(name), value, size, section, other & 3 in (1, 2))


def _guess(data: bytes) -> str:
    if data[:2] == b"MZ":
        return "a Windows PE file"
    if data[:4] in (b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe", b"\xca\xfe\xba\xbe"):
        return "a macOS Mach-O file"
    return "empty" if not data else f"something that begins with {data[:4]!r}"


def _open(source: str | os.PathLike[str] | bytes) -> _Elf:
    if isinstance(source, bytes):
        return _Elf(source, "library")
    path = os.fspath(source)
    name = os.path.basename(path)  # noqa: PTH119 - a Path would be made for this alone
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            if os.fstat(file.fileno()).st_size > MAX_FILE_BYTES:
                raise ManifestError(f"{name}: larger than {MAX_FILE_BYTES} bytes")
            return _Elf(file.read(), name)
    except OSError as cause:
        raise ManifestError(f"{name}: cannot be read: {cause.strerror}") from cause


def read_elf(source: str | os.PathLike[str] | bytes) -> ElfFacts:
    """Read the facts of a file or of its bytes; ManifestError where it is not sound ELF."""
    elf = _open(source)
    symbols = list(elf.symbols())
    return ElfFacts(
        class_bits=64 if elf.wide else 32,
        endian="little",
        machine=elf.machine,
        arch=ARCHES.get(elf.machine, ""),
        type=TYPES.get(elf.type, "unknown"),
        flags=elf.flags,
        interp=elf.interp(),
        soname=next(iter(elf.names(14)), ""),
        needed=elf.names(_NEEDED),
        rpath=elf.names(_RPATH) + elf.names(_RUNPATH),
        versions=tuple(sorted(set(elf.versions()))),
        exports=tuple(s.name for s in symbols if s.section and not s.hidden),
        imports=tuple(s.name for s in symbols if not s.section),
    )


def symbol_bytes(source: str | os.PathLike[str] | bytes, name: str) -> bytes | None:
    """Read the bytes of an exported data object; None if the file does not export it."""
    return _symbol_bytes(_open(source), name)


def _symbol_bytes(elf: _Elf, name: str) -> bytes | None:
    for symbol in elf.symbols():
        if symbol.section and symbol.name == name:
            start = elf.offset_of(symbol.address, symbol.size)
            data = elf.data[start : start + symbol.size]
            if len(data) != symbol.size:
                raise elf.fail(f"the symbol {name!r} lies outside of the file")
            return data
    return None


def read_manifest(source: str | os.PathLike[str] | bytes) -> Manifest:
    """Read the manifest that a library carries; ManifestError if it has none or a damaged one."""
    return decode(read_encoded(source))


def read_encoded(source: str | os.PathLike[str] | bytes) -> bytes:
    """Read the manifest that a library carries as bytes that `decode` takes; ManifestError."""
    elf = _open(source)
    data = _symbol_bytes(elf, SYMBOL)
    if data is None:
        raise elf.fail(f"it carries no manifest (no symbol {SYMBOL}); was it built by farbench?")
    return encoded_in(data)
