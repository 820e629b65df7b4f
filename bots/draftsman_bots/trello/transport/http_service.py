"""HTTP service for py-trello in place of `requests`: an httpx client with rate limits.

It adds timeouts, the token in a header instead of the URL, a configurable base URL, rate limits and
error translation. Every error is a Failure; for a write that may have been applied, an
UnconfirmedCall.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

import httpx

from draftsman.errors import Failure, UsageError
from draftsman.outbound import secret_values
from draftsman_bots.trello.credentials import Credentials
from draftsman_bots.trello.transport import api_errors
from draftsman_bots.trello.transport.rate_limit import RateLimiter

MAX_RESPONSE_BYTES: Final = 32 * 1024 * 1024
"""Maximum bytes of a response; a thousand cards with all fields are a few million."""
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
MAX_REDIRECTS: Final = 4
TOO_LARGE: Final = "a file has at most {:,} bytes"


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """The part of a response that py-trello reads."""

    status_code: int
    text: str

    def json(self) -> Any:
        """Parse the body."""
        return json.loads(self.text)


class HttpService:
    """Thread-safe HTTP client with the interface that py-trello expects."""

    def __init__(
        self, tokens: Credentials, api_url: str, timeout: float, pace: RateLimiter
    ) -> None:
        self._tokens = tokens
        self._base = api_url
        self._timeout = timeout
        self._pace = pace
        self._client = httpx.Client(
            headers={"Authorization": _authorization(tokens)},
            limits=httpx.Limits(max_connections=None),
            follow_redirects=False,
        )
        self._storage = httpx.Client(follow_redirects=False)
        """For the addresses that downloads redirect to: without the token."""

    def request(
        self,
        method: str,
        url: str,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        data: str | Mapping[str, Any] | None = None,
        auth: object = None,
        files: Mapping[str, Any] | None = None,
        proxies: object = None,
    ) -> HttpResponse:
        """Send a request; raises Failure for any status but 2xx and for invalid JSON."""
        if auth is not None:
            raise UsageError("Trello is called with a key and a token, not with OAuth 1.0")
        path = _path(url)
        query = _query(url, params)
        content, form = _body(data)
        request = self._client.build_request(
            method, self._base + path, params=query, headers=headers, content=content, data=form,
            files=files,
        )  # fmt: skip
        until = time.monotonic() + self._timeout
        result = self._try(request, path, until)
        if method == "GET" and _is_retryable(result) and time.monotonic() < until:
            result = self._try(request, path, until)
        if isinstance(result, Failure):
            raise result
        return result

    def post(
        self,
        url: str,
        data: Mapping[str, Any] | None = None,
        auth: object = None,
        proxies: object = None,
    ) -> HttpResponse:
        """Send a form; py-trello calls this for webhooks."""
        return self.request("POST", url, data=data, auth=auth)

    def download(self, path: str, max_bytes: int, timeout: float) -> bytes:
        """Return a file of Trello; raises Failure, also for a file that is too large.

        Downloads need the header (query parameters are refused since 2021) and may redirect to the
        storage, which gets no token.
        """
        until = time.monotonic() + timeout
        wait, reserved = self._pace.reserve(path.removeprefix("/1"), timeout / 2)
        if not reserved:
            raise api_errors.from_status(429, "rate limit", "GET", writes=False, wait=wait)
        time.sleep(wait)
        client = self._client
        url = self._base + path
        for _ in range(MAX_REDIRECTS):
            try:
                status, headers, body = _read(client, url, until, max_bytes)
            except Exception as error:
                raise api_errors.no_reply(error, "GET download", writes=False) from None
            if status not in REDIRECTS:
                break
            client = self._storage
            url = urljoin(url, headers.get("location", ""))
            if urlsplit(url).scheme not in {"https", urlsplit(self._base).scheme}:
                break
        if status == 200 and len(body) > max_bytes:
            raise Failure(TOO_LARGE.format(max_bytes), origin="trello", declared="PERMANENT")
        if status != 200:
            text = body[:1000].decode("utf-8", "replace")
            text = secret_values.redact_values(text, *self._tokens.all)
            raise self._rejected(
                status, headers, text, where="GET download", path=path, writes=False
            )
        return body

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
        self._storage.close()

    def _try(self, request: httpx.Request, path: str, until: float) -> HttpResponse | Failure:
        """Send a request within the rate limit; return failures, without the request in them."""
        where = secret_values.redact_values(f"{request.method} {path}", *self._tokens.all)
        seconds = until - time.monotonic()
        if seconds <= 0:
            return api_errors.timed_out(where, "no time left", writes=False)
        wait, reserved = self._pace.reserve(path.removeprefix("/1"), seconds / 2)
        if not reserved:
            return api_errors.from_status(
                429, f"rate limit reached; retry in {wait:.1f} s", where, writes=False, wait=wait
            )
        time.sleep(wait)
        writes = request.method != "GET"
        try:
            status, headers, body = self._exchange(request, until)
        except Exception as error:
            return api_errors.no_reply(error, where, writes=writes)
        self._pace.update_limits(headers)
        text = secret_values.redact_values(body.decode("utf-8", "replace"), *self._tokens.all)
        if not 200 <= status < 300:
            return self._rejected(status, headers, text, where=where, path=path, writes=writes)
        if not _is_json(text):
            return api_errors.unconfirmed(f"HTTP {status}, but no JSON ({where})", writes=writes)
        return HttpResponse(200, text)

    def _rejected(
        self,
        status: int,
        headers: httpx.Headers,
        text: str,
        *,
        where: str,
        path: str,
        writes: bool,
    ) -> Failure:
        failure = api_errors.from_status(status, text, where, writes=writes)
        if status == 429:
            retry_after = _seconds(headers.get("retry-after"))
            failure.retry_after = self._pace.record_rejection(
                path.removeprefix("/1"), failure.code, retry_after
            )
        return failure

    def _exchange(self, request: httpx.Request, until: float) -> tuple[int, httpx.Headers, bytes]:
        """Send a request and read the whole response; raises TimeoutException after `until`."""
        seconds = max(0.001, until - time.monotonic())
        request.extensions["timeout"] = httpx.Timeout(seconds).as_dict()
        response = self._client.send(request, stream=True)
        with ExitStack() as stack:
            stack.callback(response.close)
            body = bytearray()
            for chunk in response.iter_bytes():
                body += chunk
                if time.monotonic() > until:
                    raise httpx.ReadTimeout("the response did not end in time")
                if len(body) > MAX_RESPONSE_BYTES:
                    raise httpx.DecodingError("the response is too large")
            return response.status_code, response.headers, bytes(body)


def _read(
    client: httpx.Client, url: str, until: float, max_bytes: int
) -> tuple[int, httpx.Headers, bytes]:
    """Send a GET request; return its response, of the body up to a chunk more than allowed.

    Nothing is decompressed: a chunk can become a thousand times as large before it is counted.
    """
    seconds = max(0.001, until - time.monotonic())
    plain = {"Accept-Encoding": "identity"}
    with client.stream("GET", url, headers=plain, timeout=httpx.Timeout(seconds)) as response:
        body = bytearray()
        for chunk in response.iter_raw(1 << 16):
            body += chunk
            if time.monotonic() > until:
                raise httpx.ReadTimeout("the file did not arrive in time")
            if len(body) > max_bytes:
                break
        return response.status_code, response.headers, bytes(body)


def _authorization(tokens: Credentials) -> str:
    return f'OAuth oauth_consumer_key="{tokens.key}", oauth_token="{tokens.token}"'


def _path(url: str) -> str:
    return urlsplit(url).path


def _query(url: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the query without the credentials, which are in a header."""
    query: dict[str, Any] = dict(httpx.QueryParams(urlsplit(url).query))
    query |= params or {}
    return {
        name: value
        for name, value in query.items()
        if name not in ("key", "token") and value is not None
    }


def _body(data: str | Mapping[str, Any] | None) -> tuple[str | None, dict[str, Any] | None]:
    if data is None or isinstance(data, str):
        return data, None
    return None, {n: value for n, value in data.items() if value is not None and n != "key"}


def _is_retryable(result: HttpResponse | Failure) -> bool:
    transient = (api_errors.NO_REPLY, api_errors.TIMEOUT, api_errors.CONNECT)
    return isinstance(result, Failure) and result.code in transient


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _seconds(text: str | None) -> float | None:
    return float(text) if text is not None and text.isdigit() else None
