"""The worker's side of the talk with one agent: every message kept before it is acknowledged."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from pathlib import PurePosixPath
from typing import Any, Final

from draftsman.domain.question import NoAnswer, QuestionSpec
from draftsman.domain.quota import Quota, is_quota
from draftsman.domain.reserved_names import AGENT_KIND, Owner, check_artifact, check_key
from draftsman.errors import Failure, UsageError
from draftsman.handlers.clone.workspace import Workspace
from draftsman.handlers.context import RunContext
from draftsman.handlers.run_agent.protocol import (
    AckMessage,
    AnswerMessage,
    ApproveMessage,
    ArtifactMessage,
    AskMessage,
    CheckpointMessage,
    ErrorMessage,
    EventMessage,
    FromAgent,
    LogMessage,
    MalformedLine,
    ParkMessage,
    RefusedMessage,
    ResultMessage,
    StepMessage,
    ToAgent,
    UsageMessage,
    encode,
    parse_line,
)
from draftsman.handlers.run_agent.quota_tracker import QuotaTracker, size_of, watch_disk
from draftsman.handlers.subprocesses.process import AgentProcess

PARK_TIMEOUT: Final = 10.0
"""Seconds that a parked agent gets to save a checkpoint and exit."""
TERMINATE_TIMEOUT: Final = 5.0
"""Seconds between SIGTERM and SIGKILL."""
MAX_MODELS: Final = 20
"""Names of models that the usage of a run has at most."""


class AgentSession:
    """What was said so far; `saved` is the commit of the checkpoint that the run began with.

    After `listen`, one of `result`, `error` and `question` tells how it ended, or none of them
    where the agent just went away.
    """

    def __init__(
        self,
        ctx: RunContext,
        space: Workspace,
        repo: dict[str, Any] | None = None,
        saved: str | None = None,
    ) -> None:
        self.result: ResultMessage | None = None
        self.error: Failure | None = None
        self.question: QuestionSpec | None = None
        self.exit_code: int | None = None
        self._ctx = ctx
        self._space = space
        self._repo = repo
        self._saved = saved
        self._allowance = QuotaTracker(ctx)
        self._usage: dict[str, Any] = {}
        self._ending: asyncio.Task[None] | None = None

    async def listen(self, process: AgentProcess) -> None:
        """Hear the agent until it exits."""
        try:
            async for line in process.lines():
                await self._hear(process, line)
            self.exit_code = await process.wait()
        finally:
            if self._ending is not None:
                self._ending.cancel()

    async def park(self, process: AgentProcess, id: str | None) -> None:
        """Tell the agent to save and exit; end it when it does not."""
        await process.send(encode(ParkMessage(id=id)))
        self._end_soon(process)

    async def watch_disk(self, process: AgentProcess) -> None:
        """Kill the agent once the files of its run are over their quota."""
        self._fail(process, await watch_disk(self._space.folder, self._ctx.settings.quotas))

    async def patch(self) -> bytes | None:
        """Return the patch of the latest checkpoint: of the tree that the next run starts with.

        None where it is larger than an artifact may be.
        """
        try:
            return await self._space.patch(self._saved) if self._saved else b""
        except Failure as error:
            if error.code != "too_large":
                raise
            self._ctx.log(f"[no diff] {error}")
            return None

    async def patch_sha256(self) -> str | None:
        """Return the SHA-256 of that patch, if there is one."""
        patch = await self.patch()
        return None if patch is None else hashlib.sha256(patch).hexdigest()

    def _fail(self, process: AgentProcess, failure: Failure) -> None:
        """End the run at once because of a quota."""
        self.error, self.question = failure, None
        self._ctx.log(f"[ended] {failure}")
        process.kill()

    def _end_soon(self, process: AgentProcess) -> None:
        if self._ending is None:
            self._ending = asyncio.create_task(_end(process))

    async def _hear(self, process: AgentProcess, line: bytes | MalformedLine) -> None:
        if is_quota(self.error):
            return
        try:
            self._allowance.message()
            await self._heed(process, line)
        except Failure as error:
            if not is_quota(error):
                raise
            self._fail(process, error)

    async def _heed(self, process: AgentProcess, line: bytes | MalformedLine) -> None:
        message = line if isinstance(line, MalformedLine) else parse_line(line)
        if isinstance(message, MalformedLine):
            self._ctx.log(f"[refused] {message.reason}")
            await self._send(process, RefusedMessage(id=message.id, reason=message.reason))
            return
        if isinstance(message, AskMessage | ApproveMessage):
            await self._asked(process, message)
            return
        try:
            await self._keep(process, message)
        except (UsageError, Failure) as error:
            if isinstance(error, Failure) and is_quota(error):
                raise
            self._ctx.log(f"[refused] {message.type}: {error}")
            await self._send(process, RefusedMessage(id=message.id, reason=str(error)))
            return
        if message.id is not None:
            await self._send(process, AckMessage(id=message.id))
        if isinstance(message, ResultMessage | ErrorMessage):
            self._end_soon(process)

    async def _asked(self, process: AgentProcess, message: AskMessage | ApproveMessage) -> None:
        """Answer what is known; else park the agent, and ask people once it is gone."""
        item = message.question()
        try:
            check_key(item.key, Owner.HANDLER, "question")
            self._ctx.check(item)
        except UsageError as error:
            self._ctx.log(f"[refused] {message.type}: {error}")
            await self._send(process, RefusedMessage(id=message.id, reason=str(error)))
            return
        known = await self._ctx.find_answer(item, self.patch_sha256)
        if known is None:
            if self.question is None:
                await self._allowance.spend(Quota.QUESTIONS)
                self.question = item
            await self.park(process, message.id)
            return
        if isinstance(known, NoAnswer):
            reply = AnswerMessage(id=message.id, key=message.key, outcome=known.outcome)
        else:
            reply = AnswerMessage(
                id=message.id,
                key=message.key,
                outcome=known.outcome,
                value=known.value,
                text=known.text,
                by=known.by,
                at=known.at,
                reason=known.reason,
            )
        await self._send(process, reply)

    async def _keep(self, process: AgentProcess, message: FromAgent) -> None:
        match message:
            case CheckpointMessage():
                await self._checkpoint(process, message)
            case StepMessage():
                await self._step(message)
            case EventMessage():
                await self._allowance.spend(Quota.EVENTS)
                kind = f"{AGENT_KIND}{message.kind}"
                await self._ctx.event(kind, message.payload, Owner.WORKER)
            case LogMessage():
                await self._ctx.log_stream(f"{message.text}\n")
            case ArtifactMessage():
                await self._artifact(process, message)
            case UsageMessage():
                await self._add(message)
            case ResultMessage():
                self.result = message
            case ErrorMessage():
                self.error = Failure(
                    message.message,
                    origin="agent",
                    code=message.code,
                    retry_after=message.retry_after,
                    declared=message.error_class,
                )
            case _:
                raise UsageError(f"{message.type} is not kept")

    async def _step(self, message: StepMessage) -> None:
        check_key(message.key, Owner.HANDLER, "step")
        await self._allowance.spend(Quota.STEPS, size_of(message.result))
        await self._ctx.note_step(message.key, message.invocation_id)
        if message.state == "done":
            await self._ctx.finish_step(message.key, message.result)

    async def _artifact(self, process: AgentProcess, message: ArtifactMessage) -> None:
        name = message.name or PurePosixPath(message.path).name
        kind = "report" if name.endswith(".md") else "file"
        check_artifact(name, kind, Owner.HANDLER)
        async with process.frozen():
            data = await self._space.read_artifact(message.path)
        await self._allowance.spend(Quota.ARTIFACTS, len(data))
        await self._ctx.artifact(name, data, kind)

    async def _checkpoint(self, process: AgentProcess, message: CheckpointMessage) -> None:
        """Keep the agent's state with a bundle of the tree as it is now, in one transaction."""
        async with process.frozen():
            snapshot = await self._space.snapshot(f"{self._ctx.job.name}: work in progress")
        bundle = await self._space.bundle(snapshot) if snapshot.files_changed else None
        data = {"agent": message.data, "base_sha": self._space.base_sha}
        data |= {"repo": self._repo} if self._repo else {}
        size = size_of(message.data) + len(bundle or b"")
        await self._allowance.spend(Quota.CHECKPOINTS, size)
        await self._ctx.checkpoint(data, bundle)
        self._saved = snapshot.commit

    async def _add(self, message: UsageMessage) -> None:
        for name in ("input_tokens", "output_tokens", "cost_usd"):
            self._usage[name] = self._usage.get(name, 0) + getattr(message, name)
        models = {*self._usage.get("models", ())}
        if message.model and len(models) < MAX_MODELS:
            self._usage["models"] = sorted({*models, message.model})
        await self._ctx.usage(self._usage)

    async def _send(self, process: AgentProcess, message: ToAgent) -> None:
        await process.send(encode(message))


async def _end(process: AgentProcess) -> None:
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(PARK_TIMEOUT)
        process.terminate()
        await asyncio.sleep(TERMINATE_TIMEOUT)
        process.kill()
