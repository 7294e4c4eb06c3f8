"""How arrays and numbers get into a function: from the caller's slots, or through a closure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from farbench_compiler.ir.dtypes import DType
from farbench_compiler.ir.expr import Buffer, IntImm, Load, Var
from farbench_compiler.ir.interval import Interval
from farbench_compiler.ir.stmt import For, Prefetch, Store
from farbench_compiler.ir.visit import walk
from farbench_compiler.llvm.code import Code, Module
from farbench_compiler.llvm.exprs import Exprs
from farbench_compiler.llvm.types import value_type


@dataclass(frozen=True, slots=True)
class Number:
    """A variable from outside, the dtype it is held in and what is known of it."""

    var: Var
    held: DType
    known: Interval


@dataclass(frozen=True, slots=True)
class Captured:
    """What a function sees from outside, in the order of its arguments."""

    buffers: tuple[Buffer, ...]
    numbers: tuple[Number, ...]

    def types(self) -> tuple[str, ...]:
        """Give the types of the arguments behind the context."""
        pointers = ("ptr",) * len(self.buffers)
        return pointers + tuple(value_type(number.held) for number in self.numbers)

    def parameters(self) -> str:
        """Write the parameter list; arrays do not overlap and are aligned."""
        parts = ["ptr %ctx"]
        parts += [f"ptr {_attributes(b)} %b{at}" for at, b in enumerate(self.buffers)]
        parts += [f"{value_type(n.held)} %s{at}" for at, n in enumerate(self.numbers)]
        return ", ".join(parts)

    def write_part(self, module: Module, name: str) -> None:
        """Write what the pool calls: it opens the closure and calls `name` for a span."""
        code, kinds = Code(module), self.types()
        given = ["ptr %ctx"]
        for at, kind in enumerate(kinds):
            slot = code.value(
                f"getelementptr inbounds {{{', '.join(kinds)}}}, ptr %closure, i32 0, i32 {at}"
            )
            given.append(f"{kind} {code.value(f'load {kind}, ptr {slot}')}")
        arguments = ", ".join((*given, "i64 %begin", "i64 %end"))
        code.emit(f"ret i32 {code.value(f'call i32 @{name}({arguments})')}")
        code.finish(
            f"define internal i32 @{name}.part(ptr %ctx, ptr %closure, i64 %begin, i64 %end) "
            "nounwind"
        )


def _attributes(buffer: Buffer) -> str:
    text = f"noalias align {buffer.alignment}"
    (size,) = buffer.shape
    if isinstance(size, IntImm) and size.value > 0:
        text += f" dereferenceable({size.value * buffer.dtype.nbytes})"
    return text if buffer.writable else f"{text} readonly"


def write_unpacking(module: Module, symbol: str, body: str, seen: Captured) -> None:
    """Write the entry that the runtime calls: it unpacks its arguments and calls `body`."""
    code = Code(module)
    given = ["ptr %ctx"]
    for at in range(len(seen.buffers)):
        slot = code.value(f"getelementptr inbounds ptr, ptr %buffers, i32 {at}")
        given.append(f"ptr {code.value(f'load ptr, ptr {slot}')}")
    for at, number in enumerate(seen.numbers):
        slot = code.value(f"getelementptr inbounds i64, ptr %scalars, i32 {at}")
        given.append(f"{value_type(number.held)} {_from_slot(code, slot, number.held)}")
    arguments = ", ".join(given)
    code.emit(f"ret i32 {code.value(f'call i32 @{body}({arguments})')}")
    code.finish(f"define i32 @{symbol}(ptr %ctx, ptr %buffers, ptr %scalars) nounwind")


def _from_slot(code: Code, slot: str, of: DType) -> str:
    """Read a number from its 8-byte slot: integers are extended, a float's bits lie low."""
    whole = code.value(f"load i64, ptr {slot}")
    if of.kind == "float":
        bits = whole if of.bits == 64 else code.value(f"trunc i64 {whole} to i{of.bits}")
        return code.value(f"bitcast i{of.bits} {bits} to {value_type(of)}")
    return whole if of.bits == 64 else code.value(f"trunc i64 {whole} to {value_type(of)}")


def captured(
    loop: For, buffers: Mapping[int, Buffer], numbers: Mapping[int, Var], exprs: Exprs
) -> Captured:
    """Find what the body of a loop uses from outside, in the order of first use."""
    used_buffers: dict[int, Buffer] = {}
    used_numbers: dict[int, Number] = {}
    for node in walk(loop.body):
        if isinstance(node, (Load, Store, Prefetch)) and node.buffer.uid in buffers:
            used_buffers[node.buffer.uid] = buffers[node.buffer.uid]
        elif isinstance(node, Var) and node.uid in numbers:
            _, held, known = exprs.held(node)
            used_numbers[node.uid] = Number(node, held, known)
    return Captured(tuple(used_buffers.values()), tuple(used_numbers.values()))


def close_over(code: Code, seen: Captured, exprs: Exprs) -> str:
    """Write a closure on the stack and give its address."""
    kinds = seen.types()
    values = [exprs.pointers[b.uid] for b in seen.buffers]
    values += [exprs.held(n.var)[0] for n in seen.numbers]
    whole = f"{{{', '.join(kinds)}}}"
    closure = code.alloca(whole)
    for at, (kind, value) in enumerate(zip(kinds, values, strict=True)):
        slot = code.value(f"getelementptr inbounds {whole}, ptr {closure}, i32 0, i32 {at}")
        code.emit(f"store {kind} {value}, ptr {slot}")
    return closure
