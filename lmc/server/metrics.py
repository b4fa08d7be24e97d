"""The server's numbers, in the text form that Prometheus reads.

    lmc_requests_total{route="/v1/chat/completions",status="200"} 12.0
    lmc_kv_slots{state="used"} 310.0

Requests are counted here as their answers end; everything else is asked of the engine when somebody looks.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lmc.runtime.session import Session
from lmc.server.gate import Gate

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
#: nginx's word for a client that went away before it had an answer.
GONE = 499


class Metrics:
    """Counts requests; `text` has all numbers."""

    def __init__(self, session: Session, gate: Gate):
        self._registry = CollectorRegistry()
        self._requests = Counter("lmc_requests", "Requests by route and status of the answer.", ["route", "status"],
                                 registry=self._registry)
        self._registry.register(_Engine(session, gate))

    def note(self, route: str, status: int) -> None:
        self._requests.labels(route, str(status)).inc()

    def text(self) -> bytes:
        return generate_latest(self._registry)


class Counting:
    """An ASGI layer that notes each request once its answer has ended."""

    def __init__(self, app: ASGIApp, metrics: Metrics):
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status = GONE

        async def seen(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, seen)
        finally:
            # A path that no route has is anything a client thinks up, and would make a series each.
            route = scope.get("route")
            self.metrics.note(getattr(route, "path", "other"), status)


class _Engine:
    """What the engine and the gate say of themselves, each time somebody looks."""

    def __init__(self, session: Session, gate: Gate):
        self._session, self._gate = session, gate

    def collect(self) -> Iterator[Metric]:
        stats, pulse = self._session.stats, self._session.pulse
        tokens = CounterMetricFamily("lmc_tokens", "Prompt tokens computed, prompt tokens found in the cache, tokens generated.",
                                     labels=["kind"])
        for kind, value in (("prompt", stats.prompt), ("cached", stats.cached), ("generated", stats.generated)):
            tokens.add_metric([kind], value)
        yield tokens
        looked_up = stats.prompt + stats.cached
        yield GaugeMetricFamily("lmc_cache_hit_rate", "Part of all prompt tokens that the cache had.",
                                stats.cached / looked_up if looked_up else 0.0)
        yield GaugeMetricFamily("lmc_generations_open", "Generations that clients wait for.", self._gate.open)
        yield GaugeMetricFamily("lmc_requests_running", "Requests in the engine's batch.", stats.running)
        yield GaugeMetricFamily("lmc_requests_waiting", "Requests in the engine's queue.", stats.waiting)
        yield CounterMetricFamily("lmc_turned_away", "Requests refused because too many were under way.", self._gate.turned_away)
        yield CounterMetricFamily("lmc_retractions", "Requests that went back to the queue for want of memory.", stats.retractions)
        slots = GaugeMetricFamily("lmc_kv_slots", "Slots of the key-value pool, one for a token.", labels=["state"])
        for state, value in (("free", stats.free_slots), ("cached", stats.cached_slots), ("used", stats.used_slots)):
            slots.add_metric([state], value)
        yield slots
        yield GaugeMetricFamily("lmc_kv_slots_total", "Size of the key-value pool.",
                                stats.free_slots + stats.cached_slots + stats.used_slots)
        buckets, seconds = pulse.cumulative()
        yield HistogramMetricFamily("lmc_step_seconds", "How long a step of the engine takes.",
                                    buckets=[(_bound(bound), count) for bound, count in buckets], sum_value=seconds)


def _bound(bound: float) -> str:
    return "+Inf" if bound == float("inf") else repr(bound)
