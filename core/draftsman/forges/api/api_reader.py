"""The common part of the readers of all forges: repeated reads, webhooks and labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Final

from draftsman.forges.api.conditional_reads import ConditionalReads
from draftsman.forges.api.labeled_issues import LabeledIssues
from draftsman.forges.api.rest_api import PAGE, RestApi
from draftsman.forges.forge_event import ForgeEvent, Labeling

LOG_END: Final = 200_000
"""Bytes of the end of a log that are searched."""


class ApiReader(ABC):
    """The events of a repository, over the API at `path`; subclasses have the API of a kind."""

    page: ClassVar[dict[str, str | int]] = {"per_page": PAGE}
    """The parameter for the entries of a page."""

    def __init__(self, api: RestApi, path: str, project: str) -> None:
        self._api = api
        self._path = path
        self._project = project.casefold()
        self._reads = ConditionalReads()
        self._logs: dict[str, ForgeEvent] = {}
        self._labels = LabeledIssues(self.labelings)

    @abstractmethod
    async def labelings(self, number: int, label: str) -> list[Labeling]:
        """Return when and by whom an issue was given a label."""

    async def has_webhook(self, url: str) -> bool | None:
        """Return whether a webhook to this URL is active; None if the token cannot tell."""
        answer = await self._api.call(
            "GET", f"{self._path}/hooks", query=self.page, accepts=(401, 403, 404)
        )
        if answer.status != 200:
            return None
        return any(_is_active(item, url) for item in answer.data)

    async def _list(self, path: str, key: str | None = None, **query: str | int) -> list[Any]:
        return await self._reads.pages(self._api, path, key, **self.page, **query)


def _is_active(hook: dict[str, Any], url: str) -> bool:
    """Return whether a webhook of GitHub, Gitea or GitLab calls a URL."""
    works = hook.get("active", True) and hook.get("alert_status") != "disabled"
    return bool(works) and url in (
        hook.get("url"),
        (hook.get("config") or {}).get("url"),
    )
