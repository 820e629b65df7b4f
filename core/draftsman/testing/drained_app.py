"""What the apps of tests share: the jobs of a test, which run when the test drains them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, cast

from draftsman.client.blocking import BlockingClient
from draftsman.client.requests import Request
from draftsman.ids import job_name
from draftsman.job_types.declaration import JobType
from draftsman.job_types.secret_name import given_secrets
from draftsman.job_types.submission import process_client
from draftsman.jobs.job import Status
from draftsman.jobs.requests.service.submissions import SubmittedJob
from draftsman.questions.question import Question
from draftsman.testing.handler_runs import Reply

MAX_JOBS: Final = 10_000
"""Jobs that one `drain` runs at most: jobs may submit others without end."""


@dataclass(slots=True, kw_only=True)
class AppJob:
    """A job of a test, as it is now."""

    number: int
    type: str
    payload: dict[str, Any]
    payload_version: int = 1
    title: str | None
    key: str | None
    due: datetime
    """When it may run first, or again after a sleep or a failure."""
    status: Status = Status.QUEUED
    result: dict[str, Any] | None = None
    last_error: str | None = None
    questions: Sequence[Question] = ()
    """Every question, with its resolution, in the order asked."""
    steps: Mapping[str, Any] = field(default_factory=dict)
    """The result of each step by its key."""
    log: str = ""

    @property
    def name(self) -> str:
        """The display name, such as `D-1`."""
        return job_name(self.number)


class DrainedApp(ABC):
    """The jobs of a test: `submit` of a declared type adds one, `drain` runs them.

    `answers` maps the key of a question to its answer, as for `run_handler`, and `secrets` the name
    of a secret to its value. Jobs with a `delay` or `run_at` wait until `advance` has moved the
    clock; a job that sleeps moves it.
    """

    def __init__(self) -> None:
        self.answers: dict[str, Reply] = {}
        self.secrets: dict[str, str] = {}

    @property
    @abstractmethod
    def jobs(self) -> list[AppJob]:
        """All jobs, in the order of their submission."""

    @property
    @abstractmethod
    def now(self) -> datetime:
        """The time of the clock."""

    @abstractmethod
    def advance(self, seconds: float) -> None:
        """Move the clock forward; `drain` then runs what is due."""

    @abstractmethod
    def drain(self) -> list[AppJob]:
        """Run all jobs that are due, and those that they submit; return those that ran.

        An error of a job fails that job: see its `last_error`. Raises AssertionError for a question
        without an entry in `answers`, and for a type that no imported module declares.
        """

    @abstractmethod
    async def drain_async(self) -> list[AppJob]:
        """Run the jobs as `drain` does, in a test that is a coroutine."""

    def submitted(self, type: JobType[Any, Any] | str) -> list[dict[str, Any]]:
        """Return the payloads of the jobs of a type, in the order of their submission."""
        name = type if isinstance(type, str) else type.name
        return [job.payload for job in self.jobs if job.type == name]

    def asked(self) -> list[str]:
        """Return the texts of all questions that were asked, in the order of their jobs."""
        return [question.text for job in self.jobs for question in job.questions]

    # What a client does, for `submit` and `result` of declared types.

    @abstractmethod
    def submit_many(
        self, requests: Sequence[Request], *, connection: Any = None
    ) -> list[SubmittedJob]:
        """Add a job for each request; one with a `key` only once."""

    def wait(self, job: SubmittedJob, timeout: float | None = None) -> AppJob:
        """Run the jobs that are due; return this one. Raises TimeoutError if it is not due."""
        self.drain()
        found = next(each for each in self.jobs if each.number == job.number)
        if found.status in (Status.QUEUED, Status.SCHEDULED):
            raise TimeoutError(f"{found.name} is due at {found.due}; advance the clock")
        return found

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Let `submit` and `result` of declared types use this app, inside the block."""
        with process_client.replaced(cast(BlockingClient, self)), given_secrets(self.secrets):
            yield


def undeclared(type: str) -> AssertionError:
    """Return the error of a job whose type no module declares."""
    return AssertionError(f"no imported module declares the type {type}")


def too_many() -> AssertionError:
    """Return the error of jobs that do not come to an end."""
    return AssertionError(f"{MAX_JOBS} jobs ran; do they submit each other?")
