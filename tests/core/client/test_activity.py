"""The activity of an agent, followed by the Python client."""

from __future__ import annotations

from draftsman.agent_runs.activity.activity import Activity, ActivityKind
from draftsman.client.asynchronous import Client
from draftsman.jobs.runs.outcome import Done
from draftsman.jobs.runs.quota import QuotaLimit
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory


async def test_activity_of_an_agent_is_followed_until_the_job_has_ended(
    rt: Runtime, make: Factory
) -> None:
    client = Client(rt)
    work = await make.running()
    rows = client.activity(work.number)
    stream = make.rt.activity
    said = [Activity(ActivityKind.MESSAGE, text) for text in ("one", "two", "three")]
    await stream.append(work.lease, 1, said[:2], QuotaLimit(9))
    assert [(await anext(rows)).text for _ in range(2)] == ["one", "two"]
    await stream.append(work.lease, 3, said[2:], QuotaLimit(9))
    await make.rt.settlement.outcome(work, Done({}))
    assert [row.text async for row in rows] == ["three"]
