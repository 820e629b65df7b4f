"""Events of a repository on Gitea or Forgejo: https://docs.gitea.com/api."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, Final

from draftsman.errors import Failure
from draftsman.forges import github_events
from draftsman.forges.api.api_reader import ApiReader
from draftsman.forges.api.comments import check_issue
from draftsman.forges.api.github_reader import (
    failed_status,
    issue_comments,
    labelings_of,
    written,
)
from draftsman.forges.api.rest_api import MAX_PAGES, RestApi
from draftsman.forges.checks import STATUS_NAME, CheckState, check_of
from draftsman.forges.forge_event import EventKind, ForgeEvent, Labeling, is_edited

PAGE: Final = 50
"""Entries of a page: Gitea's default of `MAX_RESPONSE_ITEMS`."""
CHECKING: Final = 30.0
"""Seconds in which Gitea checks a commit for conflicts; until then it is unmergeable there, too."""
NO_REVIEWS: Final = ("PENDING", "REQUEST_REVIEW")
"""States of a review that is not submitted, and of a request for a review."""
VERDICTS: Final = {"APPROVED": "approved", "REQUEST_CHANGES": "changes_requested"}


class GiteaReader(ApiReader):
    """The events of a repository on Gitea or Forgejo."""

    page: ClassVar[dict[str, str | int]] = {"limit": PAGE}

    def __init__(self, api: RestApi, path: str, project: str) -> None:
        super().__init__(api, path, project)
        self._unmergeable: dict[int, tuple[str, float]] = {}

    async def pull(self, number: int) -> list[ForgeEvent]:
        data = await self._reads.get(self._api, f"{self._path}/pulls/{number}")
        if (ended := github_events.ended(self._project, data)) is not None:
            return [ended]
        events = await self.written(number)
        head = str(data["head"]["sha"])
        if self._conflicts(number, head, data):
            events.append(github_events.conflict(self._project, data))
        combined = f"{self._path}/commits/{head}/status"
        for status in await self._list(combined, "statuses"):
            name = str(status["context"])
            word = status.get("status") or status.get("state")
            if name != STATUS_NAME and check_of(name, word).state is CheckState.FAILED:
                events.append(failed_status(self._project, number, head, name, status))
        return events

    def _conflicts(self, number: int, head: str, data: Mapping[str, Any]) -> bool:
        """Return whether a pull request has been unmergeable for longer than a check takes."""
        if data.get("mergeable") is not False or data.get("draft"):
            self._unmergeable.pop(number, None)
            return False
        now = time.monotonic()
        known, since = self._unmergeable.get(number, ("", now))
        since = since if known == head else now
        self._unmergeable[number] = (head, since)
        return now - since >= CHECKING

    async def written(self, number: int) -> list[ForgeEvent]:
        comments = await self._list(f"{self._path}/issues/{number}/comments")
        kind = EventKind.COMMENT
        events = [
            github_events.comment(self._project, number, item, kind)
            for item in comments
            if not is_edited(item)
        ]
        return events + await self._reviews(number)

    async def labeled_issues(self, label: str) -> list[ForgeEvent]:
        path = f"{self._path}/issues"
        issues = await self._list(path, labels=label, state="open", type="issues")
        return await self._labels.events(
            github_events.labeled_issue(self._project, item, label, {})
            for item in issues
            if not item.get("pull_request") and _has(item, label)
        )

    async def labelings(self, number: int, label: str) -> list[Labeling]:
        issue = f"{self._path}/issues/{number}"
        events: list[Any] = []
        try:
            for page in range(1, MAX_PAGES + 1):  # its X-Total-Count is that of the page alone
                query = self.page | {"page": page}
                found = await self._reads.get(self._api, f"{issue}/timeline", **query)
                if not found:
                    break
                events += found
        except Failure as error:
            await check_issue(self._api, issue, error)
            raise
        return labelings_of(events, label)

    async def issue_comments(self, since: datetime, numbers: Sequence[int]) -> list[ForgeEvent]:
        path = f"{self._path}/issues/comments"
        items = await self._api.pages(path, since=written(since), limit=PAGE)
        return issue_comments(self._project, items)

    async def _reviews(self, number: int) -> list[ForgeEvent]:
        path = f"{self._path}/pulls/{number}/reviews"
        events = []
        for item in await self._list(path):
            if item.get("state") in NO_REVIEWS:
                continue
            verdict = VERDICTS.get(str(item.get("state")), "commented")
            events.append(github_events.review(self._project, number, item | {"state": verdict}))
            if item.get("comments_count"):
                events += [
                    github_events.thread_comment(self._project, number, _with_line(comment))
                    for comment in await self._list(f"{path}/{item['id']}/comments")
                    if not is_edited(comment)
                ]
        return events


def _has(issue: Mapping[str, Any], label: str) -> bool:
    """Return whether an issue has a label; the filter of the API discards an unknown label."""
    names = (str(item.get("name")) for item in issue.get("labels") or ())
    return label.casefold() in map(str.casefold, names)


def _with_line(comment: Mapping[str, Any]) -> dict[str, Any]:
    """Return a comment with its line, in the new file or else in the old, as GitHub names it."""
    return {**comment, "line": comment.get("position") or comment.get("original_position")}
