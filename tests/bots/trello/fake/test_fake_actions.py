"""Lists of actions and the fields of an action."""

from __future__ import annotations

from trello import TrelloClient

from draftsman_testing.trello import FakeTrello
from draftsman_testing.trello.entities import Json
from tests.bots.trello.http_adapters import run_in_thread
from tests.support.cases import cases


async def listed(client: TrelloClient, path: str, **params: object) -> list[Json]:
    """Return the actions of a board or a card."""
    actions: list[Json] = await run_in_thread(
        client.fetch_json, f"{path}/actions", query_params=params
    )
    return actions


async def test_label_and_comment_changes_are_in_no_list_of_actions(
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
    assert hidden <= {action["type"] for action in trello.all_actions}
    for path in (f"/boards/{board}", f"/cards/{card}"):
        actions = await listed(client, path, filter="all", limit=1000)
        assert "commentCard" in {action["type"] for action in actions}
        assert not hidden & {action["type"] for action in actions}
        assert not await listed(client, path, filter="addLabelToCard,updateComment")
    params = {"actions": "addLabelToCard,commentCard"}
    actions = (await run_in_thread(client.fetch_json, f"/cards/{card}", query_params=params))[
        "actions"
    ]
    assert {action["type"] for action in actions} == {"commentCard"}


async def test_unlisted_action_is_found_by_its_id(
    trello: FakeTrello, client: TrelloClient, board: str, card: str, anna: str
) -> None:
    trello.add_label(card, trello.label(board, "fix", None), anna)
    said = trello.all_actions[-1]
    actions = await run_in_thread(client.fetch_json, f"/actions/{said['id']}")
    assert (actions["type"], actions["memberCreator"]["fullName"]) == (
        "addLabelToCard",
        "Anna Berg",
    )
    assert actions["data"]["label"].keys() == {"id", "name"}
    assert actions["data"].keys() == {"board", "card", "label", "text"}


async def test_comment_is_read_in_its_current_version(
    trello: FakeTrello, client: TrelloClient, card: str, anna: str
) -> None:
    first = trello.comment(card, anna, "one")
    second = trello.comment(card, anna, "gone")
    trello.edit_comment(first, "two")
    trello.delete_comment(second)
    (actions,) = await listed(client, f"/cards/{card}")
    assert (actions["id"], actions["data"]["text"]) == (first, "two")
    assert actions["data"]["dateLastEdited"] > actions["date"]


async def test_move_has_both_lists(
    trello: FakeTrello, client: TrelloClient, board: str, todo: str, card: str
) -> None:
    doing = trello.list(board, "Doing")
    trello.move(card, doing, drag=True)
    moved, settled = trello.all_actions[-2:]
    assert (settled["type"], list(settled["data"]["old"])) == ("updateCard", ["pos"])
    (actions,) = await listed(client, f"/boards/{board}", filter="updateCard:idList")
    assert actions["id"] == moved["id"]
    places = [actions["data"][name]["id"] for name in ("listBefore", "listAfter")]
    assert places == [todo, doing]
    assert actions["data"]["old"] == {"idList": todo}
    trello.archive(card)
    (actions,) = await listed(client, f"/cards/{card}", filter="updateCard:closed")
    assert actions["data"]["old"] == {"closed": False}


async def test_move_to_another_board_drops_labels_without_label_actions(
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
    assert [label["idBoard"] for label in now["labels"]] == [other, other]
    kinds = [action["type"] for action in trello.all_actions]
    assert kinds[-3:] == ["createLabel", "moveCardToBoard", "moveCardFromBoard"]
    assert [action["type"] for action in await listed(client, f"/boards/{other}", limit=1)] == [
        "moveCardToBoard"
    ]
    assert [action["type"] for action in await listed(client, f"/boards/{board}", limit=1)] == [
        "moveCardFromBoard"
    ]


async def test_a_deleted_card_leaves_an_action_without_its_name(
    trello: FakeTrello, client: TrelloClient, board: str, card: str, anna: str
) -> None:
    trello.comment(card, anna, "hello")
    trello.delete_card(card)
    actions = await listed(client, f"/boards/{board}", filter="deleteCard,commentCard,createCard")
    assert [action["type"] for action in actions] == ["deleteCard"]
    assert actions[0]["data"]["card"].keys() == {"id", "idShort"}


@cases("label_actions", [False, True])
async def test_created_card_may_be_reported_with_or_without_its_labels(label_actions: bool) -> None:
    async with FakeTrello(label_actions=label_actions) as trello:
        board = trello.board("Work")
        todo = trello.list(board, "To do")
        fix = trello.label(board, "fix")
        twin = trello.copy_card(trello.card(board, todo, "one", labels=[fix]))
        assert trello.labels_of(twin) == ["fix"]
        kinds = [action["type"] for action in trello.all_actions]
        assert kinds.count("addLabelToCard") == (2 if label_actions else 0)


async def test_card_copy_has_everything_but_the_comments(
    trello: FakeTrello, client: TrelloClient, board: str, card: str, anna: str
) -> None:
    trello.comment(card, anna, "hello")
    trello.add_checklist(card, "Steps", ["one"])
    trello.attach(card, "a.txt")
    twin = trello.copy_card(card)
    now = trello.card_now(twin)
    assert ([checklist["name"] for checklist in now["checklists"]], now["badges"]["comments"]) == (
        ["Steps"],
        0,
    )
    assert len(trello.attachments(twin)) == 1
    (actions,) = await listed(client, f"/cards/{twin}", filter="copyCard")
    assert actions["data"]["cardSource"]["id"] == card


async def test_a_label_that_is_deleted_leaves_every_card(
    trello: FakeTrello, board: str, card: str
) -> None:
    fix = trello.label(board, "fix")
    trello.add_label(card, fix)
    before = len(trello.all_actions)
    trello.delete_label(fix)
    assert trello.card_now(card)["idLabels"] == []
    assert [action["type"] for action in trello.all_actions[before:]] == ["deleteLabel"]


async def test_actions_are_filtered_by_card_and_by_field(
    trello: FakeTrello, client: TrelloClient, board: str, todo: str, card: str, anna: str
) -> None:
    other = trello.card(board, todo, "Other")
    for commented in (card, other):
        trello.comment(commented, anna, "hello")
    actions = await listed(
        client, f"/boards/{board}", idModels=other, fields="data", memberCreator="false"
    )
    assert {action["data"]["card"]["id"] for action in actions} == {other}
    assert [action.keys() for action in actions] == [{"id", "data"}] * 2


async def test_card_in_an_archived_list_is_open_and_not_visible(
    trello: FakeTrello, client: TrelloClient, board: str, todo: str, card: str
) -> None:
    trello.archive(trello.card(board, todo, "Closed"))
    trello.archive_list(todo)
    for wanted, count in (("open", 1), ("visible", 0), ("closed", 1), ("all", 2), ("none", 0)):
        path = f"/boards/{board}/cards/{wanted}"
        assert len(await run_in_thread(client.fetch_json, path)) == count, wanted
    assert len(await run_in_thread(client.fetch_json, f"/boards/{board}/cards")) == 1
