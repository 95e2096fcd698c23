"""What `/metrics` tells: numbers of requests and their times, by route and status."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Histogram


class Metrics:
    """The counts of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Histogram(
            "pii_bench_request_seconds",
            "Time of requests",
            ("method", "route", "status"),
            registry=self.registry,
        )

    def add(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request more."""
        self._requests.labels(method, route, str(status)).observe(seconds)
