"""A server whose schema belongs to an ordinary role, without the right to create roles."""

from __future__ import annotations

from psycopg import sql

from draftsman.database import migrate
from draftsman.jobs.job import Source, Status
from draftsman.people.actor import Actor
from draftsman.questions.question import Decision
from draftsman.questions.response import Response
from draftsman.runtime import open_runtime, wire
from draftsman.settings import Settings, settings_model
from draftsman_testing.factories import GATE, Factory
from draftsman_testing.people import GROUPS, PEOPLE
from tests.support.roles import Roles
from tests.support.server import Server


async def test_an_owner_without_superuser_rights_can_migrate_and_run_jobs(
    server: Server, roles: Roles, settings: Settings, owner: Actor
) -> None:
    name = server.create(migrated=False)
    role = sql.Identifier(roles.name("stranger"))
    server.admin.execute(
        sql.SQL("ALTER DATABASE {} OWNER TO {}").format(sql.Identifier(name), role)
    )
    url = roles.url(name, "stranger")
    output = list[str]()
    assert await migrate.migrate(url, output.append)
    assert output == []
    values = settings.model_dump() | {"database_url": url, "people": PEOPLE, "groups": GROUPS}
    async with open_runtime(settings_model().model_validate(values)) as rt:
        assert (await rt.read_model.health())[0].kind == "owner"
        programs = wire(rt.settings, rt.db, False)
        work = await Factory(programs, owner).asked(GATE)
        carol = programs.policy.resolve(Actor(Source.CLI, "carol", "Carol"))
        yes = Response(source_event_id="c", decision=Decision.APPROVE)
        verdict = await programs.questions.answer(work.number, 1, yes, carol)
        assert verdict.job_status is Status.RESUMED
        await rt.people.save(roles.people())
        assert "anna" in (await rt.people.directory()).people
        assert not any((await rt.read_model.invariants()).values())
    server.leave(name)
