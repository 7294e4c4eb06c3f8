"""Hypothesis strategies for sound manifests."""

from __future__ import annotations

from hypothesis import strategies as st

from farbench_rpc.manifest import (
    DTYPES,
    Blob,
    Entry,
    Manifest,
    ScalarArg,
    TargetFacts,
    TensorArg,
)

NAMES = st.from_regex(r"\A[A-Za-z_][A-Za-z0-9_]{0,12}\Z")
SHA256 = st.from_regex(r"\A[0-9a-f]{64}\Z")


@st.composite
def entries(draw: st.DrawFn, name: str) -> Entry:
    """Draw an entry whose symbols all stand alone in the first argument's shape."""
    symbols = tuple(draw(st.lists(NAMES.filter(lambda n: n not in ("min", "max")), max_size=3,
                                  unique=True)))  # fmt: skip
    dims = st.integers(0, 1 << 40)
    forms = st.sampled_from([f"{s} {tail}" for s in symbols for tail in ("+ 1", "* 2", "// 3")])
    sizes = st.one_of(dims, forms) if symbols else dims
    args: list[TensorArg | ScalarArg] = []
    if symbols:
        args.append(TensorArg("first", "float32", symbols, 64, False))
    for index in range(draw(st.integers(0, 3))):
        dtype = draw(st.sampled_from(sorted(DTYPES)))
        shape = tuple(draw(st.lists(sizes, max_size=4)))
        alignment = 2 ** draw(st.integers(0, 7))
        args.append(TensorArg(f"t{index}", dtype, shape, alignment, draw(st.booleans())))
    if draw(st.booleans()):
        args.append(ScalarArg("a scalar", draw(st.sampled_from(sorted(DTYPES)))))
    return Entry(name, f"fb_{name}", tuple(args), symbols, contracted=draw(st.booleans()))


@st.composite
def manifests(draw: st.DrawFn) -> Manifest:
    """Draw a sound manifest."""
    names = draw(st.lists(NAMES, max_size=3, unique=True))
    target = TargetFacts(
        "aarch64-linux-gnu", "aarch64", draw(NAMES), tuple(draw(st.lists(NAMES, max_size=4)))
    )
    blobs = tuple(
        Blob(name, draw(SHA256), draw(st.integers(0, 1 << 40)))
        for name in draw(st.lists(NAMES, max_size=2, unique=True))
    )
    return Manifest(tuple(draw(entries(n)) for n in names), target, draw(SHA256), blobs)
