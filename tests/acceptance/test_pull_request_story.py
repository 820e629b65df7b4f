"""From a label in Trello to the merge, with a program that speaks the protocol of Codex."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from draftsman.database.database import Connection
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from tests.acceptance.processes import Installation
from tests.acceptance.pull_request_story import changes_to_merge, label_to_merge
from tests.acceptance.story_processes import FILE, WORDS, Story, command_of, services
from tests.support import codex_agent


@pytest.fixture
def every() -> int:
    """Provide the moments for each kill; `make soak` kills at each."""
    return 7


@pytest.mark.slow(
    fast="tests/core/forges/follow_ups/test_follow_ups.py"
    "::test_a_pull_request_is_followed_up_to_its_approved_merge"
)
async def test_a_label_is_merged_although_all_processes_are_killed(
    installation: Installation,
    every: int,
    rt: Runtime,
    conn: Connection,
    owner: Actor,
    tmp_path: Path,
) -> None:
    async with scripted_story(installation, every, rt, conn, tmp_path) as story:
        await label_to_merge(story, owner)
    job = await rt.read_model.job((await story.jobs("run_agent"))[-1].number)
    assert "E  assert 1 == 2" in (job.result or {})["summary"], "the session goes on"
    assert story.killed > 1


@pytest.mark.slow(
    fast="tests/core/agent_runs/test_request_changes.py"
    "::test_the_agent_gets_the_comments_and_people_approve_the_new_diff"
)
async def test_changes_requested_on_a_card_are_merged_although_all_processes_are_killed(
    installation: Installation,
    every: int,
    rt: Runtime,
    conn: Connection,
    owner: Actor,
    tmp_path: Path,
) -> None:
    async with scripted_story(installation, every, rt, conn, tmp_path) as story:
        await changes_to_merge(story, owner)
    [job] = await story.jobs("run_agent")
    result = (await rt.read_model.job(job.number)).result or {}
    assert f"{FILE}:1: and then?" in result["summary"], "the agent has the request"
    assert story.killed > 1


@asynccontextmanager
async def scripted_story(
    installation: Installation, every: int, rt: Runtime, conn: Connection, folder: Path
) -> AsyncIterator[Story]:
    """Serve a story whose agent has a script, and in which everything is killed now and then."""
    script: list[dict[str, Any]] = []
    for word in WORDS:
        script += [{"run": command_of(word)}, {"say": "PROMPTS", "continues": True}]
    async with services(folder / "forge") as fakes:
        moments = itertools.cycle(number == every - 1 for number in range(every))
        story = Story(fakes, installation, rt, conn, lambda: next(moments))
        story.configure(
            agents__codex__command=[
                *("{python}", "-I", "-S", codex_agent.__file__, json.dumps(script), "app-server")
            ],
        )
        yield story
