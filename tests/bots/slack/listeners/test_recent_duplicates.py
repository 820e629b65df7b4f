"""A repeated request: a second job, with a notice about the first."""

from __future__ import annotations

import asyncio
import re

from draftsman.database.database import Connection, Database
from draftsman_bots.slack.transport.acknowledgments import IN_DOUBT
from draftsman_testing.waits import background, until, wait_blocked
from tests.bots.slack.listeners.conftest import ANNA, BEN, SlackBotHarness
from tests.support.clock import Clock

SLOW_COMMIT = """
CREATE FUNCTION draftsman.late() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    LOOP
        BEGIN
            PERFORM pg_advisory_xact_lock_shared(7);
            RETURN NULL;
        EXCEPTION WHEN query_canceled THEN NULL;  -- as a server that hears no cancel
        END;
    END LOOP;
END $$;
CREATE CONSTRAINT TRIGGER late AFTER INSERT ON draftsman.job_states DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION draftsman.late();
"""
"""Commits wait for advisory lock 7."""


async def _typed(bench: SlackBotHarness, text: str, channel: str = "") -> str:
    ack = await bench.slack.command(ANNA, channel or bench.general, text)
    return str(ack.body["text"])


async def test_same_command_within_a_minute_creates_a_second_job_with_a_warning(
    bench: SlackBotHarness, clock: Clock
) -> None:
    assert await _typed(bench, "fix the parser") == "D-1 is queued. Updates follow."
    await clock.forward(12)
    text = await _typed(bench, "fix  the parser --agent=tidy")
    assert re.sub(r"\b[1-5]\d s ago", "12 s ago", text) == (
        "D-2 is queued. Updates follow.\n"
        "You made the same request 12 s ago: D-1 (queued)."
        " To cancel the duplicate: `/draftsman cancel D-2`"
    )
    assert len(await bench.jobs()) == 2
    await clock.forward(61)
    assert "the same request" not in await _typed(bench, "fix the parser")


async def test_different_requests_get_no_duplicate_warning(bench: SlackBotHarness) -> None:
    other = bench.slack.channel("other", [ANNA, BEN])
    await _typed(bench, "fix it")
    for text, channel in (
        ("fix that", ""),
        ("investigate it", ""),
        ("fix it --ref=main", ""),
        ("fix it", other),
    ):
        assert "the same request" not in await _typed(bench, text, channel)
    ack = await bench.slack.command(await bench.linked("erin"), bench.general, "fix it")
    assert "the same request" not in ack.body["text"]
    assert len(await bench.jobs()) == 6


async def test_canceled_request_may_be_repeated_without_a_warning(bench: SlackBotHarness) -> None:
    await _typed(bench, "fix it")
    await _typed(bench, "cancel D-1")
    assert "the same request" not in await _typed(bench, "fix it")


async def test_simultaneous_requests_get_one_duplicate_warning(bench: SlackBotHarness) -> None:
    text = await asyncio.gather(*(_typed(bench, "fix it") for _ in range(2)))
    assert sum("You made the same request" in item for item in text) >= 1
    assert len(await bench.jobs()) == 2


async def test_duplicate_mention_gets_an_ephemeral_warning(bench: SlackBotHarness) -> None:
    await _typed(bench, "fix it")
    await bench.slack.mention(ANNA, bench.general, "fix it", copies=2)
    _, text = await bench.ephemeral_texts(ANNA)
    assert re.search(r"the same request \d s ago: D-1 \(queued\)", text)


async def test_stalled_duplicate_lookup_keeps_the_committed_job(
    bench: SlackBotHarness, db: Database, conn: Connection
) -> None:
    """The job is committed, and the database stalls before the lookup of duplicates."""
    first = await db.dedicated_connection()
    second = await db.dedicated_connection()
    try:
        await first.execute("BEGIN")
        await first.execute("LOCK TABLE draftsman.deliveries IN SHARE MODE")
        await second.execute("BEGIN")
        async with background(_typed(bench, "fix it")) as typed:
            await wait_blocked(conn, by=first.info.backend_pid)
            lock = second.execute("LOCK TABLE draftsman.job_targets IN ACCESS EXCLUSIVE MODE")
            async with background(lock) as locked:
                await wait_blocked(conn, by=first.info.backend_pid, sessions=2)
                await first.execute("COMMIT")
                await locked
                assert await typed == "D-1 is queued. Updates follow."
    finally:
        await second.close()
        await first.close()
    assert await bench.jobs() == ["it"]


async def test_late_commit_is_reported_on_the_next_try(
    bench: SlackBotHarness, db: Database, conn: Connection
) -> None:
    """The commit completes after the bot's timeout and its attempt to cancel."""
    await conn.execute(SLOW_COMMIT)
    holder = await db.dedicated_connection()
    try:
        await holder.execute("SELECT pg_advisory_lock(7)")
        async with background(_typed(bench, "fix it")) as typed:
            await wait_blocked(conn, by=holder.info.backend_pid)
            assert await typed == IN_DOUBT
        await holder.execute("SELECT pg_advisory_unlock(7)")
    finally:
        await holder.close()

    async def is_created() -> bool:
        return await bench.jobs() == ["it"]

    await until(is_created, "the job that nobody waited for")
    await conn.execute("DROP TRIGGER late ON draftsman.job_states")
    assert "ago: D-1 (queued)" in await _typed(bench, "fix it")


async def test_changed_copy_of_a_mention_creates_no_second_job(
    bench: SlackBotHarness,
) -> None:
    first = await bench.slack.mention(ANNA, bench.general, "fix it")
    event = {**first.sent["event"], "text": f"{first.sent['event']['text']} ", "client_msg_id": "x"}
    for extra in ({"event": event}, {"event": {**event, "text": f"{event['text']}\u200b"}}):
        again = await bench.slack.event({**first.sent, "event_id": "Ev0OTHER", **extra})
        assert again.acked
    assert await bench.jobs() == ["it"]
    assert await bench.ephemeral_texts(ANNA) == []
