"""Commands on the attention of a question in chats: `ack`, `snooze` and `delegate`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from draftsman.attention.attention import ACKNOWLEDGED, SNOOZED, parse_delay
from draftsman.errors import UsageError
from draftsman.formats.times import spelled_time
from draftsman.ids import question_name

if TYPE_CHECKING:
    from draftsman.people.actor import Actor
    from draftsman.runtime import Runtime

VERBS: Final = ("ack", "snooze", "delegate")


@dataclass(frozen=True, slots=True)
class AttentionReply:
    """A reply, with a place `{}` for each of its times."""

    template: str
    times: tuple[datetime, ...]

    def text(self, show: Callable[[datetime], str] = spelled_time) -> str:
        """Return the text, with times as the channel shows them."""
        return self.template.format(*map(show, self.times))


async def execute(
    rt: Runtime, actor: Actor, verb: str, question: tuple[int, int], text: str
) -> AttentionReply:
    """Execute a command; return the reply. Raises DraftsmanError.

    `text` is a duration, or for `delegate` a person and maybe a duration.
    """
    name = question_name(*question)
    attention = rt.acknowledgments
    if verb == "ack":
        seconds = parse_delay(text, ACKNOWLEDGED)
        held = await attention.acknowledge(*question, actor, seconds)
        reply = name + ": you work on the answer until {}; others wait."
        return AttentionReply(reply, (held.expires_at,))
    if verb == "snooze":
        seconds = parse_delay(text, SNOOZED)
        until = await attention.snooze(*question, actor, seconds)
        return AttentionReply(name + ": no reminders for you until {}.", (until,))
    person, _, duration = text.removeprefix("to ").strip().partition(" ")
    if not person:
        raise UsageError(f"a person is required: delegate {name} to PERSON")
    person = person_named(rt, actor, person)
    seconds = parse_delay(duration, ACKNOWLEDGED)
    until = await attention.delegate(*question, actor, person, seconds)
    reply = f"{name} is delegated to {_plain(person)}; others wait until {{}}."
    now = until - timedelta(seconds=seconds)
    free_at = rt.policy.people[person].free_at(now)
    if free_at <= now or (await rt.questions.get(*question)).critical:
        return AttentionReply(reply, (until,))
    reply += f" {_plain(person)} is outside of their hours, and is notified at {{}}."
    return AttentionReply(reply, (until, free_at))


def person_named(rt: Runtime, actor: Actor, text: str) -> str:
    """Return the person of a name or a mention, such as `@bob` or `<@U0BOB>`."""
    account = text.strip("<>").removeprefix("@").partition("|")[0]
    for person in rt.policy.people.values():
        if account and person.ids.get(actor.channel, "").partition("@")[0] == account:
            return person.name
    return account


def _plain(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
