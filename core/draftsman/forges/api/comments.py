"""Comments of an issue or pull request, which each forge has in the same form but for its paths."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from draftsman.errors import Failure
from draftsman.forges.api.rest_api import RestApi, entries_of
from draftsman.forges.pull_request import Comment, IssueText

PAGE: Final = 100
MAX_PAGES: Final = 10
"""Pages that are searched for a comment, newest first."""


class IssueDiscussion:
    """The comments of an issue or pull request on GitHub, Gitea and Forgejo."""

    def __init__(self, api: RestApi, repository: str, number: int, limit: int) -> None:
        """Take the API with the path of the repository there, and the characters of a comment."""
        self.limit = limit
        self._api = api
        self._list = f"{repository}/issues/{number}/comments"
        self._comments = f"{repository}/issues/comments"

    async def since(self, when: datetime) -> list[Comment]:
        """Return the comments that were written or edited since a time."""
        comments = await self._api.pages(self._list, since=_time(when), per_page=PAGE)
        return [_comment(item) for item in comments]

    async def get(self, id: str) -> Comment:
        """Return a comment."""
        return _comment(await self._api.get(f"{self._comments}/{id}"))

    async def post(self, body: str, leaves: Callable[[], None] = lambda: None) -> Comment:
        """Post a comment; `leaves` is called right before the request is sent."""
        response = await self._api.call("POST", self._list, {"body": body}, leaves=leaves)
        return _comment(response.data)

    async def edit(self, id: str, body: str) -> None:
        """Replace the text of a comment."""
        await self._api.call("PATCH", f"{self._comments}/{id}", {"body": body})

    async def issue(self) -> IssueText:
        """Return the text of the issue or pull request."""
        data = await self._api.get(self._list.removesuffix("/comments"))
        return IssueText(str(data["title"]), str(data.get("body") or ""), str(data["html_url"]))


class GiteaDiscussion(IssueDiscussion):
    """The comments of an issue or pull request on Gitea, with 404 for an issue that is gone."""

    async def since(self, when: datetime) -> list[Comment]:
        try:
            return await super().since(when)
        except Failure as error:
            await check_issue(self._api, self._list.removesuffix("/comments"), error)
            raise

    async def post(self, body: str, leaves: Callable[[], None] = lambda: None) -> Comment:
        try:
            return await super().post(body, leaves)
        except Failure as error:
            await check_issue(self._api, self._list.removesuffix("/comments"), error)
            raise


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
            comments += map(_comment, recent)
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


async def check_issue(api: RestApi, issue: str, error: Failure) -> None:
    """Raise the Failure 404 of an issue that is gone, for which parts of Gitea's API have 500."""
    if error.http_status != 500:
        return
    try:
        await api.get(issue)
    except Failure as other:
        if other.http_status == 404:
            raise other from error


def _comment(data: Mapping[str, Any]) -> Comment:
    return Comment(str(data["id"]), str(data.get("body") or ""))


def _created(data: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(str(data["created_at"]).replace("Z", "+00:00"))


def _time(when: datetime) -> str:
    return when.isoformat(timespec="seconds").replace("+00:00", "Z")
