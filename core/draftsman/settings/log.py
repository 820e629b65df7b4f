"""Logging."""

from __future__ import annotations

from typing import Literal

from draftsman.settings.section import Section, UserPath


class LogSettings(Section):
    """Logging."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    file: UserPath | None = None
    """Additional log file; an unwritable file causes a warning only."""
