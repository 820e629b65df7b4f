"""Text that PostgreSQL cannot store, and text that is too long, in every input."""

from __future__ import annotations

import pytest

from draftsman.errors import Failure, UsageError
from draftsman.jobs.job import Source, Status
from draftsman.jobs.requests.service.submissions import invocation
from draftsman.jobs.runs.outcome import Cancel, Done
from draftsman.jobs.runs.service.checkpoints import ARTIFACT_LIMIT
from draftsman.people.actor import Actor
from draftsman.questions.question import Decision
from draftsman.questions.question_spec import QuestionSpec
from draftsman.questions.response import Response
from draftsman.runtime import Runtime
from draftsman.text import CHECKPOINT_LIMIT, EVENT_LIMIT, REQUEST_LIMIT
from draftsman_testing.factories import GATE, Factory
from tests.support.cases import cases

DIRTY = "caf\udce9 a\x00b \ud83d"
CLEAN = "caf? a\ufffdb ?"
"""The stored text: a lone surrogate becomes `?`, NUL the replacement character."""


async def test_a_request_is_stored_with_clean_text(make: Factory, rt: Runtime) -> None:
    number = await make.queued(
        key=DIRTY, title=DIRTY, text=DIRTY, payload={DIRTY: [DIRTY, {"x": DIRTY}]}, tags=[DIRTY]
    )
    job = await rt.read_model.job(number)
    assert job.idempotency_key == job.title == job.agent_request.text == CLEAN
    assert job.payload == {CLEAN: [CLEAN, {"x": CLEAN}]}
    assert job.tags == [CLEAN]


async def test_unusual_valid_text_is_stored_unchanged(make: Factory, rt: Runtime) -> None:
    text = "\u202eRTL \U0001f600 \ufffd \x01 \x7f e\u0301 %s {} '; DROP TABLE draftsman.jobs; --"
    number = await make.queued(text=text, payload={"t": text}, key=text)
    job = await rt.read_model.job(number)
    assert (job.agent_request.text, job.payload["t"], job.idempotency_key) == (text, text, text)


async def test_the_name_of_an_actor_is_stored_with_clean_text(rt: Runtime) -> None:
    actor = Actor(Source.CLI, "root", DIRTY, owner=True)
    job = await rt.submissions.submit(invocation(type="noop"), actor)
    assert (await rt.read_model.job(job.number)).invoker_display_name == CLEAN


async def test_an_event_is_stored_with_clean_text(make: Factory, rt: Runtime) -> None:
    work = await make.running()
    await rt.checkpoints.event(work.lease, DIRTY, {DIRTY: DIRTY})
    event = (await rt.read_model.job_events(work.number))[-1]
    assert (event.kind, event.payload) == (CLEAN, {CLEAN: CLEAN})


async def test_data_of_a_run_is_stored_with_clean_text(make: Factory, rt: Runtime) -> None:
    work = await make.running()
    await rt.checkpoints.save(work.lease, {DIRTY: DIRTY})
    await rt.checkpoints.begin_step(work.lease, DIRTY)
    await rt.checkpoints.finish_step(work.lease, DIRTY, {"x": DIRTY})
    await rt.checkpoints.log(work.lease, 1, DIRTY)
    await rt.checkpoints.artifact(work.lease, DIRTY, "file", b"\x00\xff")
    await rt.model_calls.record(work.lease, {"model": DIRTY})
    assert (await rt.checkpoints.latest(work.number))[0] == {CLEAN: CLEAN}
    (step,) = await rt.checkpoints.steps(work.number)
    assert (step.key, step.result) == (CLEAN, {"x": CLEAN})
    assert [chunk.text for chunk in await rt.checkpoints.logs(work.number)] == [CLEAN]
    _, content = await rt.checkpoints.read_artifact(work.number, CLEAN)
    assert content == b"\x00\xff"


async def test_a_question_and_its_answer_are_stored_with_clean_text(
    make: Factory, rt: Runtime
) -> None:
    item = QuestionSpec(key=DIRTY, text=DIRTY, freeform=True, context=DIRTY)
    work = await make.asked(item)
    question = await rt.questions.get(work.number, 1)
    assert question.key == question.text == question.context_snippet == CLEAN
    await make.answer(work.number, DIRTY)
    _, (answer,) = await rt.questions.of_job(work.number)
    assert answer.payload == {"text": CLEAN}


