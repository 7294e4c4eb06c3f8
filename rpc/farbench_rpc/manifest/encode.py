"""The manifest as bytes: msgpack of [[major, minor], {field: value}], bounded and typed.

Fields are only added within a major version, each with a default: an older reader passes over
fields of a newer minor version; within its own version it refuses what it does not know by name.
"""

from __future__ import annotations

import struct
from dataclasses import fields, is_dataclass
from typing import Any

import msgpack

from farbench_rpc.manifest import readers
from farbench_rpc.manifest.errors import ManifestError
from farbench_rpc.manifest.readers import At, Reader
from farbench_rpc.manifest.schema import (
    MAGIC,
    VERSION,
    Blob,
    Entry,
    Manifest,
    ScalarArg,
    TargetFacts,
    TensorArg,
)
from farbench_rpc.manifest.slots import DTYPES
from farbench_rpc.manifest.sound import check_sound

MAX_BYTES = 16 << 20
_MAX_ITEMS = 1 << 16
_HEAD = struct.Struct("<8sQ")

_NAME = readers.text(255, r"[^\x00-\x1f]+", "a name of printable characters")
_SYMBOL = readers.text(255, r"[A-Za-z_][A-Za-z0-9_.$]*", "a name as C or LLVM allows it")
_SHA256 = readers.text(64, r"[0-9a-f]{64}", "a SHA-256 in hexadecimal")
_SIZE = readers.integer(0, 2**63 - 1)
_DTYPE = readers.choice(*DTYPES)


def _power_of_two(value: object, at: At) -> int:
    number = readers.integer(1, 1 << 16)(value, at)
    if number & (number - 1):
        raise at.fail("a power of two", value)
    return number


_TENSOR = readers.record(
    TensorArg,
    {
        "name": _NAME,
        "dtype": _DTYPE,
        "shape": readers.sequence(readers.either(_SIZE, readers.text(512)), 32),
        "alignment": _power_of_two,
        "writable": readers.boolean,
    },
)
_SCALAR = readers.record(ScalarArg, {"name": _NAME, "dtype": _DTYPE})
_ARGS = readers.tagged("arg", {"tensor": _TENSOR, "scalar": _SCALAR})
_TAGS = {TensorArg: "tensor", ScalarArg: "scalar"}
_ENTRY = readers.record(
    Entry,
    {
        "name": _NAME,
        "symbol": _SYMBOL,
        "args": readers.sequence(_ARGS, 1024),
        "symbols": readers.sequence(_SYMBOL, 1024),
        "kind": readers.choice("function"),
        "workspace_bytes": _SIZE,
        "contracted": readers.boolean,
        "reassociated": readers.boolean,
        "fast_math": readers.boolean,
        "debug": readers.boolean,
    },
)
_TARGET = readers.record(
    TargetFacts,
    {
        "triple": _NAME,
        "arch": _NAME,
        "cpu": readers.text(255),
        "features": readers.sequence(_NAME, 2048),
        "device_kind": _NAME,
    },
)
_BLOB = readers.record(Blob, {"name": _NAME, "sha256": _SHA256, "nbytes": _SIZE})
_MANIFEST: Reader[Manifest] = readers.record(
    Manifest,
    {
        "entries": readers.sequence(_ENTRY, 4096),
        "target": _TARGET,
        "digest": _SHA256,
        "blobs": readers.sequence(_BLOB, _MAX_ITEMS),
        "abi": readers.integer(1, 1 << 16),
    },
)


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        plain = {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
        tag = _TAGS.get(type(value))
        return plain if tag is None else {"arg": tag, **plain}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def encode(manifest: Manifest) -> bytes:
    """Write a manifest; ManifestError if a reader would refuse it."""
    body = _plain(manifest)
    version = body.pop("version")
    try:
        data: bytes = msgpack.packb([version, body], use_bin_type=True)
    except (TypeError, OverflowError, ValueError) as cause:
        raise ManifestError(f"manifest: a field has a value of the wrong type ({cause})") from cause
    decode(data)
    return data


def decode(data: bytes | memoryview) -> Manifest:
    """Read a manifest; ManifestError says which field is wrong, or which version it has."""
    if len(data) > MAX_BYTES:
        raise ManifestError(f"manifest of {len(data)} bytes; the limit is {MAX_BYTES}")
    try:
        outer = msgpack.unpackb(
            data,
            raw=False,
            strict_map_key=True,
            object_pairs_hook=_no_duplicates,
            # Arrays are made at the length they claim, before their items are seen.
            max_array_len=_MAX_ITEMS,
            max_map_len=_MAX_ITEMS,
        )
    except ManifestError:
        raise
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as cause:
        raise ManifestError(f"manifest: damaged data ({type(cause).__name__})") from cause
    if not isinstance(outer, list) or len(outer) != 2:
        raise ManifestError("manifest: expected a version and a body")
    major, minor = _version(outer[0])
    manifest = _MANIFEST(outer[1], At("manifest", lenient=minor > VERSION[1]))
    check_sound(manifest)
    object.__setattr__(manifest, "version", (major, minor))
    return manifest


def _version(value: object) -> tuple[int, int]:
    pair = readers.sequence(readers.integer(0, 1 << 16), 2)(value, At("manifest.version"))
    if len(pair) != 2:
        raise ManifestError("manifest.version: expected two numbers")
    if pair[0] != VERSION[0]:
        ours = f"{VERSION[0]}.{VERSION[1]}"
        raise ManifestError(
            f"manifest of version {pair[0]}.{pair[1]}, this farbench reads {ours}: "
            "build the library again, or update the older side"
        )
    return pair[0], pair[1]


def _no_duplicates(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    plain = dict(pairs)
    if len(plain) != len(pairs):
        raise ManifestError("manifest: a field is given twice")
    return plain


def pack(manifest: Manifest) -> bytes:
    """Write the bytes of the data symbol: magic, length (8 bytes, little-endian), manifest."""
    body = encode(manifest)
    return _HEAD.pack(MAGIC, len(body)) + body


def unpack(data: bytes | memoryview) -> Manifest:
    """Read the bytes of the data symbol; what follows the stated length is ignored."""
    return decode(encoded_in(data))


def encoded_in(data: bytes | memoryview) -> bytes:
    """Give the manifest within the bytes of the data symbol, not read yet; ManifestError."""
    if len(data) < _HEAD.size:
        raise ManifestError("the library's manifest is cut short")
    magic, length = _HEAD.unpack_from(data)
    if magic != MAGIC:
        raise ManifestError("the library's manifest does not begin with its magic")
    if length > len(data) - _HEAD.size:
        raise ManifestError("the library's manifest is cut short")
    return bytes(data[_HEAD.size : _HEAD.size + length])
