"""Summary of the agent `tidy` about validators that did not run."""

from __future__ import annotations

from pathlib import Path

import pytest

from draftsman.agent_runs.clones.source import RepoSource
from draftsman.agent_runs.clones.workspace import Workspace
from draftsman.agent_runs.protocol.agent_messages import ResultMessage
from draftsman.settings.agents import AgentSettings
from draftsman.settings.profiles import CommandSettings, FixSettings, ProfileSettings
from tests.core.agents.driver import reply_with, run_agent, start_in
from tests.core.worker.agent_jobs import make_repository

TIDY = AgentSettings(command=("{python}", "-m", "draftsman.agents.tidy"))


@pytest.mark.parametrize(
    ("validators", "message"),
    [
        ((), "no validators ran: add validation_commands to the repository's profile"),
        (
            ProfileSettings().validation_commands,
            "no validators ran: the repository has no files that the profile applies to",
        ),
    ],
    ids=["none", "for other files"],
)
async def test_a_command_that_did_not_run_does_not_pass(
    validators: tuple[CommandSettings, ...], message: str, tmp_path: Path
) -> None:
    source = make_repository(tmp_path / "notes")
    fix = FixSettings(name="one", command=("sed", "-i", "s/one/ONE/", "a.txt"))
    profile = ProfileSettings(validation_commands=validators, fix_commands=(fix,))
    space = await Workspace.prepare(tmp_path / "data", RepoSource.of(str(source)), job=1, run=1)
    reply = reply_with({"apply": "safe fixes"})
    transcript = await run_agent(TIDY, start_in(space, profile), space.path, space.home, reply)
    [result] = transcript.of(ResultMessage)
    assert result.summary.startswith(f"safe fixes applied to 1 file; {message}")
