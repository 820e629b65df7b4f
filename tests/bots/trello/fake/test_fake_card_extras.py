"""Checklists, custom fields, due dates and downloads of the fake, by py-trello or httpx."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

import httpx
import pytest
from trello import TrelloClient

from draftsman_testing.trello import FakeTrello
from tests.bots.trello.http_adapters import RequestsAdapter, refusal, run_in_thread


@pytest.fixture
def client(trello: FakeTrello) -> TrelloClient:
    return TrelloClient(trello.key, trello.token, http_service=RequestsAdapter(trello.api_url))


def types(trello: FakeTrello) -> list[str]:
    """Return the types of all actions."""
    return [action["type"] for action in trello.world.actions.values()]


async def test_a_checklist_is_made_checked_renamed_and_removed(
    trello: FakeTrello, client: TrelloClient, card: str
) -> None:
    seen = await run_in_thread(client.get_card, card)
    made = await run_in_thread(seen.add_checklist, "Steps", ["one", "two"])
    path = f"/cards/{card}/checkItem/{made.items[0]['id']}"
    done = await run_in_thread(client.fetch_json, path, "PUT", {}, {}, {"state": "complete"})
    assert done["state"] == "complete"
    await run_in_thread(client.fetch_json, path, "PUT", {}, {}, {"state": "complete"})
    assert types(trello).count("updateCheckItemStateOnCard") == 1, "it was checked before"
    action = list(trello.world.actions.values())[-1]
    assert action["data"]["checkItem"]["state"] == "complete"
    assert action["data"]["checklist"] == {"id": made.id, "name": "Steps"}
    change = f"/checklists/{made.id}"
    await run_in_thread(client.fetch_json, change, "PUT", {}, {}, {"name": "Done"})
    assert (await run_in_thread(client.fetch_json, change))["name"] == "Done"
    await run_in_thread(client.fetch_json, change, "DELETE")
    assert trello.card_now(card)["checklists"] == []
    assert types(trello)[-2:] == ["updateChecklist", "removeChecklistFromCard"]


async def test_checked_items_are_listed_and_items_are_not(
    trello: FakeTrello, client: TrelloClient, board: str, card: str
) -> None:
    checklist = trello.add_checklist(card, "Steps", ["one"])
    trello.check_item(checklist, "one")
    path = f"/boards/{board}/actions"
    listed = [action["type"] for action in await run_in_thread(client.fetch_json, path)]
    assert "updateCheckItemStateOnCard" in listed
    assert "createCheckItem" not in listed


@pytest.mark.parametrize("state", ["done", "", None])
async def test_an_unknown_state_is_refused(
    trello: FakeTrello, client: TrelloClient, card: str, state: str | None
) -> None:
    checklist = trello.add_checklist(card, "Steps", ["one"])
    (item,) = trello.world.checklists[checklist].items
    path = f"/cards/{card}/checkItem/{item['id']}"
    call = await refusal(client.fetch_json, path, "PUT", {}, {}, {"state": state})
    assert call == (400, "invalid value for state")
    assert item["state"] == "incomplete"


async def test_checklists_have_limits(trello: FakeTrello, client: TrelloClient, card: str) -> None:
    checklist = trello.add_checklist(card, "Steps", [str(n) for n in range(200)])
    path = f"/checklists/{checklist}/checkItems"
    call = await refusal(client.fetch_json, path, "POST", {}, {}, {"name": "x"})
    assert call == (400, "CheckItem limit exceeded")
    for name in ("", "x" * 16_385):
        call = await refusal(client.fetch_json, path, "POST", {}, {}, {"name": name})
        assert call == (400, "invalid value for name")


@pytest.mark.parametrize(
    ("type", "value", "fits"),
    [
        ("text", {"text": "1.2"}, True),
        ("text", {"number": "1"}, False),
        ("text", {"text": 1}, False),
        ("number", {"number": "1.5"}, True),
        ("number", {"number": "-3"}, True),
        ("number", {"number": "much"}, False),
        ("number", {"number": 1.5}, False),
        ("list", {"text": "running"}, False),
    ],
)
async def test_values_of_custom_fields_are_validated(
    trello: FakeTrello,
    client: TrelloClient,
    board: str,
    card: str,
    type: str,
    value: dict[str, object],
    fits: bool,
) -> None:
    field = trello.custom_field(board, "Field", type, ("running",))
    path = f"/cards/{card}/customField/{field}/item"
    call = partial(client.fetch_json, path, "PUT", post_args={"value": value})
    if fits:
        await run_in_thread(call)
        assert trello.card_now(card)["customFieldItems"][0]["value"] == value
    else:
        assert await refusal(call) == (400, "Invalid custom field item value.")


async def test_py_trello_reads_and_sets_a_list(
    trello: FakeTrello, client: TrelloClient, board: str, card: str
) -> None:
    trello.custom_field(board, "Phase", "list", ("running", "done"))
    seen = await run_in_thread(client.get_board, board)
    (definition,) = await run_in_thread(seen.get_custom_field_definitions)
    assert sorted(definition.list_options.values()) == ["done", "running"]
    entity = await run_in_thread(client.get_card, card)
    await run_in_thread(entity.set_custom_field, "done", definition)
    (item,) = trello.card_now(card)["customFieldItems"]
    assert (definition.list_options[item["idValue"]], item["value"]) == ("done", None)
    trello.world.without_fields.add(board)
    assert (await refusal(client.fetch_json, f"/boards/{board}/customFields"))[0] == 403


async def test_a_due_date_is_set_normalized_and_removed(
    trello: FakeTrello, client: TrelloClient, card: str
) -> None:
    seen = await run_in_thread(client.get_card, card)
    await run_in_thread(seen.set_due, datetime(2027, 1, 2, 3, 4, tzinfo=UTC))
    assert trello.card_now(card)["due"] == "2027-01-02T03:04:00.000Z"
    action = list(trello.world.actions.values())[-1]
    assert (action["type"], action["data"]["old"]) == ("updateCard", {"due": None})
    await run_in_thread(seen.remove_due)
    assert trello.card_now(card)["due"] is None
    call = await refusal(client.fetch_json, f"/cards/{card}/due", "PUT", {}, {}, {"value": "soon"})
    assert call == (400, "invalid value for due")


async def test_a_file_is_downloaded_with_the_header_only(trello: FakeTrello, card: str) -> None:
    attachment = trello.attach(card, "a b.txt", b"data")
    path = f"{trello.api_url}/1/cards/{card}/attachments/{attachment}/download/a%20b.txt"
    header = f'OAuth oauth_consumer_key="{trello.key}", oauth_token="{trello.token}"'
    async with httpx.AsyncClient() as client:
        got = await client.get(path, headers={"Authorization": header})
        assert (got.status_code, got.content) == (200, b"data")
        query = {"key": trello.key, "token": trello.token}
        refused = await client.get(path, params=query)
        assert (refused.status_code, refused.text) == (401, "unauthorized permission requested")
        other = await client.get(f"{path}x", headers={"Authorization": header})
        assert other.status_code == 404
