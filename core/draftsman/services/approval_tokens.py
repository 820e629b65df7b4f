"""Approval tokens: single-use secrets that decide one gate in their approver's name.

An approver mints a token for himself, or a delivery that is addressed to the approver brings one.
Only the approver redeems it, on any channel that maps to the same person, and never for a job that
he requested himself.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Final

from draftsman.domain.people.actor import SYSTEM, Actor
from draftsman.domain.people.policy import Policy
from draftsman.domain.question import Question, QuestionKind, QuestionStatus
from draftsman.errors import CommandHint, NotFound, NotPermitted, QuestionClosed
from draftsman.store import approval_tokens
from draftsman.store import questions as store
from draftsman.store.postgres.database import Connection, Database

MAX_REFUSALS: Final = 20
"""Refused mintings of a question that are recorded as events."""


async def mint(
    db: Database, policy: Policy, job: int, ordinal: int, approver: str, actor: Actor
) -> str:
    """Return a new token for a gate; a refusal is recorded as an event of the job too.

    Raises NotFound, NotPermitted, QuestionClosed.
    """
    actor = policy.resolve(actor)
    token = secrets.token_urlsafe(32)

    async def work(conn: Connection) -> Exception | None:
        locked = await store.lock(conn, job, ordinal)
        if locked is None:
            raise unknown_question(job, ordinal)
        try:
            _check_minter(policy, locked.question, approver, actor, locked.invoker)
        except NotPermitted as error:
            await _note_refusal(conn, locked.question, approver, actor, str(error))
            return error
        by = "system" if actor == SYSTEM else actor.voter
        hashed = token_hash(token)
        if not await approval_tokens.mint(conn, job, ordinal, approver, by, hashed):
            name = locked.question.name
            return QuestionClosed(f"{name} is closed, or {approver} decided already")
        detail = {"question": ordinal, "approver": approver, "by": by}
        await store.add_event(conn, job, "token_minted", actor.name, detail)
        return None

    if (error := await db.run_transaction(work)) is not None:
        raise error
    return token


async def redeemable_by(
    conn: Connection, policy: Policy, locked: store.LockedQuestion, token: str, actor: Actor
) -> str:
    """Return the approver of a token that this actor may redeem; raises NotPermitted."""
    question, found = locked.question, await approval_tokens.find(conn, token_hash(token))
    if found is None or (found.job, found.question) != (question.job, question.ordinal):
        raise NotPermitted(f"this token is not one for {question.name}")
    if actor.person != found.approver:
        known = f"as {actor.person}" if actor.person else "but not mapped to a person"
        raise NotPermitted(
            f"only the approver can redeem a token: you are known {known};"
            " ask for a token of your own, or for a mapping"
        )
    if found.minted_by not in (found.approver, "system"):
        raise NotPermitted("this token was minted by another person; mint one yourself")
    if found.used:
        raise NotPermitted("this token was used before; tokens count once")
    policy.check_vote(actor, question.approvers, invoker=locked.invoker)
    return found.approver


async def spend(conn: Connection, question: Question, token: str, actor: Actor) -> None:
    """Use up a token that was redeemed."""
    await approval_tokens.use(conn, token_hash(token))
    detail = {"question": question.ordinal, "approver": actor.person}
    await store.add_event(conn, question.job, "token_redeemed", actor.name, detail)


def token_hash(token: str) -> str:
    """Return what is kept of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def _check_minter(
    policy: Policy, question: Question, approver: str, actor: Actor, invoker: str
) -> None:
    if question.kind is not QuestionKind.APPROVAL:
        raise NotPermitted(f"{question.name} takes an answer: only approvals have tokens")
    if approver not in policy.approvers(question.approvers):
        raise NotPermitted(f"{approver} is not among the approvers of {question.name}")
    if actor == SYSTEM:
        return
    if actor.person != approver:
        raise NotPermitted(
            f"{actor.display_name} may not mint a token for {approver}; only {approver} can"
        )
    if question.status is QuestionStatus.OPEN:
        policy.check_vote(actor, question.approvers, invoker=invoker)


async def _note_refusal(
    conn: Connection, question: Question, approver: str, actor: Actor, reason: str
) -> None:
    total = await store.count_refused(conn, question.job, question.ordinal, actor.voter, reason)
    if total <= MAX_REFUSALS:
        detail = {"question": question.ordinal, "approver": approver, "reason": reason}
        await store.add_event(conn, question.job, "token_refused", actor.name, detail)


def unknown_question(job: int, ordinal: int) -> NotFound:
    """Return the error for a question that does not exist."""
    return NotFound(f"there is no question D-{job}/{ordinal}", hint=CommandHint("questions"))
