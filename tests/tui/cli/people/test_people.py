"""People of the configuration and linked chat accounts."""

from __future__ import annotations

from draftsman.people.actor import Actor
from draftsman.people.service.people import CODE_LIFE
from draftsman.runtime import Runtime
from tests.support.clock import Clock
from tests.tui.cli.cli_runner import Cli

STRANGER = Actor("slack", "U1", "Owner in Slack")


async def test_a_code_links_an_identity_to_the_person_who_enters_it(cli: Cli, rt: Runtime) -> None:
    code = await rt.people.create_link_code(STRANGER)
    assert (await rt.people.actor(STRANGER)).person is None
    account = (await cli("people", "link", f" {code[:5].lower()}-{code[5:]}", "--json")).json
    assert (account["channel"], account["external_id"]) == ("slack", "U1")
    person = account["person"]
    assert (await rt.people.actor(STRANGER)).person == person
    output = (await cli("people", "list")).out
    assert [person, "slack:U1", "(Owner", "in", "Slack)"] in [
        line.split()[:5] for line in output.splitlines()
    ]
    (await cli("people", "link", code)).refused(3, "the code is invalid, used or expired")
    done = await cli("people", "unlink", "slack:U1")
    assert done.out == f"account slack:U1 unlinked from {person}\n"
    assert (await rt.people.actor(STRANGER)).person is None
    (await cli("people", "unlink", "slack:U1")).refused(3, "slack:U1 is not linked to a person")


async def test_a_code_is_valid_for_15_minutes_and_only_the_newest(
    cli: Cli, rt: Runtime, clock: Clock
) -> None:
    first = await rt.people.create_link_code(STRANGER)
    second = await rt.people.create_link_code(STRANGER)
    (await cli("people", "link", first)).refused(3, "request a new code")
    await clock.forward(CODE_LIFE + 1)
    (await cli("people", "link", second)).refused(3, "request a new code")


async def test_people_of_the_configuration_are_listed(cli: Cli, rt: Runtime) -> None:
    listing = (await cli("people", "list", "--json")).json
    assert set(listing) == {"people", "links"}
    (await cli("people", "unlink", "anna")).refused(2, "use CHANNEL:ID")
