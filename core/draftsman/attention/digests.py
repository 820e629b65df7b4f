"""Digests of questions: a message at the hours that a person chose. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time
from typing import Any, Final

from draftsman.errors import UsageError
from draftsman.ids import question_name
from draftsman.text import first_line

MAX_LISTED: Final = 50
"""Questions that a digest lists; the others are counted."""
_CLOCK: Final = re.compile(r"([01]?[0-9]|2[0-3]):[0-5][0-9]")
OFF: Final = "off"
"""What is typed instead of the hours of a digest, to get none."""


@dataclass(frozen=True, slots=True)
class DigestHours:
    """The local times of a person's digests, and the next of them."""

    person: str
    hours: list[time]
    timezone: str
    next_at: datetime | None

    @property
    def text(self) -> str:
        """The hours as text: `09:00, 15:00`."""
        return ", ".join(f"{hour:%H:%M}" for hour in sorted(self.hours))


@dataclass(frozen=True, slots=True)
class DigestQuestion:
    """An open question in the digest of a person.

    `channel` and `target` are its place, if there is one: they reach the person alone, or others,
    too. The accounts of the person are by channel.
    """

    person: str
    job: int
    question: int
    digest_at: datetime
    text: str
    expires_at: datetime | None
    title: str
    others: int
    """Other jobs that ask the same."""
    channel: str | None = None
    target: str | None = None
    accounts: Mapping[str, str] | None = None

    @property
    def place(self) -> tuple[str, str]:
        """The channel and target of the digest, or the log."""
        return (self.channel, self.target) if self.channel and self.target else ("log", "log")

    def shared_in(self, channel: str, targets: Mapping[int, str]) -> DigestQuestion:
        """Return it with the shared target of its job in a channel where the person is known."""
        if channel not in (self.accounts or {}) or self.job not in targets:
            return self
        return replace(self, channel=channel, target=targets[self.job])


def parse_hours(text: str) -> list[time]:
    """Parse `09:00,15:00`; `9:00` is 09:00. Raises UsageError."""
    hours = [hour.strip() for hour in text.split(",")]
    wrong = next((hour for hour in hours if not _CLOCK.fullmatch(hour)), None)
    if wrong is not None or len(hours) > 24:
        problem = f"{wrong[:80]!r}" if wrong is not None else "more than 24 times"
        raise UsageError(
            f"invalid hours: {problem}; give up to 24 times of 00:00 to 23:59, as in 09:00,15:00"
        )
    return sorted({time.fromisoformat(hour.rjust(5, "0")) for hour in hours})


def digest_payload(questions: Sequence[DigestQuestion]) -> dict[str, Any]:
    """Return the payload of the digest of a person; the first to expire are first."""
    return {
        "person": questions[0].person,
        "count": len(questions),
        "questions": [
            {
                "name": question_name(item.job, item.question),
                "jobs": item.others + 1,
                "text": first_line(item.text, 120),
                "title": first_line(item.title, 60),
                "expires_at": item.expires_at and item.expires_at.isoformat(),
            }
            for item in questions[:MAX_LISTED]
        ],
    }
