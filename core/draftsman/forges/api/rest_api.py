"""Calls of a forge's REST API: JSON, pages, and failures with their rate limits."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPMethod
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

from draftsman.errors import Failure
from draftsman.log import redact
from draftsman.outbound.http_client import HttpCall, HttpClient, OutboundResponse, retry_after
from draftsman.outbound.timeouts import Timeouts
from draftsman.settings.http import HttpSettings
from draftsman.text import first_line

TIMEOUTS: Final = Timeouts(call=30, connect=10)
PAGE: Final = 100
"""Entries of a page."""
MAX_PAGES: Final = 50
SECONDARY_LIMIT: Final = 60.0
"""Seconds to wait after a secondary rate limit, if the response names none."""
ERROR_BODY: Final = 4000
"""Bytes read of an error response."""
MOVED: Final = (301, 302, 307, 308)
"""Statuses of the old address of a repository that was renamed or transferred."""
SAME_METHOD: Final = (307, 308)
"""Those that are followed for other methods than GET."""
MAX_MOVES: Final = 3
GONE: Final = (404, 410, 451)
"""Statuses of what was deleted, moved without a trace, or blocked for legal reasons."""
_NEXT: Final = re.compile(r'<([^>]+)>\s*;[^,]*\brel="next"')

Headers = Callable[[], Awaitable[Mapping[str, str]]]


@dataclass(frozen=True, slots=True)
class ApiResponse:
    """A response; `data` is None without a body."""

    status: int
    headers: Mapping[str, str]
    data: Any


@dataclass(frozen=True, slots=True)
class _Call:
    """A request without its URL."""

    method: str
    body: Mapping[str, Any] | None = None
    accepts: tuple[int, ...] = ()
    """Statuses besides 2xx that are no failure."""
    condition: Mapping[str, str] | None = None
    leaves: Callable[[], None] = lambda: None
    """Called right before the request is sent, also to the target of a redirect."""


class RestApi:
    """The API at `base`; `authorization` returns the headers with the token for each call.

    Redirects inside of the API are followed, as of the path of a `repository` that was renamed; one
    to another host would get the token, and is refused.
    """

    def __init__(
        self,
        name: str,
        base: str,
        http: HttpSettings,
        authorization: Headers,
        repository: str = "",
    ) -> None:
        self._name = name
        self._base = base
        self._http = http
        self._authorization = authorization
        self._repository = repository

    async def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, str | int] | None = None,
        accepts: Sequence[int] = (),
        leaves: Callable[[], None] = lambda: None,
    ) -> ApiResponse:
        """Return the response; raises Failure for another status than 2xx and `accepts`.

        `leaves` is called right before the request is sent.
        """
        url = self.url(path, query or {})
        return await self._send(url, _Call(method, body, tuple(accepts), leaves=leaves))

    def url(self, path: str, query: Mapping[str, str | int]) -> str:
        """Return the URL of a resource."""
        return f"{self._base}{path}" + (f"?{urlencode(query)}" if query else "")

    async def read(self, url: str, etag: str | None) -> ApiResponse:
        """Return the resource at a URL of this API, with status 304 if it still has the ETag."""
        headers = {} if etag is None else {"if-none-match": etag}
        accepts = () if etag is None else (304,)
        return await self._send(url, _Call("GET", accepts=accepts, condition=headers))

    async def text(self, path: str, limit: int) -> str:
        """Return the end of a text resource, such as a log; empty if there is none.

        A redirect to another host is followed, without the token.
        """
        headers = {"accept": "*/*", **await self._authorization()}
        client = HttpClient(self._http, trusted=[self._base])
        call = HttpCall("GET", self.url(path, {}), headers)
        async with client.stream(call, TIMEOUTS, redirects=3) as response:
            if response.status in (403, 404, 410):
                return ""
            if not 200 <= response.status < 300:
                raise await self._refusal("GET", response)
            end = bytearray()
            try:
                async for chunk in response.chunks():
                    end += chunk
                    del end[:-limit]
            except Failure:  # larger than the limit of a response, or cut off: its part is enough
                if not end:
                    raise
            return bytes(end).decode(errors="replace")

    async def get(self, path: str, **query: str | int) -> Any:
        """Return the JSON of a resource."""
        return (await self.call("GET", path, query=query)).data

    async def delete(self, path: str, accepts: Sequence[int]) -> None:
        """Delete a resource."""
        await self.call(str(HTTPMethod.DELETE), path, accepts=accepts)

    async def exists(self, path: str) -> bool:
        """Return whether a resource exists."""
        return (await self.call("GET", path, accepts=(404,))).status != 404

    async def pages(self, path: str, key: str | None = None, **query: str | int) -> list[Any]:
        """Return all entries of a list, or of the list `key` of an object."""
        url = self.url(path, query)
        entries: list[Any] = []
        for _ in range(MAX_PAGES):
            response = await self._send(url, _Call("GET"))
            page = entries_of(response.data, key)
            entries += page
            following = self.next_page(response, url, page, len(entries))
            if following is None:
                return entries
            url = following
        text = f"{self._name}: more than {MAX_PAGES} pages of {path}"
        raise Failure(text, origin="forge", code="too_many_pages", declared="PERMANENT")

    def next_page(
        self, response: ApiResponse, url: str, page: Sequence[Any], read: int
    ) -> str | None:
        """Return the URL of the page after that at `url`, of which `read` entries were read.

        Some forges count lists (`X-Total-Count`) without a link to the next page. A page at another
        origin would get the token, and is refused.
        """
        match = _NEXT.search(response.headers.get("link", ""))
        if match is None:
            total = response.headers.get("x-total-count", "")
            return _page_after(url) if page and total.isdigit() and read < int(total) else None
        url = urljoin(self._base, match[1])
        base = urlsplit(self._base)
        if urlsplit(url)[:2] != base[:2]:
            text = f"{self._name}: the next page is at another host, {urlsplit(url).netloc}"
            raise Failure(text, origin="forge", code="foreign_page", declared="PERMANENT")
        return str(url)

    async def _send(self, url: str, call: _Call) -> ApiResponse:
        """Return the response of the place to which redirects lead."""
        follows = MOVED if call.method == "GET" else SAME_METHOD
        followed = replace(call, accepts=(*call.accepts, *follows))
        for _ in range(MAX_MOVES):
            try:
                response = await self._request(url, followed)
            except Failure as error:
                if error.http_status != 405 or (moved := await self._moved(url)) is None:
                    raise
                url = moved
                continue
            if response.status not in follows:
                return response
            url = self._target(url, response)
        raise self._redirect_failure(url, f"more than {MAX_MOVES} redirects")

    async def _moved(self, url: str) -> str | None:
        """Return the URL at the new address of the repository; None if that has not moved.

        A forge may refuse other methods than GET at the old address, and redirect only those.
        """
        old = f"{self._base}{self._repository}"
        if not self._repository or not url.startswith(old):
            return None
        response = await self._request(old, _Call("GET", accepts=MOVED))
        if response.status not in MOVED:
            return None
        return self._target(old, response) + url.removeprefix(old)

    def _target(self, url: str, response: ApiResponse) -> str:
        """Return the URL of a redirect; raises Failure for one out of this API."""
        target = urljoin(url, response.headers.get("location", ""))
        new = urlsplit(target)
        base = urlsplit(self._base)
        inside = new.path.startswith(f"{base.path}/") and ".." not in new.path.split("/")
        if new[:2] != base[:2] or not inside:
            raise self._redirect_failure(url, f"a redirect to {new.netloc}{new.path}")
        return target

    def _redirect_failure(self, url: str, problem: str) -> Failure:
        return Failure(
            f"{self._name}: {urlsplit(url).path}: {problem}, which does not get the token; check"
            " the url of the forge and the address of the repository",
            origin="forge",
            code="foreign_redirect",
            http_status=301,
            declared="PERMANENT",
        )

    async def _request(self, url: str, call: _Call) -> ApiResponse:
        headers = {"accept": "application/json", **await self._authorization()}
        headers |= call.condition or {}
        content = None
        if call.body is not None:
            headers["content-type"] = "application/json"
            content = json.dumps(call.body, ensure_ascii=False).encode("utf-8", "replace")
        client = HttpClient(self._http, trusted=[self._base])
        request = HttpCall(call.method, url, headers, content)
        async with client.stream(request, TIMEOUTS, leaves=call.leaves) as response:
            if not (200 <= response.status < 300 or response.status in call.accepts):
                raise await self._refusal(call.method, response)
            has_body = response.status not in (304, 404, *MOVED)
            raw = await response.read() if has_body else b""
            return ApiResponse(response.status, response.headers, self._parse(raw, response))

    def _parse(self, raw: bytes, response: OutboundResponse) -> Any:
        try:
            return json.loads(raw) if raw.strip() else None
        except ValueError:
            text = f"{self._name}: {response.where} did not return JSON; check the url of the forge"
            raise Failure(text, origin="forge", code="not_json") from None

    async def _refusal(self, method: str, response: OutboundResponse) -> Failure:
        """Return the Failure of a response: a rate limit, or its status with the forge's reason."""
        raw = await response.beginning(ERROR_BODY)
        reason = _reason(raw) or response.reason
        text = f"{self._name}: {method} {urlsplit(response.where).path}: {response.status} {reason}"
        limited = _rate_limit(response.status, response.headers, reason)
        return Failure(
            redact(text.strip()),
            origin="forge",
            code="rate_limited" if limited is not None else None,
            http_status=response.status,
            retry_after=limited if limited is not None else retry_after(response.headers),
            declared="TRANSIENT_APP" if limited is not None else None,
        )


