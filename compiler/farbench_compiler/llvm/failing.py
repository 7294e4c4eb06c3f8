"""How a debug build says what it found: text and numbers written into the context.

The code needs nothing but the context's layout, so that objects stay free of the runtime.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from farbench_compiler.llvm.code import Code, Module

_HEAD = "{ptr, ptr, ptr, ptr, i32, [256 x i8]}"  # fb_ctx up to the end of its text
_TEXT, _ROOM = 5, 256
_LONGEST_NUMBER = 20  # "-9223372036854775808"

# Writes a number in decimal digits at a place and gives the place behind it.
_NUMBER = """define internal ptr @fbk.number(ptr %at, i64 %number) noinline nounwind {
entry:
  %negative = icmp slt i64 %number, 0
  %opposite = sub i64 0, %number
  %size = select i1 %negative, i64 %opposite, i64 %number
  br i1 %negative, label %sign, label %first
sign:
  store i8 45, ptr %at
  %behind = getelementptr i8, ptr %at, i64 1
  br label %first
first:
  %begin = phi ptr [%at, %entry], [%behind, %sign]
  br label %find
find:
  %power = phi i64 [1, %first], [%larger, %grow]
  %high = udiv i64 %size, %power
  %enough = icmp ult i64 %high, 10
  br i1 %enough, label %digit, label %grow
grow:
  %larger = mul i64 %power, 10
  br label %find
digit:
  %place = phi ptr [%begin, %find], [%next, %digit]
  %left = phi i64 [%size, %find], [%rest, %digit]
  %scale = phi i64 [%power, %find], [%lower, %digit]
  %value = udiv i64 %left, %scale
  %rest = urem i64 %left, %scale
  %byte = trunc i64 %value to i8
  %letter = add i8 %byte, 48
  store i8 %letter, ptr %place
  %next = getelementptr i8, ptr %place, i64 1
  %lower = udiv i64 %scale, 10
  %done = icmp eq i64 %lower, 0
  br i1 %done, label %end, label %digit
end:
  ret ptr %next
}"""


Part = tuple[Literal["text", "number"], str]


def write_message(code: Code, message: Sequence[Part]) -> None:
    """Write texts as they are and numbers, which are i64 values, in decimal digits."""
    module = code.module
    at = code.value(f"getelementptr inbounds {_HEAD}, ptr %ctx, i32 0, i32 {_TEXT}, i32 0")
    room = _ROOM - 1
    for kind, part in message:
        if kind == "number":
            _declare_number(module)
            at = code.value(f"call ptr @fbk.number(ptr {at}, i64 {part})")
            room -= _LONGEST_NUMBER
            continue
        data = part.encode()[:room]
        room -= len(data)
        letters = "".join(f"\\{byte:02X}" for byte in data)
        code.emit(f'store [{len(data)} x i8] c"{letters}", ptr {at}')
        at = code.value(f"getelementptr i8, ptr {at}, i64 {len(data)}")
    code.emit(f"store i8 0, ptr {at}")


def _declare_number(module: Module) -> None:
    if module.first_use("fbk.number"):
        module.functions.append(_NUMBER)
