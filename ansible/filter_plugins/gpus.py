"""Which driver a host's GPUs need: generation by PCI device id, then kernel modules by generation. Pure tables.

Sources: NVIDIA's driver README (supported products) and pci.ids, by the ranges in which device ids were given out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# First device id of each range, in order; a range ends where the next begins.
RANGES: tuple[tuple[int, str], ...] = (
    (0x0000, "older"),
    (0x1340, "Maxwell"),
    (0x15F0, "Pascal"),
    (0x1617, "Maxwell"),
    (0x1725, "Pascal"),
    (0x17C2, "Maxwell"),
    (0x1B00, "Pascal"),
    (0x1D81, "Volta"),
    (0x1E02, "Turing"),
    (0x2080, "Ampere"),
    (0x2182, "Turing"),
    (0x2200, "Ampere"),
    (0x2300, "Hopper"),
    (0x2400, "Ampere"),
    (0x2681, "Ada"),
    (0x2900, "Blackwell"),
    (0x3000, "newer"),
)
# Kernel modules that exist for a generation; the first is taken.
MODULES = {
    "Maxwell": ("proprietary",),
    "Pascal": ("proprietary",),
    "Volta": ("proprietary",),
    "Turing": ("open", "proprietary"),
    "Ampere": ("open", "proprietary"),
    "Ada": ("open", "proprietary"),
    "Hopper": ("open", "proprietary"),
    "Blackwell": ("open",),
}
LAST_PROPRIETARY_BRANCH = 580


def generation(device_id: str) -> str:
    """Name of the generation of a PCI device id such as `20b0`; `older` and `newer` have no driver here."""
    number = int(device_id, 16)
    return [name for first, name in RANGES if first <= number][-1]


def driver_plan(facts: Mapping[str, Any], branch: int, least: int) -> dict[str, Any]:
    """packages: to be installed, none where a good driver is loaded; refused: a sentence, empty where all is well."""
    if not facts["gpus"]:
        return {"packages": [], "refused": ""}
    loaded = facts["driver"]
    if loaded:
        good = int(loaded.split(".")[0]) >= int(least)
        old = f"its NVIDIA driver {loaded} is too old; at least {least} is needed. Upgrade it, or rent a newer image."
        return {"packages": [], "refused": "" if good else old}
    kinds = {generation(gpu["device_id"]) for gpu in facts["gpus"]}
    unknown = sorted(kind for kind in kinds if kind not in MODULES)
    if unknown:
        return {"packages": [], "refused": f"has a GPU {unknown[0]} than our tables; install its driver by hand."}
    common = [m for m in ("open", "proprietary") if all(m in MODULES[kind] for kind in kinds)]
    if not common:
        return {"packages": [], "refused": f"no driver carries {' and '.join(sorted(kinds))} GPUs in one host."}
    return {"packages": _packages(facts["os"], common[0], int(branch)), "refused": ""}


def _packages(system: Mapping[str, str], module: str, branch: int) -> list[str]:
    """Ubuntu names the branch and has signed modules; Debian has one branch a release (in non-free)."""
    if system["id"] == "ubuntu":
        return [f"nvidia-driver-{branch}-server{'-open' if module == 'open' else ''}"]
    kernel = "nvidia-open-kernel-dkms" if module == "open" else "nvidia-kernel-dkms"
    return [kernel, "nvidia-driver", "linux-headers-amd64"]


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"driver_plan": driver_plan, "gpu_generation": generation}
