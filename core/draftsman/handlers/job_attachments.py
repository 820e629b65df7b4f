"""Files of people in a run: for handlers as bytes, for agents as files below their home."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from draftsman.handlers.worker_run import WorkerRun
from draftsman.jobs.requests.attachments import (
    FOLDER,
    AttachedFile,
    JobAttachment,
    unique_names,
)

if TYPE_CHECKING:
    from draftsman.agent_runs.clones.workspace import Workspace
    from draftsman.agent_runs.protocol.protocol import AttachmentBody

INTERVAL: Final = 0.5
"""Seconds between two looks at downloads."""
LATE: Final = "it is still being downloaded"


async def attached_files(
    run: WorkerRun, messages: Collection[int] | None = None
) -> list[AttachedFile]:
    """Return the attachments of the job, once their downloads have ended or are overdue.

    `messages`: only those that came with these messages.
    """
    service = run.services.checkpoints.attachments
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
        data = await run.wait(run.services.checkpoints.attachments.content, item)
    reason = None if data is not None else item.reason or LATE
    return AttachedFile(name, item.media_type, data, reason, item.message)


async def write_attachments(
    run: WorkerRun, workspace: Workspace, messages: Collection[int] | None = None
) -> tuple[AttachmentBody, ...]:
    """Write the attachments below the agent's home, outside of its clone; return them.

    `messages`: only those that came with these messages. Raises Failure `home_files`.
    """
    files = await attached_files(run, messages)
    if not files:
        return ()
    from draftsman.agent_runs.clones import home_files
    from draftsman.agent_runs.protocol.protocol import AttachmentBody

    contents = {file.name: file.data for file in files if file.data is not None}
    uid = workspace.sandbox.uid if workspace.sandbox else None
    await asyncio.to_thread(home_files.write, workspace.home, FOLDER, contents, uid)
    return tuple(
        AttachmentBody(
            name=file.name,
            path=f"{FOLDER}/{file.name}" if file.data is not None else None,
            media_type=file.media_type,
            size=None if file.data is None else len(file.data),
            reason=file.reason,
            message=None if file.message is None else str(file.message),
        )
        for file in files
    )
