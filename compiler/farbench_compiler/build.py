"""Build: from a schedule to an artifact, through lowering, passes and LLVM.

schedule -> lower -> passes.run -> llvm.emit -> Artifact (objects and their manifest)
"""

from __future__ import annotations

import gc
import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from farbench_compiler import passes
from farbench_compiler.artifact import Artifact
from farbench_compiler.build_cache import enabled, key_of, remember
from farbench_compiler.depth import of_any_depth
from farbench_compiler.errors import LoweringError
from farbench_compiler.ir.expr import Buffer, Cast, Expr, IntImm, Load, Var
from farbench_compiler.ir.printer import to_text
from farbench_compiler.ir.stmt import Allocate, For, LoopFunction
from farbench_compiler.ir.visit import map_children, substitute, walk
from farbench_compiler.llvm import emit, symbol_of
from farbench_compiler.lower import check_types, lower
from farbench_compiler.target import Target
from farbench_compiler.te.compute import UNNAMED
from farbench_compiler.te.schedule import Schedule
from farbench_compiler.te.tensor import Tensor
from farbench_compiler.toolchain import data_object
from farbench_rpc.manifest import Entry, Manifest, ScalarArg, TensorArg
from farbench_rpc.manifest.schema import Dim

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@of_any_depth
def build(
    sch: Schedule | LoopFunction | Sequence[LoopFunction],
    args: Sequence[Tensor | Var] | None = None,
    target: str | Target = "native",
    name: str = "main",
    *,
    cache: bool = True,
    debug: bool = False,
) -> Artifact:
    """Compile a schedule over its arguments; or functions that are lowered already.

    What was built before is taken from the cache, unless `cache` is False. A `debug` build stops a
    call at the first index outside of its array, division by zero or shift past the width.
    A CompilerError says which step refused the program: ScheduleError, LoweringError, TargetError.
    """
    if isinstance(sch, LoopFunction):
        return build_functions([sch], target, debug=debug)
    if isinstance(sch, Schedule):
        if args is None:
            raise LoweringError("build: give the arguments of the schedule, as in [A, B, C]")
        check_types(sch, args, name)
        chosen = Target.parse(target)  # a wrong target is told before any work
        key = key_of(sch, tuple(args), chosen, name, debug) if cache and enabled() else None

        def make() -> Artifact:
            with _collection_paused():
                return build_functions([lower(sch, args, name)], chosen, debug=debug)

        return remember(key, make)
    if not isinstance(sch, Sequence) or not all(isinstance(fn, LoopFunction) for fn in sch):
        raise LoweringError("build: give a schedule first, then its arguments as in [A, B, C]")
    return build_functions(sch, target, debug=debug)


@contextmanager
def _collection_paused() -> Iterator[None]:
    """Look for no cycles for a while: nodes have none, and the search takes 7 % of a build."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def build_functions(
    functions: Sequence[LoopFunction], target: str | Target = "native", *, debug: bool = False
) -> Artifact:
    """Compile lowered functions into one library; their names must differ."""
    chosen = Target.parse(target)
    _check_names(functions)
    ready = [passes.run(fn, chosen, debug=debug) for fn in functions]
    emitted = emit(ready, chosen)
    entries = tuple(
        _entry(fn, flat, chosen, debug) for fn, flat in zip(functions, ready, strict=True)
    )
    objects = (emitted.object, *constant_objects(ready, chosen))
    digest = hashlib.sha256(b"".join(objects)).hexdigest()
    manifest = Manifest(entries, chosen.facts, digest)
    return Artifact(objects, manifest, chosen, emitted.llvm_ir, lambda: emitted.assembly)


def constant_objects(functions: Sequence[LoopFunction], target: Target) -> list[bytes]:
    """Write an object for each constant; equal ones share theirs."""
    found = {constant.symbol: constant.data for fn in functions for constant in fn.constants}
    return [
        data_object(symbol, data, target, alignment=64, hidden=True)
        for symbol, data in found.items()
    ]


@of_any_depth
def lower_text(sch: Schedule, args: Sequence[Tensor | Var], name: str = "main") -> str:
    """Show the loops that a schedule becomes, before the target's passes."""
    return to_text(lower(sch, args, name))


def _check_names(functions: Sequence[LoopFunction]) -> None:
    if not functions:
        raise LoweringError("a library needs at least one function")
    names = [fn.name for fn in functions]
    for name in names:
        if not _NAME.fullmatch(name):
            raise LoweringError(f"{name!r} is no name for a function; use letters, digits and _")
        if names.count(name) > 1:
            raise LoweringError(f"two functions are called {name!r}; give each its own name")


def _entry(fn: LoopFunction, flat: LoopFunction, target: Target, debug: bool) -> Entry:
    fn = _unnamed_apart(fn)
    symbols = tuple(symbol.name for symbol in fn.symbols)
    names = [arg.name for arg in fn.args if isinstance(arg, Var) and arg not in fn.symbols]
    for name in (*symbols, *names):
        if [*symbols, *names].count(name) > 1:
            raise LoweringError(
                f"{fn.name}: two sizes or parameters are called {name!r}; give each its own name"
            )
    reductions = any(isinstance(n, For) and n.kind == "vectorized" for n in walk(flat.body))
    return Entry(
        name=fn.name,
        symbol=symbol_of(fn.name),
        args=tuple(_argument(arg) for arg in fn.args),
        symbols=symbols,
        workspace_bytes=_workspace_bytes(flat),
        reassociated=reductions,
        fast_math=target.fast_math,
        debug=debug,
    )


def _unnamed_apart(fn: LoopFunction) -> LoopFunction:
    """Number the sizes and parameters that were given no name, where there are several."""
    unnamed = [v for v in fn.scalars if v.name == UNNAMED]
    if len(unnamed) < 2:
        return fn
    numbered = {v: Var(f"{UNNAMED}_{i}", v.dtype) for i, v in enumerate(unnamed)}

    def renamed(arg: Buffer | Var) -> Buffer | Var:
        if isinstance(arg, Var):
            return numbered.get(arg, arg)
        return replace(arg, shape=tuple(substitute(n, numbered) for n in arg.shape))

    symbols = tuple(numbered.get(v, v) for v in fn.symbols)
    return replace(fn, args=tuple(map(renamed, fn.args)), symbols=symbols)


def _argument(arg: Buffer | Var) -> TensorArg | ScalarArg:
    if isinstance(arg, Var):
        return ScalarArg(arg.name, str(arg.dtype))
    shape = tuple(_dim(extent) for extent in arg.shape)
    return TensorArg(arg.name, str(arg.dtype), shape, arg.alignment, arg.writable)


def _dim(extent: Expr) -> Dim:
    plain = _without_casts(extent)
    return plain.value if isinstance(plain, IntImm) else to_text(plain)


def _without_casts(e: Expr) -> Expr:
    """Drop conversions between integers: a manifest's sizes are integers without a width."""
    e = map_children(e, _without_casts)
    if isinstance(e, Load):
        raise LoweringError(f"the size {to_text(e)} depends on data")
    return e.value if isinstance(e, Cast) and e.value.dtype.is_int else e


def _workspace_bytes(flat: LoopFunction) -> int:
    """Sum up what one thread takes at most where the sizes are constant."""
    total = 0
    for node in walk(flat.body):
        if isinstance(node, Allocate) and node.buffer.scope == "global":
            (size,) = node.buffer.shape
            total += size.value * node.buffer.dtype.nbytes if isinstance(size, IntImm) else 0
    return total
