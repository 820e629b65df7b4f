"""Retention of old data."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from draftsman.settings.section import Section, UserPath

_Count = Annotated[int, Field(ge=1, le=1200)]
Months = Annotated[_Count | None, BeforeValidator(lambda v: None if v == "never" else v)]


class RetentionSettings(Section):
    """Retention of old data in the database."""

    events: Months = None
    """Months after which events are archived; None (`never`): they are kept."""
    logs: Months = None
    """Months after the end of a job before its logs are deleted; None: they are kept."""
    archive_dir: UserPath | None = None
    """Directory of the archives; None: `archive` in the data directory."""
