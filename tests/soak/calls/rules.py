"""Permission rules, identical questions and digests."""

from __future__ import annotations

from datetime import time
from typing import Final

from draftsman.attention.store import digests
from draftsman.database.database import Connection
from draftsman.database.selection import ALL
from draftsman.jobs.job import Source
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor
from draftsman.questions.permission_rules import store as rules
from draftsman.questions.permission_rules.permission_rule import RuleCandidate
from draftsman.questions.store import identical
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
    "rules.decide": Call(lambda conn: rules.decide(conn, OPEN, 1, ["pytest", "tests/a.py"])),
    "rules.rules": Call(lambda conn: rules.rules(conn, PAGE)),
    "rules.repos": Call(lambda conn: rules.repos(conn, "shop")),
    "rules.decisions": Call(lambda conn: rules.decisions(conn, PAGE, evidence=True)),
    "rules.uses": Call(lambda conn: rules.uses(conn, 1, PAGE)),
    "rules.propose": Call(_propose),
    "rules.propose_in_term": Call(
        lambda conn: rules.propose_in_term(conn, LEADER, CANDIDATE, 5, 3600)
    ),
    "rules.unannounced": Call(lambda conn: rules.unannounced(conn, LEADER, PAGE)),
    "rules.ratify": Call(_ratify),
    "rules.revoke": Call(_revoke),
    "identical.others": Call(lambda conn: identical.others(conn, OPEN, 1)),
    "digests.choose": Call(lambda conn: digests.choose(conn, "anna", [time(9)], None, "UTC", ANNA)),
    "digests.hours": Call(lambda conn: digests.hours(conn, "anna")),
    "digests.candidates": Call(lambda conn: digests.candidates(conn, LEADER, PAGE, ALL)),
    "digests.take_due": Call(lambda conn: digests.take_due(conn, LEADER, PAGE)),
}
