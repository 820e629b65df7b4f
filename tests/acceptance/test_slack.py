"""A job in Slack from request to result, with every process killed on the way."""

from __future__ import annotations

import asyncio
import itertools
import json
import signal
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from draftsman.agent_runs.clones.sample_repo import make_sample_repo
from draftsman.database.database import Connection
from draftsman.runtime import Runtime
from draftsman_testing.slack import FakeSlack
from draftsman_testing.slack.event_delivery import Ack
from draftsman_testing.waits import background, until, wait_blocked
from tests.acceptance.processes import DEADLINE, Installation, Process
from tests.core.worker.agent_jobs import git
from tests.support.statements import rows

Json = dict[str, Any]


class Story:
    """A workspace, and the processes that serve it."""

    def __init__(self, slack: FakeSlack, installation: Installation, every: int) -> None:
        self.slack = slack
        self.moments = itertools.cycle(n == 0 for n in range(every))
        self.installation = installation
        self.anna = slack.user("anna")
        self.ben = slack.user("ben")
        self.room = slack.channel("general", [self.anna, self.ben])
        self.secrets = {"BOT": slack.bot_token, "APP": slack.app_token}
        self.installation.configure(
            people__anna__slack=self.anna,
            people__anna__roles=["invoker", "responder"],
            people__ben__slack=self.ben,
            people__ben__roles=["responder"],
            notifications__timeout=0.5,
            notifications__lease=2,
            slack__api_url=slack.api_url,
            slack__bot_token__env="BOT",
            slack__app_token__env="APP",
        )

    async def bots(self) -> Process:
        """Start the bots."""
        started = self.installation.start("bots", env=self.secrets)
        await self.slack.sockets.wait(2)
        return started

    async def restart(self, bots: Process) -> Process:
        """Kill the bots and start them again, at every first moment of `every`."""
        if not next(self.moments):
            return bots
        bots.signal(signal.SIGKILL)
        await bots.end()
        await self.slack.sockets.wait(0)
        return await self.bots()

    def messages_with(self, part: str) -> list[Json]:
        """Return the messages that contain a text, in all channels and threads."""
        messages = self.slack.world.channels[self.room].messages.values()
        return [message for message in messages if part in json.dumps(message)]

    def completed_cards(self) -> list[Json]:
        """Return the cards of completed jobs in the channel."""
        cards = self.slack.messages(self.room)
        return [card for card in cards if ":white_check_mark:" in json.dumps(card)]

    async def wait_for_message(self, part: str) -> Json:
        """Wait for the only message that contains a text; return it."""
        await self.slack.until(lambda: self.messages_with(part), part)
        (message,) = self.messages_with(part)
        return message

    async def run(self, *args: str) -> None:
        """Run a command."""
        done = await self.installation.run(*args, **self.secrets)
        assert done.returncode == 0, done.stderr