async def test_a_decision_is_stored_with_clean_text(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    work = await make.asked(GATE)
    response = Response(source_event_id=DIRTY, decision=Decision.DENY, reason=DIRTY)
    await rt.questions.answer(work.number, 1, response, owner)
    _, (answer,) = await rt.questions.of_job(work.number)
    assert (answer.source_event_id, answer.payload["reason"]) == (CLEAN, CLEAN)
    assert CLEAN in str((await rt.read_model.job(work.number)).last_error)


async def test_a_cancel_reason_is_stored_with_clean_text(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    for number in (await make.queued(), (await make.running()).number):
        await rt.job_control.cancel(number, owner, DIRTY)
        assert (await rt.read_model.job(number)).cancel_reason == CLEAN


async def test_results_and_errors_are_stored_with_clean_text(make: Factory, rt: Runtime) -> None:
    done, failed, dropped = [await make.running() for _ in range(3)]
    await rt.settlement.outcome(done, Done({DIRTY: DIRTY}))
    await rt.settlement.failure(
        failed, Failure(DIRTY, origin=DIRTY, code=DIRTY, declared="PERMANENT")
    )
    await rt.settlement.outcome(dropped, Cancel(DIRTY))
    assert (await rt.read_model.job(done.number)).result == {CLEAN: CLEAN}
    assert (await rt.read_model.job(failed.number)).last_error == CLEAN
    assert (await rt.read_model.job_events(failed.number))[-1].payload["code"] == CLEAN
    assert (await rt.read_model.job(dropped.number)).cancel_reason == CLEAN


async def test_the_reason_of_a_released_job_is_stored_with_clean_text(
    make: Factory, rt: Runtime
) -> None:
    work = await make.claimed()
    claim = rt.claim(make.worker, (work.queue,))
    reason = 'the type "noop" \\ %s'
    await claim.release_claims([work.lease], reason)
    assert (await rt.read_model.job_events(work.number))[-1].payload == {"reason": reason}


@cases(
    ("field", "limit"),
    [("title", 500), ("text", 200_000), ("url", 2000), ("key", 500), ("subject_key", 500)],
)
def test_a_request_over_a_limit_is_refused_in_one_line(field: str, limit: int) -> None:
    invocation(**{field: "x" * limit})
    with pytest.raises(UsageError, match=field) as caught:
        invocation(**{field: "x" * (limit + 1)})
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


@cases("field", ["payload", "overrides"])
def test_a_payload_over_a_mebibyte_is_refused(field: str) -> None:
    with pytest.raises(UsageError, match=r"at most 1,048,576"):
        invocation(**{field: {"x": "y" * REQUEST_LIMIT}})


async def test_a_payload_of_a_mebibyte_is_stored(make: Factory, rt: Runtime) -> None:
    payload = {"x": "y" * (REQUEST_LIMIT - 9)}
    number = await make.queued(payload=payload)
    assert (await rt.read_model.job(number)).payload == payload


async def test_a_result_over_a_mebibyte_is_refused_and_the_run_continues(
    make: Factory, rt: Runtime
) -> None:
    work = await make.running()
    with pytest.raises(UsageError, match="the result"):
        await rt.settlement.outcome(work, Done({"x": "y" * REQUEST_LIMIT}))
    assert (await rt.read_model.job(work.number)).status is Status.RUNNING


async def test_a_checkpoint_over_a_mebibyte_is_refused_and_the_previous_checkpoint_stays(
    make: Factory, rt: Runtime
) -> None:
    work = await make.running()
    await rt.checkpoints.save(work.lease, {"x": "y" * (CHECKPOINT_LIMIT - 9)})
    with pytest.raises(UsageError, match=r"a checkpoint has 1,048,577 bytes"):
        await rt.checkpoints.save(work.lease, {"x": "y" * (CHECKPOINT_LIMIT - 8)})
    data, _ = await rt.checkpoints.latest(work.number)
    assert data is not None
    assert len(data["x"]) == CHECKPOINT_LIMIT - 9


async def test_an_artifact_over_25_megabytes_is_refused(make: Factory, rt: Runtime) -> None:
    work = await make.running()
    big = bytes(ARTIFACT_LIMIT + 1)
    with pytest.raises(UsageError, match="the maximum is 25 MB"):
        await rt.checkpoints.artifact(work.lease, "big", "file", big)
    with pytest.raises(UsageError, match="the maximum is 25 MB"):
        await rt.checkpoints.save(work.lease, {}, big)
    assert await rt.checkpoints.artifacts(work.number) == []
    assert await rt.checkpoints.latest(work.number) == (None, None)


async def test_a_long_event_is_truncated_and_marked(make: Factory, rt: Runtime) -> None:
    work = await make.running()
    await rt.checkpoints.event(work.lease, "k" * 200, {"a": "x" * EVENT_LIMIT, "b": 1})
    event = (await rt.read_model.job_events(work.number))[-1]
    assert len(event.kind) == 100
    assert event.payload["truncated"] is True
    assert event.payload["b"] == 1
    assert len(event.payload["a"]) < EVENT_LIMIT


async def test_long_reasons_and_errors_are_truncated(
    make: Factory, rt: Runtime, owner: Actor
) -> None:
    long = "x" * 40_000
    canceled, failed, coded = [await make.running() for _ in range(3)]
    assert (await rt.job_control.cancel(canceled.number, owner, long)).requested
    failure = Failure(long, declared="PERMANENT")
    assert await rt.settlement.failure(failed, failure) is Status.FAILED
    assert await rt.settlement.failure(coded, Failure("x", code=long)) is Status.RETRYING
    assert len(str((await rt.read_model.job(failed.number)).last_error)) <= 4000


HUGE = [1e300, -1e300, 10**5000, float("inf"), float("nan")]


@pytest.mark.parametrize("number", HUGE, ids=["big", "small", "integer", "infinite", "nan"])
async def test_a_number_that_jsonb_would_expand_is_refused(
    make: Factory, rt: Runtime, number: float
) -> None:
    work = await make.running()
    with pytest.raises(UsageError):
        await rt.checkpoints.save(work.lease, {"x": [number] * 1000})
    with pytest.raises(UsageError):
        await rt.checkpoints.event(work.lease, "k", {"x": number})
    with pytest.raises(UsageError):
        invocation(payload={"x": number})


def test_a_payload_that_is_nested_too_deeply_is_refused_in_one_line() -> None:
    nested: dict[str, object] = {}
    for _ in range(5000):
        nested = {"x": nested}
    with pytest.raises(UsageError, match="nested too deeply"):
        invocation(payload=nested)
