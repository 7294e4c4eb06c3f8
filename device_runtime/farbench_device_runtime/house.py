"""Building a device: what both the server and a local session are made of."""

from __future__ import annotations

from farbench_device_runtime import facts
from farbench_device_runtime.core import DeviceCore
from farbench_device_runtime.identity import Identity
from farbench_device_runtime.settings import Settings
from farbench_device_runtime.shared import House
from farbench_device_runtime.store import Store
from farbench_device_runtime.supervisor import Supervisor
from farbench_rpc.messages import Facts
from farbench_rpc.server import Endpoint


def open_store(settings: Settings) -> Store:
    """Open the store of uploads in the state directory."""
    return Store(
        settings.state / "store",
        settings.chunk_bytes,
        settings.upload_limit,
        settings.store_limit,
        settings.free_floor,
    )


def collect_facts(settings: Settings, supervisor: Supervisor) -> Facts:
    """Collect the facts of the device, with the limits that held when tried."""
    return facts.collect(settings.cores, settings.emulated, supervisor.held, supervisor.subreaper)


def build_core(
    settings: Settings,
    supervisor: Supervisor,
    endpoint: Endpoint,
    identity: Identity,
    name: str,
) -> DeviceCore:
    """Put a device together; it owns nothing but its store."""
    known = collect_facts(settings, supervisor)
    house = House(settings, supervisor, endpoint, facts.machine(settings.emulated))
    return DeviceCore(house, open_store(settings), identity, name, known)
