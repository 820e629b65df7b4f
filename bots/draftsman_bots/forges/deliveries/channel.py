"""Delivery as comments of issues and pull requests, edited in place and found by their marker."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from draftsman.deliveries.channel import Channel
from draftsman.deliveries.delivery import (
    COPY_GONE,
    NOT_SERVED,
    TARGET_GONE,
    DeliveryKind,
    File,
    Message,
    RateLimit,
    Receipt,
    SendResult,
    Unconfirmed,
)
from draftsman.errors import Failure, UsageError
from draftsman.forges.api.connection import discussion_of
from draftsman.forges.api.rest_api import GONE
from draftsman.forges.forge import Discussion
from draftsman.forges.issue_target import IssueTarget
from draftsman.formats.amounts import format_size
from draftsman.settings import Settings
from draftsman_bots.forges.deliveries.render import marker_of, render, render_file, with_marker

CLOCK_SKEW: Final = timedelta(minutes=5)
"""Maximum difference between the clocks of the database and a forge."""
ACCOUNT: Final = "account"
"""Failure code: the forge refuses the token."""
PAUSE: Final = 60.0
"""Seconds before a delivery is tried again while a forge refuses the token."""
EVERY: Final = 1.0
BURST: Final = 20
"""Comments in a row; afterwards the time between two is `EVERY`. GitHub allows 80 in a minute."""


class ForgeChannel(Channel):
    """Comments by the accounts of `[forges]`."""

    name = "forge"

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def served(self) -> Sequence[str]:
        """Return the configured forges, each for all of its issues."""
        return [f"{name}/" for name in sorted(self._settings.forges)]

    def limits(self, message: Message) -> Sequence[RateLimit]:
        """Return the limit of all comments of the forge's account."""
        return (RateLimit(self._account_bucket(message), EVERY, BURST),)

    def bucket(self, message: Message, failure: Failure) -> str:
        """Return the bucket of the account for its failures, else that of the issue."""
        is_account = failure.code == ACCOUNT or failure.retry_after is not None
        return self._account_bucket(message) if is_account else f"{self.name}:{message.target}"

    async def send(self, message: Message) -> SendResult:
        """Post a comment."""
        return await self._post(message, render(message, self._limit(message)))

    async def find(self, message: Message) -> SendResult | None:
        """Search the comments since the message for its marker; an edit is idempotent."""
        if message.edits is not None or message.kind is DeliveryKind.QUESTION_CLOSED:
            return None
        try:
            comments = await self._discussion(message).since(message.created_at - CLOCK_SKEW)
        except Failure as error:
            return _translated(error)
        for comment in comments:
            if marker_of(comment.body) == message.marker:
                return Receipt(comment.id)
        return None

    async def edit(self, message: Message) -> SendResult:
        """Replace the text of a comment, and keep its marker."""
        ref = message.edits or ""
        if not ref.isdigit():
            return Failure(f"no comment has the id {ref!r}", origin="forge", code=COPY_GONE)
        try:
            discussion = self._discussion(message)
            comment = await discussion.get(ref)
            marker = marker_of(comment.body) or message.marker
            limit = self._limit(message)
            text = with_marker(render(message, limit), marker, limit)
            if text != comment.body:
                await discussion.edit(ref, text)
        except Failure as error:
            return _translated(error, COPY_GONE)
        return Receipt(ref)

    async def upload(self, message: Message, file: File) -> SendResult:
        """Post the file as a comment: forges take no attachments over their APIs."""
        text = render_file(message.subject.name, file)
        if len(text) > self._limit(message) - len(with_marker("", message.marker, 0)):
            return Failure(
                f"{format_size(len(file.data))}, and a comment has at most"
                f" {self._limit(message):,} characters",
                origin="forge",
                declared="PERMANENT",
            )
        return await self._post(message, text)

    async def _post(self, message: Message, text: str) -> SendResult:
        """Post a comment; a failure after the request was sent is Unconfirmed."""
        sent = False

        def mark_sent() -> None:
            nonlocal sent
            sent = True

        try:
            discussion = self._discussion(message)
            body = with_marker(text, message.marker, self._limit(message))
            return Receipt((await discussion.post(body, mark_sent)).id)
        except Failure as error:
            if sent and (error.http_status is None or error.http_status >= 500):
                return Unconfirmed(str(error))
            return _translated(error)

    def _discussion(self, message: Message) -> Discussion:
        """Return the comments of the target; raises Failure without its forge."""
        try:
            return discussion_of(self._settings, IssueTarget.of(message.target))
        except UsageError as error:
            raise Failure(
                str(error), origin="forge", code=NOT_SERVED, declared="TRANSIENT_INFRA"
            ) from None

    def _limit(self, message: Message) -> int:
        return discussion_of(self._settings, IssueTarget.of(message.target)).limit

    def _account_bucket(self, message: Message) -> str:
        return f"{self.name}:{message.target.partition('/')[0]}"


def _translated(error: Failure, gone: str = TARGET_GONE) -> Failure:
    """Return the failure with the code of a missing target or copy, or of the account."""
    code = error.code
    retry_after = error.retry_after
    declared = error.declared
    if error.http_status in GONE:
        code = gone
        declared = "PERMANENT"
    elif error.http_status == 401 or error.code == "no_secret":
        code = ACCOUNT
        retry_after = PAUSE
        declared = "TRANSIENT_INFRA"
    return Failure(
        str(error),
        origin="forge",
        code=code,
        http_status=error.http_status,
        retry_after=retry_after,
        declared=declared,
    )
