"""Who may come to the desk, and who they are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from draftsman.domain.actor import Actor
from draftsman.domain.job import Source
from draftsman.domain.question import QuestionKind
from draftsman.errors import NotPermitted

if TYPE_CHECKING:
    from draftsman.domain.question import Question
    from draftsman_bots.slack.inbound import Who
    from draftsman_bots.slack.listeners.desk import Desk


class NotHere(NotPermitted):
    """This channel is not one where requests count."""

    def __init__(self, channels: tuple[str, ...]) -> None:
        super().__init__(f"requests count in other channels: {', '.join(channels)}")
        self.channels = channels


async def admit(desk: Desk, who: Who, channel: str = "") -> Actor:
    """Return who this is, mapped to a person or not; raises NotPermitted for strangers.

    With a channel it raises NotHere where requests do not count; a private conversation is no
    channel.
    """
    check_at_home(desk, who)
    allowed = desk.settings.channels
    if allowed and channel and not channel.startswith("D") and channel not in allowed:
        raise NotHere(allowed)
    actor = await desk.rt.people.actor(somebody(desk, who))
    if actor.person is not None and not who.name:
        actor = replace(actor, display_name=actor.person)
    return actor


def check_at_home(desk: Desk, who: Who) -> None:
    """Raise NotPermitted for people of other workspaces; looks nothing up."""
    if not desk.settings.strangers and who.is_stranger(*desk.own):
        raise NotPermitted(
            "you are of another workspace, whose people may not use draftsman; who may: those of"
            " this one"
        )


def somebody(desk: Desk, who: Who) -> Actor:
    """Return who came, whoever that is."""
    return Actor(Source.SLACK, who.account(*desk.own), who.name or who.id)


async def may_answer(desk: Desk, actor: Actor, question: Question) -> bool:
    """Return whether a question is for this person, to show it or to remind of it."""
    if actor.owner or actor.person is None:
        return actor.owner
    invoker = (await desk.rt.inspect.job(question.job)).invoker_id
    gate = question.kind is QuestionKind.APPROVAL
    asked = desk.rt.policy.answering(question.approvers, invoker, gate=gate)
    return actor.person in {person.name for person in asked}


async def admit_known(desk: Desk, who: Who, channel: str = "") -> Actor:
    """Return which person this is; raises NotPermitted for everybody else."""
    actor = await admit(desk, who, channel)
    if actor.person is None:
        known = ", ".join(sorted(desk.rt.policy.people)) or "nobody yet"
        # an event of the App Home does not say whose people they are, and guests cannot link
        here = "" if who.team else "as one of this workspace "
        raise NotPermitted(
            f"draftsman does not know who you are; who may: {known}; to be one of them, {here}send"
            f" {desk.settings.command} link, or ask an operator"
        )
    return actor
