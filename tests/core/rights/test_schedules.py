"""Templates and schedules by the login roles of people: the database checks the roles, too."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from draftsman.database.database import Connection
from draftsman.errors import DraftsmanError, NotPermitted, UsageError
from draftsman.job_types.published import service
from draftsman.job_types.published.description import TypeDescription
from draftsman.jobs.job import Source
from draftsman.jobs.requests.entered_form import EnteredForm
from draftsman.jobs.requests.service.request_rows import row
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.requests.store import submissions
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor
from draftsman.people.directory import Directory, DirectoryEntry
from draftsman.runtime import Runtime
from draftsman.schedules import store as schedules
from draftsman.schedules.schedule import ScheduleSpec
from draftsman.schedules.template import define
from draftsman_testing.people import People
from tests.core.rights.conftest import As
from tests.support.clock import Clock
from tests.support.described_types import registered
from tests.support.statements import FORBIDDEN, refused


@pytest.fixture(autouse=True)
def _read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "AGE", 0)


Session = Callable[[str], Awaitable[Connection]]
FORGED = {
    "schedule": "INSERT INTO draftsman.schedules (name, rule, timezone, template, created_by)"
    " VALUES ('x', '@daily', 'UTC', 't', 'olga')",
    "request": "UPDATE draftsman.schedules SET request = '{}' WHERE name = 'hourly'",
    "author": "UPDATE draftsman.schedules SET created_by = 'erin' WHERE name = 'hourly'",
    "occurrence": "INSERT INTO draftsman.schedule_fires (schedule, due_at, status, reason)"
    " SELECT id, draftsman.now(), 'skipped', 'x' FROM draftsman.schedules",
    "removal": "DELETE FROM draftsman.schedule_fires",
    "outcome": "UPDATE draftsman.schedule_fires SET status = 'skipped'",
}
ALLOWED = {("worker", name) for name in ("occurrence", "removal", "outcome")}
SPEC = ScheduleSpec(
    "hourly", "@hourly", request={"type": "http_request", "payload": {"url": "https://e.org/"}}
)


async def test_an_operator_changes_templates_and_an_invoker_runs_them(as_role: As) -> None:
    olga = await as_role("olga")
    anna = await as_role("anna")
    definition = define({"type": "noop", "text": "{n}", "parameters": {"properties": {"n": {}}}})
    await olga.templates.add("report", definition, await olga.actor())
    request = await anna.templates.request("report", EnteredForm({"n": 1}), unchecked=True)
    job = await anna.submissions.submit(request, await anna.actor())
    assert (await olga.read_model.job(job.number)).template == "report"


@pytest.mark.parametrize("user", ["anna", "bot", "worker", "reader"])
async def test_others_cannot_change_templates_in_sql(session: Session, user: str) -> None:
    conn = await session(user)
    async with refused(FORBIDDEN):
        await schedules.add_template(conn, "report", 1, define({"type": "noop"}), user)


async def test_the_retry_of_another_version_is_refused(
    as_role: As, known: Runtime, session: Session
) -> None:
    olga = await as_role("olga")
    first = await olga.templates.add("report", define({"type": "noop"}), await olga.actor())
    await olga.templates.edit(first, define({"type": "noop", "title": "x"}), await olga.actor())
    conn = await session("anna")
    anna = await as_role("anna")
    request = await anna.templates.request("report@1", EnteredForm(), unchecked=True)
    job = await anna.submissions.submit(request, await anna.actor())
    await anna.job_control.cancel(job.number, await anna.actor())
    async with conn.transaction(force_rollback=True), refused(FORBIDDEN, "may not submit"):
        await conn.execute(
            "WITH r AS (INSERT INTO draftsman.job_requests (id, type, idempotency_key,"
            " request_digest, source, invoker_id, retry_of, chain_length, template,"
            " template_version) SELECT gen_random_uuid(), type, 'retry:' || number || ':1',"
            " request_digest, source, invoker_id, number, 1, template, 2"
            " FROM draftsman.job_requests WHERE number = %s RETURNING number, type)"
            " INSERT INTO draftsman.job_states (number, type, queued_at)"
            " SELECT number, type, draftsman.now() FROM r",
            (job.number,),
        )


async def test_each_role_does_its_part_of_a_schedule(as_role: As, clock: Clock) -> None:
    await clock.past_the_hour()
    anna = await as_role("anna")
    olga = await as_role("olga")
    await anna.schedules.add(SPEC, await anna.actor())
    await olga.schedules.pause("hourly", await olga.actor())
    await anna.schedules.resume("hourly", await anna.actor())
    run = await anna.schedules.run("hourly", await anna.actor())
    await anna.job_control.cancel(run.number, await anna.actor())
    await clock.forward(3600)
    worker = await as_role("worker")
    assert await worker.sweeps.run("schedules", LeaderTerm()) == 1
    fired, _ = await olga.schedules.history("hourly")
    assert fired.job is not None
    job = await olga.read_model.job(fired.job)
    assert (job.source, job.invoker_id) == (Source.SCHEDULE, "anna")
    assert (await olga.read_model.job_events(job.number))[0].actor == "schedule:anna"
    await olga.schedules.remove("hourly", await olga.actor())


async def test_a_worker_makes_the_schedules_that_job_types_declare(
    as_role: As, known: Runtime, clock: Clock, people: People
) -> None:
    await clock.past_the_hour()
    await known.schedules.add(SPEC, people.anna)
    worker = await as_role("worker")
    item = {"name": "weekly", "rule": "@hourly", "zone": "UTC", "payload": {"n": 1}}
    declared = TypeDescription(name="report:weekly", place="a.jobs:weekly", schedules=(item,))
    async with registered(worker, declared):
        assert await worker.declared_schedules.apply(LeaderTerm()) == 1
        await clock.forward(3600)
        worker = await as_role("worker")
        assert await worker.sweeps.run("schedules", LeaderTerm()) == 2
    (fired,) = await known.schedules.history("weekly")
    assert fired.job is not None
    job = await known.read_model.job(fired.job)
    assert (job.type, job.invoker_id, job.payload) == ("report:weekly", "schedule:code", {"n": 1})
    without = TypeDescription(name="report:weekly", place="a.jobs:weekly")
    async with registered(worker, without):
        assert await worker.declared_schedules.apply(LeaderTerm()) == 1
    async with registered(worker, declared):
        assert await worker.declared_schedules.apply(LeaderTerm()) == 1
    assert (await known.schedules.get("weekly")).paused_at is None


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE draftsman.schedules SET rule = '@daily'",
        'UPDATE draftsman.schedules SET request = request || \'{"type": "noop"}\'',
        "UPDATE draftsman.schedules SET misfire = 'all' WHERE origin IS NULL",
        "UPDATE draftsman.schedules SET created_by = 'anna', origin = NULL WHERE origin = 'code'",
        (
            "UPDATE draftsman.schedules"
            " SET paused_at = draftsman.now(), paused_by = 'schedule:code'"
            " WHERE origin IS NULL"
        ),
        "UPDATE draftsman.schedules SET paused_at = draftsman.now(), paused_by = 'anna'",
        (
            "INSERT INTO draftsman.schedules (name, rule, timezone, request, origin, created_by)"
            " VALUES ('x', '@daily', 'UTC', '{}', 'code', 'schedule:code')"
        ),
        (
            "INSERT INTO draftsman.schedules (name, rule, timezone, request, created_by)"
            " VALUES ('x', '@daily', 'UTC', '{}', 'anna')"
        ),
        "DELETE FROM draftsman.schedules",
    ],
)
async def test_a_worker_changes_no_other_schedule(
    as_role: As, known: Runtime, people: People, session: Session, statement: str
) -> None:
    await known.schedules.add(SPEC, people.anna)
    item = {"name": "weekly", "rule": "@hourly", "zone": "UTC", "payload": {}}
    declared = TypeDescription(name="report:weekly", place="a.jobs:weekly", schedules=(item,))
    async with registered(known, declared):
        await (await as_role("worker")).declared_schedules.apply(LeaderTerm())
    conn = await session("worker")
    async with refused(FORBIDDEN):
        await conn.execute(statement.encode())


async def test_a_bot_acts_for_people_with_a_chat_account(as_role: As, people: People) -> None:
    bot = await as_role("bot")
    olga = await as_role("olga")
    anna, ben, root = (Actor("slack", id, id) for id in ("U-ANNA", "U-BEN", "U-ROOT"))
    anna = await bot.people.actor(anna)
    schedule = await bot.schedules.add(SPEC, anna)
    assert (schedule.created_by, schedule.due_at is not None) == ("anna", True)
    await bot.schedules.pause("hourly", anna)
    await bot.schedules.resume("hourly", anna)
    for actor in (ben, root):
        with pytest.raises(NotPermitted):
            await bot.schedules.remove("hourly", await bot.people.actor(actor))
    with pytest.raises(DraftsmanError, match="permission"):
        await bot.schedules.change(replace(SPEC, rule="@daily"), anna)
    await bot.schedules.remove("hourly", anna)
    assert await olga.schedules.all() == []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE draftsman.schedules SET paused_at = draftsman.now(), paused_by = 'ben'",
        "UPDATE draftsman.schedules SET paused_at = draftsman.now(), paused_by = 'olga'",
        "UPDATE draftsman.schedules SET rule = '@daily'",
        FORGED["schedule"].replace("'olga'", "'ben'"),
        FORGED["schedule"].replace("'olga'", "'slack:U-MALLORY'"),
    ],
)
async def test_a_bot_acts_for_nobody_else(
    known: Runtime, people: People, session: Session, statement: str
) -> None:
    await known.schedules.add(SPEC, people.anna)
    conn = await session("bot")
    async with refused(FORBIDDEN):
        await conn.execute(statement.encode())


async def test_a_bot_changes_no_schedule_without_a_person_in_chat(
    known: Runtime, session: Session
) -> None:
    alone = {
        "erin": DirectoryEntry(frozenset({"invoker", "operator"}), {"cli": "erin"}),
        "anna": DirectoryEntry(frozenset({"responder"}), {"slack": "U-ANNA"}),
    }
    await known.people.save(Directory(alone, {}))
    erin = await known.people.actor(Actor(Source.CLI, "erin", "erin"))
    await known.schedules.add(SPEC, erin)
    conn = await session("bot")
    for statement in (
        "DELETE FROM draftsman.schedules",
        "UPDATE draftsman.schedules SET due_at = NULL, fire_at = NULL",
    ):
        async with refused(FORBIDDEN):
            await conn.execute(statement.encode())


@pytest.mark.parametrize("statement", FORGED)
@pytest.mark.parametrize("user", ["erin", "olga", "worker", "bot", "reader"])
async def test_no_role_schedules_jobs_of_others(
    known: Runtime, people: People, session: Session, user: str, statement: str
) -> None:
    await known.schedules.add(SPEC, people.anna)
    conn = await session(user)
    if (user, statement) in ALLOWED:
        return
    async with refused(FORBIDDEN):
        await conn.execute(FORGED[statement].encode())


async def test_a_worker_submits_only_jobs_of_schedules(
    known: Runtime, people: People, session: Session
) -> None:
    schedule = await known.schedules.add(SPEC, people.anna)
    conn = await session("worker")
    for key, invoker in (
        (f"schedule:{schedule.id}:x", "erin"),
        ("schedule:99:x", "anna"),
        ("other", "anna"),
    ):
        request = row(invocation(type="noop"), people.anna, known.limits)
        request |= {"idempotency_key": key, "invoker_id": invoker, "source": "schedule"}
        async with refused(FORBIDDEN, "may not submit"):
            await submissions.submit(conn, [request], "schedule:anna")
    with pytest.raises(UsageError, match="are reserved"):
        invocation(type="noop", key=f"schedule:{schedule.id}:x")
