"""Comments of an issue or pull request on Gitea."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from draftsman.errors import Failure
from draftsman.forges.api.comments import IssueDiscussion
from draftsman.forges.api.rest_api import RestApi
from draftsman.forges.pull_request import Comment


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


async def check_issue(api: RestApi, issue: str, error: Failure) -> None:
    """Raise the Failure 404 of an issue that is gone, for which parts of Gitea's API have 500."""
    if error.http_status != 500:
        return
    try:
        await api.get(issue)
    except Failure as other:
        if other.http_status == 404:
            raise other from error
