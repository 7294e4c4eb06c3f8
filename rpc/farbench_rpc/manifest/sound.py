"""What must hold within a manifest beyond the types of its fields."""

from __future__ import annotations

from farbench_rpc.manifest.dims import symbols_of
from farbench_rpc.manifest.errors import ManifestError
from farbench_rpc.manifest.schema import Entry, Manifest, ScalarArg, TensorArg


def check_sound(manifest: Manifest) -> None:
    """Check that names are unique and that every size can be found from the arguments."""
    _unique("entry", [entry.name for entry in manifest.entries])
    _unique("blob", [blob.name for blob in manifest.blobs])
    for entry in manifest.entries:
        _check_entry(entry)


def _unique(what: str, names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ManifestError(f"manifest: two of the {what} names are {name!r}")
        seen.add(name)


def _check_entry(entry: Entry) -> None:
    _unique(f"{entry.name} symbol", list(entry.symbols))
    known = set(entry.symbols)
    numbers = {a.name for a in entry.args if isinstance(a, ScalarArg) and "int" in a.dtype}
    found: set[str] = set()
    for arg in entry.args:
        if isinstance(arg, ScalarArg):
            found.add(arg.name)
            if arg.name in known and not arg.dtype.startswith(("int", "uint")):
                raise ManifestError(
                    f"entry {entry.name!r}: size {arg.name!r} is {arg.dtype}, not an integer"
                )
        else:
            found |= _check_shape(entry, arg, known | numbers)
    for symbol in entry.symbols:
        if symbol not in found:
            raise ManifestError(
                f"entry {entry.name!r}: size {symbol!r} stands alone in no argument's shape, "
                "so that it cannot be found; pass it as an argument"
            )


def _check_shape(entry: Entry, arg: TensorArg, known: set[str]) -> set[str]:
    """Check one shape; give the names that it tells by a dimension of their own."""
    for dim in arg.shape:
        for name in symbols_of(dim) if isinstance(dim, str) else ():
            if name not in known:
                raise ManifestError(
                    f"entry {entry.name!r}: argument {arg.name!r} has a dimension {dim!r}, "
                    f"but {name!r} is none of its symbols"
                )
    return {dim for dim in arg.shape if isinstance(dim, str) and dim in known}
