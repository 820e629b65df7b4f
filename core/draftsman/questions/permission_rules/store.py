"""Permission rules, and the recorded decisions of people on commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from draftsman.database.database import Connection, fetch_all, rows, scalar
from draftsman.database.named_queries import load
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor
from draftsman.questions.permission_rules.permission_rule import (
    PermissionDecision,
    PermissionRule,
    ProposedRule,
    RuleCandidate,
    RuleStatus,
    RuleUse,
)

MAX_USES: Final = 50
_Q = load(__name__)


class MatchedRule(NamedTuple):
    """A rule that allows a command."""

    id: int
    pattern: list[str]


async def decide(
    conn: Connection, job: int, ordinal: int, words: Sequence[str]
) -> MatchedRule | None:
    """Record the command of a question of this transaction; return the rule that allows it."""
    params = {"job": job, "question": ordinal, "words": list(words)}
    records = await rows(conn, _Q["decide"], params)
    return MatchedRule(*records[0]) if records else None


async def rules(
    conn: Connection, limit: int, repo: str | None = None, id: int | None = None
) -> list[PermissionRule]:
    """Return rules, newest first: of a repository, with an id, or all."""
    params = {"repo": repo, "id": id, "limit": limit}
    records = await fetch_all(conn, _Q["rules"], params, PermissionRule)
    return [replace(rule, status=RuleStatus(rule.status)) for rule in records]


async def repos(conn: Connection, name: str) -> list[str]:
    """Return the repositories with rules or requests of that name, with or without an owner."""
    return [row[0] for row in await rows(conn, _Q["repos"], {"name": name})]


async def decisions(
    conn: Connection, limit: int, repo: str | None = None, *, evidence: bool
) -> list[PermissionDecision]:
    """Return recorded decisions of people, newest first; with `evidence`, those for proposals."""
    params = {"repo": repo, "limit": limit, "evidence": evidence}
    return await fetch_all(conn, _Q["decisions"], params, PermissionDecision)


async def uses(conn: Connection, rule: int, limit: int = MAX_USES) -> list[RuleUse]:
    """Return the questions that a rule answered, newest first."""
    return await fetch_all(conn, _Q["uses"], {"rule": rule, "limit": limit}, RuleUse)


async def propose(
    conn: Connection, repo: str, pattern: Sequence[str], seconds: float, actor: Actor
) -> int | None:
    """Propose a rule of a person; None if the pattern has a rule, or people denied a match."""
    params = {"repo": repo, "pattern": list(pattern), "minimum": 0, "seconds": seconds}
    proposed: int | None = await scalar(conn, _Q["propose"], params | {"actor": actor.name})
    return proposed


async def propose_in_term(
    conn: Connection, term: LeaderTerm, candidate: RuleCandidate, minimum: int, seconds: float
) -> int | None:
    """Propose a rule for the leader, if the decisions of people still support it."""
    params = {"repo": candidate.repo, "pattern": list(candidate.pattern), "minimum": minimum}
    params |= {"seconds": seconds} | term.params(0)
    records = await rows(conn, _Q["propose_in_term"], params)
    return records[0][0] if records else None


async def unannounced(conn: Connection, term: LeaderTerm, limit: int) -> list[ProposedRule]:
    """Return proposed rules without a message, oldest first."""
    return await fetch_all(conn, _Q["unannounced"], term.params(limit), ProposedRule)


async def ratify(conn: Connection, rule: int, actor: Actor, seconds: float | None) -> bool:
    """Make a proposed rule active; False if it is not proposed any more."""
    params = {"rule": rule, "actor": actor.name, "person": actor.voter, "seconds": seconds}
    return bool(await scalar(conn, _Q["ratify"], params))


async def revoke(conn: Connection, rule: int, actor: Actor, reason: str) -> bool:
    """End a rule; False if it has ended."""
    params = {"rule": rule, "actor": actor.name, "person": actor.voter, "reason": reason}
    return bool(await scalar(conn, _Q["revoke"], params))
