"""Permission rules: proposals from the decisions of people, ratification and revocation."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from draftsman.database.database import Connection, Database, on_connection
from draftsman.database.isolation import Isolation, run_all
from draftsman.errors import CommandHint, NotFound, Refused, UsageError
from draftsman.jobs.job import Status
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.jobs.runs.sweep import Sweep
from draftsman.people.actor import Actor
from draftsman.people.policy import Policy, Verb
from draftsman.questions.permission_rules import store
from draftsman.questions.permission_rules.command_pattern import (
    matches,
    parse_pattern,
    pattern_text,
    plain_words,
)
from draftsman.questions.permission_rules.permission_rule import (
    CURRENT,
    Backtest,
    PermissionRule,
    ProposedRule,
    RuleCandidate,
    backtest,
    candidates,
)
from draftsman.questions.question import ALLOW_ONCE, QuestionStatus, Resolution
from draftsman.questions.store import questions

MAX_RULES: Final = 1000
"""Rules that are listed, the newest."""
MAX_DECISIONS: Final = 5000
"""Recorded decisions of which rules are proposed and tested, the newest."""
MAX_SECONDS: Final = 366 * 86_400.0
NO_REASON: Final = "revoked"
"""Stored reason of a rule that was revoked without a reason."""
Announce = Callable[[Connection, ProposedRule], Awaitable[None]]
"""Writes the message about a proposed rule, once."""


class PermissionRules:
    """Rules that answer permission requests of agents."""

    def __init__(
        self,
        *,
        db: Database,
        policy: Policy,
        propose_after: int,
        expires_in: float,
        announce: Announce | None,
    ) -> None:
        """Propose a rule after so many equal decisions (0: never), for `expires_in` seconds.

        `announce` writes the message about each proposed rule.
        """
        self._announce_rule = announce
        self._db = db
        self._policy = policy
        self._propose_after = propose_after
        self._isolation = Isolation(db, "rules", lambda id: f"rule {id}")
        self._seconds = expires_in

    def sweeps(self) -> Sequence[Sweep]:
        """Return the sweep of proposed rules."""
        return [
            Sweep(
                name="rules",
                description="proposes permission rules",
                run=self.sweep,
                isolations=(self._isolation,),
            )
        ]

    async def all(self, repo: str | None = None) -> list[PermissionRule]:
        """Return the rules of a repository, `owner/name` or a name alone, or all; newest first."""
        async with self._db.connection() as conn:
            name = None if repo is None else await _full_name(conn, repo)
            return await store.rules(conn, MAX_RULES, name)

    async def get(self, rule: int) -> PermissionRule:
        """Return a rule; raises NotFound."""
        async with self._db.connection() as conn:
            rules = await store.rules(conn, 1, id=rule)
        if not rules:
            raise _unknown_rule(rule)
        return rules[0]

    uses = on_connection(store.uses)

    async def test(self, repo: str, pattern: str | Sequence[str]) -> Backtest:
        """Return the recorded decisions that a pattern would have made; raises UsageError."""
        words = parsed(pattern) if isinstance(pattern, str) else pattern
        async with self._db.connection() as conn:
            name = await _full_name(conn, repo)
            decisions = await store.decisions(conn, MAX_DECISIONS, name, evidence=False)
        return backtest(words, decisions)

    def allows(self, pattern: str, command: str) -> bool:
        """Return whether a pattern matches a command; raises UsageError."""
        return matches(parsed(pattern), plain_words(command) or ())

    async def propose(
        self, repo: str, pattern: str, actor: Actor, seconds: float | None = None
    ) -> PermissionRule:
        """Propose a rule; it allows nothing until a person ratifies it.

        Raises UsageError, NotPermitted, and Refused if people denied a command that it matches, or
        if the pattern has a rule.
        """
        actor = self._permitted(actor)
        words = parsed(pattern)
        lasting = self._checked(seconds) or self._seconds

        async def work(conn: Connection) -> int | None:
            name = await _full_name(conn, repo)
            return await store.propose(conn, name, words, lasting, actor)

        proposed = await self._db.run_transaction(work)
        if proposed is not None:
            return await self.get(proposed)
        if denied := (await self.test(repo, words)).denied:
            raise Refused(
                f"{denied[0].by} denied {denied[0].command!r} in {denied[0].name};"
                " no rule may allow that"
            )
        current = [rule for rule in await self.all(repo) if rule.status in CURRENT]
        same = next((rule for rule in current if rule.pattern == list(words)), None)
        number = "" if same is None else f": rule {same.id}, {same.status}"
        raise Refused(f"{pattern_text(words)} has a rule{number}")

    async def is_known(self, repo: str) -> bool:
        """Return whether a repository of this name has rules or recorded requests."""
        async with self._db.connection() as conn:
            return bool(await store.repos(conn, repo))

    async def ratify(self, rule: int, actor: Actor, seconds: float | None = None) -> PermissionRule:
        """Make a proposed rule active, for its time or for `seconds`.

        Raises UsageError, NotFound, NotPermitted, and Refused if it is not proposed any more.
        """
        actor = self._permitted(actor)
        lasting = self._checked(seconds)
        return await self._changed(rule, lambda conn: store.ratify(conn, rule, actor, lasting))

    async def revoke(self, rule: int, actor: Actor, reason: str = "") -> PermissionRule:
        """End a rule at once. Raises NotFound, NotPermitted, and Refused if it has ended."""
        actor = self._permitted(actor)
        text = reason.strip()[:500] or NO_REASON
        return await self._changed(rule, lambda conn: store.revoke(conn, rule, actor, text))

    async def sweep(self, term: LeaderTerm) -> int:
        """Propose rules from the decisions of people, for the leader; return their number.

        Each proposed rule, also of a person, is posted once.
        """
        return await run_all(lambda: self._propose_equal(term), lambda: self._announce(term))

    async def _propose_equal(self, term: LeaderTerm) -> int:
        """Propose rules for equal decisions; return their number."""
        if not self._propose_after:
            return 0
        async with self._db.connection() as conn:
            decisions = await store.decisions(conn, MAX_DECISIONS, evidence=True)
            rules = await store.rules(conn, MAX_RULES)
        current = {(rule.repo, *rule.pattern) for rule in rules if rule.status in CURRENT}
        minimum = max(self._propose_after, 2)

        async def propose(candidate: RuleCandidate) -> int:
            proposed = await self._db.run_transaction(
                lambda conn: store.propose_in_term(conn, term, candidate, minimum, self._seconds)
            )
            return proposed is not None

        new = [c for c in candidates(decisions, minimum) if (c.repo, *c.pattern) not in current]
        return await run_all(*(partial(propose, candidate) for candidate in new))

    async def _announce(self, term: LeaderTerm) -> None:
        """Write the message of each proposed rule that has none."""
        announce_rule = self._announce_rule
        if announce_rule is None:
            return
        async with self._db.connection() as conn:
            rules = await store.unannounced(conn, term, MAX_RULES)

        async def announce(rule: ProposedRule) -> int:
            await self._db.run_transaction(lambda conn: announce_rule(conn, rule))
            return 1

        await self._isolation.each([(rule.id, rule) for rule in rules], announce)

    async def _changed(
        self, rule: int, change: Callable[[Connection], Awaitable[bool]]
    ) -> PermissionRule:
        """Change a rule and return it; raises NotFound, and Refused if it has ended."""

        async def work(conn: Connection) -> tuple[bool, PermissionRule]:
            is_changed = await change(conn)
            if not (rules := await store.rules(conn, 1, id=rule)):
                raise _unknown_rule(rule)
            return is_changed, rules[0]

        is_changed, changed = await self._db.run_transaction(work)
        if is_changed:
            return changed
        reason = changed.end_reason or ""
        explained = f": {reason}" if reason not in {"", NO_REASON} else ""
        raise Refused(f"rule {rule} is {changed.status}{explained}")

    def _permitted(self, actor: Actor) -> Actor:
        actor = self._policy.resolve(actor)
        self._policy.check(actor, Verb.RULES)
        return actor

    def _checked(self, seconds: float | None) -> float | None:
        if seconds is not None and not (math.isfinite(seconds) and 0 < seconds <= MAX_SECONDS):
            raise UsageError("the time of a rule must be more than 0 and at most 366 days")
        return seconds


async def answer_by_rule(conn: Connection, job: int, ordinal: int, words: Sequence[str]) -> None:
    """Record the command of a question of this transaction, and allow it if a rule matches."""
    rule = await store.decide(conn, job, ordinal, words)
    if rule is None or (locked := await questions.lock(conn, job, ordinal)) is None:
        return
    text = pattern_text(rule.pattern)
    await questions.resolve(
        conn,
        locked.question,
        Resolution("answered", "rule", value=ALLOW_ONCE, rule=rule.id, reason=text),
        actor="system",
        status=QuestionStatus.ANSWERED,
        job_status=Status.RESUMED,
        kind="rule_applied",
    )


async def _full_name(conn: Connection, repo: str) -> str:
    """Return the name with the owner of a repository in which agents asked for commands.

    It is in lower case, as in a rule. Raises UsageError if several have the name; any other name is
    returned unchanged.
    """
    names = await store.repos(conn, repo)
    if repo.lower() in names:
        return repo.lower()
    if not names:
        return repo
    if len(names) > 1:
        raise UsageError(f"several repositories are named {repo!r}; use {' or '.join(names)}")
    return names[0]


def _unknown_rule(rule: int) -> NotFound:
    return NotFound(f"there is no rule {rule}", hint=CommandHint("rules list"))


def parsed(pattern: str) -> tuple[str, ...]:
    """Return the words of a pattern; raises UsageError."""
    if (words := parse_pattern(pattern)) is not None:
        return words
    raise UsageError(
        f"pattern {pattern[:80]!r} is not allowed; use a plain command, without quotes and"
        " operators, of a program that only works in the repository; DIR/* stands for a file in a"
        " folder, DIR/** for a path below it: pytest tests/**"
    )
