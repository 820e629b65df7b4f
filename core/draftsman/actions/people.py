"""Actions on people, their accounts, sessions and digests."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from draftsman.actions.action import (
    About,
    ActionResult,
    Arguments,
    Call,
    Subject,
    Surface,
    action,
)
from draftsman.channels import CHANNEL_NAME, ChannelName
from draftsman.errors import CommandHint, NotFound, Refused, UsageError
from draftsman.formats import times
from draftsman.formats.amounts import counted
from draftsman.formats.invisible import one_line
from draftsman.people.policy import Verb

if TYPE_CHECKING:
    from draftsman.attention.digests import DigestHours
    from draftsman.people.directory import (
        Directory,
        DirectoryChange,
        DirectoryEntry,
        IdentityLink,
    )
    from draftsman.runtime import Runtime

COMMANDS: Final = frozenset({Surface.COMMANDS})
Account = tuple[ChannelName, str]


def parse_account(text: str) -> Account:
    """Parse `CHANNEL:ID`; raises UsageError."""
    channel, _, id = text.partition(":")
    if not id or not CHANNEL_NAME.fullmatch(channel):
        raise UsageError(
            f"{text[:60]!r}: use CHANNEL:ID",
            hint=CommandHint("people list", lead="for the accounts"),
        )
    from draftsman.settings.channel_tables import account_id

    return channel, account_id(channel, id)


@action(
    About.ACCOUNT,
    undo="unlink",
    takes=Arguments("CODE", prompt="Link code from the chat?", example="K7PQ2MXWAB"),
    row=str,
)
async def link(call: Call, code: str) -> ActionResult[IdentityLink]:
    """Link a chat account to you, by its code."""
    account = await call.rt.people.link(code, call.actor)
    identity = f"{account.channel}:{account.external_id}"
    hint = CommandHint("people unlink", identity, lead="if this is not your account")
    name = f" ({account.display_name})" if account.display_name else ""
    subject = f"account {identity}{name}"
    return ActionResult(f"linked to {account.person}", account, then=hint, subject=subject)


@action(About.ACCOUNT, surfaces={Surface.CHAT})
async def create_link_code(call: Call, account: Account) -> ActionResult[str]:
    """Link your account to a person in the configuration."""
    code = await call.rt.people.create_link_code(call.actor)
    hint = CommandHint("people link", code, lead="to link it, in a terminal that knows you")
    return ActionResult("has a link code, valid once, for 15 minutes", code, then=hint)


async def linked_accounts(call: Call, _: object) -> Sequence[tuple[str, str]]:
    """Return the linked accounts; raises Refused if there are none."""
    accounts = [f"{link.channel}:{link.external_id}" for link in await call.rt.people.links()]
    if not accounts:
        raise Refused("no chat account is linked")
    return [(account, account) for account in accounts]


@action(
    About.ACCOUNT,
    right=Verb.UNLINK,
    takes=Arguments("CHANNEL:ID", prompt="Unlink which account?", choices=linked_accounts),
    row=parse_account,
    question="Unlink {}?",
    consequence="It acts as no person until it is linked again, with a new code.",
    destroys=True,
    undo="link",
)
async def unlink(call: Call, account: Account) -> ActionResult[str]:
    """Unlink a chat account."""
    channel, id = account
    person = await call.rt.people.unlink(channel, id, call.actor)
    data = {"channel": channel, "external_id": id, "person": person}
    return ActionResult(f"unlinked from {person}", person, data=data)


# Pages in a browser: links that sign in, and sessions.


@action(About.ACCOUNT, surfaces=COMMANDS | {Surface.CHAT}, undo="sign out")
async def sign_in(call: Call, origin: str) -> ActionResult[tuple[str, datetime]]:
    """Sign in to the pages of draftsman, by a link that works once."""
    from draftsman.people.service.browser_sessions import BrowserSessions

    token, expires_at = await BrowserSessions(call.rt.db, call.rt.policy).create_link(call.actor)
    url = f"{origin}/sign-in/{token}"
    person = call.actor.person
    data = {"url": url, "expires_at": expires_at, "person": person}
    says = f"signs in as {person}, once, until {times.clock_with_zone(expires_at)}"
    then = CommandHint("people sessions", lead="to end sessions")
    return ActionResult(says, (url, expires_at), then=then, data=data, subject="link")


@action(About.ACCOUNT, surfaces=COMMANDS)
async def sign_out(call: Call, person: str | None, session: int | None = None) -> ActionResult[int]:
    """End a session in a browser, or all sessions of a person."""
    from draftsman.people.service.browser_sessions import BrowserSessions

    service = BrowserSessions(call.rt.db, call.rt.policy)
    if session is not None:
        await service.end(session)
        ended = 1
    else:
        ended = await service.end_all(person or "")
    subject = counted(ended, "session")
    return ActionResult("ended", ended, data={"ended": ended}, subject=subject)


@action(About.PERSON, takes=Arguments("HOURS|off"), surfaces=COMMANDS)
async def digest(
    call: Call, person: str | None, hours: str, timezone: str | None = None
) -> ActionResult[DigestHours | None]:
    """Get your questions in a digest at hours of your own."""
    chosen = await call.rt.digests.choose(hours, call.actor, timezone=timezone, person=person)
    return digest_result(chosen)


def digest_result(chosen: DigestHours | None) -> ActionResult[DigestHours | None]:
    """Return the hours of a digest."""
    if chosen is None:
        return ActionResult("questions notify at once", None, subject="no digest:")
    following = f"; the next {times.until(chosen.next_at)}" if chosen.next_at is not None else ""
    says = f"of {chosen.person} at {chosen.text} {chosen.timezone}{following}"
    return ActionResult(says, chosen, subject="digest")


# The people in the database.


async def stored_directory(rt: Runtime) -> Directory:
    """Return the people in the database; raises UsageError if the configuration defines them."""
    if rt.embedded and (rt.settings.people or rt.settings.groups):
        raise UsageError(
            "people of this embedded database are defined in the configuration: edit [people] there"
        )
    return await rt.people.directory()


async def changes_of(call: Call, new: Directory) -> Sequence[DirectoryChange]:
    """Return what a directory changes."""
    return (await call.rt.people.directory()).changes(new)


def _subject(changes: Sequence[DirectoryChange], what: str) -> Subject:
    lines = [f"{item.action} {item.kind} {item.name}: {one_line(item.detail)}" for item in changes]
    return Subject(what, lines=lines, needs_question=bool(changes))


async def _save(call: Call, new: Directory, subject: str, says: str) -> ActionResult[Any]:
    changes = await changes_of(call, new)
    data = {"changes": changes, "dry_run": False}
    if not changes:
        says = "unchanged: the database is up to date"
        return ActionResult(says, changes, data=data, subject=subject)
    await call.rt.people.save(new)
    detail = (f": {counted(len(changes), 'change')}; running processes apply them within seconds",)
    return ActionResult(says, changes, detail, data=data, subject=subject)


async def imported(call: Call, new: Directory, **_: object) -> Subject:
    """Return the changes of an import."""
    changes = await changes_of(call, new)
    return _subject(changes, counted(len(changes), "change"))


@action(
    About.PERSON,
    name="import",
    question="Import {}?",
    consequence="Replaces the people and groups in the database.",
    destroys=True,
    guarded=True,
    check=imported,
    surfaces=COMMANDS,
)
async def import_people(call: Call, new: Directory) -> ActionResult[Sequence[DirectoryChange]]:
    """Import people, groups and self_approval from the configuration into the database."""
    return await _save(call, new, "people", "imported")


async def changed_person(
    call: Call, name: str, entry: DirectoryEntry, groups: Collection[str], **_: object
) -> Subject:
    """Return the changes of a person."""
    new = (await stored_directory(call.rt)).with_person(name, entry, groups)
    return _subject(await changes_of(call, new), f"person {name}")


@action(
    About.PERSON,
    name="set",
    question="Save {}?",
    consequence="Replaces their roles, accounts and groups.",
    destroys=True,
    guarded=True,
    check=changed_person,
    surfaces=COMMANDS,
)
async def set_person(
    call: Call, name: str, entry: DirectoryEntry, groups: Collection[str]
) -> ActionResult[Sequence[DirectoryChange]]:
    """Add a person, or replace the roles, accounts and groups of an existing person."""
    new = (await stored_directory(call.rt)).with_person(name, entry, groups)
    return await _save(call, new, f"person {name}", "saved")


async def removed_person(call: Call, name: str, **_: object) -> Subject:
    """Return the changes of a removal; raises NotFound."""
    stored = await stored_directory(call.rt)
    if name not in stored.people:
        raise NotFound(f"unknown person {name!r}", hint=CommandHint("people list", lead="see"))
    return _subject(await changes_of(call, stored.without_person(name)), f"person {name}")


@action(
    About.PERSON,
    name="remove",
    question="Remove {}?",
    consequence="Removes their roles, accounts and groups. Their answers are kept.",
    destroys=True,
    guarded=True,
    check=removed_person,
    surfaces=COMMANDS,
)
async def remove_person(call: Call, name: str) -> ActionResult[Sequence[DirectoryChange]]:
    """Remove a person with all roles, accounts and groups; answers are kept."""
    await removed_person(call, name)
    new = (await stored_directory(call.rt)).without_person(name)
    return await _save(call, new, f"person {name}", "removed")
