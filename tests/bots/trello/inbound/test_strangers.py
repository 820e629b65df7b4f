"""Only people of the directory with the right start a job by a label, or end it with its card."""

from __future__ import annotations

import pytest

from draftsman.errors import LostRace
from draftsman_bots.trello.requests import label_jobs, requesters
from draftsman_bots.trello.settings import BoardMembers
from draftsman_testing.trello import FakeTrello, error
from tests.attacks.catalog import attack
from tests.bots.trello.inbound.conftest import TrelloBotHarness
from tests.bots.trello.inbound.test_templates import UNLABEL, bind, comments

NOBODY = "it is not known who added the label"


@pytest.fixture
async def closed(bench: TrelloBotHarness) -> TrelloBotHarness:
    """Give a watched board with its webhook and the default of `members`."""
    bench.configure(members=BoardMembers.PEOPLE)
    await bench.serve_webhook()
    return bench


async def add_label(bench: TrelloBotHarness, member: str, card: str = "") -> str:
    """Add the label to a card as a member, and deliver the webhooks; return the card."""
    card = card or bench.card()
    await bench.deliver_webhooks()
    bench.trello.add_label(card, bench.label, member)
    await bench.deliver_webhooks()
    return card


@attack(
    "A member of a Trello board who is not in the directory starts an agent by a label",
    surface="input",
    with_sandbox="no job; one comment says who can add them, and the label is removed",
)
async def test_the_label_of_a_stranger_starts_no_job(
    closed: TrelloBotHarness, trello: FakeTrello
) -> None:
    card = await add_label(closed, closed.mallory)
    await closed.poll()
    assert await closed.jobs() == []
    assert closed.labels(card) == []
    [comment] = comments(trello, card)
    assert "No job was started: Mallory is not linked to a person." in comment
    command = f"draftsman people set NAME --account trello:{closed.mallory} --role invoker"
    assert f"An operator (olga) can run `{command}`" in comment
    for _ in range(3):
        await add_label(closed, closed.mallory, card)
    assert (closed.labels(card), len(comments(trello, card))) == ([], 1)
    await add_label(closed, closed.anna, card)
    [job] = await closed.jobs()
    assert (job.invoker_id, closed.labels(card)) == ("anna", ["draftsman: queued"])


async def test_the_label_of_a_person_without_the_right_starts_no_job(
    closed: TrelloBotHarness, trello: FakeTrello
) -> None:
    card = await add_label(closed, closed.ben)
    assert await closed.jobs() == []
    [comment] = comments(trello, card)
    assert "Ben Ono may not submit jobs. Ask an operator (olga) for the role `invoker`." in comment


async def test_a_label_bound_to_a_template_is_closed_too(
    closed: TrelloBotHarness, trello: FakeTrello
) -> None:
    await bind(closed)
    card = closed.card("Tidy", desc="package: httpx")
    await add_label(closed, closed.mallory, card)
    assert (await closed.jobs(), closed.labels(card)) == ([], [])
    [comment] = comments(trello, card)
    assert "is not linked to a person" in comment


async def test_a_poll_that_is_faster_waits_for_the_webhook(
    closed: TrelloBotHarness, trello: FakeTrello
) -> None:
    cards = {}
    for member in (closed.anna, closed.mallory):
        cards[member] = closed.card()
        await closed.deliver_webhooks()
        trello.add_label(cards[member], closed.label, member)
        await closed.poll()
        assert closed.labels(cards[member]) == ["draftsman"]
        await closed.deliver_webhooks()
    [job] = await closed.jobs()
    assert (job.invoker_id, closed.labels(cards[closed.mallory])) == ("anna", [])
    assert len(comments(trello, cards[closed.mallory])) == 1


