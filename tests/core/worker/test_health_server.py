"""The health endpoints of a worker."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from draftsman.errors import ConfigError
from draftsman.runtime import Runtime
from draftsman.worker import health_server
from draftsman.worker.health_server import WorkerHealth, serve_health
from draftsman_testing.waits import until
from tests.core.worker.cuttable_proxy import open_proxied
from tests.core.worker.workers import noop, running_worker, runtime_with


@pytest.fixture
def health() -> WorkerHealth:
    return WorkerHealth()


@pytest.fixture
async def port(health: WorkerHealth) -> AsyncIterator[int]:
    """Provide the port of the endpoints."""
    async with serve_health(health, 0) as port:
        yield port


async def send(port: int, request: bytes) -> str:
    """Return the whole response to a request."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    async with asyncio.timeout(10):
        response = await reader.read()
    writer.close()
    return response.decode()


async def get(port: int, path: str) -> tuple[int, str]:
    """Return status and body."""
    response = await send(port, f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    head, _, body = response.partition("\r\n\r\n")
    return int(head.split()[1]), body


async def ready(port: int) -> tuple[int, dict[str, Any]]:
    """Return status and JSON of `/readyz`."""
    status, body = await get(port, "/readyz")
    return status, json.loads(body)


async def no_connection() -> str:
    """Wait forever, as for a connection of the pool."""
    await asyncio.Event().wait()
    return ""


async def test_a_worker_is_ready_from_its_registration_until_it_drains(
    rt: Runtime, health: WorkerHealth, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await get(port, "/healthz") == (200, "alive\n")
    assert await ready(port) == (503, {"ready": False, "problems": {"worker": "starting"}})
    async with running_worker(runtime_with(rt), {"noop": noop}, slots=3) as process:
        health.process = process
        status, body = await ready(port)
        assert (status, body["ready"], body["problems"]) == (200, True, {})
        assert (body["slots"], body["runs"]) == (3, 0)
        assert await get(port, "/metrics") == (503, "no metrics: see /readyz\n"), "no database yet"
        health.read_metrics = rt.metrics
        status, metrics = await get(port, "/metrics")
        assert (status, "draftsman_worker_slots 3" in metrics.splitlines()) == (200, True)
        assert "# TYPE draftsman_worker_settlements_total counter\n" in metrics
        assert "draftsman_worker_settlements_skipped_total 0\n" in metrics
        assert "draftsman_attention_questions 0\n" in metrics
        health.read_metrics = no_connection
        monkeypatch.setattr(health_server, "READ_TIMEOUT", 0.01)
        assert await get(port, "/metrics") == (503, "no metrics: see /readyz\n"), "no connection"
        process.stop.set()
        status, body = await ready(port)
        assert (status, body["problems"]) == (503, {"worker": "draining"})
        assert (await get(port, "/healthz"))[0] == 200, "it drains and must not be killed"


async def test_a_worker_without_its_database_is_alive_and_not_ready(
    rt: Runtime, database_url: str, health: WorkerHealth, port: int
) -> None:
    async def problems(expected: list[str]) -> bool:
        return list((await ready(port))[1]["problems"]) == expected

    async with (
        open_proxied(database_url) as (proxy, db),
        running_worker(runtime_with(rt, db), {"noop": noop}) as process,
    ):
        health.process = process
        assert (await ready(port))[0] == 200
        proxy.cut()
        await until(lambda: problems(["database"]), "an outage")
        assert (await ready(port))[0] == 503
        assert (await get(port, "/healthz"))[0] == 200
        proxy.mend()
        await until(lambda: problems([]), "a heartbeat that reached the database")


@pytest.mark.parametrize(
    ("request_bytes", "expected"),
    [
        (b"GET /readyz?verbose=1 HTTP/1.1\r\n\r\n", "HTTP/1.1 503 "),
        (b"HEAD /healthz HTTP/1.0\r\n\r\n", "HTTP/1.1 200 OK"),
        (b"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 404 "),
        (b"POST /healthz HTTP/1.1\r\n\r\n", "HTTP/1.1 405 "),
        (b"\xff\xfe\x00 garbage\r\n\r\n", "HTTP/1.1 405 "),
        (b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 20_000 + b"\r\n\r\n", "HTTP/1.1 431 "),
    ],
)
async def test_any_request_has_a_response(port: int, request_bytes: bytes, expected: str) -> None:
    assert (await send(port, request_bytes)).startswith(expected)
    assert (await get(port, "/healthz"))[0] == 200


async def test_a_head_request_has_no_body(port: int) -> None:
    response = await send(port, b"HEAD /healthz HTTP/1.1\r\n\r\n")
    assert response.endswith("Content-Length: 6\r\nConnection: close\r\n\r\n")


async def test_an_incomplete_request_is_closed(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health_server, "REQUEST_TIMEOUT", 0.05)
    assert await send(port, b"GET /healthz HTTP/1.1\r\n") == ""


async def test_connections_over_the_limit_are_closed_at_once(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health_server, "REQUEST_TIMEOUT", 600)
    monkeypatch.setattr(health_server, "MAX_CONNECTIONS", 2)
    waiting = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
    assert await send(port, b"") == "", "a third connection"
    assert not any(reader.at_eof() for reader, _ in waiting)
    for reader, writer in waiting:
        writer.write(b"GET /healthz HTTP/1.1\r\n\r\n")
        async with asyncio.timeout(10):
            assert (await reader.read()).endswith(b"alive\n")
        writer.close()
    assert (await get(port, "/healthz"))[0] == 200


async def test_a_used_port_is_reported_in_one_line(port: int) -> None:
    with pytest.raises(ConfigError, match=rf"health port {port}: .*; use another port"):
        async with serve_health(WorkerHealth(), port):
            pass
