"""The texts of people as an agent gets them: without what other people do not see. Pure."""

from __future__ import annotations

from draftsman.formats.hidden_text import visible_text
from draftsman.jobs.job import Source
from draftsman.jobs.runs.run import ClaimedJob


def shown_to_people(job: ClaimedJob, text: str) -> str:
    """Return the part of a text of the job that people see; a note stands for hidden parts.

    Channels may render Markdown; a terminal and an API show text as it was written.
    """
    markdown = job.source not in set(Source) or "issue" in job.payload
    return visible_text(text, markdown=markdown)
