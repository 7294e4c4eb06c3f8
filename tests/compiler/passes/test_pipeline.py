"""A pass that breaks the program is named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from farbench_compiler import passes
from farbench_compiler.errors import VerifyError
from farbench_compiler.ir.expr import Var
from farbench_compiler.ir.stmt import LoopFunction

from .programs import Unit, array, function, loop, read, write

AT = Var("i")
A, C = array("A", 4), array("C", 4)


def test_a_broken_pass_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def forget_the_loop(fn: LoopFunction) -> LoopFunction:
        return replace(fn, body=write(C, AT, value=read(A, AT)))

    broken = (passes.Pass("forget", forget_the_loop, "linear"),)
    monkeypatch.setattr(passes, "pipeline", lambda _unit, debug: broken)
    fn = function(loop(AT, 4, write(C, AT, value=read(A, AT))), A, C)
    with pytest.raises(VerifyError, match=r"f: after forget \(linear\): .*bound nowhere: i"):
        passes.run(fn, Unit())
