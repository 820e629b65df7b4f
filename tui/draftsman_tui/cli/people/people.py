"""The `people` command group: people, roles and linked chat accounts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from draftsman.actions import people as actions
from draftsman.entities.people import LINKS, PEOPLE, person_row
from draftsman.errors import UsageError
from draftsman.formats import times
from draftsman.formats.invisible import one_line
from draftsman.people.configuration import configured_directory, entry_of
from draftsman.people.policy import ROLES
from draftsman_tui.cli.app import App, ListGroup, command_group
from draftsman_tui.cli.lists import print_list
from draftsman_tui.cli.perform import act, call_of, perform
from draftsman_tui.terminal import params
from draftsman_tui.terminal.output import line, styled

if TYPE_CHECKING:
    from collections.abc import Sequence


# The commands `people sessions` and `people sign-out`: sessions of the web inbox.


@command_group(
    "people",
    section="Setup",
    cls=ListGroup,
    examples=("draftsman people list", "draftsman people link K7PQ2MXWAB"),
)
def people() -> None:
    """Manage people, their roles and chat accounts.

    On a server, people are stored in the database, and only the schema owner may change them. The
    embedded database uses the people of the configuration. A chat account that is listed with its
    person needs no link code.
    """


@people.subcommand(
    "sessions", examples=("draftsman people sessions", "draftsman people sessions --json")
)
async def sessions(app: App) -> None:
    """List sessions of the web inbox: your own, of all people for operators."""
    from draftsman.people.service.browser_sessions import BrowserSessions

    async with app.runtime(read_only=True) as rt:
        browser_sessions = await BrowserSessions(rt.db, rt.policy).sessions()
    if app.json:
        app.out.document({"sessions": browser_sessions})
        return
    for session in browser_sessions:
        agent = one_line(session.user_agent)[:60] or "unknown browser"
        app.out.print(
            line(
                styled(f"{session.id:>6}  {session.person}", "bold"),
                f"  by {session.method} {times.ago(session.created_at)},"
                f" expires {times.until(session.expires_at)}  {agent}",
            )
        )
    if not browser_sessions:
        app.out.info("no sessions; to sign in: draftsman link --web")


@people.subcommand(
    "sign-out",
    examples=("draftsman people sign-out 12", "draftsman people sign-out --person anna"),
    does=(actions.sign_out,),
)
@click.argument("session", type=params.ROW, required=False)
@click.option("--person", type=params.TEXT, help="End all sessions of this person.")
async def sign_out(app: App, session: int | None, person: str | None) -> None:
    """End a session of the web inbox, or all sessions of a person.

    The browser is signed out with its next request. Operators may end the sessions of others.
    """
    if (session is None) == (person is None):
        raise UsageError("give the number of a session (draftsman people sessions), or --person")
    await perform(app, actions.sign_out, person, session=session)


@people.subcommand(
    "list", examples=("draftsman people list", "draftsman people list --json"), lists=PEOPLE
)
async def list_people(app: App) -> None:
    """List people with their roles, and linked chat accounts."""
    async with app.runtime(read_only=True) as rt:
        links = await rt.people.links()
        stored = await rt.people.directory()
    directory = stored or configured_directory(app.settings)
    rows = [person_row(name, entry) for name, entry in sorted(directory.people.items())]
    if app.counts:
        print_list(app, PEOPLE, rows)
        return
    if app.json:
        app.out.document({"people": rows, "links": links})
        return
    if rows or not links:
        print_list(app, PEOPLE, rows)
    if links:
        print_list(app, LINKS, links)


@people.subcommand("link", examples=("draftsman people link K7PQ2MXWAB",), does=(actions.link,))
@click.argument("code", type=params.TEXT)
async def link(app: App, code: str) -> None:
    """Link a chat account to you.

    CODE is the reply to `/draftsman link` in chat, valid for 15 minutes. Enter only a code that you
    requested yourself: the account that requested it can act as you.
    """
    await perform(app, actions.link, code)


@people.subcommand(
    "unlink",
    examples=(
        "draftsman people unlink slack:U012ABCDEF",
        "draftsman people unlink forge:github:anna",
    ),
    does=(actions.unlink,),
)
@click.argument("identity", metavar="CHANNEL:ID", type=params.TEXT)
async def unlink(app: App, identity: str, yes: bool) -> None:
    """Unlink a chat account, or the account of a login at a forge.

    A login at a forge keeps its person, and belongs to the next account that acts under it.
    """
    await perform(app, actions.unlink, actions.parse_account(identity), yes=yes)


@people.subcommand(
    "import",
    examples=("draftsman people import --dry-run", "draftsman people import --yes"),
    does=(actions.import_people,),
)
@click.option("--dry-run", is_flag=True, help="Show the changes without making them.")
async def import_people(app: App, dry_run: bool, yes: bool) -> None:
    """Import people, groups and self_approval from the configuration into the database.

    Shows the changes and asks for confirmation. Only the schema owner may import.
    """
    async with app.runtime(read_only=dry_run) as rt:
        if rt.embedded:
            raise UsageError("the embedded database uses the people of the configuration directly")
        new = configured_directory(app.settings)
        if not dry_run:
            await act(app, rt, actions.import_people, new, yes=yes)
            return
        call = await call_of(app, rt)
        if app.json:
            changes = await actions.changes_of(call, new)
            app.out.document({"changes": changes, "dry_run": True})
        elif (asked := await actions.import_people.asked(call, new)) is not None:
            app.out.print(*asked.lines)
        else:
            app.out.info("no changes: the database is up to date")


@people.subcommand(
    "set",
    examples=(
        "draftsman people set anna --role invoker --role approver --login anna --account slack:U0",
    ),
    does=(actions.set_person,),
)
@click.argument("name", type=params.TEXT)
@click.option(
    "--role", "roles", multiple=True, type=click.Choice(sorted(ROLES)), help="Role; repeatable."
)
@click.option("--login", type=params.TEXT, help="Database role, or login on the embedded database.")
@click.option(
    "--quiet-hours", type=params.TEXT, help="Hours without interruptions, e.g. 22:00-07:00."
)
@click.option(
    "--working-hours", type=params.TEXT, help="Working hours, e.g. 'Mon-Fri 09:00-17:00'."
)
@click.option("--holidays", type=params.TEXT, help="Table of [holidays] in the configuration.")
@click.option(
    "--account",
    "accounts",
    multiple=True,
    type=params.TEXT,
    metavar="CHANNEL:ID",
    help="Account in a channel, e.g. slack:U012ABCDEF or forge:github:anna; repeatable.",
)
@click.option("--timezone", type=params.TEXT, help="Time zone, e.g. Europe/Berlin.")
@click.option("--group", "groups", multiple=True, type=params.TEXT, help="Group; repeatable.")
async def set_person(
    app: App,
    name: str,
    yes: bool,
    groups: tuple[str, ...],
    accounts: tuple[str, ...],
    **fields: Any,
) -> None:
    """Add a person, or replace the roles, accounts and groups of an existing person."""
    from pydantic import ValidationError

    from draftsman import field_errors
    from draftsman.settings import settings_model
    from draftsman.settings.channel_tables import person_model

    try:
        checked = person_model(settings_model()).model_validate(fields | _accounts(accounts))
    except ValidationError as error:
        raise field_errors.field_error(error) from None
    await perform(app, actions.set_person, name, entry=entry_of(checked), groups=groups, yes=yes)


def _accounts(accounts: Sequence[str]) -> dict[str, str | list[str]]:
    """Return the accounts by channel; raises UsageError."""
    by_channel: dict[str, list[str]] = {}
    for account in accounts:
        channel, separator, id = account.partition(":")
        if not separator or not id:
            raise UsageError(f"{account[:60]!r}: use CHANNEL:ID, such as slack:U012ABCDEF")
        by_channel.setdefault(channel, []).append(id)
    return {name: ids[0] if len(ids) == 1 else ids for name, ids in by_channel.items()}


@people.subcommand(
    "remove", examples=("draftsman people remove anna",), does=(actions.remove_person,)
)
@click.argument("name", type=params.TEXT)
async def remove(app: App, name: str, yes: bool) -> None:
    """Remove a person with all roles, accounts and groups; answers are kept."""
    await perform(app, actions.remove_person, name, yes=yes)
