"""The live checks of Trello, on the fake."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping
from typing import Any, Final

import pytest

from draftsman.settings import settings_model
from draftsman_bots.trello.live_checks import LIVE_CHECKS
from draftsman_bots.trello.live_checks.cards import ODD_NAME
from draftsman_testing.channel.live_contract import LiveContract, Onlooker
from draftsman_testing.trello import FakeTrello
from draftsman_testing.trello.api_errors import ApiError
from draftsman_testing.trello.faults import error

Work = Callable[[], Any]
CARD: Final = ("GET", "/cards/{id}")
VALUES: Final = ("GET", "/cards/{id}/customFieldItems")
ACTIONS: Final = ("GET", "/boards/{id}/actions")
DOWNLOAD: Final = ("GET", "/cards/{id}/attachments/{idAttachment}/download/{file}")


class TrelloSide:
    """An account that sees a board of a team."""

    service = "trello"
    scratch: str | None = None

    def __init__(self, fake: FakeTrello) -> None:
        self.fake = fake
        self.team = fake.board("Team")
        self._before = {self.team}
        self.secret = fake.token
        self.person = Onlooker(fake.later)
        table = {"key": {"env": "KEY"}, "token": {"env": "TOKEN"}, "api_url": fake.api_url}
        self.settings = settings_model().model_validate({"trello": table})

    @property
    def table(self) -> object:
        return getattr(self.settings, "trello", None)

    def written(self) -> Collection[object]:
        world = self.fake.world
        if self.scratch is None:  # what is on a board is deleted with it
            entries = [*world.boards]
        else:
            open_lists = [id for id, place in world.lists.items() if not place.closed]
            entries = [*open_lists, *world.cards, *world.custom_fields]
        return [id for id in entries if id not in self._before]

    def echo(self) -> None:
        text = f"invalid value for idBoard {self.secret}"
        self.fake.faults.next("POST", "/cards/{id}/checklists", error(400, text))

    def keep(self) -> None:
        self.fake.faults.next("DELETE", "/boards/{id}", error(403, "forbidden"))


def _no(text: str) -> Callable[[TrelloSide], object]:
    return lambda side: side.person.unseen.add(text)


def _changed(
    call: tuple[str, str], change: Callable[[Mapping[str, Any], Any], object]
) -> Callable[[TrelloSide], object]:
    """Return what lets the fake change its responses to a call."""

    def do(args: Mapping[str, Any], work: Work) -> Any:
        reply = work()
        changed = change(args, reply)
        return reply if changed is None else changed

    return lambda side: side.fake.faults.change(call, do)


def _without_ids(args: Mapping[str, Any], actions: Any) -> None:
    for action in actions:
        action["data"].pop("checklist", None)


def _with_reminder(args: Mapping[str, Any], card: Any) -> None:
    if "dueReminder" in card:
        card["dueReminder"] = 1440


def _with_old_due(args: Mapping[str, Any], card: Any) -> None:
    if args.get("fields") == "due":
        card["due"] = "2030-01-02T03:04:05.000Z"


def _with_other_name(args: Mapping[str, Any], file: Any) -> None:
    if file["name"] == ODD_NAME:
        file["url"] = file["url"].rpartition("/")[0] + "/file"


def _without_options(args: Mapping[str, Any], items: Any) -> None:
    for item in items:
        item.pop("idValue", None)


def _with_true(args: Mapping[str, Any], items: Any) -> None:
    for item in items:
        if "checked" in (item["value"] or {}):
            item["value"] = {"checked": True}


def _refuse_another(args: Mapping[str, Any], work: Work) -> Any:
    if args["name"] == "below the limits":
        raise ApiError(400, "limit exceeded")
    return work()


def _fail_without_fields(side: TrelloSide) -> None:
    def fail(_: Mapping[str, Any], work: Work) -> Any:
        if not side.fake.world.custom_fields:
            raise ApiError(500, "oops")
        return work()

    side.fake.faults.change(("GET", "/boards/{id}/customFields"), fail)


BREAKS: Final[Mapping[str, Callable[[TrelloSide], object]]] = {
    "checked-item-listed": _changed(ACTIONS, lambda args, actions: []),
    "checked-item-ids": _changed(ACTIONS, _without_ids),
    "names-of-items": _no("has a checklist the name"),
    "due-without-reminder": _changed(CARD, _with_reminder),
    "due-removed": _changed(CARD, _with_old_due),
    "download": lambda side: side.fake.faults.next(
        *DOWNLOAD, error(401, "unauthorized permission")
    ),
    "address-of-file": _changed(("POST", "/cards/{id}/attachments"), _with_other_name),
    "checklist-below-limits": lambda side: side.fake.faults.change(
        ("POST", "/cards/{id}/checklists"), _refuse_another
    ),
    "line-breaks": _no("in three lines"),
    "escapes": _no("bold text"),
    "no-custom-fields": _fail_without_fields,
    "list-value": _changed(VALUES, _without_options),
    "field-values": _changed(VALUES, _with_true),
}


class TestLiveChecks(LiveContract):
    checks = LIVE_CHECKS
    breaks = BREAKS

    @pytest.fixture
    async def side(self, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[TrelloSide]:
        async with FakeTrello() as fake:
            monkeypatch.setenv("KEY", fake.key)
            monkeypatch.setenv("TOKEN", fake.token)
            yield TrelloSide(fake)

    async def test_a_given_board_keeps_only_an_archived_list(self, side: TrelloSide) -> None:
        side.scratch = side.fake.board_url(side.team)
        report = await self._report(side)
        assert report.ok
        assert [*side.written()] == []
        assert [place.closed for place in side.fake.world.lists.values()] == [True]
