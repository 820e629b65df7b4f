"""The fake refuses what Trello refuses, in plain text."""

from __future__ import annotations

import itertools
import json
from typing import Any

import httpx
import pytest
from trello import TrelloClient

from tests.bots.trello.http_adapters import RequestsAdapter, ask, refusal, run_in_thread
from tests.support.trello import ApiError, FakeTrello
from tests.support.trello.methods.registry import ROUTES

NOBODY = "0" * 24
NONSENSE: tuple[Any, ...] = ("", "x" * 20_000, "null", "-1", "nan", "[]", NOBODY, "\ud800", "\x00")
NAMES = (
    "value", "text", "name", "desc", "pos", "closed", "due", "idList", "idBoard", "idLabels",
    "idMembers", "idCardSource", "filter", "fields", "limit", "page", "since", "before", "color",
    "url", "idModel", "callbackURL", "active", "description", "idModels", "checked", "actions",
)  # fmt: skip


@pytest.mark.parametrize(
    ("key", "token", "text"),
    [
        ("wrong", "wrong", "invalid key"),
        (None, "wrong", "invalid token"),
        (None, "", "unauthorized permission requested"),
    ],
)
async def test_key_and_token_are_looked_at(
    trello: FakeTrello, card: str, key: str | None, token: str, text: str
) -> None:
    other = TrelloClient(key or trello.key, token, http_service=RequestsAdapter(trello.api_url))
    assert await refusal(other.get_card, card) == (401, text)
    assert trello.calls[-1].outcome == "401"


async def test_a_revoked_token_is_refused_and_its_webhooks_are_gone(
    trello: FakeTrello, client: TrelloClient, card: str
) -> None:
    trello.revoke()
    assert await refusal(client.get_card, card) == (401, "invalid token")
    trello.revoke(revoked=False)
    await run_in_thread(client.get_card, card)


async def test_an_id_is_looked_at_before_the_token(trello: FakeTrello, card: str) -> None:
    other = TrelloClient(trello.key, "wrong", http_service=RequestsAdapter(trello.api_url))
    for path in ("/cards/nonsense!", "/boards/7", f"/cards/{card}/idLabels/none"):
        method = "DELETE" if "idLabels" in path else "GET"
        assert await refusal(other.fetch_json, path, method) == (400, "invalid id")
    assert (await refusal(other.fetch_json, f"/cards/{card}"))[0] == 401


async def test_key_and_token_may_be_in_the_header_the_query_or_the_body(
    trello: FakeTrello, card: str
) -> None:
    both = {"key": trello.key, "token": trello.token}
    place = f"{trello.api_url}/1/cards/{card}/actions/comments"
    await ask(trello, "POST", f"/cards/{card}/actions/comments", text="in the header")
    async with httpx.AsyncClient(trust_env=False) as http:
        assert (await http.post(place, params=both, json={"text": "in the query"})).is_success
        assert (await http.post(place, data=both | {"text": "in the body"})).is_success
    assert [call.by for call in trello.calls] == ["header", "query", "body"]
    assert len(trello.comments(card)) == 3


async def test_an_error_is_plain_text(trello: FakeTrello) -> None:
    answer = await ask(trello, "GET", f"/cards/{NOBODY}")
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert (answer.status_code, answer.text) == (404, "The requested resource was not found.")
    assert (await ask(trello, "GET", "/cardz")).text == "Cannot GET /1/cardz"


@pytest.mark.parametrize(
    "path", ["/cards/{}", "/boards/{}", "/lists/{}", "/labels/{}", "/actions/{}", "/webhooks/{}"]
)
async def test_what_is_not_there_is_not_found(
    trello: FakeTrello, client: TrelloClient, path: str
) -> None:
    assert (await refusal(client.fetch_json, path.format(NOBODY)))[0] == 404


async def test_what_was_deleted_is_not_found(
    trello: FakeTrello, client: TrelloClient, card: str, anna: str
) -> None:
    comment = trello.comment(card, anna, "hello")
    trello.delete_card(card)
    assert (await refusal(client.get_card, card))[0] == 404
    assert (await refusal(client.fetch_json, f"/actions/{comment}"))[0] == 404
    assert (await ask(trello, "POST", f"/cards/{card}/actions/comments", text="x")).is_error


async def test_a_board_of_others_is_not_shown(trello: FakeTrello, client: TrelloClient) -> None:
    board = trello.board("Others'", bot=False)
    place = trello.list(board, "To do")
    card = trello.card(board, place, "Secret")
    for path in (f"/boards/{board}", f"/boards/{board}/cards", f"/cards/{card}", f"/lists/{place}"):
        found = await refusal(client.fetch_json, path)
        assert found == (401, "unauthorized permission requested")


@pytest.mark.parametrize("size", [0, 16385])
async def test_a_comment_has_one_to_16384_characters(
    trello: FakeTrello, client: TrelloClient, card: str, size: int
) -> None:
    seen = await run_in_thread(client.get_card, card)
    assert await refusal(seen.comment, "x" * size) == (400, "invalid value for text")
    made = await run_in_thread(seen.comment, "x" * 16384)
    assert (await refusal(seen.update_comment, made["id"], "x" * size))[0] == 400
    assert [len(one.text) for one in trello.comments(card)] == [16384]


async def test_only_who_wrote_a_comment_changes_it(
    trello: FakeTrello, client: TrelloClient, card: str, anna: str
) -> None:
    hers = trello.comment(card, anna, "hello")
    seen = await run_in_thread(client.get_card, card)
    for work in ((seen.update_comment, hers, "x"), (seen.delete_comment, {"id": hers})):
        assert await refusal(*work) == (401, "unauthorized permission requested")
    with pytest.raises(ApiError):
        trello.edit_comment(hers, "x", by=trello.bot_member)
    assert (trello.comments(card)[0].text, trello.comments(card)[0].edited) == ("hello", False)


