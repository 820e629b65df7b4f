"""`people`: people, roles and identities, and links of chat accounts with a code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from draftsman.domain.people.directory import Directory, DirectoryEntry
from draftsman.domain.people.policy import ROLES
from draftsman.errors import NotFound, UsageError
from draftsman_tui.cli import prompts
from draftsman_tui.cli.app import App, Group, command, example_lines
from draftsman_tui.common import params, times
from draftsman_tui.common.output import line, one_line, styled

if TYPE_CHECKING:
    from draftsman.runtime import Runtime
    from draftsman.settings import Settings


@click.group(
    "people",
    cls=Group,
    epilog=example_lines(("draftsman people list", "draftsman people link K7PQ2MXWAB")),
)
def people() -> None:
    """Show and change people, their roles and identities.

    A server keeps them in its database, and only the owner of the schema changes them; an embedded
    database takes those of the configuration. A chat account that is set there needs no code.
    """


@command("list", examples=("draftsman people list", "draftsman people list --json"))
async def list_people(app: App) -> None:
    """List people, with their roles and identities, and the chat accounts that were linked."""
    async with app.runtime(read_only=True) as rt:
        links = await rt.people.links()
        found = await rt.people.directory()
    known = _shown(found or configured(app.settings))
    if app.json:
        app.out.document({"people": known, "links": links})
        return
    for person in known:
        ids = ", ".join(f"{name} {value}" for name, value in person["ids"].items())
        roles = ", ".join(person["roles"]) or "no role"
        app.out.print(line(styled(str(person["name"]), "bold"), f"  {roles}  {ids}"))
    for joined in links:
        who = one_line(joined.display_name)
        when = times.ago(joined.linked_at)
        app.out.print(
            line(
                styled(joined.person, "bold"),
                f"  {joined.channel} {joined.external_id} ({who}) joined {when}"
                f" by {joined.linked_by}",
            )
        )
    if not known and not links:
        app.out.info("nobody is known: draftsman people set, or [people.NAME] in the configuration")


@command("link", examples=("draftsman people link K7PQ2MXWAB",))
@click.argument("code", type=params.TEXT)
async def link(app: App, code: str) -> None:
    """Join an identity of chat to you.

    CODE is what `/draftsman link` said there, less than a quarter of an hour ago. Enter only one
    that you asked for yourself: whoever did acts in your name from then on.
    """
    async with app.runtime() as rt:
        made = await rt.people.link(code, await rt.actor())
    if app.json:
        app.out.document(made)
        return
    who = one_line(made.display_name)
    app.out.print(f"{made.channel} {made.external_id} ({who}) is {made.person} from now on")
    app.out.info(f"if that is not you: draftsman people unlink {made.channel}:{made.external_id}")


@command("unlink", examples=("draftsman people unlink slack:U012ABCDEF",))
@click.argument("identity", metavar="CHANNEL:ID", type=params.TEXT)
async def unlink(app: App, identity: str) -> None:
    """Part an identity of chat from its person."""
    from draftsman.domain.job import Source

    name, _, id = identity.partition(":")
    if name not in (Source.SLACK, Source.TRELLO) or not id:
        raise UsageError(f"{identity[:60]!r}: give slack:ID or trello:ID, as people list shows it")
    async with app.runtime() as rt:
        person = await rt.people.unlink(Source(name), id, await rt.actor())
    if app.json:
        app.out.document({"channel": name, "external_id": id, "person": person})
    else:
        app.out.print(f"{name} {id} is {person} no longer")


@command("import", examples=("draftsman people import --dry-run", "draftsman people import --yes"))
@click.option("--dry-run", is_flag=True, help="Show what would change; change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
async def import_people(app: App, dry_run: bool, yes: bool) -> None:
    """Write the people, groups and self_approval of the configuration into the database.

    What would be added, changed and removed is shown first. Only the owner of the schema may.
    """
    async with app.runtime(read_only=dry_run) as rt:
        if rt.embedded:
            raise UsageError("an embedded database takes the people of its configuration by itself")
        await change(app, rt, configured(app.settings), dry_run=dry_run, yes=yes)


@command(
    "set",
    examples=(
        "draftsman people set anna --role invoker --role approver --login anna --slack U012ABCDEF",
    ),
)
@click.argument("name", type=params.TEXT)
@click.option("--role", "roles", multiple=True, type=click.Choice(sorted(ROLES)), help="A role.")
@click.option("--login", type=params.TEXT, help="Database role, on the embedded database login.")
@click.option("--slack", type=params.TEXT, help="User of Slack.")
@click.option("--trello", type=params.TEXT, help="Member of Trello.")
@click.option("--quiet", type=params.TEXT, help="Hours without reminders, as 22:00-07:00.")
@click.option("--timezone", type=params.TEXT, help="Where they live, as Europe/Berlin.")
@click.option("--group", "groups", multiple=True, type=params.TEXT, help="A group they are in.")
@click.option("--yes", is_flag=True, help="Do not ask.")
async def set_person(app: App, name: str, yes: bool, groups: tuple[str, ...], **given: Any) -> None:
    """Add a person, or replace what is known of one: roles, identities and groups."""
    from pydantic import ValidationError

    from draftsman import field_errors
    from draftsman.settings.tables import PersonSettings

    try:
        checked = PersonSettings.model_validate(given)
    except ValidationError as error:
        raise UsageError(": ".join(filter(None, field_errors.first_error(error)))) from None
    ids = {"cli": checked.login, "slack": checked.slack, "trello": checked.trello}
    entry = DirectoryEntry(
        frozenset(checked.roles),
        {channel: id for channel, id in ids.items() if id},
        checked.quiet,
        checked.timezone,
    )
    async with app.runtime() as rt:
        found = await _own(rt)
        await change(app, rt, found.with_person(name, entry, groups), yes=yes)


@command("remove", examples=("draftsman people remove anna",))
@click.argument("name", type=params.TEXT)
@click.option("--yes", is_flag=True, help="Do not ask.")
async def remove(app: App, name: str, yes: bool) -> None:
    """Remove a person: no role, identity or group is left. Their answers stay."""
    async with app.runtime() as rt:
        found = await _own(rt)
        if name not in found.people:
            raise NotFound(f"there is no person {name!r}; see: draftsman people list")
        await change(app, rt, found.without_person(name), yes=yes)


def configured(settings: Settings) -> Directory:
    """Return the people of the configuration."""
    from draftsman.configured import directory

    return directory(settings)


async def change(
    app: App, rt: Runtime, new: Directory, *, dry_run: bool = False, yes: bool = False
) -> None:
    """Show what changes in the database's people, ask, and change it."""
    changes = (await rt.people.directory()).changes(new)
    if app.json:
        app.out.document({"changes": changes, "dry_run": dry_run})
    for each in changes if not app.json else ():
        text = f"{each.action} {each.what} "
        app.out.print(line(text, styled(each.name, "bold"), f": {one_line(each.detail)}"))
    if not changes:
        app.out.info("nothing to change: the database has these people")
    if dry_run or not changes:
        return
    if not yes:
        if not app.out.interactive:
            raise UsageError("people are changed when you say so: give --yes, or --dry-run to look")
        prompts.confirm(f"write {len(changes)} changes?")
    await rt.people.save(new)
    if not app.json:
        app.out.info("written; processes that run take it up within seconds")


async def _own(rt: Runtime) -> Directory:
    """Return the people of the database where they are kept there, and not in a configuration."""
    if rt.embedded and (rt.settings.people or rt.settings.groups):
        raise UsageError(
            "the configuration names the people of this embedded database: edit [people] there"
        )
    return await rt.people.directory()


def _shown(found: Directory) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "roles": sorted(entry.roles),
            "ids": {"login" if key == "cli" else key: id for key, id in entry.ids.items()},
        }
        for name, entry in sorted(found.people.items())
    ]


for _each in (list_people, link, unlink, import_people, set_person, remove):
    people.add_command(_each)
