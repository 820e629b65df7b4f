"""SIGTERM during each built-in handler: released, resumed elsewhere, with a single effect."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest

from draftsman.database.database import Connection
from draftsman.jobs.job import Status
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.waits import until, wait_blocked
from tests.acceptance.processes import Installation
from tests.core.handlers.job_types.web_jobs import SECRET
from tests.core.worker.workers import wait_for_end, wait_for_status
from tests.support.faulty_server import FaultyServer, web

S = Status
TOOL = """
import os, urllib.request
call = urllib.request.Request({url!r}, data=b"x", method="POST")
call.add_header("Idempotency-Key", os.environ["TOOL_INVOCATION_ID"])
urllib.request.urlopen(call).read()
print("done")
"""
STREAM = (
    b'HTTP/1.1 200 OK\r\nconnection: close\r\n\r\ndata: {"choices": [{"delta": {"content": "half'
)
IN_ITS_THREAD = """
INSERT INTO draftsman.deliveries (job, channel, target, thread_key, kind)
VALUES (%(job)s, 'log', 'log', 'D-' || %(job)s::bigint || ' log:log', 'notice')"""
"""Blocks inserts into that thread until it is rolled back."""
REST = b'"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'


def configure(installation: Installation, site: FaultyServer, **settings: Any) -> None:
    """Configure an installation with a model, a receiver and a tool."""
    code = TOOL.format(url=site.url("/tool"))
    values = {
        "http.allow": [site.place],
        "worker.slots": 8,
        "llm.it.provider": "openai",
        "llm.it.base_url": site.url("/v1"),
        "llm.it.model": "m",
        "webhooks.it.url": site.url("/hook"),
        "webhooks.it.secret.env": "HOOK_SECRET",
        "tools.it.command": ["{python}", "-I", "-S", "-c", code],
        "tools.it.network": True,
    }
    installation.configure(None, **values, **settings)


async def streams(site: FaultyServer, writer: Any) -> None:
    """Send half of a stream, and the rest when the test continues it."""
    writer.write(STREAM)
    await writer.drain()
    await site.go.wait()
    writer.write(REST)
    await writer.drain()


@pytest.fixture
def jobs(tmp_path: Any) -> dict[str, dict[str, Any]]:
    """Return a payload for each type."""
    return {
        "http_request": {"method": "POST", "json": {"pay": 1}},
        "webhook_dispatch": {"webhook": "it", "type": "a.b"},
        "llm_generate": {"prompt": "Say"},
        "execute_tool": {"tool": "it"},
    }


@pytest.mark.slow(fast="test_sigterm_releases_a_notification_and_it_is_sent_once")
async def test_sigterm_releases_each_call_and_another_worker_makes_it_once(
    rt: Runtime,
    make: Factory,
    installations: Callable[[str], Installation],
    jobs: dict[str, dict[str, Any]],
    tmp_path: Any,
) -> None:
    async with web() as site:
        site.routes |= dict.fromkeys(("/pay", "/hook", "/tool"), site.held)
        site.routes["/v1/chat/completions"] = lambda _, writer: streams(site, writer)
        jobs["http_request"]["url"] = site.url("/pay")
        numbers = {
            type: await make.queued(type=type, queue="default", payload=payload)
            for type, payload in jobs.items()
        }
        here = installations("here")
        there = installations("there")
        for installation in (here, there):
            configure(installation, site)
        secret = {"HOOK_SECRET": SECRET}
        worker = here.start("worker", env=secret | {"DRAFTSMAN_WORKER__DRAIN": "0"})

        async def all_called() -> bool:
            return len(site.requests) == 4

        await until(all_called, "four calls")
        worker.signal(signal.SIGTERM)
        for number in numbers.values():
            job = await wait_for_status(rt, number, S.RESUMED)
            assert (job.attempts, job.retry_count, job.last_error) == (0, 0, None)
        assert await worker.end() == 0
        site.go.set()
        there.start("worker", env=secret)
        for type, number in numbers.items():
            job = await wait_for_end(rt, number)
            assert (type, job.status, job.last_error) == (type, S.COMPLETED, None)
            assert (job.run_count, job.attempts, job.retry_count) == (2, 0, 0)
            [step] = await rt.checkpoints.steps(number)
            assert once(site, type) == [step.invocation_id] * 2


async def test_sigterm_releases_a_notification_and_it_is_sent_once(
    rt: Runtime, make: Factory, installations: Callable[[str], Installation], conn: Connection
) -> None:
    here = installations("here")
    there = installations("there")
    for installation in (here, there):
        installation.configure(None, **{"notifications.log_file": str(here.folder / "told")})
    payload = {"text": "the mill is down", "targets": ["log"]}
    number = await make.queued(type="send_notification", queue="default", payload=payload)
    async with conn.transaction(force_rollback=True), rt.db.connection() as watch:
        await conn.execute(IN_ITS_THREAD, {"job": number})
        worker = here.start("worker", env={"DRAFTSMAN_WORKER__DRAIN": "0"})
        await wait_blocked(watch, by=conn.info.backend_pid)
        worker.signal(signal.SIGTERM)
        job = await wait_for_status(rt, number, S.RESUMED)
        assert (job.attempts, job.retry_count, job.last_error) == (0, 0, None)
        assert await worker.end() == 0
    there.start("worker")
    job = await wait_for_end(rt, number)
    assert (job.status, job.run_count, job.last_error) == (S.COMPLETED, 2, None)
    assert job.result is not None

    async def is_sent() -> bool:
        [row] = await rt.outbox.all(number)
        return [row.seq] == (job.result or {})["deliveries"] and row.status == "sent"

    await until(is_sent, "the notice")
    [line] = (here.folder / "told").read_text(encoding="utf-8").splitlines()
    assert "the mill is down" in line


def once(site: FaultyServer, type: str) -> list[str]:
    """Return the ids by which a receiver recognizes a repeated effect."""
    path, header = {
        "http_request": ("/pay", "idempotency-key"),
        "webhook_dispatch": ("/hook", "webhook-id"),
        "llm_generate": ("/v1/chat/completions", "idempotency-key"),
        "execute_tool": ("/tool", "idempotency-key"),
    }[type]
    return [request.headers[header] for request in site.requests if request.path == path]
