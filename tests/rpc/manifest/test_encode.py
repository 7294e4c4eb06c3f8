"""Manifests as bytes: there and back, and what is refused."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farbench_rpc.manifest import (
    Entry,
    Manifest,
    ManifestError,
    ScalarArg,
    TargetFacts,
    TensorArg,
    decode,
    encode,
    pack,
    unpack,
)
from tests.rpc.manifest.strategies import manifests

TARGET = TargetFacts("x86_64-linux-gnu", "x86_64", "x86-64", ("sse2",))
ENTRY = Entry("f", "f", (TensorArg("A", "float32", ("n", 3), 64, True),), ("n",))
GOOD = Manifest((ENTRY,), TARGET, "0" * 64)


def body_of(manifest: Manifest) -> dict[str, Any]:
    body: dict[str, Any] = msgpack.unpackb(encode(manifest))[1]
    return body


def refused(body: object, version: tuple[int, int] = (1, 0)) -> str:
    with pytest.raises(ManifestError) as caught:
        decode(msgpack.packb([version, body]))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@given(manifests())
def test_there_and_back(manifest: Manifest) -> None:
    assert decode(encode(manifest)) == manifest
    assert unpack(pack(manifest) + b"what follows") == manifest


@given(st.binary(max_size=200))
def test_random_bytes_are_a_manifest_error(data: bytes) -> None:
    with pytest.raises(ManifestError):
        decode(data)
    with pytest.raises(ManifestError):
        unpack(data)


@given(st.data())
def test_damage_is_a_manifest_error_or_another_manifest(data: st.DataObject) -> None:
    raw = bytearray(encode(GOOD))
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ManifestError):
        decode(bytes(raw))


def test_unknown_field_is_refused_by_name() -> None:
    assert "'colour'" in refused(body_of(GOOD) | {"colour": 1})


def test_newer_minor_version_may_add_fields() -> None:
    newer = decode(msgpack.packb([(1, 9), body_of(GOOD) | {"colour": 1}]))
    assert newer == replace(GOOD, version=(1, 9))


def test_other_major_version_names_both() -> None:
    message = refused(body_of(GOOD), (2, 3))
    assert "2.3" in message
    assert "1.0" in message


def test_missing_field_is_named() -> None:
    body = body_of(GOOD)
    del body["digest"]
    assert "'digest' is missing" in refused(body)


def test_wrong_type_names_the_place() -> None:
    body = body_of(GOOD)
    body["entries"][0]["args"][0]["alignment"] = True
    assert "manifest.entries.0.args.0.alignment" in refused(body)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"entries": (ENTRY, ENTRY)}, "two of the entry names are 'f'"),
        ({"digest": "abc"}, "SHA-256"),
        ({"entries": (replace(ENTRY, symbols=("n", "m")),)}, "'m' stands alone in no"),
        ({"entries": (replace(ENTRY, symbols=()),)}, "'n' is none of its symbols"),
        ({"entries": (replace(ENTRY, symbol="a b"),)}, "a name as C"),
        (
            {"entries": (replace(ENTRY, args=(ScalarArg("n", "float32"),)),)},
            "is float32, not an integer",
        ),
        (
            {"entries": (replace(ENTRY, args=(TensorArg("A", "int4", ("n",), 64, True),)),)},
            "got 'int4'",
        ),
        (
            {"entries": (replace(ENTRY, args=(TensorArg("A", "int8", ("n",), 48, True),)),)},
            "a power of two",
        ),
    ],
)
def test_unsound_manifests_are_not_written(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ManifestError, match=said):
        encode(replace(GOOD, **change))
