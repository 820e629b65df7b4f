"""Approval tokens: single-use secrets that decide an approval in their approver's name.

An approver creates a token, or a delivery addressed to the approver brings it. Only the approver
can redeem it, on any channel linked to the same person, and never for a job that the approver
submitted.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Final

from draftsman.database.database import Connection, Database
from draftsman.errors import CommandHint, NotPermitted, QuestionClosed
from draftsman.ids import unknown_question
from draftsman.people.actor import SYSTEM, Actor
from draftsman.people.policy import Policy
from draftsman.questions.question import Question, QuestionKind, QuestionStatus
from draftsman.questions.store import approval_tokens
from draftsman.questions.store import questions as store

MAX_REFUSALS: Final = 20
"""Maximum number of refused token requests of a question that are recorded as events."""


async def mint(
    db: Database, policy: Policy, job: int, ordinal: int, approver: str, actor: Actor
) -> str:
    """Return a new token for an approval; a refusal is recorded as an event of the job.

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
            await _record_refusal(conn, locked.question, approver, actor, str(error))
            return error
        by = "system" if actor == SYSTEM else actor.voter
        hashed = token_hash(token)
        minted = await approval_tokens.mint(
            conn,
            job,
            ordinal,
            approver=approver,
            minted_by=by,
            token_hash=hashed,
            actor=actor.name,
        )
        if not minted:
            name = locked.question.name
            return QuestionClosed(f"{name} is closed, or {approver} has already decided")
        return None

    if (error := await db.run_transaction(work)) is not None:
        raise error
    return token


async def redeemable_by(
    conn: Connection,
    policy: Policy,
    question: Question,
    token: str,
    actor: Actor,
    *,
    invoker: str,
) -> str:
    """Return the approver of a token that this actor may redeem; raises NotPermitted."""
    stored = await approval_tokens.find(conn, token_hash(token))
    if stored is None or (stored.job, stored.question) != (question.job, question.ordinal):
        raise NotPermitted(f"this token is not valid for {question.name}")
    if actor.person != stored.approver:
        identity = (
            f"you are {actor.person}" if actor.person else "your account is not linked to a person"
        )
        raise NotPermitted(
            f"only the approver can redeem a token, and {identity};"
            " create a token of your own, or link your account"
        )
    if stored.minted_by not in (stored.approver, "system"):
        raise NotPermitted("this token was created by another person; create a token yourself")
    if stored.used:
        raise NotPermitted("this token was already used; tokens are single-use")
    policy.check_vote(actor, question.approvers, invoker=invoker)
    return stored.approver


async def spend(conn: Connection, token: str, actor: Actor) -> None:
    """Mark a token as used; the database records that it was redeemed."""
    await approval_tokens.use(conn, token_hash(token), actor.name)


def token_hash(token: str) -> str:
    """Return the SHA-256 of a token, the only stored form."""
    return hashlib.sha256(token.encode()).hexdigest()


def _check_minter(
    policy: Policy, question: Question, approver: str, actor: Actor, invoker: str
) -> None:
    if question.kind is not QuestionKind.APPROVAL:
        raise NotPermitted(f"{question.name} is not an approval; only approvals have tokens")
    if approver not in (approvers := policy.approvers(question.approvers)):
        if actor.owner and approver in (actor.id, actor.person):
            raise NotPermitted(
                f"tokens are for people of the configuration, and {approver} is none of them; the"
                " owner of the embedded database decides without a token",
                hint=CommandHint("approve", question.name, lead="run"),
            )
        names = ", ".join(sorted(approvers)) or "none"
        raise NotPermitted(f"{approver} is not an approver of {question.name}; approvers: {names}")
    if actor == SYSTEM:
        return
    if actor.person != approver:
        raise NotPermitted(
            f"{actor.display_name} may not create a token for {approver}; only {approver} can"
        )
    if question.status is QuestionStatus.OPEN:
        policy.check_vote(actor, question.approvers, invoker=invoker)


async def _record_refusal(
    conn: Connection, question: Question, approver: str, actor: Actor, reason: str
) -> None:
    await approval_tokens.refuse(
        conn,
        question.job,
        question.ordinal,
        approver=approver,
        voter=actor.voter,
        reason=reason,
        actor=actor.name,
        most=MAX_REFUSALS,
    )
