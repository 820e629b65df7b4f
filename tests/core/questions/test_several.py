"""Several open questions of a job: each answer counts, and the last resumes the job."""

from __future__ import annotations

from typing import Any

import pytest

from draftsman.database.database import Connection
from draftsman.deliveries.question_text import resolution_text
from draftsman.jobs.job import Status
from draftsman.jobs.runs.run import LeaderTerm
from draftsman.questions.asked_question import AskedQuestion
from draftsman.questions.question import QuestionStatus
from draftsman.questions.question_spec import QuestionSpec
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, QUESTION, Factory
from draftsman_testing.people import People
from tests.support.clock import Clock
from tests.support.permissions import SHOP
from tests.support.statements import rows

S = Status
Q = QuestionStatus
SECOND = QUESTION.model_copy(update={"key": "second", "text": "Which other?"})
THIRD = QUESTION.model_copy(update={"key": "third", "text": "And which else?"})


def soon(item: QuestionSpec, **fields: Any) -> QuestionSpec:
    """Return a question that expires after a minute."""
    return item.model_copy(update={"expires_in": 60.0} | fields)


async def status_of(rt: Runtime, job: int) -> Status:
    return (await rt.read_model.job(job)).status


async def statuses(rt: Runtime, job: int) -> list[QuestionStatus]:
    return [question.status for question in (await rt.questions.of_job(job))[0]]


async def kinds(rt: Runtime, job: int) -> list[str]:
    return [event.kind for event in await rt.read_model.job_events(job)][4:]


async def posted(rt: Runtime, job: int) -> list[tuple[int | None, str, str]]:
    """Return question, target and status of the messages of questions, in order."""
    sent = [item for item in await rt.outbox.all(job) if item.kind == "question"]
    return [(item.question, item.target, str(item.status)) for item in reversed(sent)]


@pytest.fixture(autouse=True)
async def _check_invariants(rt: Runtime) -> Any:
    yield
    assert not any((await rt.read_model.invariants()).values())


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 1, 2)])
async def test_each_answer_counts_and_the_last_resumes_the_job(
    rt: Runtime, make: Factory, order: tuple[int, ...]
) -> None:
    work = await make.asked_at_once(QUESTION, SECOND, THIRD, notify=("log",))
    assert await status_of(rt, work.number) is S.WAITING_FOR_INPUT
    asked = (await rt.read_model.job_events(work.number))[-1]
    assert asked.kind == "needs_input"
    assert (asked.payload["question"], asked.payload["key"]) == (1, "pick")
    assert [item["key"] for item in asked.payload["others"]] == ["second", "third"]
    for n in order[:2]:
        verdict = await make.answer(work.number, "red", n=n)
        assert (verdict.resolved, verdict.job_status) == (True, S.WAITING_FOR_INPUT)
        assert await status_of(rt, work.number) is S.WAITING_FOR_INPUT
    assert [item.ordinal for item in await rt.questions.open(work.number)] == [order[2]]
    assert (await make.answer(work.number, "red", n=order[2])).job_status == S.RESUMED
    assert await kinds(rt, work.number) == [*["answer_received"] * 3, "job_resumed"]
    assert (await make.running(work.number)).run == 2


async def test_a_job_waits_for_its_approval_first(
    rt: Runtime, make: Factory, people: People
) -> None:
    work = await make.asked_at_once(QUESTION, GATE, notify=("log",))
    assert await status_of(rt, work.number) is S.WAITING_FOR_APPROVAL
    verdict = await make.decide(work.number, True, people.carol, n=2)
    assert verdict.job_status == S.WAITING_FOR_INPUT
    event = (await rt.read_model.job_events(work.number))[-1]
    assert (event.kind, event.from_status) == ("needs_input", S.WAITING_FOR_APPROVAL)
    assert event.payload["question"] == 1
    sent = await posted(rt, work.number)
    assert [question for question, *_ in sent] == [1, 2], "no question is posted twice"
    assert (await make.answer(work.number, "red")).job_status == S.RESUMED


async def test_an_answer_leaves_the_approval_open(
    rt: Runtime, make: Factory, people: People
) -> None:
    work = await make.asked_at_once(QUESTION, GATE)
    assert (await make.answer(work.number, "red")).job_status == S.WAITING_FOR_APPROVAL
    assert (await make.decide(work.number, True, people.dave, n=2)).job_status == S.RESUMED


