"""Names of the members of a board, for mentions and for references to actors. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from draftsman.deliveries.delivery import DeliveryKind, Message
from draftsman.deliveries.message_text import job_outcome_spans, notice_spans
from draftsman.deliveries.question_text import resolution_spans
from draftsman.people.spans import ActorRef, Spans
from draftsman_bots.trello.ids import is_id

MemberNames = Mapping[str, str]
"""Usernames of the board's members by id."""


def names_members(message: Message) -> bool:
    """Return whether a closed question, a result or a notice names members by their ids."""
    return any(
        isinstance(span, ActorRef) and _is_member(span) and not span.display_name
        for span in _spans(message)
    )


def _spans(message: Message) -> Spans:
    match message.kind:
        case DeliveryKind.QUESTION_CLOSED if message.question is not None:
            return resolution_spans(message.question)
        case DeliveryKind.RESULT:
            return job_outcome_spans(message.subject)
        case DeliveryKind.NOTICE:
            return notice_spans(message)
    return ()


def member_name(actor: ActorRef, names: MemberNames) -> str:
    """Return the username of a member, or the name of another actor, without a mention."""
    if actor.display_name or not _is_member(actor):
        return str(actor)
    return names.get(actor.id, actor.name)


def _is_member(actor: ActorRef) -> bool:
    return actor.channel == "trello" and is_id(actor.id)
