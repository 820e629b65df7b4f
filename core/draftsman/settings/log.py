"""Logging."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from draftsman.settings.section import Section, UserPath


class LogSettings(Section):
    """Logging of processes."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """debug, info, warning or error. Tracebacks appear at debug only."""
    format: Literal["text", "json"] = "text"
    """text: a line for people. json: an object on a line, with time, level, logger, message, job,
    run and worker."""
    file: UserPath | None = Field(None, examples=["/var/log/draftsman.log"])
    """Also write to this file, if it is writable. Unset: only stderr."""
