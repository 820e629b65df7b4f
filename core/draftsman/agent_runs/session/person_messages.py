"""Messages of people to the agent of a run: given once each, delivered with a checkpoint."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from draftsman.agent_runs.clones.workspace import Workspace
from draftsman.agent_runs.protocol.protocol import MessageBody, PersonMessage
from draftsman.agent_runs.request_text import shown_to_people
from draftsman.agent_runs.written_attachments import write_attachments
from draftsman.errors import LeaseLost
from draftsman.handlers.worker_run import WorkerRun
from draftsman.jobs.control.job_message import JobMessage


class PersonMessages:
    """The messages of a job, as an agent gets them between its start and its end.

    An agent that does not say which messages its state has is taken to have all that were sent. A
    message that it was started with counts as seen when it ends its work.
    """

    def __init__(self, run: WorkerRun, workspace: Workspace) -> None:
        self._run = run
        self._workspace = workspace
        self._delivered: dict[str, int] = {}
        self._started: set[int] = set()
        self._woken = asyncio.Event()
        self._listening = False

    async def for_start(self) -> tuple[MessageBody, ...]:
        """Return the messages that no checkpoint has."""
        messages = await self._take()
        self._started = {message.ordinal for message in messages}
        fields = await self._fields(messages)
        self._delivered |= {str(message.ordinal): message.ordinal for message in messages}
        return tuple(map(MessageBody.model_validate, fields))

    def listen(self) -> None:
        """Send messages as they arrive."""
        self._listening = True
        self.wake()

    def wake(self) -> None:
        """Look for new messages."""
        self._woken.set()

    async def relay(
        self, send: Callable[[PersonMessage], Awaitable[None]], is_open: Callable[[], bool]
    ) -> None:
        """Send new messages to an agent that listens, until canceled."""
        while True:
            await self._woken.wait()
            self._woken.clear()
            if self._listening and is_open():
                try:
                    messages = await self._take()
                    for message, fields in zip(messages, await self._fields(messages), strict=True):
                        if not is_open():  # the agent ended its work while files were downloaded
                            break
                        self._delivered[str(message.ordinal)] = message.ordinal
                        await send(PersonMessage.model_validate(fields))
                except LeaseLost:  # parked meanwhile, perhaps to continue after an answer
                    continue

    def ordinals(self, ids: Sequence[str] | None) -> list[int]:
        """Return the numbers of the sent messages with these ids; None means all."""
        return [n for id, n in self._delivered.items() if ids is None or id in ids]

    async def remain(self, ids: Sequence[str] | None) -> bool:
        """Return whether the work that has the messages `ids` misses another message."""
        seen = {*self.ordinals(ids), *self._started}
        return any(item.ordinal not in seen for item in await self._undelivered())

    def seen(self, ids: Sequence[str] | None) -> list[int]:
        """Return the numbers of the messages that an agent has seen that ended its work."""
        return sorted({*self.ordinals(ids), *self._started})

    async def deliver(self, ids: Sequence[str] | None) -> None:
        """Record that the messages are delivered by the end of the work."""
        if ordinals := self.seen(ids):
            deliver = self._run.services.run_messages.deliver
            await self._run.wait(deliver, self._run.job.lease, ordinals)

    async def _take(self) -> list[JobMessage]:
        """Return the messages that were not given yet, for this run.

        They are given only when they are sent: meanwhile, the run may wait for their files.
        """
        undelivered = await self._undelivered()
        messages = [item for item in undelivered if item.ordinal not in self._delivered.values()]
        if messages:
            hand = self._run.services.run_messages.hand
            await self._run.wait(hand, self._run.job.lease, [item.ordinal for item in messages])
        return messages

    async def _fields(self, messages: Sequence[JobMessage]) -> list[dict[str, object]]:
        """Return the messages for the agent, with their files in its home."""
        if not messages:
            return []
        ordinals = {message.ordinal for message in messages}
        files = await write_attachments(self._run, self._workspace, ordinals)
        return [
            _fields(message, shown_to_people(self._run.job, message.text))
            | {"attachments": [file for file in files if file.message == str(message.ordinal)]}
            for message in messages
        ]

    async def _undelivered(self) -> list[JobMessage]:
        read = self._run.services.run_messages.undelivered
        return await self._run.wait(read, self._run.job.number)


def _fields(item: JobMessage, text: str) -> dict[str, object]:
    by = item.sender_display_name or item.sender
    return {"id": str(item.ordinal), "text": text, "by": by, "at": item.created_at}
