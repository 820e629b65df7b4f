"""The event loop of the blocking client, in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Coroutine, Iterable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, TypeVar

from draftsman.client.asynchronous import Client, batch_note, in_batches
from draftsman.client.requests import Request
from draftsman.errors import DraftsmanError
from draftsman.jobs.requests.service.submissions import SubmittedJob

T = TypeVar("T")
CLOSED: Final = "this client is closed; open a new Draftsman"


class LoopThread:
    """The part of `BlockingClient` that `Client` lacks: its thread, its end and its iterators.

    Iterables of the caller are read in the thread of the call.
    """

    def __init__(self, connection: AbstractAsyncContextManager[Client]) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._closed = False
        self._calls: set[Future[Any]] = set()
        """Pending calls of all threads."""
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
        """Disconnect; pending calls of other threads fail."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            calls = list(self._calls)
        for call in calls:
            call.cancel()
        try:
            closing = self._connection.__aexit__(None, None, None)
            asyncio.run_coroutine_threadsafe(_finish(closing), self._loop).result()
        finally:
            self._stop()

    def _submit_stream(
        self, requests: Iterable[Request], *, unchecked: bool
    ) -> Iterator[SubmittedJob]:
        position = 1
        for batch in in_batches(requests):
            with batch_note(position):
                jobs = self._run(self._client.submit_many(batch, unchecked=unchecked))
            yield from jobs
            position += len(batch)

    def _iterate(self, iterator: AsyncIterator[T]) -> Iterator[T]:
        while (item := self._run(_next(iterator))) is not None:
            try:
                yield item
            except BaseException:
                if not self._closed:
                    self._run(_close(iterator))
                raise

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        with self._lock:
            if self._closed or not self._thread.is_alive():
                call.close()
                raise DraftsmanError(CLOSED)
            future = asyncio.run_coroutine_threadsafe(call, self._loop)
            self._calls.add(future)
        try:
            return future.result()
        except CancelledError:
            raise DraftsmanError(CLOSED) from None
        except BaseException:
            future.cancel()
            raise
        finally:
            with self._lock:
                self._calls.discard(future)

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _next(iterator: AsyncIterator[T]) -> T | None:
    return await anext(iterator, None)


async def _close(iterator: Any) -> None:
    await iterator.aclose()


async def _finish(closing: Awaitable[Any]) -> None:
    """Wait for the canceled calls, then for the end of the connection."""
    current = asyncio.current_task()
    calls = [task for task in asyncio.all_tasks() if task is not current and task.cancelling()]
    await asyncio.gather(*calls, return_exceptions=True)
    await closing
