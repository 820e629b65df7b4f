"""Files of requests, added by a bot with its own role."""

from __future__ import annotations

from dataclasses import replace

import pytest

from draftsman.errors import Refused
from draftsman.jobs.requests.invocation import FileRef
from draftsman.jobs.requests.service import attachments
from draftsman.jobs.requests.service.submissions import SubmittedJob, invocation
from draftsman.people.actor import Actor
from draftsman.people.directory import Directory
from draftsman.runtime import Runtime
from tests.core.rights.conftest import As
from tests.support.roles import Roles


async def test_a_request_that_joins_the_job_of_another_person_keeps_its_files(
    as_role: As, known: Runtime, roles: Roles
) -> None:
    directory = roles.people()
    erin = directory.people["erin"]
    erin = replace(erin, roles=frozenset({"invoker"}), ids={**erin.ids, "slack": "U-ERIN"})
    await known.people.save(Directory({**directory.people, "erin": erin}, directory.groups))
    bot = await as_role("bot")

    async def submit(account: str, key: str, name: str) -> SubmittedJob:
        actor = await bot.people.actor(Actor("slack", account, account))
        files = [FileRef(reference={"id": name}, name=name)]
        request = invocation(type="noop", subject_key="card", key=key, attachments=files)
        return await bot.submissions.submit(request, actor)

    job = (await submit("U-ANNA", "1", "a")).number
    erins = await bot.people.actor(Actor("slack", "U-ERIN", "Erin"))
    add = [FileRef(reference={"id": "x"}, name="x")]
    with pytest.raises(Refused, match=f"may not control D-{job}"):
        await bot.db.run_transaction(lambda conn: attachments.add(conn, job, erins, add))
    assert (await submit("U-ERIN", "2", "b")).outcome == "joined"
    assert [item.name for item in await known.attachments.of_job(job)] == ["a", "b"]
