"""Loading libraries and naming devices, under the names that TVM's users know."""

from __future__ import annotations

from farbench.devices import Device, cpu
from farbench.devices import device as _device
from farbench.module import load_module

device = context = _device

__all__ = ["Device", "context", "cpu", "device", "load_module"]
