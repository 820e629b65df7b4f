"""From a label in Trello to the merge; everything is killed between each two steps.

With a scripted agent, and with the real Codex.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from draftsman.database.database import Connection
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman_tui.cli.demo.scripted_model import ScriptedModel, Turn, scripted_model
from tests.acceptance.conftest import _patience, installation, installations
from tests.acceptance.processes import Installation
from tests.acceptance.pull_request_story import label_to_merge
from tests.acceptance.story_processes import Story, command_of, services
from tests.acceptance.test_pull_request_story import (
    test_a_label_is_merged_although_all_processes_are_killed as test_with_a_scripted_agent,
)
from tests.acceptance.test_pull_request_story import (
    test_changes_requested_on_a_card_are_merged_although_all_processes_are_killed as test_changes,
)
from tests.soak.soak_codex import KEY, program
from tests.support.fake_model import FREE_KEYS

__all__ = [
    "_patience",
    "installation",
    "installations",
    "program",
    "test_changes",
    "test_with_a_scripted_agent",
]
DONE = "all done"


@pytest.fixture
def every() -> int:
    """Provide one moment for each kill."""
    return 1


class StoryModel(ScriptedModel):
    """A model that makes the call of the step, and ends its turn after the result of the call."""

    def turn(self, results: int, conversation: list[dict[str, Any]]) -> Turn:
        """Return the call, unless the last item is its result."""
        if str(conversation[-1].get("type")).endswith("_call_output"):
            return {"text": DONE}
        return self.script[-1]


@pytest.mark.timeout(1200)
async def test_a_label_is_merged_although_everything_is_killed_between_each_two_steps(
    installation: Installation,
    program: str,
    rt: Runtime,
    conn: Connection,
    owner: Actor,
    tmp_path: Path,
) -> None:
    with scripted_model([], StoryModel) as model:

        def next_word(word: str) -> None:
            model.script = [{"tool": "exec_command", "args": {"cmd": command_of(word)}}]

        async with services(tmp_path / "forge") as fakes:
            always = itertools.repeat(True)
            story = Story(fakes, installation, rt, conn, lambda: next(always), next_word)
            story.env["KEY_OF_TEST"] = KEY
            story.configure(
                agents__codex__command=[program, "app-server", "-c", 'model="fake-1"'],
                agents__codex__gateway="model",
                gateways__model__provider="openai",
                gateways__model__base_url=model.url,
                gateways__model__api_key__env="KEY_OF_TEST",
                **FREE_KEYS,
            )
            await label_to_merge(story, owner)
    last = json.dumps(model.conversations[-1])
    assert "And three?" in last
    assert "E  assert 1 == 2" in last, "the session of the first run goes on in the follow-ups"
    assert story.killed >= 12
