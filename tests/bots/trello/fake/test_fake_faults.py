"""Faults of the fake as py-trello sees them."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
import requests
from trello import TrelloClient
from trello.exceptions import ResourceUnavailable, Unauthorized

from draftsman_testing.trello import ANY, FakeTrello, Fault, Limits, error
from draftsman_testing.waits import until
from tests.bots.trello.http_adapters import ask, refusal, run_in_thread
from tests.bots.trello.webhook_receiver import WebhookReceiver

SAY = ("POST", "/cards/{id}/actions/comments")


async def say(client: TrelloClient, card: str) -> Any:
    """Comment on a card."""
    path = f"/cards/{card}/actions/comments"
    return await run_in_thread(client.fetch_json, path, "POST", post_args={"text": "hello"})


@pytest.mark.parametrize(("fault", "kept"), [(Fault.DROP_BEFORE, 0), (Fault.DROP_AFTER, 1)])
async def test_connection_is_cut(
    trello: FakeTrello, client: TrelloClient, card: str, fault: Fault, kept: int
) -> None:
    trello.faults.next(*SAY, fault)
    with pytest.raises(requests.ConnectionError):
        await say(client, card)
    assert len(trello.comments(card)) == kept
    await say(client, card)
    assert len(trello.comments(card)) == kept + 1


@pytest.mark.parametrize(("fault", "kept"), [(Fault.HTML_503, 0), (Fault.HTML_AFTER, 1)])
async def test_error_page_replaces_the_response(
    trello: FakeTrello, client: TrelloClient, card: str, fault: Fault, kept: int
) -> None:
    trello.faults.next(*SAY, fault)
    with pytest.raises(ResourceUnavailable) as caught:
        await say(client, card)
    assert caught.value._status == 503
    assert "<html>" in caught.value._msg
    assert len(trello.comments(card)) == kept


@pytest.mark.parametrize(("fault", "kept"), [(Fault.HTML_200, 0), (Fault.CUT_AFTER, 1)])
async def test_response_200_without_json(
    trello: FakeTrello, client: TrelloClient, card: str, fault: Fault, kept: int
) -> None:
    trello.faults.next(*SAY, fault)
    with pytest.raises(json.JSONDecodeError):
        await say(client, card)
    assert len(trello.comments(card)) == kept


async def test_py_trello_rejects_status_201(
    trello: FakeTrello, client: TrelloClient, card: str
) -> None:
    trello.faults.next(*SAY, Fault.CREATED_201)
    with pytest.raises(ResourceUnavailable) as caught:
        await say(client, card)
    assert caught.value._status == 201
    assert len(trello.comments(card)) == 1


async def test_fault_can_have_any_status_and_text(
    trello: FakeTrello, client: TrelloClient, card: str
) -> None:
    trello.faults.next(*SAY, error(401, "invalid token"))
    with pytest.raises(Unauthorized, match="invalid token"):
        await say(client, card)
    trello.faults.next(*SAY, error(418, "short"), times=2)
    assert [await refusal(say_now, client, card) for _ in range(2)] == [(418, "short")] * 2
    assert not trello.comments(card)
    assert trello.faults.left == 0


def say_now(client: TrelloClient, card: str) -> None:
    client.fetch_json(f"/cards/{card}/actions/comments", "POST", post_args={"text": "hello"})


async def test_rate_limit_is_reported(trello: FakeTrello, client: TrelloClient, card: str) -> None:
    trello.faults.next(*SAY, Fault.RATE_LIMIT)
    status, text = await refusal(say_now, client, card)
    assert (status, json.loads(text)["error"]) == (429, "API_TOKEN_LIMIT_EXCEEDED")


async def test_slow_response_belongs_to_an_applied_write(trello: FakeTrello, card: str) -> None:
    trello.faults.next(*SAY, Fault.SLOW(0.2))
    place = f"{trello.api_url}/1/cards/{card}/actions/comments"
    both = {"key": trello.key, "token": trello.token}
    async with httpx.AsyncClient(trust_env=False, timeout=0.05) as http:
        with pytest.raises(httpx.ReadTimeout):
            await http.post(place, params=both, json={"text": "hello"})

    async def said() -> bool:
        return bool(trello.comments(card))

    await until(said, "the comment")


async def test_fault_applies_to_one_route_or_to_any(
    trello: FakeTrello, client: TrelloClient, card: str
) -> None:
    with pytest.raises(LookupError, match=r"no POST /cards/\{id\}/comments"):
        trello.faults.next("POST", "/cards/{id}/comments", Fault.HTML_503)
    trello.faults.next("GET", ANY, Fault.HTML_503)
    trello.faults.next(*SAY, Fault.PASS)
    trello.faults.next(*SAY, Fault.HTML_503)
    await say(client, card)
    assert (await refusal(client.get_card, card))[0] == 503
    await run_in_thread(client.get_card, card)
    assert trello.faults.left == 1
    trello.faults.clear()
    await say(client, card)


async def test_random_faults_are_reproducible_by_seed(
    trello: FakeTrello, client: TrelloClient, card: str
) -> None:
    rates = {Fault.HTML_503: 0.3, Fault.DROP_AFTER: 0.3}
    with pytest.raises(ValueError, match="more than 1"):
        trello.faults.random(1, {Fault.HTML_503: 1.1})

    async def outcomes() -> list[str]:
        trello.faults.random(7, rates, spare=(("GET", "/cards/{id}"),))
        found = []
        for _ in range(12):
            try:
                await say(client, card)
                found.append("ok")
            except (ResourceUnavailable, requests.ConnectionError) as caught:
                found.append(type(caught).__name__)
        return found

    first = await outcomes()
    assert first == await outcomes()
    assert set(first) == {"ok", "ResourceUnavailable", "ConnectionError"}
    assert trello.faults.seen["html 503"] == 2 * first.count("ResourceUnavailable")
    for _ in range(12):
        await run_in_thread(client.fetch_json, f"/cards/{card}")


async def test_webhook_can_arrive_before_the_response(
    trello: FakeTrello, client: TrelloClient, board: str, card: str, receiver: WebhookReceiver
) -> None:
    await run_in_thread(client.create_hook, receiver.url, board)
    trello.faults.next(*SAY, Fault.ECHO_FIRST)
    made = await say(client, card)
    assert [heard.action["id"] for heard in receiver.received] == [made["id"]]
    assert (len(trello.faults.seen), trello.faults.seen["echo first"]) == (1, 1)
    assert not trello.world.pending


async def test_100_requests_of_a_token_in_10_seconds(
    trello: FakeTrello, client: TrelloClient, card: str
) -> None:
    place = f"{trello.api_url}/1/cards/{card}"
    both = {"key": trello.key, "token": trello.token}
    async with httpx.AsyncClient(trust_env=False) as http:
        answers = [await http.get(place, params=both) for _ in range(101)]
        assert [answer.status_code for answer in answers] == [200] * 100 + [429]
        assert answers[-1].json()["error"] == "API_TOKEN_LIMIT_EXCEEDED"
        assert "Retry-After" not in answers[-1].headers
        left = [answer.headers["X-Rate-Limit-Api-Token-Remaining"] for answer in answers]
        assert (left[0], left[99], left[100]) == ("99", "0", "0")
        trello.later(10)
        assert (await http.get(place, params=both)).status_code == 200


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (Limits(key=2), "API_KEY_LIMIT_EXCEEDED"),
        (Limits(token=2), "API_TOKEN_LIMIT_EXCEEDED"),
        (Limits(members=2), "API_MEMBER_LIMIT_EXCEEDED"),
    ],
)
async def test_each_limit_has_its_window(limits: Limits, code: str) -> None:
    async with FakeTrello(limits) as trello, httpx.AsyncClient(trust_env=False) as http:

        async def ask() -> httpx.Response:
            both = {"key": trello.key, "token": trello.token}
            return await http.get(f"{trello.api_url}/1/members/me", params=both)

        assert [(await ask()).status_code for _ in range(3)] == [200, 200, 429]
        assert (await ask()).json()["error"] == code
        trello.later(10)
        assert (await ask()).status_code == (429 if "MEMBER" in code else 200)
        trello.later(890)
        assert (await ask()).status_code == 200


async def test_client_over_the_limit_is_blocked() -> None:
    async with FakeTrello(Limits(members=1, refusals=3)) as trello:
        board = trello.board("Work")
        both = {"key": trello.key, "token": trello.token}
        async with httpx.AsyncClient(trust_env=False) as http:

            async def ask(path: str) -> int:
                return (await http.get(f"{trello.api_url}/1{path}", params=both)).status_code

            assert await ask("/members/me") == 200
            assert [await ask("/members/me") for _ in range(3)] == [429] * 3
            assert await ask(f"/boards/{board}") == 429
            assert trello.meter.refused == 4
            trello.later(10)
            assert await ask(f"/boards/{board}") == 200


async def test_requests_are_not_limited_without_limits() -> None:
    async with FakeTrello(None) as trello, httpx.AsyncClient(trust_env=False) as http:
        both = {"key": trello.key, "token": trello.token}
        for _ in range(110):
            assert (await http.get(f"{trello.api_url}/1/members/me", params=both)).is_success


async def test_error_of_the_fake_itself_fails_the_test() -> None:
    broken = await FakeTrello().__aenter__()
    board = broken.board("Work")
    del broken.world.boards[board].name
    assert (await ask(broken, "GET", f"/boards/{board}")).status_code == 500
    with pytest.raises(ExceptionGroup, match="itself is broken"):
        await broken.__aexit__(None, None, None)
