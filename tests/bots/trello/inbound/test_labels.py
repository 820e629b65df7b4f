"""Jobs from labels, by webhook and poll, once for each time that a label is added."""

from __future__ import annotations

from typing import Any

import pytest

from draftsman.jobs.job import Mode, Status
from draftsman_bots.trello.records.board import LabelRule
from draftsman_bots.trello.records.service import boards_of
from draftsman_testing.factories import Factory
from draftsman_testing.trello import FakeTrello, Fault, error
from tests.bots.trello.inbound.conftest import TrelloBotHarness


async def test_job_stores_a_snapshot_of_its_card(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    card = bench.card("Fix the parser", desc="It drops\nthe last token.", labels=[bench.label])
    trello.add_checklist(card, "Steps", ["read"], done=["write"])
    trello.attach(card, "log.txt")
    trello.assign(card, bench.anna)
    trello.comment(card, bench.anna, "it is urgent")
    trello.set_field(card, trello.custom_field(bench.board, "Version"), {"text": "1.2"})
    await bench.poll()
    trello.describe(card, "something else")
    [job] = await bench.jobs()
    assert (job.title, job.agent_request.mode, job.source_type) == (
        "Fix the parser",
        Mode.FIX,
        "ticket",
    )
    assert job.url == trello.card_now(card)["shortUrl"]
    kept = job.payload["ticket"]
    assert (kept["description"], kept["list"]) == ("It drops\nthe last token.", "To do")
    assert kept["checklists"] == [
        {
            "name": "Steps",
            "items": [{"name": "read", "done": False}, {"name": "write", "done": True}],
        }
    ]
    assert kept["attachments"] == [{"name": "log.txt", "bytes": 4}]
    assert [member["name"] for member in kept["members"]] == ["Anna Berg"]
    assert [comment["text"] for comment in kept["comments"]] == ["it is urgent"]
    assert kept["custom_fields"] == [{"name": "Version", "value": "1.2"}]
    assert "It drops\nthe last token.\n\nSteps:\n- [ ] read\n- [x] write" in (
        job.agent_request.text or ""
    )
    assert bench.labels(card) == ["draftsman: queued"]


@pytest.mark.parametrize("order", ["webhook", "poll", "at once"])
async def test_label_seen_by_webhook_and_poller_creates_one_job(
    bench: TrelloBotHarness, trello: FakeTrello, order: str
) -> None:
    await bench.serve_webhook()
    card = bench.card()
    trello.add_label(card, bench.label, bench.anna)
    if order == "webhook":
        await bench.deliver_webhooks(copies=2)
        await bench.poll()
    else:
        await bench.poll()
        await bench.deliver_webhooks(copies=2, together=order == "at once")
    assert await bench.keys() == [bench.key(card)]
    assert bench.labels(card) == ["draftsman: queued"]


async def test_member_who_added_the_label_is_the_invoker(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    """Only the webhook has the member; for a poll the board itself is the invoker."""
    await bench.serve_webhook()
    for who in (bench.anna, bench.mallory):
        card = bench.card()
        await bench.deliver_webhooks()
        trello.add_label(card, bench.label, who)
        await bench.deliver_webhooks()
    await bench.poll()
    trello.add_label(bench.card(), bench.label, bench.anna)
    await bench.poll()
    assert [job.invoker_id for job in await bench.jobs()] == [
        "anna",
        f"trello:board:{bench.board}",
        f"trello:board:{bench.board}",
    ]


@pytest.mark.parametrize("way", ["poll", "webhook"])
async def test_label_added_again_creates_a_job_after_the_first_ends(
    bench: TrelloBotHarness, trello: FakeTrello, make: Factory, way: str
) -> None:
    if way == "webhook":
        await bench.serve_webhook()
    see = bench.poll if way == "poll" else bench.deliver_webhooks
    card = bench.card()
    trello.add_label(card, bench.label)
    await see()
    [job] = await bench.jobs()
    trello.add_label(card, bench.label)
    await see()
    assert await bench.keys() == [bench.key(card)]
    [notice] = await bench.notices(card)
    assert f"{job.name} is still queued. A card can have only one job at a time" in notice
    await bench.rt.job_control.cancel(job.number, bench.people.olga, "enough")
    assert bench.labels(card) == ["draftsman: queued"]
    trello.add_label(card, bench.label)
    await see()
    assert await bench.keys() == [bench.key(card), bench.key(card, 3)]


async def test_flapping_label_creates_one_job(bench: TrelloBotHarness, trello: FakeTrello) -> None:
    await bench.serve_webhook()
    card = bench.card()
    for _ in range(3):
        trello.add_label(card, bench.label)
        trello.remove_label(card, bench.label)
    trello.add_label(card, bench.label)
    for seed in (1, 2):
        await bench.deliver_webhooks(shuffle=seed, copies=2)
    await bench.poll()
    assert len(await bench.jobs()) == 1
    taken = bench.card()
    trello.add_label(taken, bench.label)
    trello.remove_label(taken, bench.label)
    await bench.deliver_webhooks(shuffle=1)
    await bench.poll()
    assert len(await bench.jobs()) == 1, "nobody wants what was taken back"


async def test_unwatched_lists_labels_and_boards_are_ignored(
    bench: TrelloBotHarness, trello: FakeTrello, caplog: pytest.LogCaptureFixture
) -> None:
    await bench.serve_webhook()
    ignored = bench.card(place=bench.ice)
    other = trello.label(bench.board, "other")
    trello.add_label(ignored, bench.label)
    trello.add_label(bench.card(), other)
    await bench.deliver_webhooks()
    await bench.poll()
    assert await bench.jobs() == []
    trello.move(ignored, bench.todo)
    await bench.deliver_webhooks()
    assert await bench.keys() == [bench.key(ignored)]
    await boards_of(bench.rt).remove(bench.board, bench.people.olga)
    for _ in range(2):
        trello.add_label(bench.card(), bench.label)
    assert {ack.status for ack in await bench.deliver_webhooks()} == {200}
    await bench.poll()
    assert len(await bench.jobs()) == 1
    assert len([r for r in caplog.records if "is not watched" in r.message]) == 1


async def test_labels_are_matched_by_id(bench: TrelloBotHarness, trello: FakeTrello) -> None:
    twin = trello.label(bench.board, "draftsman")
    nameless = trello.label(bench.board, "", None)
    await bench.watch(
        labels={
            bench.label: LabelRule(name="draftsman"),
            nameless: LabelRule(mode=Mode.INVESTIGATE, agent="tidy"),
        }
    )
    trello.rename_label(bench.label, "do it")
    first = bench.card(labels=[bench.label])
    second = bench.card(labels=[nameless])
    bench.card(labels=[twin])
    await bench.poll()
    assert await bench.keys() == sorted([bench.key(first), bench.key(second, label=nameless)])
    rules = {(job.agent_request.mode, job.agent_request.agent) for job in await bench.jobs()}
    assert rules == {(Mode.FIX, "tidy"), (Mode.INVESTIGATE, "tidy")}


async def test_deleted_label_is_a_health_problem(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    await bench.serve_webhook()
    trello.delete_label(bench.label)
    assert {ack.status for ack in await bench.deliver_webhooks()} == {200}
    [problem] = bench.context.health.problems.values()
    assert "no longer has the label 'draftsman'" in problem
    bench.context.health.clear(f"label:{bench.label}")
    [config] = await boards_of(bench.rt).all()
    await bench.poller.check(config)
    assert not bench.context.health.ready
    await bench.poll()


@pytest.mark.parametrize("way", ["poll", "webhook"])
async def test_card_created_copied_or_moved_with_the_label_creates_one_job(
    bench: TrelloBotHarness, trello: FakeTrello, way: str
) -> None:
    if way == "webhook":
        await bench.serve_webhook()
    see = bench.poll if way == "poll" else bench.deliver_webhooks
    elsewhere = trello.board("Play")
    inbox = trello.list(elsewhere, "To do")
    twin = trello.label(elsewhere, "draftsman")
    created = bench.card(labels=[bench.label])
    copied = trello.copy_card(created)
    moved = trello.card(elsewhere, inbox, "Come here", labels=[twin])
    trello.move_to_board(moved, bench.board, bench.todo)
    for _ in range(2):
        await see()
    assert await bench.keys() == sorted(bench.key(card) for card in (created, copied, moved))


@pytest.mark.parametrize("way", ["poll", "webhook"])
@pytest.mark.parametrize("deed", ["archive", "delete_card"])
async def test_archived_or_deleted_card_cancels_its_job(
    bench: TrelloBotHarness, trello: FakeTrello, way: str, deed: str
) -> None:
    if way == "webhook":
        await bench.serve_webhook()
    see = bench.poll if way == "poll" else bench.deliver_webhooks
    card = bench.card(labels=[bench.label])
    other = bench.card(labels=[bench.label])
    await see()
    getattr(trello, deed)(card)
    await see()
    await see()
    jobs = {job.url: job for job in await bench.jobs()}
    gone = next(job for job in jobs.values() if job.idempotency_key.split(":")[2] == card)
    what = "archived" if deed == "archive" else "deleted"
    assert (gone.status, gone.cancel_reason) == (
        Status.CANCELED,
        f"its card was {what} by Someone Else",
    )
    kept = next(job for job in jobs.values() if job.idempotency_key.split(":")[2] == other)
    assert kept.status is Status.QUEUED


async def test_restored_card_keeps_its_job(bench: TrelloBotHarness, trello: FakeTrello) -> None:
    await bench.serve_webhook()
    card = bench.card(labels=[bench.label])
    await bench.deliver_webhooks()
    trello.archive(card)
    trello.unarchive(card)
    await bench.deliver_webhooks(shuffle=3)
    [job] = await bench.jobs()
    assert job.status is Status.QUEUED


async def test_card_removed_before_intake_creates_no_job(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    cards = [bench.card(labels=[bench.label]) for _ in range(2)]
    trello.faults.next("GET", "/cards/{id}", Fault.HTML_503, times=4)
    await bench.poll()
    assert len(await boards_of(bench.rt).due(bench.board)) == 2
    trello.archive(cards[0])
    trello.delete_card(cards[1])
    await bench.poll()
    assert (await bench.jobs(), await boards_of(bench.rt).due(bench.board)) == ([], [])
    trello.unarchive(cards[0])
    await bench.poll()
    assert await bench.keys() == [bench.key(cards[0], 2)]


async def test_failed_label_swap_is_retried(bench: TrelloBotHarness, trello: FakeTrello) -> None:
    card = bench.card(labels=[bench.label])
    trello.faults.next("DELETE", "/cards/{id}/idLabels/{idLabel}", Fault.DROP_BEFORE)
    await bench.poll()
    assert bench.labels(card) == ["draftsman", "draftsman: queued"]
    await bench.poll()
    assert bench.labels(card) == ["draftsman: queued"]
    assert await bench.keys() == [bench.key(card)]


async def test_forbidden_label_swap_is_a_health_problem(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    card = bench.card(labels=[bench.label])
    refused = error(401, "unauthorized permission requested")
    trello.faults.next("POST", "/cards/{id}/idLabels", refused)
    await bench.poll()
    await bench.poll()
    assert await bench.keys() == [bench.key(card)]
    [problem] = bench.context.health.problems.values()
    assert "cannot swap labels" in problem


async def test_label_added_during_the_swap_begins_another_episode(
    bench: TrelloBotHarness, trello: FakeTrello, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The swap is noted, and the last look at the card, after that, finds it."""
    card = bench.card(labels=[bench.label])
    write = bench.context.trello.write

    async def and_again(method: Any, label: Any) -> None:
        await write(method, label)
        if method.__name__ == "remove_label":
            trello.add_label(card, bench.label)

    monkeypatch.setattr(bench.context.trello, "write", and_again)
    await bench.poll()
    [episode] = await boards_of(bench.rt).due(bench.board)
    assert (episode.episode, episode.stage) == (2, "pending")


async def test_label_from_before_the_first_poll_is_not_new(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    await boards_of(bench.rt).remove(bench.board, bench.people.olga)
    card = bench.card(labels=[bench.label])
    await bench.watch()
    await bench.serve_webhook()
    trello.move(card, trello.list(bench.board, "Doing"))
    await bench.deliver_webhooks()
    assert await bench.jobs() == []
