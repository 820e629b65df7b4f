"""Labels that are bound to a template: parameters from the card, a single job or comment."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from draftsman.schedules.template import define
from draftsman_bots.trello.records.board import LabelRule
from draftsman_bots.trello.records.service import boards_of
from draftsman_bots.trello.requests import refusals
from draftsman_testing.trello import FakeTrello, Fault, error
from tests.bots.trello.inbound.conftest import TrelloBotHarness

COMMENTS = "/cards/{id}/actions/comments"
UNLABEL = "/cards/{id}/idLabels/{idLabel}"
SCHEMA = {
    "required": ["package"],
    "properties": {
        "package": {"type": "string", "description": "Name on *PyPI*"},
        "level": {"enum": ["minor", "major"], "default": "minor"},
        "days": {"type": "integer", "maximum": 9},
        "title": {"type": "string"},
    },
}
TEXT = "{title}: update {package}, {level}, {days}"


async def bind(bench: TrelloBotHarness, **fields: Any) -> None:
    """Bind the board's label to a new template."""
    definition = {"type": "http_request", "payload": {"url": "https://example.org/"}}
    defined = define(definition | {"parameters": SCHEMA, "text": TEXT} | fields)
    await bench.rt.templates.add("bump", defined, bench.make.owner)
    await bench.watch(labels={bench.label: LabelRule(name="bump deps", template="bump")})


def comments(trello: FakeTrello, card: str) -> list[str]:
    return [comment.text for comment in trello.comments(card)]


async def test_a_card_becomes_a_job_of_the_template(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    await bind(bench)
    await bench.serve_webhook()
    card = bench.card("Tidy", desc="Please.\n- package: httpx\nDays: 7")
    trello.add_label(card, bench.label, bench.anna)
    await asyncio.gather(bench.deliver_webhooks(copies=3), bench.poll())
    await bench.poll()
    [job] = await bench.jobs()
    assert job.agent_request.text == "Tidy: update httpx, minor, 7"
    assert (job.template, job.template_version, job.source_type) == ("bump", 1, "ticket")
    assert await bench.keys() == [bench.key(card)]
    assert job.url == trello.card_now(card)["shortUrl"]
    assert job.payload == {"url": "https://example.org/"}
    assert bench.labels(card) == ["draftsman: queued"]
    (target,) = await bench.rt.outbox.targets(job.number)
    assert (target.channel, target.target) == ("trello", card)
    assert comments(trello, card) == []


async def test_the_job_of_an_agent_has_the_ticket(bench: TrelloBotHarness) -> None:
    fields = {"type": "run_agent", "agent": "tidy", "repo": "https://example.org/acme/pay"}
    await bind(bench, payload=None, **fields)
    card = bench.card("Tidy", desc="package: httpx", labels=[bench.label])
    await bench.poll()
    [job] = await bench.jobs()
    assert job.payload["ticket"]["title"] == "Tidy"
    assert (job.agent_request.agent, job.subject_key) == ("tidy", f"trello:card:{card}")


async def test_missing_parameters_are_asked_for_once(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    await bind(bench)
    card = bench.card("Tidy", desc="level: huge\ndays: 12", labels=[bench.label])
    for _ in range(3):
        await bench.poll()
    (comment,) = comments(trello, card)
    assert comment.startswith(
        "No job was created: bump needs other parameters.\n\n"
        "- package (Name on \\*PyPI\\*): is required\n"
        "- level: must be minor or major, not 'huge'\n"
        "- days: must be at most 9, not 12\n"
    )
    assert "add the label again:\n\n```\npackage: VALUE\nlevel: VALUE\ndays: VALUE\n```" in comment
    assert await bench.jobs() == []
    assert bench.labels(card) == []
    assert bench.context.health.problems == {}
    trello.describe(card, "package: httpx")
    trello.add_label(card, bench.label, bench.anna)
    for _ in range(2):
        await bench.poll()
    assert await bench.keys() == [bench.key(card, 2)]
    assert len(comments(trello, card)) == 1


async def test_each_time_of_the_label_asks_once(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    await bind(bench)
    card = bench.card("Tidy", labels=[bench.label])
    await bench.poll()
    trello.add_label(card, bench.label, bench.anna)
    await bench.poll()
    await bench.poll()
    assert len(comments(trello, card)) == 2
    assert len(set(comments(trello, card))) == 2


@pytest.mark.parametrize("fault", [Fault.DROP_AFTER, Fault.DROP_BEFORE, Fault.HTML_503])
async def test_a_lost_response_repeats_no_comment(
    bench: TrelloBotHarness, trello: FakeTrello, fault: Any
) -> None:
    await bind(bench)
    card = bench.card("Tidy", labels=[bench.label])
    trello.faults.next("POST", COMMENTS, fault)
    await bench.poller.poll_once()
    assert bench.labels(card) == ["draftsman"]
    await bench.poll()
    assert len(comments(trello, card)) == 1
    assert bench.labels(card) == []


async def test_a_process_killed_after_the_comment_repeats_it_not(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    await bind(bench)
    card = bench.card("Tidy", labels=[bench.label])
    trello.faults.next("DELETE", UNLABEL, error(500, "server error"))
    await bench.poller.poll_once()
    assert (bench.labels(card), len(comments(trello, card))) == (["draftsman"], 1)
    await bench.poll()
    assert (bench.labels(card), len(comments(trello, card))) == ([], 1)
    assert [call.method for call in trello.calls if call.path.endswith("/comments")] == ["POST"]


async def test_of_two_comments_at_once_the_first_stays(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    """Two processes have no common lock for a card."""
    await bind(bench)
    card = bench.card("Tidy")
    episode = await boards_of(bench.rt).observe(
        card, bench.label, bench.board, present=True, began=await boards_of(bench.rt).clock()
    )
    assert episode is not None
    for _ in range(2):
        unread = {"id": card}
        await refusals.comment_once(bench.context, unread, "Which package?", episode.key)
    assert len(comments(trello, card)) == 1


async def test_a_bot_that_may_not_change_labels_asks_once(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    await bind(bench)
    card = bench.card("Tidy", labels=[bench.label])
    trello.faults.next("DELETE", UNLABEL, error(403, "unauthorized"))
    await bench.poll()
    await bench.poll()
    assert len(comments(trello, card)) == 1
    assert "cannot swap labels" in str(bench.context.health.problems)


async def test_a_removed_template_is_a_health_problem(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    await bind(bench)
    await bench.rt.templates.remove("bump", bench.make.owner)
    card = bench.card("Tidy", desc="package: httpx", labels=[bench.label])
    await bench.poll()
    (problem,) = bench.context.health.problems.values()
    assert problem.startswith("label 'bump deps' of board Work: template bump was removed")
    assert (await bench.jobs(), comments(trello, card)) == ([], [])


async def test_a_label_on_a_card_with_a_live_job_joins_it(
    bench: TrelloBotHarness, trello: FakeTrello
) -> None:
    await bind(bench)
    card = bench.card("Tidy", desc="package: httpx", labels=[bench.label])
    await bench.poll()
    trello.add_label(card, bench.label, bench.anna)
    await bench.poll()
    assert len(await bench.jobs()) == 1
    (notice,) = await bench.notices(card)
    assert "D-1 is still queued" in notice
