"""Requests of the Trello client and their errors, with respx."""

from __future__ import annotations

import json
import logging
import pickle
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import respx

from draftsman.deliveries.delivery import COPY_GONE, TARGET_GONE
from draftsman.errors import Failure, UsageError
from draftsman.jobs.retries import ErrorClass, classify
from draftsman_bots.trello.transport.api_errors import (
    ACCOUNT,
    CONNECT,
    NO_REPLY,
    PAUSES,
    TIMEOUT,
    UnconfirmedCall,
)
from draftsman_bots.trello.transport.cards import read_card
from draftsman_bots.trello.transport.client import Trello
from draftsman_bots.trello.transport.rate_limit import (
    BACKGROUND_SHARE,
    LIMITS,
    SHARE,
    TOKEN,
    background,
)
from tests.bots.trello.accounts import API, CARD, TOKENS, account

COMMENTS = f"/cards/{CARD}/actions/comments"
NOT_FOUND = "The requested resource was not found."
HTML = "<!DOCTYPE html><html><body>Bad gateway</body></html>"


@pytest.fixture
async def trello() -> AsyncIterator[Trello]:
    async with account() as trello:
        yield trello


async def refused(trello: Trello, reply: httpx.Response, method: str, path: str) -> Failure:
    """Return the failure that a reply is."""
    with respx.mock(base_url=f"{API}/1") as router:
        router.route(method=method, path__regex=".*").mock(return_value=reply)
        with pytest.raises(Failure) as caught:
            await getattr(trello, method.lower())(path)
    return caught.value


class TestWhatIsSent:
    @respx.mock
    async def test_the_token_is_in_a_header_and_in_nothing_else(self, trello: Trello) -> None:
        route = respx.get(f"{API}/1/boards/b1/cards").respond(json=[])
        assert await trello.get("/boards/b1/cards", fields=["id", "name"], since=None) == []
        (call,) = route.calls
        assert dict(call.request.url.params) == {"fields": "id,name"}
        assert call.request.headers["authorization"] == (
            f'OAuth oauth_consumer_key="{TOKENS.key}", oauth_token="{TOKENS.token}"'
        )

    @respx.mock
    async def test_writes_are_sent_as_json(self, trello: Trello) -> None:
        route = respx.post(f"{API}/1{COMMENTS}").respond(json={"id": "a1"})
        assert await trello.post(COMMENTS, text="hällo\n`x`") == {"id": "a1"}
        (call,) = route.calls
        assert json.loads(call.request.content) == {"text": "hällo\n`x`"}
        assert call.request.url.query == b""

    @respx.mock
    async def test_py_trello_requests_of_both_hosts_use_the_api_url(self, trello: Trello) -> None:
        route = respx.post(f"{API}/1/tokens/{TOKENS.token}/webhooks/").respond(json={"id": "w1"})
        hook = await trello.write(trello.client.create_hook, "https://x.org/t", "b1")
        assert hook.id == "w1"
        (call,) = route.calls
        assert call.request.content == b"callbackURL=https%3A%2F%2Fx.org%2Ft&idModel=b1"

    @respx.mock
    async def test_configured_api_url_receives_all_requests(self) -> None:
        respx.get("http://127.0.0.1:1/1/boards/b1").respond(json={"id": "b1"})
        async with account("http://127.0.0.1:1") as trello:
            assert await trello.get("/boards/b1") == {"id": "b1"}

    @respx.mock
    @pytest.mark.parametrize("kind", [bytes, Path])
    async def test_a_file_is_streamed_with_its_name(
        self, trello: Trello, kind: type, tmp_path: Path
    ) -> None:
        route = respx.post(f"{API}/1/cards/{CARD}/attachments").respond(json={"id": "f1"})
        data: bytes | Path = b"\x00\xff report"
        if kind is Path:
            (tmp_path / "x").write_bytes(b"\x00\xff report")
            data = tmp_path / "x"
        assert await trello.attach(CARD, "réport.txt", data) == {"id": "f1"}
        (call,) = route.calls
        assert call.request.url.params["name"] == "réport.txt"
        assert b"\x00\xff report" in call.request.content
        assert "réport.txt".encode() in call.request.content

    @respx.mock
    async def test_special_characters_in_an_id_are_quoted(self, trello: Trello) -> None:
        route = respx.route().respond(json={})
        await trello.get("/cards/a?b#c")
        (call,) = route.calls
        assert call.request.url.raw_path == b"/1/cards/a%3Fb%23c"

    async def test_oauth_1_is_refused(self, trello: Trello) -> None:
        request = trello.client.http_service.request
        with pytest.raises(UsageError, match="not with OAuth"):
            await trello.read(request, "GET", f"{API}/1/boards/b1", auth=object())


