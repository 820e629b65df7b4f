"""The common part of the readers of all forges: repeated reads, webhooks and labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Any, ClassVar, Final

from draftsman.errors import Failure
from draftsman.forges.api.rest_api import GONE, MAX_PAGES, PAGE, ApiResponse, RestApi, entries_of
from draftsman.forges.forge_event import ForgeEvent, Labeling, labeled

# Issues with a label, each with the event that gave it.


class LabeledIssues:
    """The labels of a repository's issues, which are read again once an issue has changed."""

    def __init__(self, labelings: Callable[[int, str], Awaitable[list[Labeling]]]) -> None:
        """Take the function that returns the events by which an issue was given a label."""
        self._labelings = labelings
        self._labeled: dict[str, ForgeEvent] = {}

    async def events(self, events: Iterable[ForgeEvent]) -> list[ForgeEvent]:
        """Return the events of the issues that have the label now, with their labelers."""
        current: dict[str, ForgeEvent] = {}
        for event in events:
            event_with_labeler = self._labeled.get(event.key)
            if event_with_labeler is None:
                event_with_labeler = labeled(replace(event, at=None), await self._of(event))
            current[event.key] = replace(event_with_labeler, title=event.title, text=event.text)
        self._labeled = current
        return list(current.values())

    async def _of(self, event: ForgeEvent) -> list[Labeling]:
        """Return the labelings; none of an issue that was deleted or moved meanwhile."""
        try:
            return await self._labelings(event.number, event.label or "")
        except Failure as error:
            if error.http_status not in GONE:
                raise
            return []


# Reads of a forge's API that are repeated: only what changed is transferred.
#
# A page with an ETag is requested again with `If-None-Match`. A forge may not count a 304
# against the rate limit.


MAX_RESPONSES: Final = 2000
"""Maximum number of responses that are kept."""


class ConditionalReads:
    """Responses of an API with their ETags, the least recently used are dropped first."""

    def __init__(self) -> None:
        self._responses: OrderedDict[str, ApiResponse] = OrderedDict()

    async def get(self, api: RestApi, path: str, **query: str | int) -> Any:
        """Return the JSON of a resource."""
        return (await self._read(api, api.url(path, query))).data

    async def pages(
        self, api: RestApi, path: str, key: str | None = None, **query: str | int
    ) -> list[Any]:
        """Return all entries of a list, or of the list `key` of an object."""
        url: str | None = api.url(path, query)
        entries: list[Any] = []
        size = int(query.get("per_page") or query.get("limit") or 0)
        for _ in range(MAX_PAGES):
            if url is None:
                break
            cached = self._responses.get(url)
            response = await self._read(api, url)
            page = entries_of(response.data, key)
            read = len(entries) + len(page)
            following = api.next_page(response, url, page, read)
            if following is None and cached is response and size and len(page) >= size:
                # the tag is that of the body: a page after a full one leaves it as it was
                self._responses.pop(url)
                response = await self._read(api, url)
                following = api.next_page(response, url, page, read)
            entries += page
            url = following
        return entries

    async def _read(self, api: RestApi, url: str) -> ApiResponse:
        cached = self._responses.get(url)
        tag = None if cached is None else cached.headers.get("etag")
        response = await api.read(url, tag)
        if response.status == 304 and cached is not None:
            self._responses.move_to_end(url)
            return cached
        if response.headers.get("etag"):
            self._responses[url] = response
            self._responses.move_to_end(url)
            while len(self._responses) > MAX_RESPONSES:
                self._responses.popitem(last=False)
        return response


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
    """Return whether a webhook calls a URL, by the fields that forges have for it."""
    works = hook.get("active", True) and hook.get("alert_status") != "disabled"
    return bool(works) and url in (
        hook.get("url"),
        (hook.get("config") or {}).get("url"),
    )
