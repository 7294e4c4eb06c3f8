"""The talk with a tracker, over a link that a test speaks through."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from farbench_device_runtime.identity import Identity
from farbench_device_runtime.leases import Lease, accept
from farbench_device_runtime.registration import ANSWER_S, REFUSED_RETRY_S, Offer, Registration
from farbench_rpc.codec import encode
from farbench_rpc.errors import ConnectError, Refused
from farbench_rpc.messages import (
    VERSION,
    Beat,
    ErrorReply,
    Grant,
    LeaseEnded,
    Leave,
    Message,
    Ok,
    Register,
    Registered,
    Revoke,
    Welcome,
)
from farbench_rpc.pending import Push


@dataclass
class FakeLink:
    """Keeps what was said; `hear` is what the tracker says next."""

    said: list[tuple[int, Message]] = field(default_factory=list)
    heard: list[Push] = field(default_factory=list)
    is_up: bool = True
    minor: int = VERSION[1]
    reconnects: int = 0

    def receive(self) -> Push | None:
        return self.heard.pop(0) if self.heard else None

    def ask(self, message: Message) -> int:
        if not self.is_up:
            raise ConnectError("down")
        encode(message, 1, self.minor)  # refuses what the far side's version has not
        self.said.append((len(self.said) + 1, message))
        return len(self.said)

    def answer(self, request_id: int, message: Message) -> None:
        self.said.append((request_id, message))

    def reconnect(self, why: str) -> None:
        self.reconnects += 1

    def close(self) -> None:
        self.is_up = False


class FakeCore:
    """A device that ends leases when the test says so."""

    def __init__(self, folder: Path) -> None:
        self.identity = Identity(folder, "0" * 32)
        self.facts: dict[str, object] = {"arch": "x86_64"}
        self.lease: Lease | None = None
        self.renewed: list[str] = []
        self.revoked: list[tuple[str, str]] = []
        self.then: list[object] = []

    def grant(self, grant: Grant) -> None:
        self.lease = accept(grant, self.lease, self.identity, 0.0)

    def renew(self, lease: str) -> None:
        self.renewed.append(lease)

    def revoke(self, lease: str, reason: str, then: object) -> None:
        self.revoked.append((lease, reason))
        self.then.append(then)


class Scene:
    """A registration with its clock, link and device."""

    def __init__(self, folder: Path) -> None:
        self.now = 100.0
        self.link, self.core = FakeLink(), FakeCore(folder)
        self.states: list[tuple[str, str]] = []
        self.registration = Registration(
            self.link,  # type: ignore[arg-type]
            self.core,  # type: ignore[arg-type]
            Offer("n", {"a:b": "c"}, 5),
            lambda state, detail: self.states.append((state, detail)),
            lambda: self.now,
        )

    def hear(self, message: Message, request_id: int = 0) -> None:
        self.link.heard.append(Push(message, [], request_id))
        self.registration.receive()

    def last(self) -> tuple[int, Message]:
        return self.link.said[-1]

    def register(self) -> None:
        self.hear(Welcome("tracker"))
        self.hear(Registered(beat_s=5.0, renew_s=1.0, ttl_s=3.0, epoch=7), self.last()[0])


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_registers_when_the_connection_is_up(scene: Scene) -> None:
    scene.register()
    message = scene.last()[1]
    assert isinstance(message, Register)
    assert (message.name, message.labels, message.port, message.lease) == ("n", {"a:b": "c"}, 5, "")
    assert scene.states == [("registered", "")]
    assert scene.core.identity.epoch == 7


def test_beats_as_often_as_it_was_told(scene: Scene) -> None:
    scene.register()
    scene.registration.tick()
    assert len(scene.link.said) == 1
    scene.now += 5.0
    assert scene.registration.next_wake() == 0
    scene.registration.tick()
    beat = scene.last()[1]
    assert isinstance(beat, Beat)
    assert (beat.lease, beat.epoch) == ("", 7)


def test_a_leased_device_renews_faster(scene: Scene) -> None:
    scene.register()
    scene.hear(Grant("l", 8, "t", 3.0, 60.0), -4)
    assert scene.last() == (-4, Ok())
    scene.now += 1.0
    scene.registration.tick()
    request, beat = scene.last()
    assert isinstance(beat, Beat)
    assert beat.lease == "l"
    scene.hear(Ok(), request)
    assert scene.core.renewed == ["l"]


def test_a_refused_grant_says_why(scene: Scene) -> None:
    scene.register()
    scene.hear(Grant("l", 3, "t", 3.0, 60.0), -4)
    request, answer = scene.last()
    assert request == -4
    assert isinstance(answer, ErrorReply)
    assert answer.code == Refused.code


def test_a_revoke_is_answered_when_the_device_is_idle(scene: Scene) -> None:
    scene.register()
    scene.hear(Revoke("l", 8, "preempted"), -9)
    assert scene.core.revoked == [("l", "preempted")]
    assert scene.last()[0] != -9
    scene.core.then[0]()  # type: ignore[operator]
    assert scene.last() == (-9, Ok())
    assert scene.core.identity.epoch == 8


def test_a_renewal_that_is_refused_ends_the_lease(scene: Scene) -> None:
    scene.register()
    scene.hear(Grant("l", 8, "t", 3.0, 60.0), -4)
    scene.now += 1.0
    scene.registration.tick()
    scene.hear(ErrorReply("lease_lost", "the client is gone"), scene.last()[0])
    assert scene.core.revoked == [("l", "the client is gone")]


def test_an_end_that_could_not_be_told_is_told_later(scene: Scene) -> None:
    scene.register()
    scene.link.is_up = False
    scene.core.on_ended("l", 8, "closed")  # type: ignore[attr-defined]
    scene.link.is_up = True
    scene.register()
    request, message = scene.last()
    assert message == LeaseEnded("l", 8, "closed")
    scene.hear(Ok(), request)
    scene.register()
    assert isinstance(scene.last()[1], Register)


def test_a_tracker_that_does_not_answer_is_dialled_anew(scene: Scene) -> None:
    scene.hear(Welcome("tracker"))
    scene.now += ANSWER_S + 0.1
    scene.registration.tick()
    assert scene.link.reconnects == 1
    scene.registration.tick()
    assert scene.link.reconnects == 1


def test_a_refusal_is_said_and_tried_again_later(scene: Scene) -> None:
    scene.hear(Welcome("tracker"))
    scene.hear(ErrorReply("denied", "a live device has this id"), scene.last()[0])
    assert scene.states == [("refused", "a live device has this id")]
    scene.now += REFUSED_RETRY_S
    scene.registration.tick()
    assert [type(message) for _, message in scene.link.said] == [Register, Register]


def test_a_tracker_that_forgot_is_registered_with_again(scene: Scene) -> None:
    scene.register()
    scene.now += 5.0
    scene.registration.tick()
    scene.hear(ErrorReply("not_found", "register first"), scene.last()[0])
    assert isinstance(scene.last()[1], Register)


def test_the_end_of_the_connection_is_said(scene: Scene) -> None:
    scene.register()
    scene.hear(ErrorReply("connect", "refused"))
    assert scene.states[-1] == ("lost", "refused")
    assert scene.registration.registered is None


def test_it_says_that_it_leaves(scene: Scene) -> None:
    scene.register()
    scene.registration.close()
    assert scene.last()[1] == Leave()
    assert not scene.link.is_up


@pytest.mark.parametrize("how", ["never registered", "connection down", "older tracker"])
def test_n8_where_nobody_hears_that_it_leaves_it_just_goes(scene: Scene, how: str) -> None:
    if how != "never registered":
        scene.register()
    if how == "connection down":
        scene.link.is_up = False
    if how == "older tracker":
        scene.link.minor = 1
    said = list(scene.link.said)
    scene.registration.close()
    assert scene.link.said == said
    assert not scene.link.is_up
