"""A host on which `tidy` runs, and whose worker can be killed between two of its messages."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any

from draftsman.handlers.clone.workspace import Workspace
from draftsman.handlers.run_agent.protocol import (
    AnswerBody,
    CheckpointMessage,
)
from draftsman.settings import AgentSettings, ProfileSettings
from tests.core.agents.driver import (
    AgentTranscript,
    Message,
    listen,
    reply_with,
    start_in,
)

TIDY = AgentSettings(command=("{python}", "-m", "draftsman.agents.tidy"))
RUFF = ProfileSettings()


class Host:
    """A separate machine whose worker is killed: only the state in the database survives."""

    def __init__(self, source: Path, profile: ProfileSettings = RUFF) -> None:
        self.source, self.profile = source, profile
        self.runs = 0
        self.checkpoint: Any = None
        self.bundle: bytes | None = None
        self.base: str | None = None
        self.answers: dict[str, AnswerBody] = {}
        self.workspace: Workspace
        self.again = False  # whether the home of the next run has a file that says so

    async def run(self, answers: dict[str, str | None]) -> AsyncGenerator[Message]:
        self.runs += 1
        self.workspace = workspace = await Workspace.prepare(
            self.source.parent / f"host{self.runs}",
            str(self.source),
            job=1,
            run=self.runs,
            base=self.base,
            bundle=self.bundle,
        )
        self.base = workspace.base_sha
        (workspace.home / "again").touch() if self.again else None
        start = start_in(workspace, self.profile, checkpoint=self.checkpoint, answers=self.answers)
        reply, heard = reply_with(answers), AgentTranscript()
        async with aclosing(
            listen(TIDY, start, workspace.path, workspace.home, reply, heard)
        ) as messages:
            async for message in messages:
                if isinstance(message, CheckpointMessage):
                    snapshot = await workspace.snapshot("work in progress")
                    self.bundle = await workspace.bundle(snapshot)
                    self.checkpoint = message.data
                yield message
