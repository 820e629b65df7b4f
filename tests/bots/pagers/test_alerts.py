"""Pagers: a single alert for a critical question, triggered, acknowledged and resolved."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from draftsman.deliveries.delivery import DeliveryStatus
from draftsman.deliveries.dispatcher import DeliveryDispatcher
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.runtime import Runtime
from draftsman.settings import settings_model
from draftsman_bots.pagers.channel import worker_channel
from draftsman_testing.factories import QUESTION
from draftsman_testing.http_server import serving
from draftsman_testing.outbox import deliveries_of
from draftsman_testing.pagers import GRAFANA_PATH, ROUTING_KEY, FakePagers
from draftsman_testing.waits import background, until
from tests.core.attention.conftest import MakeWith, TeamRuntime, make_with, person, team

__all__ = ["make_with", "team"]

CRITICAL = QUESTION.model_copy(update={"critical": True})
STEPS = [{"notify": ["pager:ops", "pager:grafana"]}]
LADDER: dict[str, Any] = {
    "ladders": {"urgent": {"steps": STEPS}},
    "questions": {"ladders": {"critical": "urgent", "input": "urgent"}},
}


@pytest.fixture
async def fake() -> FakePagers:
    return FakePagers()


@pytest.fixture
async def paged(
    team: TeamRuntime, fake: FakePagers, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Runtime]:
    """Provide services whose pagers are the fakes, and their dispatcher."""
    async with serving(fake.answer) as url:
        monkeypatch.setenv("PAGERDUTY_KEY", ROUTING_KEY)
        monkeypatch.setenv("GRAFANA_URL", f"{url}{GRAFANA_PATH}")
        pagers = {
            "ops": {
                "format": "pagerduty",
                "secret": {"env": "PAGERDUTY_KEY"},
                "url": f"{url}/v2/enqueue",
            },
            "grafana": {"format": "grafana_oncall", "secret": {"env": "GRAFANA_URL"}},
        }
        sent = {"notifications": {"base_delay": 0.01, "poll": 0.05}}
        rt = await team(**LADDER, **sent, pagers=pagers)
        channel = worker_channel(rt.settings)
        dispatcher = rt.dispatcher([channel])
        assert isinstance(dispatcher, DeliveryDispatcher)
        async with background(dispatcher.run()):
            yield rt
            dispatcher.stop.set()


async def _sent(rt: Runtime, job: int, count: int) -> None:
    async def is_sent() -> bool:
        pages = [d for d in await deliveries_of(rt, job) if d.channel == "pager"]
        return [d.status for d in pages].count(DeliveryStatus.SENT) == count

    await until(is_sent, f"{count} pages of D-{job} are sent")


async def test_an_alert_is_triggered_acknowledged_and_resolved_with_one_key(
    paged: Runtime, fake: FakePagers, make_with: MakeWith
) -> None:
    make = make_with(paged)
    work = await make.asked(CRITICAL, actor=person(paged, "anna"))
    for _ in range(3):
        await paged.sweeps.run("ladders", LeaderTerm())
    await _sent(paged, work.number, 2)
    for _ in range(2):
        await paged.acknowledgments.acknowledge(work.number, 1, person(paged, "ben"), 60)
    await _sent(paged, work.number, 4)
    await make.answer(work.number, "red")
    await _sent(paged, work.number, 6)
    (states,) = fake.incidents.values()
    assert sorted(states) == sorted(
        ["trigger", "acknowledge", "resolve", "alerting", "acknowledged", "ok"]
    )
    (key,) = fake.incidents
    job = await paged.read_model.job(work.number)
    assert key == f"draftsman:{job.id}/1"


async def test_a_refused_and_a_lost_reply_are_retried_without_another_alert(
    paged: Runtime, fake: FakePagers, make_with: MakeWith
) -> None:
    fake.failures = [500, None, 0]
    work = await make_with(paged).asked(CRITICAL, actor=person(paged, "anna"))
    await paged.sweeps.run("ladders", LeaderTerm())
    await _sent(paged, work.number, 2)
    assert len(fake.incidents) == 1, "a repetition has the same key"


async def test_the_error_of_a_refused_page_has_no_secret(
    paged: Runtime, fake: FakePagers, make_with: MakeWith
) -> None:
    fake.failures = [400, 400]
    work = await make_with(paged).asked(CRITICAL, actor=person(paged, "anna"))
    await paged.sweeps.run("ladders", LeaderTerm())

    async def errors() -> list[str]:
        pages = [d for d in await deliveries_of(paged, work.number) if d.last_error]
        return [str(d.last_error) for d in pages if d.channel == "pager"]

    async def are_refused() -> bool:
        return len(await errors()) == 2

    await until(are_refused, "both pages are refused")
    texts = await errors()
    assert all("HTTP 400: refused:" in text for text in texts)
    assert any('"routing_key": "***"' in text for text in texts)
    assert not any(ROUTING_KEY in text or GRAFANA_PATH in text for text in texts)


async def test_a_question_that_is_not_critical_is_not_paged(
    paged: Runtime, fake: FakePagers, make_with: MakeWith
) -> None:
    work = await make_with(paged).asked(QUESTION, actor=person(paged, "anna"))
    await paged.sweeps.run("ladders", LeaderTerm())
    attention = (await paged.acknowledgments.attention([work.number]))[work.number, 1]
    assert {str(n.outcome) for n in attention.notifications} == {"not_allowed"}
    assert fake.incidents == {}


def test_a_secret_in_the_configuration_and_unknown_names_are_refused() -> None:
    pager = {"format": "pagerduty", "secret": "R012"}
    with pytest.raises(ValueError, match="must be a reference"):
        settings_model().model_validate({"pagers": {"ops": pager}})
    with pytest.raises(ValueError, match="unknown name 'ops'; known: none are configured"):
        settings_model().model_validate({"ladders": {"a": {"steps": [{"notify": ["pager:ops"]}]}}})
    with pytest.raises(ValueError, match="unknown name 'default'"):
        settings_model().model_validate({"ladders": {"a": {"steps": [{"notify": ["@oncall"]}]}}})
    with pytest.raises(
        ValueError, match=r"questions\.ladders\.input: unknown name 'x'; known: none"
    ):
        settings_model().model_validate({"questions": {"ladders": {"input": "x"}}})
