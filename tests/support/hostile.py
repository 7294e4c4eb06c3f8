"""A library whose kernels behave as badly as kernels can, for each target, with its manifest.

path = build("aarch64", folder)     # hostile-aarch64.so
"""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

import ziglang

from farbench_rpc.manifest import Entry, Manifest, ScalarArg, TargetFacts, TensorArg, encode
from farbench_rpc.manifest.schema import MAGIC

ROOT = Path(__file__).resolve().parents[2]
RUNTIME = ROOT / "compiler" / "farbench_compiler" / "runtime_c"
ZIG_TARGETS = {
    "x86_64": "x86_64-linux-gnu.2.28",
    "aarch64": "aarch64-linux-gnu.2.28",
    "armv7": "arm-linux-gnueabihf.2.28",
}

SOURCE = r"""
#include "farbench.h"
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <fcntl.h>

#define KERNEL(name) __attribute__((visibility("default"))) \
  int32_t name(fb_ctx *ctx, void *const *buffers, const int64_t *scalars)

KERNEL(k_nothing) { return 0; }
KERNEL(k_segfault) { *(volatile int *)8 = 1; return 0; }
KERNEL(k_illegal) { __builtin_trap(); return 0; }
KERNEL(k_abort) { abort(); return 0; }
KERNEL(k_exit) { exit((int)scalars[0]); return 0; }
KERNEL(k_quit) { _exit((int)scalars[0]); return 0; }
KERNEL(k_loop) { for (volatile int64_t i = 0;; i++) {} return 0; }
KERNEL(k_stubborn) { signal(SIGTERM, SIG_IGN); for (volatile int64_t i = 0;; i++) {} return 0; }
KERNEL(k_stop) { kill(getpid(), SIGSTOP); return 0; }
KERNEL(k_fail) { snprintf(ctx->error, FB_ERROR_TEXT, "it does not want to"); return 7; }
KERNEL(k_noise) { int32_t *p = buffers[0]; p[0]++; return 0; }

KERNEL(k_eat) {
  for (;;) {
    char *p = mmap(0, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) *(volatile int *)8 = 1;
    memset(p, 1, 4 << 20);
  }
  return 0;
}
KERNEL(k_patricide) { kill(getppid(), SIGKILL); for (;;) sleep(1000); return 0; }
KERNEL(k_sleep) {
  struct timespec t = {scalars[0] / 1000, (scalars[0] % 1000) * 1000000};
  while (nanosleep(&t, &t)) {}
  return 0;
}
/* Starts processes that flee: into a session of their own, their parent gone at once. */
KERNEL(k_flee) {
  for (int i = 0; i < 3; i++) {
    if (fork() == 0) {
      setsid();
      if (fork() == 0) {
        signal(SIGTERM, SIG_IGN);
        for (;;) sleep(1000);
      }
      _exit(0);
    }
  }
  usleep(50000);
  return 0;
}
KERNEL(k_fill_disk) {
  char block[65536];
  memset(block, 1, sizeof block);
  int fd = open("big", O_CREAT | O_WRONLY, 0600);
  for (;;) if (write(fd, block, sizeof block) < 0) break;
  return 9;
}
KERNEL(k_litter) {
  mkdir("some", 0700);
  int fd = open("some/file", O_CREAT | O_WRONLY, 0600);
  if (write(fd, "x", 1) != 1) return 9;
  close(fd);
  symlink("/etc", "some/link");
  return 0;
}
KERNEL(k_environment) {
  extern char **environ;
  int32_t *out = buffers[0];
  out[0] = 0;
  for (char **e = environ; e && *e; e++) out[0]++;
  out[1] = 0;
  for (int fd = 3; fd < 1024; fd++) out[1] += fcntl(fd, F_GETFD) >= 0;
  out[2] = getsid(0) == getpid();
  return 0;
}
/* Says what is in the array to whoever listens at the other end of its sockets. */
KERNEL(k_speak) {
  for (int fd = 3; fd < 64; fd++) send(fd, buffers[0], (size_t)scalars[0], MSG_DONTWAIT);
  return 0;
}
/* Puts a pipe in place of what it prints to, and dies: whoever opens that waits for ever. */
KERNEL(k_spoil) {
  unlink("output.log");
  mkfifo("output.log", 0600);
  abort();
  return 0;
}
KERNEL(k_deep) {
  for (int i = 0; i < 1500; i++) if (mkdir("d", 0700) || chdir("d")) return 9;
  return 0;
}
KERNEL(k_keep_open) { while (open("/dev/null", O_RDONLY) >= 0) {} return 0; }
KERNEL(k_close_all) { for (int fd = 0; fd < 64; fd++) close(fd); for (;;) sleep(1000); return 0; }
KERNEL(k_add) {
  const int32_t *a = buffers[0], *b = buffers[1];
  int32_t *c = buffers[2];
  for (int64_t i = 0; i < scalars[0]; i++) c[i] = a[i] + b[i];
  return 0;
}
KERNEL(k_scale) {
  float *a = buffers[0], by;
  memcpy(&by, &scalars[1], 4);
  for (int64_t i = 0; i < scalars[0]; i++) a[i] *= by;
  return 0;
}
"""

