"""Live checks of forges, in comments on an issue that a person names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final
from uuid import uuid4

from draftsman.deliveries.channels.live_check import (
    LiveCheck,
    LiveChecks,
    LiveSession,
    assumed,
    require,
)
from draftsman.errors import UsageError
from draftsman.forges.api.connection import forge_at
from draftsman.forges.forge import Discussion, Forge
from draftsman.forges.forge_event import OWN
from draftsman.forges.issue_target import IssueTarget
from draftsman.forges.pull_request import Account, Comment, IssueText
from draftsman.forges.untrusted_text import inert

MARGIN: Final = timedelta(minutes=10)
"""Time by which the clock of the forge may differ."""
SIGNS: Final = "@draftsman #1 Fixes #1 <b>HTML</b>"


@dataclass(frozen=True, slots=True)
class ScratchIssue:
    """An issue on a forge."""

    session: LiveSession
    forge: Forge
    kind: str
    forge_url: str
    target: IssueTarget
    discussion: Discussion
    issue: IssueText
    account: Account

    @property
    def plan(self) -> str:
        """The question before the first write."""
        return f"Write 6 comments on {self.issue.url} as {self.account.name}, and delete them?"

    @property
    def facts(self) -> Mapping[str, str]:
        """The kind and the URL of the forge."""
        return {"forge": f"{self.kind}, {self.forge_url}"}

    async def begin(self) -> None:
        """Do nothing: the issue is there."""

    async def close(self) -> None:
        """Do nothing: connections end with each call."""

    async def post(self, text: str) -> Comment:
        """Post a comment with a hidden last line, to be deleted at the end; raises Failure."""
        body = f"{text}\n\n{OWN}live={uuid4()} -->"
        url = self.issue.url
        comment = await self.session.removals.created(
            f"a comment on {url}",
            self.discussion.post(body),
            lambda comment: (
                f"comment {comment.id} on {url}",
                partial(self.discussion.delete, comment.id),
            ),
        )
        return Comment(comment.id, body)


async def _hidden_line(place: ScratchIssue) -> str:
    posted = await place.post("draftsman live check of the hidden line")
    body = (await place.discussion.get(posted.id)).body
    last = posted.body.splitlines()[-1]
    require(body.rstrip().endswith(last), f"the comment is {body!r}")
    return "the API returns the line"


async def _since(place: ScratchIssue) -> str:
    posted = await place.post("draftsman live check of the list")
    comments = await place.discussion.since(_before())
    require(posted.id in [item.id for item in comments], f"comment {posted.id} is not listed")
    return f"{len(comments)} comments of the last minutes, with that of the check"


async def _edited(place: ScratchIssue) -> str:
    posted = await place.post("draftsman live check before the edit")
    await assumed(place.discussion.edit(posted.id, posted.body.replace("before", "after")))
    body = (await place.discussion.get(posted.id)).body
    require("after the edit" in body, f"the comment is {body!r}")
    return "the comment has its id, and the new text"


async def _author(place: ScratchIssue) -> str:
    posted = await place.post("draftsman live check of the author")
    events = await place.forge.events().issue_comments(_before(), [place.target.number])
    own = [event for event in events if event.text.startswith(posted.body.splitlines()[0])]
    require(own, f"the comment is not among {len(events)} comments")
    seen = (own[0].number, own[0].author, bool(own[0].author_id))
    require(own[0].number == place.target.number, f"the number is {own[0].number}")
    require(own[0].author_id, f"the author is {own[0].author!r}, without an id")
    return f"number {seen[0]}, with the login and the id of the author"


async def _longest(place: ScratchIssue) -> str:
    text = "draftsman live check of the length\n"
    most = place.discussion.limit - len(f"\n\n{OWN}live={uuid4()} -->")
    await assumed(place.post(text.ljust(most, "x")))
    return f"{place.discussion.limit:,} characters were accepted"


async def _inert(place: ScratchIssue) -> str:
    await place.post(f"{inert(SIGNS, 200)}\n\n{inert('/close', 200)}")
    place.session.look(
        f"Open {place.issue.url}: does its last comment show {SIGNS} and /close as text, without a"
        " link, and is the issue still open?"
    )
    return "the person saw text without effect"


def _before() -> datetime:
    return datetime.now(UTC) - MARGIN


async def connect(session: LiveSession) -> ScratchIssue:
    """Return the issue that `--in` names; raises UsageError, Failure."""
    forges = session.settings.forges
    tables = [name for name, table in forges.items() if table.kind == session.service]
    names = [session.service] if session.service in forges else tables
    if len(names) > 1:
        raise UsageError(f"several forges have the kind {session.service}: {', '.join(names)}")
    if session.scratch is None:
        raise UsageError("name an issue for tests: --in OWNER/REPO#12")
    try:
        target = IssueTarget.of(f"{names[0]}/{session.scratch}")
    except ValueError:
        raise UsageError(f"--in {session.scratch!r} is no issue; use OWNER/REPO#12") from None
    forge = forge_at(session.settings, names[0], target.path)
    discussion = forge.discussion(target.number, is_pull=target.is_pull)
    return ScratchIssue(
        session,
        forge,
        kind=forges[names[0]].kind,
        forge_url=forges[names[0]].url,
        target=target,
        discussion=discussion,
        issue=await discussion.issue(),
        account=await forge.account(),
    )


LIVE_CHECKS: Final = LiveChecks(
    connect=connect,
    checks=(
        LiveCheck(
            name="hidden-line",
            assumption="A comment keeps its last line, which is an HTML comment",
            otherwise="After a lost response the comment is written twice.",
            run=_hidden_line,
        ),
        LiveCheck(
            name="comments-since",
            assumption="The comments since a time have one as soon as it is written",
            otherwise="After a lost response the comment is written twice.",
            run=_since,
        ),
        LiveCheck(
            name="edited-comment",
            assumption="An edited comment keeps its id, and is returned with the new text at once",
            otherwise="Statuses and questions show an older state.",
            run=_edited,
        ),
        LiveCheck(
            name="author-of-comment",
            assumption="The comments of a repository have the number of the issue, and login and id"
            " of the author",
            otherwise="Polls see no request and no answer.",
            run=_author,
        ),
        LiveCheck(
            name="longest-comment",
            assumption="A comment of 65,536 characters is accepted, on GitLab of 1,000,000",
            otherwise="Long results are refused: `draftsman deliveries` has the reason.",
            run=_longest,
        ),
        LiveCheck(
            name="text-without-effect",
            assumption="A zero-width space after the first sign ends a mention, the number of an"
            " issue, HTML and a command",
            otherwise="Text of people and agents mentions others, or changes issues.",
            run=_inert,
        ),
    ),
)
