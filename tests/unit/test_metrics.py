"""Meters of a window, JSON lines, and the Prometheus endpoint as a client sees it."""

from __future__ import annotations

import json
import socket
import urllib.request
from pathlib import Path

import pytest

from trainer.errors import ConfigError
from trainer.metrics.lines import MetricLines
from trainer.metrics.memory import Peak, ResidentMemory, memory_meter
from trainer.metrics.prometheus import MEANING, Endpoint
from trainer.metrics.window import Measured, WindowMeter

MIB = 2**20


class Fixed:
    def start(self) -> None: ...

    def peak(self) -> Peak:
        return Peak(100, 200)


def test_a_window_is_measured_from_its_start_to_its_end() -> None:
    times = iter([0.0, 10.0, 14.0])
    meter = WindowMeter(Fixed(), clock=lambda: next(times))
    meter.start()
    meter.waited(0.5)
    meter.waited(0.25)
    assert meter.finish(samples=32) == Measured(32, 4.0, 0.75, 8.0, 100, 200)


def test_waits_of_an_earlier_window_are_not_counted_again() -> None:
    meter = WindowMeter(Fixed())
    meter.start()
    meter.waited(1.0)
    meter.start()
    assert meter.finish(1).wait_s == 0.0


def test_the_resident_peak_is_that_of_the_window_and_not_of_the_process() -> None:
    meter = memory_meter(("cpu",))
    meter.start()
    block = bytearray(64 * MIB)
    block[::4096] = b"x" * len(block[::4096])
    high = meter.peak().allocated_bytes
    del block
    meter.start()
    low = meter.peak().allocated_bytes
    assert high - low > 48 * MIB


def test_where_the_peak_cannot_be_set_back_the_resident_set_is_used(tmp_path: Path) -> None:
    (tmp_path / "clear_refs").mkdir()  # cannot be written to
    (tmp_path / "status").write_text("VmHWM:\t900 kB\nVmRSS:\t300 kB\n")
    meter = ResidentMemory(tmp_path)
    meter.start()
    (tmp_path / "status").write_text("VmHWM:\t900 kB\nVmRSS:\t200 kB\n")
    assert meter.peak() == Peak(300 * 1024, 300 * 1024)


def test_metric_lines_are_json_also_when_the_loss_is_not_a_number(tmp_path: Path) -> None:
    lines = MetricLines(tmp_path / "metrics" / "a-0.jsonl")
    lines.write({"step": 1, "loss": float("nan")})
    lines.write({"step": 2, "loss": 0.5})
    read = [json.loads(line) for line in (tmp_path / "metrics" / "a-0.jsonl").read_text().splitlines()]
    assert read == [{"step": 1, "loss": None}, {"step": 2, "loss": 0.5}]
    lines.close()


def scraped(endpoint: Endpoint) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{endpoint.port}/metrics", timeout=10) as answer:
        return answer.read().decode()


def test_prometheus_reads_the_latest_figures_and_nothing_of_others() -> None:
    endpoint = Endpoint("127.0.0.1", 0, {"host": "sin", "rank": "2"})
    endpoint.update({"step": 3, "loss": 0.25, "unknown": 1.0, "accuracy": None})
    endpoint.update({"step": 4})
    text = scraped(endpoint)
    endpoint.update(dict.fromkeys(MEANING, 1))
    everything = scraped(endpoint).splitlines()
    endpoint.close()
    assert 'gradferry_step{host="sin",rank="2"} 4.0' in text
    assert 'gradferry_loss{host="sin",rank="2"} 0.25' in text
    assert "unknown" not in text and "python_" not in text
    told = {line.partition("{")[0] for line in everything if not line.startswith("#")}
    assert told == {f"gradferry_{name}" for name in MEANING}


def test_the_endpoint_listens_on_its_address_alone() -> None:
    endpoint = Endpoint("127.0.0.1", 0, {})
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", endpoint.port), timeout=5)
    endpoint.close()


def test_two_endpoints_in_one_process_do_not_meet_and_a_taken_port_is_told() -> None:
    first, second = Endpoint("127.0.0.1", 0, {}), Endpoint("127.0.0.1", 0, {})
    with pytest.raises(ConfigError, match=f"metrics.port = {first.port}: cannot listen on 127.0.0.1"):
        Endpoint("127.0.0.1", first.port, {})
    first.close()
    second.close()
