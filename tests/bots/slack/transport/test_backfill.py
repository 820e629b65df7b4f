"""Replies that Slack did not deliver are found in the threads of open questions, once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from draftsman.questions.question import QuestionStatus
from draftsman.questions.question_spec import QuestionSpec
from draftsman.runtime import Runtime
from draftsman_bots.slack.health import BotHealth
from draftsman_bots.slack.questions import backfill
from draftsman_bots.slack.records.service import SlackThreads
from draftsman_bots.slack.service import Service
from draftsman_bots.slack.transport import dispatcher as app_events
from draftsman_bots.slack.transport import socket_mode
from draftsman_testing.factories import QUESTION, Factory
from draftsman_testing.slack import FakeSlack, Fault
from draftsman_testing.waits import until
from tests.bots.slack.transport.service_harness import serving
from tests.core.worker.workers import event_kinds

RATE_LIMITED = {"type": "app_rate_limited", "minute_rate_limited": 1, "api_app_id": "A1"}
READ = "conversations.replies"
BEN = "U-BEN"


@dataclass
class Scene:
    """A question in a thread, while Slack delivers no events."""

    rt: Runtime
    slack: FakeSlack
    make: Factory
    general: str
    job: int = 0
    root: str = ""

    async def ask(self, spec: QuestionSpec = QUESTION) -> None:
        """Ask a question, and wait until its message is recorded."""
        self.slack.subscribed -= {"message.channels", "app_mention"}
        work = await self.make.asked(spec, notify=(f"slack:{self.general}",))
        self.job = work.number
        await self.posted(1)
        self.root = self.slack.messages(self.general)[0]["ts"]

    async def posted(self, count: int) -> None:
        async def look() -> bool:
            return len(await SlackThreads(self.rt).question_messages()) == count

        await until(look, f"{count} question(s)")

    async def say(self, text: str) -> str:
        """Reply in the thread without an event."""
        ack = await self.slack.say(BEN, self.general, text, self.root)
        assert ack.copies == ()
        return ack.ts

    async def limited(self) -> None:
        assert (await self.slack.event(RATE_LIMITED)).acked

    async def answered(self, ordinal: int = 1) -> str:
        async def look() -> bool:
            question = await self.rt.questions.get(self.job, ordinal)
            return question.status is QuestionStatus.ANSWERED

        await until(look, "the answer")
        ended = (await self.rt.questions.get(self.job, ordinal)).resolution or {}
        return str(ended.get("value"))

    def reads(self) -> list[str]:
        return [call.outcome for call in self.slack.calls if call.method == READ]


@pytest.fixture
async def scene(patient: Runtime, slack: FakeSlack, make: Factory) -> Scene:
    slack.user("ben", id=BEN)
    return Scene(patient, slack, make, slack.channel("general", [BEN]))


@pytest.fixture
async def service(patient: Runtime, slack: FakeSlack, scene: Scene) -> AsyncIterator[Service]:
    async with serving(patient, slack) as service:
        yield service


async def test_delayed_reply_is_backfilled_once(scene: Scene, service: Service) -> None:
    await scene.ask()
    ts = await scene.say("blue")
    await scene.limited()
    assert await scene.answered() == "blue"
    before = await event_kinds(scene.rt, scene.job)
    scene.slack.subscribed.add("message.channels")
    assert (await scene.slack.echo(scene.general, ts)).acked
    assert await event_kinds(scene.rt, scene.job) == before, "its event changes nothing"
    _, values = await scene.rt.questions.of_job(scene.job)
    assert [item.source_event_id for item in values] == [
        f"slack:msg:{scene.slack.team}:{scene.general}:{ts}"
    ]


async def test_backfill_skips_own_messages_and_commands(scene: Scene, service: Service) -> None:
    await scene.ask()
    await scene.say(f"<@{scene.slack.bot_user}> cancel D-{scene.job}")
    await scene.say("2")
    await scene.limited()
    assert await scene.answered() == "blue"
    assert scene.slack.ephemerals(scene.general, BEN) == []


async def test_backfill_skips_ambiguous_replies(scene: Scene, service: Service) -> None:
    await scene.ask()
    first = scene.job
    target = f"slack:{scene.general}/{scene.root}"
    scene.job = (await scene.make.asked(QUESTION, notify=(target,))).number
    await scene.posted(2)
    await scene.say("2")
    await scene.make.answer(first, "red")
    await scene.say("1")
    await scene.limited()
    assert await scene.answered() == "red"


async def test_rate_limited_backfill_continues(scene: Scene, service: Service) -> None:
    await scene.ask()
    await scene.say("blue")
    scene.slack.faults.next(READ, Fault.RATE_LIMIT(0.05), times=2)
    await scene.limited()
    assert await scene.answered() == "blue"
    assert scene.reads() == ["rate limit", "rate limit", "ok"]


async def test_backfill_without_the_scope_is_reported_once(scene: Scene, service: Service) -> None:
    await scene.ask()
    scene.slack.world.scopes.discard("channels:history")
    await scene.limited()

    async def is_reported() -> bool:
        return "needs channels:history" in service.health.as_json()["notes"].get(
            backfill.HEALTH_KEY, ""
        )

    await until(is_reported, "the note")
    assert service.health.ready
    assert scene.reads() == ["missing_scope"]


async def test_backfill_reads_again_after_the_rate_limit(
    scene: Scene, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backfill, "AFTERWARDS", 0.3)
    await scene.ask()
    await scene.limited()
    await scene.slack.until(lambda: len(scene.reads()) == 1, "a first look")
    await scene.say("blue")
    assert await scene.answered() == "blue"


async def test_reply_before_the_start_of_the_bot_is_backfilled(
    scene: Scene, patient: Runtime
) -> None:
    async with serving(patient, scene.slack):
        await scene.ask()
    await scene.say("nonsense")
    await scene.say("blue")
    async with serving(patient, scene.slack):
        assert await scene.answered() == "blue"
    assert scene.slack.ephemerals(scene.general, BEN) == [], "no reply to old messages"


async def test_reply_during_a_long_disconnection_is_backfilled(
    scene: Scene, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scene.ask()
    scene.slack.sockets.drop()
    await scene.slack.sockets.wait(2, opened=4)
    assert scene.reads() == [], "Slack itself repeats what a short time missed"
    monkeypatch.setattr(socket_mode, "LOST_AFTER", 0.0)
    await scene.say("blue")
    scene.slack.sockets.drop()
    assert await scene.answered() == "blue"


def test_rate_limit_warning_expires() -> None:
    health = BotHealth()
    health.note(
        app_events.RATE_LIMITED, app_events.RATE_LIMITED_TEXT, seconds=app_events.NOTE_SECONDS
    )
    assert health.as_json()["notes"] == {app_events.RATE_LIMITED: app_events.RATE_LIMITED_TEXT}
    health.note(app_events.RATE_LIMITED, app_events.RATE_LIMITED_TEXT, seconds=0)
    assert health.as_json()["notes"] == {}
