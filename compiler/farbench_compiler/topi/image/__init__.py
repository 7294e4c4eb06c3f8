"""Operators on images: resizing, cutting out and sampling."""

from farbench_compiler.given import check_what_is_given
from farbench_compiler.topi.image.grid_sample import affine_grid, grid_sample
from farbench_compiler.topi.image.resize import (
    crop_and_resize,
    resize,
    resize1d,
    resize2d,
    resize3d,
)

__all__ = [
    "affine_grid", "crop_and_resize", "grid_sample", "resize", "resize1d", "resize2d", "resize3d",
]  # fmt: skip

check_what_is_given(globals(), __all__, "topi.image")
