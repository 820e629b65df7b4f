"""Reads of a forge's API that are repeated: only what changed is transferred.

A page with an ETag is requested again with `If-None-Match`. GitHub does not count a 304 against the
rate limit: https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

from draftsman.forges.api.rest_api import MAX_PAGES, ApiResponse, RestApi, entries_of

KEPT: Final = 2000
"""Maximum number of responses that are kept."""


class ConditionalReads:
    """Responses of an API with their ETags, the least recently used are dropped first."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, ApiResponse] = OrderedDict()

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
            known = self._kept.get(url)
            response = await self._read(api, url)
            found = entries_of(response.data, key)
            read = len(entries) + len(found)
            following = api.next_page(response, url, found, read)
            if following is None and known is response and size and len(found) >= size:
                # the tag is that of the body: a page after a full one leaves it as it was
                self._kept.pop(url)
                response = await self._read(api, url)
                following = api.next_page(response, url, found, read)
            entries += found
            url = following
        return entries

    async def _read(self, api: RestApi, url: str) -> ApiResponse:
        known = self._kept.get(url)
        tag = None if known is None else known.headers.get("etag")
        response = await api.read(url, tag)
        if response.status == 304 and known is not None:
            self._kept.move_to_end(url)
            return known
        if response.headers.get("etag"):
            self._kept[url] = response
            self._kept.move_to_end(url)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return response
