"""What a killed demo leaves behind is removed by the next one."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest

from draftsman.jobs.job import Status
from draftsman.runtime import Runtime
from draftsman_bots.trello.records.board import BoardConfig
from draftsman_bots.trello.records.service import boards_of
from draftsman_testing.factories import Factory
from draftsman_testing.fake.server import read_state
from draftsman_testing.people import People
from draftsman_testing.slack import FakeSlack
from draftsman_testing.slack.world import Call
from draftsman_testing.waits import until
from draftsman_tui.cli.demo.chat import _follow
from draftsman_tui.cli.demo.steps import Steps
from draftsman_tui.cli.demo.unfinished import Left, clean_up, recorded, take_over
from draftsman_tui.terminal.output import CommandOutput

BOARD = "5eedfa4e5eedfa4e5eedfa4e"


async def test_what_a_killed_demo_left_is_removed(
    rt: Runtime, make: Factory, people: People, tmp_path: Path
) -> None:
    async def remove(board: str) -> None:
        await boards_of(rt).remove(board, people.olga)

    own = await make.queued()
    cursor = await rt.read_model.end_cursor()
    with recorded(tmp_path, Left(cursor, BOARD)):
        [record] = tmp_path.iterdir()
        content = record.read_text()
    assert await clean_up(rt, make.owner, tmp_path, remove) == "", "it ended"
    await boards_of(rt).save(BoardConfig(board_id=BOARD, name="Work"), people.olga)
    asked, done = await make.asked(), await make.completed()
    record.write_text(content)
    removed = "an earlier demo was killed: canceled 1 job and removed 1 board"
    assert await clean_up(rt, make.owner, tmp_path, remove) == removed
    statuses = [(await rt.read_model.job(n)).status for n in (own, asked.number, done)]
    assert statuses == [Status.QUEUED, Status.CANCELED, Status.COMPLETED]
    assert await boards_of(rt).all() == []
    assert await clean_up(rt, make.owner, tmp_path, remove) == ""


async def test_a_killed_demo_is_taken_over(
    rt: Runtime, make: Factory, people: People, tmp_path: Path
) -> None:
    async def remove(board: str) -> None:
        raise AssertionError(board)

    cursor = await rt.read_model.end_cursor()
    world = tmp_path / "demo-chat-1.world"
    left = Left(cursor, BOARD, "slack", world.name)
    with recorded(tmp_path, left):
        [record] = tmp_path.iterdir()
        content = record.read_text()
    killed = tmp_path / "demo-chat-1.json"
    asked = await make.asked()
    async with FakeSlack() as slack:
        user = slack.user("anna")
        slack.keep_in(world)
        slack.channel("shop", [user])
        slack.world.record(Call("auth.test", {}, "ok"))
        unseen = slack.user("zoe")
    killed.write_text(content)
    assert take_over(tmp_path, "trello", lambda _: True) is None
    assert take_over(tmp_path, "slack", lambda _: False) is None
    assert take_over(tmp_path, "slack", lambda path: path == world) == left
    assert not killed.exists()
    assert await clean_up(rt, make.owner, tmp_path, remove, left) == ""
    assert (await rt.read_model.job(asked.number)).status is Status.WAITING_FOR_INPUT
    restored = read_state(world)
    async with FakeSlack(world=restored) as again:
        assert again.api_url == slack.api_url
        assert user in again.world.users
        assert unseen not in again.world.users, "neither the app nor a person was told of it"
        assert [room.name for room in again.world.channels.values()] == ["shop"]
        assert again.user("ben") not in (user, "")
    with recorded(tmp_path, left):
        pass
    assert [*tmp_path.iterdir()] == []


class RunningForever:
    """Draftsman that does not exit."""

    async def outlives(self, work: Any) -> Any:
        """Return the result of the work."""
        return await work


async def test_events_of_jobs_of_a_killed_demo_are_no_steps_of_the_next(
    rt: Runtime, make: Factory, people: People, capsys: pytest.CaptureFixture[str]
) -> None:
    old = await make.queued()
    cursor = await rt.read_model.end_cursor()
    await rt.job_control.cancel(old, people.olga, "the demo ended", force=True)
    new = await make.queued()
    up: Any = RunningForever()
    following = asyncio.create_task(_follow(rt, cursor, Steps(CommandOutput(color=False)), up))
    printed: list[str] = []

    async def has_printed() -> bool:
        printed.append(capsys.readouterr().out)
        return f"D-{new}" in "".join(printed)

    await until(has_printed, "the step of the new job")
    await rt.job_control.cancel(new, people.olga, "seen", force=True)
    following.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await following
    assert f"D-{old} " not in "".join(printed)
