"""Mentions that arrive together: they share a transaction, and are answered separately."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from draftsman.database.database import Connection
from draftsman.deliveries.target import Target
from draftsman.jobs.requests.invocation import RecentDuplicate
from draftsman_testing.waits import background
from tests.bots.slack.listeners.conftest import ANNA, BEN, MALLORY, SlackBotHarness
from tests.support.statements import rows

TRANSACTIONS = "SELECT count(DISTINCT xmin::text) FROM draftsman.job_requests"


async def test_mentions_that_arrive_together_share_transactions(
    bench: SlackBotHarness, conn: Connection
) -> None:
    people = (ANNA, await bench.linked("erin")) * 10
    acks = await asyncio.gather(
        *(bench.slack.mention(user, bench.general, f"fix {n}") for n, user in enumerate(people))
    )
    assert all(copy.acked for ack in acks for copy in ack.copies)
    assert sorted(await bench.jobs()) == sorted(str(n) for n in range(len(people)))
    ((transactions,),) = await rows(conn, TRANSACTIONS)
    assert transactions <= len(people) // 2
    for job in await bench.rt.read_model.jobs():
        (event,) = await bench.rt.read_model.job_events(job.number)
        text = (await bench.rt.read_model.job(job.number)).agent_request.text or ""
        assert event.actor == f"slack:{people[int(text)]}"


async def test_refused_mention_among_others_is_refused_alone(bench: SlackBotHarness) -> None:
    texts = {ANNA: "fix it", MALLORY: "fix that", BEN: "fix this --repo=nowhere"}
    acks = await asyncio.gather(
        *(bench.slack.mention(user, bench.general, text) for user, text in texts.items())
    )
    assert all(copy.acked for ack in acks for copy in ack.copies)
    assert await bench.jobs() == ["it"]
    assert await bench.ephemeral_texts(ANNA) == []
    (refusal,) = await bench.ephemeral_texts(MALLORY)
    assert "is not linked to a person" in refusal
    (problem,) = await bench.ephemeral_texts(BEN)
    assert "nowhere" in problem


async def test_lookup_of_duplicates_does_not_delay_the_acknowledgment(
    bench: SlackBotHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.slack.mention(ANNA, bench.general, "fix it")
    await bench.ctx.background.idle()
    acked = asyncio.Event()
    find = bench.rt.submissions.recent_duplicates

    async def wait(
        jobs: Sequence[tuple[int, Target]], seconds: float
    ) -> list[RecentDuplicate | None]:
        await acked.wait()
        return await find(jobs, seconds)

    monkeypatch.setattr(bench.rt.submissions, "recent_duplicates", wait)
    async with background(bench.slack.mention(ANNA, bench.general, "fix it")) as mention:
        assert all(copy.acked for copy in (await mention).copies)
    assert bench.slack.ephemerals(bench.general, ANNA) == []
    acked.set()
    (text,) = await bench.ephemeral_texts(ANNA)
    assert "D-2 is queued" in text
    assert "You made the same request" in text
