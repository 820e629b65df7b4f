"""A worker sends the events of its jobs to the log and to webhooks."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook

from draftsman.handlers.context import RunContext
from draftsman.jobs.job import Status
from draftsman.jobs.runs.outcome import Done
from draftsman.questions.question import Answered
from draftsman.runtime import Runtime, wire
from draftsman.settings import settings_model
from draftsman_testing.factories import Factory
from draftsman_testing.http_server import Reply, Request, serving
from draftsman_testing.outbox import deliveries_of
from draftsman_testing.waits import until
from tests.core.worker.workers import running_worker
from tests.support.statements import value

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
    settings = settings_model().model_validate(rt.settings.model_dump() | values)
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
        await until(lambda: has("D-1/1 'asking' asks: Which one?"), "the question")
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


async def test_a_delivery_waits_for_a_worker_that_has_its_webhook(
    rt: Runtime, make: Factory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers without the webhook, or without access to its secret, leave it alone."""
    requests: asyncio.Queue[Request] = asyncio.Queue()

    async def answer(request: Request) -> Reply:
        requests.put_nowait(request)
        return Reply(204, b"")

    async with serving(answer) as url:
        hook = {"url": f"{url}/x", "secret": {"env": "TEAM_SECRET"}}
        has_it = _configured(rt, tmp_path, webhooks={"team": hook}, notifications={"poll": 0.05})
        monkeypatch.setenv("OPS_SECRET", SECRET)
        without = _configured(
            rt,
            tmp_path,
            webhooks={"ops": {"url": f"{url}/ops", "secret": {"env": "OPS_SECRET"}}},
            notifications={"targets": ["log"], "poll": 0.05},
        )
        number = await Factory(has_it, make.owner).queued(
            type="fine", queue="default", notify=("webhook:team", "log")
        )
        async with running_worker(without, {"fine": _succeed}), running_worker(has_it, {}):
            assert await rt.read_model.wait(number) is Status.COMPLETED

            async def is_logged() -> bool:
                statuses = [str(d.status) for d in await deliveries_of(rt, number)]
                return statuses.count("sent") >= 2

            await until(is_logged, "status and result in the log")
            waiting = [d for d in await deliveries_of(rt, number) if d.channel == "webhook"]
            assert {(str(d.status), d.attempts, d.last_error) for d in waiting} == {
                ("pending", 0, None)
            }
            (unserved,) = await rt.outbox.unserved()
            assert unserved.text.startswith("no running process sends to webhook:team: ")
            metric = 'draftsman_unserved_deliveries{channel="webhook",target="team"} 1\n'
            assert metric in await rt.outbox.metrics()
            monkeypatch.setenv("TEAM_SECRET", SECRET)  # the worker that is running reads it
            request = await asyncio.wait_for(requests.get(), 10)
    assert Webhook(SECRET).verify(request.body, request.headers)["data"]["job"]["number"] == number


async def test_a_worker_without_webhooks_names_no_target_of_theirs(
    rt: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEAM_SECRET", SECRET)
    hook = {"url": "https://x.example/", "secret": {"env": "TEAM_SECRET"}}
    lost = {"url": "https://x.example/", "secret": {"env": "NO_SUCH"}}
    configured = _configured(rt, tmp_path, webhooks={"team": hook, "lost": lost})
    async with running_worker(configured, {}), rt.db.connection() as conn:
        assert await value(conn, "SELECT targets FROM draftsman.workers") == [
            "log",
            "webhook:team",
        ]
