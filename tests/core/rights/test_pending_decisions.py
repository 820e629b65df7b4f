"""Pending decisions on a server: a worker applies those of people, and makes none."""

from __future__ import annotations

from typing import Any

import pytest

from draftsman.database.database import Connection
from draftsman.errors import Refused
from draftsman.jobs.job import Status
from draftsman.jobs.pending_decisions import store
from draftsman.jobs.pending_decisions.pending_decision import PendingDecision
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.jobs.runs.store import jobs as job_store
from draftsman.questions.answer import Verdict
from draftsman.questions.question import Decision
from draftsman.questions.response import Response
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, REVIEW, Factory
from tests.core.rights.conftest import As
from tests.support.clock import Clock
from tests.support.statements import run


async def test_a_worker_applies_the_decisions_of_people_as_they_are(
    as_role: As, known: Runtime, make: Factory, clock: Clock
) -> None:
    gate = (await make.asked(GATE.model_copy(update={"quorum": 2}))).number
    denied, canceled, own = [(await make.asked(GATE)).number for _ in range(3)]
    sent_back = (await make.asked(REVIEW)).number
    carol, olga, worker = [await as_role(name) for name in ("carol", "olga", "worker")]
    held: list[object] = []
    yes = Decision.APPROVE
    decided = ((gate, yes), (denied, Decision.DENY), (own, yes))
    for number, decision in (*decided, (sent_back, Decision.REQUEST_CHANGES)):
        response = Response(source_event_id=f"tui:{number}", decision=decision, reason="r")
        held.append(
            await carol.pending_decisions.answer(number, 1, response, await carol.actor(), 5.0)
        )
    held.append(
        await olga.pending_decisions.cancel(
            canceled, await olga.actor(), "no", force=False, event="c", window=5.0
        )
    )
    decisions = [item for item in held if isinstance(item, PendingDecision)]
    assert len(decisions) == 5
    assert not await olga.pending_decisions.undo(decisions[0])
    assert await olga.pending_decisions.apply(decisions[0], early=True) is None
    with pytest.raises(Refused, match="permission denied for function undo_decision"):
        await worker.pending_decisions.undo(decisions[0])
    assert await worker.pending_decisions.apply(decisions[0], early=True) is None
    applied = await carol.pending_decisions.apply(decisions[2], early=True)
    assert isinstance(applied, Verdict)
    assert applied.resolved

    forged = decisions[0].actor, "forged", {"decision": True}, {"decision": "approve"}, 5.0
    with pytest.raises(Refused, match="permission denied for function hold_decision"):
        await worker.db.run_transaction(lambda conn: store.hold(conn, denied, 1, *forged))
    await clock.forward(5)
    forger = await as_role("worker")

    async def forge(conn: Connection) -> None:
        """Answer otherwise than the decision that the transaction applies."""
        assert await store.take(conn, decisions[1].id, early=False)
        actor = forger.policy.resolve(decisions[1].actor)
        other = Response(source_event_id=decisions[1].source_event_id, decision=Decision.APPROVE)
        await forger.questions.record(conn, denied, 1, other, actor)

    with pytest.raises(Refused, match="cannot answer as"):
        await forger.db.run_transaction(forge)
    assert await forger.pending_decisions.apply_due(LeaderTerm()) == 4
    jobs = [await known.read_model.job(number) for number in (gate, denied, canceled, own)]
    assert [job.status for job in jobs] == [
        *(Status.WAITING_FOR_APPROVAL, Status.FAILED, Status.CANCELED, Status.RESUMED)
    ]
    events = await known.read_model.job_events(gate)
    assert (events[-1].kind, events[-1].actor) == ("vote_received", decisions[0].actor.name)
    assert jobs[1].last_error == "denied by carol: r"
    [message] = await known.messages.of_job(sent_back)
    assert (message.text, message.sender, message.run) == ("r", "carol", None)
    violations = await known.read_model.invariants()
    assert {name: rows for name, rows in violations.items() if rows} == {}


async def test_a_decision_gives_the_rights_of_its_person_and_no_others(
    as_role: As, known: Runtime, make: Factory, clock: Clock
) -> None:
    gate, other, late = [(await make.asked(GATE)).number for _ in range(3)]
    carol, olga = [await as_role(name) for name in ("carol", "olga")]
    actor = await carol.actor()
    yes = Response(source_event_id="yes", decision=Decision.APPROVE)
    held = await carol.pending_decisions.answer(gate, 1, yes, actor, 5.0)
    assert isinstance(held, PendingDecision)

    async def cancel(conn: Connection) -> None:
        assert await store.take(conn, held.id, early=False)
        await job_store.cancel_now(conn, other, actor.name, None)

    async def vote(conn: Connection) -> None:
        assert await store.take(conn, held.id, early=False)
        await run(
            conn,
            "INSERT INTO draftsman.job_events (job, kind, actor) VALUES (%s, 'vote_received', %s)",
            (other, actor.name),
        )

    # decisions that the service does not make, such as of a person with psql
    stranger = await olga.actor()

    async def hold(
        event: str, question: int | None, fields: dict[str, Any]
    ) -> PendingDecision | None:
        payload = None if question is None else dict[str, Any]()
        job = gate if event == "yes" else other
        return await olga.db.run_transaction(
            lambda conn: store.hold(conn, job, question, stranger, event, fields, payload, 4.0)
        )

    assert await hold("yes", 1, {"decision": False}) is None, "the event of another person"
    assert await hold("reason", None, {"reason": 5}) is not None
    assert await hold("key", 1, {"unknown": 1}) is not None
    no = Response(source_event_id="no", decision=Decision.DENY)
    await carol.pending_decisions.answer(late, 1, no, actor, 5.0)
    await clock.forward(5)
    worker = await as_role("worker")
    with pytest.raises(Refused, match=f"may not control D-{other}"):
        await worker.db.run_transaction(cancel)
    with pytest.raises(Refused, match="row-level security"):
        await worker.db.run_transaction(vote)
    assert await worker.pending_decisions.apply_due(LeaderTerm()) == 4
    assert await worker.pending_decisions.apply_due(LeaderTerm()) == 0
    numbers = [(await known.read_model.job(number)).status for number in (gate, other, late)]
    assert numbers == [Status.RESUMED, Status.WAITING_FOR_APPROVAL, Status.FAILED]
