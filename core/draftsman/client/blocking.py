"""The client for programs without an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from draftsman.client.asynchronous import Client, Cursor, Fields, JobName, Request
from draftsman.domain.answer import Verdict
from draftsman.domain.event import Event
from draftsman.domain.job import Job
from draftsman.domain.question import Question
from draftsman.errors import DraftsmanError
from draftsman.services.intake import Submitted
from draftsman.services.operate import Canceled

if TYPE_CHECKING:
    from draftsman.store.callers import CallersConnection

T = TypeVar("T")


class BlockingClient:
    """The methods of `Client`, each of which waits for its result.

    They run on an event loop in a thread of this client, so that any thread may call them. The
    arguments, results and errors are those of `Client`.
    """

    def __init__(self, connection: AbstractAsyncContextManager[Client]) -> None:
        self._connection = connection
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="draftsman-client", daemon=True
        )
        self._thread.start()
        try:
            self._client: Client = self._run(connection.__aenter__())
        except BaseException:
            self._stop()
            raise

    def close(self) -> None:
        """Disconnect; iterations of `events` that are under way end with an error."""
        try:
            self._run(self._connection.__aexit__(None, None, None))
        finally:
            self._stop()

    def submit(
        self,
        text: str | None = None,
        *,
        connection: CallersConnection | None = None,
        **fields: Unpack[Fields],
    ) -> Submitted:
        """Create a job, or find the job that the same `key` created before."""
        return self._run(self._client.submit(text, connection=connection, **fields))

    def submit_many(
        self, requests: Iterable[Request], *, connection: CallersConnection | None = None
    ) -> list[Submitted]:
        """Create a job for each request, in one statement."""
        return self._run(self._client.submit_many(list(requests), connection=connection))

    def get(self, job: JobName) -> Job:
        """Return a job with its status and result."""
        return self._run(self._client.get(job))

    def wait(self, job: JobName, timeout: float | None = None) -> Job:
        """Return a job once it ended; raises TimeoutError after `timeout` seconds."""
        return self._run(self._client.wait(job, timeout))

    def questions(self, job: JobName | None = None) -> list[Question]:
        """Return the open questions of a job, or of all jobs."""
        return self._run(self._client.questions(job))

    def answer(self, question: str | Question, text: str) -> Verdict:
        """Answer a question with a choice or with free text."""
        return self._run(self._client.answer(question, text))

    def approve(self, question: str | Question, reason: str | None = None) -> Verdict:
        """Approve an approval."""
        return self._run(self._client.approve(question, reason))

    def deny(self, question: str | Question, reason: str | None = None) -> Verdict:
        """Deny an approval."""
        return self._run(self._client.deny(question, reason))

    def cancel(self, job: JobName, reason: str | None = None, *, force: bool = False) -> Canceled:
        """Cancel a job."""
        return self._run(self._client.cancel(job, reason, force=force))

    def retry(self, job: JobName, *, fresh: bool = False, again: bool = False) -> Submitted:
        """Create a new job from a finished one."""
        return self._run(self._client.retry(job, fresh=fresh, again=again))

    def events(
        self, job: JobName | None = None, *, after: Event | Cursor | None = None, new: bool = False
    ) -> Iterator[Event]:
        """Yield the events of a job until it ended, or those of all jobs."""
        events = self._client.events(job, after=after, new=new)
        try:
            while (event := self._run(_next(events))) is not None:
                yield event
        finally:
            if self._loop.is_running():
                self._run(_close(events))

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        if not self._thread.is_alive():
            call.close()
            raise DraftsmanError("this client is closed; open another Draftsman")
        future = asyncio.run_coroutine_threadsafe(call, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _next(events: AsyncIterator[Event]) -> Event | None:
    return await anext(events, None)


async def _close(events: Any) -> None:
    await events.aclose()
