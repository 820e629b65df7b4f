"""Questions of a terminal or a script to the team: a job that holds the question."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from draftsman.actions.requests import submit
from draftsman.errors import AnswerTimeout, DraftsmanError, Refused
from draftsman.formats import times
from draftsman.ids import job_name
from draftsman.jobs.job import WAITING, Status
from draftsman_tui.cli.app import App, number_of
from draftsman_tui.cli.jobs.job_wait import print_pause
from draftsman_tui.cli.perform import call_of
from draftsman_tui.common.questions import describe
from draftsman_tui.common.requests import options_named

if TYPE_CHECKING:
    from draftsman.ids import JobRef
    from draftsman.jobs.job import Job
    from draftsman.jobs.requests.service.submissions import SubmittedJob
    from draftsman.runtime import Runtime

TYPE = "ask_people"


async def ask_team(
    app: App, payload: dict[str, Any], *, wait: float | None, key: str | None, notify: list[str]
) -> dict[str, Any]:
    """Submit the question and return the answer.

    Raises AnswerTimeout without an answer within `wait` seconds, or if the question expires.
    """
    async with app.runtime() as rt:
        job = await submit_question(app, rt, payload, key=key, notify=notify)
        why = await rt.read_model.why(job.number)
        if why.lacks_worker:
            app.out.info(f"{job.name}: {why.text}; {why.next_step}")
        return await _wait_for_answer(app, rt, job.number, wait)


async def submit_question(
    app: App, rt: Runtime, payload: dict[str, Any], *, notify: list[str], key: str | None = None
) -> SubmittedJob:
    """Submit a job that holds the question."""
    from draftsman.jobs.requests.service.request_checks import build_request

    title = payload["text"].strip().split("\n")[0][:200]
    fields = {"type": TYPE, "payload": payload, "title": title, "key": key, "notify": notify}
    with options_named():
        request = build_request({name: item for name, item in fields.items() if item}, app.settings)
        request = await rt.request_checks.resolve(request, unchecked=True)
    return (await submit(await call_of(app, rt), request)).value


async def continue_asking(app: App, ref: JobRef, wait: float | None) -> dict[str, Any]:
    """Return the answer to a question that was asked before; raises as `ask_team`."""
    async with app.runtime() as rt:
        return await _wait_for_answer(app, rt, await number_of(rt, ref), wait)


async def _wait_for_answer(
    app: App, rt: Runtime, number: int, wait: float | None
) -> dict[str, Any]:
    last = 0
    paused = False
    try:
        async with asyncio.timeout(wait):
            async for current in rt.read_model.versions(number):
                if current.paused and not paused:
                    await print_pause(app, rt, number)
                paused = current.paused
                if current.version != last and current.status in WAITING:
                    for question in await rt.questions.open(number):
                        app.out.print_stderr(*await describe(rt, question))
                last = current.version
    except TimeoutError:
        reason = await why_unanswered(rt, number, wait or 0)
        raise AnswerTimeout(f"{reason}; {_stays_open(number)}") from None
    except asyncio.CancelledError:
        app.out.info(_stays_open(number))
        raise
    return answer_of(await rt.read_model.job(number))


async def why_unanswered(rt: Runtime, number: int, waited: float) -> str:
    """Return why there is no answer: without a worker the question was not asked."""
    why = await rt.read_model.why(number)
    if why.lacks_worker:
        return f"the question was not asked: {why.text}; {why.next_step}"
    return f"no answer within {times.span(waited)}"


def answer_of(job: Job) -> dict[str, Any]:
    """Return the answer of a finished job; raises AnswerTimeout if it expired, DraftsmanError."""
    if job.type != TYPE:
        raise Refused(f"{job.name} is a job of the type {job.type!r}, not a question of ask")
    if job.status is Status.EXPIRED:
        raise AnswerTimeout(f"{job.name} expired without an answer")
    if job.status is not Status.COMPLETED:
        reason = job.last_error or job.cancel_reason
        status = str(job.status).replace("_", " ")
        raise DraftsmanError(f"{job.name} is {status}{f': {reason}' if reason else ''}")
    return {"job": job.number} | (job.result or {})


def _stays_open(number: int) -> str:
    name = job_name(number)
    return (
        f"{name} stays open; to wait for its answer: draftsman ask --continue {name};"
        f" to withdraw it: draftsman cancel {name}"
    )