Row = tuple[int, str, str, str, Callable[[Failure], bool]]
PERMANENT = ErrorClass.PERMANENT
LATER = ErrorClass.TRANSIENT_INFRA
STATUSES = [
    (400, "invalid value for text", "POST", COMMENTS, None, PERMANENT),
    (400, "invalid id", "POST", COMMENTS, TARGET_GONE, PERMANENT),
    (401, "invalid token", "POST", COMMENTS, ACCOUNT, LATER),
    (401, "invalid key", "GET", "/boards/b1", ACCOUNT, LATER),
    (401, "unauthorized card permission requested", "POST", COMMENTS, TARGET_GONE, PERMANENT),
    (403, "forbidden", "POST", COMMENTS, TARGET_GONE, PERMANENT),
    (404, NOT_FOUND, "POST", COMMENTS, TARGET_GONE, PERMANENT),
    (404, NOT_FOUND, "PUT", "/actions/a1", COPY_GONE, PERMANENT),
    (408, "", "POST", COMMENTS, None, LATER),
    (409, "conflict", "POST", COMMENTS, None, PERMANENT),
    (413, "too large", "POST", COMMENTS, None, PERMANENT),
    (302, "", "GET", "/boards/b1", None, PERMANENT),
    (500, HTML, "GET", "/boards/b1", NO_REPLY, LATER),
    (503, HTML, "GET", "/boards/b1", NO_REPLY, ErrorClass.TRANSIENT_APP),
]


class Endless(httpx.SyncByteStream):
    """A body that goes on for ever."""

    def __iter__(self) -> Iterator[bytes]:
        while True:
            yield b" "


class TestObjects:
    @respx.mock
    async def test_ids_are_quoted_in_paths(self, trello: Trello) -> None:
        route = respx.route().respond(json={})
        card = trello.card("a?b#c")
        await trello.write(card.remove_label, trello.label("../x"))
        (call,) = route.calls
        assert call.request.url.raw_path == b"/1/cards/a%3Fb%23c/idLabels/..%2Fx"

    @respx.mock
    async def test_a_card_is_read_with_its_fields_in_one_request(self, trello: Trello) -> None:
        fields = {"idBoard": "b1", "idLabels": [CARD, "x"], "closed": True}
        route = respx.get(f"{API}/1/cards/{CARD}").respond(json=fields)
        card = await read_card(trello, CARD)
        assert (card.id, card.idBoard, card.idList) == (CARD, "b1", "")
        assert (card.idLabels, card.closed, card.dateLastActivity) == ([CARD], True, None)
        assert route.call_count == 1

    @pytest.mark.parametrize("reply", [[], {"id": "b1"}, "b1"])
    @respx.mock
    async def test_a_reply_without_a_required_field_is_a_failure(
        self, trello: Trello, reply: Any
    ) -> None:
        respx.get(f"{API}/1/boards/b1").respond(json=reply)
        with pytest.raises(Failure, match="get_board: invalid reply") as caught:
            await trello.read(trello.client.get_board, "b1")
        assert caught.value.code == NO_REPLY
        respx.get(f"{API}/1/cards/{CARD}").respond(json=[])
        with pytest.raises(Failure, match="invalid reply"):
            await read_card(trello, CARD)

    @respx.mock
    async def test_a_write_with_an_unexpected_reply_is_unconfirmed(self, trello: Trello) -> None:
        respx.post(f"{API}/1/lists").respond(json=["x"])
        with pytest.raises(UnconfirmedCall):
            await trello.write(trello.board("b1").add_list, "Doing")


