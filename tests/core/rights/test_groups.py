"""Groups by processes with database roles of their own."""

from __future__ import annotations

from typing import Any

import pytest

from draftsman.errors import Refused
from draftsman.jobs.job import Source, Status
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.people.actor import Actor
from draftsman.runtime import Runtime
from draftsman.workflows import store as workflows
from tests.core.rights.conftest import As


async def test_a_person_adds_own_jobs_in_the_own_name(as_role: As) -> None:
    anna = await as_role("anna")
    carol = await as_role("carol")
    request = invocation(type="noop", group={"name": "g", "kind": "parallel"})
    await anna.submissions.submit(request, await anna.actor())
    other = await anna.submissions.submit(invocation(type="noop"), await anna.actor())
    with pytest.raises(Refused, match="may not create a group as"):
        async with carol.db.transaction() as conn:
            await workflows.open_group(conn, "h", "parallel", None, (await anna.actor()).name)
    group = await anna.workflows.groups.get("g")
    with pytest.raises(Refused, match="may not control"):
        async with carol.db.transaction() as conn:
            await workflows.add_members(conn, group.id, [other.number], [])


async def test_a_person_cancels_a_group_of_own_jobs_only(as_role: As) -> None:
    anna = await as_role("anna")
    erin = await as_role("erin")
    request = invocation(type="noop", group={"name": "g", "kind": "parallel"})
    job = await anna.submissions.submit(request, await anna.actor())
    group = await anna.workflows.groups.get("g")
    with pytest.raises(Refused, match="may not control"):
        async with erin.db.transaction() as conn:
            await workflows.cancel_group(conn, group.id, (await erin.actor()).name, None)
    assert (await anna.workflows.groups.get("g")).canceled_at is None
    await anna.job_control.cancel_group("g", await anna.actor())
    assert (await anna.read_model.job(job.number)).status is Status.CANCELED


async def test_a_group_with_jobs_of_others_takes_jobs_of_its_creator_and_operators_only(
    as_role: As, known: Runtime
) -> None:
    """Else a person adds a job to a group of others and cancels it, which stops the group."""
    anna, erin, bot = [await as_role(name) for name in ("anna", "erin", "bot")]
    request = invocation(type="noop", group={"name": "g", "kind": "parallel"})
    more = invocation(type="noop", group="g")
    hers = await anna.submissions.submit(request, await anna.actor())
    message = "may not add jobs to the group g, which has jobs of others; its creator or an"
    with pytest.raises(Refused, match=f"erin {message}"):
        await erin.submissions.submit(more, await erin.actor())
    on_slack = Actor("slack", "U-ANNA", "Anna")
    assert (await bot.submissions.submit(more, on_slack)).outcome == "created"
    # the programs of the owner of the schema decide by the same rule, and know the operators
    for name, refused in (("erin", True), ("root", False)):
        actor = Actor(Source.CLI, name, name, owner=name == "root")
        person = known.policy.resolve(actor) if name == "erin" else actor
        if refused:
            with pytest.raises(Refused, match=f"erin {message}"):
                await known.submissions.submit(more, person)
        else:
            mixed = await known.submissions.submit(more, person)
    assert (await anna.submissions.submit(more, await anna.actor())).outcome == "created"
    await known.job_control.cancel(mixed.number, Actor(Source.CLI, "root", "root", owner=True))
    # a group with jobs of the operator's alone
    created = invocation(type="noop", group={"name": "h", "kind": "parallel"})
    await known.submissions.submit(created, Actor(Source.CLI, "root", "root", owner=True))
    with pytest.raises(Refused, match="anna may not add jobs to the group h"):
        await anna.submissions.submit(invocation(type="noop", group="h"), await anna.actor())
    assert hers.outcome == "created"


async def test_a_person_who_claims_to_be_an_operator_adds_no_job_to_a_group_of_others(
    as_role: As, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna = await as_role("anna")
    erin = await as_role("erin")
    request = invocation(type="noop", group={"name": "g", "kind": "parallel"})
    await anna.submissions.submit(request, await anna.actor())
    add = workflows.add_members

    async def add_as_operator(*args: Any, is_operator: bool) -> Any:
        return await add(*args, is_operator=True)

    monkeypatch.setattr(workflows, "add_members", add_as_operator)
    with pytest.raises(Refused, match="erin may not add jobs to the group g"):
        await erin.submissions.submit(invocation(type="noop", group="g"), await erin.actor())
