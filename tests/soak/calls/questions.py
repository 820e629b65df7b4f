"""Questions and answers."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import Final

from draftsman.database.database import Connection
from draftsman.jobs.job import Source, Status
from draftsman.people.actor import Actor
from draftsman.questions.question import Question, QuestionStatus, Resolution
from draftsman.questions.question_spec import QuestionSpec
from draftsman.questions.store import approval_tokens, questions
from tests.soak.calls.call import MIDDLE, RUNNING, Call, last_of

WAITS = last_of("waiting_for_input", 5000)
GATE = last_of("waiting_for_approval", 5000)
ACTOR = Actor(Source.CLI, "soak", "soak")
TOKEN = hashlib.md5(f"token{GATE}".encode(), usedforsecurity=False).hexdigest()
Work = Callable[[Connection, Question], Awaitable[object]]


def _with(job: int, work: Work) -> Call:
    """Call it with a question of the job."""

    async def call(conn: Connection) -> object:
        question = await questions.get(conn, job, 1)
        assert question is not None
        return await work(conn, question)

    return Call(call)


def _resolve(status: QuestionStatus, after: Status) -> Work:
    resolution = Resolution(outcome="answered", via="person", by=("soak",), text="red")
    return lambda conn, question: questions.resolve(
        conn, question, resolution, actor="s", status=status, job_status=after, kind="answered"
    )


def _record(refused: str | None) -> Work:
    return lambda conn, question: questions.record(
        conn, question, ACTOR, "soak", "new", {"text": "red"}, refused
    )


def _ask(*keys: str, grace: float = 0) -> Call:
    new = [
        questions.NewQuestion(
            QuestionSpec(key=key, text="Which one?", freeform=True), ["carol"], expires_in=60
        )
        for key in keys
    ]
    return Call(lambda conn: questions.ask(conn, RUNNING[0], new, grace=grace))


async def _walked(conn: Connection) -> object:
    first = (await questions.open_questions(conn, 200))[-1]
    return await questions.open_questions(conn, 200, (first.expires_at, first.job, first.ordinal))


LOCK = Call(lambda conn: questions.lock(conn, WAITS, 1))
CALLS: Final[dict[str, Call]] = {
    "questions.ask": _ask("new"),
    "questions.ask: in a grace period": _ask("new", grace=20),
    "questions.ask: several": _ask("new", "second", "third"),
    "questions.of_key": Call(lambda conn: questions.of_key(conn, MIDDLE, "pick")),
    "questions.of_key: none": Call(lambda conn: questions.of_key(conn, MIDDLE, "none")),
    "questions.get": Call(lambda conn: questions.get(conn, MIDDLE, 1)),
    "questions.of_job": Call(lambda conn: questions.of_job(conn, MIDDLE)),
    "questions.of_job: none": Call(lambda conn: questions.of_job(conn, MIDDLE + 1)),
    "questions.open": Call(lambda conn: questions.open_questions(conn, 200), rows=401),
    "questions.open: folded": Call(
        lambda conn: questions.open_questions(conn, 200, viewer="anna"), rows=401
    ),
    "questions.open: further on": Call(_walked, rows=802),
    "questions.open: that never expire": Call(
        lambda conn: questions.open_questions(conn, 200, (None, WAITS // 2, 1)), rows=401
    ),
    "questions.counts": Call(
        lambda conn: questions.counts(conn, "", 10_000), 100_000, "10,000 questions are counted"
    ),
    "questions.open_of: a page": Call(
        lambda conn: questions.open_of(conn, range(WAITS, WAITS + 50))
    ),
    "questions.open_of: the past": Call(lambda conn: questions.open_of(conn, [MIDDLE])),
    "questions.asked: a page": Call(lambda conn: questions.asked(conn, range(WAITS, WAITS + 50))),
    "questions.asked: the past": Call(lambda conn: questions.asked(conn, [MIDDLE])),
    "questions.answers: of a job": Call(lambda conn: questions.answers(conn, MIDDLE)),
    "questions.answers: of a question": Call(lambda conn: questions.answers(conn, MIDDLE, 1)),
    "questions.lock_job": LOCK,
    "questions.lock": LOCK,
    "questions.stays_open": Call(lambda conn: questions.stays_open(conn, WAITS, 1, 5.0)),
    "questions.previous_answer": Call(
        lambda conn: questions.previous_answer(conn, MIDDLE, 1, "seed2")
    ),
    "questions.previous_answer: none": Call(
        lambda conn: questions.previous_answer(conn, WAITS, 1, "none")
    ),
    "questions.record: accepted": _with(WAITS, _record(None)),
    "questions.record: refused": _with(MIDDLE, _record("too late")),
    "questions.votes": Call(lambda conn: questions.votes(conn, MIDDLE, 1)),
    "questions.resolve: answered": _with(WAITS, _resolve(QuestionStatus.ANSWERED, Status.RESUMED)),
    "questions.resolve: expired": _with(WAITS, _resolve(QuestionStatus.EXPIRED, Status.EXPIRED)),
    "questions.extend": Call(lambda conn: questions.extend(conn, WAITS, 1, 3600, "cli:soak")),
    "questions.refused": Call(lambda conn: questions.refused(conn, MIDDLE, 1, "anna")),
    "questions.count_refused": Call(
        lambda conn: questions.count_refused(conn, MIDDLE, 1, "anna", "too late")
    ),
    "approval_tokens.mint": Call(
        lambda conn: approval_tokens.mint(
            conn, GATE, 1, approver="dave", minted_by="dave", token_hash="hash", actor="cli:dave"
        )
    ),
    "approval_tokens.refuse": Call(
        lambda conn: approval_tokens.refuse(
            conn,
            GATE,
            1,
            approver="dave",
            voter="anna",
            reason="only dave can",
            actor="cli:anna",
            most=20,
        )
    ),
    "approval_tokens.find": Call(lambda conn: approval_tokens.find(conn, TOKEN)),
    "approval_tokens.find: none": Call(lambda conn: approval_tokens.find(conn, "none")),
    "approval_tokens.use": Call(lambda conn: approval_tokens.use(conn, TOKEN, "cli:soak")),
}
