"""What Prometheus is told; one registry an app, so that two apps in a process do not mix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

if TYPE_CHECKING:
    from collections.abc import Iterator

    from naclip.serve.memory import Memory

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    def __init__(self, memory: Memory) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "naclip_requests", "Requests answered", ["route", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "naclip_request_seconds",
            "Time from a request's first byte to the answer's last",
            ["route"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self.accepted = Gauge(
            "naclip_accepted", "Requests accepted and not yet answered", registry=self.registry
        )
        self.refused = Counter(
            "naclip_refused", "Requests refused because the queue was full", registry=self.registry
        )
        self.left = Counter(
            "naclip_clients_left", "Clients that left before the answer", registry=self.registry
        )
        self.batch = Histogram(
            "naclip_batch_images",
            "Images that went through the model together",
            buckets=(1, 2, 4, 8, 16, 32),
            registry=self.registry,
        )
        self.registry.register(_MemoryCollector(memory))


class _MemoryCollector:
    """Read when asked for, so that the cache knows nothing of metrics."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    def collect(self) -> Iterator[Metric]:
        size = GaugeMetricFamily("naclip_cache_bytes", "Bytes of images and features remembered")
        size.add_metric([], self.memory.bytes)
        yield size
        for name, counts in (("hits", self.memory.hits), ("misses", self.memory.misses)):
            family = CounterMetricFamily(f"naclip_cache_{name}", f"Cache {name}", labels=["kind"])
            for kind, count in sorted(counts.items()):
                family.add_metric([kind], count)
            yield family
