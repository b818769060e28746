"""The peak of memory within one accumulation window, on a GPU or in the resident set of the process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class Peak:
    """Largest within a window: in tensors, and held from the device. On a CPU both are the resident set."""

    allocated_bytes: int
    reserved_bytes: int


class MemoryMeter(Protocol):
    """`start` at a window's beginning, `peak` at its end; neither waits for the device."""

    def start(self) -> None: ...

    def peak(self) -> Peak: ...


class CudaMemory:
    """From the counters of PyTorch's caching allocator; the largest over `devices`."""

    def __init__(self, devices: tuple[int, ...]) -> None:
        import torch

        self._cuda, self._devices = torch.cuda, devices

    def start(self) -> None:
        for device in self._devices:
            self._cuda.reset_peak_memory_stats(device)

    def peak(self) -> Peak:
        allocated = max(self._cuda.max_memory_allocated(device) for device in self._devices)
        return Peak(allocated, max(self._cuda.max_memory_reserved(device) for device in self._devices))


class ResidentMemory:
    """From the kernel's high-water mark (VmHWM), set back at each window's start.

    Where /proc does not allow that (a restricted container) the resident set at the window's two ends is used.
    """

    def __init__(self, proc: Path = Path("/proc/self")) -> None:
        self._proc = proc
        self._resettable = True
        self._at_start = 0

    def start(self) -> None:
        if self._resettable:
            try:
                (self._proc / "clear_refs").write_text("5")  # proc(5): 5 resets the peak, nothing else
            except OSError:
                self._resettable = False
        if not self._resettable:
            self._at_start = self._read("VmRSS")

    def peak(self) -> Peak:
        largest = self._read("VmHWM") if self._resettable else max(self._at_start, self._read("VmRSS"))
        return Peak(largest, largest)

    def _read(self, name: str) -> int:
        try:
            for line in (self._proc / "status").read_text().splitlines():
                if line.startswith(f"{name}:"):
                    return int(line.split()[1]) * 1024
        except OSError:
            pass
        return 0  # not Linux: unknown


def memory_meter(devices: tuple[str, ...]) -> MemoryMeter:
    """For devices such as ("cuda:0",) or ("cpu",)."""
    numbers = tuple(int(name.partition(":")[2] or 0) for name in devices if name.startswith("cuda"))
    return CudaMemory(numbers) if numbers else ResidentMemory()
