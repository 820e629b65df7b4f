"""Cleanup of the clones of killed workers."""

from __future__ import annotations

import asyncio
import contextlib
import re
from pathlib import Path
from typing import Final
from uuid import UUID

from draftsman.agent_runs.clones.tree_removal import remove_tree
from draftsman.jobs.runs.service.claim import Claim

NAME: Final = re.compile(r"D-(\d{1,18})\.(\d{1,9})-([0-9a-f]{12})(?:-[a-z]{1,20})?")
"""A folder of a run: job, run, tag, and the purpose of a clone besides that of the agent."""


def clone_tag(job_id: UUID) -> str:
    """Return a suffix of the job's id: databases that share a data folder repeat job numbers."""
    return job_id.hex[-12:]


async def remove_stale_clones(data_dir: Path, claim: Claim) -> int:
    """Delete the folders of finished runs of this database; return their number.

    Folders of other databases, and other folders, stay.
    """
    folders = {}
    for folder in (data_dir / "runs").glob("D-*"):
        if match := NAME.fullmatch(folder.name):
            folders[folder] = (int(match[1]), int(match[2]), match[3])
    if not folders:
        return 0
    jobs = {
        (number, clone_tag(id)): run
        for number, id, run in await claim.open_runs(sorted({key[0] for key in folders.values()}))
    }
    stale = [
        folder
        for folder, (number, run, tag) in folders.items()
        if (number, tag) in jobs and jobs[number, tag] != run
    ]
    for folder in stale:
        with contextlib.suppress(OSError):
            await asyncio.to_thread(remove_tree, folder)
    return len(stale)
