"""Permissions of people: the programs' policy and the database agree."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

import pytest
from psycopg.types.json import Jsonb

from draftsman.database.database import Connection
from draftsman.errors import NotPermitted
from draftsman.jobs.job import Source
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.people.actor import Actor
from draftsman.people.policy import Person, Policy, Verb
from draftsman.questions.answer_kind import AnswerKind
from draftsman.questions.question_spec import QuestionSpec
from draftsman_testing.factories import GATE, Factory
from draftsman_testing.people import PEOPLE
from tests.core.rights.conftest import As
from tests.support.raw_jobs import insert_job
from tests.support.roles import Roles
from tests.support.slow import slow_except
from tests.support.statements import outcome

Session = Callable[[str], Awaitable[Connection]]
WHO: Final = (*PEOPLE, "stranger")
APPROVERS: Final[tuple[list[str], ...]] = (
    ["carol", "dave"],
    ["leads"],
    ["leads", "erin"],
    ["anna", "erin"],
    ["nobody"],
    [],
)
ANSWER: Final = (
    "INSERT INTO draftsman.job_answers (job, question, kind, source, source_event_id, responder_id,"
    " voter, payload, accepted) SELECT job, 1, kind, 'cli', 'e', %(id)s, '', %(yes)s, true"
    " FROM draftsman.job_questions WHERE job = %(job)s"
)
SUBMIT: Final = insert_job(
    {
        "id": "gen_random_uuid()",
        "type": "'noop'",
        "idempotency_key": "'k'",
        "request_digest": "''",
        "source": "'cli'",
        "invoker_id": "%(name)s::text",
    }
)
RETRY: Final = insert_job(
    {
        "id": "gen_random_uuid()",
        "type": "type",
        "idempotency_key": "'retry:' || number || ':1'",
        "request_digest": "request_digest",
        "source": "'cli'",
        "invoker_id": "%(name)s::text",
        "payload": "payload",
        "retry_of": "number",
        "chain_length": "1",
    },
    "draftsman.jobs WHERE number = %(over)s",
)
VERBS: Final = {
    Verb.SUBMIT: SUBMIT,
    Verb.RETRY: RETRY,
    Verb.CANCEL: "SELECT draftsman.cancel_job(%(job)s, 'cli:' || %(id)s::text, NULL)",
    Verb.DISMISS: "SELECT draftsman.dismiss_job(%(job)s, NULL, 'cli:' || %(id)s::text)",
    Verb.TELL: "SELECT draftsman.send_message(%(job)s, 'cli', %(id)s::text, '', '', 'e', 'x')",
    Verb.PAUSE: "SELECT draftsman.pause_job(%(job)s, 'r', 'cli:' || %(id)s::text)",
    Verb.EXTEND: "SELECT draftsman.extend_question(%(job)s, 1, 60, 'cli:' || %(id)s::text)",
    Verb.UNLINK: "SELECT draftsman.unlink_identity('slack', 'U-NOBODY')",
    Verb.REDELIVER: "SELECT draftsman.redeliver('{}', 'cli:' || %(id)s::text)",
    Verb.BOARDS: "DELETE FROM draftsman.trello_board_configs WHERE false",
    Verb.REPOS: "DELETE FROM draftsman.repos WHERE false",
}


def _policy(roles: Roles, self_approval: bool) -> Policy:
    known = roles.people()
    people = {
        name: Person(name, entry.roles, dict(entry.ids)) for name, entry in known.people.items()
    }
    return Policy(people, known.groups, self_approval)


def _may(check: Callable[..., None], *args: Any, **fields: Any) -> str:
    with suppress(NotPermitted):
        check(*args, **fields)
        return "ok"
    return "42501"


async def _waiting(as_role: As, make: Factory) -> tuple[int, int]:
    """Make a job of erin's that waits for an approval, and a finished job."""
    erin = await as_role("erin")
    actor = await erin.actor()
    over = await erin.submissions.submit(invocation(type="noop", key="over"), actor)
    await erin.job_control.cancel(over.number, actor)
    job = await erin.submissions.submit(invocation(type="noop", queue="q"), actor)
    work = await make.running(job.number)
    await make.rt.asking.ask(work.lease, GATE, invoker="erin")
    return job.number, over.number


@pytest.mark.parametrize("switch", slow_except([None, True], [None, False, True]))
async def test_database_and_policy_agree_on_an_answer(
    as_role: As,
    session: Session,
    make: Factory,
    conn: Connection,
    roles: Roles,
    switch: bool | None,
) -> None:
    job, _ = await _waiting(as_role, make)
    await conn.execute("DELETE FROM draftsman.approval_policy")
    if switch is not None:
        await conn.execute("INSERT INTO draftsman.approval_policy VALUES (true, %s)", (switch,))
    policy = _policy(roles, bool(switch))
    by_policy: dict[tuple[object, ...], str] = {}
    by_database: dict[tuple[object, ...], str] = {}
    sessions = {who: await session(who) for who in WHO}
    for gate, names in [(gate, names) for gate in (True, False) for names in APPROVERS]:
        await conn.execute(
            "UPDATE draftsman.job_questions SET approvers = %s, kind = %s, freeform_allowed = %s",
            (names, "approval" if gate else "input", not gate),
        )
        for user in WHO:
            case = (gate, *names, user)
            actor = policy.resolve(Actor(Source.CLI, roles.name(user), user))
            check = policy.check_vote if gate else policy.check_answer
            by_policy[case] = _may(check, actor, names, invoker="erin")
            payload = {"decision": "approve"} if gate else {"text": "yes"}
            params = {"id": roles.name(user), "job": job, "yes": Jsonb(payload)}
            by_database[case] = await outcome(sessions[user], ANSWER, params)
    assert by_database == by_policy
    assert set(by_policy.values()) == {"ok", "42501"}


async def test_database_and_policy_agree_on_a_verb(
    as_role: As, session: Session, make: Factory, roles: Roles
) -> None:
    job, over = await _waiting(as_role, make)
    policy = _policy(roles, False)
    by_policy: dict[tuple[object, ...], str] = {}
    by_database: dict[tuple[object, ...], str] = {}
    for user in WHO:
        conn = await session(user)
        id = roles.name(user)
        actor = policy.resolve(Actor(Source.CLI, id, user))
        params = {"id": id, "name": user, "job": job, "over": over}
        for verb, statement in VERBS.items():
            invoker = None if verb is Verb.UNLINK else "erin"
            by_policy[user, verb] = _may(policy.check, actor, verb, invoker=invoker)
            by_database[user, verb] = await outcome(conn, statement, params)
    assert by_database == by_policy


async def test_the_database_refuses_an_answer_of_another_kind(
    as_role: As, session: Session, make: Factory, roles: Roles
) -> None:
    erin = await as_role("erin")
    job = await erin.submissions.submit(invocation(type="noop", queue="q"), await erin.actor())
    work = await make.running(job.number)
    spec = QuestionSpec(key="k", text="?", freeform=True, answer_kind=AnswerKind.INTEGER)
    await make.rt.asking.ask(work.lease, spec, invoker="erin")
    conn = await session("erin")
    for text, expected in {"many": "42501", "31": "ok"}.items():
        params = {"id": roles.name("erin"), "job": job.number, "yes": Jsonb({"text": text})}
        assert await outcome(conn, ANSWER, params) == expected
