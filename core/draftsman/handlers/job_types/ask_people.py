"""`ask_people`: a question or an approval, whose answer is the result of the job."""

from __future__ import annotations

from typing import Final

from draftsman.handlers.context import RunContext, worker_run
from draftsman.jobs.requests.payloads import AskPeople, parse
from draftsman.jobs.runs.outcome import Done, Outcome
from draftsman.questions.question import NoAnswer

KEY: Final = "question"


async def ask_people(ctx: RunContext) -> Outcome:
    """Ask once; the run that follows the answer returns it."""
    payload = parse("ask_people", ctx.job.payload)
    assert isinstance(payload, AskPeople)  # noqa: S101 - the type's own model
    answer = await worker_run(ctx).ask_or_park(payload.question(KEY))
    if isinstance(answer, NoAnswer):
        return Done({"outcome": answer.outcome})
    result = {
        "outcome": answer.outcome,
        "value": answer.value,
        "text": answer.text,
        "by": list(answer.by),
        "at": None if answer.at is None else answer.at.isoformat(),
        "reason": answer.reason,
    }
    return Done(result)