async def test_a_label_of_nobody_known_is_a_strangers(
    closed: TrelloBotHarness, trello: FakeTrello, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copied card has its label without an action that names a member."""
    card = closed.card(labels=[closed.label])
    trello.world.pending.clear()
    await closed.poll()
    assert (closed.labels(card), comments(trello, card)) == (["draftsman"], [])
    monkeypatch.setattr(requesters, "WEBHOOK_WAIT", 0.0)
    await closed.poll()
    assert (await closed.jobs(), closed.labels(card)) == ([], [])
    [comment] = comments(trello, card)
    assert NOBODY in comment
    assert "can add the label again" in comment


async def test_polls_alone_start_no_job_and_say_what_an_operator_can_set(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    bench.configure(members=BoardMembers.PEOPLE)
    card = bench.card()
    for _ in range(2):
        trello.add_label(card, bench.label, bench.anna)
        await bench.poll()
        assert (await bench.jobs(), bench.labels(card)) == ([], [])
    [comment] = comments(trello, card)
    assert NOBODY in comment
    assert '`callback_url` in `[trello]`, or `members = "may_submit"`' in comment
    bench.configure(members=BoardMembers.MAY_SUBMIT)
    trello.add_label(card, bench.label, bench.mallory)
    await bench.poll()
    [job] = await bench.jobs()
    assert job.invoker_id == f"trello:board:{bench.board}"


@pytest.mark.parametrize("who", ["anna", "mallory"])
async def test_a_restart_before_the_job_keeps_who_added_the_label(
    closed: TrelloBotHarness, trello: FakeTrello, who: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that has the webhook is killed before it submits, and a poll continues."""

    async def killed(*_: object) -> None:
        raise LostRace("killed")

    with monkeypatch.context() as patch:
        patch.setattr(label_jobs, "process_episode", killed)
        card = await add_label(closed, getattr(closed, who))
    assert closed.labels(card) == ["draftsman"]
    await closed.poll()
    jobs = [job.invoker_id for job in await closed.jobs()]
    assert jobs == (["anna"] if who == "anna" else [])
    said = comments(trello, card) if who == "mallory" else []
    assert [closed.mallory in comment for comment in said] == [True] * (who == "mallory")


async def test_a_killed_process_repeats_no_comment_to_a_stranger(
    closed: TrelloBotHarness, trello: FakeTrello
) -> None:
    trello.faults.next("DELETE", UNLABEL, error(500, "server error"))
    card = await add_label(closed, closed.mallory)
    assert (closed.labels(card), len(comments(trello, card))) == (["draftsman"], 1)
    await closed.poll()
    assert (closed.labels(card), len(comments(trello, card))) == ([], 1)


@attack(
    "A member of a Trello board who is not in the directory ends a job by archiving its card",
    surface="input",
    with_sandbox="the job continues, and one comment says who may cancel it",
)
@pytest.mark.parametrize("way", ["webhook", "poll"])
async def test_a_card_that_a_stranger_archives_ends_no_job(
    closed: TrelloBotHarness, trello: FakeTrello, way: str
) -> None:
    see = closed.deliver_webhooks if way == "webhook" else closed.poll
    card = await add_label(closed, closed.anna)
    for _ in range(2):
        trello.archive(card, closed.mallory)
        await see()
        trello.unarchive(card, closed.mallory)
        await see()
    [job] = await closed.jobs()
    assert job.status == "queued"
    [notice] = await closed.notices(card)
    assert "The job continues although its card was archived: Mallory may not cancel" in notice
    trello.archive(card, closed.anna)
    await see()
    [job] = await closed.jobs()
    assert (job.status, job.cancel_reason) == ("canceled", "its card was archived by Anna Berg")


async def test_a_card_that_a_stranger_deletes_ends_no_job(
    closed: TrelloBotHarness, trello: FakeTrello
) -> None:
    card = await add_label(closed, closed.anna)
    trello.delete_card(card, closed.mallory)
    await closed.deliver_webhooks()
    [job] = await closed.jobs()
    assert job.status == "queued"
