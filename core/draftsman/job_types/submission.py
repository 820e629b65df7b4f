"""Submission of jobs of a declared type, and what becomes of them."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from draftsman.client import Draftsman
from draftsman.client.asynchronous import Client
from draftsman.client.blocking import BlockingClient
from draftsman.client.requests import Request, RequestOptions
from draftsman.database.caller_connection import CallersConnection
from draftsman.errors import Failure, UsageError
from draftsman.job_types.parameters import Results
from draftsman.jobs.job import Job, Status
from draftsman.jobs.requests.service.submissions import SubmittedJob

R = TypeVar("R")


class SubmitOptions(RequestOptions, total=False):
    """Options of a submission: those of its request, and how it is made."""

    client: BlockingClient | Client
    """An open client; by default one of this process, by the configuration."""
    connection: CallersConnection
    """A connection of psycopg 3 with a transaction, to which the job then belongs."""


class _ProcessClient:
    """The client of this process, opened at its first use and closed at its end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._client: BlockingClient | None = None
        self._process: int | None = None

    def get(self) -> BlockingClient:
        """Return the client; a forked process opens its own."""
        with self._lock:
            if self._client is None or self._process != os.getpid():
                self._client = Draftsman().__enter__()
                self._process = os.getpid()
                atexit.register(self._close, self._client, self._process)
            return self._client

    @contextmanager
    def replaced(self, client: BlockingClient) -> Iterator[None]:
        """Let this client take the place of that of the process, in the block."""
        before, process = self._client, self._process
        self._client, self._process = client, os.getpid()
        try:
            yield
        finally:
            self._client, self._process = before, process

    @staticmethod
    def _close(client: BlockingClient, process: int) -> None:
        if process == os.getpid():
            client.close()


process_client = _ProcessClient()


@dataclass(frozen=True, slots=True)
class SubmittedJobOf(Generic[R]):
    """A job of a declared type, as it was submitted."""

    job: SubmittedJob
    results: Results[R]
    client: BlockingClient | Client | None = field(default=None, repr=False)

    @property
    def number(self) -> int:
        """The number of the job."""
        return self.job.number

    @property
    def name(self) -> str:
        """The display name, such as `D-142`."""
        return self.job.name

    @property
    def outcome(self) -> str:
        """Whether the request created the job: created, deduplicated or joined."""
        return self.job.outcome

    def result(self, timeout: float | None = None) -> R:
        """Return the result once the job completed.

        Raises TimeoutError after `timeout` seconds, and Failure for a job that did not complete.
        """
        client = blocking(self.client)
        return self._result(client.wait(self.job, timeout))

    async def result_async(self, timeout: float | None = None) -> R:
        """Return the result once the job completed, as `result` does."""
        if isinstance(self.client, Client):
            return self._result(await self.client.wait(self.job, timeout))
        return await asyncio.to_thread(self.result, timeout)

    def _result(self, ended: Job) -> R:
        if ended.status is not Status.COMPLETED:
            error = f": {ended.last_error}" if ended.last_error else ""
            text = f"{ended.name} is {ended.status}{error}"
            raise Failure(text, code="job_failed", declared="PERMANENT")
        return self.results.load(ended.result or {})


def blocking(client: BlockingClient | Client | None) -> BlockingClient:
    """Return the client for a blocking call; raises UsageError for an asynchronous one."""
    if client is None:
        return process_client.get()
    if isinstance(client, Client):
        raise UsageError("this client is asynchronous; await submit_async and result_async")
    return client


def submit(
    requests: Sequence[Request],
    client: BlockingClient | Client | None,
    connection: CallersConnection | None,
) -> list[SubmittedJob]:
    """Submit the requests; block meanwhile."""
    return blocking(client).submit_many(requests, connection=connection)


async def submit_async(
    requests: Sequence[Request],
    client: BlockingClient | Client | None,
    connection: CallersConnection | None,
) -> list[SubmittedJob]:
    """Submit the requests, beside other tasks of the event loop."""
    if isinstance(client, Client):
        return await client.submit_many(requests, connection=connection)
    return await asyncio.to_thread(submit, requests, client, connection)
