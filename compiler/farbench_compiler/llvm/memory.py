"""Loads and stores: contiguous, strided and scattered vectors, and those under a mask."""

from __future__ import annotations

from dataclasses import dataclass

from farbench_compiler.ir import poly as P
from farbench_compiler.ir.dtypes import BOOL, DType
from farbench_compiler.ir.expr import Buffer, Expr, IntImm, Ramp
from farbench_compiler.llvm.code import Code
from farbench_compiler.llvm.types import constant, memory_type, value_type

_OVERLAPPING = range(2, 5)  # strides that whole loads and shuffles serve better than single loads


@dataclass(frozen=True, slots=True)
class Place:
    """Where a vector access lies: the address of the first lane, and how the others follow.

    `step` is the stride where it is a constant; `lanes` the index of each lane from `pointer` on,
    where that is needed.
    """

    buffer: Buffer
    first: str
    pointer: str
    step: int | None
    lanes: str
    alignment: int


class Memory:
    """Writes the accesses of one function; `word` is the type of an index."""

    def __init__(self, code: Code, word: str) -> None:
        self._code = code
        self._word = word
        self.fence = False

    def element(self, buffer: Buffer, pointer: str, index: str) -> str:
        """Give the address of an element."""
        if index == "0":
            return pointer
        kind = memory_type(buffer.dtype)
        offset = f"{self._word} {index}"
        return self._code.value(f"getelementptr inbounds {kind}, ptr {pointer}, {offset}")

    def load(self, buffer: Buffer, address: str) -> str:
        """Load one element."""
        kind = memory_type(buffer.dtype)
        value = self._code.value(f"load {kind}, ptr {address}, align {buffer.dtype.nbytes}")
        return self._from_memory(value, buffer.dtype)

    def store(self, buffer: Buffer, address: str, value: str) -> None:
        """Store one element."""
        kept = self._to_memory(value, buffer.dtype)
        kind = memory_type(buffer.dtype)
        self._code.emit(f"store {kind} {kept}, ptr {address}, align {buffer.dtype.nbytes}")

    def load_lanes(self, place: Place, of: DType, mask: str | None) -> str:
        """Load a vector; lanes that the mask leaves out are undefined."""
        if place.step == 1:
            return self._load_whole(place, of, mask)
        if place.step is None or mask is not None:
            return self._gather(place, of, mask)
        if place.step == -1:
            return self._load_reversed(place, of)
        if place.step in _OVERLAPPING and of.lanes >= place.step:
            return self._load_overlapping(place, of, place.step)
        return self._load_each(place, of, place.step)

    def store_lanes(self, place: Place, value: str, of: DType, mask: str | None) -> None:
        """Store a vector; lanes that the mask leaves out are not written."""
        kept, kind = self._to_memory(value, of), memory_type(of)
        if place.step == 1 and mask is None:
            hint = self._nontemporal(place)
            text = f"store {kind} {kept}, ptr {place.first}, align {place.alignment}{hint}"
            self._code.emit(text)
        elif place.step == 1:
            pointer = f"ptr align {place.alignment} {place.first}"
            self._masked("store", of, f"{kind} {kept}", pointer, mask)
        elif place.step is None or mask is not None:
            self._scatter(place, kept, of, mask)
        else:
            scalar = memory_type(of.scalar)
            for lane in range(of.lanes):
                one = self._code.value(f"extractelement {kind} {kept}, i32 {lane}")
                address = self._lane_address(place, lane * place.step)
                self._code.emit(f"store {scalar} {one}, ptr {address}, align {of.nbytes}")

    def _nontemporal(self, place: Place) -> str:
        """Give the hint for a store past the caches, which needs a fence at the function's end."""
        if not place.buffer.nontemporal:
            return ""
        self.fence = True
        return f", !nontemporal {self._code.module.nontemporal()}"

    def _load_whole(self, place: Place, of: DType, mask: str | None) -> str:
        address, kind = place.first, memory_type(of)
        if mask is None:
            value = self._code.value(f"load {kind}, ptr {address}, align {place.alignment}")
        else:
            name = f"llvm.masked.load.{self._suffix(of)}.p0"
            bits = value_type(BOOL.with_lanes(of.lanes))
            self._code.module.declare(name, kind, ("ptr", bits, kind))
            value = self._code.value(
                f"call {kind} @{name}(ptr align {place.alignment} {address}, {bits} {mask}, "
                f"{kind} zeroinitializer)"
            )
        return self._from_memory(value, of)

    def _masked(self, op: str, of: DType, value: str, address: str, mask: str | None) -> None:
        pointers = "p0" if op == "store" else f"v{of.lanes}p0"
        name = f"llvm.masked.{op}.{self._suffix(of)}.{pointers}"
        bits = value_type(BOOL.with_lanes(of.lanes))
        kinds = (memory_type(of), "ptr" if op == "store" else f"<{of.lanes} x ptr>", bits)
        self._code.module.declare(name, "void", kinds)
        given = mask or constant(1, BOOL.with_lanes(of.lanes))
        self._code.emit(f"call void @{name}({value}, {address}, {bits} {given})")

    @staticmethod
    def _suffix(of: DType) -> str:
        return f"v{of.lanes}" + (f"f{of.bits}" if of.kind == "float" else f"i{8 * of.nbytes}")

    def _load_reversed(self, place: Place, of: DType) -> str:
        kind, last = memory_type(of), of.lanes - 1
        address = self._lane_address(place, -last)
        value = self._code.value(f"load {kind}, ptr {address}, align {of.nbytes}")
        order = range(last, -1, -1)
        return self._from_memory(self._shuffle(value, "poison", kind, order), of)

    def _load_overlapping(self, place: Place, of: DType, step: int) -> str:
        """Load all that lies between first and last lane, and no more, then pick the lanes."""
        kind, lanes = memory_type(of), of.lanes
        span = (lanes - 1) * step + 1
        result, taken = "poison", -1
        for part in range(step):
            start = min(part * lanes, span - lanes)
            address = self._lane_address(place, start)
            loaded = self._code.value(f"load {kind}, ptr {address}, align {of.nbytes}")
            last = (start + lanes - 1) // step
            order = [
                lane if lane <= taken else (lanes + lane * step - start if lane <= last else lane)
                for lane in range(lanes)
            ]
            result, taken = self._shuffle(result, loaded, kind, order), last
        return self._from_memory(result, of)

    def _shuffle(self, a: str, b: str, kind: str, order: range | list[int]) -> str:
        mask = ", ".join(f"i32 {lane}" for lane in order)
        return self._code.value(
            f"shufflevector {kind} {a}, {kind} {b}, <{len(order)} x i32> <{mask}>"
        )

    def _load_each(self, place: Place, of: DType, step: int) -> str:
        scalar, kind, result = memory_type(of.scalar), memory_type(of), "poison"
        for lane in range(of.lanes):
            address = self._lane_address(place, lane * step)
            one = self._code.value(f"load {scalar}, ptr {address}, align {of.nbytes}")
            result = self._code.value(f"insertelement {kind} {result}, {scalar} {one}, i32 {lane}")
        return self._from_memory(result, of)

    def _lane_address(self, place: Place, offset: int) -> str:
        if not offset:
            return place.first
        kind = memory_type(place.buffer.dtype)
        step = f"{self._word} {offset}"
        return self._code.value(f"getelementptr inbounds {kind}, ptr {place.first}, {step}")

    def _addresses(self, place: Place, of: DType) -> str:
        return self._code.value(
            f"getelementptr {memory_type(of.scalar)}, ptr {place.pointer}, "
            f"<{of.lanes} x {self._word}> {place.lanes}"
        )

    def _gather(self, place: Place, of: DType, mask: str | None) -> str:
        kind, pointers = memory_type(of), f"<{of.lanes} x ptr>"
        bits = value_type(BOOL.with_lanes(of.lanes))
        name = f"llvm.masked.gather.{self._suffix(of)}.v{of.lanes}p0"
        self._code.module.declare(name, kind, (pointers, bits, kind))
        given = mask or constant(1, BOOL.with_lanes(of.lanes))
        value = self._code.value(
            f"call {kind} @{name}({pointers} align {of.nbytes} {self._addresses(place, of)}, "
            f"{bits} {given}, {kind} zeroinitializer)"
        )
        return self._from_memory(value, of)

    def _scatter(self, place: Place, kept: str, of: DType, mask: str | None) -> None:
        pointers = f"<{of.lanes} x ptr> align {of.nbytes} {self._addresses(place, of)}"
        self._masked("scatter", of, f"{memory_type(of)} {kept}", pointers, mask)

    def _from_memory(self, value: str, of: DType) -> str:
        if not of.is_bool:
            return value
        kind = memory_type(of)
        return self._code.value(f"icmp ne {kind} {value}, {constant(0, DType('int', 8, of.lanes))}")

    def _to_memory(self, value: str, of: DType) -> str:
        if not of.is_bool:
            return value
        return self._code.value(f"zext {value_type(of)} {value} to {memory_type(of)}")


def alignment(buffer: Buffer, base: Expr) -> int:
    """Find the alignment in bytes of an element: that of the buffer where the index allows it."""
    step = P.multiple_of(P.of(base)) * buffer.dtype.nbytes
    if not step:
        return buffer.alignment
    return max(buffer.dtype.nbytes, min(buffer.alignment, step & -step))


def constant_step(index: Expr) -> int | None:
    """Give the stride of a ramp where it is a constant other than 0."""
    if isinstance(index, Ramp) and isinstance(index.stride, IntImm) and index.stride.value:
        return index.stride.value
    return None
