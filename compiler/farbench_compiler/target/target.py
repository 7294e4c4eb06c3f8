"""What code is built for: parsed from a target string or the name of a preset.

    target ::= ("llvm" | PRESET) flag*
    flag   ::= "-mtriple=" TRIPLE | "-mcpu=" CPU | "-mattr=" ("+"|"-") FEATURE ("," ...)*
             | "-fast-math"

`-device= -model= -keys=` of TVM's target strings are accepted and say nothing here.
"""

from __future__ import annotations

import json
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from farbench_compiler.errors import TargetError
from farbench_compiler.target.native import native_cpu, native_triple
from farbench_compiler.target.resolve import Resolved, resolve, vectors
from farbench_compiler.target.table import BASELINES, near
from farbench_compiler.target.triple import Triple, parse_triple
from farbench_rpc.manifest import TargetFacts
from farbench_rpc.manifest import features as reported

_FLAGS = ("-mtriple", "-mcpu", "-mattr", "-fast-math")
# Names of CPUs that LLVM and TVM's programs know for these (LLVM's X86TargetParser).
_OTHER_NAMES = {
    "core-avx2": "haswell",
    "core-avx-i": "ivybridge",
    "corei7-avx": "sandybridge",
}
# CPUs that LLVM 22 cannot compile for; the features stay those of the CPU itself.
_SCHEDULED_AS = {"ampere1b": "ampere1a", "oryon-1": "generic"}
_IGNORED = ("-device", "-model", "-keys")
# Instructions that a compiler never chooses by itself: a device without them can run the code.
_NEVER_CHOSEN = frozenset(
    [
        *("aes", "sha", "sha2", "sha3", "sm4", "pclmul", "vaes", "vpclmulqdq", "rdrnd", "rdseed"),
        *("xsave", "xsavec", "xsaveopt", "xsaves", "fsgsbase", "clflushopt", "clwb", "clzero"),
        *("rdpid", "waitpkg", "wbnoinvd", "mwaitx", "movdir64b", "fxsr", "zkne", "zknd", "zknh"),
        *("ccpp", "ccdp", "pauth", "bti", "ssbs", "sb", "zicbom", "zicboz", "zksed", "zksh"),
    ]
)

# The targets of the `with` blocks that are open, the innermost last.
_entered: ContextVar[tuple[Target, ...]] = ContextVar("targets", default=())


@dataclass(frozen=True)
class Kind:
    """A kind of device; a CPU's is named after its compiler."""

    name: str = "llvm"


class _FromText(type):
    """Lets `Target("llvm -mcpu=...")` read a text, as TVM's does; `host` can only say the same."""

    def __call__(
        cls, *text: Any, target: Any = None, host: str | Target | None = None, **fields: Any
    ) -> Any:
        given = text if target is None else (*text, target)
        if not given:
            return super().__call__(**fields)
        target = Target.parse(*given)
        if host is not None and Target.parse(host) != target:
            raise TargetError(
                f"host {host} is not the target {target}; farbench builds for one CPU"
            )
        return target


@dataclass(frozen=True)
class Target(metaclass=_FromText):
    """A machine that code is built for, every choice resolved.

    `text` builds the same target again anywhere; `features` are all that are enabled, and
    `llvm_features` is the same for LLVM; `vector_bits` is 64 where there are no vectors.
    """

    text: str
    triple: str
    arch: str
    cpu: str
    features: tuple[str, ...]
    llvm_features: str
    vector_bits: int
    vector_registers: int
    zig_target: str
    libc: str
    llvm_abi: str = ""
    fast_math: bool = False
    preset: str = field(default="", compare=False)

    @staticmethod
    def parse(text: str | Target) -> Target:
        """Read a target string or preset; TargetError lists near matches for what is unknown."""
        if isinstance(text, Target):
            return text
        if not isinstance(text, str):
            raise TargetError(f"a target is text such as native or pi4, not {text!r}")
        return _parse(text)

    @staticmethod
    def current(allow_none: bool = True) -> Target | None:
        """Give the target of the innermost `with target:`; TargetError where there must be one."""
        entered = _entered.get()
        if not entered and not allow_none:
            raise TargetError("no target is current; write the program inside of `with target:`")
        return entered[-1] if entered else None

    def __enter__(self) -> Target:
        _entered.set((*_entered.get(), self))
        return self

    def __exit__(self, *error: object) -> None:
        _entered.set(_entered.get()[:-1])

    @property
    def pointer_bits(self) -> int:
        """Bits of an address."""
        return 32 if self.arch == "armv7" else 64

    @property
    def kind(self) -> Kind:
        """The kind of device, as TVM's programs ask for it: always `llvm`."""
        return Kind()

    @property
    def llvm_cpu(self) -> str:
        """The CPU whose schedule LLVM takes: another where it ends the process for that one."""
        return _SCHEDULED_AS.get(self.cpu, self.cpu)

    @property
    def facts(self) -> TargetFacts:
        """What a library's manifest says of its target: features that a device can report."""
        needed = reported.known(self.arch) - _NEVER_CHOSEN
        required = tuple(feature for feature in self.features if feature in needed)
        return TargetFacts(self.triple, self.arch, self.cpu, required)

    def has(self, feature: str) -> bool:
        """Tell whether a feature is enabled."""
        return feature in self.features

    def __str__(self) -> str:
        return self.preset or self.text


