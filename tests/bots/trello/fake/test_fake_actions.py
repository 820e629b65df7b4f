"""What lists of actions have and what they leave out, and what an action says."""

from __future__ import annotations

import pytest
from trello import TrelloClient

from tests.bots.trello.http_adapters import run_in_thread
from tests.support.trello import FakeTrello
from tests.support.trello.entities import Json


async def listed(client: TrelloClient, path: str, **params: object) -> list[Json]:
    """Return the actions of a board or a card."""
    found: list[Json] = await run_in_thread(
        client.fetch_json, f"{path}/actions", query_params=params
    )
    return found


async def test_labels_and_changes_of_comments_are_in_no_list(
    trello: FakeTrello, client: TrelloClient, board: str, card: str, anna: str
) -> None:
    fix = trello.label(board, "fix")
    trello.add_label(card, fix, anna)
    trello.remove_label(card, fix, anna)
    trello.rename_label(fix, "mend", anna)
    trello.delete_label(fix, anna)
    trello.edit_comment(trello.comment(card, anna, "one"), "two")
    trello.delete_comment(trello.comment(card, anna, "gone"))
    trello.add_checklist(card, "Steps", ["one"])
    hidden = {
        "addLabelToCard", "removeLabelFromCard", "createLabel", "updateLabel", "deleteLabel",
        "updateComment", "deleteComment", "createCheckItem",
    }  # fmt: skip
    assert hidden <= {one["type"] for one in trello.all_actions}
    for path in (f"/boards/{board}", f"/cards/{card}"):
        found = await listed(client, path, filter="all", limit=1000)
        assert "commentCard" in {one["type"] for one in found}
        assert not hidden & {one["type"] for one in found}
        assert not await listed(client, path, filter="addLabelToCard,updateComment")
    params = {"actions": "addLabelToCard,commentCard"}
    found = (await run_in_thread(client.fetch_json, f"/cards/{card}", query_params=params))[
        "actions"
    ]
    assert {one["type"] for one in found} == {"commentCard"}


async def test_an_action_that_is_in_no_list_is_found_by_its_id(
    trello: FakeTrello, client: TrelloClient, board: str, card: str, anna: str
) -> None:
    trello.add_label(card, trello.label(board, "fix", None), anna)
    said = trello.all_actions[-1]
    found = await run_in_thread(client.fetch_json, f"/actions/{said['id']}")
    assert (found["type"], found["memberCreator"]["fullName"]) == ("addLabelToCard", "Anna Berg")
    assert found["data"]["label"].keys() == {"id", "name"}
    assert found["data"].keys() == {"board", "card", "label", "text"}


async def test_a_comment_is_read_as_it_is_now(
    trello: FakeTrello, client: TrelloClient, card: str, anna: str
) -> None:
    first, second = trello.comment(card, anna, "one"), trello.comment(card, anna, "gone")
    trello.edit_comment(first, "two")
    trello.delete_comment(second)
    (found,) = await listed(client, f"/cards/{card}")
    assert (found["id"], found["data"]["text"]) == (first, "two")
    assert found["data"]["dateLastEdited"] > found["date"]


async def test_a_move_says_from_where_to_where(
    trello: FakeTrello, client: TrelloClient, board: str, todo: str, card: str
) -> None:
    doing = trello.list(board, "Doing")
    trello.move(card, doing, drag=True)
    moved, settled = trello.all_actions[-2:]
    assert (settled["type"], list(settled["data"]["old"])) == ("updateCard", ["pos"])
    (found,) = await listed(client, f"/boards/{board}", filter="updateCard:idList")
    assert found["id"] == moved["id"]
    places = [found["data"][name]["id"] for name in ("listBefore", "listAfter")]
    assert places == [todo, doing]
    assert found["data"]["old"] == {"idList": todo}
    trello.archive(card)
    (found,) = await listed(client, f"/cards/{card}", filter="updateCard:closed")
    assert found["data"]["old"] == {"closed": False}


