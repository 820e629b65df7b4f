"""Files of people in a run, as bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Final

from draftsman.handlers.worker_run import WorkerRun
from draftsman.jobs.requests.attachments import (
    AttachedFile,
    JobAttachment,
    unique_names,
)

INTERVAL: Final = 0.5
"""Seconds between two looks at downloads."""
LATE: Final = "it is still being downloaded"


async def attached_files(
    run: WorkerRun, messages: Collection[int] | None = None
) -> list[AttachedFile]:
    """Return the attachments of the job, once their downloads have ended or are overdue.

    `messages`: only those that came with these messages.
    """
    service = run.services.attachments
    job = run.job.number

    def wanted(item: JobAttachment) -> bool:
        return messages is None or item.message in messages

    attachments = await run.wait(service.of_job, job)
    while any(item.is_awaited for item in attachments if wanted(item)):
        await asyncio.sleep(INTERVAL)
        attachments = await run.wait(service.of_job, job)
    names = unique_names(attachments)
    return [
        await _with_content(run, item, names[item.ordinal]) for item in filter(wanted, attachments)
    ]


async def _with_content(run: WorkerRun, item: JobAttachment, name: str) -> AttachedFile:
    data = None
    if item.status == "stored":
        data = await run.wait(run.services.attachments.content, item)
    reason = None if data is not None else item.reason or LATE
    return AttachedFile(name, item.media_type, data, reason, item.message)