async def test_a_comment_of_another_card_is_not_found(
    trello: FakeTrello, client: TrelloClient, board: str, todo: str, card: str
) -> None:
    other = await run_in_thread(client.get_card, trello.card(board, todo, "Other"))
    comment = trello.comment(card, trello.bot_member, "x")
    assert (await refusal(other.delete_comment, {"id": comment}))[0] == 404


async def test_titles_and_descriptions_have_a_length(
    trello: FakeTrello, client: TrelloClient, todo: str, card: str
) -> None:
    seen = await run_in_thread(client.get_card, card)
    assert await refusal(seen.set_name, "") == (400, "invalid value for name")
    assert (await refusal(seen.set_name, "x" * 16385))[0] == 400
    assert await refusal(seen.set_description, "x" * 16385) == (400, "invalid value for desc")
    place = await run_in_thread(client.get_list, todo)
    assert (await refusal(place.add_card, ""))[0] == 400
    assert (await refusal(place.add_card, "x", "x" * 16385))[0] == 400


async def test_labels_are_of_the_board_and_put_once(
    trello: FakeTrello, client: TrelloClient, board: str, todo: str, card: str
) -> None:
    fix, other = trello.label(board, "fix"), trello.label(trello.board("Other"), "fix")
    path = f"/cards/{card}/idLabels"
    assert (await refusal(client.fetch_json, path, "POST", post_args={"value": other}))[0] == 400
    await run_in_thread(client.fetch_json, path, "POST", post_args={"value": fix})
    found = await refusal(client.fetch_json, path, "POST", post_args={"value": fix})
    assert found == (400, "that label is already on the card")
    await run_in_thread(client.fetch_json, f"{path}/{fix}", "DELETE")
    assert (await refusal(client.fetch_json, f"{path}/{fix}", "DELETE"))[0] == 404
    made = {"idList": todo, "name": "x", "idLabels": other}
    assert (await refusal(client.fetch_json, "/cards", "POST", post_args=made))[0] == 400
    assert (await refusal(client.fetch_json, f"{path}/{NOBODY}", "DELETE"))[0] == 404
    color = {"idBoard": board, "name": "x", "color": "mauve"}
    assert (await refusal(client.fetch_json, "/labels", "POST", post_args=color))[0] == 400


async def test_a_card_stays_on_its_board_unless_it_is_moved_there(
    trello: FakeTrello, client: TrelloClient, card: str, todo: str
) -> None:
    there = trello.list(trello.board("Other"), "To do")
    seen = await run_in_thread(client.get_card, card)
    assert await refusal(seen.change_list, there) == (400, "invalid value for idList")
    assert (await refusal(seen.change_list, NOBODY))[0] == 404
    path = f"/cards/{card}/idBoard"
    said = {"value": trello.board("Third"), "idList": there}
    assert (await refusal(client.fetch_json, path, "PUT", post_args=said))[0] == 400
    assert trello.card_now(card)["idList"] == todo


async def test_attachments_have_limits(trello: FakeTrello, client: TrelloClient, card: str) -> None:
    trello.api.attachment_most = 4
    seen = await run_in_thread(client.get_card, card)
    assert (await refusal(seen.attach, "a.txt", "text/plain", b"12345"))[0] == 413
    await run_in_thread(seen.attach, "a.txt", "text/plain", b"1234")
    found = await refusal(seen.attach, "x" * 257, "text/plain", b"1")
    assert found == (400, "invalid value for name")
    assert (await refusal(seen.attach, url="ftp://example.com"))[0] == 400
    for number in range(99):
        trello.attach(card, f"{number}.txt")
    assert (await refusal(seen.attach, "a.txt", "text/plain", b"1"))[0] == 400
    assert len(trello.attachments(card)) == 100


async def test_a_body_that_is_no_json_is_refused(trello: FakeTrello, card: str) -> None:
    async with httpx.AsyncClient(trust_env=False) as http:
        answer = await http.put(
            f"{trello.api_url}/1/cards/{card}",
            content=b"{",
            params={"key": trello.key, "token": trello.token},
            headers={"Content-Type": "application/json"},
        )
    assert (answer.status_code, answer.text) == (400, "Error parsing body: invalid json")


async def test_no_nonsense_breaks_the_fake() -> None:
    async with FakeTrello(limits=None) as quiet, httpx.AsyncClient(trust_env=False) as http:
        here = quiet.board("Board")
        place = quiet.list(here, "List")
        on = quiet.card(here, place, "Card", labels=[quiet.label(here, "fix")])
        comment = quiet.comment(on, quiet.bot_member, "x")
        ids = {"boards": here, "lists": place, "cards": on, "actions": comment}
        both = {"key": quiet.key, "token": quiet.token}
        deeds = [route for route in ROUTES if route.method != "DELETE"]
        for route, nonsense in itertools.product(deeds, NONSENSE):
            path = route.path.replace("{id}", ids.get(route.path.split("/")[1], NOBODY))
            path = path.replace("{idAction}", comment).replace("{member}", "me")
            path = path.replace("{token}", quiet.token).replace("{field}", "name")
            path = path.replace("{filter}", "all")
            said = dict.fromkeys(NAMES, nonsense) | both
            answer = await http.request(
                route.method,
                f"{quiet.api_url}/1{path}",
                content=json.dumps(said),
                headers={"Content-Type": "application/json"},
            )
            assert answer.status_code in (200, 400, 401, 404), (route.path, nonsense, answer.text)
