"""Errors of the fake, in plain text as Trello's."""

from __future__ import annotations

import itertools
import json
from typing import Any

import httpx
import pytest
from trello import TrelloClient

from draftsman_testing.trello import ApiError, FakeTrello
from draftsman_testing.trello.methods.registry import ROUTES
from tests.bots.trello.http_adapters import RequestsAdapter, ask, refusal, run_in_thread

NOBODY = "0" * 24
NONSENSE: tuple[Any, ...] = ("", "x" * 20_000, "null", "-1", "nan", "[]", NOBODY, "\ud800", "\x00")
NAMES = (
    "value", "text", "name", "desc", "pos", "closed", "due", "idList", "idBoard", "idLabels",
    "idMembers", "idCardSource", "filter", "fields", "limit", "page", "since", "before", "color",
    "url", "idModel", "callbackURL", "active", "description", "idModels", "checked", "actions",
    "state", "idValue",
)  # fmt: skip


@pytest.mark.parametrize(
    ("key", "token", "text"),
    [
        ("wrong", "wrong", "invalid key"),
        (None, "wrong", "invalid token"),
        (None, "", "unauthorized permission requested"),
    ],
)
async def test_key_and_token_are_checked(
    trello: FakeTrello, card: str, key: str | None, token: str, text: str
) -> None:
    other = TrelloClient(key or trello.key, token, http_service=RequestsAdapter(trello.api_url))
    assert await refusal(other.get_card, card) == (401, text)
    assert trello.calls[-1].outcome == "401"


async def test_revoked_token_is_refused_and_loses_its_webhooks(
    trello: FakeTrello, client: TrelloClient, card: str
) -> None:
    trello.revoke()
    assert await refusal(client.get_card, card) == (401, "invalid token")
    trello.revoke(revoked=False)
    await run_in_thread(client.get_card, card)


async def test_invalid_id_is_rejected_before_the_token(trello: FakeTrello, card: str) -> None:
    other = TrelloClient(trello.key, "wrong", http_service=RequestsAdapter(trello.api_url))
    for path in ("/cards/nonsense!", "/boards/7", f"/cards/{card}/idLabels/none"):
        method = "DELETE" if "idLabels" in path else "GET"
        assert await refusal(other.fetch_json, path, method) == (400, "invalid id")
    assert (await refusal(other.fetch_json, f"/cards/{card}"))[0] == 401


async def test_key_and_token_may_be_in_the_header_the_query_or_the_body(
    trello: FakeTrello, card: str
) -> None:
    both = {"key": trello.key, "token": trello.token}
    trello_list = f"{trello.api_url}/1/cards/{card}/actions/comments"
    await ask(trello, "POST", f"/cards/{card}/actions/comments", text="in the header")
    async with httpx.AsyncClient(trust_env=False) as http:
        assert (await http.post(trello_list, params=both, json={"text": "in the query"})).is_success
        assert (await http.post(trello_list, data=both | {"text": "in the body"})).is_success
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
async def test_missing_resource_is_not_found(
    trello: FakeTrello, client: TrelloClient, path: str
) -> None:
    assert (await refusal(client.fetch_json, path.format(NOBODY)))[0] == 404


async def test_deleted_comment_is_not_found(
    trello: FakeTrello, client: TrelloClient, card: str, anna: str
) -> None:
    comment = trello.comment(card, anna, "hello")
    trello.delete_card(card)
    assert (await refusal(client.get_card, card))[0] == 404
    assert (await refusal(client.fetch_json, f"/actions/{comment}"))[0] == 404
    assert (await ask(trello, "POST", f"/cards/{card}/actions/comments", text="x")).is_error


async def test_board_without_the_bot_is_forbidden(trello: FakeTrello, client: TrelloClient) -> None:
    board = trello.board("Others'", bot=False)
    trello_list = trello.list(board, "To do")
    card = trello.card(board, trello_list, "Secret")
    for path in (
        f"/boards/{board}",
        f"/boards/{board}/cards",
        f"/cards/{card}",
        f"/lists/{trello_list}",
    ):
        error = await refusal(client.fetch_json, path)
        assert error == (401, "unauthorized permission requested")


@pytest.mark.parametrize("size", [0, 16385])
async def test_a_comment_has_one_to_16384_characters(
    trello: FakeTrello, client: TrelloClient, card: str, size: int
) -> None:
    shown = await run_in_thread(client.get_card, card)
    assert await refusal(shown.comment, "x" * size) == (400, "invalid value for text")
    created = await run_in_thread(shown.comment, "x" * 16384)
    assert (await refusal(shown.update_comment, created["id"], "x" * size))[0] == 400
    assert [len(comment.text) for comment in trello.comments(card)] == [16384]


async def test_only_the_author_may_change_a_comment(
    trello: FakeTrello, client: TrelloClient, card: str, anna: str
) -> None:
    hers = trello.comment(card, anna, "hello")
    shown = await run_in_thread(client.get_card, card)
    for work in ((shown.update_comment, hers, "x"), (shown.delete_comment, {"id": hers})):
        assert await refusal(*work) == (401, "unauthorized permission requested")
    with pytest.raises(ApiError):
        trello.edit_comment(hers, "x", by=trello.bot_member)
    assert (trello.comments(card)[0].text, trello.comments(card)[0].edited) == ("hello", False)


async def test_comment_of_another_card_is_not_found(
    trello: FakeTrello, client: TrelloClient, board: str, todo: str, card: str
) -> None:
    other = await run_in_thread(client.get_card, trello.card(board, todo, "Other"))
    comment = trello.comment(card, trello.bot_member, "x")
    assert (await refusal(other.delete_comment, {"id": comment}))[0] == 404


