"""Windows over any number of axes, whose sizes may be symbolic: strides, dilation and padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from farbench_compiler.ir.expr import Expr, ExprLike, as_expr
from farbench_compiler.te import Tensor
from farbench_compiler.topi.arguments import Numbers, known, per_axis, refusal
from farbench_compiler.topi.layout import Layout
from farbench_compiler.topi.nn.padding import pad

Padding = str | Numbers


@dataclass(frozen=True, slots=True)
class Window:
    """`kernel` taps, `dilation` apart, that move by `stride` over `size` padded elements."""

    size: Expr
    kernel: Expr
    stride: int = 1
    dilation: int = 1
    before: Expr = as_expr(0)
    after: Expr = as_expr(0)

    @property
    def span(self) -> Expr:
        """Elements from the first tap to the last."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def out(self) -> Expr:
        """Positions of the kernel."""
        return (self.size + self.before + self.after - self.span) // self.stride + 1

    def at(self, position: Expr, tap: Expr) -> Expr:
        """Give the padded element that a tap meets."""
        return position * self.stride + tap * self.dilation


def windows(
    op: str,
    sizes: Sequence[Expr],
    kernel: Sequence[ExprLike],
    stride: Numbers,
    padding: Padding,
    dilation: Numbers = 1,
    *,
    ceil_mode: bool = False,
) -> tuple[Window, ...]:
    """Give one window an axis; refuse a kernel that fits nowhere.

    `padding` is a number, one an axis, all befores and then all afters, VALID (none) or SAME. With
    `ceil_mode` a last window may reach beyond the padding.
    """
    count = len(sizes)
    strides = per_axis(op, "stride", stride, count)
    dilations = per_axis(op, "dilation", dilation, count)
    taps = [as_expr(k) for k in kernel]
    spans = [(k - 1) * d + 1 for k, d in zip(taps, dilations, strict=True)]
    made = []
    edges = padding_edges(op, padding, spans)
    for size, k, s, d, (before, after) in zip(sizes, taps, strides, dilations, edges, strict=True):
        w = Window(size, k, s, d, before, after + s - 1 if ceil_mode else after)
        if any(n is not None and n < 1 for n in (known(k), known(w.out))):
            raise refusal(
                op,
                f"a kernel that spans {known(w.span)} does not fit size {known(size)} with padding"
                f" {known(before)} and {known(after)}",
            )
        made.append(w)
    return tuple(made)


def padding_edges(
    op: str, padding: Padding, spans: Sequence[Expr]
) -> tuple[tuple[Expr, Expr], ...]:
    """Give the padding before and after each axis; `spans` are the sizes of the kernel."""
    count = len(spans)
    if isinstance(padding, str):
        if padding not in ("VALID", "SAME"):
            raise refusal(op, f"padding {padding!r} is unknown; give VALID, SAME or numbers")
        whole = [span - 1 if padding == "SAME" else as_expr(0) for span in spans]
        return tuple(((p + 1) // 2, p - (p + 1) // 2) for p in whole)
    numbers = [padding] if isinstance(padding, int) else list(padding)
    numbers = numbers * count if len(numbers) == 1 else numbers
    width = count if len(numbers) == count else 2 * count
    given = per_axis(op, "padding", numbers, width, least=0)
    before, after = given[:count], given[-count:]
    return tuple((as_expr(b), as_expr(a)) for b, a in zip(before, after, strict=True))


def padded(
    x: Tensor, layout: Layout, over: Sequence[Window], value: ExprLike, letters: str
) -> Tensor:
    """Pad a tensor as its windows ask; the tensor itself where none does."""
    edges = dict(zip(letters, over, strict=True))
    before = [edges[a].before if a in edges else as_expr(0) for a in layout.letters]
    after = [edges[a].after if a in edges else as_expr(0) for a in layout.letters]
    if all(known(n) == 0 for n in (*before, *after)):
        return x
    return pad(x, before, after, value, name="pad_temp")
