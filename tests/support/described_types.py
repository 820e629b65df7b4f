"""Workers that serve descriptions of job types, without running anything."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

from draftsman.job_types.published.description import TypeDescription
from draftsman.runtime import Runtime
from draftsman.worker.registry.service import WorkerRegistration


@asynccontextmanager
async def registered(rt: Runtime, *types: TypeDescription) -> AsyncIterator[None]:
    """Register a worker that serves these descriptions, and remove it."""
    registration = WorkerRegistration(
        rt.db,
        uuid4(),
        version="1",
        types=[type.name for type in types],
        queues=["default"],
        slots=1,
        described=types,
    )
    await registration.register()
    yield
    await registration.leave()
