"""Questions: asking parks the run; questions are repeated, extended and listed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from draftsman.database.database import Connection
from draftsman.deliveries.question_text import next_step
from draftsman.errors import (
    LeaseLost,
    NotFound,
    NotPermitted,
    QuestionClosed,
    Refused,
    UsageError,
)
from draftsman.jobs.job import Status
from draftsman.jobs.runs.outcome import Done
from draftsman.jobs.runs.run import LeaderTerm, RunStatus
from draftsman.questions.question import OnExpire, QuestionKind, QuestionStatus
from draftsman.questions.question_spec import QuestionSpec
from draftsman.runtime import Runtime
from draftsman_testing.factories import GATE, QUESTION, Factory
from draftsman_testing.people import People
from tests.support.cases import cases
from tests.support.clock import Clock
from tests.support.statements import rows

DAY = 86_400


async def test_asking_parks_the_run_and_frees_the_worker(make: Factory, rt: Runtime) -> None:
    work = await make.asked()
    job = await rt.read_model.job(work.number)
    (run,) = await rt.read_model.runs(work.number)
    assert (job.status, job.worker_id, job.lease_token) == (Status.WAITING_FOR_INPUT, None, None)
    assert (job.attempts, job.retry_count) == (0, 0)
    assert run.status is RunStatus.PARKED
    question = await rt.questions.get(work.number, 1)
    assert (question.name, question.run, question.status) == (
        f"{work.name}/1",
        1,
        QuestionStatus.OPEN,
    )
    assert question.values() == ["red", "blue"]


async def test_an_approval_sets_waiting_for_approval(make: Factory, rt: Runtime) -> None:
    work = await make.asked(GATE)
    assert (await rt.read_model.job(work.number)).status is Status.WAITING_FOR_APPROVAL
    question = await rt.questions.get(work.number, 1)
    assert (question.kind, question.approvers) == (QuestionKind.APPROVAL, ["carol", "dave"])


async def test_all_fields_of_a_question_are_stored(make: Factory, rt: Runtime) -> None:
    item = QuestionSpec.model_validate(
        {
            "key": "k",
            "text": "Which?",
            "choices": [{"value": "a", "label": "Apple", "description": "A fruit"}],
            "freeform": True,
            "context": "some lines",
            "on_expire": "default",
            "default": "a",
        }
    )
    work = await make.asked(item)
    question = await rt.questions.get(work.number, 1)
    assert question.choices == [{"value": "a", "label": "Apple", "description": "A fruit"}]
    assert (question.freeform_allowed, question.context_snippet) == (True, "some lines")
    assert (question.on_expire, question.default_value) == (OnExpire.DEFAULT, "a")
    assert question.digest == item.digest


@pytest.mark.parametrize(
    ("times", "seconds"),
    [({}, DAY), ({"expires_in": 60}, 60), ({"never_expires": True}, None)],
    ids=["as configured", "own", "never"],
)
async def test_the_time_for_an_answer_starts_with_the_question(
    make: Factory, rt: Runtime, times: dict[str, object], seconds: float | None
) -> None:
    work = await make.asked(QUESTION.model_copy(update=times))
    question = await rt.questions.get(work.number, 1)
    if question.expires_at is None:
        assert seconds is None
    else:
        assert (question.expires_at - question.asked_at).total_seconds() == seconds


async def test_a_run_that_lost_its_lease_cannot_ask(make: Factory, rt: Runtime) -> None:
    work = await make.running()
    await rt.settlement.release_run(work, "shutdown")
    with pytest.raises(LeaseLost):
        await rt.asking.ask(work.lease, QUESTION)
    assert await rt.questions.of_job(work.number) == ([], [])


async def test_a_canceled_job_ends_instead_of_asking(make: Factory, rt: Runtime) -> None:
    work = await make.running()
    await rt.job_control.cancel(work.number, make.owner, "enough")
    assert await rt.asking.ask(work.lease, QUESTION) is None
    assert (await rt.read_model.job(work.number)).status is Status.CANCELED
    assert (await rt.read_model.runs(work.number))[0].status is RunStatus.CANCELED
    assert await rt.questions.of_job(work.number) == ([], [])


async def _ask_again(make: Factory, number: int, item: QuestionSpec) -> None:
    work = await make.running(number)
    assert await make.rt.asking.ask(work.lease, item)


async def test_a_second_question_has_the_next_number(make: Factory, rt: Runtime) -> None:
    work = await make.asked()
    await make.answer(work.number, "red")
    await _ask_again(make, work.number, QUESTION.model_copy(update={"key": "other"}))
    first, second = (await rt.questions.of_job(work.number))[0]
    assert (first.ordinal, first.status) == (1, QuestionStatus.ANSWERED)
    assert (second.ordinal, second.status, second.run) == (2, QuestionStatus.OPEN, 2)


async def test_the_same_key_asked_again_supersedes_and_no_answer_carries_over(
    make: Factory, rt: Runtime
) -> None:
    work = await make.asked()
    await make.answer(work.number, "red")
    question = await rt.questions.of_key(work.number, "pick")
    assert question is not None
    assert question.digest == QUESTION.digest
    changed = QUESTION.model_copy(update={"text": "Which one now?"})
    assert changed.digest != question.digest
    await _ask_again(make, work.number, changed)
    (first, second), answers = await rt.questions.of_job(work.number)
    assert (first.status, second.status) == (QuestionStatus.SUPERSEDED, QuestionStatus.OPEN)
    assert [(answer.question, answer.accepted) for answer in answers] == [(1, True)]
    counts = await rt.questions.of_key(work.number, "pick")
    assert counts is not None
    assert counts.ordinal == 2
    verdict = await make.answer(work.number, "blue", n=1)
    again = f"{work.name}/1 was replaced: it is asked again as {work.name}/2"
    assert (verdict.accepted, verdict.reason) == (False, again)
    assert str(next_step(verdict)) == f"to see it: draftsman show {work.name}/2"


async def test_a_canceled_job_asks_no_key_again_and_its_answer_stays(
    make: Factory, rt: Runtime
) -> None:
    work = await make.asked()
    await make.answer(work.number, "red")
    next_run = await make.running(work.number)
    await rt.job_control.cancel(work.number, make.owner)
    assert await rt.asking.ask(next_run.lease, QUESTION) is None
    (only,), _ = await rt.questions.of_job(work.number)
    assert only.status is QuestionStatus.ANSWERED


@cases(
    "change",
    [
        {"text": "Other?"},
        {"key": "other"},
        {"action": {"sha256": "2"}},
        {"kind": QuestionKind.INPUT, "choices": QUESTION.choices},
    ],
    ids=["text", "key", "action", "kind"],
)
def test_an_answer_is_bound_to_its_question_text(change: dict[str, object]) -> None:
    gate = GATE.model_copy(update={"action": {"sha256": "1"}})
    assert gate.model_copy(update=change).digest != gate.digest


@cases(
    "change", [{"context": "more"}, {"expires_in": 5.0}, {"approvers": ("carol",)}, {"quorum": 2}]
)
def test_display_and_expiry_do_not_make_it_another_question(
    change: dict[str, object],
) -> None:
    assert GATE.model_copy(update=change).digest == GATE.digest


async def test_the_inbox_shows_open_questions_soonest_expiry_first(
    make: Factory, rt: Runtime
) -> None:
    times = [("late", 900.0), ("never", None), ("soon", 60.0)]
    for key, seconds in times:
        update = {"key": key, "expires_in": seconds, "never_expires": seconds is None}
        await make.asked(QUESTION.model_copy(update=update))
    answered = await make.asked()
    await make.answer(answered.number, "red")
    assert [question.key for question in await rt.questions.open()] == ["soon", "late", "never"]
    assert [question.key for question in await rt.questions.open(limit=1)] == ["soon"]
    assert await rt.questions.open(answered.number) == []


async def test_an_unknown_question_is_not_found(make: Factory, rt: Runtime) -> None:
    work = await make.asked()
    for job, ordinal in ((work.number, 2), (999, 1)):
        with pytest.raises(NotFound, match=f"D-{job}/{ordinal}"):
            await rt.questions.get(job, ordinal)
        with pytest.raises(NotFound, match=f"D-{job}/{ordinal}"):
            await make.answer(job, "red", n=ordinal)
        with pytest.raises(NotFound, match=f"D-{job}/{ordinal}"):
            await rt.questions.extend(job, ordinal, 60, make.owner)


async def test_the_expiry_of_a_question_can_be_extended(
    make: Factory, rt: Runtime, clock: Clock, people: People
) -> None:
    work = await make.asked(QUESTION.model_copy(update={"expires_in": 60.0}))
    before = (await rt.questions.get(work.number, 1)).expires_at
    after = await rt.questions.extend(work.number, 1, 100, people.olga)
    assert before is not None
    assert after is not None
    assert (after - before).total_seconds() == 100
    await clock.forward(159)
    assert await rt.expiry.expire(LeaderTerm()) == 0
    await clock.forward(2)
    assert await rt.expiry.expire(LeaderTerm()) == 1
    event = (await rt.read_model.job_events(work.number))[4]
    assert (event.kind, event.actor) == ("question_extended", "cli:olga")
    assert datetime.fromisoformat(event.payload["expires_at"]).astimezone(UTC) == after


async def test_an_operator_gives_a_question_an_expiry_again_that_is_no_earlier(
    make: Factory, rt: Runtime, clock: Clock, people: People
) -> None:
    work = await make.asked(actor=people.anna)
    before = (await rt.questions.get(work.number, 1)).expires_at
    assert await rt.questions.extend(work.number, 1, None, people.anna) is None
    assert "expires" not in (await rt.read_model.why(work.number)).next_step
    with pytest.raises(Refused, match=r"D-1/1 never expires; nothing to extend"):
        await rt.questions.extend(work.number, 1, None, people.olga)
    with pytest.raises(NotPermitted, match="may not extend"):
        await rt.questions.extend(work.number, 1, 60, people.anna)
    after = await rt.questions.extend(work.number, 1, 60, people.olga)
    assert before is not None
    assert after == before + timedelta(seconds=60)
    assert "; expires " in (await rt.read_model.why(work.number)).next_step
    await rt.questions.extend(work.number, 1, None, people.olga)
    await clock.forward(3 * DAY)
    await rt.questions.extend(work.number, 1, 7200, people.olga)
    await clock.forward(7100)
    assert await rt.expiry.expire(LeaderTerm()) == 0
    await clock.forward(101)
    assert await rt.expiry.expire(LeaderTerm()) == 1


@pytest.mark.parametrize("seconds", [60.0, None])
async def test_a_question_that_was_asked_without_an_expiry_gets_none(
    make: Factory, rt: Runtime, conn: Connection, clock: Clock, seconds: float | None
) -> None:
    work = await make.asked(QUESTION.model_copy(update={"never_expires": True}))
    with pytest.raises(Refused, match=r"D-1/1 never expires; nothing to extend"):
        await rt.questions.extend(work.number, 1, seconds, make.owner)
    extend = "SELECT expires_at FROM draftsman.extend_question(1, 1, 60, 'cli:root')"
    assert await rows(conn, extend) == [(None,)]  # an older release asks the database alone
    assert (await rt.questions.get(work.number, 1)).expires_at is None
    await clock.forward(400 * DAY)
    assert await rt.expiry.expire(LeaderTerm()) == 0


async def test_an_overdue_question_cannot_be_extended(
    make: Factory, rt: Runtime, clock: Clock
) -> None:
    due = await make.asked()
    answered = await make.asked()
    await make.answer(answered.number, "red")
    with pytest.raises(QuestionClosed, match="was already answered by root"):
        await rt.questions.extend(answered.number, 1, 60, make.owner)
    await clock.forward(DAY + 1)
    with pytest.raises(QuestionClosed, match="expired"):
        await rt.questions.extend(due.number, 1, 60, make.owner)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), 1e30])
async def test_an_invalid_extension_is_refused(make: Factory, rt: Runtime, seconds: float) -> None:
    work = await make.asked()
    with pytest.raises(UsageError):
        await rt.questions.extend(work.number, 1, seconds, make.owner)


async def test_only_an_operator_or_the_invoker_can_extend_a_question(
    make: Factory, rt: Runtime, people: People
) -> None:
    work = await make.running(await make.queued(actor=people.anna))
    await rt.asking.ask(work.lease, QUESTION)
    for actor in (people.ben, people.carol, people.erin):
        with pytest.raises(NotPermitted, match="operator"):
            await rt.questions.extend(work.number, 1, 60, actor)
    assert await rt.questions.extend(work.number, 1, 60, people.anna)
    assert await rt.questions.extend(work.number, 1, 60, people.olga)


async def test_a_finished_job_asks_no_more(make: Factory, rt: Runtime) -> None:
    work = await make.running()
    await rt.settlement.outcome(work, Done())
    with pytest.raises(LeaseLost):
        await rt.asking.ask(work.lease, QUESTION)


async def test_open_questions_come_in_pages(make: Factory, rt: Runtime) -> None:
    soon, later = (QUESTION.model_copy(update={"expires_in": each}) for each in (600, 6000))
    never = QUESTION.model_copy(update={"never_expires": True})
    numbers = [(await make.asked(spec)).number for spec in (never, later, soon, never, later)]
    walked: list[int] = []
    after = None
    while page := await rt.questions.open(limit=2, after=after):
        walked += [spec.job for spec in page]
        after = page[-1].expires_at, page[-1].job, page[-1].ordinal
    assert walked == [numbers[nth] for nth in (2, 1, 4, 0, 3)]
