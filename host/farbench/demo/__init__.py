"""The demonstration: a tracker, two devices, fourteen workloads, a table and a report."""

from farbench.demo.events import Event
from farbench.demo.plan import DemoPlan, DeviceRole
from farbench.demo.show import Show

__all__ = ["DemoPlan", "DeviceRole", "Event", "Show"]
