"""Print loop IR as text that reads like Python, for people and for golden files."""

from __future__ import annotations

from collections.abc import Iterator

from farbench_compiler.ir.expr import (
    Binary,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Compare,
    Expr,
    FloatImm,
    IfThenElse,
    IntImm,
    Load,
    Logic,
    Not,
    Ramp,
    Select,
    Var,
)
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
from farbench_compiler.ir.visit import children

_INFIX: dict[str, tuple[str, int]] = {
    "or": ("or", 1), "and": ("and", 2),
    "eq": ("==", 4), "ne": ("!=", 4), "lt": ("<", 4), "le": ("<=", 4), "gt": (">", 4),
    "ge": (">=", 4),
    "bitor": ("|", 5), "bitxor": ("^", 6), "bitand": ("&", 7), "shl": ("<<", 8), "shr": (">>", 8),
    "add": ("+", 9), "sub": ("-", 9),
    "mul": ("*", 10), "div": ("/", 10), "floordiv": ("//", 10), "floormod": ("%", 10),
}  # fmt: skip
_ASSOCIATIVE = frozenset(("or", "and", "add", "mul", "bitor", "bitxor", "bitand"))
_LOOSEST, _NOT, _TIGHTEST = 0, 3, 20


def to_text(node: LoopFunction | Stmt | Expr) -> str:
    """Print a function, a statement or an expression (no line end behind the last line)."""
    printer = _Printer()
    match node:
        case LoopFunction():
            return "\n".join(printer.function(node))
        case Stmt():
            return "\n".join(printer.stmt(node, 0))
    return printer.expr(node)


class _Printer:
    """Keeps the names given out, so that two variables or buffers never share one."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, int], str] = {}
        self._taken: set[str] = set()

    def _name(self, of: Var | Buffer) -> str:
        known = self._names.get((type(of).__name__, of.uid))
        if known is None:
            known, count = of.name, 0
            while known in self._taken:
                count += 1
                known = f"{of.name}_{count}"
            self._taken.add(known)
            self._names[type(of).__name__, of.uid] = known
        return known

    def function(self, fn: LoopFunction) -> Iterator[str]:
        args = ", ".join(self._argument(arg) for arg in fn.args)
        symbols = ", ".join(self._argument(s) for s in fn.symbols if s not in fn.args)
        yield f"def {fn.name}({args})" + (f" for {symbols}:" if symbols else ":")
        for constant in fn.constants:
            yield f"  constant {self._declared(constant)}"
        yield from self.stmt(fn.body, 1)

    def _argument(self, arg: Buffer | Var) -> str:
        return self._declared(arg) if isinstance(arg, Buffer) else f"{self._name(arg)}: {arg.dtype}"

    def _declared(self, buffer: Buffer) -> str:
        shape = ", ".join(self.expr(extent) for extent in buffer.shape)
        past = " nontemporal" if buffer.nontemporal else ""
        return f"{self._name(buffer)}: {buffer.dtype}[{shape}]{past}"

    def stmt(self, s: Stmt, depth: int) -> Iterator[str]:
        pad = "  " * depth
        match s:
            case For(var, begin, extent, kind, body):
                span = f"{self.expr(begin)}, {self.expr(extent)}"
                yield f"{pad}for {self._name(var)} in {kind}({span}):"
                yield from self.stmt(body, depth + 1)
            case IfThen(cond, then, otherwise):
                yield f"{pad}if {self.expr(cond)}:"
                yield from self.stmt(then, depth + 1)
                if otherwise is not None:
                    yield f"{pad}else:"
                    yield from self.stmt(otherwise, depth + 1)
            case Seq(()):
                yield f"{pad}pass"
            case Seq(stmts):
                for part in stmts:
                    yield from self.stmt(part, depth)
            case Allocate(buffer, body):
                yield f"{pad}allocate {self._declared(buffer)} in {buffer.scope}"
                yield from self.stmt(body, depth)
            case Let(var, value, body):
                yield f"{pad}{self._name(var)} = {self.expr(value)}"
                yield from self.stmt(body, depth)
            case _:
                yield f"{pad}{self._line(s)}"

    def _line(self, s: Stmt) -> str:
        match s:
            case Store(buffer, indices, value):
                return f"{self._element(buffer, indices)} = {self.expr(value)}"
            case Evaluate(value):
                return self.expr(value)
            case Prefetch(buffer, indices):
                return f"prefetch {self._element(buffer, indices)}"
            case Require(cond, message):
                parts = (p if isinstance(p, str) else f"{{{self.expr(p)}}}" for p in message)
                return f'require {self.expr(cond)}, "{"".join(parts)}"'
        return repr(s)

    def expr(self, e: Expr, above: int = _LOOSEST) -> str:
        match e:
            case Var():
                return self._name(e)
            case IntImm(value, dtype):
                return str(bool(value)) if dtype.is_bool else str(value)
            case FloatImm(value, _):
                return repr(value)
            case Binary(op, a, b, _) | Compare(op, a, b, _) | Logic(op, a, b, _):
                return self._infix(op, a, b, above)
            case Not(a, _):
                return self._enclosed(f"not {self.expr(a, _NOT)}", _NOT, above)
            case IfThenElse(cond, a, b, _):
                text = f"{self.expr(a, 1)} if {self.expr(cond, 1)} else {self.expr(b, 1)}"
                return f"({text})"
            case Load(buffer, indices, _):
                return self._element(buffer, indices)
        return self._call(e)

    def _infix(self, op: str, a: Expr, b: Expr, above: int) -> str:
        if op not in _INFIX:
            return f"{op}({self.expr(a)}, {self.expr(b)})"
        sign, level = _INFIX[op]
        right = level if op in _ASSOCIATIVE and not a.dtype.is_float else level + 1
        text = f"{self.expr(a, level)} {sign} {self.expr(b, right)}"
        return self._enclosed(text, level, above)

    @staticmethod
    def _enclosed(text: str, level: int, above: int) -> str:
        return f"({text})" if level < above else text

    def _call(self, e: Expr) -> str:
        match e:
            case Cast(dtype, value):
                return f"{dtype}({self.expr(value)})"
            case Call(name, args, _):
                return f"{name}({', '.join(self.expr(arg) for arg in args)})"
            case Select(cond, a, b, _):
                return f"select({self.expr(cond)}, {self.expr(a)}, {self.expr(b)})"
            case Ramp(base, stride, lanes, _):
                return f"ramp({self.expr(base)}, {self.expr(stride)}, {lanes})"
            case Broadcast(value, lanes, _):
                return f"broadcast({self.expr(value)}, {lanes})"
        below = ", ".join(self.expr(child) for child in children(e) if isinstance(child, Expr))
        return f"{type(e).__name__}({below})"

    def _element(self, buffer: Buffer, indices: tuple[Expr, ...]) -> str:
        return f"{self._name(buffer)}[{', '.join(self.expr(i) for i in indices)}]"
