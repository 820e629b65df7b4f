"""Options of `boards` for checklists, due dates, fields and digests."""

from __future__ import annotations

import pytest

from draftsman.runtime import Runtime
from draftsman_bots.trello.records.service import boards_of
from tests.tui.cli.trello_board import CliBoard


async def test_checklists_due_dates_and_a_digest_card_are_set_shown_and_ended(
    board: CliBoard, rt: Runtime
) -> None:
    card = board.trello.card(board.board, board.todo, "Digests")
    url = board.trello.card_now(card)["shortUrl"]
    added = await board(
        "add", board.url, "--checklists", "all", "--due-dates", "--digest-card", url
    )
    assert added.code == 0, added.err
    assert "checklists: the choices of questions and approvals are items to check" in added.out
    assert "due dates: the expiry of a question, and a later date extends it" in added.out
    assert f"digests are comments on card {card}" in added.out
    config = await boards_of(rt).of(board.board)
    assert config is not None
    assert (config.checklists, config.due_dates, config.digest_card_id) == ("all", True, card)
    await board("set", "Work", "--ready", "Review")
    kept = await boards_of(rt).of(board.board)
    assert kept is not None
    assert (kept.checklists, kept.due_dates, kept.digest_card_id) == ("all", True, card)
    changed = await board(
        "set", "Work", "--checklists", "off", "--no-due-dates", "--digest-card", "none", "--json"
    )
    document = changed.json
    assert (document["checklists"], document["due_dates"]) == ("off", False)
    assert document["digest_card_id"] is None
    assert board.writes == []


async def test_custom_fields_are_matched_by_name_and_type(board: CliBoard, rt: Runtime) -> None:
    make = board.trello.custom_field
    make(board.board, "draftsman status", "date")
    status = make(board.board, "Draftsman Status", "list", ("running",))
    cost = make(board.board, "draftsman cost", "number")
    phase = make(board.board, "Phase")
    added = await board("add", board.url)
    assert "custom field 'Draftsman Status (list)': the status of the job" in added.out
    assert "custom field 'draftsman cost (number)': the cost of the job" in added.out
    config = await boards_of(rt).of(board.board)
    assert config is not None
    assert config.custom_fields == {"status": status, "cost": cost}
    await board("set", "Work", "--field", "status=phase")
    config = await boards_of(rt).of(board.board)
    assert config is not None
    assert config.custom_fields == {"status": phase}
    shown = await board("show", "Work")
    assert "custom field 'Phase (text)': the status of the job" in shown.out
    assert (await board("set", "Work", "--field", "auto", "--json")).json["custom_fields"] == {
        "status": status,
        "cost": cost,
    }
    assert (await board("set", "Work", "--field", "none", "--json")).json["custom_fields"] == {}


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        ("status", "use status=NAME, cost=NAME, auto or none"),
        ("size=Phase", "use status=NAME, cost=NAME, auto or none"),
        ("cost=Fase", "it has: 'Phase' (date)"),
        ("cost=Phase", "'Phase' is a date field; cost needs a field of type number or text"),
    ],
)
async def test_a_wrong_field_is_refused(board: CliBoard, field: str, reason: str) -> None:
    board.trello.custom_field(board.board, "Phase", "date")
    await board.added()
    (await board("set", "Work", "--field", field)).refused(2, reason)


async def test_a_card_for_digests_is_on_the_board(board: CliBoard) -> None:
    await board.added()
    other = board.trello.board("Other")
    card = board.trello.card(other, board.trello.list(other, "To do"), "x")
    old = board.trello.card(board.board, board.todo, "old")
    board.trello.archive(old)
    for text, reason in (
        (card, "the card is on another board"),
        (old, "the card is archived"),
        ("what?", "is not a card; give its URL"),
    ):
        (await board("set", "Work", "--digest-card", text)).refused(2, reason)
    (await board("set", "Work", "--digest-card", "f" * 24)).refused(3, "the bot cannot see card")


async def test_problems_of_fields_and_cards_are_shown(board: CliBoard) -> None:
    status = board.trello.custom_field(board.board, "draftsman status", "list", ("todo",))
    cost = board.trello.custom_field(board.board, "draftsman cost", "number")
    card = board.trello.card(board.board, board.todo, "Digests")
    await board.added("--digest-card", card)
    listed = await board("list")
    assert "has no option with the name of a status, such as running or completed" in listed.err
    board.trello.world.without_fields.add(board.board)
    board.trello.delete_card(card)
    listed = await board("list")
    for id, use in ((status, "status"), (cost, "cost")):
        assert f"custom field '{id}' for the {use} is missing" in listed.err
    assert "the Power-Up Custom Fields is off" in listed.err
    assert f"the bot cannot see card {card}" in listed.err
