"""How a compiled library describes itself: schema, bytes, ELF, and checks against them.

The compiler writes manifests; device and host read them and check every call and load by them.
"""

from farbench_rpc.manifest.check import (
    Argument,
    ArrayFacts,
    Bound,
    bind,
    shared_memory,
    signature,
)
from farbench_rpc.manifest.dims import evaluate, resolve, symbols_of
from farbench_rpc.manifest.elf import (
    MACHINES,
    ElfFacts,
    read_elf,
    read_encoded,
    read_manifest,
    symbol_bytes,
)
from farbench_rpc.manifest.encode import decode, encode, pack, unpack
from farbench_rpc.manifest.errors import ArgumentError, ManifestError
from farbench_rpc.manifest.loadable import Machine, check_loadable, check_runnable, glibc_needed
from farbench_rpc.manifest.schema import (
    ABI_VERSION,
    MAGIC,
    SYMBOL,
    VERSION,
    Blob,
    Dim,
    Entry,
    EntryKind,
    Manifest,
    ScalarArg,
    TargetFacts,
    TensorArg,
)
from farbench_rpc.manifest.slots import DTYPES, from_wire, to_slot, to_wire

__all__ = [
    "ABI_VERSION",
    "DTYPES",
    "MACHINES",
    "MAGIC",
    "SYMBOL",
    "VERSION",
    "Argument",
    "ArgumentError",
    "ArrayFacts",
    "Blob",
    "Bound",
    "Dim",
    "ElfFacts",
    "Entry",
    "EntryKind",
    "Machine",
    "Manifest",
    "ManifestError",
    "ScalarArg",
    "TargetFacts",
    "TensorArg",
    "bind",
    "check_loadable",
    "check_runnable",
    "decode",
    "encode",
    "evaluate",
    "from_wire",
    "glibc_needed",
    "pack",
    "read_elf",
    "read_encoded",
    "read_manifest",
    "resolve",
    "shared_memory",
    "signature",
    "symbol_bytes",
    "symbols_of",
    "to_slot",
    "to_wire",
    "unpack",
]
