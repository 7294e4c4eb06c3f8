"""Why nothing matches, in one line."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from farbench_tracker.explain import explain
from farbench_tracker.requirement import FactValue, parse


@dataclass(frozen=True)
class Board:
    """A device to explain about."""

    id: str
    name: str
    labels: dict[str, str] = field(default_factory=dict)
    facts: dict[str, FactValue] = field(default_factory=dict)


FLEET = [
    Board("1", "al", {"board": "pi4"}, {"arch": "aarch64", "cores": 4, "emulated": False}),
    Board("2", "bo", {"board": "pi5"}, {"arch": "aarch64", "cores": 4, "emulated": False}),
    Board("3", "cy", {}, {"arch": "x86_64", "cores": 2, "emulated": True, "isa": ("avx", "fma")}),
]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("arch=riscv64", "arch=riscv64 fits 0 (there is aarch64, x86_64)"),
        ("arch=aarch46,cores>=4", "arch=aarch46 fits 0 (there is aarch64, x86_64)"),
        ("arch=aarch46,cores>=4", "cores>=4 fits 2"),
        ("arch=aarch46,cores>=4", "nearest: al but for arch=aarch46"),
        ("cores>=8", "cores>=8 fits 0 (nearest is 4)"),
        ("cores<1", "cores<1 fits 0 (nearest is 2)"),
        ("bord=pi4", "no device says anything of bord, did you mean board?"),
        ("zzz", "zzz fits 0 (no device says anything of zzz)"),
        ("board=pi7", "there is pi5, pi4"),
        ("arch>=3", "arch is not a number but aarch64, x86_64"),
        ("arch", "arch fits 0 (arch is aarch64, x86_64)"),
        ("isa=avx2", "there is avx, fma"),
        ("name=bob", "there is bo, al, cy"),
        ("arch=aarch64,emulated", "arch=aarch64 fits 2; emulated fits 1"),
        ("arch=aarch64,emulated", "nearest: al but for emulated"),
        ("arch!=aarch64,arch!=x86_64", "among 3 devices"),
    ],
)
def test_text(text: str, said: str) -> None:
    """Name each term that fails, and what comes nearest."""
    told = explain(parse(text), FLEET).text
    assert said in told
    assert "\n" not in told


def test_order_of_devices_does_not_matter() -> None:
    """Give one answer however the devices are listed."""
    requirement = parse("arch=aarch46,cores>=8,board=pi")
    assert explain(requirement, FLEET) == explain(requirement, FLEET[::-1])


def test_an_empty_fleet_is_told_how_to_start() -> None:
    """Say what to type when no device is there."""
    assert "farbench device --tracker" in explain(parse("a"), []).text
