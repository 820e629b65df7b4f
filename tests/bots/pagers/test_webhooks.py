"""Acknowledgments in pagers: over real HTTP, once, late and repeated."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

import httpx
import pytest

from draftsman.attention.attention import QuestionAttention
from draftsman.database.database import Connection
from draftsman.deliveries.delivery import DeliveryStatus
from draftsman.jobs.runs.run import ClaimedJob, LeaderTerm
from draftsman.runtime import Runtime
from draftsman_bots.pagers.channel import worker_channel
from draftsman_bots.pagers.service import PagerService
from draftsman_testing.factories import QUESTION, Factory
from draftsman_testing.forges.conversation import deliver
from draftsman_testing.http_server import serving
from draftsman_testing.outbox import deliveries_of
from draftsman_testing.pagers import GRAFANA_PATH, ROUTING_KEY, FakePagers
from draftsman_testing.waits import background, until
from tests.core.attention.conftest import TeamRuntime, person, team
from tests.support.clock import Clock
from tests.support.statements import rows

__all__ = ["team"]
SECRET: Final = "secret-of-the-subscription"
AT: Final = "2026-11-27T10:00:{:02}.169Z"
ENDPOINTS: Final = ("/healthz", "/readyz", "/metrics")
CRITICAL: Final = QUESTION.model_copy(update={"critical": True})
LADDER: Final[dict[str, Any]] = {
    "ladders": {
        "urgent": {"steps": [{"notify": ["pager:ops", "pager:grafana"]}, {"notify": ["carol"]}]}
    },
    "questions": {"ladders": {"critical": "urgent"}},
    "notifications": {"base_delay": 0.01, "poll": 0.05},
    "ben": {"pager": ["ops:PLH1HKV", "grafana:Ben@example.org"]},
    "carol": {"pager": "grafana:Carol@example.org"},
    "olga": {"pager": "ops:POLGA01"},
}


@dataclass
class Paged:
    """A question with an alert in both pagers, and the receiver of their webhooks."""

    rt: Runtime
    fake: FakePagers
    service: PagerService
    work: ClaimedJob
    key: str

    async def pagerduty(
        self, what: str, at: int, user: str | None = "PLH1HKV", secrets: tuple[str, ...] = (SECRET,)
    ) -> tuple[int, str]:
        """Send a new webhook of PagerDuty."""
        return await self.send(
            "ops", self.fake.pagerduty_webhook(self.key, what, user, AT.format(at), secrets)
        )

    async def send(self, name: str, webhook: tuple[bytes, dict[str, str]]) -> tuple[int, str]:
        """Send a webhook."""
        port = self.service.ports[name]
        return await deliver(f"http://127.0.0.1:{port}/pagers/{name}", *webhook)

    async def attention(self) -> QuestionAttention:
        """Return the delays of the question."""
        return (await self.rt.acknowledgments.attention([self.work.number]))[self.work.number, 1]

    async def holder(self) -> str | None:
        """Return the person who works on the answer."""
        delays = await self.rt.acknowledgments.delays(self.work.number, 1)
        return next((delay.person for delay in delays if delay.acknowledged), None)

    async def acknowledged_by(self) -> list[str]:
        """Return the people of the events `question_acknowledged`."""
        events = await self.rt.read_model.job_events(self.work.number)
        return [e.payload["by"] for e in events if e.kind == "question_acknowledged"]

    async def pages(self, count: int) -> None:
        """Wait until both pagers have this number of messages."""

        async def are_sent() -> bool:
            found = await deliveries_of(self.rt, self.work.number)
            sent = [d.status for d in found if d.channel == "pager"]
            return sent == [DeliveryStatus.SENT] * count

        await until(are_sent, f"{count} pages are sent")


@pytest.fixture
async def paged(
    team: TeamRuntime, make: Factory, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Paged]:
    fake = FakePagers()
    async with serving(fake.answer) as url:
        monkeypatch.setenv("PAGERDUTY_KEY", ROUTING_KEY)
        monkeypatch.setenv("GRAFANA_URL", f"{url}{GRAFANA_PATH}")
        monkeypatch.setenv("PAGER_SECRET", SECRET)
        webhook = {
            "listen": "127.0.0.1:0",
            "health_listen": "127.0.0.1:0",
            "webhook_secret": {"env": "PAGER_SECRET"},
        }
        pagers = {
            "ops": {
                "format": "pagerduty",
                "secret": {"env": "PAGERDUTY_KEY"},
                "url": f"{url}/v2/enqueue",
                **webhook,
            },
            "grafana": {"format": "grafana_oncall", "secret": {"env": "GRAFANA_URL"}, **webhook},
        }
        rt = await team(**LADDER, pagers=pagers)
        work = await Factory(rt, make.owner).asked(CRITICAL, actor=person(rt, "anna"))
        await rt.sweeps.run("ladders", LeaderTerm())
        service = PagerService(rt)
        running = asyncio.create_task(service.run())
        dispatcher = rt.dispatcher([worker_channel(rt.settings)])
        async with background(dispatcher.run()):
            found = Paged(rt, fake, service, work, "")
            await found.pages(2)
            (found.key,) = fake.incidents
            yield found
            dispatcher.stop.set()
        service.stop.set()
        await running


async def test_an_acknowledgment_in_pagerduty_counts_once_for_the_person(
    paged: Paged, clock: Clock
) -> None:
    due = (await paged.attention()).next_at
    webhook = paged.fake.pagerduty_webhook(
        paged.key, "acknowledged", "PLH1HKV", AT.format(0), ["an-old-secret", SECRET]
    )
    status, text = await paged.send("ops", webhook)
    assert (status, text.startswith(f"{paged.work.name}/1: ben works on it until ")) == (200, True)
    assert await paged.holder() == "ben"
    later = (await paged.attention()).next_at
    assert (due is None, later is None) == (False, False)
    assert str(later) > str(due), "the others are not notified"
    await clock.forward(2 * 3600)
    assert await paged.holder() is None
    assert (await paged.send("ops", webhook))[0] == 200, "PagerDuty delivers at least once"
    assert await paged.holder() is None, "a repetition acknowledges nothing"
    assert await paged.acknowledged_by() == ["ben"]
    await paged.pages(4)
    states = paged.fake.incidents[paged.key]  # the next step may already page again
    assert {*states} == {"acknowledge", "acknowledged", "alerting", "trigger"}
    assert (states.count("acknowledge"), states.count("acknowledged")) == (1, 1)


async def test_of_events_in_the_wrong_order_the_newest_counts(paged: Paged) -> None:
    assert await paged.pagerduty("unacknowledged", 9) == (200, "recorded\n")
    status, text = await paged.pagerduty("acknowledged", 5)
    assert (status, text) == (200, "ignored: known, or older than another event of the alert\n")
    assert await paged.holder() is None
    await paged.pagerduty("acknowledged", 12)
    assert await paged.holder() == "ben"


async def test_an_alert_that_is_opened_again_ends_the_acknowledgment_of_its_pager(
    paged: Paged, conn: Connection
) -> None:
    due = (await paged.attention()).next_at
    ben = {"id": "U1", "username": "ben", "email": "ben@Example.org"}
    await paged.pagerduty("acknowledged", 1)
    assert await paged.holder() == "ben"
    assert str((await paged.attention()).next_at) > str(due)

    async def grafana(kind: str, at: int) -> str:
        webhook = paged.fake.grafana_webhook(
            paged.key, kind, ben, f"2026-11-27T10:00:{at:02}+00:00", f"Bearer {SECRET}"
        )
        return (await paged.send("grafana", webhook))[1]

    await grafana("unacknowledge", 2)
    assert await paged.holder() == "ben", "it came from another pager"
    await paged.pagerduty("unacknowledged", 3, user=None)
    assert await paged.holder() is None
    assert (await paged.attention()).next_at == due, "the next step is due as before"
    assert (await grafana("acknowledge", 4)).startswith(f"{paged.work.name}/1: ben works on it")
    await paged.pagerduty("unacknowledged", 5)
    assert await paged.holder() == "ben"
    await grafana("unacknowledge", 6)
    assert await paged.holder() is None
    assert (await paged.attention()).next_at == due
    await paged.pagerduty("resolved", 7)
    await paged.rt.acknowledgments.acknowledge(paged.work.number, 1, person(paged.rt, "ben"), 60)
    await paged.pagerduty("reopened", 8)
    assert await paged.holder() == "ben", "acknowledged in a terminal afterwards"
    events = await paged.rt.read_model.job_events(paged.work.number)
    ended = [(e.actor, e.payload) for e in events if e.kind == "question_unacknowledged"]
    payload = {"question": 1, "by": "ben"}
    assert ended == [("pager:ops", payload), ("pager:grafana", payload)]


async def test_the_public_address_has_no_figures(paged: Paged) -> None:
    assert paged.service.health_port is not None
    public, own = [
        f"http://127.0.0.1:{port}"
        for port in (paged.service.ports["ops"], paged.service.health_port)
    ]
    async with httpx.AsyncClient() as client:
        assert [(await client.get(f"{public}{path}")).status_code for path in ENDPOINTS] == [
            200,
            404,
            404,
        ]
        assert [(await client.get(f"{own}{path}")).status_code for path in ENDPOINTS] == [
            200,
            200,
            200,
        ]


async def test_a_resolved_alert_acknowledges_and_an_answer_resolves_the_alert(
    paged: Paged,
) -> None:
    await paged.pagerduty("resolved", 0)
    assert await paged.holder() == "ben"
    assert (await paged.rt.read_model.job(paged.work.number)).status == "waiting_for_input"
    await paged.pages(4)
    await Factory(paged.rt, person(paged.rt, "ben")).answer(paged.work.number, "red")
    await paged.pages(6)
    states = paged.fake.incidents[paged.key]
    assert (states.count("resolve"), states.count("ok")) == (1, 1)
    status, text = await paged.pagerduty("resolved", 3, user=None)
    assert (status, text) == (200, "recorded\n"), "the event of our own message"
    assert "already answered" in (await paged.pagerduty("acknowledged", 4))[1]
    assert await paged.pagerduty("reopened", 5) == (200, "recorded\n")
    events = await paged.rt.read_model.job_events(paged.work.number)
    assert "question_unacknowledged" not in [event.kind for event in events], "it is answered"


@pytest.mark.parametrize(
    ("user", "text"),
    [
        (None, "recorded"),
        ("PUNKNOWN", "recorded, without effect: Person PUNKNOWN may not answer"),
        ("POLGA01", "recorded, without effect: Person POLGA01 may not answer"),
    ],
)
async def test_only_people_who_may_answer_acknowledge(
    paged: Paged, user: str | None, text: str
) -> None:
    status, reply = await paged.pagerduty("acknowledged", 0, user)
    assert (status, reply.startswith(text)) == (200, True), reply
    assert await paged.holder() is None


async def test_the_acknowledgment_of_another_person_holds(paged: Paged) -> None:
    await paged.rt.acknowledgments.acknowledge(paged.work.number, 1, person(paged.rt, "carol"), 60)
    status, text = await paged.pagerduty("acknowledged", 0)
    assert (status, text.startswith(f"{paged.work.name}/1: carol works on it")) == (200, True)


async def test_a_webhook_without_its_signature_is_refused(paged: Paged, conn: Connection) -> None:
    body, headers = paged.fake.pagerduty_webhook(
        paged.key, "acknowledged", "PLH1HKV", AT.format(0), ["another"]
    )
    right = paged.fake.pagerduty_webhook(paged.key, "x", "P", AT.format(0), [SECRET])[1]
    wrong = headers["X-PagerDuty-Signature"].replace("v1=", "v0=")
    for given in (headers, headers | {"X-PagerDuty-Signature": wrong}, right, {}):
        status, text = await paged.send("ops", (body, dict(given)))
        assert (status, "the signature is wrong" in text) == (401, True)
    grafana = paged.fake.grafana_webhook(paged.key, "acknowledge", None, AT.format(0), "Bearer no")
    assert (await paged.send("grafana", grafana))[0] == 401
    assert await rows(conn, "SELECT count(*) FROM draftsman.pager_events") == [(0,)]


@pytest.mark.parametrize("scheme", ["Bearer ", ""])
async def test_an_acknowledgment_in_grafana_counts_for_the_address(
    paged: Paged, scheme: str
) -> None:
    user = {"id": "UVMX6YI9VY9PV", "username": "carol", "email": "carol@Example.org"}
    webhook = paged.fake.grafana_webhook(
        paged.key, "acknowledge", user, "2023-04-19T21:59:21.714058+00:00", scheme + SECRET
    )
    for _ in range(2):
        assert (await paged.send("grafana", webhook))[0] == 200
    assert await paged.acknowledged_by() == ["carol"]
    auto = paged.fake.grafana_webhook(
        paged.key, "resolve", None, "2023-04-19T22:59:21.714058+00:00", scheme + SECRET
    )
    assert await paged.send("grafana", auto) == (200, "recorded\n")


async def test_webhooks_about_other_incidents_and_other_bodies_change_nothing(
    paged: Paged, conn: Connection
) -> None:
    paged.fake.incidents |= {"other": ["trigger"], f"{paged.key}0": ["trigger"]}
    for key in ("other", f"{paged.key}0"):
        webhook = paged.fake.pagerduty_webhook(
            key, "acknowledged", "PLH1HKV", AT.format(0), [SECRET]
        )
        status, text = await paged.send("ops", webhook)
        assert (status, text.startswith("ignored: ")) == (200, True)
    assert (await paged.pagerduty("annotated", 0))[1] == "ignored: not about a question\n"
    assert (await paged.send("grafana", (b"[]", {"Authorization": SECRET})))[0] == 400
    assert await rows(conn, "SELECT count(*) FROM draftsman.pager_events") == [(0,)]
