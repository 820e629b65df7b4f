"""People: from the configuration first, then by linked identities."""

from __future__ import annotations

import pytest

from draftsman.channels.accounts import direct_target
from draftsman.database.database import Connection, Database
from draftsman.deliveries.service.quiet_hours import recipient
from draftsman.errors import NotFound, NotPermitted, UsageError
from draftsman.jobs.job import Source
from draftsman.people.actor import Actor
from draftsman.people.configuration import configured_policy
from draftsman.people.directory import Directory, DirectoryEntry
from draftsman.people.policy import ROLES, Policy
from draftsman.people.service.people import People
from draftsman.runtime import Runtime
from draftsman_testing.people import People as Actors
from tests.support.statements import rows

IN_SLACK = Actor("slack", "U1", "Somebody")


async def test_the_owner_of_an_embedded_database_needs_no_configuration(db: Database) -> None:
    people = People(db, Policy(login="root"))
    owner = Actor(Source.CLI, "root", "root", owner=True)
    await people.link(await people.create_link_code(IN_SLACK), owner)
    known = await people.actor(IN_SLACK)
    assert (known.person, known.owner, known.roles) == ("root", False, ROLES), (
        "a person like others"
    )
    elsewhere = await People(db, Policy()).actor(IN_SLACK)
    assert (elsewhere.person, elsewhere.owner, elsewhere.roles) == ("root", False, frozenset())


async def test_messages_go_to_the_first_of_several_accounts_and_each_is_the_persons(
    rt: Runtime, people: Actors, conn: Connection
) -> None:
    mails = [("mail", "z@example.org"), ("mail", "a@example.org"), ("mail", "m@example.org")]
    stored = Directory({"eve": DirectoryEntry(frozenset({"responder"})).with_accounts(mails)})
    await rt.people.save(stored)
    entry = (await rt.people.directory()).people["eve"]
    assert entry.accounts == mails
    assert entry.describe() == (
        "responder; mail z@example.org; mail a@example.org; mail m@example.org"
    )
    assert await rows(conn, "SELECT * FROM draftsman.target_of_person('eve')") == [
        ("mail", "z@example.org")
    ]
    policy = configured_policy(rt.settings, stored)
    eve = policy.people["eve"]
    assert direct_target(eve.ids) == ("mail", "z@example.org")
    for _, address in mails:
        assert policy.resolve(Actor("mail", address, "Eve")).person == "eve"
        assert policy.requester(f"mail:{address}") == "eve"
        assert recipient(policy, address, "mail") is eve
        assert await rows(conn, "SELECT draftsman.person_of('mail', %s)", (address,)) == [("eve",)]
    assert recipient(policy, "x@example.org", "mail") is None


async def test_a_linked_identity_has_the_current_roles_of_its_person(
    rt: Runtime, people: Actors
) -> None:
    await rt.people.link(await rt.people.create_link_code(IN_SLACK), people.olga)
    known = await rt.people.actor(IN_SLACK)
    assert (known.person, known.roles, known.voter) == ("olga", frozenset({"operator"}), "olga")
    assert (await rt.people.actor(people.on("slack", "ben"))).person == "ben"


async def test_an_actor_without_a_person_cannot_link_an_identity(
    rt: Runtime, people: Actors
) -> None:
    code = await rt.people.create_link_code(IN_SLACK)
    with pytest.raises(NotPermitted, match="is not linked to a person"):
        await rt.people.link(code, people.mallory)
    with pytest.raises(NotFound, match="request a new code"):
        await rt.people.link("x", people.anna)
    with pytest.raises(UsageError, match="this account is already linked to ben"):
        await rt.people.create_link_code(people.on("slack", "ben"))


async def test_an_identity_is_unlinked_by_its_person_or_an_operator(
    rt: Runtime, people: Actors
) -> None:
    for actor in (people.anna, people.olga):
        await rt.people.link(await rt.people.create_link_code(IN_SLACK), people.anna)
        with pytest.raises(NotPermitted):
            await rt.people.unlink("slack", "U1", people.ben)
        assert await rt.people.unlink("slack", "U1", actor) == "anna"
    assert (await rt.people.links()) == []
