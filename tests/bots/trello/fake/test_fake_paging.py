"""How much comes at once, and from where on."""

from __future__ import annotations

import pytest
from trello import TrelloClient

from draftsman_testing.trello import FakeTrello
from draftsman_testing.trello.entities import Json
from tests.bots.trello.http_adapters import refusal, run_in_thread


async def comments(client: TrelloClient, board: str, **params: object) -> list[Json]:
    """Return the comments of a board."""
    path = f"/boards/{board}/actions"
    params = {"filter": "commentCard", **params}
    actions: list[Json] = await run_in_thread(client.fetch_json, path, query_params=params)
    return actions


def texts(actions: list[Json]) -> list[str]:
    """Return their texts."""
    return [action["data"]["text"] for action in actions]


async def test_page_of_actions_has_50_by_default_and_1000_at_most(
    trello: FakeTrello, client: TrelloClient, board: str, card: str, anna: str
) -> None:
    for number in range(1010):
        trello.comment(card, anna, str(number))
    assert texts(await comments(client, board)) == [str(n) for n in range(1009, 959, -1)]
    assert len(await comments(client, board, limit=1000)) == 1000
    for name, value in (("limit", 1001), ("limit", -1), ("limit", "x"), ("page", "x")):
        path = f"/boards/{board}/actions"
        actions = await refusal(client.fetch_json, path, query_params={name: value})
        assert actions == (400, f"invalid value for {name}")


async def test_page_times_limit_stays_below_1000(
    trello: FakeTrello, client: TrelloClient, board: str, card: str, anna: str
) -> None:
    for number in range(5):
        trello.comment(card, anna, str(number))
    assert texts(await comments(client, board, limit=2, page=1)) == ["2", "1"]
    assert await comments(client, board, limit=250, page=3) == []
    params = {"limit": 250, "page": 4}
    actions = await refusal(client.fetch_json, f"/boards/{board}/actions", query_params=params)
    assert actions == (400, "invalid value for page")


async def test_the_date_of_an_id_has_whole_seconds(
    trello: FakeTrello, client: TrelloClient, board: str, card: str, anna: str
) -> None:
    trello.next_second()
    one = trello.comment(card, anna, "one")
    two = trello.comment(card, anna, "two")
    trello.later(2)
    three = trello.comment(card, anna, "three")
    assert texts(await comments(client, board, since=two)) == ["three", "two", "one"]
    assert texts(await comments(client, board, before=two)) == []
    assert texts(await comments(client, board, before=three)) == ["two", "one"]
    assert texts(await comments(client, board, since=three)) == ["three"]
    assert one[:8] == two[:8]


async def test_date_bounds_have_milliseconds_and_are_exclusive(
    trello: FakeTrello, client: TrelloClient, board: str, card: str, anna: str
) -> None:
    for text in ("one", "two", "three"):
        trello.comment(card, anna, text)
    _, two, _ = await comments(client, board)
    assert texts(await comments(client, board, since=two["date"])) == ["three"]
    assert texts(await comments(client, board, before=two["date"])) == ["one"]
    path = f"/boards/{board}/actions"
    actions = await refusal(client.fetch_json, path, query_params={"since": "yesterday"})
    assert actions == (400, "invalid value for since")


async def test_1000_cards_come_at_once_and_the_rest_with_before(
    trello: FakeTrello, client: TrelloClient, board: str, todo: str
) -> None:
    cards = trello.cards(board, todo, 1010)
    path = f"/boards/{board}/cards"
    newest = await run_in_thread(client.fetch_json, path, query_params={"fields": "idLabels"})
    assert {card["id"] for card in newest} == set(cards[10:])
    assert newest[0].keys() == {"id", "idLabels"}
    params = {"before": cards[10], "fields": "id"}
    rest = await run_in_thread(client.fetch_json, path, query_params=params)
    assert [card["id"] for card in rest] == list(cards[:10])


async def test_page_of_labels_has_50_by_default(
    trello: FakeTrello, client: TrelloClient, board: str
) -> None:
    for number in range(51):
        trello.label(board, str(number))
    path = f"/boards/{board}/labels"
    assert len(await run_in_thread(client.fetch_json, path)) == 50
    assert len(await run_in_thread(client.fetch_json, path, query_params={"limit": 1000})) == 51


@pytest.mark.parametrize("path", ["boards", "lists"])
async def test_cards_of_the_same_second_are_lost_at_a_page_boundary(
    trello: FakeTrello, client: TrelloClient, board: str, todo: str, path: str
) -> None:
    trello.next_second()
    one = trello.card(board, todo, "one")
    two = trello.card(board, todo, "two")
    path_of_cards = f"/{path}/{board if path == 'boards' else todo}/cards"
    assert await run_in_thread(client.fetch_json, path_of_cards, query_params={"before": two}) == []
    assert one[:8] == two[:8]
