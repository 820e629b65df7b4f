"""Comments that pause, resume and dismiss the card's job."""

from __future__ import annotations

from draftsman.errors import Failure
from draftsman_testing.trello import FakeTrello
from tests.bots.trello.inbound.conftest import TrelloBotHarness, join
from tests.bots.trello.inbound.test_card_messages import _job


async def test_a_comment_pauses_the_job_once_and_another_resumes_it(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    await bench.serve_webhook()
    olga = trello.member("Olga")
    await join(bench.rt, olga, bench.people.olga)
    card, number = await _job(bench, trello)
    control = bench.rt.job_control

    async def paused() -> bool:
        return (await bench.rt.read_model.why(number)).paused

    trello.comment(card, bench.mallory, "/pause now")
    trello.comment(card, olga, "/pause")
    await bench.deliver_webhooks()
    assert not await paused()
    pause = trello.comment(card, olga, f"/pause D-{number} the API is down\nuntil noon")
    await bench.deliver_webhooks(copies=2)
    assert await paused()
    await control.resume(number, bench.people.olga)
    await bench.poll()
    await bench.deliver_webhooks()
    assert not await paused(), "the poll reads the same comment again"
    trello.edit_comment(pause, "/pause the API is down again")
    await bench.deliver_webhooks()
    assert not await paused()
    trello.comment(card, olga, "/pause again")
    trello.comment(card, olga, "/pause once more")
    await bench.deliver_webhooks()
    assert await paused()
    trello.comment(card, olga, "/resume")
    await bench.deliver_webhooks()
    assert not await paused()
    stop = trello.comment(card, olga, "/cancel no longer needed")
    await bench.deliver_webhooks(copies=2)
    await bench.poll()
    assert (await bench.rt.read_model.job(number)).status == "canceled"
    trello.edit_comment(stop, "/cancel it")
    await bench.deliver_webhooks()
    texts = "\n".join(await bench.notices(card))
    assert "nothing to cancel" not in texts, "the comment arrived three times"
    for part in (
        "may not pause",
        f"a pause needs a reason: pause D-{number} REASON",
        ": the API is down\nuntil noon",
        f"An edit is not executed. Write another comment: /pause D-{number} …",
        f"An edit is not executed. Write another comment: /cancel D-{number} …",
        "is already paused",
        f"D-{number} was resumed by olga",
    ):
        assert part in texts, texts


async def test_a_comment_dismisses_the_failure_and_another_takes_it_back(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    await bench.serve_webhook()
    olga = trello.member("Olga")
    await join(bench.rt, olga, bench.people.olga)
    card, number = await _job(bench, trello)
    failure = Failure("no such thing", declared="PERMANENT")
    await bench.rt.settlement.failure(await bench.make.running(number), failure)

    async def is_open() -> bool:
        return bool(await bench.rt.read_model.jobs(failures=True))

    trello.comment(card, bench.mallory, "/dismiss")
    await bench.deliver_webhooks()
    assert await is_open()
    trello.comment(card, olga, "/dismiss")
    await bench.deliver_webhooks(copies=2)
    assert not await is_open()
    trello.comment(card, olga, "/undismiss")
    await bench.deliver_webhooks()
    assert await is_open()
    await bench.poll()
    assert await is_open(), "the poll reads the first comment again"
