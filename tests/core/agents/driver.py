"""A minimal worker: starts an agent and sends the answers of a test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from draftsman.agent_runs.clones.workspace import Workspace
from draftsman.agent_runs.protocol.agent_messages import ApproveMessage, AskMessage, FromAgent
from draftsman.agent_runs.protocol.codec import encode, parse_line
from draftsman.agent_runs.protocol.protocol import (
    AckMessage,
    AnswerMessage,
    ParkMessage,
    Profile,
    RefusedMessage,
    StartMessage,
    ToAgent,
)
from draftsman.sandbox.processes.process import AgentProcess, MalformedLine
from draftsman.sandbox.run_sandbox import open_run_sandbox
from draftsman.sandbox.sandbox_plan import RunSandbox
from draftsman.settings.agents import AgentSettings
from draftsman.settings.profiles import ProfileSettings
from draftsman.settings.sandbox import SandboxSettings

DEADLINE = 60.0
Reply = Callable[[FromAgent], ToAgent | None]
Message = FromAgent | MalformedLine


@dataclass
class AgentTranscript:
    """The messages of an agent, and its exit."""

    messages: list[Message] = field(default_factory=list)
    log: bytes = b""
    code: int = -1
    sandbox: RunSandbox | None = None

    def of(self, kind: type) -> list[Any]:
        return [message for message in self.messages if isinstance(message, kind)]


def reply_with(answers: Mapping[str, str | None]) -> Reply:
    """Answer questions by their keys (None: expired), park the others, ack all other messages."""

    def reply(message: FromAgent) -> ToAgent | None:
        if isinstance(message, AskMessage | ApproveMessage):
            if message.key not in answers:
                return ParkMessage(id=message.id)
            value = answers[message.key]
            outcome = "expired" if value is None else "answered"
            return AnswerMessage(id=message.id, key=message.key, outcome=outcome, value=value)
        return AckMessage(id=message.id) if message.id else None

    return reply


async def listen(
    agent: AgentSettings,
    start: StartMessage,
    folder: Path,
    home: Path,
    reply: Reply,
    transcript: AgentTranscript,
) -> AsyncGenerator[Message]:
    """Yield the agent's messages; each is replied to before the next is read."""

    async def log(chunk: bytes) -> None:
        transcript.log += chunk

    transcript.sandbox = sandbox = await open_run_sandbox(SandboxSettings(), repo=folder, home=home)
    start = start.model_copy(update={"workspace": sandbox.sandbox_path(folder.resolve())})
    async with (
        asyncio.timeout(DEADLINE),
        await AgentProcess.start(
            agent, cwd=folder, home=home, lease=DEADLINE, on_stderr=log, sandbox=sandbox
        ) as process,
    ):
        await process.send(encode(start))
        async for line in process.lines():
            message = line if isinstance(line, MalformedLine) else parse_line(line)
            transcript.messages.append(message)
            yield message
            if isinstance(message, MalformedLine):
                await process.send(encode(RefusedMessage(id=message.id, reason=message.reason)))
            elif answer := reply(message):
                await process.send(encode(answer))
        transcript.code = await process.wait()
    sandbox.close()


async def run_agent(
    agent: AgentSettings, start: StartMessage, folder: Path, home: Path, reply: Reply
) -> AgentTranscript:
    """Return the agent's messages and its exit, once it has exited."""
    transcript = AgentTranscript()
    async for _ in listen(agent, start, folder, home, reply, transcript):
        pass
    return transcript


def start_in(workspace: Workspace, profile: ProfileSettings, **more: Any) -> StartMessage:
    """Return the first message for an agent in this workspace."""
    return StartMessage(
        job=f"D-{workspace.job}",
        run=workspace.run,
        repo=workspace.source.location,
        workspace=str(workspace.path),
        branch=workspace.branch,
        base_sha=workspace.base_sha,
        profile=Profile.of(profile),
        **more,
    )
