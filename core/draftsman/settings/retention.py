"""Retention of old data."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from draftsman.settings.section import Section, UserPath

_Count = Annotated[int, Field(ge=1, le=1200)]
Months = Annotated[_Count | None, BeforeValidator(lambda v: None if v == "never" else v)]


class RetentionSettings(Section):
    """Retention of old data. "never" is the same as unset."""

    events: Months = Field(None, examples=[12])
    """Months after which events are archived in files, if all their jobs have ended. Unset:
    never."""
    logs: Months = Field(None, examples=[6])
    """Months after the end of a job when the logs of its runs are deleted, with no archive. Unset:
    never."""
    archive_dir: UserPath | None = Field(None, examples=["/var/lib/draftsman/archive"])
    """Folder of these files; several hosts need a shared folder. Unset: archive in data_dir."""
