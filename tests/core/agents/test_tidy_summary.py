"""What the agent `tidy` says of validators that did not run."""

from __future__ import annotations

from pathlib import Path

import pytest

from draftsman.handlers.protocol import Result
from draftsman.handlers.workspace import Workspace
from draftsman.settings import AgentSettings, CommandSettings, FixSettings, ProfileSettings
from tests.core.agents.driver import answering, converse, start_in
from tests.core.loops.agents import make_repository

TIDY = AgentSettings(command=("{python}", "-m", "draftsman.agents.tidy"))


@pytest.mark.parametrize(
    ("validators", "says"),
    [
        ((), "no validators ran: give the repository validation_commands"),
        (
            ProfileSettings().validation_commands,
            "no validators ran: the profile is for another kind of files",
        ),
    ],
    ids=["none", "for other files"],
)
async def test_what_did_not_run_does_not_pass(
    validators: tuple[CommandSettings, ...], says: str, tmp_path: Path
) -> None:
    source = make_repository(tmp_path / "notes")
    fix = FixSettings(name="one", command=("sed", "-i", "s/one/ONE/", "a.txt"))
    profile = ProfileSettings(validation_commands=validators, fix_commands=(fix,))
    space = await Workspace.prepare(tmp_path / "data", str(source), job=1, run=1)
    reply = answering({"apply": "safe fixes"})
    heard = await converse(TIDY, start_in(space, profile), space.path, space.home, reply)
    [result] = heard.of(Result)
    assert result.summary.startswith(f"safe fixes applied to 1 file; {says}")