class TestWhatAnAnswerMeans:
    @pytest.mark.parametrize(("status", "text", "method", "path", "code", "kind"), STATUSES)
    async def test_each_status(
        self, trello: Trello, status: int, text: str, method: str, path: str, code: str | None,
        kind: ErrorClass,
    ) -> None:  # fmt: skip
        failure = await refused(trello, httpx.Response(status, text=text), method, path)
        assert (failure.origin, failure.code, failure.http_status) == ("trello", code, status)
        assert classify(failure) is kind
        assert not isinstance(failure, UnconfirmedCall)
        assert "<" not in str(failure)
        assert f"({method} /1{path})" in str(failure)

    @pytest.mark.parametrize("status", [200, 500, 502, 503])
    async def test_write_answered_with_html_is_unconfirmed(
        self, trello: Trello, status: int
    ) -> None:
        failure = await refused(trello, httpx.Response(status, html=HTML), "POST", COMMENTS)
        assert isinstance(failure, UnconfirmedCall)
        assert "<" not in str(failure)

    @pytest.mark.parametrize(
        "error", [httpx.ReadTimeout, httpx.RemoteProtocolError, httpx.ReadError]
    )
    @respx.mock
    async def test_write_without_a_response_is_unconfirmed(
        self, trello: Trello, error: type[httpx.TransportError]
    ) -> None:
        route = respx.post(f"{API}/1{COMMENTS}").mock(side_effect=error("x"))
        with pytest.raises(UnconfirmedCall):
            await trello.post(COMMENTS, text="x")
        assert route.call_count == 1, "it was repeated unseen"

    @pytest.mark.parametrize("bad", [httpx.ReadTimeout("x"), httpx.Response(503, html=HTML)])
    @respx.mock
    async def test_read_is_retried(self, trello: Trello, bad: Any) -> None:
        respx.get(f"{API}/1/boards/b1").mock(side_effect=[bad, httpx.Response(200, json={})])
        assert await trello.get("/boards/b1") == {}

    @respx.mock
    async def test_unsent_write_is_not_unconfirmed(self, trello: Trello) -> None:
        respx.post(f"{API}/1{COMMENTS}").mock(side_effect=httpx.ConnectError("x"))
        with pytest.raises(Failure) as caught:
            await trello.post(COMMENTS, text="x")
        assert (type(caught.value), caught.value.code) == (Failure, CONNECT)

    async def test_endless_response_times_out(self) -> None:
        async with account(timeout=0.2) as trello:
            reply = httpx.Response(200, stream=Endless())
            failure = await refused(trello, reply, "POST", COMMENTS)
        assert isinstance(failure, UnconfirmedCall)
        assert "no reply in time (ReadTimeout)" in str(failure), (
            "by itself, not by who waits for it"
        )

    async def test_invalid_token_pauses_the_account(self, trello: Trello) -> None:
        failure = await refused(trello, httpx.Response(401, text="invalid token"), "POST", COMMENTS)
        assert failure.retry_after == PAUSES[0]
        assert "invalid token" in (trello.trouble or "")
        for pause in (*PAUSES[1:], PAUSES[-1]):
            failure = await refused(
                trello, httpx.Response(401, text="invalid token"), "POST", COMMENTS
            )
            assert failure.retry_after == pause
        with respx.mock(base_url=f"{API}/1") as router:
            router.get("/boards/b1").respond(json={})
            await trello.get("/boards/b1")
        assert trello.trouble is None
        failure = await refused(trello, httpx.Response(401, text="invalid token"), "POST", COMMENTS)
        assert failure.retry_after == PAUSES[0], "a later stray 401 waits a second again"

    async def test_a_read_that_times_out_is_reported_as_a_timeout(self) -> None:
        async with account(timeout=0.2) as trello:
            failure = await refused(
                trello, httpx.Response(200, stream=Endless()), "GET", "/boards/b1"
            )
        assert (failure.code, failure.http_status) == (TIMEOUT, None)
        assert "no reply in time" in str(failure)

    async def test_invalid_id_does_not_blame_the_token(self, trello: Trello) -> None:
        failure = await refused(trello, httpx.Response(400, text="invalid id"), "POST", COMMENTS)
        assert (failure.retry_after, trello.trouble) == (None, None)


def limited(name: str, **headers: str) -> httpx.Response:
    body = {"error": f"API_{name}_LIMIT_EXCEEDED", "message": "Rate limit exceeded"}
    return httpx.Response(429, json=body, headers=headers)


