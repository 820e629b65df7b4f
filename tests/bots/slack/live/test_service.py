"""Live threads in the whole bot process."""

from __future__ import annotations

import pytest

from draftsman.agent_runs.activity.activity import Activity, ActivityKind
from draftsman.jobs.runs.outcome import Done
from draftsman.runtime import Runtime
from draftsman_bots.slack.live import loop
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from draftsman_testing.slack import FakeSlack
from draftsman_testing.waits import until
from tests.bots.slack.live.live_harness import ANNA, LIMIT
from tests.bots.slack.transport.service_harness import serving


async def test_the_bot_shows_a_run_until_its_result(
    rt: Runtime, make: Factory, people: People, slack: FakeSlack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "START_AFTER", 0.0)
    monkeypatch.setattr(loop, "INTERVAL", 0.05)
    slack.user("anna", id=ANNA)
    room = slack.channel("ops", [ANNA])
    async with serving(rt, slack):
        actor = people.on("slack", "anna")
        work = await make.running(notify=(f"slack:{room}",), actor=actor)
        steps = {"entries": [{"text": "write tests", "state": "running"}]}
        plan = Activity(ActivityKind.PLAN, "", key="plan", detail=steps)
        await rt.activity.append(work.lease, 1, [plan], LIMIT)

        async def shown() -> bool:
            (card, *_) = slack.messages(room) or [{"ts": ""}]
            return bool(slack.streams(room) and slack.status(room, card["ts"]))

        await until(shown, "the stream and the status")
        (card,) = slack.messages(room)
        await rt.settlement.outcome(work, Done({"summary": "done"}))

        async def ended() -> bool:
            (stream,) = slack.streams(room)
            texts = [message["text"] for message in slack.messages(room, card["ts"])]
            is_quiet = not stream["open"] and not slack.status(room, card["ts"])
            return is_quiet and any("done" in text for text in texts)

        await until(ended, "the end of both, and the result")
