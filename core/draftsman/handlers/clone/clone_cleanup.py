"""Clones that a killed worker left behind."""

from __future__ import annotations

import asyncio
import contextlib
import re
from pathlib import Path
from typing import Final
from uuid import UUID

from draftsman.handlers.clone.tree_removal import remove_tree
from draftsman.services.runs.claim import Claim

NAME: Final = re.compile(r"D-(\d{1,18})\.(\d{1,9})-([0-9a-f]{12})")


def clone_tag(job_id: UUID) -> str:
    """Return the end of a job's id: numbers are a database's own, data folders may be shared."""
    return job_id.hex[-12:]


async def remove_stale_clones(data_dir: Path, claim: Claim) -> int:
    """Delete the folders of runs of this database that are over; return how many.

    What belongs to another database, or is no folder of a run, stays.
    """
    found = {}
    for folder in (data_dir / "runs").glob("D-*"):
        if match := NAME.fullmatch(folder.name):
            found[folder] = (int(match[1]), int(match[2]), match[3])
    if not found:
        return 0
    jobs = {
        (number, clone_tag(id)): run
        for number, id, run in await claim.open_runs(sorted({key[0] for key in found.values()}))
    }
    over = [
        folder
        for folder, (number, run, tag) in found.items()
        if (number, tag) in jobs and jobs[number, tag] != run
    ]
    for folder in over:
        with contextlib.suppress(OSError):
            await asyncio.to_thread(remove_tree, folder)
    return len(over)
