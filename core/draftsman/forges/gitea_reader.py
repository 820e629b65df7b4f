"""Events of a repository on Gitea or Forgejo: https://docs.gitea.com/api."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar, Final

from draftsman.domain.forges import github_events
from draftsman.domain.forges.checks import STATUS_NAME, CheckState, check_of
from draftsman.domain.forges.forge_event import EventKind, ForgeEvent, Labeling, is_edited
from draftsman.forges.api_reader import ApiReader
from draftsman.forges.github_reader import (
    failed_status,
    issue_comments,
    labelings_of,
    written,
)

PAGE: Final = 50
"""Entries of a page: Gitea's default of `MAX_RESPONSE_ITEMS`."""
VERDICTS: Final = {"APPROVED": "approved", "REQUEST_CHANGES": "changes_requested"}


class GiteaReader(ApiReader):
    """The events of a repository on Gitea or Forgejo."""

    page: ClassVar[dict[str, str | int]] = {"limit": PAGE}

    async def pull(self, number: int) -> list[ForgeEvent]:
        data = await self._reads.get(self._api, f"{self._path}/pulls/{number}")
        if (ended := github_events.ended(self._project, data)) is not None:
            return [ended]
        events = await self.written(number)
        if data.get("mergeable") is False and not data.get("draft"):
            events.append(github_events.conflict(self._project, data))
        head = str(data["head"]["sha"])
        combined = f"{self._path}/commits/{head}/status"
        for status in await self._list(combined, "statuses"):
            name = str(status["context"])
            word = status.get("status") or status.get("state")
            if name != STATUS_NAME and check_of(name, word).state is CheckState.FAILED:
                events.append(failed_status(self._project, number, head, name, status))
        return events

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
            if not item.get("pull_request")
        )

    async def labelings(self, number: int, label: str) -> list[Labeling]:
        return labelings_of(await self._list(f"{self._path}/issues/{number}/timeline"), label)

    async def issue_comments(self, since: datetime, numbers: Sequence[int]) -> list[ForgeEvent]:
        path = f"{self._path}/issues/comments"
        items = await self._api.pages(path, since=written(since), limit=PAGE)
        return issue_comments(self._project, items)

    async def _reviews(self, number: int) -> list[ForgeEvent]:
        path = f"{self._path}/pulls/{number}/reviews"
        events = []
        for item in await self._list(path):
            if item.get("state") == "PENDING":
                continue
            verdict = VERDICTS.get(str(item.get("state")), "commented")
            events.append(github_events.review(self._project, number, item | {"state": verdict}))
            if item.get("comments_count"):
                events += [
                    github_events.thread_comment(self._project, number, comment)
                    for comment in await self._list(f"{path}/{item['id']}/comments")
                    if not is_edited(comment)
                ]
        return events
