"""Notifications about jobs, and their delivery."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from draftsman.settings.section import Section, UserPath


class NotificationSettings(Section):
    """Notifications about jobs, and their delivery."""

    targets: tuple[str, ...] = ()
    """Default targets of a request: `log`, `webhook:NAME`, …"""
    fallback: str = "log"
    """Target of undeliverable messages, and of dead letters without a target; `none`: log only."""
    log_file: UserPath | None = None
    """File of the channel `log`; None: `notifications.jsonl` in the data directory."""
    max_attempts: int = Field(10, ge=1, le=100)
    """Attempts before a delivery is dead."""
    base_delay: float = Field(1, gt=0, le=3600)
    """Seconds before the second attempt, before jitter; doubled with each."""
    max_delay: float = Field(600, gt=0, le=86_400)
    """Maximum seconds between two attempts."""
    timeout: float = Field(10, gt=0, le=300)
    """Timeout of a call to a channel, in seconds."""
    lease: float = Field(60, gt=0, le=3600)
    """Seconds after which an unfinished delivery is taken over from its process."""
    in_flight: int = Field(16, ge=1, le=200)
    """Concurrent deliveries of a process per channel."""
    per_target: int = Field(4, ge=1, le=100)
    """Concurrent deliveries of a process per target."""
    poll: float = Field(5, gt=0, le=60)
    """Seconds between polls without notifications."""

    @model_validator(mode="after")
    def _check_lease(self) -> Self:
        if self.timeout * 4 > self.lease:  # two searches, a send, and a reserve
            raise ValueError("lease must be at least four times timeout")
        return self
