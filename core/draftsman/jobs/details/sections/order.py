"""The sections of a job, in the order in which every medium shows them.

First what a person wants: the result, or what the job waits for; then the way there; then what the
runs left behind.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import replace
from typing import Final

from draftsman.jobs.details.job_details import JobDetails
from draftsman.jobs.details.sections import facts, related, request, runs
from draftsman.jobs.details.sections.deliveries import deliveries
from draftsman.jobs.details.sections.events import events
from draftsman.jobs.details.sections.questions import questions
from draftsman.jobs.details.sections.section import JobSection, Reader, SectionPart

Builder = Callable[[JobDetails, Reader], Iterator[SectionPart]]
SECTIONS: Final[tuple[tuple[JobSection, Builder], ...]] = (
    (JobSection("state", ""), facts.state),
    (JobSection("result", "Result"), runs.result),
    (JobSection("questions", "Questions"), questions),
    (JobSection("facts", "Job"), facts.facts),
    (JobSection("request", "Request"), request.request),
    (JobSection("joined", "Joined requests"), request.joined_requests),
    (JobSection("attachments", "Attachments"), request.attachments),
    (JobSection("messages", "Messages"), request.messages),
    (JobSection("runs", "Runs"), runs.runs),
    (
        JobSection("retries", "Retries", more="draftsman show {} --json", newest_last=True),
        related.retries,
    ),
    (JobSection("group", "Group"), related.group),
    (JobSection("parents", "Parents", more="draftsman show {} --json"), related.parents),
    (
        JobSection("children", "This job and its children", more="draftsman show {} --tree"),
        related.children,
    ),
    (JobSection("deliveries", "Deliveries", more="draftsman deliveries --job {}"), deliveries),
    (JobSection("artifacts", "Artifacts"), runs.artifacts),
    (JobSection("steps", "Steps"), runs.steps),
    (JobSection("checkpoints", "Checkpoints"), runs.checkpoints),
    (JobSection("events", "Events", more="draftsman events {}", newest_last=True), events),
)


def sections(
    details: JobDetails, reader: Reader, names: Container[str] | None = None
) -> Iterator[JobSection]:
    """Yield the sections that have parts, or those of them with these names."""
    for section, build in SECTIONS:
        if names is None or section.name in names:
            parts = tuple(build(details, reader))
            if parts:
                more = section.more.format(details.job.name)
                yield replace(section, parts=parts, more=more)
