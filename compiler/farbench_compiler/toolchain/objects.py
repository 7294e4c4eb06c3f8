"""Relocatable objects: checked against a target, and written around a piece of data."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from farbench_compiler.errors import LinkError
from farbench_compiler.target import Target
from farbench_rpc.manifest import MACHINES, ManifestError, read_elf

# e_flags: RVC and the double-float ABI; EABI version 5 and hard float. The linker compares them.
_FLAGS = {"riscv64": 0x5, "armv7": 0x05000400}
_FOREIGN = {b"MZ": "Windows (PE)", b"\xcf\xfa\xed\xfe": "macOS (Mach-O)"}


def check_object(data: bytes, target: Target, name: str) -> None:
    """Refuse an object that is not for the target; LinkError names the flag that decides."""
    advice = f"build it with -mtriple={target.triple.replace('-unknown', '')}"
    for magic, system in _FOREIGN.items():
        if data.startswith(magic):
            raise LinkError(
                f"{name} is for {system}, the target is ELF for {target.arch}; {advice}"
            )
    try:
        facts = read_elf(data)
    except ManifestError as cause:
        raise LinkError(f"{name} is no object file ({cause}); {advice}") from cause
    if facts.machine != MACHINES[target.arch]:
        theirs = facts.arch or f"machine {facts.machine}"
        raise LinkError(f"{name} is for {theirs}, the target is {target.arch}; {advice}")
    if facts.type != "relocatable":
        raise LinkError(f"{name} is {facts.type}, not a relocatable object; give what llvm emits")
    if target.arch == "riscv64" and facts.flags & 0x6 != 0x4:
        raise LinkError(f"{name} has no double-float ABI, {target} needs it: build with lp64d")


def _strings(names: Sequence[str]) -> tuple[bytes, list[int]]:
    table = bytearray(b"\0")
    offsets = []
    for name in names:
        offsets.append(len(table))
        table += name.encode() + b"\0"
    return bytes(table), offsets


def data_object(
    symbol: str, data: bytes, target: Target, *, alignment: int = 8, hidden: bool = False
) -> bytes:
    """Write an object with one read-only data symbol; a hidden one stays inside its library.

    Its sections are: null, .rodata, .symtab, .strtab, .shstrtab and an empty .note.GNU-stack, which
    says that no executable stack is needed.
    """
    wide = target.pointer_bits == 64
    header_bytes, symbol_size = (64, 24) if wide else (52, 16)
    names, (symbol_name,) = _strings([symbol])
    labels, label = _strings([".rodata", ".symtab", ".strtab", ".shstrtab", ".note.GNU-stack"])
    seen = 2 if hidden else 0  # st_other: the visibility
    if wide:
        entry = struct.pack("<IBBHQQ", symbol_name, 0x11, seen, 1, 0, len(data))
    else:
        entry = struct.pack("<IIIBBH", symbol_name, 0, len(data), 0x11, seen, 1)
    symtab = bytes(symbol_size) + entry
    body = bytearray(header_bytes)
    offsets = []
    for part in (data, symtab, names, labels):
        body += bytes(-len(body) % (alignment if part is data else 8))
        offsets.append(len(body))
        body += part
    body += bytes(-len(body) % 8)
    layout = "<IIQQQQIIQQ" if wide else "<IIIIIIIIII"
    sections = bytes(struct.calcsize(layout))
    # name, type, flags, address, offset, size, link, info, alignment, entry size
    for row in (
        (label[0], 1, 2, 0, offsets[0], len(data), 0, 0, alignment, 0),
        (label[1], 2, 0, 0, offsets[1], len(symtab), 3, 1, 8, symbol_size),
        (label[2], 3, 0, 0, offsets[2], len(names), 0, 0, 1, 0),
        (label[3], 3, 0, 0, offsets[3], len(labels), 0, 0, 1, 0),
        (label[4], 1, 0, 0, len(body), 0, 0, 0, 1, 0),
    ):
        sections += struct.pack(layout, *row)
    body[:header_bytes] = _header(target, wide, len(body), struct.calcsize(layout))
    return bytes(body) + sections


def _header(target: Target, wide: bool, sections_at: int, section_size: int) -> bytes:
    ident = b"\x7fELF" + bytes([2 if wide else 1, 1, 1]) + bytes(9)
    layout = "<HHIQQQIHHHHHH" if wide else "<HHIIIIIHHHHHH"
    size = 64 if wide else 52
    flags = _FLAGS.get(target.arch, 0)
    rest = (size, 0, 0, section_size, 6, 4)
    return ident + struct.pack(layout, 1, MACHINES[target.arch], 1, 0, 0, sections_at, flags, *rest)
