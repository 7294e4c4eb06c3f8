"""`farbench doctor`: try every hop of the trip on every device, and name the one that fails."""

from __future__ import annotations

import click

from farbench.cli import options
from farbench.cli.output import Output
from farbench.doctoring import HOPS, Examination, Hop
from farbench.listing import why_none
from farbench.tracker import connect_tracker
from farbench_rpc.messages import DeviceInfo

COLUMNS = ("DEVICE", "ARCH", *(hop.upper() for hop in HOPS), "PROBLEM")
WAIT_S = 10.0


@click.command("doctor")
@click.argument("requirement", default="")
@options.wait_options(default_s=WAIT_S)
@options.tracker_option
@options.json_option
def command(
    requirement: str, wait_s: float | None, no_wait: bool, tracker: str | None, as_json: bool
) -> int:
    """Try connect, upload, run and return on every device that matches REQUIREMENT.

    Exit status 1 when a hop of some device fails, or when there is no device.
    """
    out = Output(as_json)
    settings = options.settings_from(tracker, WAIT_S if wait_s is None else wait_s)
    wait_for_s = options.waiting(settings, wait_s, no_wait)
    with connect_tracker(settings=settings) as connection:
        out.event("tracker", address=str(connection.address))
        found = connection.devices(requirement)
        examined: list[tuple[DeviceInfo, list[Hop]]] = []
        for device in found:
            with out.task(f"examining {device.name}") as task:
                hops: list[Hop] = []
                for hop in Examination(connection, device, wait_for_s, task.step).hops():
                    out.event("hop", device=device.name, **vars(hop))
                    hops.append(hop)
            examined.append((device, hops))
        out.result({"devices": [_data(device, hops) for device, hops in examined]})
        if found:
            out.table(COLUMNS, [_cells(device, hops) for device, hops in examined])
        else:
            out.note(why_none(connection.address, requirement, connection.devices()))
    return 0 if found and all(_healthy(hops) for _, hops in examined) else 1


def _healthy(hops: list[Hop]) -> bool:
    return bool(hops) and not hops[-1].error


def _cells(device: DeviceInfo, hops: list[Hop]) -> tuple[str, ...]:
    tried = {hop.name: hop for hop in hops}
    marks = []
    for name in HOPS:
        hop = tried.get(name)
        marks.append(
            "-" if hop is None else "FAILS" if hop.error else f"{hop.seconds * 1e3:.0f} ms"
        )
    problem = f"{hops[-1].name}: {hops[-1].error}" if hops and hops[-1].error else ""
    return (device.name, str(device.facts.get("arch", "")), *marks, problem)


def _data(device: DeviceInfo, hops: list[Hop]) -> dict[str, object]:
    failing = hops[-1] if hops and hops[-1].error else None
    return {
        "id": device.id,
        "name": device.name,
        "healthy": _healthy(hops),
        "fails_at": failing.name if failing else None,
        "error": failing.error if failing else None,
        "hops": [{"name": h.name, "seconds": h.seconds, "error": h.error or None} for h in hops],
    }
