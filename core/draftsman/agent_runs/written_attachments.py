"""Files of people in the home of an agent."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from draftsman.agent_runs.clones import home_files
from draftsman.agent_runs.clones.workspace import Workspace
from draftsman.agent_runs.protocol.protocol import AttachmentBody
from draftsman.handlers.job_attachments import attached_files
from draftsman.handlers.worker_run import WorkerRun
from draftsman.jobs.requests.attachments import FOLDER


async def write_attachments(
    run: WorkerRun, workspace: Workspace, messages: Collection[int] | None = None
) -> tuple[AttachmentBody, ...]:
    """Write the attachments below the agent's home, outside of its clone; return them.

    `messages`: only those that came with these messages. Raises Failure `home_files`.
    """
    files = await attached_files(run, messages)
    if not files:
        return ()
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
