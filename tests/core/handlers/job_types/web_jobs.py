"""Workers with the built-in handlers, configured for a test server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from draftsman.handlers import registry
from draftsman.handlers.registry import Handler
from draftsman.jobs.job import TERMINAL, Job, Status
from draftsman.runtime import Runtime, wire
from draftsman.settings.http import HttpSettings
from draftsman.settings.llm import LlmSettings
from draftsman.settings.section import Section
from draftsman.settings.tools import ToolSettings
from draftsman.settings.webhooks import WebhookSettings
from draftsman_testing.factories import Factory
from tests.core.worker.workers import running_worker, runtime_with, wait_for_status

PLACE = "127.0.0.1:1"
SITE = f"http://{PLACE}/"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def configured(rt: Runtime, allow: str = PLACE, **tables: Any) -> Runtime:
    """Return services that may call this address; `types` by job type, the rest by table."""
    base = runtime_with(rt, types=tables.pop("types", None))
    models: dict[str, type[Section]] = {
        "tools": ToolSettings,
        "llm": LlmSettings,
        "webhooks": WebhookSettings,
    }
    http = {"allow": [allow]} | tables.pop("http", {})
    update: dict[str, Any] = {"http": HttpSettings.model_validate(http)}
    for name, entries in tables.items():
        model = models[name]
        update[name] = {key: model.model_validate(value) for key, value in entries.items()}
    return wire(base.settings.model_copy(update=update), rt.db, False)


@asynccontextmanager
async def built_in(
    rt: Runtime, handlers: Mapping[str, Handler] | None = None
) -> AsyncIterator[None]:
    """Run a worker with the built-in handlers."""
    async with running_worker(rt, handlers or registry.load({}), leader=False):
        yield


async def done(
    rt: Runtime, make: Factory, type: str, payload: dict[str, Any], **fields: Any
) -> Job:
    """Submit and run a job; return it once it has ended or waits for a retry."""
    number = await make.queued(type=type, queue="default", payload=payload, **fields)
    async with built_in(rt):
        return await wait_for_status(rt, number, *TERMINAL, Status.RETRYING)


async def result_of(rt: Runtime, number: int) -> dict[str, bytes]:
    """Return the artifacts of a job."""
    names = [artifact.name for artifact in await rt.checkpoints.artifacts(number)]
    return {name: (await rt.checkpoints.read_artifact(number, name))[1] for name in names}


async def log_of(rt: Runtime, number: int) -> str:
    """Return the log of a job."""
    return "".join(chunk.text for chunk in await rt.checkpoints.logs(number))
