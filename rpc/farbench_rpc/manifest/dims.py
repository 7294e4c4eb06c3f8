"""Sizes of dimensions: integer expressions over size symbols, read and evaluated.

    dim   ::= term (("+" | "-") term)*
    term  ::= unary (("*" | "//" | "%") unary)*        floor division and its remainder
    unary ::= "-" unary | INT | NAME | "(" dim ")" | ("min" | "max") "(" dim "," dim ")"

A text becomes a postfix program once and is cached; evaluation is a loop over a stack, so that
hostile text costs nothing but its own length.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from farbench_rpc.manifest.errors import ManifestError
from farbench_rpc.manifest.schema import Dim

MAX_TEXT = 512
MAX_DEPTH = 32
MAX_SIZE = 2**63 - 1

_TOKEN = re.compile(r"\s*(?:(\d+)|([A-Za-z_][A-Za-z0-9_.]*)|(//|[-+*%(),]))")
_BINARY: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "min": min,
    "max": max,
}
Program = tuple["int | str", ...]


class _Parser:
    """Recursive descent over the tokens of one text, writing `program` as it goes."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _tokens(text)
        self.at = 0
        self.depth = 0
        self.program: list[int | str] = []

    def fail(self, why: str) -> ManifestError:
        return ManifestError(f"dimension {self.text!r}: {why}")

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, expected: str = "") -> str:
        token = self.peek()
        if not token or (expected and token != expected):
            raise self.fail(f"expected {expected or 'a size'}, got {token or 'the end'}")
        self.at += 1
        return token

    def chain(self, operators: tuple[str, ...], operand: Callable[[], None]) -> None:
        operand()
        while self.peek() in operators:
            op = self.take()
            operand()
            self.program.append(op)

    def dim(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.fail(f"nested deeper than {MAX_DEPTH}")
        self.chain(("+", "-"), lambda: self.chain(("*", "//", "%"), self.unary))
        self.depth -= 1

    def unary(self) -> None:
        signs = 0
        while self.peek() == "-":
            self.take()
            signs += 1
        self.atom()
        if signs % 2:
            self.program.extend((-1, "*"))

    def atom(self) -> None:
        token = self.take()
        if token.isdigit():
            self.program.append(int(token))
        elif token == "(":  # noqa: S105 - a bracket, not a password
            self.dim()
            self.take(")")
        elif token in ("min", "max") and self.peek() == "(":
            self.pair(token)
        elif token[0].isalpha() or token[0] == "_":
            self.program.append(f"${token}")
        else:
            raise self.fail(f"expected a size, got {token}")

    def pair(self, name: str) -> None:
        self.take("(")
        self.dim()
        self.take(",")
        self.dim()
        self.take(")")
        self.program.append(name)


def _tokens(text: str) -> list[str]:
    if len(text) > MAX_TEXT:
        raise ManifestError(f"dimension of {len(text)} characters; the limit is {MAX_TEXT}")
    if not text.isascii():
        raise ManifestError(f"dimension {text!r}: only ASCII letters and digits")
    tokens = []
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            raise ManifestError(f"dimension {text!r}: cannot read {text[at:].strip()!r}")
        tokens.append(match[1] or match[2] or match[3])
        at = match.end()
    return tokens


@lru_cache(maxsize=1024)
def parse_dim(text: str) -> Program:
    """Read a dimension into a postfix program: ints, operators, and symbols as `$name`."""
    parser = _Parser(text)
    parser.dim()
    if parser.peek():
        raise parser.fail(f"cannot read on from {parser.peek()!r}")
    return tuple(parser.program)


@lru_cache(maxsize=1024)
def symbols_of(text: str) -> tuple[str, ...]:
    """List the symbols of a dimension in order of first use."""
    names = (step[1:] for step in parse_dim(text) if isinstance(step, str) and step[0] == "$")
    return tuple(dict.fromkeys(names))


def evaluate(dim: Dim, symbols: Mapping[str, int]) -> int:
    """Compute a dimension; ManifestError for a missing symbol, a zero divisor or an overflow."""
    if isinstance(dim, int):
        return dim
    stack: list[int] = []
    for step in parse_dim(dim):
        if isinstance(step, int):
            stack.append(step)
        elif step[0] == "$":
            if step[1:] not in symbols:
                raise ManifestError(f"dimension {dim!r}: {step[1:]!r} is not known")
            stack.append(symbols[step[1:]])
        else:
            right, left = stack.pop(), stack.pop()
            if right == 0 and step in ("//", "%"):
                raise ManifestError(f"dimension {dim!r}: division by zero")
            stack.append(_BINARY[step](left, right))
        if abs(stack[-1]) > MAX_SIZE:
            raise ManifestError(f"dimension {dim!r} does not fit 64 bits")
    return stack[0]


def resolve(shape: tuple[Dim, ...], symbols: Mapping[str, int]) -> tuple[int, ...]:
    """Compute every dimension of a shape; ManifestError where one is negative."""
    sizes = tuple(evaluate(dim, symbols) for dim in shape)
    for dim, size in zip(shape, sizes, strict=True):
        if size < 0:
            raise ManifestError(f"dimension {dim!r} is {size}; sizes are not negative")
    return sizes
