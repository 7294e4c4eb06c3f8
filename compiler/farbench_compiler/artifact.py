"""What a build gives: objects and their manifest, linked into a library when it is wanted."""

from __future__ import annotations

import json
import os
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from farbench_compiler.errors import CompilerError, LinkError
from farbench_compiler.target import Target
from farbench_compiler.toolchain import Progress, data_object, link_shared
from farbench_rpc.manifest import SYMBOL, Manifest, ManifestError, decode, encode, pack

ARCHIVE_VERSION = 1
MAX_ARCHIVE_BYTES = 1 << 30
_NOTHING: Mapping[str, bytes] = {}
# What the zip module raises for damaged files, whatever byte is hit, and what their parts raise.
_UNREADABLE = (
    OSError, KeyError, ValueError, AttributeError, EOFError, RuntimeError, NotImplementedError,
    struct.error, zipfile.BadZipFile, zlib.error, CompilerError, ManifestError,
)  # fmt: skip


@dataclass(frozen=True)
class Artifact:
    """Compiled functions of one target.

    `objects` are relocatable and know nothing of the runtime but its context structure, so that
    they can also be linked into a program of their own. `assembler` gives assembly when asked;
    `keep` is told of the library once it is linked.
    """

    objects: tuple[bytes, ...]
    manifest: Manifest
    target: Target
    llvm_ir: str = ""
    assembler: Callable[[], str] | None = field(default=None, repr=False, compare=False)
    linked: bytes = field(default=b"", repr=False, compare=False)
    keep: Callable[[Artifact], None] | None = field(default=None, repr=False, compare=False)

    def link(self, progress: Progress | None = None) -> bytes:
        """Link the shared library that carries the manifest and the C runtime, once."""
        if not self.linked:
            own = data_object(SYMBOL, pack(self.manifest), self.target)
            linked = link_shared((*self.objects, own), self.target, progress)
            # What is remembered follows from the other fields.
            object.__setattr__(self, "linked", linked)
            if self.keep is not None:
                self.keep(self)
        return self.linked

    def export_library(
        self, path: str | os.PathLike[str], progress: Progress | None = None
    ) -> Path:
        """Write the library to `path`, and its objects and manifest beside it as `.fbo`.

        Both files are replaced as a whole or not at all. LinkError if they cannot be written.
        """
        final = Path(path)
        linked = self.link(progress)
        try:
            _write(final, lambda part: part.write_bytes(linked))
            _write(final.with_suffix(".fbo"), self._write_archive)
        except OSError as cause:
            raise LinkError(f"cannot write {final}: {cause.strerror or cause}") from cause
        return final

    def get_source(self, kind: str = "ll") -> str:
        """Show the code: `ll` (LLVM IR) or `asm`; CompilerError for what there is not."""
        if kind == "ll" and self.llvm_ir:
            return self.llvm_ir
        if kind == "asm" and self.assembler is not None:
            return self.assembler()
        raise CompilerError(f"no source of kind {kind!r} is kept here; kinds: ll, asm")

    def save(self, path: Path, key: str = "") -> None:
        """Write everything to one file, its library and source too; `read` gives it back.

        A `key` says whose it is.
        """
        more = {"library.so": self.linked, "source.ll": self.llvm_ir.encode(), "key": key.encode()}
        _write(path, lambda part: self._write_archive(part, more, zipfile.ZIP_STORED))

    def _write_archive(
        self, path: Path, more: Mapping[str, bytes] = _NOTHING, kind: int = zipfile.ZIP_DEFLATED
    ) -> None:
        head = {"farbench": ARCHIVE_VERSION, "target": self.target.text}
        with zipfile.ZipFile(path, "w", kind) as archive:
            for name, data in more.items():
                _add(archive, name, data)
            _add(archive, "head.json", json.dumps(head).encode())
            _add(archive, "manifest.msgpack", encode(self.manifest))
            for index, data in enumerate(self.objects):
                _add(archive, f"objects/{index}.o", data)

    @staticmethod
    def read(path: str | os.PathLike[str], key: str = "") -> Artifact:
        """Read an artifact back from its `.fbo` file; LinkError if it is not one, or not `key`'s.

        Without a key it may be anyone's.
        """
        name = Path(path).name
        try:
            with zipfile.ZipFile(path) as archive:
                if sum(info.file_size for info in archive.infolist()) > MAX_ARCHIVE_BYTES:
                    raise LinkError(f"{name} unpacks to more than {MAX_ARCHIVE_BYTES} bytes")
                head = json.loads(archive.read("head.json"))
                if head.get("farbench") != ARCHIVE_VERSION:
                    raise LinkError(f"{name} is of another version of farbench; build it again")
                if key and _member(archive, "key") != key.encode():
                    raise LinkError(f"{name} holds another program than its name says")
                manifest = decode(archive.read("manifest.msgpack"))
                count = sum(n.startswith("objects/") for n in archive.namelist())
                objects = tuple(archive.read(f"objects/{index}.o") for index in range(count))
                target = Target.parse(str(head["target"]))
                source = _member(archive, "source.ll").decode()
                linked = _member(archive, "library.so")
                return Artifact(objects, manifest, target, source, linked=linked)
        except _UNREADABLE as cause:
            raise LinkError(f"{name} is no archive of farbench objects: {cause}") from cause


def _member(archive: zipfile.ZipFile, name: str) -> bytes:
    """Read what only some archives have; empty where it is not there."""
    return archive.read(name) if name in archive.namelist() else b""


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    """Add a file with a fixed date, so that equal artifacts are equal files."""
    archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)


def _write(final: Path, write: Callable[[Path], object]) -> None:
    """Write a file beside its place and move it there, readable by all."""
    descriptor, name = tempfile.mkstemp(prefix=f".{final.name}.", dir=final.parent)
    os.close(descriptor)
    part = Path(name)
    try:
        write(part)
        part.chmod(0o644)
        part.replace(final)
    finally:
        part.unlink(missing_ok=True)
