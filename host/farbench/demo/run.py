"""One device's part of the demo: lease it, and for each workload build, send, check and time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future

from farbench import nd
from farbench.demo.builder import BuildFailed, Built
from farbench.demo.events import Event
from farbench.demo.plan import DeviceRole
from farbench.errors import HostError
from farbench.report import Row
from farbench.result import Sample
from farbench.session import Session
from farbench.tracker import Tracker
from farbench.workloads import HIGH, LOW, Workload
from farbench_rpc.errors import KernelError, LoadRefused, RpcError
from farbench_rpc.messages import Facts

SEED = 20
SESSION_TIMEOUT_S = 600.0
BUILD_TIMEOUT_S = 300.0

Tell = Callable[[Event], None]
Planned = Sequence[tuple[Workload, "Future[Built]"]]


class DeviceRun:
    """Runs every workload of one device in a thread of its own; `cancel` ends it from another."""

    def __init__(self, role: DeviceRole, tracker: Tracker, planned: Planned, tell: Tell) -> None:
        self.role = role
        self.facts: Facts = {}
        self._tracker = tracker
        self._planned = planned
        self._tell = tell
        self._cancelled = False
        self._session: Session | None = None
        self._thread = threading.Thread(target=self._run, name=f"demo-{role.name}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def cancel(self) -> None:
        """Let it end as soon as it can: what waits is cancelled, and the lease is freed."""
        self._cancelled = True
        for _, future in self._planned:
            future.cancel()
        session = self._session
        if session is not None:
            session.cancel()

    def join(self, timeout_s: float) -> None:
        """Wait for the end."""
        if self._thread.ident is not None:
            self._thread.join(timeout_s)

    def _run(self) -> None:
        try:
            self._with_device()
        except (RpcError, HostError) as error:
            if not self._cancelled:
                self._tell(Event("skipped", self.role.name, text=str(error)))
        finally:
            self._tell(Event("ended", self.role.name))

    def _with_device(self) -> None:
        request = self._tracker.request(
            f"name={self.role.name}", session_timeout=SESSION_TIMEOUT_S, user="demo"
        )
        with request as session:
            self._session = session
            self.facts = session.facts
            for workload, future in self._planned:
                if self._cancelled:
                    return
                self._tell(Event("row", self.role.name, workload.name, row=self._row(
                    session, workload, future)))  # fmt: skip

    def _row(self, session: Session, workload: Workload, future: Future[Built]) -> Row:
        """Give the row of one workload; what fails is a row too."""
        failed = Row(self.role.name, workload.name, workload.flops)
        try:
            built = future.result(BUILD_TIMEOUT_S)
        except CancelledError:
            return Row(*_head(failed), failure="cancelled")
        except (BuildFailed, TimeoutError) as error:
            return Row(*_head(failed), failure=f"not built: {error}")
        self._tell(Event("built", self.role.name, workload.name, seconds=built.seconds))
        try:
            return self._measure(session, workload, built)
        except (KernelError, LoadRefused) as error:
            # The session outlives its kernels; the next workload gets its turn.
            return Row(*_head(failed), build_s=built.seconds, failure=error.message)

    def _measure(self, session: Session, workload: Workload, built: Built) -> Row:
        session.upload(built.path)
        module = session.load_module(built.path.name)
        there = session.cpu()
        arrays = [
            nd.random(spec.shape, spec.dtype, there, SEED + index, LOW, HIGH)
            for index, spec in enumerate(workload.inputs)
        ]
        output = nd.zeros(workload.output.shape, workload.output.dtype, there)
        module(*arrays, output)
        comparison = workload.check(output.numpy(), SEED)
        if not comparison.valid:
            # A wrong program gets no timing that anybody could take for a result.
            return Row(self.role.name, workload.name, workload.flops, None, comparison,
                       built.seconds, str(comparison))  # fmt: skip
        counts = self.role.counts
        evaluator = module.time_evaluator(
            module.entry_name,
            there,
            counts.number,
            counts.repeat,
            counts.min_repeat_ms,
            budget_s=counts.budget_s,
            on_sample=lambda sample: self._sample(workload, sample),
        )
        result = evaluator(*arrays, output)
        return Row(self.role.name, workload.name, workload.flops, result, comparison, built.seconds)

    def _sample(self, workload: Workload, sample: Sample) -> None:
        self._tell(Event("sample", self.role.name, workload.name, seconds=sample.seconds))


def _head(row: Row) -> tuple[str, str, int]:
    return (row.device, row.workload, row.flops)
