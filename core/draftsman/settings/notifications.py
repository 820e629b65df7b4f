"""Notifications about jobs, and their delivery."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from draftsman.settings.section import Section, UserPath


class NotificationSettings(Section):
    """Default targets of messages, and delivery attempts."""

    targets: tuple[str, ...] = ()
    """Targets of every request without its own: "log", "webhook:NAME". A request from a
    channel has its thread, card or issue as target; for other requests without a target, only dead
    letters are reported, to the fallback."""
    fallback: str = "log"
    """Target for messages that could not be delivered, and for dead letters that no target of the
    job receives; "none": only the log of the process."""
    log_file: UserPath | None = Field(None, examples=["/var/log/draftsman-notifications.jsonl"])
    """File of the channel log, in JSON lines. Unset: notifications.jsonl in data_dir."""
    max_attempts: int = Field(10, ge=1, le=100)
    """Attempts until a delivery is a dead letter."""
    base_delay: float = Field(1, gt=0, le=3600)
    """Seconds before the second attempt, without jitter; doubled after each attempt."""
    max_delay: float = Field(600, gt=0, le=86_400)
    """Maximum seconds between attempts."""
    timeout: float = Field(10, gt=0, le=300)
    """Timeout of a call to a channel in seconds; also the maximum delay of a message that a killed
    process may have sent."""
    lease: float = Field(60, gt=0, le=3600)
    """Seconds after which another process takes over a delivery of a process that is alive and does
    not finish it; at least four times timeout. A killed process is detected within two seconds."""
    in_flight: int = Field(16, ge=1, le=200)
    """Concurrent deliveries of a process to a channel."""
    per_target: int = Field(4, ge=1, le=100)
    """Concurrent deliveries to a target."""
    poll: float = Field(5, gt=0, le=60)
    """Poll interval in seconds, used when no notification arrives."""

    @model_validator(mode="after")
    def _check_lease(self) -> Self:
        if self.timeout * 4 > self.lease:  # two searches, a send, and a reserve
            raise ValueError("lease must be at least four times timeout")
        return self
