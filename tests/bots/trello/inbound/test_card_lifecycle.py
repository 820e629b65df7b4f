"""From the label to the result, on cards to which something happened meanwhile."""

from __future__ import annotations

from typing import Any

from draftsman.jobs.job import Status
from draftsman.jobs.runs.outcome import Done
from draftsman.questions.question_spec import QuestionSpec
from draftsman_bots.trello.deliveries.markdown import MAX_COMMENT
from draftsman_bots.trello.records.board import LabelRule
from draftsman_bots.trello.records.service import boards_of
from draftsman_testing.factories import Factory
from draftsman_testing.trello import FakeTrello, Fault
from tests.bots.trello.inbound.conftest import TrelloBotHarness

FREE = QuestionSpec(key="own", text="How?", freeform=True)


async def start_labeled_job(bench: TrelloBotHarness, make: Factory, number: int) -> tuple[str, Any]:
    """Add the label to a new card and start its job; its status is sent."""
    card = bench.card(labels=[bench.label])
    await bench.poll()
    work = await make.running(number)
    await bench.send_messages()
    return card, work


async def ended(bench: TrelloBotHarness, work: Any, **result: Any) -> None:
    """Complete a job, send its result and poll the board."""
    await bench.rt.settlement.outcome(work, Done({"summary": "all is well"} | result))
    await bench.send_messages()
    await bench.poll()


def place(bench: TrelloBotHarness, card: str) -> Any:
    return bench.trello.card_now(card)["idList"]


async def test_messages_follow_a_moved_card_and_its_board_moves_it(
    bench: TrelloBotHarness, make: Factory, trello: FakeTrello
) -> None:
    review = trello.list(bench.board, "Review")
    elsewhere = trello.board("Play", [bench.anna])
    far = trello.board("Far")
    inbox = trello.list(elsewhere, "Inbox")
    shelf = trello.list(elsewhere, "Shelf")
    config = await bench.watch(ready_for_review_list_id=review)
    other: dict[str, Any] = {"board_id": elsewhere, "name": "Play", "queued_label_id": None}
    label = {trello.label(elsewhere, "draftsman"): LabelRule(name="draftsman")}
    other |= {"labels": label, "ready_for_review_list_id": shelf}
    await boards_of(bench.rt).save(config.model_copy(update=other), bench.people.olga)

    for target, column, end in (
        (bench.board, review, review),  # 74: it is there already
        (elsewhere, inbox, shelf),  # 72: as its board has it
        (far, trello.list(far, "Heap"), None),  # 72: not watched
    ):
        card, work = await start_labeled_job(bench, make, len(await bench.jobs()) + 1)
        if target == bench.board:
            trello.move(card, column)
        else:
            trello.move_to_board(card, target, column)
        await bench.poll()
        moves = len(moved(trello, card))
        await ended(bench, work)
        assert place(bench, card) == (end or column)
        assert len(moved(trello, card)) - moves == (target == elsewhere)
        assert sum("all is well" in comment.text for comment in trello.comments(card)) == 1
    assert [job.status for job in await bench.jobs()] == [Status.COMPLETED] * 3, "no other job"


async def test_archived_list_still_gets_the_result_comment(
    bench: TrelloBotHarness, make: Factory, trello: FakeTrello
) -> None:
    review = trello.list(bench.board, "Review")
    await bench.watch(ready_for_review_list_id=review)
    trello.archive_list(review)
    card, work = await start_labeled_job(bench, make, 1)
    await ended(bench, work)
    assert place(bench, card) == bench.todo
    assert "all is well" in trello.comments(card)[-1].text
    assert bench.labels(card) == []


def moved(trello: FakeTrello, card: str) -> list[Any]:
    """Return the bot's own moves of a card."""
    path = f"/cards/{card}/idList"
    return [call for call in trello.calls if call.method == "PUT" and call.url.endswith(path)]


async def test_archived_card_cancels_and_long_text_is_attached(
    bench: TrelloBotHarness, make: Factory, trello: FakeTrello
) -> None:
    gone, work = await start_labeled_job(bench, make, 1)
    trello.archive(gone)
    await bench.poll()
    [job] = await bench.jobs()
    assert (job.cancel_requested_at is not None, job.cancel_reason) == (
        True,
        "its card was archived by Someone Else",
    )
    await bench.rt.settlement.outcome(work, Done({"summary": "too late"}))
    trello.delete_card(gone)
    await bench.send_messages()
    assert [job.status for job in await bench.jobs()] == [Status.CANCELED]
    card, work = await start_labeled_job(bench, make, 2)
    await bench.rt.outbox.notice(2, "long", "*_" * 20_000)
    await ended(bench, work, summary="**" * 12_000)
    assert all(len(comment.text) <= MAX_COMMENT for comment in trello.comments(card))
    assert any(attachment.data == b"*_" * 20_000 for attachment in trello.attachments(card))


async def test_echo_of_an_own_comment_before_its_response_is_ignored(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    await bench.serve_webhook()
    card = bench.card()
    trello.faults.next("POST", "/cards/{id}/actions/comments", Fault.ECHO_FIRST, times=2)
    question = await bench.ask_question(card, FREE)
    assert trello.faults.left == 0
    own = [
        webhook
        for webhook in trello.webhook_delivery.sent
        if webhook.action["type"] == "commentCard"
    ]
    assert len(own) == 2, "it was heard while it was being said"
    await bench.poll()
    assert (await bench.answer_state(question))[0] == "open"
    assert await bench.notices(card) == []
    trello.comment(card, bench.ben, "with care")
    await bench.deliver_webhooks()
    assert await bench.answer_state(question) == ("answered", "with care")
