"""Statements and functions of the loop IR as LLVM functions.

An entry unpacks the caller's arrays and slots and calls one internal function that has each array
as an argument of its own, so that LLVM knows their alignment and that they do not overlap. The
body of a parallel loop is such a function too, called by the pool through a closure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from farbench_compiler.errors import LoweringError
from farbench_compiler.ir.dtypes import INT64
from farbench_compiler.ir.expr import Binary, Buffer, Expr, IntImm, Load
from farbench_compiler.ir.interval import Interval
from farbench_compiler.ir.stmt import (
    Allocate,
    Evaluate,
    For,
    IfThen,
    Let,
    LoopFunction,
    Prefetch,
    Require,
    Seq,
    Stmt,
    Store,
)
from farbench_compiler.ir.structural import same
from farbench_compiler.llvm.code import Code, Module
from farbench_compiler.llvm.entry import Captured, Number, captured, close_over, write_unpacking
from farbench_compiler.llvm.exprs import Exprs, Rules
from farbench_compiler.llvm.failing import Part, write_message
from farbench_compiler.llvm.types import memory_type, value_type

MAX_LOCAL_BYTES = 256 << 10  # a thread's stack holds it many times over
_CONTEXT = "{ptr, ptr, ptr, ptr}"  # the head of fb_ctx: abi, parallel_for, workspace, release
_PARALLEL, _WORKSPACE, _RELEASE = 1, 2, 3
_FAILED = 1


def write_function(module: Module, fn: LoopFunction, symbol: str, rules: Rules) -> None:
    """Write an entry of the calling convention and the functions behind it."""
    sizes = Interval(0, None)
    numbers = tuple(
        Number(v, v.dtype, sizes if v in fn.symbols else Interval()) for v in fn.scalars
    )
    seen = Captured(fn.buffers, numbers)
    for constant in fn.constants:
        module.constant(constant.uid, constant.symbol, len(constant.data))
    write_unpacking(module, symbol, f"{symbol}.body", seen)
    _Function(module, f"{symbol}.body", seen, rules).write(fn.body)


@dataclass
class _Failure:
    """Where a failed call jumps to; `used` tells that some call does."""

    label: str
    used: bool = False


class _Function:
    """Writes one internal function: its arguments are the context and what it captured."""

    def __init__(self, module: Module, name: str, seen: Captured, rules: Rules) -> None:
        self._module = module
        self._name = name
        self._seen = seen
        self._rules = rules
        self._code = Code(module)
        self._exprs = Exprs(self._code, rules)
        self._word = value_type(self._exprs.word)
        self._failure = _Failure("failed")
        self._reduction = False
        self._bodies = 0
        self._buffers = {b.uid: b for b in seen.buffers}
        self._numbers = {number.var.uid: number.var for number in seen.numbers}
        self._exprs.pointers.update(module.constants)
        for at, buffer in enumerate(seen.buffers):
            self._exprs.pointers[buffer.uid] = f"%b{at}"
        for at, number in enumerate(seen.numbers):
            self._exprs.bind(number.var, f"%s{at}", number.held, number.known)

    def write(self, body: Stmt) -> None:
        """Write the whole function around a body."""
        self._stmt(body)
        self._finish("")

    def write_span(self, loop: For) -> None:
        """Write the iterations of a loop from the argument %begin to the argument %end."""
        ends = ["%begin", "%end"]
        if self._exprs.word.bits < 64:
            ends = [self._code.value(f"trunc i64 {end} to {self._word}") for end in ends]
        self._counted(loop, ends[0], ends[1], certain=False)
        self._finish(", i64 %begin, i64 %end")

    def _finish(self, span: str) -> None:
        if self._exprs.memory.fence:
            self._code.emit("fence seq_cst")  # whoever hears of the end sees what was written
        self._code.emit("ret i32 0")
        if self._failure.used:
            self._code.start(self._failure.label)
            self._code.emit(f"ret i32 {_FAILED}")
        header = f"define internal i32 @{self._name}({self._seen.parameters()}{span})"
        self._code.finish(f"{header} noinline nounwind")

    def _fail(self) -> str:
        """Give the label to jump to when a call failed."""
        self._failure.used = True
        return self._failure.label

    def _stmt(self, s: Stmt) -> None:
        _WRITERS[type(s)](self, s)

    def _seq(self, s: Seq) -> None:
        for part in s.stmts:
            self._stmt(part)

    def _loop(self, s: For) -> None:
        if s.kind == "parallel":
            self._parallel_loop(s)
            return
        begin = self._exprs.index(s.begin)
        end = self._exprs.index(_end(s))
        certain = isinstance(s.extent, IntImm) and s.extent.value > 0
        self._counted(s, begin, end, certain)

    def _counted(self, s: For, begin: str, end: str, certain: bool) -> None:
        """Write a loop from `begin` to `end`; `certain` tells that it runs at least once."""
        code, word = self._code, self._word
        body, done = code.label("loop"), code.label("done")
        if certain:
            code.jump(body)
        else:
            code.branch(code.value(f"icmp slt {word} {begin}, {end}"), body, done)
        before = code.block
        code.start(body)
        counter, following, phi = code.fresh(), code.fresh(), code.reserve()
        self._exprs.bind(s.var, counter, self._exprs.word, self._range(s))
        self._numbers[s.var.uid] = s.var
        outer, self._reduction = self._reduction, s.kind == "vectorized"
        with self._exprs.region():
            self._stmt(s.body)
        self._reduction = outer
        del self._numbers[s.var.uid]
        code.emit(f"{following} = add nsw {word} {counter}, 1")
        last = code.block
        code.fill(phi, f"{counter} = phi {word} [{begin}, %{before}], [{following}, %{last}]")
        again = code.value(f"icmp slt {word} {following}, {end}")
        code.emit(f"br i1 {again}, label %{body}, label %{done}")
        code.start(done)

    def _range(self, s: For) -> Interval:
        low, _ = self._exprs.bounds(s.begin)
        _, high = self._exprs.bounds(_end(s))
        return Interval(low, None if high is None else high - 1)

    def _parallel_loop(self, s: For) -> None:
        """Let the pool call a function of its own for parts of the loop."""
        self._bodies += 1
        name = f"{self._name}.{self._bodies}"
        seen = captured(s, self._buffers, self._numbers, self._exprs)
        closure = close_over(self._code, seen, self._exprs)
        begin, end = (self._exprs.value(e) for e in (s.begin, _end(s)))
        run = self._context_call(_PARALLEL)
        status = self._code.value(
            f"call i32 {run}(ptr %ctx, ptr @{name}.part, ptr {closure}, i64 {begin}, i64 {end})"
        )
        failed, going_on = self._code.value(f"icmp ne i32 {status}, 0"), self._code.label("ran")
        self._code.branch(failed, self._fail(), going_on)
        self._code.start(going_on)
        seen.write_part(self._module, name)
        _Function(self._module, name, seen, self._rules).write_span(s)

    def _store(self, s: Store) -> None:
        (index,) = s.indices
        exprs = self._exprs
        value = self._updated(s) if self._reduction else exprs.value(s.value)
        if index.dtype.lanes > 1:
            self._store_lanes(s, index, value)
        elif exprs.mask is None:
            self._store_one(s, value)
        else:
            self._guarded(exprs.any_lane(), lambda: self._store_one(s, value))

    def _store_lanes(self, s: Store, index: Expr, value: str) -> None:
        exprs, of = self._exprs, s.value.dtype
        mask = None if exprs.mask is None else exprs.mask[0]
        if mask is not None and s.buffer.scope == "local" and exprs.inside(s.buffer, index):
            # Memory of our own may be written where it is not meant, with what it held before:
            # without masked stores it goes to registers.
            place = exprs.place(s.buffer, index, masked=False)
            old = exprs.memory.load_lanes(place, of, None)
            value, mask = exprs.ops.select(mask, value, old, of), None
        place = exprs.place(s.buffer, index, masked=mask is not None)
        exprs.memory.store_lanes(place, value, of, mask)

    def _store_one(self, s: Store, value: str) -> None:
        address = self._exprs.address(s.buffer, s.indices[0])
        self._exprs.memory.store(s.buffer, address, value)

    def _updated(self, s: Store) -> str:
        """Write the update of a reduction that the schedule allows to be reordered."""
        old = Load(s.buffer, s.indices, s.buffer.dtype)
        update = s.value
        if isinstance(update, Binary) and any(same(old, e) for e in (update.a, update.b)):
            return self._exprs.binary(update, reassociate=True)
        return self._exprs.value(update)

    def _guarded(self, cond: str, then: Callable[[], None]) -> None:
        code = self._code
        yes, end = code.label("then"), code.label("end")
        code.branch(cond, yes, end)
        code.start(yes)
        with self._exprs.region():
            then()
        code.jump(end)
        code.start(end)

    def _branch(self, s: IfThen) -> None:
        cond, lanes = self._exprs.value(s.cond), s.cond.dtype.lanes
        if lanes > 1:
            self._masked(s, cond, lanes)
        elif s.otherwise is None:
            self._guarded(cond, lambda: self._stmt(s.then))
        else:
            self._two_ways(cond, s.then, s.otherwise)

    def _two_ways(self, cond: str, then: Stmt, otherwise: Stmt) -> None:
        code = self._code
        yes, no, end = (code.label(hint) for hint in ("then", "else", "end"))
        code.branch(cond, yes, no)
        for label, part in ((yes, then), (no, otherwise)):
            code.start(label)
            with self._exprs.region():
                self._stmt(part)
            code.jump(end)
        code.start(end)

    def _masked(self, s: IfThen, cond: str, lanes: int) -> None:
        def write(body: Stmt) -> str:
            self._stmt(body)
            return ""

        self._exprs.masked(cond, lanes, lambda: write(s.then))
        if s.otherwise is not None:
            otherwise = s.otherwise
            opposite = self._exprs.opposite(cond, lanes)
            self._exprs.masked(opposite, lanes, lambda: write(otherwise))

    def _let(self, s: Let) -> None:
        low, high = self._exprs.bounds(s.value)
        self._exprs.rebind(s.var, self._exprs.value(s.value), Interval(low, high))
        self._numbers[s.var.uid] = s.var
        self._stmt(s.body)
        del self._numbers[s.var.uid]

    def _evaluate(self, s: Evaluate) -> None:
        self._exprs.value(s.value)

    def _prefetch(self, s: Prefetch) -> None:
        pointer, at = self._exprs.pointers[s.buffer.uid], self._exprs.index(s.indices[0])
        # Not inbounds: the loop may look further ahead than the buffer reaches.
        element = f"getelementptr {memory_type(s.buffer.dtype)}, ptr {pointer}"
        address = self._code.value(f"{element}, {self._word} {at}")
        kinds = ("ptr", "i32", "i32", "i32")
        name = self._module.declare("llvm.prefetch.p0", "void", kinds)
        self._code.emit(f"call void @{name}(ptr {address}, i32 0, i32 3, i32 1)")  # read, keep

    def _require(self, s: Require) -> None:
        code, exprs = self._code, self._exprs
        holds = exprs.value(s.cond)
        broken, going_on = code.label("broken"), code.label("holds")
        code.branch(holds, going_on, broken)
        code.start(broken)
        with exprs.region():
            parts: list[Part] = [
                ("text", p) if isinstance(p, str) else ("number", exprs.value(p)) for p in s.message
            ]
            write_message(code, parts)
        code.jump(self._fail())
        code.start(going_on)

    def _allocate(self, s: Allocate) -> None:
        (size,) = s.buffer.shape
        self._buffers[s.buffer.uid] = s.buffer
        if s.buffer.scope == "local":
            self._exprs.pointers[s.buffer.uid] = self._code.alloca(self._stack(s.buffer, size))
            self._stmt(s.body)
        else:
            self._workspace(s.buffer, size, s.body)
        del self._buffers[s.buffer.uid]

    def _stack(self, buffer: Buffer, size: Expr) -> str:
        if not isinstance(size, IntImm) or size.value * buffer.dtype.nbytes > MAX_LOCAL_BYTES:
            raise LoweringError(
                f"{self._name}: the local buffer {buffer.name} does not fit the stack "
                f"({MAX_LOCAL_BYTES >> 10} KiB); keep it in scope global"
            )
        # What only a step that never runs would need may count less than nothing.
        return f"[{max(0, size.value)} x {memory_type(buffer.dtype)}], align {buffer.alignment}"

    def _context_call(self, slot: int) -> str:
        code = self._code
        address = code.value(f"getelementptr inbounds {_CONTEXT}, ptr %ctx, i32 0, i32 {slot}")
        return code.value(f"load ptr, ptr {address}, !invariant.load !{{}}")

    def _workspace(self, buffer: Buffer, size: Expr, body: Stmt) -> None:
        """Take memory from the workspace while the body runs; give it back on every path."""
        code = self._code
        # As on the stack: what only a step that never runs would need may count less than nothing.
        least = Binary("max", size, IntImm(0), INT64)
        count = self._exprs.value(Binary("mul", least, IntImm(buffer.dtype.nbytes), INT64))
        take = self._context_call(_WORKSPACE)
        pointer = code.value(f"call noalias align 64 ptr {take}(ptr %ctx, i64 {count})")
        given, done = code.label("given"), code.label("done")
        code.branch(code.value(f"icmp eq ptr {pointer}, null"), self._fail(), given)
        code.start(given)
        self._exprs.pointers[buffer.uid] = pointer
        outer, self._failure = self._failure, _Failure(code.label("failed"))
        self._stmt(body)
        inner, self._failure = self._failure, outer
        self._release(pointer)
        code.jump(done)
        if inner.used:
            code.start(inner.label)
            self._release(pointer)
            code.jump(self._fail())
        code.start(done)

    def _release(self, pointer: str) -> None:
        give = self._context_call(_RELEASE)
        self._code.emit(f"call void {give}(ptr %ctx, ptr {pointer})")


def _end(s: For) -> Expr:
    if isinstance(s.begin, IntImm) and isinstance(s.extent, IntImm):
        return IntImm(s.begin.value + s.extent.value, s.extent.dtype)
    if isinstance(s.begin, IntImm) and s.begin.value == 0:
        return s.extent
    return Binary("add", s.begin, s.extent, s.extent.dtype)


_WRITERS: dict[type[Stmt], Callable[..., None]] = {
    For: _Function._loop,
    Store: _Function._store,
    IfThen: _Function._branch,
    Seq: _Function._seq,
    Allocate: _Function._allocate,
    Let: _Function._let,
    Evaluate: _Function._evaluate,
    Prefetch: _Function._prefetch,
    Require: _Function._require,
}
