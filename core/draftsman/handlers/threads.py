"""Threads of functions that block."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from contextvars import copy_context
from functools import partial
from threading import Thread
from typing import NoReturn, TypeVar

T = TypeVar("T")


class ThreadLimit:
    """The threads of a worker: so many run at once, the others wait in the order of their calls.

    A thread that goes on although its run was stopped keeps its place.
    """

    def __init__(self, size: int | None = None) -> None:
        """`size` None: there is no limit but that of the slots."""
        self.size = size
        self.running = 0
        self.waiting = 0
        self._places = None if size is None else asyncio.Semaphore(size)

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Wait for a place, and hold it for the block."""
        if self._places is not None:
            self.waiting += 1
            try:
                await self._places.acquire()
            finally:
                self.waiting -= 1
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1
            if self._places is not None:
                self._places.release()


async def call_in_thread(
    limit: ThreadLimit, name: str, function: Callable[[], T], interrupt: Callable[[], None]
) -> Callable[[], T]:
    """Return the outcome of a function in a thread of its own: call it for its result or error.

    A task that is canceled calls `interrupt`, and waits for the thread, which nothing can end from
    outside.
    """
    async with limit.place():
        return await _outcome_in_thread(name, function, interrupt)


async def _outcome_in_thread(
    name: str, function: Callable[[], T], interrupt: Callable[[], None]
) -> Callable[[], T]:
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[Callable[[], T]] = loop.create_future()

    def work() -> None:
        outcome = outcome_of(function)
        with suppress(RuntimeError):  # the loop is closed: the process ends without this thread
            loop.call_soon_threadsafe(ended.set_result, outcome)

    Thread(target=copy_context().run, args=(work,), name=name, daemon=True).start()
    while True:
        try:
            return await asyncio.shield(ended)
        except asyncio.CancelledError:
            interrupt()


def outcome_of(function: Callable[[], T]) -> Callable[[], T]:
    """Call a function; return a function that returns its result, or raises its error."""
    try:
        return partial(_return, function())
    except BaseException as error:
        return partial(_raise, error)


def _return(value: T) -> T:
    return value


def _raise(error: BaseException) -> NoReturn:
    raise error
