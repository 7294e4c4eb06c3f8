"""What the host extra brings, and the one sentence said where it is missing."""

from __future__ import annotations

import importlib
from types import ModuleType

from farbench.errors import MissingExtra

# Import names of the packages that `farbench[host]` adds to the base that boards have.
HOST_PACKAGES = frozenset(
    {
        "click",
        "jinja2",
        "llvmlite",
        "matplotlib",
        "numpy",
        "platformdirs",
        "psutil",
        "rich",
        "tomli",
        "ziglang",
    }
)


def explain(error: ModuleNotFoundError) -> MissingExtra | None:
    """Turn a failed import of a host package into advice; None for any other module."""
    package = (error.name or "").partition(".")[0]
    if package not in HOST_PACKAGES:
        return None
    return MissingExtra(f"{package} is not installed here; try: pip install 'farbench[host]'")


def load(module: str) -> ModuleType:
    """Import a module; MissingExtra names the extra when a host package is not there."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        advice = explain(error)
        if advice is None:
            raise
        raise advice from error
