"""Events of a forge, in the same form for each forge and for webhooks and polls. Pure."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from draftsman.formats.invisible import line_ends
from draftsman.formats.received_json import replace_surrogates
from draftsman.formats.truncation import truncate
from draftsman.log import redact
from draftsman.text import clean

MAX_TEXT: Final = 8000
"""Maximum characters of a text that is kept; a message to an agent has 10,000."""
MAX_ISSUE: Final = 60_000
"""Maximum characters of the text of an issue that is kept."""
CLOCKS: Final = timedelta(seconds=1)
"""Time by which a webhook may be older than the event of its label."""
OWN: Final = "<!-- draftsman "
"""Beginning of the line by which draftsman finds its own texts."""
EDITED: Final = timedelta(seconds=2)
"""Time from the first version of a comment after which it counts as edited."""


class EventKind(StrEnum):
    """Kind of an event."""

    COMMENT = "comment"
    """A comment on a pull request."""
    REVIEW = "review"
    """The text and the verdict of a review."""
    REVIEW_THREAD = "review_thread"
    """A comment on lines of a pull request."""
    CHECK_FAILED = "check_failed"
    CONFLICT = "conflict"
    """A pull request conflicts with its base."""
    MERGED = "merged"
    CLOSED = "closed"
    REOPENED = "reopened"
    """A pull request that was closed is open again."""
    LABELED_ISSUE = "labeled_issue"
    ISSUE_COMMENT = "issue_comment"
    ANSWER = "answer"
    """An answer to a question of draftsman, by a command in a comment on a pull request."""


PEOPLE_KINDS: Final = frozenset(
    {EventKind.LABELED_ISSUE, EventKind.ISSUE_COMMENT, EventKind.ANSWER}
)
"""Kinds of events by which people request jobs and answer questions."""
PULL_KINDS: Final = frozenset(EventKind) - PEOPLE_KINDS
"""Kinds of events of a pull request."""


@dataclass(frozen=True, slots=True)
class ForgeEvent:
    """An event of a pull request or an issue.

    `key` identifies it in its repository, with the same value in a webhook and in a poll: the id
    of a comment with a digest of its text, the id and the result of a check, a change of state.
    """

    kind: EventKind
    project: str
    """Repository: `acme/pay`, in lower case."""
    number: int
    """Number of the pull request or issue."""
    key: str
    author: str = ""
    """Login; empty for the forge itself."""
    author_id: str = ""
    """Id of the account, which another account that takes its login does not have."""
    is_bot: bool = False
    association: str | None = None
    """Relation of the author to the repository, where the forge tells it: `MEMBER`, …"""
    verdict: str | None = None
    """Of a review: `approved`, `changes_requested`, `commented`."""
    title: str = ""
    """Title of an issue, or name of a check."""
    text: str = ""
    label: str | None = None
    """Label that an issue was given."""
    path: str | None = None
    line: int | None = None
    commit: str | None = None
    thread: str | None = None
    """Id of the thread or comment that an answer goes to."""
    url: str | None = None
    at: datetime | None = None

    @property
    def is_own(self) -> bool:
        """Return whether draftsman wrote the text."""
        return OWN in self.text


@dataclass(frozen=True, slots=True)
class PullEvents:
    """The events of a pull request, and the commit of its branch; None after its end."""

    events: list[ForgeEvent]
    head: str | None = None


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event of the forge with this name in the configuration, as it was stored."""

    id: int
    forge: str
    event: ForgeEvent


@dataclass(frozen=True, slots=True)
class Labeling:
    """The event that an issue was given a label; `id` is that of the forge."""

    id: str
    by: str
    """Login of the account that gave it."""
    at: datetime | None
    by_id: str = ""
    """Id of this account."""


def label_key(number: int, label: str, occurrence: object) -> str:
    """Return the key of a label of an issue: `occurrence` is the time of a webhook."""
    return f"label:{number}:{label.casefold()}:{occurrence or ''}"


def labeled(event: ForgeEvent, labelings: Sequence[Labeling]) -> ForgeEvent:
    """Return a label of an issue with its own id and labeler, the same for webhooks and polls.

    `labelings` are all of this label, in order. Of a webhook it is the last before its time: the
    payload has neither id nor always the label that was given. Without a trace the label of an
    issue counts once.
    """
    at = event.at
    before = [item for item in labelings if at is None or item.at is None or item.at <= at + CLOCKS]
    labeling = next(iter(reversed(before or labelings)), None)
    label = event.label or ""
    if labeling is None:
        return replace(event, key=label_key(event.number, label, None))
    key = label_key(event.number, label, f"#{labeling.id}")
    return replace(
        event,
        key=key,
        author=labeling.by or event.author,
        author_id=labeling.by_id if labeling.by else event.author_id,
        at=labeling.at or at,
    )


def is_resolved(event: ForgeEvent) -> bool:
    """Return whether the key of a label is that of its own event."""
    return event.key.rpartition(":")[2].startswith("#")


def plain(text: object, limit: int = MAX_TEXT) -> str:
    """Return a text of the forge with at most `limit` characters, without secrets."""
    value = str(clean(str(text or "")[: limit * 2]))
    return truncate(line_ends(redact(value)).strip(), limit)


def version(text: object) -> str:
    """Return a digest of a text: an edited comment is a new event, a redelivered comment is not."""
    value = line_ends(replace_surrogates(str(text or ""))).strip()
    return hashlib.sha256(value.encode()).hexdigest()[:16]


def moment(value: object) -> datetime | None:
    """Return a time as forges write it: ISO 8601, or `2026-01-31 10:00:00 UTC`."""
    text = str(value or "").removesuffix(" UTC").replace("Z", "+00:00")
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def is_edited(item: Mapping[str, Any]) -> bool:
    """Return whether a comment of the API was edited.

    Maintainers may edit the comments of others, and the API names the author alone.
    """
    written = moment(item.get("created_at"))
    edited = moment(item.get("updated_at"))
    return written is not None and edited is not None and edited - written > EDITED


def account_id(account: Mapping[str, Any]) -> str:
    """Return the id of an account, which is a number on all forges; empty without one."""
    id = account.get("id")
    return str(id) if isinstance(id, int) and not isinstance(id, bool) else ""


def number(value: object) -> int:
    """Return a positive number of 31 bits, 0 for anything else."""
    if not isinstance(value, int) or isinstance(value, bool):
        return 0
    return value if 0 < value < 2**31 else 0


def fields(value: object) -> Mapping[str, Any]:
    """Return an object of JSON, empty for anything else."""
    return value if isinstance(value, Mapping) else {}


@dataclass(frozen=True, slots=True)
class Notification:
    """The content of a webhook: events, and whether the state of pull requests may have changed.

    Checks and conflicts are read from the API, which has the log of a check.
    """

    project: str
    events: tuple[ForgeEvent, ...] = ()
    changed: bool = False


def is_signature(signature: str, secret: str, body: bytes, prefix: str = "") -> bool:
    """Return whether a signature is the HMAC of a body with SHA-256, compared in constant time."""
    expected = prefix + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(signature.encode(errors="replace"), expected.encode())
