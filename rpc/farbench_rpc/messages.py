"""Every message that crosses a wire, in one place.

A message is a frozen dataclass whose `KIND` is its name on the wire. It travels as one header
frame, msgpack of [minor version, kind, request id, {field: value}], at most 64 KiB, followed by
raw payload frames. A field whose name is not known, or whose value is not of the declared type, is
refused by name. A reply carries the id of its request; events carry it too and come before the
reply. Ids are positive where the side that dialled asks, negative where the side that listens asks,
and 0 where nobody waits for an answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

VERSION: tuple[int, int] = (1, 2)

Value = str | int | float | bool
Facts = dict[str, str | int | float | bool | tuple[str, ...]]


@dataclass(frozen=True)
class Message:
    """The base of every message.

    `SINCE` is the minor version a kind came with; an `EVENT` comes before the reply of its request.
    A field that came later says so: `field(default=..., metadata={"since": 1})`.
    """

    KIND: ClassVar[str] = ""
    SINCE: ClassVar[int] = 0
    EVENT: ClassVar[bool] = False


# --- every connection ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Hello(Message):
    """First message of a connection: who speaks, and which version."""

    KIND: ClassVar[str] = "hello"
    role: str  # client, device
    version: tuple[int, int] = VERSION
    agent: str = ""


@dataclass(frozen=True)
class Welcome(Message):
    """Answer to Hello: the version both use, and settings of the server (seconds, bytes)."""

    KIND: ClassVar[str] = "welcome"
    role: str  # tracker, device
    version: tuple[int, int] = VERSION
    settings: dict[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class Ok(Message):
    """Done; nothing to add."""

    KIND: ClassVar[str] = "ok"


@dataclass(frozen=True)
class ErrorReply(Message):
    """The request failed: a code of `farbench_rpc.errors`, one line, and its details."""

    KIND: ClassVar[str] = "error"
    code: str
    message: str
    detail: dict[str, Value] = field(default_factory=dict)


# --- client and tracker -------------------------------------------------------------------------


@dataclass(frozen=True)
class DeviceInfo(Message):
    """A device as the tracker knows it (a part of other messages)."""

    KIND: ClassVar[str] = "device-info"
    id: str
    name: str
    state: str  # free, granting, leased, recovering, lost, quarantined, draining
    labels: dict[str, str]
    facts: Facts
    addresses: tuple[str, ...]
    epoch: int
    lease: str = ""
    holder: str = ""
    reason: str = ""


@dataclass(frozen=True)
class LeaseRequest(Message):
    """Ask for a device; answered by LeaseQueued events, then LeaseGranted or ErrorReply."""

    KIND: ClassVar[str] = "lease-request"
    requirement: str
    request: str  # unique; a repeat gets the same answer
    priority: int = 1
    session_timeout_s: float = 600.0
    wait_s: float = 60.0
    user: str = ""


@dataclass(frozen=True)
class LeaseQueued(Message):
    """Event: the request waits at `position` (0 is next), because of `reason`."""

    KIND: ClassVar[str] = "lease-queued"
    EVENT: ClassVar[bool] = True
    position: int
    reason: str


@dataclass(frozen=True)
class LeaseGranted(Message):
    """A device is yours until the lease ends; `token` opens a session on it."""

    KIND: ClassVar[str] = "lease-granted"
    lease: str
    epoch: int
    token: str
    device: DeviceInfo
    ttl_s: float
    renew_s: float
    queued_s: float


@dataclass(frozen=True)
class LeaseRenew(Message):
    """Keep leases alive; answered by LeaseRenewed."""

    KIND: ClassVar[str] = "lease-renew"
    leases: tuple[str, ...]


@dataclass(frozen=True)
class LeaseRenewed(Message):
    """Which leases live, and why the others ended."""

    KIND: ClassVar[str] = "lease-renewed"
    alive: tuple[str, ...]
    ended: dict[str, str]


@dataclass(frozen=True)
class LeaseRelease(Message):
    """Give a lease back; answered by Ok (also for one that has ended)."""

    KIND: ClassVar[str] = "lease-release"
    lease: str


@dataclass(frozen=True)
class LeaseCancel(Message):
    """Withdraw a request that waits; answered by Ok."""

    KIND: ClassVar[str] = "lease-cancel"
    request: str


@dataclass(frozen=True)
class ListDevices(Message):
    """Ask for the devices that match, a page at a time; answered by DevicePage."""

    KIND: ClassVar[str] = "list-devices"
    requirement: str = ""
    cursor: str = ""


@dataclass(frozen=True)
class DevicePage(Message):
    """A page of devices; `cursor` is empty on the last."""

    KIND: ClassVar[str] = "device-page"
    devices: tuple[DeviceInfo, ...]
    cursor: str = ""


@dataclass(frozen=True)
class QueueEntry(Message):
    """A request that waits (a part of QueuePage)."""

    KIND: ClassVar[str] = "queue-entry"
    request: str
    user: str
    requirement: str
    priority: int
    waited_s: float
    reason: str


@dataclass(frozen=True)
class ListQueue(Message):
    """Ask for the waiting requests in order; answered by QueuePage."""

    KIND: ClassVar[str] = "list-queue"
    cursor: str = ""


@dataclass(frozen=True)
class QueuePage(Message):
    """A page of waiting requests; `cursor` is empty on the last."""

    KIND: ClassVar[str] = "queue-page"
    entries: tuple[QueueEntry, ...]
    cursor: str = ""


# --- device and tracker -------------------------------------------------------------------------


@dataclass(frozen=True)
class Register(Message):
    """A device offers itself; answered by Welcome-like settings in Registered, or ErrorReply."""

    KIND: ClassVar[str] = "register"
    id: str
    name: str
    labels: dict[str, str]
    facts: Facts
    port: int  # where its own server listens
    addresses: tuple[str, ...] = ()  # hosts it believes it can be reached at; may be empty
    epoch: int = 0  # the highest it has seen
    lease: str = ""  # the lease it is still serving


@dataclass(frozen=True)
class Registered(Message):
    """The device is known; beat every `beat_s` when idle, renew every `renew_s` when leased."""

    KIND: ClassVar[str] = "registered"
    beat_s: float
    renew_s: float
    ttl_s: float
    epoch: int


@dataclass(frozen=True)
class Beat(Message):
    """Device to tracker: alive; names the lease it serves (empty: idle). Answered by Ok."""

    KIND: ClassVar[str] = "beat"
    lease: str = ""
    epoch: int = 0
    load: float = 0.0


@dataclass(frozen=True)
class Grant(Message):
    """Tracker to device: serve this lease; answered by Ok (confirmed) or ErrorReply."""

    KIND: ClassVar[str] = "grant"
    lease: str
    epoch: int
    token: str
    ttl_s: float
    session_timeout_s: float
    user: str = ""


@dataclass(frozen=True)
class Revoke(Message):
    """Tracker to device: the lease is over, end its session; answered by Ok when it is idle."""

    KIND: ClassVar[str] = "revoke"
    lease: str
    epoch: int
    reason: str


@dataclass(frozen=True)
class LeaseEnded(Message):
    """Device to tracker: the session of the lease is over and the device idle. Answered by Ok."""

    KIND: ClassVar[str] = "lease-ended"
    lease: str
    epoch: int
    reason: str


@dataclass(frozen=True)
class Leave(Message):
    """Device to tracker: its owner stops it, so it need not stay listed. Answered by Ok."""

    KIND: ClassVar[str] = "leave"
    SINCE: ClassVar[int] = 2
    reason: str = ""


# --- client and device: session -----------------------------------------------------------------


@dataclass(frozen=True)
class SessionOpen(Message):
    """Open the session of a lease; answered by SessionOpened."""

    KIND: ClassVar[str] = "session-open"
    lease: str
    epoch: int
    token: str


@dataclass(frozen=True)
class SessionOpened(Message):
    """The worker is ready. `chunk_bytes` is the payload of one transfer frame."""

    KIND: ClassVar[str] = "session-opened"
    device: str
    facts: Facts
    chunk_bytes: int
    window: int  # transfer frames that may be under way


@dataclass(frozen=True)
class SessionClose(Message):
    """End the session; answered by Ok when the worker is gone."""

    KIND: ClassVar[str] = "session-close"


@dataclass(frozen=True)
class SessionLost(Message):
    """Event without a request: the session is over (lease_lost, device draining, ...)."""

    KIND: ClassVar[str] = "session-lost"
    EVENT: ClassVar[bool] = True
    code: str
    reason: str


@dataclass(frozen=True)
class Upload(Message):
    """Announce a file by digest; answered by UploadWanted.

    A file that is still being hashed may be announced, and its chunks sent, under 64 random
    hexadecimal digits; its real announcement names them as `instead`, and what came counts.
    """

    KIND: ClassVar[str] = "upload"
    sha256: str
    nbytes: int
    name: str
    instead: str = ""


@dataclass(frozen=True)
class UploadWanted(Message):
    """The chunk ranges [first, last) that are missing; none: the file is there, checked."""

    KIND: ClassVar[str] = "upload-wanted"
    chunks: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class UploadChunk(Message):
    """One chunk, its bytes in the frame behind; not answered but by an error."""

    KIND: ClassVar[str] = "upload-chunk"
    sha256: str
    index: int


@dataclass(frozen=True)
class UploadEnd(Message):
    """All was sent; answered by Ok once the digest is checked and the file in place."""

    KIND: ClassVar[str] = "upload-end"
    sha256: str


@dataclass(frozen=True)
class Load(Message):
    """Load the library uploaded under `name`; answered by Loaded."""

    KIND: ClassVar[str] = "load"
    name: str


@dataclass(frozen=True)
class Loaded(Message):
    """A handle of the library; its manifest (encoded) is the frame behind."""

    KIND: ClassVar[str] = "loaded"
    module: int


@dataclass(frozen=True)
class Alloc(Message):
    """Make an array on the device (uninitialised); answered by Allocated."""

    KIND: ClassVar[str] = "alloc"
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Allocated(Message):
    """A handle of an array."""

    KIND: ClassVar[str] = "allocated"
    array: int


@dataclass(frozen=True)
class Free(Message):
    """Drop arrays; answered by Ok."""

    KIND: ClassVar[str] = "free"
    arrays: tuple[int, ...]


@dataclass(frozen=True)
class Put(Message):
    """Bytes of an array from `offset`, in the frame behind; only the `last` is answered, by Ok."""

    KIND: ClassVar[str] = "put"
    array: int
    offset: int
    last: bool


@dataclass(frozen=True)
class Get(Message):
    """Ask for bytes of an array; answered by GetChunk events with a frame each, then Ok."""

    KIND: ClassVar[str] = "get"
    array: int
    offset: int
    nbytes: int


@dataclass(frozen=True)
class GetChunk(Message):
    """Event: bytes from `offset`, in the frame behind."""

    KIND: ClassVar[str] = "get-chunk"
    EVENT: ClassVar[bool] = True
    offset: int


@dataclass(frozen=True)
class Credit(Message):
    """Client to device: `frames` more GetChunk events may be sent for request `request`."""

    KIND: ClassVar[str] = "credit"
    request: int
    frames: int


@dataclass(frozen=True)
class Fill(Message):
    """Fill an array from a seed (`uniform` over [low, high), `constant` low); answered by Ok."""

    KIND: ClassVar[str] = "fill"
    array: int
    seed: int
    kind: str = "uniform"
    low: float = 0.0
    high: float = 1.0


@dataclass(frozen=True)
class CallEntry(Message):
    """Call an entry once. An argument is an array handle or a number, as the manifest says.

    A uint64 travels as the int64 of the same bits. `threads` is for parallel loops, 0 as usual.
    """

    KIND: ClassVar[str] = "call"
    module: int
    entry: str
    args: tuple[int | float, ...]
    timeout_s: float = 60.0
    threads: int = field(default=0, metadata={"since": 1})


@dataclass(frozen=True)
class Called(Message):
    """The call returned; how long it ran on the device."""

    KIND: ClassVar[str] = "called"
    elapsed_ns: int


@dataclass(frozen=True)
class Arm(Message):
    """What one arm of a measurement runs, as in CallEntry (a part of Measure)."""

    KIND: ClassVar[str] = "arm"
    module: int
    entry: str
    args: tuple[int | float, ...]


@dataclass(frozen=True)
class StopRule(Message):
    """When a measurement ends (a part of Measure): counts, batch length and caps.

    A sample is `number` calls at least, more until it lasts `min_sample_s` and 1,000 ticks of the
    timer, unless `exact`. `repeat` samples are taken; `max_calls` and `budget_s` always hold.
    """

    KIND: ClassVar[str] = "stop-rule"
    number: int = 1
    repeat: int = 1
    min_sample_s: float = 0.0
    exact: bool = False
    max_calls: int = 1_000_000_000
    budget_s: float = 60.0


@dataclass(frozen=True)
class Measure(Message):
    """Time arms; answered by Samples events, then Measured."""

    KIND: ClassVar[str] = "measure"
    arms: tuple[Arm, ...]
    stop: StopRule
    order: str = "sequential"  # later: abba
    mode: str = "tune"  # tune, report, ab
    cache: str = "hot"  # hot, cold
    timer: str = "wall"
    timeout_s: float = 120.0
    threads: int = field(default=0, metadata={"since": 1})


@dataclass(frozen=True)
class Samples(Message):
    """Event: samples of one arm; the frame behind is int64 little-endian total_ns[count]."""

    KIND: ClassVar[str] = "samples"
    EVENT: ClassVar[bool] = True
    arm: int
    execution: int
    k: int  # calls in each of these samples
    count: int


@dataclass(frozen=True)
class Measured(Message):
    """The measurement is over: facts of each arm by `<arm>.<fact>` and of the device."""

    KIND: ClassVar[str] = "measured"
    facts: dict[str, Value]
    flags: tuple[str, ...]  # what disturbs: emulated, same_layout, busy, preempted, unsteady, ...


@dataclass(frozen=True)
class Ping(Message):
    """Ask for a sign of life; answered by Ok."""

    KIND: ClassVar[str] = "ping"
