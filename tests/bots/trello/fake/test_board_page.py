"""The page of the fake Trello: what it shows, and what its forms do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx

from draftsman_testing.fake.page import Guide
from draftsman_testing.trello import FakeTrello
from draftsman_testing.trello.page.board_page import LATE, BoardPage
from tests.support.page_visitor import PageVisitor, part_of, visiting

HOSTILE = "<script>alert(1)</script> [x](javascript:alert(2)) **bold**"


@dataclass
class Board:
    """A board with a card."""

    trello: FakeTrello
    url: str
    card: str
    anna: str


@asynccontextmanager
async def visited_board(text: str = "") -> AsyncIterator[tuple[Board, PageVisitor]]:
    """Serve a board without a running app, and visit its page as Anna."""
    async with FakeTrello() as trello:
        anna = trello.member("Anna")
        board = trello.board("Work", [anna, trello.member("Ben")])
        todo, _ = (trello.list(board, name) for name in ("To do", "Done"))
        trello.label(board, "draftsman")
        card = trello.card(board, todo, text or "Tidy up", desc=text, by=anna)
        trello.world.pending.clear()
        async with (
            BoardPage(trello, board, Guide("Trello")).serving() as url,
            visiting(url) as visitor,
        ):
            await visitor.become("Anna")
            yield Board(trello, url, card, anna), visitor


async def test_texts_are_markdown_and_never_html() -> None:
    async with visited_board(HOSTILE) as (served, visitor):
        served.trello.comment(served.card, served.anna, HOSTILE)
        page = await visitor.page()
        assert len(page.find_all("script")) == 1
        assert part_of(page, "main").find_all("a") == []
        assert [bold.text for bold in part_of(page, "main").find_all("strong")] == ["bold"] * 2


async def test_each_form_does_what_a_person_does() -> None:
    async with visited_board() as (served, visitor):
        await visitor.press("Comment", text="one\r\ntwo")
        [comment] = served.trello.comments(served.card)
        assert (comment.text, comment.member) == ("one\ntwo", served.anna)
        await visitor.press("Add label: draftsman")
        assert served.trello.labels_of(served.card) == ["draftsman"]
        await visitor.press("Remove label: draftsman")
        assert served.trello.labels_of(served.card) == []
        checklist = served.trello.add_checklist(served.card, "choices", ["1 red", "11 red"])
        await visitor.press("☐ 1 red")
        states = [item["state"] for item in served.trello.world.checklists[checklist].items]
        assert states == ["complete", "incomplete"]
        await visitor.press("☑ 1 red")
        await visitor.press("Move to Done")
        assert "Done (1)" in await visitor.text()
        kinds = {"commentCard", "updateCheckItemStateOnCard", "updateCard"}
        actions = [action for action in served.trello.all_actions if action["type"] in kinds]
        assert {action["type"] for action in actions} == kinds
        assert {action["idMemberCreator"] for action in actions} == {served.anna}


async def test_a_card_that_is_gone_and_an_app_that_is_away_are_told() -> None:
    async with visited_board() as (served, visitor), httpx.AsyncClient() as client:
        served.trello.world.webhooks.clear()
        await visitor.press("Comment", text="x")
        assert LATE not in await visitor.text()
        form = {"do": "write", "card": "gone", "text": "x"}
        response = await client.post(served.url, data=form, follow_redirects=True)
        assert "This is no longer there" in response.text


async def test_lists_are_columns_and_a_label_of_a_status_is_no_button() -> None:
    async with visited_board() as (served, visitor):
        status = served.trello.label(next(iter(served.trello.world.boards)), "draftsman: queued")
        served.trello.comment(served.card, served.anna, "one\ntwo")
        page = await visitor.page()
        assert len(page.select(".columns > section")) == 2
        assert len(page.select("article p br")) == 1, "a line break is one"
        assert "draftsman: queued" not in page.text
        served.trello.add_label(served.card, status, served.anna)
        page = await visitor.page()
        assert [label.text.strip() for label in page.select("form small")] == ["draftsman: queued"]
        assert "label: draftsman: queued" not in page.text
