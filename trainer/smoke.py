"""A device check that takes a second: can this process compute, and on what? Run in the container before a launch."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Smoke:
    """ok: a matrix product gave the right result on `device`. gflops: of that product, warm; only a hint."""

    ok: bool
    device: str
    name: str
    devices: int
    torch: str
    cuda: str | None
    memory_bytes: int | None
    bf16: bool
    gflops: float
    problem: str | None = None


def smoke() -> Smoke:
    """Use the first GPU if there is one, else the CPU. Never raises for a device that is broken: `problem` says why."""
    import torch

    found = torch.cuda.device_count()
    try:
        if found and torch.cuda.is_available():
            properties = torch.cuda.get_device_properties(0)
            return _measured("cuda:0", properties.name, found, properties.total_memory, torch.cuda.is_bf16_supported())
        return _measured("cpu", f"{torch.get_num_threads()} threads", 1, None, True)
    except Exception as error:  # whatever a driver comes up with is the finding of this check
        reason = (str(error).splitlines() or [""])[0]
        name = "cuda:0" if found else "cpu"
        problem = f"{type(error).__name__}: {reason}"
        return Smoke(False, name, "", found, torch.__version__, torch.version.cuda, None, False, 0.0, problem)


def main() -> int:
    """Print one JSON line; 0 where the device works, 1 where it does not."""
    result = smoke()
    print(json.dumps(asdict(result)))
    return 0 if result.ok else 1


def _measured(device: str, name: str, devices: int, memory_bytes: int | None, bf16: bool) -> Smoke:
    import torch

    size = 4096 if device.startswith("cuda") else 512
    ones = torch.ones(size, size, device=device)
    product = float((ones @ ones)[0, -1])  # reading it waits for the device; also the warm-up
    began = time.perf_counter()
    float((ones @ ones)[0, 0])
    gflops = 2 * size**3 / (time.perf_counter() - began) / 1e9
    ok = product == size
    problem = None if ok else f"a product of ones gave {product}, expected {size}"
    version = torch.version.cuda
    return Smoke(ok, device, name, devices, torch.__version__, version, memory_bytes, bf16, round(gflops, 1), problem)
