"""Live threads of the tests: jobs with a status message in a fake Slack, and rounds of the loop."""

from __future__ import annotations

from typing import Any

from draftsman.agent_runs.activity.activity import Activity, ActivityKind, ActivityState
from draftsman.deliveries.service.live_threads import LiveThreads
from draftsman.jobs.runs.quota import QuotaLimit
from draftsman.jobs.runs.run import ClaimedJob
from draftsman.runtime import Runtime
from draftsman_bots.slack.deliveries.channel import client
from draftsman_bots.slack.health import BotHealth
from draftsman_bots.slack.identity import Identity
from draftsman_bots.slack.live.loop import INTERVAL, START_AFTER, LiveThreadLoop
from draftsman_testing.factories import Factory
from draftsman_testing.outbox import deliveries_of, running
from draftsman_testing.people import People
from draftsman_testing.slack import FakeSlack
from draftsman_testing.waits import until
from tests.bots.slack.channel_fixtures import Json, slack_channel
from tests.support.clock import Clock

ANNA = "U-ANNA"
DELIVERED = {"sent", "superseded", "dead_letter"}
LIMIT = QuotaLimit(1000, 1_000_000)


class LiveHarness:
    """A workspace with a channel, and a bot that shows runs there."""

    def __init__(
        self, rt: Runtime, slack: FakeSlack, make: Factory, clock: Clock, people: People
    ) -> None:
        self.rt = rt
        self.slack = slack
        self.make = make
        self.clock = clock
        slack.user("anna", id=ANNA)
        slack.world.scopes.discard("assistant:write")
        self.room = slack.channel("ops", [ANNA])
        self.anna = people.on("slack", "anna")
        self.health = BotHealth()
        self.threads = LiveThreads(rt.db, rt.policy, "slack")
        self.loop = self.bot()
        self._rows = 0

    def bot(self, *, is_agent: bool = False, **options: Any) -> LiveThreadLoop:
        """Return the loop of another bot process; its app may be an agent of Slack."""
        identity = Identity()
        if is_agent:
            self.slack.world.scopes.add("assistant:write")
            identity.scopes = frozenset(self.slack.world.scopes)
        identity.update(
            {"team_id": self.slack.team, "user_id": self.slack.bot_user, "bot_id": "B000000001"}
        )
        return LiveThreadLoop(
            LiveThreads(self.rt.db, self.rt.policy, "slack"),
            client(self.slack.bot_token, self.slack.api_url, 2.0),
            identity,
            self.health,
            **{"timeout": 2.0, "streams": True} | options,
        )

    async def running(self, number: int | None = None, **fields: Any) -> ClaimedJob:
        """Run a job of anna whose status message is in the channel."""
        fields = {"notify": (f"slack:{self.room}",), "actor": self.anna} | fields
        work = await self.make.running(number, **({} if number else fields))
        await self.deliver(work.number)
        return work

    async def deliver(self, job: int) -> None:
        """Send all that is due of a job."""
        async with running(self.rt.dispatcher([slack_channel(self.slack)])):

            async def look() -> bool:
                return all(item.status in DELIVERED for item in await deliveries_of(self.rt, job))

            await until(look, f"the deliveries of D-{job}")

    async def plan(self, work: ClaimedJob, *states: str, more: str = "") -> None:
        """Write a plan with steps a, b, … in these states."""
        steps = [
            {"text": f"step {chr(97 + n)}{more}", "state": state} for n, state in enumerate(states)
        ]
        item = Activity(ActivityKind.PLAN, "", key="plan", detail={"entries": steps})
        await self._add(work, item)

    async def line(
        self, work: ClaimedJob, text: str, state: ActivityState = ActivityState.RUNNING
    ) -> None:
        """Write a call of a tool."""
        await self._add(work, Activity(ActivityKind.TOOL, text, state, key=text[:99]))

    async def message(self, work: ClaimedJob, text: str) -> None:
        """Write a message of the agent."""
        await self._add(work, Activity(ActivityKind.MESSAGE, text))

    async def _add(self, work: ClaimedJob, *items: Activity) -> None:
        await self.rt.activity.append(work.lease, self._rows + 1, items, LIMIT)
        self._rows += len(items)

    async def later(self, seconds: float) -> None:
        """Let time pass, for the database and for Slack."""
        self.slack.later(seconds)
        await self.clock.forward(seconds)

    async def round(
        self, seconds: float = INTERVAL + 0.1, loop: LiveThreadLoop | None = None
    ) -> None:
        """Let time pass, then continue the threads."""
        await self.later(seconds)
        await (loop or self.loop).run_once()

    async def streaming(self, work: ClaimedJob) -> Json:
        """Start the stream of a run; return its message."""
        await self.plan(work, "completed", "running", "pending")
        await self.loop.run_once()
        await self.round(START_AFTER)
        return self.stream()

    def card(self) -> Json:
        """Return the only message of the channel itself."""
        (card,) = self.slack.messages(self.room)
        return card

    def status(self) -> str:
        """Return the status of the card's thread."""
        return self.slack.status(self.room, self.card()["ts"])

    def sessions(self) -> list[str]:
        """Return the states of the session of the card's thread, in order."""
        return self.slack.world.sessions.get((self.room, self.card()["ts"]), [])

    def stream(self) -> Json:
        """Return the only stream."""
        (stream,) = self.slack.streams(self.room)
        return stream

    def tasks(self) -> dict[str, tuple[str, str]]:
        """Return title and state of the tasks of the only stream."""
        tasks = self.stream()["stream"]["tasks"]
        return {id: (task["title"], task["status"]) for id, task in tasks.items()}

    def count(self, method: str) -> int:
        """Return the number of successful calls of a method."""
        return sum(call.method == method and call.outcome == "ok" for call in self.slack.calls)
