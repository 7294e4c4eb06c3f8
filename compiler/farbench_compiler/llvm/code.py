"""The text of an LLVM module as it grows: instructions, blocks, functions, declarations."""

from __future__ import annotations

from dataclasses import dataclass, field

from farbench_compiler.ir.dtypes import DType
from farbench_compiler.llvm.types import mangled, value_type


@dataclass
class Module:
    """Finished functions, and what they call from outside."""

    functions: list[str] = field(default_factory=list)
    declarations: dict[str, str] = field(default_factory=dict)
    metadata: list[str] = field(default_factory=list)
    constants: dict[int, str] = field(default_factory=dict)
    defined: set[str] = field(default_factory=set)
    features: frozenset[str] = frozenset()
    _nontemporal: str = ""

    def declare(self, name: str, result: str, args: tuple[str, ...]) -> str:
        """Declare a function once and give its name."""
        self.declarations.setdefault(name, f"declare {result} @{name}({', '.join(args)})")
        return name

    def first_use(self, name: str) -> bool:
        """Tell whether a helper is asked for the first time: then it must be written."""
        known = name in self.defined
        self.defined.add(name)
        return not known

    def constant(self, uid: int, symbol: str, size: int) -> None:
        """Declare data of the library by its symbol; functions find it by the buffer's number."""
        self.constants[uid] = f"@{symbol}"
        kind = f"[{size} x i8], align 64"
        self.declarations[symbol] = f"@{symbol} = external hidden constant {kind}"

    def nontemporal(self) -> str:
        """Give the metadata of stores past the caches."""
        if not self._nontemporal:
            self._nontemporal = f"!{len(self.metadata)}"
            self.metadata.append(f"{self._nontemporal} = !{{i32 1}}")
        return self._nontemporal

    def text(self, triple: str) -> str:
        """Give the whole module."""
        head = f'target triple = "{triple}"'
        parts = (head, *self.declarations.values(), *self.functions, *self.metadata)
        return "\n".join(parts) + "\n"


class Code:
    """The instructions of one function; `block` is the label being written."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.block = "entry"
        self._allocas: list[str] = []
        self._lines: list[str] = []
        self._count = 0

    def fresh(self) -> str:
        """Give a name that no value has yet."""
        self._count += 1
        return f"%v{self._count}"

    def label(self, hint: str) -> str:
        """Give a label that no block has yet."""
        self._count += 1
        return f"{hint}{self._count}"

    def emit(self, text: str) -> None:
        """Write an instruction without a result."""
        self._lines.append(f"  {text}")

    def reserve(self) -> int:
        """Leave a line open for `fill`, for a value that depends on what comes later."""
        self._lines.append("")
        return len(self._lines) - 1

    def fill(self, line: int, text: str) -> None:
        """Write the line that was left open."""
        self._lines[line] = f"  {text}"

    def value(self, text: str) -> str:
        """Write an instruction and give the name of its result."""
        name = self.fresh()
        self._lines.append(f"  {name} = {text}")
        return name

    def alloca(self, text: str) -> str:
        """Reserve stack in the entry block, so that it is taken once a call."""
        name = self.fresh()
        self._allocas.append(f"  {name} = alloca {text}")
        return name

    def start(self, label: str) -> None:
        """Begin a block."""
        self._lines.append(f"{label}:")
        self.block = label

    def jump(self, label: str) -> None:
        """End the block."""
        self.emit(f"br label %{label}")

    def branch(self, cond: str, then: str, otherwise: str) -> None:
        """End the block by a condition."""
        self.emit(f"br i1 {cond}, label %{then}, label %{otherwise}")

    def intrinsic(self, name: str, of: DType, *args: str, flags: str = "") -> str:
        """Call an intrinsic whose arguments and result have one dtype."""
        kind = value_type(of)
        full = self.module.declare(f"{name}.{mangled(of)}", kind, (kind,) * len(args))
        given = ", ".join(f"{kind} {arg}" for arg in args)
        return self.value(f"call {flags}{kind} @{full}({given})")

    def finish(self, header: str) -> None:
        """Close the function and hand it to the module."""
        body = "\n".join(("entry:", *self._allocas, *self._lines))
        self.module.functions.append(f"{header} {{\n{body}\n}}")