_PLAIN = (
    *("nothing", "segfault", "illegal", "abort", "loop", "stubborn", "stop", "fail", "eat"),
    *("flee", "fill_disk", "litter", "spoil", "deep", "keep_open", "close_all", "patricide"),
)


def entries() -> tuple[Entry, ...]:
    """List the kernels: those without arguments, with a status or a time, and with arrays."""

    def array(
        name: str, dtype: str = "int32", writable: bool = False, size: str | int = "n"
    ) -> TensorArg:
        return TensorArg(name, dtype, (size,), 64, writable)

    found = [Entry(name, f"k_{name}", ()) for name in _PLAIN]
    found += [
        Entry(name, f"k_{name}", (ScalarArg("x", "int32"),)) for name in ("exit", "quit", "sleep")
    ]
    found.append(Entry("noise", "k_noise", (array("out", writable=True),), ("n",)))
    found.append(Entry("speak", "k_speak", (array("text", "uint8"),), ("n",)))
    found.append(Entry("environment", "k_environment", (array("out", writable=True, size=3),), ()))
    arrays = (array("a"), array("b"), array("c", writable=True))
    found.append(Entry("add", "k_add", arrays, ("n",)))
    scaled = (array("a", "float32", writable=True), ScalarArg("by", "float32"))
    found.append(Entry("scale", "k_scale", scaled, ("n",)))
    return tuple(found)


def manifest(arch: str, features: Sequence[str] = (), tag: str = "") -> Manifest:
    """Describe the library for a target; `features` are the CPU features it claims to need."""
    target = TargetFacts(ZIG_TARGETS[arch], arch, "generic", tuple(features))
    return Manifest(entries(), target, tag or "0" * 64)


def build(
    arch: str, folder: Path, *, features: Sequence[str] = (), name: str = "hostile", tag: str = ""
) -> Path:
    """Compile it with its manifest and the runtime; gives `<folder>/<name>-<arch>.so`."""
    encoded = encode(manifest(arch, features, tag))
    data = MAGIC + struct.pack("<Q", len(encoded)) + encoded
    listed = ",".join(map(str, data))
    embedded = (
        '__attribute__((visibility("default"), used)) '
        f"const unsigned char farbench_manifest[{len(data)}] = {{{listed}}};\n"
    )
    source = folder / f"{name}-{arch}.c"
    source.write_text(SOURCE + embedded)
    made = folder / f"{name}-{arch}.so"
    zig = Path(ziglang.__file__).parent / "zig"
    command = [
        str(zig), "cc", "-target", ZIG_TARGETS[arch], "-O2", "-std=gnu11", "-fPIC", "-shared",
        "-fno-sanitize=undefined", "-nostdlib", "-fvisibility=hidden", "-g0", f"-I{RUNTIME}",
        str(source), *map(str, sorted(RUNTIME.glob("*.c"))), "-lc", "-lm", "-lpthread",
        "-o", str(made),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise RuntimeError(f"zig cc failed for {arch}: {done.stderr.strip()[-2000:]}")
    return made