class TestCase90Limits:
    @pytest.mark.parametrize(
        ("name", "path", "wait"),
        [("TOKEN", "/boards/b1", 10), ("KEY", "/boards/b1", 10), ("MEMBER", "/members/me", 900)],
    )
    async def test_429_stops_requests_until_the_window_ends(
        self, trello: Trello, name: str, path: str, wait: float
    ) -> None:
        first = await refused(trello, limited(name), "GET", path)
        assert (first.code, first.retry_after) == (f"API_{name}_LIMIT_EXCEEDED", wait)
        with respx.mock(assert_all_called=False) as router:
            route = router.route().respond(json={})
            with pytest.raises(Failure) as caught:
                await trello.get(path)
            assert caught.value.http_status == 429
            assert 0 < (caught.value.retry_after or 0) <= wait
            if name == "MEMBER":
                await trello.get("/boards/b1")
                assert route.call_count == 1, "only the members' pages are shut"
            else:
                assert route.call_count == 0

    async def test_limits_in_response_headers_are_respected(self, trello: Trello) -> None:
        interval = {"x-rate-limit-api-token-interval-ms": "3000"}
        failure = await refused(trello, limited("TOKEN", **interval), "GET", "/boards/b1")
        assert failure.retry_after == 3

    async def test_retry_after_is_respected(self, trello: Trello) -> None:
        failure = await refused(trello, limited("KEY", **{"retry-after": "7"}), "GET", "/boards/b1")
        assert failure.retry_after == 7

    @respx.mock
    async def test_a_full_window_is_waited_for_or_refused(self) -> None:
        route = respx.get(f"{API}/1/boards/b1").respond(json={})
        async with account(timeout=3.0) as trello:
            most = int(LIMITS[TOKEN][0] * SHARE)
            for _ in range(most):
                await trello.get("/boards/b1")
            with pytest.raises(Failure) as caught:
                await trello.get("/boards/b1")
        assert route.call_count == most
        assert caught.value.http_status == 429
        assert classify(caught.value) is ErrorClass.TRANSIENT_APP

    @respx.mock
    async def test_background_work_leaves_a_part_of_the_limit_to_others(self) -> None:
        route = respx.get(f"{API}/1/boards/b1").respond(json={})
        most = int(int(LIMITS[TOKEN][0] * BACKGROUND_SHARE) * SHARE)
        async with account(timeout=3.0) as trello:
            with background():
                for _ in range(most):
                    await trello.get("/boards/b1")
                with pytest.raises(Failure, match="rate limit reached"):
                    await trello.get("/boards/b1")
            await trello.get("/boards/b1")
        assert route.call_count == most + 1


class TestSecrets:
    @pytest.mark.parametrize("status", [400, 401, 404, 429, 500])
    async def test_errors_are_picklable_and_hold_no_secret(
        self, trello: Trello, status: int
    ) -> None:
        path = f"/tokens/{TOKENS.token}/webhooks"
        text = f"no: {TOKENS.token} {TOKENS.key} {TOKENS.secret}"
        failure = await refused(trello, httpx.Response(status, text=text), "GET", path)
        again = pickle.loads(pickle.dumps(failure))
        assert (str(again), again.http_status) == (str(failure), status)
        hidden = [str(failure), repr(failure), str(failure.args), str(vars(failure))]
        hidden.append("".join(traceback.format_exception(failure)))
        for secret in TOKENS.all:
            assert secret not in "".join(hidden)

    @pytest.mark.parametrize("error", [httpx.ReadTimeout, httpx.ConnectError])
    @respx.mock
    async def test_library_exceptions_are_not_chained(
        self, trello: Trello, error: type[httpx.TransportError]
    ) -> None:
        respx.post(f"{API}/1{COMMENTS}").mock(side_effect=error(f"oh {TOKENS.token}"))
        with pytest.raises(Failure) as caught:
            await trello.post(COMMENTS, text="x")
        cause: BaseException | None = caught.value
        while cause is not None:
            assert isinstance(cause, Failure)
            assert TOKENS.token not in str(cause)
            cause = cause.__cause__ or cause.__context__

    @respx.mock
    async def test_logs_and_representations_hold_no_secret(
        self, trello: Trello, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        respx.get(f"{API}/1/tokens/{TOKENS.token}/webhooks").respond(json=[])
        assert await trello.read(trello.client.list_hooks) == []
        shown = caplog.text + repr(trello) + repr(vars(trello)) + repr(TOKENS) + str(TOKENS)
        for secret in TOKENS.all:
            assert secret not in shown
