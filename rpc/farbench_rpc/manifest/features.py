"""CPU features by their LLVM names: what code needs, what a machine says it has.

Only features that decide which instructions may be used are listed; LLVM's tuning flags are not.
A machine tells its features as words of /proc/cpuinfo or as bits of getauxval's AT_HWCAP; both are
translated here, so that compiler and device compare the same names.
"""

from __future__ import annotations

from collections.abc import Iterable

# Words of the kernel, each with LLVM's name behind "=" where that differs.
_X86_64 = """
adx aes avx avx2 avx512bw avx512cd avx512dq avx512f avx512ifma avx512vbmi avx512vl bmi2 clflushopt
clwb clzero cx16 cx8 f16c fma fma4 fsgsbase fxsr gfni mmx movbe movdir64b movdiri mwaitx popcnt
rdpid rdseed sse sse2 sse4a ssse3 tbm vaes vpclmulqdq waitpkg wbnoinvd xop xsave xsavec xsaveopt
xsaves cmov abm=lzcnt avx512_bf16=avx512bf16 avx512_bitalg=avx512bitalg avx512_fp16=avx512fp16
avx512_vbmi2=avx512vbmi2 avx512_vnni=avx512vnni avx512_vp2intersect=avx512vp2intersect
avx512_vpopcntdq=avx512vpopcntdq avx_vnni=avxvnni 3dnowprefetch=prfchw amx_bf16=amx-bf16
amx_int8=amx-int8 amx_tile=amx-tile bmi1=bmi fpu=x87 lahf_lm=sahf lm=64bit pclmulqdq=pclmul pni=sse3
rdrand=rdrnd sha_ni=sha sse4_1=sse4.1 sse4_2=sse4.2
"""
_AARCH64 = """
aes asimd=neon asimddp=dotprod asimdfhm=fp16fml asimdhp=fullfp16 asimdrdm=rdm atomics=lse bf16 bti
crc32=crc dcpodp=ccdp dcpop=ccpp fcma=complxnum flagm fp=fp-armv8 frint=fptoint i8mm jscvt=jsconv
lrcpc=rcpc ilrcpc=rcpc-immo paca=pauth sb sha2 sha3 sm4 ssbs sve sve2
"""
_ARMV7 = """
asimddp=dotprod asimdhp=fullfp16 aes crc32=crc edsp=dsp idiva=hwdiv-arm idivt=hwdiv neon sha2
vfp=vfp2 vfpd32=d32 vfpv3=vfp3 vfpv4=vfp4
"""
_RISCV64 = """
i m a f d c v h zba zbb zbc zbs zbkb zbkc zbkx zfh zfhmin zfa zvfh zvfhmin zicond zicbom zicbop
zicboz zicsr zifencei zihintpause zawrs zca zcb zcd zacas zvbb zvbc zvkb zve32f zve32x zve64d zve64f
zve64x zvl128b zvl256b zvl512b zknd zkne zknh zksed zksh
"""
# What a feature says without a word of its own.
_IMPLIED = {
    "armv7": {"neon": ("vfp2", "vfp3", "d32"), "vfp4": ("vfp2", "vfp3")},
    "riscv64": {
        "i": ("zicsr", "zifencei"),
        "c": ("zca", "zcd"),
        "v": ("zve32f", "zve32x", "zve64d", "zve64f", "zve64x", "zvl128b"),
    },
}

# Words by bit of AT_HWCAP and AT_HWCAP2, as the kernel's uapi/asm/hwcap.h has them.
_AARCH64_HWCAP = """
fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm jscvt fcma lrcpc
dcpop sha3 sm3 sm4 asimddp sha512 sve asimdfhm dit uscat ilrcpc flagm ssbs sb paca pacg
"""
_AARCH64_HWCAP2 = """
dcpodp sve2 sveaes svepmull svebitperm svesha3 svesm4 flagm2 frint svei8mm svef32mm svef64mm svebf16
i8mm bf16 dgh rng bti mte
"""
_ARMV7_HWCAP = """
swp half thumb 26bit fast_mult fpa vfp edsp java iwmmxt crunch thumbee neon vfpv3 vfpv3d16 tls vfpv4
idiva idivt vfpd32 lpae evtstrm fphp asimdhp asimddp
"""
_ARMV7_HWCAP2 = "aes pmull sha1 sha2 crc32 sb ssbs"


def _table(text: str) -> dict[str, str]:
    pairs = (word.partition("=") for word in text.split())
    return {kernel: llvm or kernel for kernel, _, llvm in pairs}


_WORDS = {
    "x86_64": _table(_X86_64),
    "aarch64": _table(_AARCH64),
    "armv7": _table(_ARMV7),
    "riscv64": _table(_RISCV64),
}
_BITS = {
    "aarch64": (_AARCH64_HWCAP.split(), _AARCH64_HWCAP2.split()),
    "armv7": (_ARMV7_HWCAP.split(), _ARMV7_HWCAP2.split()),
    "riscv64": (list("abcdefghijklmnopqrstuvwxyz"), []),
}


def known(arch: str) -> frozenset[str]:
    """List the LLVM names of the features that a machine of this architecture can report."""
    return frozenset(_WORDS.get(arch, {}).values())


def from_words(arch: str, words: Iterable[str]) -> tuple[str, ...]:
    """Translate words of /proc/cpuinfo (flags, Features, or the parts of isa) to LLVM names."""
    table = _WORDS.get(arch, {})
    found = {table[word] for word in words if word in table}
    for feature, implied in _IMPLIED.get(arch, {}).items():
        if feature in found:
            found.update(implied)
    return tuple(sorted(found))


def from_isa(isa: str) -> tuple[str, ...]:
    """Translate the `isa` line of a RISC-V machine, such as `rv64imafdc_zicsr_zba`."""
    head, *rest = isa.strip().lower().split("_")
    letters = head[4:] if head.startswith("rv64") else ""
    return from_words("riscv64", [*letters.replace("g", "imafd"), *rest])


def from_hwcaps(arch: str, hwcap: int, hwcap2: int = 0) -> tuple[str, ...]:
    """Translate getauxval(AT_HWCAP) and getauxval(AT_HWCAP2) to LLVM names."""
    first, second = _BITS.get(arch, ([], []))
    words = [word for bit, word in enumerate(first) if hwcap >> bit & 1]
    words += [word for bit, word in enumerate(second) if hwcap2 >> bit & 1]
    return from_words(arch, words)


def missing(arch: str, required: Iterable[str], available: Iterable[str]) -> tuple[str, ...]:
    """List required features that the machine lacks, out of those it could report at all."""
    return tuple(sorted((set(required) & known(arch)) - set(available)))
