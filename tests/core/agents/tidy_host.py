"""A host on which `tidy` runs, and whose worker can be killed between two of its messages."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from copy import copy
from pathlib import Path
from typing import Any, Self

from draftsman.agent_runs.clones.source import RepoSource
from draftsman.agent_runs.clones.workspace import Workspace
from draftsman.agent_runs.protocol.agent_messages import CheckpointMessage, ResultMessage
from draftsman.agent_runs.protocol.protocol import AnswerBody
from draftsman.settings.agents import AgentSettings
from draftsman.settings.profiles import ProfileSettings
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
        self.source = source
        self.profile = profile
        self.name = "host"
        self.runs = 0
        self.checkpoint: Any = None
        self.bundle: bytes | None = None
        self.base: str | None = None
        self.answers: dict[str, AnswerBody] = {}
        self.workspace: Workspace
        self.heard: AgentTranscript
        self.again = False  # whether the home of the next run has a file that says so

    def fork(self, name: str) -> Self:
        """Return an independent copy of this host."""
        host = copy(self)
        host.name = name
        return host

    async def run(
        self, answers: dict[str, str | None], killed_at: int | None = None
    ) -> AsyncGenerator[Message]:
        """Yield the messages of a run.

        Its worker is killed when that many stages have been stored, before it stores the next
        checkpoint or the result.
        """
        self.runs += 1
        stored = 0
        self.workspace = workspace = await Workspace.prepare(
            self.source.parent / f"{self.name}{self.runs}",
            RepoSource.of(str(self.source)),
            job=1,
            run=self.runs,
            base=self.base,
            bundle=self.bundle,
        )
        self.base = workspace.base_sha
        (workspace.home / "again").touch() if self.again else None
        start = start_in(workspace, self.profile, checkpoint=self.checkpoint, answers=self.answers)
        reply = reply_with(answers)
        self.heard = AgentTranscript()
        async with aclosing(
            listen(TIDY, start, workspace.path, workspace.home, reply, self.heard)
        ) as messages:
            async for message in messages:
                if isinstance(message, CheckpointMessage | ResultMessage):
                    if stored == killed_at:
                        return
                    stored += 1
                if isinstance(message, CheckpointMessage):
                    snapshot = await workspace.snapshot("work in progress")
                    self.bundle = await workspace.bundle(snapshot)
                    self.checkpoint = message.data
                yield message
