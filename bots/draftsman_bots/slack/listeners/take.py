"""Words that were addressed to the bot: read, done, and what is said to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, assert_never

from draftsman_bots.slack import grammar
from draftsman_bots.slack.asking import NAME
from draftsman_bots.slack.grammar import Request, Unclear, Wish
from draftsman_bots.slack.listeners import requests, wishes
from draftsman_bots.slack.listeners.people import admit, admit_known
from draftsman_bots.slack.listeners.whisper import Said
from draftsman_bots.slack.text import escape, escaped

if TYPE_CHECKING:
    from draftsman.services.intake import Submitted
    from draftsman_bots.slack.inbound import Who
    from draftsman_bots.slack.listeners.desk import Desk
    from draftsman_bots.slack.listeners.requests import Asked

USAGE: Final = """\
`{0} fix TEXT` changes what TEXT asks for; `{0} investigate TEXT` looks and changes nothing
Before or after TEXT: `--repo=NAME`, `--agent=NAME`, `--ref=BRANCH`, `--mode=fix|investigate`
What is in quotes is text: `{0} fix "--repo is read twice"`; `--` ends the options
`{0} status [D-142]`, `{0} list`, `{0} show D-142`
`{0} cancel D-142 [REASON]`, `{0} retry D-142 [--again]`
`{0} answer D-142/1 TEXT`, `{0} approve D-142/1 [REASON]`, `{0} deny D-142/1 [REASON]`
`{0} link` joins you to a person that draftsman knows; `{0} help` says this
In the thread of a job {1}: `{2}ANSWER`, or for an approval `{2}approve` or `{2}deny REASON`
While a question is open there that takes words, a mention is its answer: use `{0}` for commands\
"""


def usage(desk: Desk) -> Said:
    """Return what can be written."""
    how, call = ("reply", "") if desk.identity.reads_replies else ("mention me", f"{NAME} ")
    return Said(USAGE.format(desk.settings.command, how, call))


async def take(desk: Desk, who: Who, channel: str, asked: Asked, text: str) -> Said | None:
    """Do what the words ask for; None where nothing is left to say. Raises DraftsmanError."""
    match grammar.parse(text):
        case Request() as request:
            actor = await admit_known(desk, who, channel)
            return await _made(desk, await requests.submit(desk, actor, asked, request), asked)
        case Wish("help"):
            await admit(desk, who)
            return usage(desk)
        case Wish("link"):
            return await _link(desk, who)
        case Wish() as wish:
            actor = await admit_known(desk, who, channel)
            return await wishes.grant(desk, actor, wish, asked.key)
        case Unclear(said, why):
            await admit(desk, who)
            return _unclear(desk, said, why)
        case unknown:
            assert_never(unknown)


async def _made(desk: Desk, made: Submitted | None, asked: Asked) -> Said | None:
    """Say what a request became; one that came before was told then."""
    if made is None or made.how == "deduplicated":
        return None
    said = f"{made.name} is {escape(str(made.status))}: it tells how it goes."
    other = await requests.alike(desk, made, asked) if made.how == "created" else None
    if other is None:
        return Said(said, news=False)
    state = str(other.status).replace("_", " ")
    return Said(
        f"{said}\nThe same was asked {other.ago:.0f} s ago as D-{other.number} ({escape(state)});"
        f" if one is enough, cancel the other: `{desk.settings.command} cancel {made.name}`"
    )


async def _link(desk: Desk, who: Who) -> Said:
    actor = await admit(desk, who)
    code = await desk.rt.people.offer(actor)
    return Said(
        f"Enter this in a terminal where draftsman knows you, within a quarter of an hour:"
        f" `draftsman people link {code}`. It counts once; give it to nobody."
    )


def _unclear(desk: Desk, said: str, why: str) -> Said:
    if why:
        return Said(escaped(why))
    first = escaped(said.split(None, 1)[0], 60) if said else ""
    verbs = ", ".join((*grammar.REQUESTS, *grammar.VERBS))
    return Said(f"{first} is nothing that draftsman does; begin with one of: {verbs}.")
