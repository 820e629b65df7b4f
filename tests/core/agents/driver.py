"""A worker in small: starts an agent and answers it, as a test tells it to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from draftsman.handlers.process import AgentProcess
from draftsman.handlers.protocol import (
    Ack,
    Answer,
    Approve,
    Ask,
    FromAgent,
    Malformed,
    Park,
    Profile,
    Refused,
    Start,
    ToAgent,
    encode,
    parse_line,
)
from draftsman.handlers.sandbox.box import Box, open_box
from draftsman.handlers.workspace import Workspace
from draftsman.settings import AgentSettings, ProfileSettings, SandboxSettings

DEADLINE = 60.0
Reply = Callable[[FromAgent], ToAgent | None]
Message = FromAgent | Malformed


@dataclass
class Heard:
    """What an agent said and how it ended."""

    messages: list[Message] = field(default_factory=list)
    log: bytes = b""
    code: int = -1
    box: Box | None = None

    def of(self, kind: type) -> list[Any]:
        return [message for message in self.messages if isinstance(message, kind)]


def answering(answers: Mapping[str, str | None]) -> Reply:
    """Answer questions by their keys (None: nobody did), park the others, ack the rest."""

    def reply(message: FromAgent) -> ToAgent | None:
        if isinstance(message, Ask | Approve):
            if message.key not in answers:
                return Park(id=message.id)
            value = answers[message.key]
            outcome = "expired" if value is None else "answered"
            return Answer(id=message.id, key=message.key, outcome=outcome, value=value)
        return Ack(id=message.id) if message.id else None

    return reply


async def listen(
    agent: AgentSettings, start: Start, folder: Path, home: Path, reply: Reply, heard: Heard
) -> AsyncGenerator[Message]:
    """Yield the agent's messages, each replied to when the next one is wanted."""

    async def log(chunk: bytes) -> None:
        heard.log += chunk

    heard.box = box = await open_box(SandboxSettings(), repo=folder, home=home)
    start = start.model_copy(update={"workspace": box.inside(folder.resolve())})
    async with (
        asyncio.timeout(DEADLINE),
        await AgentProcess.start(
            agent, cwd=folder, home=home, lease=DEADLINE, on_stderr=log, box=box
        ) as process,
    ):
        await process.send(encode(start))
        async for line in process.lines():
            message = line if isinstance(line, Malformed) else parse_line(line)
            heard.messages.append(message)
            yield message
            if isinstance(message, Malformed):
                await process.send(encode(Refused(id=message.id, reason=message.reason)))
            elif said := reply(message):
                await process.send(encode(said))
        heard.code = await process.wait()
    box.close()


async def converse(
    agent: AgentSettings, start: Start, folder: Path, home: Path, reply: Reply
) -> Heard:
    """Return what the agent said, once it has ended."""
    heard = Heard()
    async for _ in listen(agent, start, folder, home, reply, heard):
        pass
    return heard


def start_in(workspace: Workspace, profile: ProfileSettings, **more: Any) -> Start:
    """Return the first message for an agent in this workspace."""
    return Start(
        job=f"D-{workspace.job}",
        run=workspace.run,
        repo=workspace.source.where,
        workspace=str(workspace.path),
        branch=workspace.branch,
        base_sha=workspace.base_sha,
        profile=Profile.of(profile),
        **more,
    )