def entries_of(data: Any, key: str | None) -> list[Any]:
    """Return the entries of a page: a list, or the list `key` of an object; none of null."""
    page = data.get(key) if key is not None and isinstance(data, Mapping) else data
    return page if isinstance(page, list) else []


def _page_after(url: str) -> str:
    split = urlsplit(url)
    query = dict(parse_qsl(split.query))
    query["page"] = str(int(query.get("page", "1")) + 1)
    return split._replace(query=urlencode(query)).geturl()


def _rate_limit(status: int, headers: Mapping[str, str], reason: str) -> float | None:
    """Return the seconds to wait after a response of a rate limit; None for another response."""
    if status not in (403, 429):
        return None
    if (seconds := retry_after(headers)) is not None:
        return seconds
    for prefix in ("x-ratelimit", "ratelimit"):
        reset = headers.get(f"{prefix}-reset", "")
        if headers.get(f"{prefix}-remaining") == "0" and reset.isdigit():
            return max(1.0, int(reset) - time.time())
    if status == 429 or "secondary rate limit" in reason.casefold():
        return SECONDARY_LIMIT
    return None


def _reason(raw: bytes) -> str:
    """Return the message of an error response, with its details, as a single line."""
    try:
        data = json.loads(raw)
    except ValueError:
        return ""
    if not isinstance(data, dict):
        return ""
    texts = [_flat(data.get("message") or data.get("error"))]
    errors = data.get("errors")
    for item in errors if isinstance(errors, list) else ():
        if isinstance(item, dict):
            item = item.get("message") or " ".join(
                str(item[key]) for key in ("field", "code") if item.get(key)
            )
        texts.append(_flat(item))
    return first_line("; ".join(dict.fromkeys(text for text in texts if text)), 300)


def _flat(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_flat(item)}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(_flat, value))
    return " ".join(str(value).split()) if value else ""
