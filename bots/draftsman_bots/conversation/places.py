"""Places of conversations, as the database has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from draftsman.jobs.job import AGENT_TYPE, TERMINAL
from draftsman.questions.rights import may_respond
from draftsman_bots.conversation.resolution import Place, PlacedJob, PlacedQuestion, Talk

if TYPE_CHECKING:
    from draftsman.people.actor import Actor
    from draftsman.questions.answer import Answer
    from draftsman.questions.question import Question
    from draftsman.runtime import Runtime


async def load_place(
    rt: Runtime,
    talk: Talk,
    author: Actor,
    numbers: Iterable[int],
    asked: Callable[[Question], bool],
    since: Callable[[Question], datetime | None] = lambda _: None,
) -> Place:
    """Return a place with these jobs, and with those of their questions that were asked there.

    `since` returns when a question appeared there, if that is known.
    """
    questions: list[PlacedQuestion] = []
    answers: list[Answer] = []
    jobs: list[PlacedJob] = []
    permitted: set[str] = set()
    for number in sorted(set(numbers), reverse=True):
        job = await rt.read_model.job(number)
        jobs.append(PlacedJob(number, job.status in TERMINAL, job.type == AGENT_TYPE))
        of_job, of_answers = await rt.questions.of_job(number)
        here = [question for question in of_job if asked(question)]
        questions += [PlacedQuestion(question, since(question)) for question in here]
        answers += of_answers
        if talk is Talk.PERMITTED:
            may = (
                question
                for question in here
                if may_respond(rt.policy, author, question, invoker=job.invoker_id)
            )
            permitted |= {question.name for question in may}
    return Place(
        talk=talk,
        questions=questions,
        jobs=jobs,
        answers=answers,
        voter=author.voter,
        permitted=frozenset(permitted),
    )


async def agent_jobs(rt: Runtime, place: Place) -> list[int]:
    """Return the jobs of a place whose agents take messages.

    Those are the unfinished jobs, else the newest if its pull request is open.
    """
    agents = [job for job in place.jobs if job.is_agent]
    live = [job.number for job in agents if not job.finished]
    if live or not agents or not await rt.forge_events.follow_ups.is_open(agents[0].number):
        return live
    return [agents[0].number]
