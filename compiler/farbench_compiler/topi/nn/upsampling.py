"""Upsampling: images and volumes made larger by a factor."""

from __future__ import annotations

from collections.abc import Sequence

from farbench_compiler.ir.expr import ExprLike
from farbench_compiler.te import Tensor
from farbench_compiler.topi import image
from farbench_compiler.topi.arguments import known, refusal
from farbench_compiler.topi.layout import Layout

Sizes = Sequence[ExprLike]


def upsampling(
    data: Tensor,
    scale_h: float,
    scale_w: float,
    layout: str = "NCHW",
    method: str = "nearest_neighbor",
    align_corners: bool = False,
    output_shape: Sizes | None = None,
) -> Tensor:
    """Enlarge H and W by factors; `method` is nearest_neighbor, bilinear or bicubic."""
    size = _scaled("nn.upsampling", data, layout, {"H": scale_h, "W": scale_w}, output_shape)
    mode = "align_corners" if align_corners else "asymmetric"
    return image.resize2d(data, (), size, layout, method, mode)


def upsampling3d(
    data: Tensor,
    scale_d: float,
    scale_h: float,
    scale_w: float,
    layout: str = "NCDHW",
    method: str = "nearest_neighbor",
    coordinate_transformation_mode: str = "half_pixel",
    output_shape: Sizes | None = None,
) -> Tensor:
    """Enlarge D, H and W by factors; `method` is nearest_neighbor or trilinear."""
    scales = {"D": scale_d, "H": scale_h, "W": scale_w}
    size = _scaled("nn.upsampling3d", data, layout, scales, output_shape)
    return image.resize3d(data, (), size, layout, method, coordinate_transformation_mode)


def _scaled(
    op: str, data: Tensor, layout: str, scales: dict[str, float], output_shape: Sizes | None
) -> list[ExprLike]:
    """Give the sizes along the axes that grow, rounded; whole factors take symbolic sizes."""
    axes = Layout.parse(op, layout, "".join(scales), data)
    if output_shape is not None:
        return [output_shape[i] for i in axes.places("".join(scales))]
    sizes = axes.named(data.shape)
    found: list[ExprLike] = []
    for a, scale in scales.items():
        size = known(sizes[a])
        if scale <= 0 or (size is None and scale != int(scale)):
            raise refusal(op, f"scale {scale} of axis {a}: give a positive one, whole where the"
                          " size is symbolic")  # fmt: skip
        found.append(sizes[a] * int(scale) if size is None else round(size * scale))
    return found
