"""`people`: who is who, and identities that are joined to people with a code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from draftsman.errors import UsageError
from draftsman_tui.cli import params, times
from draftsman_tui.cli.app import App, Group, command, example_lines
from draftsman_tui.cli.output import line, one_line, words

if TYPE_CHECKING:
    from draftsman.settings import Settings


@click.group(
    "people",
    cls=Group,
    epilog=example_lines(("draftsman people list", "draftsman people link K7PQ2MXWAB")),
)
def people() -> None:
    """Show who is who, and join identities of chat to people.

    Who is named in the configuration needs no code: [people.NAME] slack = "U012ABCDEF".
    """


@command("list", examples=("draftsman people list", "draftsman people list --json"))
async def list_them(app: App) -> None:
    """List people: those of the configuration, and the identities that were joined to somebody."""
    async with app.runtime(read_only=True) as rt:
        links = await rt.people.links()
    known = _configured(app.settings)
    if app.json:
        app.out.document({"people": known, "links": links})
        return
    for person in known:
        ids = ", ".join(f"{name} {value}" for name, value in person["ids"].items())
        roles = ", ".join(person["roles"]) or "no role"
        app.out.print(line(words(str(person["name"]), "bold"), f"  {roles}  {ids}"))
    for joined in links:
        who = one_line(joined.display_name)
        when = times.ago(joined.linked_at)
        app.out.print(
            line(
                words(joined.person, "bold"),
                f"  {joined.channel} {joined.external_id} ({who}) joined {when}"
                f" by {joined.linked_by}",
            )
        )
    if not known and not links:
        app.out.say("nobody is configured: add [people.NAME], or send /draftsman link in Slack")


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
    app.out.say(f"if that is not you: draftsman people unlink {made.channel}:{made.external_id}")


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


def _configured(settings: Settings) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "roles": list(person.roles),
            "ids": person.model_dump(include={"login", "slack", "trello"}, exclude_none=True),
        }
        for name, person in sorted(settings.people.items())
    ]


for _each in (list_them, link, unlink):
    people.add_command(_each)
