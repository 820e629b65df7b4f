"""Permission rules by role: workers record and use them, operators ratify and revoke them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from draftsman.domain.job import Status
from draftsman.domain.run import LeaderTerm
from draftsman.errors import NotPermitted
from draftsman.runtime import Runtime
from draftsman.store.postgres.database import Connection
from tests.core.rights.conftest import As
from tests.factories import Factory
from tests.support.permissions import ALLOW, SHOP, asked, decide, question
from tests.support.roles import Roles
from tests.support.statements import CHANGE, FORBIDDEN, outcome, refused, rows

COMMAND = "pytest tests/test_a.py"
RULES = "SELECT * FROM draftsman.permission_rules"
RESOLVE = """
UPDATE draftsman.job_questions SET status = 'answered', answered_at = now(), resolution =
       '{"outcome": "answered", "via": "rule", "value": "allow once", "rule": 1, "reason": "ls"}'
 WHERE job = %(job)s"""
INSERT_RULE = """
INSERT INTO draftsman.permission_rules (repo, pattern, decisions, seconds, proposed_by)
VALUES ('acme/shop', '{ls}', 9, 60, 'x')"""
INSERT_REQUEST = """
INSERT INTO draftsman.permission_requests (job, question, repo, words)
VALUES (%(job)s, 1, 'acme/shop', '{ls}')"""
Session = Callable[[str], Awaitable[Connection]]


async def test_a_worker_proposes_and_uses_a_rule_that_an_operator_ratified(
    as_role: As, known: Runtime, make: Factory
) -> None:
    ben, olga, worker = [await as_role(name) for name in ("ben", "olga", "worker")]
    for name in "abcde":
        work = await asked(make, f"pytest tests/{name}.py")
        await decide(ben, work, ALLOW, await ben.actor())
    assert await worker.rules.sweep(LeaderTerm()) == 1
    (rule,) = await olga.rules.all()
    with pytest.raises(NotPermitted, match="may not change rules"):
        await ben.rules.ratify(rule.id, await ben.actor())
    active = await olga.rules.ratify(rule.id, await olga.actor())
    assert active.ratified_by == "olga"
    running = await make.running(repo=SHOP)
    await worker.questions.ask(running.lease, question(COMMAND))
    assert (await known.read_model.job(running.number)).status is Status.RESUMED
    assert (await known.read_model.invariants())["answered_has_an_accepted_answer"] == []
    assert (await olga.rules.revoke(rule.id, await olga.actor())).ended_by == "olga"


async def test_no_session_writes_rules_or_their_uses_itself(
    known: Runtime, make: Factory, session: Session, roles: Roles
) -> None:
    work = await asked(make, COMMAND)
    ratify = "SELECT draftsman.ratify_rule(1, %(actor)s, 'olga', 60)"
    for name in ("worker", "bot", "ben", "olga", "reader"):
        conn = await session(name)
        assert await rows(conn, RULES) == []
        for statement in (
            INSERT_RULE,
            "INSERT INTO draftsman.rule_uses (job, question, rule) VALUES (%(job)s, 1, 1)",
            INSERT_REQUEST,
            "UPDATE draftsman.permission_rules SET status = 'active'",
            RESOLVE,
        ):
            assert await outcome(conn, statement, {"job": work.number}) == FORBIDDEN, name
        actor = {"actor": f"cli:{roles.name('olga')}"}
        allowed = "ok" if name == "olga" else FORBIDDEN
        assert await outcome(conn, ratify, actor) == allowed, name
    worker = await session("worker")
    propose = "SELECT draftsman.propose_rule('acme/shop', '{ls}', 0, 60, 'system')"
    assert await rows(worker, propose) == [(None,)], "not without two decisions"
    decide_again = "SELECT * FROM draftsman.decide_by_rule(%(job)s, 1, '{pytest,src/a.py}')"
    assert await rows(worker, decide_again, {"job": work.number}) == []


@pytest.mark.parametrize("channel", ["web", "slack", "forge"])
async def test_a_bot_changes_no_rule_in_the_name_of_an_operator(
    as_role: As, session: Session, roles: Roles, make: Factory, channel: str
) -> None:
    """It acts as any person of a chat, and would ratify requests of agents."""
    olga, bot = await as_role("olga"), await session("bot")
    rule = await olga.rules.propose(
        "git.example.org/acme/shop", "pytest tests/**", await olga.actor()
    )
    account = {"web": "olga", "slack": "U-OLGA", "forge": "acme:olga"}[channel]
    values = {"rule": rule.id, "actor": f"{channel}:{account}"}
    for statement in (
        "SELECT draftsman.ratify_rule(%(rule)s, %(actor)s, 'olga', 60)",
        "SELECT draftsman.revoke_rule(%(rule)s, %(actor)s, 'olga', 'x')",
        "SELECT draftsman.propose_rule('acme/shop', '{ls}', 0, 60, %(actor)s)",
    ):
        assert await outcome(bot, statement, values) == FORBIDDEN
    assert (await olga.rules.get(rule.id)).status == "proposed"


async def test_a_worker_sets_the_repository_of_a_job_once(
    known: Runtime, make: Factory, session: Session
) -> None:
    """A worker that could move a job would use the rules of another repository."""
    worker = await session("worker")
    named, found = await make.running(repo=SHOP), await make.running()
    change = """
UPDATE draftsman.job_requests SET repo_host = %(host)s, repo_owner = 'acme', repo_name = %(name)s
 WHERE number = %(job)s"""
    for moved in ({"host": "github.com", "name": "shop"}, {"host": None, "name": None}):
        async with refused(CHANGE, "has a repository, which cannot change"):
            await worker.execute(change, moved | {"job": named.number})
    other = {"host": "git.example.org", "name": "pay", "job": found.number}
    await worker.execute(change, other)
    await worker.execute(change, other)  # the same again
    async with refused(CHANGE, "has a repository, which cannot change"):
        await worker.execute(change, other | {"name": "shop"})
    assert (await known.read_model.job(found.number)).repo == "acme/pay"
    assert (await known.read_model.job(named.number)).repo == "acme/shop"