@pytest.mark.slow(fast="test_events_of_a_committed_batch_are_found_and_acknowledged_after_sigkill")
async def test_every_message_is_posted_once_although_each_process_is_killed(
    installation: Installation, every: int, rt: Runtime, tmp_path: Path
) -> None:
    await make_sample_repo(tmp_path / "repo")
    async with FakeSlack() as slack:
        story = Story(slack, installation, every)
        await story.run("repos", "add", f"{tmp_path}/repo")
        worker = installation.start("worker")
        bots = await story.bots()

        request = "fix --repo=repo Tidy up, please"
        assert (await slack.command(story.anna, story.room, request, retries=3)).acked
        bots = await story.restart(bots)

        question = await story.wait_for_message("draftsman_answer:1")
        bots = await story.restart(bots)

        pressed = await slack.press(
            story.anna, story.room, question["ts"], "draftsman_answer:1", retries=3
        )
        assert pressed.acked
        worker.signal(signal.SIGKILL)
        await worker.end()
        bots = await story.restart(bots)
        worker = installation.start("worker")

        late = pressed.sent | {"user": {"id": story.ben, "name": "ben"}}
        assert (await slack.interactive(late, retries=3)).acked
        (word,) = await slack.until(lambda: slack.ephemerals(story.room, story.ben), "the word")
        refused = "Your answer was not accepted: D-1/1 was already answered by anna, "
        assert word["text"].startswith(refused)
        bots = await story.restart(bots)

        result = await story.wait_for_message("safe fixes applied")
        bots = await story.restart(bots)
        await slack.until(lambda: len(slack.files) == 3, "the files of the result")
        (card,) = await slack.until(story.completed_cards, "the card of a completed job")
        for process in (bots, worker):
            process.signal(signal.SIGTERM)
            assert await process.end() == 0, process.output_text

        assert slack.messages(story.room) == [card], "one card, edited in place"
        assert [entry["ts"] for entry in story.messages_with("Which fixes should")] == [
            question["ts"]
        ]
        assert story.messages_with("D-1/1 was answered by anna") == story.messages_with(
            "Which fixes should"
        )
        assert not story.messages_with("draftsman_answer")
        assert story.messages_with("safe fixes applied") == [result]
        assert result["thread_ts"] == question["thread_ts"] == card["ts"]
        names = {entry["name"] for entry in slack.files}
        assert names == {"D-1-result.md", "changes.patch", "report.md"}
        assert len(slack.ephemerals(story.room, story.ben)) == 1
        [job] = await rt.read_model.jobs()
        assert (job.number, job.status) == (1, "completed")
        assert git("log", "--format=%s", "-1", "draftsman/D-1", cwd=tmp_path / "repo")
        assert slack.complaints == []


async def test_events_of_a_committed_batch_are_found_and_acknowledged_after_sigkill(
    installation: Installation, every: int, rt: Runtime, conn: Connection
) -> None:
    """The bots are stopped while their inserts wait for a lock, and killed after the commit."""
    async with FakeSlack() as slack, rt.db.connection() as lock:
        story = Story(slack, installation, every)
        bots = await story.bots()
        slack.event_delivery.patience = DEADLINE
        slack.subscribed = {"app_mention"}
        async with AsyncExitStack() as stack:
            mentions: list[asyncio.Future[Ack]] = []

            async def mention(count: int) -> None:
                for _ in range(count):
                    text = f"fix tidy {len(mentions)}"
                    # the fake retries at once, also on the sockets of killed bots
                    sent = slack.mention(story.anna, story.room, text, retries=12)
                    mentions.append(await stack.enter_async_context(background(sent)))

            while True:
                first = len(mentions)
                async with lock.transaction():
                    await lock.execute("LOCK TABLE draftsman.job_requests IN SHARE MODE")
                    await mention(1)
                    await wait_blocked(conn, by=lock.info.backend_pid)
                    await mention(5)
                    await wait_blocked(conn, by=lock.info.backend_pid, sessions=2)
                    bots.signal(signal.SIGSTOP)
                await until(lambda: _is_quiet(conn), "the end of all statements")
                if await _has_batch(conn):
                    break
                # a slow machine: the batch was split before the bots were stopped
                bots.signal(signal.SIGCONT)
                await asyncio.gather(*mentions[first:])
            bots.signal(signal.SIGKILL)
            await bots.end()
            bots = await story.bots()
            acks = [await sent for sent in mentions]
        assert all(ack.acked for ack in acks)
        assert all(ack.attempts > 1 for ack in acks[first:])
        jobs = [await rt.read_model.job(job.number) for job in await rt.read_model.jobs()]
        assert sorted(job.agent_request.text or "" for job in jobs) == sorted(
            f"tidy {number}" for number in range(len(mentions))
        )
        bots.signal(signal.SIGTERM)
        assert await bots.end() == 0, bots.output_text


async def _is_quiet(conn: Connection) -> bool:
    """Return whether no other session runs a statement."""
    counts = await rows(
        conn,
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND state = 'active' AND pid <> pg_backend_pid()",
    )
    return counts == [(0,)]


async def _has_batch(conn: Connection) -> bool:
    """Return whether a transaction committed several jobs."""
    counts = await rows(conn, "SELECT count(*) FROM draftsman.job_requests GROUP BY xmin::text")
    return any(count > 1 for (count,) in counts)
