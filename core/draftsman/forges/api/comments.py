"""Comments of an issue or pull request, which each forge has in the same form but for its paths."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from draftsman.forges.api.rest_api import GONE, RestApi
from draftsman.forges.pull_request import Comment, IssueText

PAGE: Final = 100


class IssueDiscussion:
    """The comments of an issue or pull request, at the paths that most forges have."""

    def __init__(self, api: RestApi, repository: str, number: int, limit: int) -> None:
        """Take the API with the path of the repository there, and the characters of a comment."""
        self.limit = limit
        self._api = api
        self._list = f"{repository}/issues/{number}/comments"
        self._comments = f"{repository}/issues/comments"

    async def since(self, when: datetime) -> list[Comment]:
        """Return the comments that were written or edited since a time."""
        comments = await self._api.pages(self._list, since=_time(when), per_page=PAGE)
        return [comment_of(item) for item in comments]

    async def get(self, id: str) -> Comment:
        """Return a comment."""
        return comment_of(await self._api.get(f"{self._comments}/{id}"))

    async def post(self, body: str, leaves: Callable[[], None] = lambda: None) -> Comment:
        """Post a comment; `leaves` is called right before the request is sent."""
        response = await self._api.call("POST", self._list, {"body": body}, leaves=leaves)
        return comment_of(response.data)

    async def edit(self, id: str, body: str) -> None:
        """Replace the text of a comment."""
        await self._api.call("PATCH", f"{self._comments}/{id}", {"body": body})

    async def delete(self, id: str) -> None:
        """Delete a comment; one that does not exist is no error."""
        await self._api.call("DELETE", f"{self._comments}/{id}", accepts=GONE)

    async def issue(self) -> IssueText:
        """Return the text of the issue or pull request."""
        data = await self._api.get(self._list.removesuffix("/comments"))
        return IssueText(str(data["title"]), str(data.get("body") or ""), str(data["html_url"]))


def comment_of(data: Mapping[str, Any]) -> Comment:
    """Return a comment of an API."""
    return Comment(str(data["id"]), str(data.get("body") or ""))


def _time(when: datetime) -> str:
    return when.isoformat(timespec="seconds").replace("+00:00", "Z")
