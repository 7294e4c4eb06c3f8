"""Data types as users compare them and give them to numpy."""

from __future__ import annotations

import numpy as np
import pytest

from farbench_compiler import te
from farbench_compiler.errors import DTypeError
from farbench_compiler.ir.dtypes import SCALARS, dtype

NUMPYS = [name for name in SCALARS if name != "bfloat16"]


@pytest.mark.parametrize("name", NUMPYS)
def test_numpy_takes_the_dtype_of_a_tensor(name: str) -> None:
    tensor = te.placeholder((3,), dtype=name, name="A")
    assert np.zeros(3, dtype=tensor.dtype).dtype == np.dtype(name)


@pytest.mark.parametrize("name", ["bfloat16", "float32x4"])
def test_what_numpy_has_not_is_said(name: str) -> None:
    with pytest.raises(DTypeError, match=f"numpy has no dtype {name}"):
        _ = dtype(name).dtype


@pytest.mark.parametrize("name", [*SCALARS, "float32x4"])
def test_a_dtype_equals_its_text_and_no_other(name: str) -> None:
    one = dtype(name)
    assert one == name
    assert hash(one) == hash(name)
    assert [other for other in SCALARS if one == other] == [name] * (name in SCALARS)
    assert one != dtype("int8x2")
    assert one != 3
