"""Notifications through a channel with limits, refusals and overload, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from draftsman.deliveries.channel import Channel
from draftsman.deliveries.delivery import TARGET_GONE, File, Message, RateLimit, Receipt, SendResult
from draftsman.errors import Failure
from draftsman.jobs.job import Source, Status
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.people.actor import Actor
from draftsman.runtime import open_runtime
from draftsman.settings import Settings
from draftsman.worker.registry.service import SessionLock

OWNER: Final = Actor(Source.CLI, "root", "Root", person="root", owner=True)
SAYS: Final[dict[str, SendResult]] = {
    "fine": Receipt("1", absent=("elsewhere",)),
    "closed": Failure("no", code=TARGET_GONE, declared="PERMANENT"),
    "busy": Failure("busy", http_status=429, retry_after=0.01),
}
"""The response of each target."""
TOLD: Final = "tell"
"""The queue of the jobs with notifications."""


class LimitedChannel(Channel):
    """A channel with a fixed response for each target."""

    name = "slack"

    def limits(self, message: Message) -> Sequence[RateLimit]:
        return [RateLimit("slack#post", 0.001, 100)]

    async def send(self, message: Message) -> SendResult:
        return SAYS.get(message.target, SAYS["fine"])

    async def edit(self, message: Message) -> SendResult:
        return SAYS.get(message.target, SAYS["fine"])

    async def upload(self, message: Message, file: File) -> SendResult:
        return SAYS.get(message.target, SAYS["fine"])


async def deliver_notifications(settings: Settings, _: dict[str, int]) -> None:
    """Notify three targets of a job, redeliver refused messages, and retry the job with others."""
    async with open_runtime(settings) as rt:
        targets = tuple(f"slack:{name}" for name in SAYS)
        request = invocation(type="noop", queue=TOLD, notify=targets)
        number = (await rt.submissions.submit(request, OWNER)).number
        await rt.outbox.notice(number, "hello", "Hello")
        channel = LimitedChannel()
        conn = await rt.db.dedicated_connection()
        lock = SessionLock()
        await lock.hold(conn)
        await conn.close()
        await rt.delivery_sender.rescue([channel.name])
        await rt.delivery_sender.limits.pause(channel.name, 0.01, "refused")
        await rt.delivery_sender.resume(channel.name)
        while claimed := await rt.delivery_sender.claim(channel.name, free=100, share=100):
            for item in claimed:
                await rt.delivery_sender.record(item, await rt.delivery_sender.send(item, channel))
        await rt.delivery_sender.next_due(channel.name)
        await rt.outbox.targets(number)
        await rt.outbox.all()
        await rt.outbox.all(number)
        assert await rt.outbox.dead_letters()
        assert await rt.outbox.dead_letter_count()
        await rt.outbox.unnotified()
        await rt.outbox.redeliver(await rt.outbox.dead_letters(number), OWNER)
        await rt.job_control.cancel(number, OWNER)
        canceled = [
            job.number for job in await rt.finished_jobs.matching([Status.CANCELED], type="noop")
        ]
        assert number in canceled
        await rt.job_control.retry(number, OWNER)
