"""Loop functions to machine code, in three rooms: types, expressions, functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from farbench_compiler.ir.stmt import For, LoopFunction, Store
from farbench_compiler.ir.visit import walk
from farbench_compiler.llvm.code import Module
from farbench_compiler.llvm.exprs import Rules
from farbench_compiler.llvm.functions import write_function
from farbench_compiler.llvm.machine import Part, assembly, compile_parts
from farbench_compiler.target import Target


@dataclass(frozen=True)
class Emitted:
    """A relocatable object, the optimised LLVM IR that it was made from, and its assembly."""

    object: bytes
    llvm_ir: str
    target: Target

    @cached_property
    def assembly(self) -> str:
        """The target's assembly (printed when first asked for)."""
        return assembly(self.llvm_ir, self.target)


def symbol_of(name: str) -> str:
    """Give the symbol of a function: prefixed, so that it never hides one of the C library."""
    return f"fbk_{name}"


def emit(functions: Sequence[LoopFunction], target: Target) -> Emitted:
    """Compile functions that all passes have run over into one object; LoweringError if LLVM fails.

    Each becomes a symbol `symbol_of(name)` with the calling convention of `farbench.h`.
    """
    rules = Rules(
        word_bits=target.pointer_bits,
        wide_halves=target.arch == "aarch64",
        fuse_vectors=target.arch == "armv7" and target.has("vfp4"),
        fast_math=target.fast_math,
        features=frozenset(target.features),
    )
    modules: dict[bool, Module] = {}
    for fn in functions:
        search = _needs_vectors(fn)
        module = modules.setdefault(search, Module(features=rules.features))
        write_function(module, fn, symbol_of(fn.name), rules)
    parts = [
        Part(module.text(target.triple), search, inlines=bool(module.defined))
        for search, module in modules.items()
    ]
    compiled = compile_parts(parts, target)
    return Emitted(compiled.object, compiled.llvm_ir, target)


def _needs_vectors(fn: LoopFunction) -> bool:
    """Tell whether LLVM is to look for vectors, which takes half of a build.

    A schedule that vectorises says itself where they pay; reductions are left to LLVM as loops.
    """
    nodes = list(walk(fn.body))
    if any(isinstance(n, For) and n.kind == "vectorized" for n in nodes):
        return True
    return not any(isinstance(n, Store) and n.value.dtype.lanes > 1 for n in nodes)


__all__ = ["Emitted", "emit", "symbol_of"]
