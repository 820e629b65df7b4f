"""Permission rules, identical questions and digests."""

from __future__ import annotations

from datetime import time
from typing import Final

from draftsman.attention import store as attention
from draftsman.database.database import Connection
from draftsman.database.selection import ALL
from draftsman.jobs.job import Source
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor
from draftsman.questions.permission_rules import store as rules
from draftsman.questions.permission_rules.permission_rule import RuleCandidate
from draftsman.questions.store import questions
from tests.soak.calls.call import Call, last_of
from tests.soak.history import WORKER

ANNA: Final = Actor(Source.CLI, "anna", "Anna")
LEADER: Final = LeaderTerm(WORKER, 1)
PATTERN: Final = ("pytest", "tests/*")
CANDIDATE: Final = RuleCandidate("git.example.org/acme/shop", PATTERN, 5)
OPEN: Final = last_of("waiting_for_input")
PAGE: Final = 200


async def _propose(conn: Connection) -> int | None:
    return await rules.propose(conn, "acme/shop", PATTERN, 3600, ANNA)


async def _ratify(conn: Connection) -> bool:
    return await rules.ratify(conn, await _propose(conn) or 0, ANNA, None)


async def _revoke(conn: Connection) -> bool:
    return await rules.revoke(conn, await _propose(conn) or 0, ANNA, "too wide")


CALLS: Final[dict[str, Call]] = {
    "permission_rules.decide": Call(
        lambda conn: rules.decide(conn, OPEN, 1, ["pytest", "tests/a.py"])
    ),
    "permission_rules.rules": Call(lambda conn: rules.rules(conn, PAGE)),
    "permission_rules.repos": Call(lambda conn: rules.repos(conn, "shop")),
    "permission_rules.decisions": Call(lambda conn: rules.decisions(conn, PAGE, evidence=True)),
    "permission_rules.uses": Call(lambda conn: rules.uses(conn, 1, PAGE)),
    "permission_rules.propose": Call(_propose),
    "permission_rules.propose_in_term": Call(
        lambda conn: rules.propose_in_term(conn, LEADER, CANDIDATE, 5, 3600)
    ),
    "permission_rules.unannounced": Call(lambda conn: rules.unannounced(conn, LEADER, PAGE)),
    "permission_rules.ratify": Call(_ratify),
    "permission_rules.revoke": Call(_revoke),
    "questions.identical_questions": Call(
        lambda conn: questions.identical_questions(conn, OPEN, 1)
    ),
    "attention.choose_digest_hour": Call(
        lambda conn: attention.choose_digest_hour(conn, "anna", [time(9)], None, "UTC", ANNA)
    ),
    "attention.digest_hours": Call(lambda conn: attention.digest_hours(conn, "anna")),
    "attention.digest_candidates": Call(
        lambda conn: attention.digest_candidates(conn, LEADER, PAGE, ALL)
    ),
    "attention.take_due_digests": Call(lambda conn: attention.take_due_digests(conn, LEADER, PAGE)),
}
