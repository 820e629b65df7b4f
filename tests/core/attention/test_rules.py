"""Permission rules: proposals from equal decisions, ratification, use, expiry and revocation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from draftsman.database.database import Connection
from draftsman.errors import NotFound, NotPermitted, Refused, UsageError
from draftsman.jobs.job import Status
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.questions.permission_rules.permission_rule import RuleStatus
from draftsman.repos.repo_catalog import Repo
from draftsman.repos.repo_profile import profile
from draftsman.repos.repo_url import parse
from draftsman.runtime import Runtime
from draftsman_testing.factories import Factory
from draftsman_testing.people import People
from tests.core.worker.agent_jobs import agent_worker, make_repository, submit_agent_job
from tests.core.worker.workers import wait_for_end
from tests.support.clock import Clock
from tests.support.permissions import (
    ALLOW,
    DENY,
    FOR_JOB,
    SHOP,
    SHOP_NAME,
    asked,
    decide,
    decided,
    ratified,
    request,
)
from tests.support.statements import rows

FIVE = [f"pytest tests/test_{name}.py" for name in "abcde"]
OTHER = "https://git.example.org/acme/wiki"


async def test_five_equal_decisions_propose_a_rule_that_a_person_ratifies(
    rt: Runtime, make: Factory, people: People
) -> None:
    await decided(rt, make, FIVE[:4], ALLOW, people.ben)
    assert await rt.rules.sweep(LeaderTerm()) == 0, "four are not enough"
    await decided(rt, make, FIVE[4:], FOR_JOB, people.ben)
    assert await rt.rules.sweep(LeaderTerm()) == 1
    assert await rt.rules.sweep(LeaderTerm()) == 0, "a rule is proposed once"
    (rule,) = await rt.rules.all()
    assert (rule.text, rule.repo, rule.decisions) == ("pytest tests/*", SHOP_NAME, 5)
    assert (rule.status, rule.proposed_by, rule.seconds) == ("proposed", "system", 2_592_000)

    waiting = await asked(make, "pytest tests/test_f.py")
    assert (await rt.read_model.job(waiting.number)).status is Status.WAITING_FOR_INPUT
    with pytest.raises(NotPermitted, match="may not change rules"):
        await rt.rules.ratify(rule.id, people.ben)
    active = await rt.rules.ratify(rule.id, people.olga)
    assert (active.status, active.ratified_by) == (RuleStatus.ACTIVE, "olga")
    assert active.expires_at is not None
    assert active.ratified_at is not None
    assert (active.expires_at - active.ratified_at).days == 30
    assert (await rt.read_model.job(waiting.number)).status is Status.WAITING_FOR_INPUT, (
        "a question that people were asked stays theirs"
    )


async def test_an_active_rule_answers_in_the_transaction_of_the_question_and_is_cited(
    rt: Runtime, make: Factory, people: People
) -> None:
    rule = await ratified(rt, "pytest tests/**", people.olga)
    work = await asked(make, "pytest tests/unit/test_g.py::test_one", notify=["slack:C1"])
    assert (await rt.read_model.job(work.number)).status is Status.RESUMED
    (question,), answers = await rt.questions.of_job(work.number)
    assert question.resolution == {
        "outcome": "answered",
        "via": "rule",
        "value": ALLOW,
        "rule": rule.id,
        "reason": "pytest tests/**",
    }
    assert (question.rule_text, answers) == (f"rule {rule.id} (pytest tests/**)", [])
    (event,) = [e for e in await rt.read_model.job_events(work.number) if e.kind == "rule_applied"]
    assert (event.payload["rule"], event.payload["reason"]) == (rule.id, "pytest tests/**")
    assert [use.name for use in await rt.rules.uses(rule.id)] == [f"{work.name}/1"]
    assert (await rt.rules.get(rule.id)).uses == 1
    sent = [d for d in await rt.outbox.all(work.number) if d.kind == "question"]
    assert [d.status for d in sent] == ["superseded"], "no person is asked"


@pytest.mark.parametrize(
    "command",
    [
        "pytest tests/../src/a.py",
        "pytest tests/a.py -x",
        "pytest src/a.py",
        "pytest tests",
        "pytest tests/a.py && rm -rf src",
        "pytest 'tests/a.py'",
    ],
)
async def test_a_rule_answers_no_other_command(
    rt: Runtime, make: Factory, people: People, command: str
) -> None:
    await ratified(rt, "pytest tests/**", people.olga)
    work = await asked(make, command)
    assert (await rt.read_model.job(work.number)).status is Status.WAITING_FOR_INPUT


async def test_a_rule_answers_in_its_repository_until_it_expires(
    rt: Runtime, make: Factory, people: People, clock: Clock
) -> None:
    rule = await ratified(rt, "pytest tests/**", people.olga, seconds=60)
    other = await asked(make, FIVE[0], OTHER)
    assert (await rt.read_model.job(other.number)).status is Status.WAITING_FOR_INPUT
    await clock.forward(61)
    late = await asked(make, FIVE[0])
    assert (await rt.read_model.job(late.number)).status is Status.WAITING_FOR_INPUT
    assert (await rt.rules.get(rule.id)).status is RuleStatus.EXPIRED
    again = await rt.rules.propose("acme/shop", "pytest tests/**", people.olga)
    assert again.id > rule.id
    assert (await rt.rules.get(rule.id)).end_reason == "expired"


@pytest.mark.parametrize("answer", [DENY, "only the unit tests"])
async def test_a_denial_of_a_person_revokes_the_rule_at_once(
    rt: Runtime, make: Factory, people: People, answer: str
) -> None:
    waiting = await asked(make, FIVE[0])
    rule = await ratified(rt, "pytest tests/**", people.olga)
    await decide(rt, waiting, answer, people.ben)
    ended = await rt.rules.get(rule.id)
    assert (ended.status, ended.ended_by) == (RuleStatus.REVOKED, "ben")
    assert ended.end_reason == f"ben denied {waiting.name}/1"
    work = await asked(make, FIVE[1])
    assert (await rt.read_model.job(work.number)).status is Status.WAITING_FOR_INPUT


async def test_a_denied_command_is_never_proposed(
    rt: Runtime, make: Factory, people: People
) -> None:
    await decided(rt, make, FIVE, ALLOW, people.ben)
    (denied,) = await decided(rt, make, ["pytest tests/test_x.py"], DENY, people.ben)
    assert await rt.rules.sweep(LeaderTerm()) == 0
    with pytest.raises(Refused, match=f"ben denied 'pytest tests/test_x.py' in {denied.name}/1"):
        await rt.rules.propose("acme/shop", "pytest tests/**", people.olga)
    await decided(rt, make, ["pytest tests/unit/a.py"] * 5, ALLOW, people.ben)
    test = await rt.rules.test("acme/shop", "pytest tests/**")
    assert [len(part) for part in (test.allowed, test.denied, test.asked)] == [10, 1, 0]
    narrow = await rt.rules.test("acme/shop", "pytest tests/unit/**")
    assert [len(part) for part in (narrow.allowed, narrow.denied, narrow.asked)] == [5, 0, 6]


async def test_a_revoked_rule_is_proposed_again_only_after_new_decisions(
    rt: Runtime, make: Factory, people: People
) -> None:
    await decided(rt, make, FIVE, ALLOW, people.ben)
    assert await rt.rules.sweep(LeaderTerm()) == 1
    (rule,) = await rt.rules.all()
    await rt.rules.revoke(rule.id, people.olga, "too wide")
    assert await rt.rules.sweep(LeaderTerm()) == 0
    with pytest.raises(Refused, match=f"rule {rule.id} is revoked: too wide"):
        await rt.rules.ratify(rule.id, people.olga)
    await decided(rt, make, FIVE, ALLOW, people.ben)
    assert await rt.rules.sweep(LeaderTerm()) == 1


async def test_wrong_input_is_refused_with_what_is_allowed(
    rt: Runtime, people: People, conn: Connection
) -> None:
    for pattern in ("pytest *", "a; b", "/** x", "pytest ../**", "sh -c x", "", "git push a/**"):
        with pytest.raises(UsageError, match="use a plain command"):
            await rt.rules.propose("acme/shop", pattern, people.olga)
    with pytest.raises(NotFound, match="there is no rule 7"):
        await rt.rules.ratify(7, people.olga)
    with pytest.raises(UsageError, match="at most 366 days"):
        await rt.rules.propose("acme/shop", "ls", people.olga, 1e9)
    first = await rt.rules.propose("acme/shop", "ls", people.olga)
    with pytest.raises(Refused, match=f"ls has a rule: rule {first.id}, proposed"):
        await rt.rules.propose("acme/shop", "ls", people.olga)
    assert await rows(conn, "SELECT count(*) FROM draftsman.permission_rules") == [(1,)]


async def test_an_agent_runs_its_command_without_a_person(
    rt: Runtime, make: Factory, people: People, tmp_path: Path
) -> None:
    rule = await ratified(rt, "pytest tests/**", people.olga, repo="repo")
    repository = make_repository(tmp_path / "repo")
    fields = request("pytest tests/test_a.py")
    code = (
        f"reply = parked(ask(**json.loads({json.dumps(fields)!r})))\n"
        'say("result", summary=reply["value"], data={"by": reply.get("by")})\n'
    )
    number = await submit_agent_job(make, repository)
    async with agent_worker(rt, tmp_path / "data", code):
        job = await wait_for_end(rt, number)
    assert job.status is Status.COMPLETED, job.last_error
    assert (job.result or {})["summary"] == ALLOW
    (use,) = await rt.rules.uses(rule.id)
    assert (use.name, use.command) == (f"D-{number}/1", "pytest tests/test_a.py")


async def test_two_hosts_never_share_a_rule(rt: Runtime, make: Factory, people: People) -> None:
    here = "https://github.com/acme/shop"
    there = "https://gitlab.example.org/acme/shop"
    rule = await ratified(rt, "pytest tests/**", people.olga, repo="github.com/acme/shop")
    allowed = await asked(make, "pytest tests/a.py", here)
    same = await asked(make, "pytest tests/a.py", "git@GitHub.com:acme/shop.git")
    other = await asked(make, "pytest tests/a.py", there)
    statuses = [(await rt.read_model.job(work.number)).status for work in (allowed, same, other)]
    assert statuses == [Status.RESUMED, Status.RESUMED, Status.WAITING_FOR_INPUT]
    assert (await rt.rules.get(rule.id)).uses == 2
    with pytest.raises(UsageError, match=r"use github\.com/acme/shop or gitlab\.example"):
        await rt.rules.propose("acme/shop", "ls", people.olga)
    await decide(rt, other, DENY, people.ben)
    assert (await rt.rules.get(rule.id)).status is RuleStatus.ACTIVE, "denied on another host"


async def test_a_registered_repository_is_named_without_its_host(
    rt: Runtime, make: Factory, people: People
) -> None:
    await rt.repos.add(Repo.at(parse(SHOP)), profile({}), make.owner)
    rule = await rt.rules.propose("acme/shop", "pytest tests/**", people.olga)
    assert rule.repo == SHOP_NAME
    assert await rt.rules.is_known("shop")
    assert not await rt.rules.is_known("other/shop")
