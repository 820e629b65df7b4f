"""Faults of the fake as py-trello sees them."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from trello import TrelloClient
from trello.exceptions import ResourceUnavailable

from draftsman_testing.trello import FakeTrello, Fault, Limits
from tests.bots.trello.http_adapters import refusal, run_in_thread
from tests.support.cases import cases

SAY = ("POST", "/cards/{id}/actions/comments")


async def say(client: TrelloClient, card: str) -> Any:
    """Comment on a card."""
    path = f"/cards/{card}/actions/comments"
    return await run_in_thread(client.fetch_json, path, "POST", post_args={"text": "hello"})


async def test_py_trello_rejects_status_201(
    trello: FakeTrello, client: TrelloClient, card: str
) -> None:
    trello.faults.next(*SAY, Fault.CREATED_201)
    with pytest.raises(ResourceUnavailable) as caught:
        await say(client, card)
    assert caught.value._status == 201
    assert len(trello.comments(card)) == 1


def say_now(client: TrelloClient, card: str) -> None:
    client.fetch_json(f"/cards/{card}/actions/comments", "POST", post_args={"text": "hello"})


async def test_rate_limit_is_reported(trello: FakeTrello, client: TrelloClient, card: str) -> None:
    trello.faults.next(*SAY, Fault.RATE_LIMIT)
    status, text = await refusal(say_now, client, card)
    assert (status, json.loads(text)["error"]) == (429, "API_TOKEN_LIMIT_EXCEEDED")


async def test_100_requests_of_a_token_in_10_seconds(
    trello: FakeTrello, client: TrelloClient, card: str
) -> None:
    place = f"{trello.api_url}/1/cards/{card}"
    both = {"key": trello.key, "token": trello.token}
    async with httpx.AsyncClient(trust_env=False) as http:
        answers = [await http.get(place, params=both) for _ in range(101)]
        assert [answer.status_code for answer in answers] == [200] * 100 + [429]
        assert answers[-1].json()["error"] == "API_TOKEN_LIMIT_EXCEEDED"
        names = {name.lower() for answer in answers for name in answer.headers}
        assert not [name for name in names if "limit" in name or name == "retry-after"]
        trello.later(10)
        assert (await http.get(place, params=both)).status_code == 200


@cases(
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
