"""Names that are not there: the error that lists what was meant."""

from __future__ import annotations

import difflib

from farbench_compiler.errors import UnknownNameError


def unknown(owner: str, of: type, name: str) -> UnknownNameError:
    """Make the error of an attribute that a class has not; it names near ones."""
    known = [n for n in dir(of) if not n.startswith("_")]
    near = difflib.get_close_matches(name, known, n=3)
    advice = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"
    return UnknownNameError(f"{owner} has no {name}; {advice}")
