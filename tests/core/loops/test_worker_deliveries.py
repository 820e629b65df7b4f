"""A worker sends the events of its jobs to the log and to webhooks."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook

from draftsman.domain.job import Status
from draftsman.domain.outcome import Done
from draftsman.domain.question import Answered
from draftsman.handlers.context import RunContext
from draftsman.runtime import Runtime, wire
from draftsman.settings import Settings
from tests.core.loops.workers import running_worker
from tests.core.outbox.rows import deliveries_of
from tests.factories import Factory
from tests.support.http_server import Reply, Request, serving
from tests.support.waits import until

SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()


async def _ask(ctx: RunContext) -> Done:
    answer = await ctx.ask("pick", "Which one?", choices=["red", "blue"])
    assert isinstance(answer, Answered)
    return Done({"summary": f"it is {answer.value}"})


async def _fail(_: RunContext) -> Done:
    raise ValueError("no good")


def _configured(rt: Runtime, tmp_path: Path, **notifications: Any) -> Runtime:
    """Return the services with a log and a webhook, and a short poll interval."""
    values = {
        "worker": {"poll": 0.05, "drain": 0},
        "data_dir": tmp_path,
        "types": {"broken": {"max_attempts": 1, "max_retries": 0}},
        **notifications,
    }
    settings = Settings.model_validate(rt.settings.model_dump() | values)
    return wire(settings, rt.db, False)


async def test_a_worker_delivers_to_the_log(rt: Runtime, make: Factory, tmp_path: Path) -> None:
    configured = _configured(rt, tmp_path, notifications={"targets": ["log"], "poll": 60})
    file = tmp_path / "notifications.jsonl"

    def said() -> list[str]:
        if not file.exists():
            return []
        return [json.loads(line)["data"]["text"] for line in file.read_text().splitlines()]

    async def has(expected: str) -> bool:
        return any(expected in text for text in said())

    async with running_worker(configured, {"asking": _ask}):
        number = await Factory(configured, make.owner).queued(type="asking", queue="default")
        await until(lambda: has("D-1/1 asks: Which one?"), "the question")
        await make.answer(number, "red")
        await until(lambda: has("it is red"), "the result")
        await until(lambda: has("was answered by root: red"), "the outcome")
    assert (await rt.read_model.job(number)).status is Status.COMPLETED


async def test_a_webhook_gets_only_the_configured_outcomes(
    rt: Runtime, make: Factory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPS_SECRET", SECRET)
    requests: asyncio.Queue[Request] = asyncio.Queue()

    async def answer(request: Request) -> Reply:
        requests.put_nowait(request)
        return Reply(204, b"")

    async with serving(answer) as url:
        hook = {"url": f"{url}/x", "secret": {"env": "OPS_SECRET"}, "on": ["failed", "dead_letter"]}
        configured = _configured(rt, tmp_path, webhooks={"ops": hook}, notifications={"poll": 60})
        people = Factory(configured, make.owner)
        async with running_worker(configured, {"fine": _succeed, "broken": _fail}):
            good = await people.queued(type="fine", queue="default")
            bad = await people.queued(type="broken", queue="default")
            request = await asyncio.wait_for(requests.get(), 10)
            assert await rt.read_model.wait(good) is Status.COMPLETED
    content = Webhook(SECRET).verify(request.body, request.headers)
    assert (content["type"], content["data"]["job"]["number"]) == ("job.result", bad)
    assert "no good" in content["data"]["text"]
    assert (requests.qsize(), await deliveries_of(rt, good)) == (0, [])


async def _succeed(_: RunContext) -> Done:
    return Done({})
