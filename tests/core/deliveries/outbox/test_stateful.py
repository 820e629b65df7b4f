"""In any order of events: the newest status is sent, in order, and each copy is settled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftsman.database.database import Database
from draftsman.deliveries.delivery import (
    ClaimedDelivery,
    DeliveryKind,
    DeliveryOutcome,
    DeliveryStatus,
    Receipt,
    Unconfirmed,
)
from draftsman.errors import Failure
from draftsman.jobs.job import TERMINAL, Source, Status
from draftsman.jobs.runs.outcome import Done
from draftsman.jobs.runs.run import ClaimedJob
from draftsman.people.actor import Actor
from draftsman.runtime import ENUMS, Runtime, wire
from draftsman.settings import Settings
from draftsman_testing.factories import QUESTION, Factory
from draftsman_testing.outbox import claim, deliveries_of

OWNER = Actor(Source.CLI, "root", "Root", person="root", owner=True)
TARGETS = ("log", "slack:C1", "slack:C2/9.5")
ENDS: dict[str, Callable[[int], DeliveryOutcome]] = {
    "sent": lambda seq: Receipt(f"ref-{seq}"),
    "cut": lambda _: Unconfirmed("cut"),
    "failed": lambda _: Failure("busy", http_status=500),
    "dead": lambda _: Failure("gone", declared="PERMANENT"),
}
STEPS = st.lists(
    st.sampled_from(["move", "ask", "answer", "notice", "cancel", "redeliver"])
    | st.tuples(st.just("take"), st.sampled_from(["log", "slack"]))
    | st.tuples(st.just("end"), st.sampled_from(sorted(ENDS)), st.integers(0, 9)),
    max_size=30,
)


class World:
    """A job, its targets, and the claims of a dispatcher."""

    def __init__(self, rt: Runtime, number: int) -> None:
        self.rt = rt
        self.make = Factory(rt, OWNER)
        self.number = number
        self.work: ClaimedJob | None = None
        self.held: list[ClaimedDelivery] = []
        self.order: dict[str, list[int]] = {}
        self.revived: set[int] = set()
        self.notices = 0
        self.questions = 0

    async def step(self, kind: Any) -> None:
        """Take a step, if it is possible now."""
        match kind:
            case ("take", channel):
                for item in await claim(self.rt, channel):
                    assert item.thread_key not in {held.thread_key for held in self.held}
                    self.held.append(item)
            case ("end", how, nth) if self.held:
                await self._end(self.held.pop(nth % len(self.held)), how)
            case str():
                status = (await self.rt.read_model.job(self.number)).status
                await self._job(kind, status)

    async def _end(self, item: ClaimedDelivery, how: str) -> None:
        done = await self.rt.delivery_sender.record(item, ENDS[how](item.seq))
        if done is DeliveryStatus.SENT and item.seq not in self.revived:
            self.order.setdefault(item.thread_key, []).append(item.seq)

    async def _job(self, kind: str, status: Status) -> None:
        match kind:
            case "move" if status in (Status.QUEUED, Status.RESUMED):
                self.work = await self.make.running(self.number)
            case "move" if status is Status.RUNNING and self.work:
                await self.rt.settlement.outcome(self.work, Done({}))
            case "ask" if status is Status.RUNNING and self.work:
                item = QUESTION.model_copy(update={"text": f"Question {self.questions}?"})
                await self.rt.asking.ask(self.work.lease, item)
                self.questions += 1
            case "answer" if status is Status.WAITING_FOR_INPUT:
                await self.make.answer(self.number, "red", n=self.questions)
            case "notice":
                self.notices += 1
                await self.rt.outbox.notice(self.number, str(self.notices), "hello")
            case "cancel" if status not in TERMINAL:
                await self.rt.job_control.cancel(self.number, OWNER, force=True)
            case "redeliver":
                if seqs := await self.rt.outbox.dead_letters(self.number):
                    self.revived |= set(await self.rt.outbox.redeliver(seqs, OWNER))

    async def drain(self) -> None:
        """Send all that is left."""
        while True:
            for item in self.held:
                await self._end(item, "sent")
            self.held = [
                item for channel in ("log", "slack") for item in await claim(self.rt, channel)
            ]
            if not self.held:
                return

    async def check(self) -> None:
        """Compare the deliveries with the expected state."""
        assert not [name for name, bad in (await self.rt.read_model.invariants()).items() if bad]
        for seqs in self.order.values():
            assert seqs == sorted(seqs)

    async def check_drained(self) -> None:
        """Check the end state: nothing waits, and no copy shows a closed question as open."""
        await self.check()
        deliveries = await deliveries_of(self.rt, self.number)
        over = {DeliveryStatus.SENT, DeliveryStatus.SUPERSEDED, DeliveryStatus.DEAD_LETTER}
        assert {one.status for one in deliveries} <= over
        settled = {one.original for one in deliveries if one.kind is DeliveryKind.QUESTION_CLOSED}
        for delivery in deliveries:
            if delivery.kind is DeliveryKind.QUESTION and delivery.status is DeliveryStatus.SENT:
                question = await self.rt.questions.get(self.number, delivery.question or 0)
                assert (question.status == "open") != (delivery.seq in settled)


@pytest.fixture
def run(settings: Settings, database_url: str) -> Iterator[Callable[[list[Any]], None]]:
    """Give a function that plays steps; hypothesis calls it outside of an event loop."""
    hasty = settings.model_copy(
        update={
            "notifications": settings.notifications.model_copy(
                update={"base_delay": 1e-9, "max_delay": 1e-9, "fallback": "log"}
            )
        }
    )
    with asyncio.Runner() as runner:
        db = Database(database_url, settings.database, enums=ENUMS)
        runner.run(db.open())
        rt = wire(hasty, db, False)

        async def play(steps: list[Any]) -> None:
            number = await Factory(rt, OWNER).queued(notify=TARGETS)
            world = World(rt, number)
            for step in steps:
                await world.step(step)
            await world.check()
            await world.drain()
            await world.check_drained()

        yield lambda steps: runner.run(play(steps))
        runner.run(db.close())


def test_any_order_of_events_keeps_the_outbox_invariants(run: Callable[[list[Any]], None]) -> None:
    @given(STEPS)
    def play(steps: list[Any]) -> None:
        run(steps)

    play()
