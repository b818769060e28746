"""NVIDIA GPUs by PCI id, also where no driver is installed, and the driver's version."""

from __future__ import annotations

import glob
import os
from typing import Any

from ansible.module_utils.hostcard.command import text_of

NVIDIA = "0x10de"
DISPLAY_CLASSES = ("0x0300", "0x0302")  # VGA controller and 3D controller; audio and bridges are left out


def gpus(sysfs_root: str) -> list[dict[str, str]]:
    """One entry a GPU: PCI address, device id (`20b0`), kernel driver bound to it or an empty string."""
    found = []
    for device in sorted(glob.glob(os.path.join(sysfs_root, "bus/pci/devices/*"))):
        kind = text_of(os.path.join(device, "class")) or ""
        if text_of(os.path.join(device, "vendor")) == NVIDIA and kind[:6] in DISPLAY_CLASSES:
            bound = os.path.join(device, "driver")
            found.append(
                {
                    "address": os.path.basename(device),
                    "device_id": (text_of(os.path.join(device, "device")) or "")[2:],
                    "bound_to": os.path.basename(os.path.realpath(bound)) if os.path.exists(bound) else "",
                }
            )
    return found


def driver(sysfs_root: str) -> str | None:
    """Version of the loaded NVIDIA kernel module, such as 580.95.05."""
    return text_of(os.path.join(sysfs_root, "module/nvidia/version"))


def read(sysfs_root: str) -> dict[str, Any]:
    return {"gpus": gpus(sysfs_root), "driver": driver(sysfs_root)}
