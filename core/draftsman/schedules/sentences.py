"""Sentences of the database about templates and schedules."""

from __future__ import annotations

from typing import Final

SENTENCES: Final = {
    "paused": "the schedule is paused",
    "unfinished": "D-{job} is unfinished",
    "previous_unfinished": "the previous job is unfinished",
    "version_gap": "template {template}: version {version} does not follow a version",
    "change": "{role} may not change schedule {schedule}",
    "author": "{role} cannot schedule jobs of {author}",
    "undeclared": "no job type declares the schedule {schedule} so",
    "fire": "{role} did not run this schedule",
    "version_immutable": "a version of a template is immutable",
    "single_outcome": "an occurrence has a single outcome",
}