@dataclass(frozen=True)
class _Wishes:
    triple: str = ""
    cpu: str = ""
    attributes: tuple[str, ...] = ()
    fast_math: bool = False


@lru_cache(maxsize=1)
def preset_texts() -> dict[str, tuple[str, str]]:
    """List the presets but `native`: name to (target string, what it is for)."""
    path = Path(__file__).with_name("presets.json")
    data = json.loads(path.read_text(encoding="utf-8"))
    return {name: (text, note) for name, (text, note) in data.items()}


def presets() -> dict[str, Target]:
    """Resolve every preset, `native` first where farbench builds for this machine."""
    found = {}
    for name in ("native", *preset_texts()):
        try:
            found[name] = _parse(name)
        except TargetError:
            if name != "native":
                raise
    return found


@lru_cache(maxsize=256)
def _parse(text: str) -> Target:
    words = text.split()
    if not words:
        raise TargetError("the target is empty; write native, a preset, or llvm -mtriple=...")
    head, *flags = words
    wishes = _Wishes()
    preset = ""
    if head in preset_texts():
        preset = "" if flags else head
        flags = preset_texts()[head][0].split()[1:] + flags
    elif head == "native":
        preset = "" if flags else head
        wishes = replace(wishes, cpu="native")
    elif head != "llvm":
        hint = near(head, ("llvm", "native", *preset_texts()))
        raise TargetError(f"unknown target {head!r}; {hint}")
    for flag in flags:
        wishes = _read_flag(text, flag, wishes)
    return _build(wishes, preset)


def _read_flag(text: str, flag: str, wishes: _Wishes) -> _Wishes:
    name, equals, value = flag.partition("=")
    if name in _IGNORED:
        return wishes
    if name not in _FLAGS:
        raise TargetError(f"unknown flag {flag!r} in target {text!r}; {near(name, _FLAGS)}")
    if name == "-fast-math":
        if equals and value not in ("0", "1"):
            raise TargetError(f"-fast-math is 0 or 1, got {value!r}")
        return replace(wishes, fast_math=value != "0")
    if not value:
        raise TargetError(f"{name} needs a value, as in {name}=... (target {text!r})")
    if name == "-mtriple":
        return replace(wishes, triple=value)
    if name == "-mcpu":
        return replace(wishes, cpu=_OTHER_NAMES.get(value, value))
    names = tuple(part for part in value.split(",") if part)
    return replace(wishes, attributes=wishes.attributes + names)


def _build(wishes: _Wishes, preset: str) -> Target:
    triple = parse_triple(wishes.triple) if wishes.triple else native_triple()
    if wishes.cpu == "native":
        if wishes.triple and native_triple().arch != triple.arch:
            here = native_triple().arch
            raise TargetError(f"-mcpu=native is {here} here, but the triple is for {triple.arch}")
        cpu, found = native_cpu(triple.arch)
        if wishes.attributes:
            difference = tuple(part for part in found.difference.split(",") if part)
            found = resolve(triple.arch, cpu, difference + wishes.attributes)
    else:
        cpu = wishes.cpu or BASELINES[triple.arch]
        found = resolve(triple.arch, cpu, wishes.attributes)
    return _assemble(triple, cpu, found, wishes.fast_math, preset)


def _assemble(triple: Triple, cpu: str, found: Resolved, fast_math: bool, preset: str) -> Target:
    text = f"llvm -mtriple={triple.short} -mcpu={cpu}"
    text += f" -mattr={found.difference}" if found.difference else ""
    text += " -fast-math" if fast_math else ""
    bits, registers = vectors(triple.arch, found.features)
    return Target(
        text=text,
        triple=triple.llvm,
        arch=triple.arch,
        cpu=cpu,
        features=tuple(sorted(found.features)),
        llvm_features=found.llvm,
        vector_bits=bits,
        vector_registers=registers,
        zig_target=triple.zig,
        libc=triple.libc,
        llvm_abi="lp64d" if triple.arch == "riscv64" else "",
        fast_math=fast_math,
        preset=preset,
    )
