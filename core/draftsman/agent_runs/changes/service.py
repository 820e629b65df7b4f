"""Patches of runs, and the changes that people review with a question of a job."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final

from draftsman.agent_runs.changes.diff_reader import changed_files
from draftsman.agent_runs.changes.review import (
    Review,
    difference,
    last_reviewed,
    requested_changes,
    review_since,
)
from draftsman.database.database import Connection, Database, on_connection
from draftsman.errors import CommandHint, Refused
from draftsman.ids import question_name
from draftsman.jobs.reserved_names import PATCH
from draftsman.jobs.runs.run import Lease
from draftsman.jobs.runs.service.checkpoints import Checkpoints
from draftsman.jobs.runs.store import checkpoints as store
from draftsman.questions.question import Question, QuestionKind
from draftsman.questions.store import questions

COUNTED_PATCH: Final = 1024 * 1024
"""Maximum size of a patch whose changed lines are counted, in bytes."""


class Changes:
    """Patches of runs and of questions, and what changed since an earlier question."""

    patch = on_connection(store.find_patch)

    def __init__(self, db: Database) -> None:
        self._db = db
        self._checkpoints = Checkpoints(db)

    async def store(self, lease: Lease, patch: bytes) -> None:
        """Store the changes of the run so far; raises LeaseLost, and UsageError over 25 MB."""
        counts = _changed_lines(patch)
        await self._checkpoints.artifact(lease, PATCH, "patch", patch, counts)

    async def of_question(self, question: Question, most: int | None = None) -> Review:
        """Return the changes of a question, compared with the last reviewed question of its job.

        Without them where a patch is larger than `most` MiB. An approval without a patch has the
        changes that were requested before.
        """
        is_approval = question.kind is QuestionKind.APPROVAL
        if question.patch_sha256 is None and not is_approval:
            return Review(None)
        async with self._db.connection() as conn:
            earlier_questions = await questions.of_job(conn, question.job)
            answers = await questions.answers(conn, question.job)
            reviewed = last_reviewed(earlier_questions, question.ordinal, answers)
            patch = await _patch(conn, question, most)
            before = None
            if reviewed is not None and patch is not None:
                before = await _patch(conn, reviewed, most)
        requested = requested_changes(reviewed, answers) if is_approval else None
        if reviewed is None or patch is None or before is None:
            return Review(patch, requested=requested)
        review = await asyncio.to_thread(review_since, reviewed, question, before, patch)
        return replace(review, requested=requested)

    async def patch_of(self, question: Question) -> str | None:
        """Return the patch that people review with a question; None without one."""
        async with self._db.connection() as conn:
            return await self.patch_in(conn, question)

    async def patch_in(self, conn: Connection, question: Question) -> str | None:
        """Return the patch of a question, as `patch_of`, in a transaction of the caller."""
        return await _patch(conn, question, None)

    async def between(self, question: Question, ordinal: int | None) -> tuple[str, str]:
        """Return the patch since another question of the job, and the name of that question.

        None: the last reviewed question. Raises Refused without a patch of either.
        """
        async with self._db.connection() as conn:
            of_job = await questions.of_job(conn, question.job)
            if ordinal is None:
                answers = await questions.answers(conn, question.job)
                earlier = last_reviewed(of_job, question.ordinal, answers)
                if earlier is None:
                    raise Refused(
                        f"nothing was reviewed before {question.name}",
                        hint=CommandHint("diff", question.name, lead="for all changes"),
                    )
            else:
                named = [item for item in of_job if item.ordinal == ordinal]
                if not named:
                    name = question_name(question.job, ordinal)
                    raise Refused(f"there is no question {name}")
                earlier = named[0]
            patches = [await _patch(conn, item, None) for item in (earlier, question)]
        for item, patch in zip((earlier, question), patches, strict=True):
            if patch is None:
                raise Refused(
                    f"{item.name} has no diff; only jobs that change a repository have one"
                )
        before, after = (patch or "" for patch in patches)
        since = await asyncio.to_thread(difference, earlier, question, before, after)
        return since, earlier.name


def _changed_lines(patch: bytes) -> tuple[int, int] | None:
    """Return the lines that a patch adds and removes; None for a patch that is not counted."""
    if len(patch) > COUNTED_PATCH:
        return None
    files = changed_files(patch.decode("utf-8", "replace"))
    return sum(added for _, added, _ in files), sum(removed for _, _, removed in files)


async def _patch(conn: Connection, question: Question, most: int | None) -> str | None:
    """Return the patch that was stored with a question; None without a patch, or a larger patch."""
    if question.patch_sha256 is None:
        return None
    artifact = await store.find_patch(conn, question.job, question.run)
    if artifact is None or (most is not None and artifact.size > most * 1024 * 1024):
        return None
    data = await store.content(conn, artifact.id)
    return data.decode("utf-8", "surrogateescape")
