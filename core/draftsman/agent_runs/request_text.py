"""The texts of people as an agent gets them: without what other people do not see. Pure."""

from __future__ import annotations

from typing import Final

from draftsman.formats.hidden_text import visible_text
from draftsman.jobs.runs.run import ClaimedJob

MARKDOWN_SOURCES: Final = ("forge", "trello")
"""Channels whose pages render Markdown; other text is shown as it was written."""


def shown_to_people(job: ClaimedJob, text: str) -> str:
    """Return the part of a text of the job that people see; a note stands for hidden parts."""
    markdown = job.source in MARKDOWN_SOURCES or "issue" in job.payload
    return visible_text(text, markdown=markdown)