async def test_titles_and_descriptions_have_a_length(
    trello: FakeTrello, client: TrelloClient, todo: str, card: str
) -> None:
    shown = await run_in_thread(client.get_card, card)
    assert await refusal(shown.set_name, "") == (400, "invalid value for name")
    assert (await refusal(shown.set_name, "x" * 16385))[0] == 400
    assert await refusal(shown.set_description, "x" * 16385) == (400, "invalid value for desc")
    trello_list = await run_in_thread(client.get_list, todo)
    assert (await refusal(trello_list.add_card, ""))[0] == 400
    assert (await refusal(trello_list.add_card, "x", "x" * 16385))[0] == 400


async def test_labels_belong_to_the_board_and_are_added_once(
    trello: FakeTrello, client: TrelloClient, board: str, todo: str, card: str
) -> None:
    fix = trello.label(board, "fix")
    other = trello.label(trello.board("Other"), "fix")
    path = f"/cards/{card}/idLabels"
    assert (await refusal(client.fetch_json, path, "POST", post_args={"value": other}))[0] == 400
    await run_in_thread(client.fetch_json, path, "POST", post_args={"value": fix})
    error = await refusal(client.fetch_json, path, "POST", post_args={"value": fix})
    assert error == (400, "that label is already on the card")
    await run_in_thread(client.fetch_json, f"{path}/{fix}", "DELETE")
    assert (await refusal(client.fetch_json, f"{path}/{fix}", "DELETE"))[0] == 404
    created = {"idList": todo, "name": "x", "idLabels": other}
    assert (await refusal(client.fetch_json, "/cards", "POST", post_args=created))[0] == 400
    assert (await refusal(client.fetch_json, f"{path}/{NOBODY}", "DELETE"))[0] == 404
    color = {"idBoard": board, "name": "x", "color": "mauve"}
    assert (await refusal(client.fetch_json, "/labels", "POST", post_args=color))[0] == 400


async def test_card_changes_boards_only_by_a_move(
    trello: FakeTrello, client: TrelloClient, card: str, todo: str
) -> None:
    other_list = trello.list(trello.board("Other"), "To do")
    shown = await run_in_thread(client.get_card, card)
    assert await refusal(shown.change_list, other_list) == (400, "invalid value for idList")
    assert (await refusal(shown.change_list, NOBODY))[0] == 404
    path = f"/cards/{card}/idBoard"
    arguments = {"value": trello.board("Third"), "idList": other_list}
    assert (await refusal(client.fetch_json, path, "PUT", post_args=arguments))[0] == 400
    assert trello.card_now(card)["idList"] == todo


async def test_attachments_have_limits(trello: FakeTrello, client: TrelloClient, card: str) -> None:
    trello.api.attachment_most = 4
    shown = await run_in_thread(client.get_card, card)
    assert (await refusal(shown.attach, "a.txt", "text/plain", b"12345"))[0] == 413
    await run_in_thread(shown.attach, "a.txt", "text/plain", b"1234")
    error = await refusal(shown.attach, "x" * 257, "text/plain", b"1")
    assert error == (400, "invalid value for name")
    assert (await refusal(shown.attach, url="ftp://example.com"))[0] == 400
    for number in range(99):
        trello.attach(card, f"{number}.txt")
    assert (await refusal(shown.attach, "a.txt", "text/plain", b"1"))[0] == 400
    assert len(trello.attachments(card)) == 100


async def test_invalid_json_body_is_refused(trello: FakeTrello, card: str) -> None:
    async with httpx.AsyncClient(trust_env=False) as http:
        answer = await http.put(
            f"{trello.api_url}/1/cards/{card}",
            content=b"{",
            params={"key": trello.key, "token": trello.token},
            headers={"Content-Type": "application/json"},
        )
    assert (answer.status_code, answer.text) == (400, "Error parsing body: invalid json")


async def test_invalid_requests_do_not_break_the_fake() -> None:
    """Each route gets a third of the values, and each value a third of the routes."""
    await send_nonsense(step=3)


async def send_nonsense(step: int) -> None:
    """Send each step-th value to each route; the first differs by route."""
    async with FakeTrello(limits=None) as quiet, httpx.AsyncClient(trust_env=False) as http:
        here = quiet.board("Board")
        trello_list = quiet.list(here, "List")
        on = quiet.card(here, trello_list, "Card", labels=[quiet.label(here, "fix")])
        comment = quiet.comment(on, quiet.bot_member, "x")
        ids = {"boards": here, "lists": trello_list, "cards": on, "actions": comment}
        both = {"key": quiet.key, "token": quiet.token}
        deeds = [route for route in ROUTES if route.method != "DELETE"]
        pairs = list(itertools.product(enumerate(deeds), enumerate(NONSENSE)))
        for (place, route), (number, nonsense) in pairs:
            if (place + number) % step:
                continue
            path = route.path.replace("{id}", ids.get(route.path.split("/")[1], NOBODY))
            path = path.replace("{idAction}", comment).replace("{member}", "me")
            path = path.replace("{token}", quiet.token).replace("{field}", "name")
            path = path.replace("{filter}", "all")
            arguments = dict.fromkeys(NAMES, nonsense) | both
            answer = await http.request(
                route.method,
                f"{quiet.api_url}/1{path}",
                content=json.dumps(arguments),
                headers={"Content-Type": "application/json"},
            )
            assert answer.status_code in (200, 400, 401, 404), (route.path, nonsense, answer.text)
