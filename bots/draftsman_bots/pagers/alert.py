"""The keys under which pagers deduplicate the alerts of questions."""

from __future__ import annotations

from typing import Final
from uuid import UUID

_KEY: Final = "draftsman:"


def dedup_key(job: UUID, question: int) -> str:
    """Return the key of the alert of a question, unique over all databases."""
    return f"{_KEY}{job}/{question}"


def question_of(key: str) -> tuple[UUID, int] | None:
    """Return the job and the question of a key; None if it is another's."""
    job, _, question = key.removeprefix(_KEY).partition("/")
    if not (question.isascii() and question.isdigit() and len(question) < 9):
        return None
    try:
        return (UUID(job), int(question)) if key.startswith(_KEY) else None
    except ValueError:
        return None
