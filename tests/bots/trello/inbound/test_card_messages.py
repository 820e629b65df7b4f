"""Comments for the bot that answer no question, as messages to the agent of the card's job."""

from __future__ import annotations

from draftsman_testing.trello import FakeTrello
from tests.bots.trello.inbound.conftest import TrelloBotHarness


async def _job(bench: TrelloBotHarness, trello: FakeTrello) -> tuple[str, int]:
    """Make a job of a card; return both."""
    card = bench.card()
    trello.add_label(card, bench.label)
    await bench.deliver_webhooks()
    await bench.send_messages()
    [job] = await bench.jobs()
    return card, job.number


async def _texts(bench: TrelloBotHarness, number: int) -> list[tuple[str, str]]:
    return [(item.sender, item.text) for item in await bench.rt.messages.of_job(number)]


async def test_a_comment_for_the_bot_is_a_single_message(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    await bench.serve_webhook()
    card, number = await _job(bench, trello)
    me = trello.username(trello.bot_member)
    trello.comment(card, bench.ben, f"@{me} use the v2 API\nand test it")
    trello.comment(card, bench.ben, f"/tell D-{number} in tests/api")
    trello.comment(card, bench.ben, "thanks, all")
    await bench.deliver_webhooks(copies=2)
    await bench.poll()
    expected = [("ben", "use the v2 API\nand test it"), ("ben", "in tests/api")]
    assert await _texts(bench, number) == expected
    first, second = await bench.notices(card)
    assert f"Message 1 sent to D-{number}: the agent gets it with its next run" in first
    assert "Message 2" in second


async def test_a_refused_or_edited_comment_is_no_message(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    await bench.serve_webhook()
    card, number = await _job(bench, trello)
    trello.comment(card, bench.mallory, "/tell hello")
    sent = trello.comment(card, bench.ben, "/tell use the v2 API")
    await bench.deliver_webhooks()
    trello.edit_comment(sent, "/tell use the v3 API")
    await bench.deliver_webhooks()
    assert await _texts(bench, number) == [("ben", "use the v2 API")]
    refused, _, edited = await bench.notices(card)
    assert "may not send messages to jobs" in refused
    assert f"An edit is not executed. Write another comment: /tell D-{number} …" in edited
    await bench.rt.job_control.cancel(number, bench.people.olga)
    trello.comment(card, bench.ben, "/tell hello")
    await bench.deliver_webhooks()
    assert len(await _texts(bench, number)) == 1


async def test_a_command_of_slack_and_help_get_a_reply(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    await bench.serve_webhook()
    card, _ = await _job(bench, trello)
    trello.comment(card, bench.ben, "/draftsman help")
    trello.comment(card, bench.ben, "/list the jobs")
    await bench.deliver_webhooks(copies=2)
    commands, elsewhere = await bench.notices(card)
    assert "/tell [D-142] TEXT: Send a message" in commands.replace("\\", "")
    assert "/draftsman" not in commands
    assert "list is a command of Slack only; commands here: /tell, " in elsewhere
