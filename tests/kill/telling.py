"""Telling people, step by step, through a channel that has limits, refuses, and is too busy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from draftsman.domain.actor import Actor
from draftsman.domain.delivery import (
    TARGET_GONE,
    ChannelName,
    Ended,
    File,
    Limit,
    Message,
    Receipt,
)
from draftsman.domain.job import Source, Status
from draftsman.errors import Failure
from draftsman.runtime import open_runtime
from draftsman.services.intake import invocation
from draftsman.services.presence import SessionLock
from draftsman.settings import Settings

OWNER: Final = Actor(Source.CLI, "root", "Root", person="root", owner=True)
SAYS: Final[dict[str, Ended]] = {
    "fine": Receipt("1", absent=("elsewhere",)),
    "closed": Failure("no", code=TARGET_GONE, declared="PERMANENT"),
    "busy": Failure("busy", http_status=429, retry_after=0.01),
}
"""What each target answers."""
TOLD: Final = "tell"
"""The queue of the jobs that are told of."""


class Account:
    """A channel that says what its target always says."""

    name = ChannelName.SLACK

    def limits(self, message: Message) -> Sequence[Limit]:
        return [Limit("slack#post", 0.001, 100)]

    def bucket(self, message: Message, failure: Failure) -> str:
        return f"slack:{message.target}"

    async def send(self, message: Message) -> Ended:
        return SAYS.get(message.target, SAYS["fine"])

    async def find(self, message: Message) -> Ended | None:
        return None

    async def edit(self, message: Message) -> Ended:
        return SAYS.get(message.target, SAYS["fine"])

    async def upload(self, message: Message, file: File) -> Ended:
        return SAYS.get(message.target, SAYS["fine"])

    async def close(self) -> None:
        pass


async def telling(settings: Settings, _: dict[str, int]) -> None:
    """Tell three targets of a job, send again what was refused, and retry the job with others."""
    async with open_runtime(settings) as rt:
        targets = tuple(f"slack:{name}" for name in SAYS)
        wanted = invocation(type="noop", queue=TOLD, notify=targets)
        number = (await rt.intake.submit(wanted, OWNER)).number
        await rt.outbox.notice(number, "hello", "Hello")
        channel = Account()
        conn, lock = await rt.db.dedicated(), SessionLock()
        await lock.hold(conn)
        await conn.close()
        await rt.deliver.reclaim([channel.name])
        await rt.deliver.pause(channel.name, 0.01, "refused")
        await rt.deliver.let_go(channel.name)
        while taken := await rt.deliver.claim(channel.name, free=100, share=100):
            for item in taken:
                await rt.deliver.record(item, await rt.deliver.send(item, channel))
        await rt.deliver.next_due(channel.name)
        await rt.outbox.targets(number)
        await rt.outbox.all()
        await rt.outbox.all(number)
        assert await rt.outbox.dead()
        assert await rt.outbox.dead_count()
        await rt.outbox.unnotified()
        await rt.outbox.redeliver(await rt.outbox.dead(number), OWNER)
        await rt.operate.cancel(number, OWNER)
        ended = [job.number for job in await rt.retries.matching([Status.CANCELED], type="noop")]
        assert number in ended
        async for done in rt.retries.retry([number], OWNER):
            assert done.error is None
