"""Updates of a card after a message."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest

from draftsman.deliveries.delivery import DeliveryKind, Receipt, Unconfirmed
from draftsman.errors import Failure
from draftsman.jobs.job import Status
from draftsman_bots.process.health import HealthState
from draftsman_bots.trello.deliveries.channel import TrelloChannel
from draftsman_testing.trello import FakeTrello, Fault, error
from tests.bots.trello.channel_fixtures import CardHarness, StaticBoards, trello_channel

MOVE = "/cards/{id}/idList"
UNLABEL = "/cards/{id}/idLabels/{idLabel}"
RESULT = DeliveryKind.RESULT
STATUS = DeliveryKind.STATUS


class Stage(CardHarness):
    """A board that is watched, and a channel."""

    channel: TrelloChannel

    def __init__(self, trello: FakeTrello) -> None:
        super().__init__(trello)
        self.health = HealthState()
        self.watching = StaticBoards(self.config(ready_for_review_list_id=self.review))

    def watched(self, **fields: Any) -> None:
        self.watching.configs = [self.config(**fields)]

    @property
    def note(self) -> str:
        (note,) = self.health.notes.values()
        return note

    def moves(self) -> int:
        return sum(call.path == MOVE for call in self.trello.calls)

    async def end(self, status: Status = Status.COMPLETED, **fields: Any) -> object:
        return await self.channel.send(self.message(RESULT, subject_status=status, **fields))


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with AsyncExitStack() as stack:
        stage = Stage(await stack.enter_async_context(FakeTrello()))
        stage.channel = await stack.enter_async_context(
            trello_channel(stage.trello, stage.watching, stage.health)
        )
        yield stage


async def test_a_completed_job_moves_its_card_to_ready_for_review(stage: Stage) -> None:
    assert isinstance(await stage.end(), Receipt)
    assert stage.list_now == stage.review
    assert len(stage.comments) == 1


@pytest.mark.parametrize(
    ("status", "target"), [(Status.FAILED, "doing"), (Status.CANCELED, "todo")]
)
async def test_rules_move_a_card(stage: Stage, status: Status, target: str) -> None:
    stage.watched(transition_rules={"failed": stage.doing}, ready_for_review_list_id=stage.review)
    await stage.end(status)
    assert stage.list_now == getattr(stage, target)


async def test_the_merge_of_a_pull_request_moves_its_card(stage: Stage) -> None:
    rules = {"merged": {"to": stage.doing, "from": [stage.todo]}, "completed": stage.review}
    stage.watched(transition_rules=rules)
    for end, target in (("closed", stage.todo), ("merged", stage.doing)):
        payload = {"text": f"it was {end}", "pull_request": end}
        await stage.channel.send(stage.message(DeliveryKind.NOTICE, payload=payload))
        assert stage.list_now == target
    late = stage.message(RESULT, subject_status=Status.COMPLETED)
    ended = replace(late, subject=replace(late.subject, ended_pull="merged"))
    assert isinstance(await stage.channel.send(ended), Receipt)
    assert stage.list_now == stage.doing, "a later result of the merge moves it no more"


async def test_card_moves_once_when_its_job_starts_running(
    stage: Stage,
) -> None:
    stage.watched(transition_rules={"running": stage.doing})
    sent = await stage.channel.send(stage.message(STATUS, subject_status=Status.QUEUED))
    assert isinstance(sent, Receipt)
    assert stage.list_now == stage.todo
    running = stage.message(STATUS, subject_status=Status.RUNNING, edits=sent.ref)
    for _ in range(2):
        assert isinstance(await stage.channel.edit(running), Receipt)
    assert (stage.list_now, stage.moves()) == (stage.doing, 1)


async def test_rule_moves_only_cards_in_its_source_lists(stage: Stage) -> None:
    stage.watched(transition_rules={"completed": {"to": stage.review, "from": [stage.doing]}})
    await stage.end()
    assert stage.list_now == stage.todo
    stage.trello.move(stage.card, stage.doing)
    await stage.end()
    assert stage.list_now == stage.review


async def test_card_on_another_board_gets_a_comment_and_no_move(stage: Stage) -> None:
    other = stage.trello.board("Elsewhere")
    target = stage.trello.list(other, "Inbox")
    stage.trello.move_to_board(stage.card, other, target)
    assert isinstance(await stage.end(), Receipt)
    assert (stage.list_now, len(stage.comments), stage.moves()) == (target, 1, 0)
    assert stage.health.notes == {}


@pytest.mark.parametrize("wrong", ["archived", "missing", "of another board"])
async def test_missing_list_gets_a_comment_and_a_health_note(stage: Stage, wrong: str) -> None:
    other = stage.trello.list(stage.trello.board("Elsewhere"), "Review")
    gone = {"archived": stage.review, "missing": "f" * 24, "of another board": other}[wrong]
    stage.watched(ready_for_review_list_id=gone)
    stage.trello.archive_list(stage.review)
    assert isinstance(await stage.end(), Receipt)
    assert (stage.list_now, len(stage.comments), stage.moves()) == (stage.todo, 1, 0)
    assert gone in stage.note
    stage.trello.archive_list(stage.review, closed=False)
    stage.watched(ready_for_review_list_id=stage.review)
    await stage.end()
    assert stage.health.notes == {}, "it is right again"


async def test_card_in_the_target_list_is_not_moved(stage: Stage) -> None:
    stage.trello.move(stage.card, stage.review)
    assert isinstance(await stage.end(), Receipt)
    assert stage.moves() == 0


async def test_archived_card_gets_a_comment_and_no_move(stage: Stage) -> None:
    stage.trello.archive(stage.card)
    assert isinstance(await stage.end(), Receipt)
    assert (stage.list_now, len(stage.comments)) == (stage.todo, 1)


async def test_queued_label_is_removed_with_the_result(stage: Stage) -> None:
    stage.watched(queued_label_id=stage.queued)
    stage.trello.add_label(stage.card, stage.queued)
    await stage.channel.send(stage.message(STATUS, subject_status=Status.RUNNING))
    assert stage.trello.labels_of(stage.card) == ["draftsman: queued"]
    await stage.end(Status.FAILED)
    assert stage.trello.labels_of(stage.card) == []


@pytest.mark.parametrize("fault", [Fault.HTML_503, Fault.DROP_AFTER, Fault.DROP_BEFORE])
async def test_failed_move_is_retried_without_a_second_comment(stage: Stage, fault: Fault) -> None:
    stage.trello.faults.next("PUT", MOVE, fault)
    message = stage.message(RESULT, subject_status=Status.COMPLETED)
    assert isinstance(await stage.channel.send(message), Unconfirmed)
    assert isinstance(await stage.channel.find(message), Receipt)
    assert (stage.list_now, len(stage.comments)) == (stage.review, 1)


async def test_permanently_refused_move_does_not_fail_the_message(stage: Stage) -> None:
    stage.watched(ready_for_review_list_id=stage.review, queued_label_id=stage.queued)
    stage.trello.add_label(stage.card, stage.queued)
    stage.trello.faults.next("PUT", MOVE, error(401, "unauthorized card permission requested"))
    stage.trello.faults.next("DELETE", UNLABEL, error(404, "not found"))
    assert isinstance(await stage.end(), Receipt)
    first, second = stage.note.split("; ")
    assert "was not moved" in first
    assert "cannot remove label" in second


async def test_deleted_card_is_a_missing_target(stage: Stage) -> None:
    message = stage.message(RESULT)
    stage.trello.delete_card(stage.card)
    ended = await stage.channel.send(message)
    assert isinstance(ended, Failure)
    assert ended.code == "target_gone"


async def test_result_uses_the_comment_template_of_its_board(stage: Stage) -> None:
    stage.watched(comment_template="{job} *fertig*: {summary}\nPR: {pr_url}\n{error}")
    await stage.end(subject_result={"summary": "all *well* {job} @ben"})
    text, _, mark = stage.comments[0].rpartition("\n\n")
    assert text == "D-7 *fertig*: all \\*well\\* {job} @\u200bben"
    assert mark.startswith("`draftsman:")


async def test_unchanged_comment_is_not_written_again(stage: Stage) -> None:
    stage.watching.configs = []
    sent = await stage.channel.send(stage.message(STATUS, subject_status=Status.RUNNING))
    assert isinstance(sent, Receipt)
    again = stage.message(STATUS, subject_status=Status.RUNNING, edits=sent.ref)
    assert await stage.channel.edit(again) == sent
    assert "PUT" not in [call.method for call in stage.trello.calls]


async def test_card_is_not_read_without_need(stage: Stage) -> None:
    await stage.end(Status.FAILED)
    stage.watching.configs = []
    await stage.end()
    assert [call.method for call in stage.trello.calls] == ["POST", "POST"]
