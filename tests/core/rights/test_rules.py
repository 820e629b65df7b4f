"""Permission rules by role: workers record and use them, operators ratify and revoke them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from draftsman.database.database import Connection
from draftsman.deliveries.service.message_reader import read_message
from draftsman.errors import NotPermitted, Refused
from draftsman.jobs.job import Status
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.people.actor import Actor
from draftsman.questions.permission_rules.permission_rule import proposal_text
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from tests.core.rights.conftest import As
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
LINK = """
INSERT INTO draftsman.identity_links (channel, external_id, person, linked_by, linked_at)
VALUES ('slack', 'U-OLGA', 'olga', 'cli:olga', now())"""
UNRATIFIED = "ratified_at = NULL, ratified_by = NULL, expires_at = NULL"
FORGED = """
INSERT INTO draftsman.deliveries (job, channel, target, thread_key, kind, payload)
SELECT max(number), 'slack', %(target)s, %(target)s, 'notice', jsonb_build_object(
       'text', 'Rule 1: agents may run ls', 'acknowledged_by', 'olga', 'rule', %(rule)s::jsonb)
  FROM draftsman.job_requests RETURNING seq"""
Session = Callable[[str], Awaitable[Connection]]


@pytest.fixture
async def in_slack(known: Runtime, conn: Connection) -> None:
    """Link an account of Slack to an operator."""
    await conn.execute(LINK)


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
    await worker.asking.ask(running.lease, question(COMMAND))
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


@pytest.mark.usefixtures("in_slack")
@pytest.mark.parametrize(
    ("user", "account"),
    [
        ("bot", "web:olga"),
        ("bot", "forge:acme:olga"),
        ("bot", "slack:U-BEN"),
        ("bot", "slack:U-NOBODY"),
        ("bot", "system"),
        ("worker", "slack:U-OLGA"),
        ("ben", "slack:U-OLGA"),
    ],
)
async def test_no_session_changes_a_rule_as_another_person(
    as_role: As, session: Session, user: str, account: str
) -> None:
    """A bot acts as any person of a chat, but operators decide on rules in Slack only."""
    olga = await as_role("olga")
    conn = await session(user)
    rule = await olga.rules.propose(
        "git.example.org/acme/shop", "pytest tests/**", await olga.actor()
    )
    values = {"rule": rule.id, "actor": account}
    for statement in (
        "SELECT draftsman.ratify_rule(%(rule)s, %(actor)s, 'olga', NULL)",
        "SELECT draftsman.revoke_rule(%(rule)s, %(actor)s, 'olga', 'x')",
    ):
        assert await outcome(conn, statement, values) == FORBIDDEN
    assert (await olga.rules.get(rule.id)).status == "proposed"


@pytest.mark.usefixtures("in_slack")
async def test_the_bot_decides_for_operators_in_slack_on_a_rule_as_it_was_proposed(
    as_role: As, session: Session
) -> None:
    olga = await as_role("olga")
    bot = await as_role("bot")
    conn = await session("bot")
    pressed = await bot.people.actor(Actor("slack", "U-OLGA", "x"))
    patterns = ("pytest tests/**", "make test", "make lint")
    active, revoked, declined = [
        await olga.rules.propose("git.example.org/acme/shop", text, await olga.actor())
        for text in patterns
    ]
    for other in (Actor("slack", "U-BEN", "x"), Actor("web", "olga", "x")):
        with pytest.raises(Refused, match="may not change rules"):
            await bot.rules.ratify(active.id, other)
    with pytest.raises(Refused, match="may not change the time of a rule"):
        await bot.rules.ratify(active.id, pressed, 60)
    for statement in (
        "SELECT draftsman.propose_rule('acme/shop', '{ls}', 0, 60, 'slack:U-OLGA')",
        "SELECT * FROM draftsman.permission_rules FOR UPDATE",
    ):
        assert await outcome(conn, statement) == FORBIDDEN
    for rule in (active, revoked):
        ratified = await bot.rules.ratify(rule.id, pressed)
        assert (ratified.ratified_by, ratified.seconds) == ("olga", rule.seconds)
    ended = await bot.rules.revoke(revoked.id, pressed, "too wide")
    assert (ended.status, ended.ended_by, ended.end_reason) == ("revoked", "olga", "too wide")
    assert (await bot.rules.revoke(declined.id, pressed)).ended_by == "olga"
    forged = "SELECT draftsman.revoke_rule(%(rule)s, 'slack:U-OLGA', 'anna', 'x')"
    assert await rows(conn, forged, {"rule": active.id}) == [(True,)]
    assert (await olga.rules.get(active.id)).ended_by == "olga", "not the person of the argument"


async def test_the_message_with_buttons_has_the_rule_as_it_is_recorded(
    as_role: As, make: Factory, session: Session
) -> None:
    """A worker writes messages, but not the text on which an operator decides."""
    olga = await as_role("olga")
    bot = await as_role("bot")
    worker = await session("worker")
    rule = await olga.rules.propose("acme/shop", "pytest tests/**", await olga.actor())
    await make.queued()

    async def sent(value: object, target: str = "C0") -> dict[str, Any] | None:
        values = {"rule": json.dumps(value), "target": target}
        ((seq,),) = await rows(worker, FORGED, values)
        await worker.commit()
        claimed = await bot.delivery_sender.claim("slack", free=9, share=9)
        (item,) = [item for item in claimed if item.seq == seq]
        return (await read_message(bot.db, bot.policy, item)).message.payload

    shown = await sent(rule.id)
    assert shown == {"text": proposal_text(rule), "names_job": True, "rule": rule.id}
    for place, unknown in enumerate((rule.id + 1, 10**30, -1, str(rule.id)), 1):
        assert "rule" not in (await sent(unknown, f"C{place}") or {}), unknown
    await olga.rules.ratify(rule.id, await olga.actor())
    shown = await sent(rule.id, "C5")
    assert shown == {"text": proposal_text(rule), "names_job": True}, "no buttons"


async def test_a_rule_keeps_its_proposal_and_its_ratification(
    as_role: As, conn: Connection
) -> None:
    olga = await as_role("olga")
    rule = await olga.rules.propose(
        "git.example.org/acme/shop", "pytest tests/**", await olga.actor()
    )
    await olga.rules.ratify(rule.id, await olga.actor())
    for change in (
        "decisions = 7", "proposed_by = 'x'", "proposed_at = now() - interval '1 day'",
        "seconds = 5", "ratified_by = 'x'", "ratified_at = now() - interval '1 day'",
        "expires_at = now() + interval '300 days'", "repo = 'x'", "pattern = '{ls}'",
        f"{UNRATIFIED}, status = 'revoked', ended_at = now(), ended_by = 'x', end_reason = 'x'",
    ):  # fmt: skip
        async with refused(CHANGE, "a rule that ended and its pattern are kept"):
            await conn.execute(f"UPDATE draftsman.permission_rules SET {change}")


async def test_a_worker_sets_the_repository_of_a_job_once(
    known: Runtime, make: Factory, session: Session
) -> None:
    """A worker that could move a job would use the rules of another repository."""
    worker = await session("worker")
    named = await make.running(repo=SHOP)
    found = await make.running(text="Fix the parser")
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
    assert (await known.read_model.job(found.number)).agent_request.repo == "acme/pay"
    assert (await known.read_model.job(named.number)).agent_request.repo == "acme/shop"
