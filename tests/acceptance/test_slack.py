"""A job in Slack from request to result, with every process killed on the way."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from draftsman.handlers.clone.sample_repo import make_sample_repo
from tests.acceptance.processes import Installation, Process
from tests.core.loops.agent_jobs import git
from tests.support.slack import FakeSlack

Json = dict[str, Any]


@pytest.fixture
def home(folder: Path) -> Iterator[Installation]:
    """Give a place without a database: draftsman starts its own there."""
    place = Installation(folder / "home", None)
    yield place
    place.close()
    done = asyncio.run(place.run("db", "stop"))
    assert done.returncode == 0, done.stderr


class Story:
    """A workspace, and the processes that serve it."""

    def __init__(self, slack: FakeSlack, home: Installation) -> None:
        self.slack = slack
        self.home = home
        self.anna, self.ben = slack.user("anna"), slack.user("ben")
        self.room = slack.channel("general", [self.anna, self.ben])
        self.secrets = {"BOT": slack.bot_token, "APP": slack.app_token}
        self.home.configure(
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
        started = self.home.start("bots", env=self.secrets)
        await self.slack.sockets.wait(2)
        return started

    async def anew(self, bots: Process) -> Process:
        """Kill the bots, whatever they were at, and start them again."""
        bots.signal(signal.SIGKILL)
        await bots.end()
        await self.slack.sockets.wait(0)
        return await self.bots()

    def says(self, part: str) -> list[Json]:
        """Return the messages that hold this, wherever they stand."""
        found = self.slack.world.channels[self.room].messages.values()
        return [one for one in found if part in json.dumps(one)]

    async def shown(self, part: str) -> Json:
        """Return the one message that holds this, once it is there."""
        await self.slack.until(lambda: self.says(part), part)
        (found,) = self.says(part)
        return found

    async def told(self, *args: str) -> Any:
        """Return what a command prints as JSON."""
        done = await self.home.run(*args, "--json", **self.secrets)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


async def test_a_story_whose_every_process_is_killed_is_told_once(
    home: Installation, tmp_path: Path
) -> None:
    await make_sample_repo(tmp_path / "repo")
    async with FakeSlack() as slack:
        story = Story(slack, home)
        await story.told("repos", "add", f"{tmp_path}/repo")
        worker, bots = home.start("worker"), await story.bots()

        asked = "fix --repo=repo Tidy up, please"
        assert (await slack.command(story.anna, story.room, asked, retries=3)).acked
        bots = await story.anew(bots)

        question = await story.shown("draftsman_answer:1")
        bots = await story.anew(bots)

        pressed = await slack.press(
            story.anna, story.room, question["ts"], "draftsman_answer:1", retries=3
        )
        assert pressed.acked
        worker.signal(signal.SIGKILL)
        await worker.end()
        bots, worker = await story.anew(bots), home.start("worker")

        late = pressed.sent | {"user": {"id": story.ben, "name": "ben"}}
        assert (await slack.interactive(late, retries=3)).acked
        (word,) = await slack.until(lambda: slack.ephemerals(story.room, story.ben), "the word")
        assert word["text"] == "Your answer was not accepted: D-1/1 was already answered by anna"
        bots = await story.anew(bots)

        result = await story.shown("safe fixes applied")
        bots = await story.anew(bots)
        await slack.until(lambda: len(slack.files) == 3, "the files of the result")
        card = await story.shown("is completed")
        for process in (bots, worker):
            process.signal(signal.SIGTERM)
            assert await process.end() == 0, process.output_text

        assert slack.messages(story.room) == [card], "one card, edited in place"
        assert [one["ts"] for one in story.says("Which fixes should")] == [question["ts"]]
        assert story.says("D-1/1 was answered by anna") == story.says("Which fixes should")
        assert not story.says("draftsman_answer")
        assert story.says("safe fixes applied") == [result]
        assert result["thread_ts"] == question["thread_ts"] == card["ts"]
        names = {one["name"] for one in slack.files}
        assert names == {"D-1-result.md", "changes.patch", "report.md"}
        assert len(slack.ephemerals(story.room, story.ben)) == 1
        assert [job["number"] for job in await story.told("jobs")] == [1]
        assert (await story.told("show", "D-1"))["status"] == "completed"
        assert git("log", "--format=%s", "-1", "draftsman/D-1", cwd=tmp_path / "repo")
        assert slack.complaints == []
