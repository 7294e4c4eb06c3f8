"""What the benchmarks share: arguments, timing, output, and peers as child processes.

A peer is a script in benchmarks/peers that speaks lines of JSON: a first line of facts when it is
ready, then one answer for each request. So a figure and its peer's are taken in turns in one run.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

ROOT = Path(__file__).resolve().parent.parent
PEERS_PYTHON = ROOT / ".peers" / "bin" / "python"
PEER_START_S = 60.0
PEER_ANSWER_S = 300.0
MIB = 1 << 20


class PeerMissing(RuntimeError):
    """The peer cannot be measured here; the text names it and says why."""


class Peer:
    """A rival in a process of its own; `with` ends it."""

    def __init__(self, name: str, argv: Sequence[str], environment: Mapping[str, str]) -> None:
        self.name = name
        self._process = subprocess.Popen(
            argv,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, name=f"peer-{name}", daemon=True).start()
        try:
            self.facts = self._answer(PEER_START_S)
        except BaseException:
            self.close()
            raise

    def ask(self, **request: object) -> dict[str, object]:
        """Send one request and return its answer; raise PeerMissing if the peer fails."""
        stream = self._process.stdin
        if stream is None or self._process.poll() is not None:
            raise PeerMissing(f"{self.name} has ended")
        stream.write(json.dumps(request) + "\n")
        stream.flush()
        return self._answer(PEER_ANSWER_S)

    def seconds(self, **request: object) -> list[float]:
        """Send one request and return the samples of its answer (seconds)."""
        samples = self.ask(**request).get("seconds")
        if not isinstance(samples, list):
            raise PeerMissing(f"{self.name} gave no samples")
        return [float(sample) for sample in samples]

    def close(self) -> None:
        """End the peer: at the end of its input by itself, else by force."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def __enter__(self) -> Peer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _read(self) -> None:
        for line in self._process.stdout or ():
            self._lines.put(line)
        self._lines.put(None)

    def _answer(self, timeout_s: float) -> dict[str, object]:
        try:
            line = self._lines.get(timeout=timeout_s)
        except queue.Empty:
            raise PeerMissing(f"{self.name} gave no answer within {timeout_s:.0f} s") from None
        if line is None:
            raise PeerMissing(f"{self.name} ended with {self._process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise PeerMissing(f"{self.name}: {answer['error']}")
        return dict(answer)


def start_rival(name: str, script: str, *, threads: int = 1) -> Peer:
    """Start a peer of the environment `.peers`; raise PeerMissing without `make peers`."""
    if not PEERS_PYTHON.exists():
        raise PeerMissing(f"{name} is not installed (make peers)")
    environment = {**os.environ, "TVM_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    return Peer(name, [str(PEERS_PYTHON), str(ROOT / "benchmarks/peers" / script)], environment)


def start_numpy(threads: int = 1) -> Peer:
    """Start numpy's matmul in a child whose OpenBLAS chooses its kernels itself."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
    environment["OPENBLAS_NUM_THREADS"] = str(threads)
    script = ROOT / "benchmarks/peers/numpy_matmul.py"
    peer = Peer("numpy", [sys.executable, str(script)], environment)
    core = peer.facts.get("core", "unknown")
    note(f"numpy's OpenBLAS runs its {core} kernels with {threads} thread(s)")
    return peer


def parse_arguments(
    description: str, *add: Callable[[argparse.ArgumentParser], object]
) -> argparse.Namespace:
    """Parse --json and what the callables in `add` declare."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="print one object as the last line")
    for declare in add:
        declare(parser)
    return parser.parse_args()


def note(text: str) -> None:
    """Tell the person who watches; standard output holds results alone."""
    print(text, file=sys.stderr, flush=True)


def leave_out(missing: PeerMissing) -> None:
    """Say on standard error that a peer's keys are left out, and why."""
    note(f"left out: {missing}")


def emit(result: Mapping[str, object], *, as_json: bool) -> None:
    """Print the result: one JSON object as the last line, or one line for each key."""
    if as_json:
        print(json.dumps(result), flush=True)
        return
    width = max(map(len, result), default=0)
    for key, value in result.items():
        text = f"{value:.4g}" if isinstance(value, float) else str(value)
        print(f"{key:<{width}}  {text}")


def timed(function: Callable[[], object], count: int) -> list[float]:
    """Call `function` `count` times; return the seconds of each call."""
    samples = []
    for _ in range(count):
        began = time.perf_counter()
        function()
        samples.append(time.perf_counter() - began)
    return samples


def in_turns(
    measures: Mapping[str, Callable[[], Sequence[float]]], rounds: int, settle_s: float = 0.0
) -> dict[str, list[float]]:
    """Run each measure once a round, in turns and turned round every other time; join samples.

    Between two of them lies a moment in which what the first set going comes to rest: a worker that
    ends, the next one being made, files on their way to a disk.
    """
    joined: dict[str, list[float]] = {name: [] for name in measures}
    names = list(measures)
    for index in range(rounds):
        for name in names if index % 2 == 0 else reversed(names):
            time.sleep(settle_s)
            joined[name] += measures[name]()
    return joined


def median(samples: Sequence[float]) -> float:
    """Return the median of the samples."""
    return statistics.median(samples)