async def test_a_denial_fails_the_job_and_withdraws_the_other_questions(
    rt: Runtime, make: Factory, people: People
) -> None:
    work = await make.asked_at_once(GATE, QUESTION, notify=("log",))
    verdict = await make.decide(work.number, False, people.carol, reason="no")
    assert verdict.job_status == S.FAILED
    job = await rt.read_model.job(work.number)
    assert (job.error_class, job.last_error) == ("DENIED", "denied by carol: no")
    assert await statuses(rt, work.number) == [Q.ANSWERED, Q.CANCELED]
    late = await make.answer(work.number, "red", n=2)
    assert (late.accepted, late.reason) == (False, f"{work.name}/2 was already canceled")
    assert resolution_text(await rt.questions.get(work.number, 2)) == (
        "was canceled: the job has ended"
    )


async def test_a_denial_that_the_handler_accepts_leaves_the_others(
    rt: Runtime, make: Factory, people: People
) -> None:
    gate = GATE.model_copy(update={"on_deny": "continue"})
    work = await make.asked_at_once(gate, QUESTION)
    verdict = await make.decide(work.number, False, people.carol)
    assert verdict.job_status == S.WAITING_FOR_INPUT
    assert (await make.answer(work.number, "red", n=2)).job_status == S.RESUMED


@pytest.mark.parametrize(
    "policy", [{"on_expire": "default", "default": "blue"}, {"on_expire": "continue"}]
)
async def test_an_expired_question_counts_as_closed(
    rt: Runtime, make: Factory, clock: Clock, policy: dict[str, str]
) -> None:
    for answered_first in (True, False):
        work = await make.asked_at_once(soon(QUESTION, **policy), SECOND)
        if answered_first:
            await make.answer(work.number, "red", n=2)
        await clock.forward(61)
        assert await rt.expiry.expire(LeaderTerm()) == 1
        if not answered_first:
            assert await status_of(rt, work.number) is S.WAITING_FOR_INPUT
            await make.answer(work.number, "red", n=2)
        assert await status_of(rt, work.number) is S.RESUMED
        assert await rt.expiry.expire(LeaderTerm()) == 0


async def test_questions_that_expire_together_resume_the_job_once(
    rt: Runtime, make: Factory, clock: Clock
) -> None:
    items = [soon(item, on_expire="continue") for item in (QUESTION, SECOND, THIRD)]
    work = await make.asked_at_once(*items)
    await clock.forward(61)
    assert await rt.expiry.expire(LeaderTerm()) == 3
    assert await statuses(rt, work.number) == [Q.EXPIRED] * 3
    assert await kinds(rt, work.number) == [*["question_expired"] * 3, "job_resumed"]


async def test_a_question_that_expires_for_good_ends_the_job(
    rt: Runtime, make: Factory, clock: Clock
) -> None:
    work = await make.asked_at_once(SECOND, soon(QUESTION), soon(THIRD, on_expire="continue"), GATE)
    await clock.forward(61)
    await rt.expiry.expire(LeaderTerm())
    assert await status_of(rt, work.number) is S.EXPIRED
    assert await statuses(rt, work.number) == [Q.CANCELED, Q.EXPIRED, Q.EXPIRED, Q.CANCELED]
    event = (await rt.read_model.job_events(work.number))[-1]
    assert (event.kind, event.payload["question"]) == ("job_expired", 2)


async def test_an_approval_that_expires_ends_the_job(
    rt: Runtime, make: Factory, clock: Clock
) -> None:
    work = await make.asked_at_once(soon(GATE), QUESTION)
    await clock.forward(61)
    await rt.expiry.expire(LeaderTerm())
    assert await status_of(rt, work.number) is S.EXPIRED


async def test_the_first_of_several_alternatives_resumes_the_job(
    rt: Runtime, make: Factory, people: People
) -> None:
    items = QUESTION, SECOND, GATE
    for first in (1, 2, 3):
        work = await make.asked_at_once(*items, alternatives=True, notify=("log",))
        assert await status_of(rt, work.number) is S.WAITING_FOR_APPROVAL
        if first == 3:
            verdict = await make.decide(work.number, True, people.carol, n=3)
        else:
            verdict = await make.answer(work.number, "red", n=first)
        assert verdict.job_status == S.RESUMED
        expected = [Q.ANSWERED if n == first else Q.CANCELED for n in (1, 2, 3)]
        assert await statuses(rt, work.number) == expected
        other = await rt.questions.get(work.number, 2 if first == 1 else 1)
        assert resolution_text(other) == "was canceled: another question was closed first"
        late = await make.answer(work.number, "red", n=other.ordinal)
        assert (late.accepted, late.resolved) == (False, True)


