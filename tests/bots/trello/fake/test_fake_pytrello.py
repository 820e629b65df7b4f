"""py-trello talks to the fake unchanged, over requests and over httpx."""

from __future__ import annotations

import io

import pytest
from trello import TrelloClient

from draftsman_testing.trello import FakeTrello
from tests.bots.trello.http_adapters import HttpxAdapter, RequestsAdapter, run_in_thread


@pytest.fixture(params=[RequestsAdapter, HttpxAdapter])
def client(trello: FakeTrello, request: pytest.FixtureRequest) -> TrelloClient:
    return TrelloClient(trello.key, trello.token, http_service=request.param(trello.api_url))


async def test_boards_lists_and_labels_are_read(
    trello: FakeTrello, client: TrelloClient, board: str, todo: str
) -> None:
    fix = trello.label(board, "draftsman")
    nameless = trello.label(board, "", None)
    trello.board("Not the bot's", bot=False)
    (seen,) = await run_in_thread(client.list_boards)
    assert (seen.id, seen.name) == (board, "Work")
    assert [trello_list.id for trello_list in await run_in_thread(seen.open_lists)] == [todo]
    labels = await run_in_thread(seen.get_labels)
    assert [(label.id, label.name, label.color) for label in labels] == [
        (fix, "draftsman", "green"),
        (nameless, "", None),
    ]
    assert (await run_in_thread(client.get_label, fix, board)).name == "draftsman"
    assert trello.bot_member in [member.id for member in await run_in_thread(seen.all_members)]


async def test_short_link_identifies_a_board_and_a_card(
    trello: FakeTrello, client: TrelloClient, board: str, card: str
) -> None:
    link = trello.board_url(board).split("/")[4]
    assert (await run_in_thread(client.get_board, link)).id == board
    seen = await run_in_thread(client.get_card, card)
    assert (await run_in_thread(client.get_card, seen.shortUrl.split("/")[-1])).id == card


async def test_card_is_read_with_its_content(
    trello: FakeTrello, client: TrelloClient, board: str, todo: str, anna: str
) -> None:
    fix = trello.label(board, "draftsman")
    card = trello.card(board, todo, "Fix it", desc="all", labels=[fix], members=[anna])
    trello.add_checklist(card, "Steps", ["one", "two"], done=["two"])
    trello.attach(card, "log.txt", b"abc")
    trello.comment(card, anna, "hello")
    field = trello.custom_field(board, "Version")
    trello.set_field(card, field, {"text": "1.2"})
    seen = await run_in_thread(client.get_card, card)
    assert (seen.name, seen.desc, seen.idLabels, seen.idMembers) == ("Fix it", "all", [fix], [anna])
    await run_in_thread(seen.fetch)
    assert [comment["data"]["text"] for comment in seen.comments] == ["hello"]
    assert [item["checked"] for item in seen.checklists[0].items] == [False, True]
    (attached,) = await run_in_thread(seen.get_attachments)
    assert (attached.name, attached.bytes) == ("log.txt", 3)
    assert (await run_in_thread(lambda: seen.custom_fields))[0].value == "1.2"


async def test_comment_is_created_changed_and_deleted(
    trello: FakeTrello, client: TrelloClient, card: str
) -> None:
    seen = await run_in_thread(client.get_card, card)
    created = await run_in_thread(seen.comment, "one <b> & ü")
    (comment,) = trello.comments(card)
    assert (comment.id, comment.member) == (created["id"], trello.bot_member)
    assert (comment.text, comment.edited) == ("one <b> & ü", False)
    await run_in_thread(seen.update_comment, created["id"], "two")
    (comment,) = trello.comments(card)
    assert (comment.text, comment.edited) == ("two", True)
    await run_in_thread(seen.delete_comment, created)
    assert not trello.comments(card)


async def test_card_is_moved_labeled_and_archived(
    trello: FakeTrello, client: TrelloClient, board: str, todo: str, card: str
) -> None:
    doing = trello.list(board, "Doing")
    fix = trello.label(board, "draftsman")
    seen = await run_in_thread(client.get_card, card)
    label = await run_in_thread(client.get_label, fix, board)
    await run_in_thread(seen.change_list, doing)
    await run_in_thread(seen.add_label, label)
    assert (trello.card_now(card)["idList"], trello.labels_of(card)) == (doing, ["draftsman"])
    await run_in_thread(seen.remove_label, label)
    await run_in_thread(seen.set_closed, True)
    assert (trello.card_now(card)["closed"], trello.labels_of(card)) == (True, [])
    assert not await run_in_thread(lambda: seen.board.open_cards())
    await run_in_thread(seen.delete)
    with pytest.raises(LookupError):
        trello.card_now(card)


async def test_files_and_addresses_are_attached(
    trello: FakeTrello, client: TrelloClient, card: str
) -> None:
    seen = await run_in_thread(client.get_card, card)
    await run_in_thread(seen.attach, "a.bin", "application/x-own", io.BytesIO(b"\x00\xff"))
    await run_in_thread(seen.attach, name="pull", url="https://example.com/pull/1")
    file, link = trello.attachments(card)
    assert (file.name, file.data, file.mime) == ("a.bin", b"\x00\xff", "application/x-own")
    assert (link.name, link.url, link.data) == ("pull", "https://example.com/pull/1", None)


async def test_cards_are_created_and_copied(
    trello: FakeTrello, client: TrelloClient, board: str, todo: str
) -> None:
    fix = trello.label(board, "draftsman")
    trello_list = await run_in_thread(client.get_list, todo)
    label = await run_in_thread(client.get_label, fix, board)
    created = await run_in_thread(trello_list.add_card, "New", "text", [label])
    copied = await run_in_thread(trello_list.add_card, "Copy", source=created.id)
    assert trello.labels_of(copied.id) == ["draftsman"]
    assert [card.name for card in await run_in_thread(trello_list.list_cards)] == ["New", "Copy"]
