"""Notes of an issue or merge request of GitLab."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from draftsman.forges.api.comments import PAGE, IssueDiscussion, comment_of
from draftsman.forges.api.rest_api import RestApi, entries_of
from draftsman.forges.pull_request import Comment, IssueText

MAX_PAGES: Final = 10
"""Pages that are searched for a note, newest first."""


class GitLabDiscussion(IssueDiscussion):
    """The notes of an issue or merge request of GitLab."""

    def __init__(
        self, api: RestApi, project: str, number: int, limit: int, *, is_pull: bool
    ) -> None:
        super().__init__(api, project, number, limit)
        self._list = f"{project}/{'merge_requests' if is_pull else 'issues'}/{number}/notes"
        self._comments = self._list

    async def since(self, when: datetime) -> list[Comment]:
        """Return the notes since a time, which GitLab cannot filter by it."""
        comments: list[Comment] = []
        query: dict[str, str | int] = {"sort": "desc", "order_by": "created_at", "per_page": PAGE}
        url: str | None = self._api.url(self._list, query)
        for _ in range(MAX_PAGES):
            if url is None:
                break
            response = await self._api.read(url, None)
            notes = entries_of(response.data, None)
            recent = [item for item in notes if _created(item) >= when]
            comments += map(comment_of, recent)
            if len(recent) < len(notes):  # the others are older
                break
            url = self._api.next_page(response, url, notes, len(comments))
        return comments

    async def edit(self, id: str, body: str) -> None:
        await self._api.call("PUT", f"{self._comments}/{id}", {"body": body})

    async def issue(self) -> IssueText:
        data = await self._api.get(self._list.removesuffix("/notes"))
        body = str(data.get("description") or "")
        return IssueText(str(data["title"]), body, str(data["web_url"]))


def _created(data: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(str(data["created_at"]).replace("Z", "+00:00"))
