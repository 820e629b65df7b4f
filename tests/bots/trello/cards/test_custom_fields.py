"""Status and cost of a job in custom fields of its card."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from draftsman.deliveries.delivery import DeliveryKind, Receipt
from draftsman.jobs.job import Status
from draftsman_bots.process.health import HealthState
from draftsman_bots.trello.deliveries.channel import TrelloChannel
from draftsman_testing.trello import FakeTrello
from tests.bots.trello.channel_fixtures import CardHarness, StaticBoards, trello_channel

RESULT = DeliveryKind.RESULT
STATUS = DeliveryKind.STATUS
SET = "/cards/{id}/customField/{idCustomField}/item"


class FieldStage(CardHarness):
    """A watched board with custom fields, and a channel."""

    channel: TrelloChannel

    def __init__(self, trello: FakeTrello) -> None:
        super().__init__(trello)
        self.health = HealthState()
        self.boards = StaticBoards()

    def watched(self, **fields: str) -> None:
        """Watch the board with these fields."""
        self.boards.configs = [self.config(custom_fields=fields)]

    def value(self, field: str) -> Any:
        """Return the value of a field of the card."""
        items = self.trello.card_now(self.card)["customFieldItems"]
        return next(
            (i.get("idValue") or i["value"] for i in items if i["idCustomField"] == field), None
        )

    async def send(self, status: Status, kind: DeliveryKind = STATUS, **fields: Any) -> None:
        """Send a message about the job."""
        sent = await self.channel.send(self.message(kind, subject_status=status, **fields))
        assert isinstance(sent, Receipt)

    def writes(self) -> int:
        """Return the number of fields that were written."""
        return sum(call.path == SET for call in self.trello.calls)


@pytest.fixture
async def stage() -> AsyncIterator[FieldStage]:
    async with AsyncExitStack() as stack:
        stage = FieldStage(await stack.enter_async_context(FakeTrello()))
        opened = trello_channel(stage.trello, stage.boards, stage.health)
        stage.channel = await stack.enter_async_context(opened)
        yield stage


async def test_text_and_number_fields_show_status_and_cost(stage: FieldStage) -> None:
    status = stage.trello.custom_field(stage.board, "draftsman status")
    cost = stage.trello.custom_field(stage.board, "draftsman cost", "number")
    stage.watched(status=status, cost=cost)
    await stage.send(Status.RUNNING)
    assert (stage.value(status), stage.value(cost)) == ({"text": "running"}, None)
    await stage.send(Status.COMPLETED, RESULT, subject_cost=1.5)
    assert stage.value(status) == {"text": "completed"}
    assert stage.value(cost) == {"number": "1.50"}
    calls = [call.path for call in stage.trello.calls if "custom" in call.path]
    await stage.send(Status.COMPLETED, RESULT, subject_cost=1.5)
    assert [call.path for call in stage.trello.calls if "custom" in call.path] == calls
    async with trello_channel(stage.trello, stage.boards) as other:
        await other.send(stage.message(RESULT, subject_status=Status.COMPLETED, subject_cost=1.5))
    assert stage.writes() == calls.count(SET), "another process reads, and writes no equal value"


async def test_a_list_has_the_option_of_the_status(stage: FieldStage) -> None:
    options = ("Running", "Waiting for input")
    status = stage.trello.custom_field(stage.board, "Phase", "list", options)
    by_text = {
        option["value"]["text"]: option["id"]
        for option in stage.trello.world.custom_fields[status]["options"]
    }
    stage.watched(status=status)
    await stage.send(Status.RUNNING)
    assert stage.value(status) == by_text["Running"]
    await stage.send(Status.WAITING_FOR_INPUT)
    assert stage.value(status) == by_text["Waiting for input"]
    await stage.send(Status.COMPLETED, RESULT)
    assert stage.value(status) == by_text["Waiting for input"], "it has no such option"


async def test_a_text_field_for_the_cost_has_tokens_too(stage: FieldStage) -> None:
    cost = stage.trello.custom_field(stage.board, "Cost")
    stage.watched(cost=cost)
    await stage.send(Status.COMPLETED, RESULT, subject_usage="1,020 tokens, $0.42")
    assert stage.value(cost) == {"text": "1,020 tokens, $0.42"}


@pytest.mark.parametrize("gone", ["power-up", "deleted", "another type"])
async def test_missing_fields_are_skipped_quietly(stage: FieldStage, gone: str) -> None:
    status = stage.trello.custom_field(stage.board, "draftsman status")
    stage.watched(status=status)
    if gone == "power-up":
        stage.trello.world.without_fields.add(stage.board)
    elif gone == "deleted":
        del stage.trello.world.custom_fields[status]
    else:
        stage.trello.world.custom_fields[status]["type"] = "date"
    await stage.send(Status.RUNNING)
    assert (len(stage.comments), stage.health.notes, stage.writes()) == (1, {}, 0)


async def test_a_power_up_that_is_switched_off_later_is_skipped(stage: FieldStage) -> None:
    status = stage.trello.custom_field(stage.board, "draftsman status")
    stage.watched(status=status)
    await stage.send(Status.RUNNING)
    stage.trello.world.without_fields.add(stage.board)
    await stage.send(Status.COMPLETED, RESULT)
    assert stage.health.notes == {}
    assert len(stage.comments) == 2


async def test_a_board_without_fields_is_not_asked_for_them(stage: FieldStage) -> None:
    stage.trello.custom_field(stage.board, "draftsman status")
    stage.boards.configs = [stage.config()]
    await stage.send(Status.RUNNING)
    assert [call.method for call in stage.trello.calls] == ["POST"]
