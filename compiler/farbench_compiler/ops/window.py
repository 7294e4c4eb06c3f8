"""Windows: how a kernel moves along one axis of an image."""

from __future__ import annotations

from dataclasses import dataclass

from farbench_compiler.errors import ScheduleError

Pair = int | tuple[int, int]
Padding = int | tuple[int, int] | tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Window:
    """`kernel` taps, `dilation` apart, that move by `stride` over `size` padded elements."""

    size: int
    kernel: int
    stride: int = 1
    before: int = 0
    after: int = 0
    dilation: int = 1

    @property
    def span(self) -> int:
        """Elements from the first tap to the last."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def out(self) -> int:
        """Positions of the kernel."""
        return (self.size + self.before + self.after - self.span) // self.stride + 1

    @property
    def phases(self) -> int:
        """Residues by the stride that some tap reads, counted from 0 to the last of them."""
        return max(k * self.dilation % self.stride for k in range(self.kernel)) + 1

    @property
    def reach(self) -> int:
        """Elements of one phase that the taps of a position lie apart at most."""
        return (self.span - 1) // self.stride

    @property
    def plain(self) -> bool:
        """Tell whether positions are the elements themselves."""
        return (self.kernel, self.stride, self.before, self.after) == (1, 1, 0, 0)


def pair(value: Pair) -> tuple[int, int]:
    """Give height and width: one number counts for both."""
    return (value, value) if isinstance(value, int) else (value[0], value[1])


def edges(padding: Padding) -> tuple[int, int, int, int]:
    """Give top, left, bottom and right of a padding: one number, two (height, width) or all."""
    if isinstance(padding, int):
        return (padding,) * 4
    if len(padding) == 2:
        return (padding[0], padding[1], padding[0], padding[1])
    return padding


def windows(
    height: int, width: int, kernel: Pair, stride: Pair, padding: Padding, dilation: Pair
) -> tuple[Window, Window]:
    """Give the windows of both axes; ScheduleError names what cannot be."""
    top, left, bottom, right = edges(padding)
    tall, wide = (
        Window(size, k, s, before, after, d)
        for size, k, s, before, after, d in zip(
            (height, width), pair(kernel), pair(stride), (top, left), (bottom, right),
            pair(dilation), strict=True,
        )
    )  # fmt: skip
    for axis, w in (("height", tall), ("width", wide)):
        if min(w.size, w.kernel, w.stride, w.dilation) < 1 or min(w.before, w.after) < 0:
            raise ScheduleError(
                f"conv: {axis} has size {w.size}, kernel {w.kernel}, stride {w.stride}, dilation "
                f"{w.dilation}, padding {w.before} and {w.after}; all but padding start at 1"
            )
        if w.out < 1:
            raise ScheduleError(
                f"conv: a kernel that spans {w.span} does not fit {axis} {w.size} with padding "
                f"{w.before} and {w.after}"
            )
    return tall, wide
