"""Jobs and questions that are the topics of threads, and messages of questions."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ThreadTopic:
    """A job of a thread; `question` is set where a question's message is the thread's root.

    `thread` is the thread in which that message is, if any.
    """

    job: int
    question: int | None
    thread: str | None


@dataclass(frozen=True, slots=True)
class QuestionMessage:
    """The message of an open question.

    `ref` is its reference in a Receipt, `thread` the thread of its target, and `root` the reference
    of the job's status message: the parent where the target has no thread.
    """

    job: int
    question: int
    ref: str
    thread: str | None
    root: str | None