async def test_a_move_to_another_board_changes_the_labels_and_says_no_label_action(
    trello: FakeTrello, client: TrelloClient, board: str, card: str
) -> None:
    other = trello.board("Other")
    there = trello.list(other, "Inbox")
    twin = trello.label(other, "fix")
    trello.add_label(card, trello.label(board, "fix"))
    trello.add_label(card, trello.label(board, "new", "red"))
    trello.move_to_board(card, other, there)
    now = trello.card_now(card)
    assert (now["idBoard"], now["idList"], now["idLabels"][0]) == (other, there, twin)
    assert [one["idBoard"] for one in now["labels"]] == [other, other]
    kinds = [one["type"] for one in trello.all_actions]
    assert kinds[-3:] == ["createLabel", "moveCardToBoard", "moveCardFromBoard"]
    assert [one["type"] for one in await listed(client, f"/boards/{other}", limit=1)] == [
        "moveCardToBoard"
    ]
    assert [one["type"] for one in await listed(client, f"/boards/{board}", limit=1)] == [
        "moveCardFromBoard"
    ]


async def test_a_deleted_card_leaves_an_action_without_its_name(
    trello: FakeTrello, client: TrelloClient, board: str, card: str, anna: str
) -> None:
    trello.comment(card, anna, "hello")
    trello.delete_card(card)
    found = await listed(client, f"/boards/{board}", filter="deleteCard,commentCard,createCard")
    assert [one["type"] for one in found] == ["deleteCard"]
    assert found[0]["data"]["card"].keys() == {"id", "idShort"}


@pytest.mark.parametrize("said", [False, True])
async def test_a_card_that_comes_with_a_label_may_say_so_or_not(said: bool) -> None:
    async with FakeTrello(label_actions=said) as trello:
        board = trello.board("Work")
        todo, fix = trello.list(board, "To do"), trello.label(board, "fix")
        twin = trello.copy_card(trello.card(board, todo, "one", labels=[fix]))
        assert trello.labels_of(twin) == ["fix"]
        kinds = [one["type"] for one in trello.all_actions]
        assert kinds.count("addLabelToCard") == (2 if said else 0)


async def test_a_copy_has_all_but_the_comments(
    trello: FakeTrello, client: TrelloClient, board: str, card: str, anna: str
) -> None:
    trello.comment(card, anna, "hello")
    trello.add_checklist(card, "Steps", ["one"])
    trello.attach(card, "a.txt")
    twin = trello.copy_card(card)
    now = trello.card_now(twin)
    assert ([one["name"] for one in now["checklists"]], now["badges"]["comments"]) == (["Steps"], 0)
    assert len(trello.attachments(twin)) == 1
    (found,) = await listed(client, f"/cards/{twin}", filter="copyCard")
    assert found["data"]["cardSource"]["id"] == card


async def test_a_label_that_is_deleted_leaves_every_card(
    trello: FakeTrello, board: str, card: str
) -> None:
    fix = trello.label(board, "fix")
    trello.add_label(card, fix)
    before = len(trello.all_actions)
    trello.delete_label(fix)
    assert trello.card_now(card)["idLabels"] == []
    assert [one["type"] for one in trello.all_actions[before:]] == ["deleteLabel"]


async def test_actions_are_filtered_by_card_and_by_field(
    trello: FakeTrello, client: TrelloClient, board: str, todo: str, card: str, anna: str
) -> None:
    other = trello.card(board, todo, "Other")
    for one in (card, other):
        trello.comment(one, anna, "hello")
    found = await listed(
        client, f"/boards/{board}", idModels=other, fields="data", memberCreator="false"
    )
    assert {one["data"]["card"]["id"] for one in found} == {other}
    assert [one.keys() for one in found] == [{"id", "data"}] * 2


async def test_a_field_of_an_archived_list_is_open_and_not_visible(
    trello: FakeTrello, client: TrelloClient, board: str, todo: str, card: str
) -> None:
    trello.archive(trello.card(board, todo, "Closed"))
    trello.archive_list(todo)
    for wanted, count in (("open", 1), ("visible", 0), ("closed", 1), ("all", 2), ("none", 0)):
        path = f"/boards/{board}/cards/{wanted}"
        assert len(await run_in_thread(client.fetch_json, path)) == count, wanted
    assert len(await run_in_thread(client.fetch_json, f"/boards/{board}/cards")) == 1
