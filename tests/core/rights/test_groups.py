"""Groups by processes with database roles of their own."""

from __future__ import annotations

import pytest

from draftsman.domain.job import Status
from draftsman.errors import Refused
from draftsman.services.jobs.submissions import invocation
from draftsman.store.scheduling import groups
from tests.core.rights.conftest import As


async def test_a_person_adds_own_jobs_in_the_own_name(as_role: As) -> None:
    anna, carol = await as_role("anna"), await as_role("carol")
    request = invocation(type="noop", group={"name": "g", "kind": "parallel"})
    await anna.submissions.submit(request, await anna.actor())
    other = await anna.submissions.submit(invocation(type="noop"), await anna.actor())
    with pytest.raises(Refused, match="may not create a group as"):
        async with carol.db.transaction() as conn:
            await groups.open_group(conn, "h", "parallel", None, (await anna.actor()).name)
    group = await anna.workflows.groups.get("g")
    with pytest.raises(Refused, match="may not control"):
        async with carol.db.transaction() as conn:
            await groups.add(conn, group.id, [other.number], [])


async def test_a_person_cancels_a_group_of_own_jobs_only(as_role: As) -> None:
    anna, erin = await as_role("anna"), await as_role("erin")
    request = invocation(type="noop", group={"name": "g", "kind": "parallel"})
    job = await anna.submissions.submit(request, await anna.actor())
    group = await anna.workflows.groups.get("g")
    with pytest.raises(Refused, match="may not control"):
        async with erin.db.transaction() as conn:
            await groups.cancel(conn, group.id, (await erin.actor()).name, None)
    assert (await anna.workflows.groups.get("g")).canceled_at is None
    await anna.job_control.cancel_group("g", await anna.actor())
    assert (await anna.read_model.job(job.number)).status is Status.CANCELED