async def test_an_expired_alternative_counts(rt: Runtime, make: Factory, clock: Clock) -> None:
    item = soon(QUESTION, on_expire="continue")
    work = await make.asked_at_once(item, SECOND, alternatives=True)
    await clock.forward(61)
    await rt.expiry.expire(LeaderTerm())
    assert await status_of(rt, work.number) is S.RESUMED
    assert await statuses(rt, work.number) == [Q.EXPIRED, Q.CANCELED]


async def test_a_withdrawn_question_is_asked_again(rt: Runtime, make: Factory) -> None:
    work = await make.asked_at_once(QUESTION, SECOND, alternatives=True)
    await make.answer(work.number, "red")
    later = await make.running(work.number)
    assert await rt.questions.of_key(work.number, "second") is None
    assert await rt.asking.ask(later.lease, SECOND) == f"{work.name}/3"
    assert (await make.answer(work.number, "blue", n=3)).job_status == S.RESUMED


async def test_the_answers_of_the_request_count_at_once(rt: Runtime, make: Factory) -> None:
    work = await make.running(overrides={"answers": {"pick": "red"}})
    asked = [AskedQuestion(QUESTION, answer="red"), AskedQuestion(SECOND)]
    await rt.asking.ask_all(work.lease, asked, invoker=work.invoker_id)
    assert await statuses(rt, work.number) == [Q.ANSWERED, Q.OPEN]
    assert (await make.answer(work.number, "red", n=2)).job_status == S.RESUMED


async def test_a_canceled_job_withdraws_all_questions(
    rt: Runtime, make: Factory, conn: Connection
) -> None:
    work = await make.asked_at_once(QUESTION, GATE, THIRD, notify=("log",))
    await rt.job_control.cancel(work.number, make.owner)
    assert await statuses(rt, work.number) == [Q.CANCELED] * 3
    query = (
        "SELECT count(*) FROM draftsman.deliveries WHERE kind = 'question' AND status = 'pending'"
    )
    assert await rows(conn, query) == [(0,)]


async def test_questions_of_a_job_that_look_the_same_are_answered_one_by_one(
    rt: Runtime, make: Factory
) -> None:
    same = QUESTION.model_copy(update={"key": "same"})
    work = await make.asked_at_once(QUESTION, same, repo=SHOP, notify=("log",))
    sent = await posted(rt, work.number)
    assert [(question, status) for question, _, status in sent] == [(1, "pending"), (2, "pending")]
    assert (await make.answer(work.number, "red")).also == ()
    assert await statuses(rt, work.number) == [Q.ANSWERED, Q.OPEN]
    assert (await make.answer(work.number, "blue", n=2)).job_status == S.RESUMED


async def test_each_question_is_answered_with_those_of_other_jobs_that_look_the_same(
    rt: Runtime, make: Factory
) -> None:
    one = await make.asked_at_once(QUESTION, SECOND, repo=SHOP, notify=("log",))
    two = await make.asked_at_once(SECOND, QUESTION, repo=SHOP, notify=("log",))
    assert (await make.answer(one.number, "red")).also == (f"{two.name}/2",)
    assert await status_of(rt, two.number) is S.WAITING_FOR_INPUT
    assert (await make.answer(two.number, "red")).also == (f"{one.name}/2",)
    assert [await status_of(rt, work.number) for work in (one, two)] == [S.RESUMED] * 2


async def test_a_joined_request_gets_all_open_questions(rt: Runtime, make: Factory) -> None:
    work = await make.asked_at_once(QUESTION, GATE, subject_key="nightly")
    joined = await make.queued(subject_key="nightly", notify=("slack:C7",))
    assert joined == work.number
    sent = await posted(rt, work.number)
    assert [(question, target) for question, target, _ in sent] == [(1, "C7"), (2, "C7")]
