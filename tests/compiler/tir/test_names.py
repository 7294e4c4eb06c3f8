"""The functions of values that TVM's programs take from tir are those of te."""

from __future__ import annotations

import subprocess
import sys

import pytest

from farbench_compiler import te, tir

NAMES = ("indexmod", "indexdiv", "floormod", "truncdiv", "if_then_else", "exp", "all", "const")


@pytest.mark.parametrize("name", NAMES)
def test_tir_gives_what_te_gives(name: str) -> None:
    assert getattr(tir, name) is getattr(te, name)


def test_a_name_that_is_not_there_is_said() -> None:
    assert not hasattr(tir, "nonsense")
    with pytest.raises(AttributeError, match="farbench has no tir.nonsense; .* are in te"):
        _ = tir.nonsense


def test_tir_can_be_imported_before_te() -> None:
    code = "from farbench_compiler import tir; print(tir.indexmod(7, 4).value)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "3"
