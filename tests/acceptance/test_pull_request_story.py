"""From a label in Trello to the merge, with a program that speaks the protocol of Codex."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from draftsman.database.database import Connection
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from tests.acceptance.processes import Installation
from tests.acceptance.pull_request_story import label_to_merge
from tests.acceptance.story_processes import WORDS, Story, command_of, services
from tests.support import codex_agent

EVERY = 7
"""Moments for each kill; `make soak` kills at each, with the program of Codex."""


@pytest.mark.slow(
    fast="tests/core/forges/follow_ups/test_follow_ups.py"
    "::test_a_pull_request_is_followed_up_to_its_approved_merge"
)
async def test_a_label_is_merged_although_all_processes_are_killed(
    installation: Installation, rt: Runtime, conn: Connection, owner: Actor, tmp_path: Path
) -> None:
    script: list[dict[str, Any]] = []
    for word in WORDS:
        script += [{"run": command_of(word)}, {"say": "PROMPTS", "continues": True}]
    async with services(tmp_path / "forge") as fakes:
        moments = itertools.cycle(number == EVERY - 1 for number in range(EVERY))
        story = Story(fakes, installation, rt, conn, lambda: next(moments))
        story.configure(
            agents__codex__command=[
                *("{python}", "-I", "-S", codex_agent.__file__, json.dumps(script), "app-server")
            ],
        )
        await label_to_merge(story, owner)
    job = await rt.read_model.job((await story.jobs("run_agent"))[-1].number)
    assert "E  assert 1 == 2" in (job.result or {})["summary"], "the session goes on"
    assert story.killed > 1
