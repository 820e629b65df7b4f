"""Messages and mentions: words for the bot, replies in threads, and everything else.

A mention comes twice, as itself and as a message; both copies do the same, under one key.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from draftsman.errors import DraftsmanError
from draftsman_bots.slack import grammar, inbound
from draftsman_bots.slack.blocks import section
from draftsman_bots.slack.grammar import Request, Unclear, Wish
from draftsman_bots.slack.inbound import Change, Message
from draftsman_bots.slack.listeners import replies, requests
from draftsman_bots.slack.listeners.requests import Asked, place
from draftsman_bots.slack.listeners.take import take
from draftsman_bots.slack.listeners.whisper import Place, Said, comes_again, refusal, whisper
from draftsman_bots.slack.text import escaped

if TYPE_CHECKING:
    from slack_bolt.async_app import AsyncApp

    from draftsman_bots.slack.listeners.desk import Desk

_log = logging.getLogger(__name__)


def register(app: AsyncApp, desk: Desk) -> None:
    """Put both events on the app."""

    async def message(ack: Any, body: dict[str, Any], context: Any) -> None:
        await hear(desk, body, context.bot_user_id or "")
        await ack()

    app.event("message")(message)
    app.event("app_mention")(message)


async def hear(desk: Desk, body: dict[str, Any], bot: str) -> None:
    """Do what a message asks for; raises what lets Slack send it again."""
    found = inbound.message(body, bot)
    if found is None:
        _log.debug("a message that no person wrote was ignored")
        return
    try:
        said = await _route(desk, found)
    except DraftsmanError as error:
        if comes_again(error):
            raise
        said = refusal(error, found.who.id)
    _tell(desk, found, said)


async def missed(desk: Desk, body: dict[str, Any], bot: str, *, tells: bool) -> None:
    """Take a reply that no event brought as an answer; a command is not done so late.

    `tells`: its writer is told why it does not count. Raises what may fare better later.
    """
    found = inbound.message(body, bot)
    if found is None or not found.thread:
        return
    read = grammar.parse(found.text)
    try:
        if _is_command(found, read) and not await replies.questions_for(desk, found, read):
            return
        said = await replies.reply(desk, found)
    except DraftsmanError as error:
        if comes_again(error):
            raise
        said = refusal(error, found.who.id)
    if tells and said is not replies.NOT_ABOUT_US:
        _tell(desk, found, said)


def _tell(desk: Desk, message: Message, said: Said | None) -> None:
    if said is not None and desk.aside.first((message.key, message.text)):
        whisper(desk, Place(message.who.id, message.channel, message.thread), said)


async def _route(desk: Desk, message: Message) -> Said | None:
    """Return what is to be said to whoever wrote it, if anything."""
    if message.change is not Change.POSTED and await replies.touched(desk, message):
        return None
    if message.change is Change.DELETED:
        return None
    addressed = message.mentioned or message.private
    read = grammar.parse(message.text)
    made = message.change is Change.EDITED and addressed and await requests.made_of(desk, message)
    if made:
        return await requests.edited(desk, message, read, made)
    if message.thread:
        said = await _in_thread(desk, message, read)
        if said is not replies.NOT_ABOUT_US:
            return said
    if not addressed:
        return await replies.hint(desk, message)
    beside = message.private and isinstance(read, Unclear)
    if beside and (said := await replies.hint(desk, message)) is not None:
        return said
    if message.change is Change.EDITED and not isinstance(read, Request):
        return None
    asked = Asked(message.key, place(message.channel, message.thread or message.ts, message.who.id))
    said = await take(desk, message.who, message.channel, asked, message.text)
    # A job says itself, in the thread, that it is there.
    return said if said is None or said.news else None


async def _in_thread(desk: Desk, message: Message, read: Request | Wish | Unclear) -> Said | None:
    """Take a message in a thread as an answer; return NOT_ABOUT_US where it is none."""
    if not _is_command(message, read):
        return await replies.reply(desk, message)
    if names := await replies.questions_for(desk, message, read):
        return _with_command(desk, message, await replies.reply(desk, message), names)
    waiting = await replies.waiting(desk, message) if isinstance(read, Request) else []
    if not waiting:
        return replies.NOT_ABOUT_US
    return Said(
        f"A job waits in this thread for an answer to {', '.join(waiting)}: give it with the"
        " buttons. For a new job, write outside this thread."
    )


def _with_command(desk: Desk, message: Message, said: Said | None, names: list[str]) -> Said:
    """Return the reply to words that were an answer: how to give the same command instead."""
    typed = escaped(f"{desk.settings.command} {message.text.split(None, 1)[0]}", 100)
    note = (
        f"In this thread, what you write to me answers {' or '.join(names)}. For the command, type"
        f" `{typed}` outside of threads."
    )
    if said is None:
        return Said(note)
    blocks = [*said.blocks, section(note)] if said.blocks else None
    return Said(f"{said.text}\n{note}", blocks)


def _is_command(message: Message, read: Request | Wish | Unclear) -> bool:
    """Return whether a message in a thread reads as a command: a mention, and then a verb.

    `approve` and `deny` that name no question are about the thread's.
    """
    if not message.mentioned or isinstance(read, Unclear):
        return False
    return not (isinstance(read, Wish) and read.verb in ("approve", "deny") and not read.ref)
