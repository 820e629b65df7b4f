"""Templates by the login roles of people: the database checks the roles, too."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from draftsman.domain.schedules.template import define
from draftsman.runtime import Runtime
from draftsman.store import templates
from draftsman.store.postgres.database import Connection
from tests.core.rights.conftest import As
from tests.support.statements import FORBIDDEN, refused

Session = Callable[[str], Awaitable[Connection]]


async def test_an_operator_changes_templates_and_an_invoker_runs_them(as_role: As) -> None:
    olga, anna = await as_role("olga"), await as_role("anna")
    definition = define({"type": "noop", "text": "{n}", "parameters": {"properties": {"n": {}}}})
    await olga.templates.add("report", definition, await olga.actor())
    request = await anna.templates.request("report", {"n": 1}, unchecked=True)
    job = await anna.submissions.submit(request, await anna.actor())
    assert (await olga.read_model.job(job.number)).template == "report"


@pytest.mark.parametrize("user", ["anna", "bot", "worker", "reader"])
async def test_others_cannot_change_templates_in_sql(session: Session, user: str) -> None:
    conn = await session(user)
    async with refused(FORBIDDEN):
        await templates.add(conn, "report", 1, define({"type": "noop"}), user)


async def test_the_retry_of_another_version_is_refused(
    as_role: As, known: Runtime, session: Session
) -> None:
    olga = await as_role("olga")
    first = await olga.templates.add("report", define({"type": "noop"}), await olga.actor())
    await olga.templates.edit(first, define({"type": "noop", "title": "x"}), await olga.actor())
    conn = await session("anna")
    anna = await as_role("anna")
    request = await anna.templates.request("report@1", {}, unchecked=True)
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
            " SELECT number, type, now() FROM r",
            (job.number,),
        )
