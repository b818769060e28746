"""The latest figures in Prometheus' text format over HTTP, on one address: the host's in the mesh."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Gauge, start_http_server

from trainer.errors import ConfigError

MEANING: Mapping[str, str] = {
    "step": "optimizer steps made",
    "epoch": "epoch, from 0",
    "loss": "mean loss of the last window, all replicas",
    "lr": "learning rate of the last step",
    "grad_norm": "gradient norm of the last window, before clipping",
    "samples_per_s": "samples per second, all replicas",
    "step_s": "seconds of the last window, exchange and step included",
    "wait_s": "seconds of the last window spent waiting for data",
    "peak_bytes": "memory peak of the last window: tensors, or the resident set on a CPU",
    "reserved_bytes": "memory reserved from the device, peak of the last window",
    "accum_steps": "micro-batches per window and replica",
    "global_batch": "samples per optimizer step, all replicas",
    "windows_skipped": "windows left out as not finite",
    "clipped_norm": "gradient norm of the last window, after clipping",
    "noise_scale": "gradient noise scale in samples: larger global batches than about this stop paying",
    "eval_loss": "mean held-out loss at the last evaluation",
    "accuracy": "share of held-out samples predicted right at the last evaluation",
}


class Endpoint:
    """Serve gauges `gradferry_<name>` at http://address:port/metrics until `close()`.

    Raises ConfigError where the port is taken or the address is not this host's. A registry of its own: nothing of the
    process or of other libraries is told.
    """

    def __init__(self, address: str, port: int, labels: Mapping[str, str]) -> None:
        registry = CollectorRegistry()
        self._labels = dict(labels)
        self._gauges = {
            name: Gauge(f"gradferry_{name}", meaning, tuple(labels), registry=registry)
            for name, meaning in MEANING.items()
        }
        try:
            self._server, self._thread = start_http_server(port, address, registry)
        except OSError as error:
            raise ConfigError(
                f"metrics.port = {port}: cannot listen on {address}:{port}: {error.strerror}",
                "Choose another port, or metrics.port=null for none",
            ) from None

    @property
    def port(self) -> int:
        return int(self._server.server_port)

    def update(self, values: Mapping[str, object]) -> None:
        """Set the gauges that `values` has numbers for; the rest stay."""
        for name, value in values.items():
            if name in self._gauges and isinstance(value, int | float):
                self._gauges[name].labels(**self._labels).set(value)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
