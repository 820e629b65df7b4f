"""Reader of a delivery: the message that it has now, and whether it may be sent."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

from draftsman.agent_runs.changes.service import Changes
from draftsman.channels import registry
from draftsman.database.database import Database
from draftsman.deliveries.delivery import (
    QUESTION_KINDS,
    ClaimedDelivery,
    Deferred,
    DeliveryKind,
    Message,
    Obsolete,
)
from draftsman.deliveries.message_facts import GroupStop, MessageFacts
from draftsman.deliveries.service.message_builder import NO_REVIEW, build_message
from draftsman.deliveries.service.quiet_hours import quiet_delay, recipient
from draftsman.deliveries.store import deliveries as store
from draftsman.people import visibility
from draftsman.people.policy import Policy
from draftsman.people.service.linked_policy import with_identity_links
from draftsman.questions.permission_rules import store as rules
from draftsman.questions.question import IdenticalQuestion, Question, QuestionStatus
from draftsman.questions.store import questions

REVIEW_MEBIBYTES: Final = 1
"""Maximum size of a patch whose changes a message counts."""


class ReadMessage(NamedTuple):
    """The message of a delivery as it is now."""

    facts: MessageFacts
    message: Message
    instead: Obsolete | Deferred | None
    """What becomes of the delivery; None: it is sent.

    It waits for the hours of its only recipient. It is obsolete if its question is closed, or if
    its job was skipped with its group and another job of the group reports that in the same thread,
    or if it is for a person alone who may not see the repository.
    """


async def read_message(db: Database, policy: Policy, item: ClaimedDelivery) -> ReadMessage:
    """Return the message of a delivery, from the current state of its job and question."""
    question: Question | None = None
    identical_questions: list[IdenticalQuestion] = []
    stop: GroupStop | None = None
    rule = None
    async with db.connection() as conn:
        facts = await store.message_facts(conn, item.seq)
        if facts.group_name is not None and item.kind is DeliveryKind.RESULT:
            stop = await store.group_stop(conn, item.seq)
        if item.question is not None:
            question, identical_questions = await questions.get_with_identical(
                conn, item.job, item.question
            )
        number = item.payload.get("rule")
        if isinstance(number, int) and 0 < number < 2**63:
            rule = next(iter(await rules.rules(conn, 1, id=number)), None)
        is_restricted = bool(visibility.restricted(policy.people.values()))
        if question is not None or item.kind is DeliveryKind.DIGEST or is_restricted:
            policy = await with_identity_links(conn, policy, item.channel)
    kind = item.kind
    is_closed = question is not None and question.status is not QuestionStatus.OPEN
    if kind is DeliveryKind.QUESTION_CLOSED and (
        not is_closed or facts.copy_kind is DeliveryKind.NOTICE
    ):  # an edit of a message
        kind = facts.copy_kind or kind
    review = NO_REVIEW
    if question is not None and kind in QUESTION_KINDS:
        review = await Changes(db).of_question(question, most=REVIEW_MEBIBYTES)
    message = build_message(
        item,
        facts,
        question,
        policy,
        stop=stop,
        identical_questions=identical_questions,
        review=review,
        rule=rule,
    )
    is_obsolete = item.kind in QUESTION_KINDS and is_closed
    if stop is not None and stop.reporter not in (None, facts.number):
        is_obsolete = item.channel in registry.taking_answers()
    reader = recipient(policy, message.target, item.channel) if is_restricted else None
    is_obsolete = is_obsolete or not visibility.may_see(reader, message.subject.repo)
    instead = Obsolete() if is_obsolete else quiet_delay(policy, item, facts, question)
    return ReadMessage(facts, replace(message, kind=kind), instead)
